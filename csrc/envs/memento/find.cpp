// The finding tools by rule: the words of the query against types, categories and rooms.
//
// In the original a language model answers over the same lists. The form of its usual answers is kept: one line per
// match, or a sentence that nothing matches and a list of near matches.
#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "envs/memento/env.h"

namespace embodied_mem::memento {
namespace {

// What people call things whose type has another name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kSynonyms = {{
    {"sofa", "couch"},
    {"refrigerator", "fridge"},
    {"armchair", "chair"},
    {"desk", "table"},
    {"dresser", "chest of drawers"},
    {"drawer", "chest of drawers"},
    {"cupboard", "cabinet"},
    {"shelf", "shelves"},
    {"bookshelf", "shelves"},
    {"nightstand", "stand"},
    {"closets", "wardrobe"},
    {"counters", "counter"},
}};

// Lower case, letters and digits only, every other run of bytes one blank, blanks at both ends.
std::string Words(std::string_view text) {
  std::string words = " ";
  for (char c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) words += c;
    else if (words.back() != ' ') words += ' ';
  }
  if (words.back() != ' ') words += ' ';
  return words;
}

bool Has(const std::string& words, std::string_view phrase) {
  return words.find(" " + std::string(phrase) + " ") != std::string::npos;
}

// Whether the query names the thing, in the singular or the plural.
bool Names(const std::string& words, std::string_view type) {
  std::string name = Words(type);
  name = name.substr(1, name.size() - 2);
  if (name.empty()) return false;
  if (Has(words, name) || Has(words, name + "s") || Has(words, name + "es")) return true;
  if (name.rfind("chest of drawers", 0) == 0 && Has(words, "chests of drawers")) return true;
  return std::any_of(kSynonyms.begin(), kSynonyms.end(), [&](const auto& pair) {
    return pair.second == name && (Has(words, pair.first) || Has(words, std::string(pair.first) + "s"));
  });
}

// A room's type as people say it: "living_room" also "living room"; its number does not count, as in the original.
bool NamesRoom(const std::string& words, const Room& room) {
  std::string type = Words(room.type);
  type = type.substr(1, type.size() - 2);
  if (type.empty()) return false;
  if (Has(words, type) || Has(words, type + "s")) return true;
  const std::string with_number = Words(room.name);
  return Has(words, with_number.substr(1, with_number.size() - 2));
}

}  // namespace

std::string FindReceptacles(const House& house, std::string_view query) {
  const std::string words = Words(query);
  const bool wants_faucet = Has(words, "faucet") || Has(words, "sink") || Has(words, "faucets");
  bool names_room = false;
  for (const Room& room : house.rooms) names_room = names_room || NamesRoom(words, room);
  std::string here, elsewhere, type;
  for (const Furniture& piece : house.furniture) {
    const bool exact = Names(words, piece.name);
    const bool wanted = exact || Names(words, piece.type) || (wants_faucet && piece.faucet);
    if (!wanted) continue;
    type = piece.type;
    const Room& room = house.rooms[piece.room];
    const std::string entry = piece.name + " in " + room.type;
    if (exact || !names_room || NamesRoom(words, room)) here += (here.empty() ? "- " : "\n- ") + entry;
    else elsewhere += (elsewhere.empty() ? "- " : ", ") + entry;
  }
  if (!here.empty()) return here;
  if (!elsewhere.empty()) {
    return "No " + type + " was found there. I was able to find the following pieces of that type though:\n" +
           elsewhere;
  }
  std::string in_room;
  for (const Furniture& piece : house.furniture) {
    if (!names_room || NamesRoom(words, house.rooms[piece.room])) {
      in_room += (in_room.empty() ? "- " : ", ") + piece.name + " in " + house.rooms[piece.room].type;
    }
  }
  return "No furniture matching the query was found. " +
         (names_room ? "I was able to find the following furniture there though:\n" + in_room
                     : "Explore the list of furniture for other names.");
}

std::string FindRooms(const House& house, std::string_view query) {
  const std::string words = Words(query);
  std::string matches, all;
  for (const Room& room : house.rooms) {
    if (!room.has_floor) continue;
    all += (all.empty() ? "- " : ", ") + room.name;
    bool wanted = NamesRoom(words, room);
    for (const std::uint16_t f : room.furniture) wanted = wanted || Names(words, house.furniture[f].type);
    if (wanted) matches += (matches.empty() ? "- " : "\n- ") + room.name;
  }
  return matches.empty() ? "No room matching the query was found. The rooms of the house are:\n" + all : matches;
}

std::string FindObjects(const Env& env, std::string_view query) {
  const Task& task = *env.task();
  const House& house = *task.house;
  if (env.discovered().empty()) return "No objects found yet. Explore the house to find objects.";
  const std::string words = Words(query);
  bool names_room = false, names_category = false;
  for (const Room& room : house.rooms) names_room = names_room || NamesRoom(words, room);
  for (const std::uint16_t o : env.discovered()) {
    names_category = names_category || Names(words, task.objects[o].category) || Names(words, task.objects[o].name);
  }
  std::string matches, near;
  for (const std::uint16_t o : env.discovered()) {
    const ObjectState& object = env.objects()[o];
    const ObjectInfo& info = task.objects[o];
    const bool held = o == env.held();
    const Node place = object.moved ? object.place : info.text_place;
    const bool by_name = Names(words, info.category) || Names(words, info.name);
    const bool by_place =
        !held && (Names(words, house.NameOf(place)) ||
                  (place.kind == NodeKind::kFurniture && Names(words, house.furniture[place.index].type)));
    const bool in_room = !held && NamesRoom(words, house.rooms[house.RoomOf(place)]);
    const std::string entry = info.name + (held ? ": held by the agent" : ": " + house.PlaceText(place));
    const bool wanted = names_category ? by_name && (!names_room || in_room || held) : (by_place || in_room);
    if (wanted) matches += (matches.empty() ? "- " : "\n- ") + entry;
    else if (by_name || by_place || in_room) near += (near.empty() ? "- " : "\n- ") + entry;
  }
  if (!matches.empty()) return matches;
  return near.empty() ? "No objects matching the query were found so far."
                      : "No such object was found there. I was able to find the following though:\n" + near;
}

}  // namespace embodied_mem::memento

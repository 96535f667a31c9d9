#include "envs/scienceworld/parse.h"

#include <sstream>

#include "envs/scienceworld/say.h"
#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {
namespace {

struct Template {
  Verb verb;
  const char* begin;
  const char* middle;  // nullptr: one thing; "": none
};

constexpr Template kTemplates[] = {
    {Verb::kActivate, "activate ", nullptr},
    {Verb::kActivate, "turn on ", nullptr},
    {Verb::kDeactivate, "deactivate ", nullptr},
    {Verb::kDeactivate, "turn off ", nullptr},
    {Verb::kClose, "close ", nullptr},
    {Verb::kOpen, "open ", nullptr},
    {Verb::kConnect, "connect ", " to "},
    {Verb::kDisconnect, "disconnect ", nullptr},
    {Verb::kDunk, "dunk ", " in "},
    {Verb::kDunk, "dunk ", " into "},
    {Verb::kEat, "eat ", nullptr},
    {Verb::kEat, "consume ", nullptr},
    {Verb::kFlush, "flush ", nullptr},
    {Verb::kFocus, "focus on ", nullptr},
    {Verb::kFocus, "focus ", nullptr},
    {Verb::kGo, "go to ", nullptr},
    {Verb::kGo, "go through ", nullptr},
    {Verb::kGo, "go into ", nullptr},
    {Verb::kGo, "go ", nullptr},
    {Verb::kGo, "walk to ", nullptr},
    {Verb::kGo, "walk through ", nullptr},
    {Verb::kGo, "move to ", nullptr},
    {Verb::kInventory, "inventory", ""},
    {Verb::kLookAround, "look around", ""},
    {Verb::kLookAround, "look", ""},
    {Verb::kLookAt, "look at ", nullptr},
    {Verb::kLookAt, "look on ", nullptr},
    {Verb::kLookAt, "examine ", nullptr},
    {Verb::kLookIn, "look in ", nullptr},
    {Verb::kMix, "mix ", nullptr},
    {Verb::kMix, "stir ", nullptr},
    {Verb::kMove, "move ", " to "},
    {Verb::kMove, "move ", " into "},
    {Verb::kMove, "move ", " in "},
    {Verb::kMove, "move ", " on "},
    {Verb::kMove, "put ", " to "},
    {Verb::kMove, "put ", " into "},
    {Verb::kMove, "put ", " in "},
    {Verb::kMove, "put ", " on "},
    {Verb::kPickUp, "pick up ", nullptr},
    {Verb::kPickUp, "get ", nullptr},
    {Verb::kPickUp, "take ", nullptr},
    {Verb::kPour, "pour ", " in "},
    {Verb::kPour, "pour ", " into "},
    {Verb::kPour, "pour ", " to "},
    {Verb::kPour, "pour ", " on "},
    {Verb::kPutDown, "put down ", nullptr},
    {Verb::kPutDown, "drop ", nullptr},
    {Verb::kRead, "read ", nullptr},
    {Verb::kReset, "reset task", ""},
    {Verb::kTask, "task", ""},
    {Verb::kTeleport, "teleport to ", nullptr},
    {Verb::kTeleport, "teleport ", nullptr},
    {Verb::kUse, "use ", " on "},
    {Verb::kUse, "use ", " with "},
    {Verb::kWait, "wait", ""},
    {Verb::kWait1, "wait1", ""},
};

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// A command in lower case, its words one space apart, without articles.
std::string Plain(std::string_view command) {
  std::istringstream words{Lower(command)};
  std::string text, word;
  while (words >> word)
    if (word != "the" && word != "a" && word != "an") text += (text.empty() ? "" : " ") + word;
  return text;
}

void Collect(const World& world, Id id, bool all_ends, std::vector<Id>* found) {
  found->push_back(id);
  const Thing& thing = world[id];
  for (const Id drain : world.drains)
    if (thing.kind != Kind::kRoom && world[drain].parent == id) found->push_back(drain);
  if (thing.end != kNone && (all_ends || ShowsEnds(thing.kind)))
    found->insert(found->end(), {thing.end, thing.end + 1});
  if (thing.kind != Kind::kAgent && !thing.open) return;
  for (const Id inner : thing.inside) Collect(world, inner, all_ends, found);
}

// The names of what a command can mean, made once for it.
class Lexicon {
 public:
  Lexicon(const World& world, const std::vector<Id>& ids) : world_(world), ids_(ids), names_(world.things.size()) {}

  const std::vector<std::string>& Of(Id id) {
    std::vector<std::string>& names = names_[static_cast<std::size_t>(id)];
    if (names.empty()) {
      names = Names(world_, id);
      for (std::string& name : names) name = Plain(name);
    }
    return names;
  }

  bool Means(std::string_view text, Id id) {
    for (const std::string& name : Of(id)) {
      if (text == name) return true;
      if (world_[id].kind == Kind::kDoor || world_[id].kind == Kind::kDrain) continue;
      if (text.size() > name.size() + 4 && text.substr(0, name.size()) == name) {
        const std::string_view rest = text.substr(name.size());
        if (rest.substr(0, 4) != " in " && rest.substr(0, 4) != " on ") continue;
        const Id outer = world_[id].parent;
        if (outer == kNone) continue;
        for (const std::string& place : Of(outer))
          if (rest.substr(4) == place) return true;
      }
    }
    return false;
  }

  std::vector<Id> Meant(std::string_view text) {
    std::vector<Id> found;
    for (const Id id : ids_)
      if (Means(text, id)) found.push_back(id);
    return found;
  }

 private:
  const World& world_;
  const std::vector<Id>& ids_;
  std::vector<std::vector<std::string>> names_;
};

}  // namespace

std::vector<Id> Visible(const World& world, bool all_ends) {
  const Id room = world.room();
  std::vector<Id> found;
  found.push_back(room);
  if (all_ends && world[room].end != kNone) found.insert(found.end(), {world[room].end, world[room].end + 1});
  for (const Id door : world.DoorsOf(room)) {
    found.push_back(door);
    found.push_back(world[door].leads);
  }
  for (const Id inner : world[room].inside)
    if (inner != world.agent) Collect(world, inner, all_ends, &found);
  Collect(world, world.agent, all_ends, &found);
  return found;
}

std::vector<Action> Parse(const World& world, std::string_view command, bool teleports, bool wires) {
  const std::string text = Plain(command);
  std::vector<Action> found;
  const std::vector<Id> visible = Visible(world, true);
  Lexicon lexicon(world, visible);
  const auto add = [&](Verb verb, Id first, Id second) {
    for (const Action& action : found)
      if (action.verb == verb && action.first == first && action.second == second) return;
    found.push_back({verb, first, second});
  };
  for (const Template& row : kTemplates) {
    if (!wires && (row.verb == Verb::kConnect || row.verb == Verb::kDisconnect)) continue;
    const std::string_view begin = row.begin;
    if (row.middle != nullptr && *row.middle == '\0') {
      if (text == begin) add(row.verb, kNone, kNone);
      continue;
    }
    if (text.compare(0, begin.size(), begin) != 0) continue;
    const std::string_view rest = std::string_view(text).substr(begin.size());
    if (row.verb == Verb::kTeleport) {
      for (const Id room : world[world.universe].inside)
        if (teleports && world[room].kind == Kind::kRoom && rest == world[room].name) add(row.verb, room, kNone);
    } else if (row.middle == nullptr) {
      for (const Id id : lexicon.Meant(rest)) add(row.verb, id, kNone);
    } else {
      const std::string_view middle = row.middle;
      for (std::size_t at = rest.find(middle); at != std::string_view::npos; at = rest.find(middle, at + 1)) {
        const std::vector<Id> firsts = lexicon.Meant(rest.substr(0, at));
        if (firsts.empty()) continue;
        const std::vector<Id> seconds = lexicon.Meant(rest.substr(at + middle.size()));
        for (const Id first : firsts)
          for (const Id second : seconds) add(row.verb, first, second);
      }
    }
  }
  return found;
}

std::string Words(const World& world, const Action& action) {
  const Template* row = nullptr;
  for (const Template& candidate : kTemplates)
    if (candidate.verb == action.verb) {
      row = &candidate;
      break;
    }
  const auto thing = [&](Id id) {
    const bool door = world[id].kind == Kind::kDoor || world[id].kind == Kind::kDrain;
    return ActionName(world, id) + (door ? "" : " " + Where(world, id));
  };
  if (action.verb == Verb::kGo) return "go " + thing(action.first);
  std::string text = row->begin;
  if (action.first != kNone) text += thing(action.first);
  if (action.second != kNone) text += row->middle + thing(action.second);
  return text;
}

}  // namespace embodied_mem::scienceworld

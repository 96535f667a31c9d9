#include "envs/scienceworld/say.h"

#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {
namespace {

std::string List(const World& world, const std::vector<Id>& ids) {
  if (ids.empty()) return "nothing";
  std::string text;
  for (const Id id : ids) text += (text.empty() ? "" : ", ") + Describe(world, id);
  return text;
}

std::string Lines(const World& world, const std::vector<Id>& ids, bool close = false) {
  std::string text;
  for (const Id id : ids) text += "\t" + Describe(world, id, close) + "\n";
  return text;
}

// What is looked at closely lists its contents in lines, but for what is made to rest on and what cools.
bool ListsInLines(const Thing& thing) {
  if (thing.kind == Kind::kCooler || thing.kind == Kind::kStove || thing.kind == Kind::kSink) return false;
  return thing.name != "bed" && thing.name != "mattress" && thing.name != "couch" && thing.name != "chair";
}

// A thing's name with what fire did to it.
std::string Burnt(const Thing& thing, const std::string& name) {
  if (thing.burning) return name + " (on fire)";
  return thing.burned ? "burned " + name : name;
}

bool CarriesPollen(const World& world, const Thing& thing) {
  for (const Id inner : thing.inside)
    if (world[inner].kind == Kind::kPollen) return true;
  return false;
}

std::string Inside(const World& world, const Thing& thing, Id id, const char* preposition, bool close) {
  const std::string begin = std::string(preposition) + " the " + Burnt(thing, thing.name) + " is: ";
  if (!close || !ListsInLines(thing)) return begin + List(world, world.Sorted(id)) + ".";
  const std::vector<Id> inside = world.Sorted(id);
  return begin + "\n" + (inside.empty() ? "\tnothing" : Lines(world, inside));
}

std::string LinkName(const World& world, Id link) {
  if (link == kNone) return "nothing";
  const Thing& other = world[link / 2];
  return std::string("a ") + TerminalName(other.kind, link % 2) + " on " + other.name;
}

std::string Links(const World& world, const Thing& thing) {
  std::string text;
  for (int k = 0; k < 2; ++k)
    text += std::string("its ") + TerminalName(thing.kind, k) + " is connected to: " + LinkName(world, thing.link[k]) +
            ". ";
  return text;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Whether a name of this begin, without an article, can begin with the letter.
bool MayBegin(std::string_view part, char letter) {
  if (part.empty() || part[0] == ' ') return true;
  const char first = Lower(part[0]);
  if (first == letter) return true;
  if (first != 'a' && first != 't') return false;
  const std::string_view word = part.substr(0, part.find(' '));
  return word.size() <= 3;  // an article, perhaps
}

}  // namespace

const char* StageName(const Thing& thing) { return StagesOf(thing)[static_cast<std::size_t>(thing.stage)].name; }

std::string DisplayName(const World& world, Id id) {
  const Thing& thing = world[id];
  if (thing.kind != Kind::kAnimal) return Burnt(thing, thing.name + (thing.kind == Kind::kPlane ? thing.words : ""));
  const std::string stage = StageName(thing);
  const std::string what = thing.words.empty() ? thing.name : thing.words;
  if (stage == "egg") return what + " egg";
  if (stage == "caterpillar" || stage == "tadpole") return stage;
  if (stage == "pupa") return what + " pupa";
  return stage + " " + what;
}

std::string Describe(const World& world, Id id, bool close) {
  const Thing& thing = world[id];
  const std::string a = "a " + Burnt(thing, thing.name);
  switch (thing.kind) {
    case Kind::kRoom: return close ? DescribeRoom(world, id) : a;
    case Kind::kAgent: return "the agent";
    case Kind::kGround: return "the ground";
    case Kind::kSubstance: return "a substance called " + Burnt(thing, thing.words.empty() ? thing.name : thing.words);
    case Kind::kLiquid:
    case Kind::kSoil: return Burnt(thing, thing.name);
    case Kind::kPollen: return Burnt(thing, close ? thing.words : thing.name);
    case Kind::kFlower:
      if (close && !thing.inside.empty()) {
        std::string text = "a " + Burnt(thing, thing.words.empty() ? thing.name : thing.words);
        return text + ". Inside the " + thing.name + " is: " + List(world, world.Sorted(id));
      }
      [[fallthrough]];
    case Kind::kFood:
    case Kind::kTool:
    case Kind::kPillow:
    case Kind::kPlain:
    case Kind::kLighter: {
      const std::string looks = Burnt(thing, thing.words.empty() ? thing.name : thing.words);
      const bool vowel = thing.kind != Kind::kPlain && std::string("aeiou").find(looks[0]) != std::string::npos;
      return (vowel ? "an " : "a ") + looks;
    }
    case Kind::kTerminal:
      if (!ShowsEnds(world[thing.other].kind)) return "<ERROR: Could not retrieve object description>";
      return a + ". it is connected to: " + LinkName(world, world[thing.other].link[thing.ticks]) + ".";
    case Kind::kPicture: return close && !thing.words.empty() ? a + thing.words : a;
    case Kind::kDrawer: {
      if (!close) return a;
      if (!thing.open) return a + ".  The " + thing.name + " is closed.";
      return a + ". " + Inside(world, thing, id, "In", true);
    }
    case Kind::kBook: return "A " + Burnt(thing, thing.name) + thing.words;
    case Kind::kThermometer:
      return a + ", currently reading a temperature of " + std::to_string(std::lround(thing.material.celsius)) +
             " degrees celsius";
    case Kind::kStopwatch:
      return a + ", which is " + (thing.active ? "activated" : "deactivated") + ". " +
             (close ? "The time reads " + std::to_string(thing.ticks) + " ticks." : "");
    case Kind::kWire: return close ? a + Links(world, thing) : a;
    case Kind::kBattery: return close ? a + ". " + Links(world, thing) : a;
    case Kind::kSwitch:
    case Kind::kBulb:
      return a + ", which is " + (thing.active ? "on" : "off") + (close ? ". " + Links(world, thing) : "");
    case Kind::kAnimal:
      return "a " + DisplayName(world, id) +
             (close && CarriesPollen(world, thing) ? ", that is covered in pollen" : "");
    case Kind::kPlant: {
      if (thing.stage == kDeadPlant && thing.stage_ticks > 0) return "a dead " + thing.life;
      std::string text = "a " + thing.life + " in the " + StageName(thing) + " stage";
      if (!thing.words.empty() && thing.stage != kDeadPlant) text += " with a " + thing.words;
      if (thing.sick) text += " (that looks unwell)";
      if (!thing.inside.empty()) text += ". On the " + thing.life + " you see: " + List(world, world.Sorted(id)) + ". ";
      return text;
    }
    case Kind::kFurniture: return a + ". " + Inside(world, thing, id, "On", close);
    case Kind::kBox:
    case Kind::kPot:
    case Kind::kInventory:
    case Kind::kJar: return a + " (containing " + List(world, world.Sorted(id)) + ")";
    case Kind::kCupboard:
    case Kind::kCooler:
    case Kind::kHeater:
    case Kind::kHive: {
      std::string text = a;
      if (thing.kind == Kind::kHeater) text += std::string(", which is turned ") + (thing.active ? "on" : "off");
      if (thing.kind == Kind::kCooler && !thing.active) text += ", which is turned off";
      text += ". The " + Burnt(thing, thing.name) + " door is " + (thing.open ? "open" : "closed") + ". ";
      return thing.open ? text + Inside(world, thing, id, "In", close) : text;
    }
    case Kind::kStove:
    case Kind::kSink: {
      const char* where = thing.kind == Kind::kStove ? "On" : "In";
      std::string text =
          a + ", which is turned " + (thing.active ? "on" : "off") + ". " + Inside(world, thing, id, where, close);
      const Id drain = thing.drain;
      if (close && drain != kNone)
        text += std::string(" The drain is ") + (world[drain].open ? "open" : "closed") + ".";
      return text;
    }
    case Kind::kToilet: {
      std::string text =
          a + (thing.active || thing.ticks > 0 ? ", which is flushing" : "") + ". In the " + thing.name + " is: ";
      std::vector<Id> all = world.Sorted(id);
      const Id drain = thing.drain;
      std::size_t at = 0;
      while (at < all.size() && world[all[at]].name < std::string("drain")) ++at;
      if (drain != kNone) all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), drain);
      return text + List(world, all) + ".";
    }
    case Kind::kPlane: {
      std::string text = "an inclined plane" + thing.words;
      const char* before = ", with:  a ";
      for (const Id inner : thing.inside) {
        if (world[inner].kind == Kind::kTerminal) continue;
        const double percent = world[inner].slid * thing.slope;
        text += before + DisplayName(world, inner);
        before = ", a ";
        if (percent >= 100) text += " at the bottom of the plane";
        else if (percent < 1) text += " at the top of the plane";
        else text += " approximately " + std::to_string(std::lround(percent)) + "% down the plane";
      }
      return text;
    }
    case Kind::kDoor:
      return "A door to the " + world[thing.leads].name + " (that is " + (thing.open ? "open" : "closed") + ")";
    case Kind::kDrain: return std::string("A drain, which is ") + (thing.open ? "open" : "closed");
    case Kind::kUniverse: break;
  }
  return a;
}

std::string DescribeInside(const World& world, Id id) {
  const Thing& thing = world[id];
  if (thing.kind == Kind::kDoor || thing.kind == Kind::kDrain || (!thing.container && !thing.shut))
    return "It's not clear how to look inside of that.";
  if (!thing.open) return "The " + thing.name + " isn't open, so you can't see inside.";
  if (thing.inside.empty() && thing.bare) return "There is nothing in the " + thing.name + ".";
  const std::vector<Id> inside = world.Sorted(id);
  std::string text = "Inside the " + thing.name + " is: \n";
  for (const Id inner : inside) text += "\t" + Describe(world, inner) + "\n";
  if (inside.empty()) text += "\tnothing\n";
  std::string doors;
  for (const Id door : thing.kind == Kind::kRoom ? world.DoorsOf(id) : std::vector<Id>{})
    doors += (doors.empty() ? "" : ", ") + Describe(world, door);
  const Id drain = thing.kind == Kind::kRoom ? kNone : thing.drain;
  if (drain != kNone) doors = Describe(world, drain);
  if (!doors.empty()) text += std::string(inside.empty() ? "" : "\n") + " You also see: " + doors + ".";
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string DescribeRoom(const World& world, Id room) {
  const Thing& thing = world[room];
  std::string text = thing.name == "outside" ? "This outside location is called the outside. Here you see: \n"
                                             : "This room is called the " + thing.name + ". In it, you see: \n";
  for (const Id inner : world.Sorted(room)) text += "\t" + Describe(world, inner) + "\n";
  text += "You also see:\n";
  for (const Id door : world.SortedDoorsOf(room)) text += "\t" + Describe(world, door) + "\n";
  return text;
}

std::string DescribeInventory(const World& world) {
  const std::string lines = Lines(world, world.Sorted(world.inventory), true);
  return "In your inventory, you see:\n" + (lines.empty() ? "\tnothing\n" : lines);
}

std::vector<std::string> Names(const World& world, Id id, char begin) {
  const Thing& thing = world[id];
  std::vector<std::string> names;
  using Parts = std::initializer_list<std::string_view>;
  const auto wanted = [&](Parts parts) { return begin == 0 || MayBegin(*parts.begin(), begin); };
  const auto add = [&](Parts parts) {
    if (!wanted(parts)) return;
    std::string& name = names.emplace_back();
    for (const std::string_view part : parts) name += part;
  };
  for (const std::string& name : thing.called) add({name});
  add({thing.name});
  if (thing.burning || thing.burned) add({Burnt(thing, thing.name)});
  if (thing.kind == Kind::kDoor) {
    const std::string& to = world[thing.leads].name;
    add({"door to ", to});
    add({to, " door"});
    add({"door to the ", to});
  } else if (thing.kind == Kind::kDrain) {
    add({world[thing.parent].name, " drain"});
  } else if (thing.kind == Kind::kTerminal) {
    const Thing& owner = world[thing.other];
    const std::string_view deleted = owner.gone ? " (deleted)" : "";
    add({"terminal"});
    add({thing.name, " on ", owner.name, deleted});
    add({owner.name, deleted, " ", thing.name});
  } else if (thing.kind == Kind::kAnimal) {
    const std::string display = DisplayName(world, id), stage = StageName(thing);
    add({"living thing"});
    add({"organism"});
    add({display});
    if (thing.life == "bee") return names;
    add({stage, " ", thing.name});
    add({stage, " ", display});
  } else if (thing.kind == Kind::kPlant) {
    const std::string_view stage = StageName(thing);
    const auto both = [&](Parts parts) {
      add(parts);
      if (!thing.sick || !wanted({"sick "})) return;
      std::string& name = names.emplace_back("sick ");
      for (const std::string_view part : parts) name += part;
    };
    both({"living thing"});
    both({"organism"});
    both({stage, " plant"});
    std::vector<std::string> kinds = {thing.life};
    if (thing.name != thing.life) kinds.push_back(thing.name);
    if (!thing.words.empty() && thing.stage != kDeadPlant) kinds.push_back(thing.words + " " + thing.life);
    for (const std::string& kind : kinds) {
      both({kind});
      both({stage, " ", kind});
      both({kind, " in the ", stage, " stage"});
    }
    if (thing.life == "pea plant") both({"pea"});
  }
  std::string inside;
  for (const std::string& name : thing.holding) {
    if (!wanted({name})) continue;
    if (name != thing.name) add({name});
    std::string_view last;
    for (const Id inner : inside.empty() ? world.Sorted(id) : std::vector<Id>{}) {
      if (world[inner].name != last) inside += (inside.empty() ? "" : " and ") + world[inner].name;
      last = world[inner].name;  // each name once
    }
    if (inside.empty()) inside = "nothing";
    add({name, " containing ", inside});
  }
  return names;
}

std::string DoorName(const World& world, Id id) {
  if (world[id].kind == Kind::kDrain) return "door between " + world[world[id].parent].name + " and sewer";
  std::string from = world[world[id].parent].name, to = world[world[id].leads].name;
  // The other face of a door to the hallway, to outside or into the bathroom gives the name.
  if (from == "hallway" || from == "outside" || to == "bathroom") std::swap(from, to);
  return "door between " + from + " and " + to;
}

std::string ActionName(const World& world, Id id) {
  const bool door = world[id].kind == Kind::kDoor || world[id].kind == Kind::kDrain;
  return door ? DoorName(world, id) : DisplayName(world, id);
}

std::string Where(const World& world, Id id) {
  std::string text;
  for (Id outer = world[id].parent; outer != kNone && (text.empty() || outer != world.universe);
       outer = world[outer].parent)
    text += (text.empty() ? "in " : ", in ") + world[outer].name;
  return "(" + text + ")";
}

}  // namespace embodied_mem::scienceworld

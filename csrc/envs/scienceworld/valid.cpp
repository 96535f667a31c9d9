#include "envs/scienceworld/valid.h"

#include <algorithm>
#include <functional>
#include <map>

#include "envs/scienceworld/say.h"
#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Of each of these its first name, by letters, that no other has; else its first. The original draws one then.
std::vector<std::string> Unique(const std::vector<std::vector<std::string>>& names) {
  std::map<std::string_view, int> count;
  for (const std::vector<std::string>& own : names)
    for (const std::string& name : own) ++count[name];
  std::vector<std::string> chosen;
  for (const std::vector<std::string>& own : names) {
    const auto alone = [&](const std::string& name) { return count[name] == 1; };
    const auto found = std::find_if(own.begin(), own.end(), alone);
    chosen.push_back(found == own.end() ? own[0] : *found);
  }
  return chosen;
}

// What the list is about, in its order: the room, its doors, what is in it, with `closed` what is shut away and carried.
std::vector<Id> Listed(const World& world, bool closed) {
  std::vector<Id> found = {world.room()};
  for (const Id door : world.DoorsOf(world.room())) found.insert(found.end(), {door, world[door].leads});
  const std::function<void(Id)> collect = [&](Id id) {
    const Thing& thing = world[id];
    found.push_back(id);
    if (ShowsEnds(thing.kind)) found.insert(found.end(), {thing.end, thing.end + 1});
    if (!closed && !thing.open) return;
    if (closed && thing.drain != kNone && thing.kind != Kind::kRoom)
      found.insert(found.end(), {thing.drain, world.sewer});
    for (const Id inner : thing.inside)
      if (world[inner].kind != Kind::kTerminal) collect(inner);
  };
  for (const Id inner : world[world.room()].inside)
    if (world[inner].kind != Kind::kTerminal) collect(inner);
  std::vector<Id> once;
  for (const Id id : found)
    if (std::find(once.begin(), once.end(), id) == once.end()) once.push_back(id);
  return once;
}

}  // namespace

std::vector<std::vector<std::string>> ListedNames(const World& world, bool closed) {
  std::vector<std::vector<std::string>> names;
  for (const Id id : Listed(world, closed)) {
    std::vector<std::string> own = Names(world, id);
    if (world[id].kind == Kind::kDoor) own.pop_back();  // "door to the ..."
    const bool placed = world[id].kind != Kind::kDoor && world[id].kind != Kind::kDrain && world[id].parent != kNone;
    const std::size_t bare = own.size();
    for (const std::string& outer : placed ? Names(world, world[id].parent) : std::vector<std::string>{})
      for (std::size_t i = 0; i < bare; ++i)
        for (const char* where : {" in ", " on "}) own.push_back(own[i] + where + outer);
    for (std::string& name : own)
      for (char& c : name) c = Lower(c);
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    names.push_back(std::move(own));
  }
  return names;
}

std::string ObjectNames(const World& world) {
  std::vector<std::string> names = Unique(ListedNames(world, false));
  std::sort(names.begin(), names.end());
  std::string text = "Possible object references: ";
  for (const std::string& name : names) text += "\n\t" + name;
  return text;
}

std::vector<std::string> ValidCommands(const World& world, bool teleports, bool wires) {
  const std::vector<Id> ids = Listed(world, true);
  const std::vector<std::string> names = Unique(ListedNames(world, true));
  std::vector<std::string> found;
  using Test = std::function<bool(const Thing&)>;
  const auto one = [&](const std::string& begin, const Test& fits) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (fits(world[ids[i]])) found.push_back(begin + names[i]);
  };
  const auto two = [&](const std::string& begin, const std::string& middle, bool itself, const Test& first,
                       const Test& second) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t k = 0; first(world[ids[i]]) && k < ids.size(); ++k)
        if ((itself || i != k) && second(world[ids[k]])) found.push_back(begin + names[i] + middle + names[k]);
  };
  const auto fluid = [](const Thing& t) { return t.has_material && t.material.state != "solid"; };
  const auto holds_liquid = [&](const Thing& t) {
    return std::any_of(t.inside.begin(), t.inside.end(),
                       [&](Id id) { return world[id].has_material && world[id].material.state == "liquid"; });
  };
  const auto idle = [](const Thing& t) { return t.bare && t.inside.empty() && !ShowsEnds(t.kind); };
  const Test any = [](const Thing&) { return true; };
  const Test whole = [](const Thing& t) { return t.kind != Kind::kTerminal; };
  const Test holds = [](const Thing& t) { return t.container && t.open; };
  const Test movable = [&](const Thing& t) { return t.movable && !fluid(t); };
  const Test tool = [](const Thing& t) {
    return t.kind == Kind::kThermometer || t.kind == Kind::kLighter || t.kind == Kind::kTool;
  };
  one("open ", [](const Thing& t) { return t.closable && !t.open; });
  one("close ", [](const Thing& t) { return t.closable && t.open; });
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Id door = world[ids[i]].kind == Kind::kRoom && i > 0 ? ids[i - 1] : ids[i];
    if (world[door].kind == Kind::kDoor && world[door].open) found.push_back("go to " + names[i]);
  }
  found.push_back("look around");
  one("look at ", any);
  one("look in ", holds);
  one("activate ", [](const Thing& t) { return t.activable && !t.active; });
  one("deactivate ", [](const Thing& t) { return t.activable && t.active; });
  one("eat ", [](const Thing& t) { return t.edible; });
  two("move ", " to ", false, movable, holds);
  two(
      "pour ", " into ", true,
      [&](const Thing& t) {
        if (t.container) return t.open && t.movable && !idle(t);
        return t.movable && world[t.parent].movable && (!t.has_material || t.material.state == "liquid");
      },
      holds);
  two(
      "dunk ", " into ", false, [&](const Thing& t) { return t.container && holds_liquid(t); },
      [&](const Thing& t) { return holds(t) && t.movable; });
  one("focus on ", any);
  found.push_back("reset task");
  two("use ", " on ", true, tool, any);
  one("read ", [](const Thing& t) { return !t.reads.empty(); });
  one("flush ", [](const Thing& t) { return t.kind == Kind::kToilet && !t.active; });
  if (wires) {
    std::vector<bool> joins;
    for (const Id id : ids) {
      const bool end = world[id].kind == Kind::kTerminal;
      const Thing& thing = world[end ? world[id].other : world.Face(id)];
      joins.push_back(end ? thing.link[world[id].ticks] == kNone
                          : !ShowsEnds(thing.kind) && (thing.link[0] == kNone || thing.link[1] == kNone));
    }
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t k = 0; joins[i] && k < ids.size(); ++k)
        if (i != k && joins[k]) found.push_back("connect " + names[i] + " to " + names[k]);
    one("disconnect ", whole);
  }
  found.insert(found.end(), {"wait1", "wait", "inventory"});
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (movable(world[ids[i]]) && world[ids[i]].parent != world.inventory) found.push_back("pick up " + names[i]);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (movable(world[ids[i]]) && world[ids[i]].parent == world.inventory) found.push_back("put down " + names[i]);
  one("mix ", [&](const Thing& t) { return whole(t) && !idle(t); });
  found.push_back("task");
  for (const Id room : world[world.universe].inside)
    if (teleports && world[room].kind == Kind::kRoom) found.push_back("teleport to " + world[room].name);
  return found;
}

}  // namespace embodied_mem::scienceworld

#include "envs/scienceworld/valid.h"

#include <algorithm>
#include <functional>
#include <map>

#include "envs/scienceworld/parse.h"
#include "envs/scienceworld/say.h"

namespace embodied_mem::scienceworld {
namespace {

// Names of visible things that nothing else visible has; else the first that a thing has.
std::vector<std::string> Unique(const World& world, const std::vector<Id>& ids) {
  std::vector<std::vector<std::string>> names;
  std::map<std::string, int> count;
  for (const Id id : ids) {
    std::vector<std::string> own = Names(world, id);
    if (world[id].kind == Kind::kTerminal) own = {world[world[id].parent].name + " " + world[id].name};
    if (const Id outer = world[id].parent; outer != kNone && world[id].kind != Kind::kDoor)
      for (const std::string& name : Names(world, id)) own.push_back(name + " in " + world[outer].name);
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (const std::string& name : own) ++count[name];
    names.push_back(std::move(own));
  }
  std::vector<std::string> chosen;
  for (const std::vector<std::string>& own : names) {
    const std::string* best = nullptr;
    for (const std::string& name : own)
      if (count[name] == 1 && (best == nullptr || name.size() < best->size())) best = &name;
    chosen.push_back(best == nullptr ? own[0] : *best);
  }
  return chosen;
}

}  // namespace

std::vector<std::string> ValidCommands(const World& world, bool teleports, bool wires) {
  const std::vector<Id> ids = Visible(world);
  const std::vector<std::string> names = Unique(world, ids);
  std::vector<std::string> found = {"look around", "inventory", "task", "reset task", "wait", "wait1"};
  using Test = std::function<bool(const Thing&)>;
  const auto one = [&](const std::string& begin, const Test& fits) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (fits(world[ids[i]])) found.push_back(begin + names[i]);
  };
  const auto two = [&](const std::string& begin, const std::string& middle, const Test& first, const Test& second) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t k = 0; first(world[ids[i]]) && k < ids.size(); ++k)
        if (i != k && second(world[ids[k]])) found.push_back(begin + names[i] + middle + names[k]);
  };
  const auto fluid = [](const Thing& t) { return t.has_material && t.material.state != "solid"; };
  const auto holds_liquid = [&](const Thing& t) {
    return std::any_of(t.inside.begin(), t.inside.end(),
                       [&](Id id) { return world[id].has_material && world[id].material.state == "liquid"; });
  };
  const Test any = [](const Thing&) { return true; };
  const Test holds = [](const Thing& t) { return t.container && t.open; };
  const Test movable = [&](const Thing& t) { return t.movable && !fluid(t); };
  const Test tool = [](const Thing& t) {
    return t.kind == Kind::kThermometer || t.kind == Kind::kLighter || t.kind == Kind::kTool;
  };
  one("open ", [](const Thing& t) { return t.closable && !t.open; });
  one("close ", [](const Thing& t) { return t.closable && t.open; });
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (world[ids[i]].kind == Kind::kDoor || (world[ids[i]].kind == Kind::kRoom && ids[i] != world.room()))
      found.push_back("go to " + names[i]);
  for (const Id room : world[world.universe].inside)
    if (teleports && world[room].kind == Kind::kRoom) found.push_back("teleport to " + world[room].name);
  one("look at ", any);
  one("look in ", holds);
  one("activate ", [](const Thing& t) { return t.activable && !t.active; });
  one("deactivate ", [](const Thing& t) { return t.activable && t.active; });
  one("eat ", [](const Thing& t) { return t.edible; });
  one("read ", [](const Thing& t) { return !t.reads.empty(); });
  one("flush ", [](const Thing& t) { return t.kind == Kind::kToilet; });
  one("pick up ", movable);
  one("focus on ", any);
  one("mix ", [](const Thing& t) { return t.kind != Kind::kTerminal; });
  if (wires) one("disconnect ", any);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (world[ids[i]].parent == world.inventory) found.push_back("put down " + names[i]);
  two("move ", " to ", movable, holds);
  two(
      "pour ", " into ",
      [&](const Thing& t) {
        return (holds(t) && t.movable) || (fluid(t) && t.parent != kNone && world[t.parent].movable);
      },
      holds);
  two("dunk ", " into ", [&](const Thing& t) { return holds(t) && holds_liquid(t); }, holds);
  two("use ", " on ", tool, any);
  if (wires) two("connect ", " to ", any, any);
  return found;
}

}  // namespace embodied_mem::scienceworld

#include "envs/scienceworld/act.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "envs/scienceworld/circuits.h"
#include "envs/scienceworld/mix.h"
#include "envs/scienceworld/say.h"
#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {
namespace {

bool Is(const Thing& thing, const char* state) { return thing.has_material && thing.material.state == state; }

// Why `id` cannot go into `to`, or nothing.
std::string Refusal(const World& world, Id id, Id to) {
  if (to == id) return "You can't move something into itself.";
  if (!world[to].container && !world[to].shut) return "That can't be moved there.";
  if (!world[to].open) return "That can't be moved there, because the " + world[to].name + " isn't open.";
  return {};
}

std::string MoveTo(World* world, Id id, Id to) {
  Thing& thing = (*world)[id];
  if (!thing.movable) return "The " + thing.name + " is not moveable.";
  if (to == id) return "You can't move something into itself.";
  if (Is(thing, "gas")) return "You can't pick up a gas directly.";
  if (Is(thing, "liquid"))
    return "You can't pick up a liquid directly. Try pouring it from one container to another, or dunking empty "
           "containers into containers filled with the liquid.";
  const std::string refusal = Refusal(*world, id, to);
  if (!refusal.empty()) return refusal;
  const bool connected = world->Disconnect(id);
  world->Move(id, to);
  return (connected ? "(disconnecting " + (*world)[id].name + ")" : "") + "You move the " + (*world)[id].name +
         " to the " + (*world)[to].name + ".";
}

std::string Pour(World* world, Id id, Id to) {
  const Thing& thing = (*world)[id];
  if (!thing.movable) return "The " + thing.name + " is not moveable.";
  const Thing& target = (*world)[to];
  const char* const no_container = "That can't be moved there, because it's not a container.";
  if (thing.container) {
    if (to == id) return "You can't move something into itself.";
    if (!thing.open) return "The " + thing.name + " can't be poured out, because it's not open.";
    if (!target.container && !target.shut) return no_container;
    const std::string refusal = Refusal(*world, id, to);
    if (!refusal.empty()) return refusal;
    if (thing.inside.empty() && thing.bare) return "The " + thing.name + " is empty, so there's nothing to pour.";
    const std::vector<Id> inside = thing.inside;
    std::string cut;
    for (const Id inner : inside) {
      if (world->Disconnect(inner)) cut += "(disconnecting " + (*world)[inner].name + ")\n";
      if (inner != to) world->Move(inner, to);
    }
    return cut + "You pour the contents of the " + (*world)[id].name + " into the " + (*world)[to].name + ".";
  }
  const Id outer = thing.parent;
  if (outer != kNone && !(*world)[outer].movable)
    return "The " + (*world)[outer].name + " the " + thing.name + " is in is not movable.";
  if (Is(thing, "solid")) return "I'm not sure how to pour a solid.";
  if (Is(thing, "gas")) return "You can't pour a gas directly.";
  if (to != id && !target.container && !target.shut) return no_container;
  const std::string refusal = Refusal(*world, id, to);
  if (!refusal.empty()) return refusal;
  const bool connected = world->Disconnect(id);
  world->Move(id, to);
  return (connected ? "(disconnecting " + (*world)[id].name + ")\n" : "") + "You pour the " + (*world)[id].name +
         " into the " + (*world)[to].name + ".";
}

std::string Dunk(World* world, Id id, Id to) {
  const Thing& thing = (*world)[id];
  if (to == id) return "You can't dunk something into itself.";
  if (!thing.movable) return "The " + thing.name + " is not moveable.";
  if (!thing.container && !thing.shut) return "The " + thing.name + " is not a container.";
  if (!thing.open) return "The " + thing.name + " is not open.";
  std::vector<Id> liquids;
  for (const Id inner : (*world)[to].inside)
    if ((*world)[inner].has_material && (*world)[inner].material.state == "liquid") liquids.push_back(inner);
  if (liquids.empty()) return "The " + (*world)[to].name + " does not contain any liquids to dunk into.";
  std::string names, cut;
  for (const Id liquid : liquids) {
    if (world->Disconnect(liquid)) cut += "(disconnecting " + (*world)[liquid].name + ")";
    names += (names.empty() ? "" : ", ") + (*world)[liquid].name;
    world->Move(liquid, id);
  }
  return cut + "You dunk the " + (*world)[id].name + " in the " + (*world)[to].name + ", moving the liquids (" + names +
         ") to the " + (*world)[id].name + ".";
}

std::string Chop(World* world, Id id) {
  Thing& thing = (*world)[id];
  if (thing.device) {
    thing.broken = true;
    return "You hit the " + thing.name + " with the axe, causing it to break.";
  }
  if (thing.kind != Kind::kPlant) return {};
  const std::string name = thing.name;
  const Id outer = thing.parent;
  const std::vector<Id> inside = thing.inside;
  for (const Id inner : inside) world->Move(inner, outer);
  world->Remove(id);
  Thing wood = Substance("wood", Kind::kSubstance, "brown", "solid");
  wood.material.melts = 10000, wood.material.boils = 10001;
  world->Add(std::move(wood), outer);
  return "You chop down the " + name + ", creating wood.";
}

std::string Dig(World* world, Id ground) {
  const Id outer = (*world)[ground].parent;
  Thing hole;
  hole.kind = Kind::kBox;
  hole.name = hole.born_name = "hole";
  hole.container = hole.open = hole.movable = true;
  world->Add(std::move(hole), outer);
  Thing soil = Substance("soil", Kind::kSoil, "brown", "solid");
  soil.material.melts = 10000, soil.material.boils = 10001;
  world->Add(std::move(soil), outer);
  return "You dig a hole in the ground, and place the soil nearby.";
}

constexpr double kLighterAdds = 10;

std::string Use(World* world, Id id, Id on) {
  const Thing& tool = (*world)[id];
  Thing& thing = (*world)[on];
  if (tool.kind == Kind::kThermometer) {
    if (!thing.has_material) return "That thing doesn't appear to have a temperature that the thermometer can read.";
    return "the thermometer measures a temperature of " + std::to_string(std::lround(thing.material.celsius)) +
           " degrees celsius";
  }
  if (tool.kind == Kind::kLighter) {
    if (!thing.has_material) return "It's not clear how to use those items together.";
    if (thing.burning) return "The " + thing.name + " is already on fire.";
    if (BurnsAt(thing) > 0) {
      thing.burning = true;
      return "The " + thing.name + " catches fire.";
    }
    thing.material.celsius += kLighterAdds;
    return "The lighter heats up the " + thing.name + " a small amount.";
  }
  if (tool.kind == Kind::kTool) {
    std::string done;
    if (tool.name == "axe") done = Chop(world, on);
    else if (thing.kind == Kind::kGround) done = Dig(world, on);
    return done.empty() ? "I'm not sure how to use those two things together." : done;
  }
  return "I'm not sure how to use the " + tool.name + ".";
}

std::string Go(World* world, Id id) {
  const Thing& thing = (*world)[id];
  if (thing.kind == Kind::kDoor) {
    if (!thing.open) return "The door is not open.";
    world->Move(world->agent, thing.leads);
    return "You move through the door to the " + (*world)[world->room()].name + ".";
  }
  for (const Id door : world->DoorsOf(world->room())) {
    if ((*world)[door].leads != id) continue;
    if (!(*world)[door].open) return "The door is not open.";
    world->Move(world->agent, id);
    return "You move to the " + thing.name + ".";
  }
  if (thing.kind == Kind::kRoom) return "It's not clear how to get there from here.";
  return "Its not clear how to go to/through a " + thing.name + ".";
}

std::string SetOpen(World* world, Id id, bool open) {
  Thing& thing = (*world)[id];
  if (!thing.closable) return "The " + thing.name + (open ? " is not openable." : " is not closeable.");
  const char* word = open ? "open" : "closed";
  if (thing.open == open) return "The " + thing.name + " is already " + word + ".";
  thing.open = open;
  if (thing.other != kNone) (*world)[thing.other].open = open;
  return "The " + thing.name + " is now " + word + ".";
}

std::string SetActive(World* world, Id id, bool active) {
  Thing& thing = (*world)[id];
  if (!thing.activable) return "The " + thing.name + " is not something that can be activated.";
  if (thing.broken) return "The " + thing.name + " appears broken, and can't be activated or deactivated.";
  const char* word = active ? "activated" : "deactivated";
  if (thing.active == active) return "The " + thing.name + " is already " + word + ".";
  thing.active = active;
  if (active && thing.kind == Kind::kStopwatch) thing.ticks = 0;
  return "The " + thing.name + " is now " + word + ".";
}

}  // namespace

std::string Act(World* world, const Action& action) {
  const Id id = action.first;
  switch (action.verb) {
    case Verb::kActivate: return SetActive(world, id, true);
    case Verb::kDeactivate: return SetActive(world, id, false);
    case Verb::kOpen: return SetOpen(world, id, true);
    case Verb::kClose: return SetOpen(world, id, false);
    case Verb::kConnect: return Connect(world, id, action.second);
    case Verb::kDisconnect: return Disconnect(world, id);
    case Verb::kDunk: return Dunk(world, id, action.second);
    case Verb::kEat:
      if (!(*world)[id].edible) return "The " + (*world)[id].name + " is not edible.";
      world->Move(id, kNone);  // what it was connected to stays so
      (*world)[id].gone = true;
      return "The " + (*world)[id].name + " was delicious.";
    case Verb::kFlush:
      if ((*world)[id].kind != Kind::kToilet) return "It's not clear how to flush that.";
      if ((*world)[id].active) return "That is already flushing.";
      (*world)[id].active = true;
      return "The toilet is now flushing.";
    case Verb::kFocus: world->focus = id; return "You focus on the " + ActionName(*world, id) + ".";
    case Verb::kGo: return Go(world, id);
    case Verb::kTeleport: world->Move(world->agent, id); return "You teleport to the " + (*world)[id].name + ".";
    case Verb::kLookAt: {
      std::string text = Describe(*world, id, true);
      while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
      return text;
    }
    case Verb::kLookIn: return DescribeInside(*world, id);
    case Verb::kMix: return (*world)[id].kind == Kind::kTerminal ? std::string() : Mix(world, id);
    case Verb::kMove: return MoveTo(world, id, action.second);
    case Verb::kPickUp: return MoveTo(world, id, world->inventory);
    case Verb::kPutDown: return MoveTo(world, id, world->room());
    case Verb::kPour: return Pour(world, id, action.second);
    case Verb::kRead:
      if ((*world)[id].reads.empty()) return "It's not clear how to read that.";
      return "The book reads:\n" + (*world)[id].reads;
    case Verb::kUse: return Use(world, id, action.second);
    default: return {};
  }
}

}  // namespace embodied_mem::scienceworld

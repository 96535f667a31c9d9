// From the words of a command to an action on things.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

enum class Verb : std::uint8_t {
  kActivate,
  kClose,
  kConnect,
  kDeactivate,
  kDisconnect,
  kDunk,
  kEat,
  kFlush,
  kFocus,
  kGo,
  kInventory,
  kLookAround,
  kLookAt,
  kLookIn,
  kMix,
  kMove,
  kOpen,
  kPickUp,
  kPour,
  kPutDown,
  kRead,
  kReset,
  kTask,
  kTeleport,
  kUse,
  kWait,
  kWait1,
};

struct Action {
  Verb verb;
  Id first = kNone, second = kNone;
};

// Everything that the agent can name now; terminals of what is no device are in it if asked for and made.
std::vector<Id> Visible(const World& world, bool all_ends = false);
// What a command can mean; empty where it means nothing.
std::vector<Action> Parse(const World& world, std::string_view command, bool teleports, bool wires);
// The forms of commands, as the original lists them.
std::string Help(bool teleports, bool wires);
// The words of one meaning, as the question lists it.
std::string Words(const World& world, const Action& action);

}  // namespace embodied_mem::scienceworld

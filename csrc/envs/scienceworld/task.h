// One variation of a task: its house as the original first has it, what is asked, what counts on the way.
//
// A Task is immutable and shared by any number of envs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "envs/scienceworld/trials.h"
#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

enum class Asked : std::uint8_t { kLiving, kNonLiving, kPlant, kAnimal, kThing };

struct Task {
  std::string id, goal;
  World world;
  std::vector<Asked> focus;                       // what is to be focused on, in this order
  std::vector<Id> targets;                        // for Asked::kThing
  Id box = kNone;                                 // where the focused thing belongs at last
  Id place = kNone;                               // a room that counts on the way
  bool pick = false, door = false, move = false;  // what else counts on the way
  Trials trials;
  bool teleports = false, wires = true;  // whether that can be done
};

// Throws GameFileError for text that is none; `name` stands in the message.
std::shared_ptr<const Task> ReadTask(std::string_view json, const std::string& name);

}  // namespace embodied_mem::scienceworld

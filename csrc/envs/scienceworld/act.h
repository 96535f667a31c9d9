// What actions do and say.
#pragma once

#include <string>

#include "envs/scienceworld/parse.h"
#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

// The answer where the original does not understand.
constexpr const char* kUnknownAction =
    "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible object referents. ";

// Plays an action that is neither a look around, the inventory, the task nor a wait; those take no tick or several.
std::string Act(World* world, const Action& action);

}  // namespace embodied_mem::scienceworld

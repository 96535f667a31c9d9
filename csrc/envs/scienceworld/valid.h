// The commands that can be done now.
#pragma once

#include <string>
#include <vector>

#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

// The names of each thing that the list is about, in order, by letters.
std::vector<std::vector<std::string>> ListedNames(const World& world, bool closed = true);
// The answer to "objects": a name of each thing in view that is not carried.
std::string ObjectNames(const World& world);
// Each names its things by the first name that nothing else has, where there is such a name.
std::vector<std::string> ValidCommands(const World& world, bool teleports, bool wires);

}  // namespace embodied_mem::scienceworld

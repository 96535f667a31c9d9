// The commands that can be done now.
#pragma once

#include <string>
#include <vector>

#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

// Each names its things so that it means one action, where there is such a name.
std::vector<std::string> ValidCommands(const World& world, bool teleports, bool wires);

}  // namespace embodied_mem::scienceworld

// What comes of mixing the contents of a container.
#pragma once

#include <string>

#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

// Mixes; says nothing where the original does not understand.
std::string Mix(World* world, Id id);

}  // namespace embodied_mem::scienceworld

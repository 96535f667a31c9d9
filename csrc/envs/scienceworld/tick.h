// What goes on by itself.
#pragma once

#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

void Tick(World* world);

}  // namespace embodied_mem::scienceworld

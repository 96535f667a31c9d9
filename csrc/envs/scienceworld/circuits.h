// Terminals, and what is connected to what.
#pragma once

#include <string>
#include <string_view>

#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

std::string Connect(World* world, Id first, Id second);
std::string Disconnect(World* world, Id id);
// Makes terminals of all that is in view, where a command can mean them.
void ShowEnds(World* world, std::string_view command);

}  // namespace embodied_mem::scienceworld

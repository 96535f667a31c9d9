// The goal of a problem: one of ALFWorld's six shapes, in any order of conditions and with any variable names.
#pragma once

#include <cstdint>

#include "envs/alfworld/game.h"
#include "envs/alfworld/sexpr.h"

namespace embodied_mem::alfworld {

// Fills game->goal, goal_objects, goal_lamps and goal_receptacles from the part (:goal ...); all else of the game
// must be there already. Throws TextError for an empty goal, an unknown one, and one that no play can reach.
void ReadGoal(const SExpr& tree, std::uint32_t part, Game* game);

}  // namespace embodied_mem::alfworld

// What counts on the way to telling planes apart: a block slides down each, and a watch is started, stopped and read.
//
// Only what is in view counts.
#pragma once

#include <cstdint>
#include <vector>

#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

struct Trials {
  Id planes[2] = {kNone, kNone}, block = kNone;
  std::vector<Id> watches;

  static constexpr int kSteps = 8;  // four of each plane
  bool any() const { return block != kNone; }
};

// How far the trials of an episode are. A value; a step counts once all before it were ever made.
class Tried {
 public:
  void Count(const World& world, const Trials& trials, Id looked_at);
  void Reset();  // what was ever made stays so, and a watch that was read counts at once
  int counted() const;

 private:
  std::uint8_t counted_ = 0, ever_ = 0;
};

}  // namespace embodied_mem::scienceworld

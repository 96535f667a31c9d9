#include "envs/scienceworld/trials.h"

#include <bitset>

namespace embodied_mem::scienceworld {

void Tried::Count(const World& world, const Trials& trials, Id looked_at) {
  if (!trials.any()) return;
  const bool runs = world[trials.watch].active;
  for (int k = 0; k < 2; ++k) {
    const bool now[4] = {world[trials.block].parent == trials.planes[k], runs, !runs, looked_at == trials.watch};
    for (int step = 0; step < 4; ++step) {
      const int bit = 4 * k + step;
      if (!now[step] || (step > 0 && (ever_ >> (bit - 1) & 1) == 0)) continue;
      counted_ = static_cast<std::uint8_t>(counted_ | 1U << bit);
      ever_ = static_cast<std::uint8_t>(ever_ | 1U << bit);
    }
  }
}

int Tried::counted() const { return static_cast<int>(std::bitset<8>(counted_).count()); }

}  // namespace embodied_mem::scienceworld

#include "envs/scienceworld/trials.h"

#include <bitset>

namespace embodied_mem::scienceworld {

void Tried::Count(const World& world, const Trials& trials, Id looked_at) {
  if (!trials.any()) return;
  bool runs = false, stands = false, read = false;
  for (const Id watch : trials.watches) {
    read = read || watch == looked_at;
    if (!world.InView(watch)) continue;
    (world[watch].active ? runs : stands) = true;
  }
  const Id under = world.InView(trials.block) ? world[trials.block].parent : kNone;
  for (int k = 0; k < 2; ++k) {
    const bool now[4] = {under == trials.planes[k], runs, stands, read};
    for (int step = 0; step < 4; ++step) {
      const int bit = 4 * k + step;
      if (!now[step] || (step > 0 && (ever_ >> (bit - 1) & 1) == 0)) continue;
      counted_ = static_cast<std::uint8_t>(counted_ | 1U << bit);
      ever_ = static_cast<std::uint8_t>(ever_ | 1U << bit);
    }
  }
}

void Tried::Reset() { counted_ = ever_ & 0x88; }

int Tried::counted() const { return static_cast<int>(std::bitset<8>(counted_).count()); }

}  // namespace embodied_mem::scienceworld

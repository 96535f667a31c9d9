// Stages of lives, poles of devices: what the original shows of each.
#pragma once

#include <cstddef>

#include "envs/scienceworld/world.h"

namespace embodied_mem::scienceworld {

struct Stage {
  const char* name;
  int ticks;  // until the next one; 0: for good
};
constexpr int kDeadPlant = 5;
// The row of stages that a living thing goes through.
const Stage* StagesOf(const Thing& thing);
// The number of stages in it.
int NumStages(const Thing& thing);

// The temperature at which a substance catches fire; 0: never.
double BurnsAt(const Thing& thing);
// A substance that comes to be in play, at 10 degrees.
Thing Substance(const char* name, Kind kind, const char* color, const char* state);

inline bool HasPoles(Kind kind) { return kind == Kind::kBattery || kind == Kind::kBulb || kind == Kind::kSwitch; }
// Whether its terminals are listed among what can be done; everything else has some too.
inline bool ShowsEnds(Kind kind) { return HasPoles(kind) || kind == Kind::kWire; }
inline const char* TerminalName(Kind kind, int terminal) {
  if (HasPoles(kind)) return terminal == 0 ? "anode" : "cathode";
  return terminal == 0 ? "terminal 1" : "terminal 2";
}

}  // namespace embodied_mem::scienceworld

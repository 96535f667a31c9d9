// What things are in or on; for the files of Env alone.
#pragma once

#include "envs/eb_alfred/env.h"

namespace embodied_mem::eb_alfred {

template <typename F>
bool Env::AnyHolder(std::size_t t, const F& f) const {
  const State& state = things_[t];
  if (!state.exists || state.cut) return false;
  if (state.parent < kMaxThings) return f(state.parent);
  if (state.parent != kStart) return false;
  for (const std::uint16_t holder : task_->things[t].in) {
    if (f(holder)) return true;
  }
  return false;
}

}  // namespace embodied_mem::eb_alfred

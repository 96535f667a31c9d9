// The scoring of PARTNR's simulator: when each proposition was true, and how much of that counts.
//
// Three words hold all history that the score needs, so that copying an env copies it.
#pragma once

#include <cstdint>

#include "envs/memento/task.h"

namespace embodied_mem::memento {

struct Score {
  std::uint64_t last = 0;   // true in the last state
  std::uint64_t ever = 0;   // true in some state
  std::uint64_t valid = 0;  // were first true strictly after all their ancestors

  // Takes in one state: `holds(i)` says whether proposition i is true in it, and is asked only where the
  // dependencies on earlier states allow it to count.
  template <typename Holds>
  void Tick(const Task& task, Holds holds) {
    std::uint64_t now = 0;
    for (std::size_t i = 0; i < task.propositions.size(); ++i) {
      if (Allowed(task, i) && holds(i)) now |= 1ULL << i;
    }
    for (std::size_t i = 0; i < task.propositions.size(); ++i) {
      const std::uint64_t bit = 1ULL << i;
      if ((now & ~ever & bit) != 0 && (task.propositions[i].ancestors & ~ever) == 0) valid |= bit;
    }
    ever |= now;
    last = now;
  }

  int num_satisfied(const Task& task) const { return __builtin_popcountll(ever & valid & (last | ~task.terminal)); }
  double PercentComplete(const Task& task) const {
    return static_cast<double>(num_satisfied(task)) / static_cast<double>(task.propositions.size());
  }
  bool Success(const Task& task) const {
    return static_cast<std::size_t>(num_satisfied(task)) == task.propositions.size();
  }

 private:
  bool Allowed(const Task& task, std::size_t i) const {
    for (const Dependency& d : task.dependencies) {
      if (d.proposition != i) continue;
      const std::uint64_t held = d.depends_on & (d.after ? ever : last);
      if (d.all ? held != d.depends_on : held == 0) return false;
    }
    return true;
  }
};

}  // namespace embodied_mem::memento

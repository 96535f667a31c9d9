// Several household envs stepped together on a thread pool; the contract is that of envs/vector_env.h.
//
// No autoreset: an env repeats its last observation after its end until it is reset. Results do not depend on the
// number of threads. One call at a time; the caller keeps the actions alive during Step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/thread_pool.h"
#include "envs/partnr/env.h"

namespace embodied_mem::partnr {

class HouseholdVectorEnv {
 public:
  // `max_steps` 0 means no limit.
  HouseholdVectorEnv(std::size_t num_envs, std::size_t max_steps, std::size_t num_threads);

  std::size_t num_envs() const { return envs_.size(); }
  std::size_t num_threads() const { return pool_.num_threads(); }

  // Starts tasks[k] in env indices[k] with chance from seeds[k]. Throws InvalidInputError for an index out of range or
  // given twice, or lists of different lengths; nothing has changed then.
  void Reset(const std::vector<std::size_t>& indices, const std::vector<std::shared_ptr<const Task>>& tasks,
             const std::vector<std::uint64_t>& seeds);
  // Plays one action in every env; recorded[i], where given and not null, overrides what the world would decide.
  // Throws InvalidInputError for another number of either, or before each env was reset once; nothing has moved then.
  void Step(const std::vector<std::string_view>& actions, const std::vector<const Recorded*>& recorded = {});

  // The env, to read it. Throws InvalidInputError for an index out of range.
  const Env& env(std::size_t i) const;
  // Puts env i where `snapshot` is, its task and step count included.
  void Restore(std::size_t i, const Env& snapshot);
  // Whether env i has used up max_steps without having ended.
  bool truncated(std::size_t i) const;

 private:
  void Check(std::size_t i) const;

  std::vector<Env> envs_;
  std::size_t max_steps_;
  ThreadPool pool_;
};

}  // namespace embodied_mem::partnr

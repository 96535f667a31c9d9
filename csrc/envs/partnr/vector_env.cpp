#include "envs/partnr/vector_env.h"

#include <string>

#include "core/error.h"

namespace embodied_mem::partnr {

HouseholdVectorEnv::HouseholdVectorEnv(std::size_t num_envs, std::size_t max_steps, std::size_t num_threads)
    : envs_(num_envs), max_steps_(max_steps), pool_(num_threads) {
  if (num_envs < 1) throw InvalidInputError("num_envs: expected at least 1, got 0");
}

void HouseholdVectorEnv::Check(std::size_t i) const {
  if (i >= envs_.size())
    throw InvalidInputError("env index: expected 0 to " + std::to_string(envs_.size() - 1) + ", got " +
        std::to_string(i));
}

void HouseholdVectorEnv::Reset(const std::vector<std::size_t>& indices,
    const std::vector<std::shared_ptr<const Task>>& tasks,
                               const std::vector<std::uint64_t>& seeds) {
  if (indices.size() != tasks.size() || indices.size() != seeds.size()) {
    throw InvalidInputError("expected one task and one seed per env to reset, got " + std::to_string(tasks.size()) +
        " tasks and " +
                            std::to_string(seeds.size()) + " seeds for " + std::to_string(indices.size()) + " envs");
  }
  std::vector<bool> named(envs_.size(), false);
  for (std::size_t k = 0; k < indices.size(); ++k) {
    Check(indices[k]);
    if (named[indices[k]]) throw InvalidInputError("env " + std::to_string(indices[k]) + " is to be reset twice");
    if (tasks[k] == nullptr) throw InvalidInputError("no task for env " + std::to_string(indices[k]));
    named[indices[k]] = true;
  }
  pool_.Run(indices.size(), [&](std::size_t k) { envs_[indices[k]].Reset(tasks[k], seeds[k]); });
}

void HouseholdVectorEnv::Step(const std::vector<std::string_view>& actions,
    const std::vector<const Recorded*>& recorded) {
  if (actions.size() != envs_.size()) {
    throw InvalidInputError("actions: expected one action for each of " + std::to_string(envs_.size()) + " envs, got " +
                            std::to_string(actions.size()));
  }
  if (!recorded.empty() && recorded.size() != envs_.size()) {
    throw InvalidInputError("recorded: expected one entry for each of " + std::to_string(envs_.size()) + " envs, got " +
                            std::to_string(recorded.size()));
  }
  for (std::size_t i = 0; i < envs_.size(); ++i) {
    if (envs_[i].task() == nullptr)
      throw InvalidInputError("env " + std::to_string(i) + " was never reset; call reset() before step()");
  }
  pool_.Run(envs_.size(), [&](std::size_t i) { envs_[i].Step(actions[i], recorded.empty() ? nullptr : recorded[i]); });
}

const Env& HouseholdVectorEnv::env(std::size_t i) const {
  Check(i);
  return envs_[i];
}

void HouseholdVectorEnv::Restore(std::size_t i, const Env& snapshot) {
  Check(i);
  if (snapshot.task() == nullptr) throw InvalidInputError("the snapshot is of an env that was never reset");
  envs_[i] = snapshot;
}

bool HouseholdVectorEnv::truncated(std::size_t i) const {
  return max_steps_ != 0 && !envs_[i].ended() && static_cast<std::size_t>(envs_[i].num_steps()) >= max_steps_;
}

}  // namespace embodied_mem::partnr

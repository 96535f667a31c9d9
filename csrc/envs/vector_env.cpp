#include "envs/vector_env.h"

#include <string>

#include "core/error.h"

namespace embodied_mem {

VectorEnv::VectorEnv(std::size_t num_envs, std::size_t max_steps, std::size_t num_threads, alfworld::Wording wording)
    : envs_(num_envs), admissible_(num_envs), progress_(num_envs), max_steps_(max_steps), wording_(wording),
      pool_(num_threads) {
  if (num_envs < 1) throw InvalidInputError("num_envs: expected at least 1, got 0");
}

void VectorEnv::Check(std::size_t i) const {
  if (i >= envs_.size()) {
    throw InvalidInputError("env index: expected 0 to " + std::to_string(envs_.size() - 1) + ", got " + std::to_string(i));
  }
}

void VectorEnv::Refresh(std::size_t i) {
  envs_[i].Admissible(&admissible_[i]);
  progress_[i] = envs_[i].Progress();
}

void VectorEnv::Reset(const std::vector<std::size_t>& indices,
                      const std::vector<std::shared_ptr<const alfworld::Game>>& games) {
  if (indices.size() != games.size()) {
    throw InvalidInputError("expected one game per env to reset, got " + std::to_string(games.size()) + " games for " +
                            std::to_string(indices.size()) + " envs");
  }
  std::vector<bool> named(envs_.size(), false);
  for (std::size_t k = 0; k < indices.size(); ++k) {
    Check(indices[k]);
    if (named[indices[k]]) throw InvalidInputError("env " + std::to_string(indices[k]) + " is to be reset twice");
    if (games[k] == nullptr) throw InvalidInputError("no game for env " + std::to_string(indices[k]));
    named[indices[k]] = true;
  }
  pool_.Run(indices.size(), [&](std::size_t k) {
    envs_[indices[k]].Reset(games[k], wording_);
    Refresh(indices[k]);
  });
}

void VectorEnv::Step(const std::vector<std::string_view>& commands) {
  if (commands.size() != envs_.size()) {
    throw InvalidInputError("actions: expected one command for each of " + std::to_string(envs_.size()) + " envs, got " +
                            std::to_string(commands.size()));
  }
  for (std::size_t i = 0; i < envs_.size(); ++i) {
    if (envs_[i].game() == nullptr)
      throw InvalidInputError("env " + std::to_string(i) + " was never reset; call reset() before step()");
  }
  pool_.Run(envs_.size(), [&](std::size_t i) {
    envs_[i].Step(commands[i]);
    Refresh(i);
  });
}

const alfworld::Env& VectorEnv::env(std::size_t i) const {
  Check(i);
  return envs_[i];
}

void VectorEnv::Restore(std::size_t i, const alfworld::Env& snapshot) {
  Check(i);
  if (snapshot.game() == nullptr) throw InvalidInputError("the snapshot is of an env that was never reset");
  if (snapshot.wording() != wording_) throw InvalidInputError("the snapshot speaks another grammar than these envs");
  envs_[i] = snapshot;
  Refresh(i);
}

bool VectorEnv::truncated(std::size_t i) const {
  return max_steps_ != 0 && !envs_[i].won() && static_cast<std::size_t>(envs_[i].num_steps()) >= max_steps_;
}

}  // namespace embodied_mem

// Several ALFWorld envs stepped together on a thread pool.
//
// No autoreset: an env goes on answering after its end until it is reset. Results do not depend on the number of
// threads. One call at a time; the caller keeps the commands alive during Step.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "core/thread_pool.h"
#include "envs/alfworld/env.h"

namespace embodied_mem {

class VectorEnv {
 public:
  // `max_steps` 0 means no limit.
  VectorEnv(std::size_t num_envs, std::size_t max_steps, std::size_t num_threads, alfworld::Wording wording);

  std::size_t num_envs() const { return envs_.size(); }
  std::size_t max_steps() const { return max_steps_; }
  std::size_t num_threads() const { return pool_.num_threads(); }

  // Starts games[k] in env indices[k]. Throws InvalidInputError for an index out of range or given twice.
  void Reset(const std::vector<std::size_t>& indices, const std::vector<std::shared_ptr<const alfworld::Game>>& games);
  // Plays one command in every env. Throws InvalidInputError for another number of commands, or before each env
  // was reset once; nothing has moved then.
  void Step(const std::vector<std::string_view>& commands);

  // The env, to read it. Throws InvalidInputError for an index out of range.
  const alfworld::Env& env(std::size_t i) const;
  // Puts env i where `snapshot` is, its game and step count included.
  void Restore(std::size_t i, const alfworld::Env& snapshot);
  // Admissible commands of env i, computed with its last step.
  const std::vector<alfworld::Command>& admissible(std::size_t i) const { return admissible_[i]; }
  double progress(std::size_t i) const { return progress_[i]; }
  // Whether env i has used up max_steps without having won.
  bool truncated(std::size_t i) const;

 private:
  void Check(std::size_t i) const;
  void Refresh(std::size_t i);

  std::vector<alfworld::Env> envs_;
  std::vector<std::vector<alfworld::Command>> admissible_;
  std::vector<double> progress_;
  std::size_t max_steps_;
  alfworld::Wording wording_;
  ThreadPool pool_;
};

}  // namespace embodied_mem

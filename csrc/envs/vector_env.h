// Several envs of one world stepped together on a thread pool.
//
// No autoreset: what an env answers after its end is its world's business, until it is reset. Results do not depend on
// the number of threads. One call at a time; the caller keeps the actions alive during Step.
//
// An `Env` is a value (copying it is its snapshot) with
//   Task, Options     what it plays, shared and immutable; how it plays, compared with ==
//   Extra             what one step answers beside text and score; it and the progress are asked for on the pool
//   kOptionsName      what the options are called in errors
//   void Reset(std::shared_ptr<const Task>, const Options&, std::uint64_t seed)
//   void Step(std::string_view action)
//   void FillExtra(Extra*) const
//   task() (null before the first Reset), options(), observation(), ended(), won(), progress(), num_steps()
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/thread_pool.h"

namespace embodied_mem {

template <typename Env>
class VectorEnv {
 public:
  using Task = typename Env::Task;
  using Options = typename Env::Options;
  using Extra = typename Env::Extra;

  static constexpr std::size_t kMaxEnvs = 65536;

  // `max_steps` 0 means no limit. Throws InvalidInputError for a number of envs or threads out of range.
  VectorEnv(std::size_t num_envs, std::size_t max_steps, std::size_t num_threads, Options options = {})
      : slots_(Checked(num_envs)), max_steps_(max_steps), options_(options), pool_(num_threads) {}

  std::size_t num_envs() const { return slots_.size(); }
  std::size_t num_threads() const { return pool_.num_threads(); }
  const Options& options() const { return options_; }

  // Starts tasks[k] in env indices[k] with chance from seeds[k]. Throws InvalidInputError for an index out of range or
  // given twice, no task, lists of different lengths, or a task that its world refuses; nothing has changed then.
  void Reset(const std::vector<std::size_t>& indices, const std::vector<std::shared_ptr<const Task>>& tasks,
             const std::vector<std::uint64_t>& seeds) {
    if (indices.size() != tasks.size() || indices.size() != seeds.size()) {
      throw InvalidInputError("expected one task and one seed per env to reset, got " + std::to_string(tasks.size()) +
                              " tasks and " + std::to_string(seeds.size()) + " seeds for " +
                              std::to_string(indices.size()) + " envs");
    }
    std::vector<bool> named(slots_.size(), false);
    for (std::size_t k = 0; k < indices.size(); ++k) {
      Check(indices[k]);
      if (named[indices[k]]) throw InvalidInputError("env " + std::to_string(indices[k]) + " is to be reset twice");
      if (tasks[k] == nullptr) throw InvalidInputError("no task for env " + std::to_string(indices[k]));
      named[indices[k]] = true;
    }
    std::vector<Slot> fresh(indices.size());  // aside, since a world may refuse a task
    pool_.Run(indices.size(), [&](std::size_t k) {
      fresh[k].env.Reset(tasks[k], options_, seeds[k]);
      fresh[k].Refresh();
    });
    for (std::size_t k = 0; k < indices.size(); ++k) slots_[indices[k]] = std::move(fresh[k]);
  }

  // Plays one action in every env. Throws InvalidInputError for another number of actions, or before each env was
  // reset once; nothing has moved then.
  void Step(const std::vector<std::string_view>& actions) {
    Step(actions, [&](Env& env, std::size_t i) { env.Step(actions[i]); });
  }
  // The same where `play(env, i)` plays actions[i], e.g. with what a recording says of it.
  template <typename Play>
  void Step(const std::vector<std::string_view>& actions, const Play& play) {
    if (actions.size() != slots_.size()) {
      throw InvalidInputError("actions: expected one action for each of " + std::to_string(slots_.size()) +
                              " envs, got " + std::to_string(actions.size()));
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].env.task() == nullptr)
        throw InvalidInputError("env " + std::to_string(i) + " was never reset; call reset() before step()");
    }
    pool_.Run(slots_.size(), [&](std::size_t i) {
      play(slots_[i].env, i);
      slots_[i].Refresh();
    });
  }

  // The env, to read it. Throws InvalidInputError for an index out of range.
  const Env& env(std::size_t i) const {
    Check(i);
    return slots_[i].env;
  }
  // What FillExtra and progress() said of env i after its last step or reset; 0 before.
  const Extra& extra(std::size_t i) const { return slots_[i].extra; }
  double progress(std::size_t i) const { return slots_[i].progress; }
  bool started(std::size_t i) const { return slots_[i].env.task() != nullptr; }
  // Whether env i has used up max_steps without having ended.
  bool truncated(std::size_t i) const {
    const Env& env = slots_[i].env;
    return max_steps_ != 0 && !env.ended() && static_cast<std::size_t>(env.num_steps()) >= max_steps_;
  }

  // Puts env i where `snapshot` is, its task and step count included. Throws InvalidInputError for one that was never
  // reset or has other options.
  void Restore(std::size_t i, const Env& snapshot) {
    Check(i);
    if (snapshot.task() == nullptr) throw InvalidInputError("the snapshot is of an env that was never reset");
    if (!(snapshot.options() == options_))
      throw InvalidInputError(std::string("the snapshot has another ") + Env::kOptionsName + " than these envs");
    slots_[i].env = snapshot;
    slots_[i].Refresh();
  }

 private:
  struct Slot {
    Env env;
    Extra extra{};
    double progress = 0;

    void Refresh() {
      env.FillExtra(&extra);
      progress = env.progress();
    }
  };

  static std::size_t Checked(std::size_t num_envs) {
    if (num_envs < 1 || num_envs > kMaxEnvs)
      throw InvalidInputError("num_envs: expected 1 to " + std::to_string(kMaxEnvs) + ", got " +
                              std::to_string(num_envs));
    return num_envs;
  }

  void Check(std::size_t i) const {
    if (i >= slots_.size()) {
      throw InvalidInputError("env index: expected 0 to " + std::to_string(slots_.size() - 1) + ", got " +
                              std::to_string(i));
    }
  }

  std::vector<Slot> slots_;
  std::size_t max_steps_;
  Options options_;
  ThreadPool pool_;
};

}  // namespace embodied_mem

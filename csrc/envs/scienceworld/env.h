// Plays a Task of ScienceWorld: a command in, the original's answer and its score out.
//
// An Env is a value: copying it is its snapshot. It owns its state and shares the Task. One thread at a time may use
// one Env; different Envs are independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "envs/scienceworld/parse.h"
#include "envs/scienceworld/task.h"

namespace embodied_mem::scienceworld {

class Env {
 public:
  using Task = scienceworld::Task;
  struct Options {
    bool operator==(const Options&) const { return true; }
  };
  struct Extra {};
  static constexpr const char* kOptionsName = "setting";

  void Reset(std::shared_ptr<const Task> task, const Options& options, std::uint64_t seed);
  // Plays one command, whatever it says. After the end nothing changes any more.
  void Step(std::string_view action);

  const std::shared_ptr<const Task>& task() const { return task_; }
  const Options& options() const { return options_; }
  const std::string& observation() const { return observation_; }
  bool ended() const { return completed_ || failed_; }
  bool won() const { return completed_; }
  double progress() const { return failed_ ? 0 : score() / 100.0; }
  int num_steps() const { return num_steps_; }
  int score() const;  // -100 to 100
  // What is asked in order, and how much of it is done.
  int num_subgoals() const;
  int subgoals_met() const { return static_cast<int>(focused_) + (completed_ && task_->box != kNone ? 1 : 0); }
  void FillExtra(Extra*) const {}

  // Answers that take no step.
  std::string Look() const;
  std::string Inventory() const;
  const World& world() const { return world_; }
  std::size_t num_meanings() const { return question_.size(); }  // of an ambiguous command that is asked about

 private:
  void Play(const Action& action);
  void Pass(int ticks);
  void Refuse();  // to a command that the original fails to interpret
  void CountGoals();
  bool Fits(Asked asked, Id target) const;

  std::shared_ptr<const Task> task_;
  Options options_;
  World world_;
  std::vector<Action> question_;  // what an ambiguous command can mean
  std::string observation_;
  std::size_t focused_ = 0;  // of task_->focus
  Id start_ = kNone;         // the room to leave; none as long as nobody was elsewhere than where the task is
  Id start_focus_ = kNone;
  Tried tried_;
  Id looked_at_ = kNone;  // by this step
  int num_steps_ = 0;
  bool picked_ = false, near_door_ = false, moved_ = false, there_ = false, completed_ = false, failed_ = false;
};

}  // namespace embodied_mem::scienceworld

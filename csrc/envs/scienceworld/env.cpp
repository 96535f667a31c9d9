#include "envs/scienceworld/env.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "envs/scienceworld/act.h"
#include "envs/scienceworld/circuits.h"
#include "envs/scienceworld/say.h"
#include "envs/scienceworld/tick.h"
#include "envs/scienceworld/valid.h"

namespace embodied_mem::scienceworld {
namespace {

constexpr const char* kUnknown = "No known action matches that input.";
constexpr const char* kQuestion =
    "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):\n";

void Trim(std::string* text) {
  while (!text->empty() && (text->back() == ' ' || text->back() == '\n')) text->pop_back();
}

void OneSpace(std::string* text) {
  for (std::size_t at = 0; (at = text->find("  ", at)) != std::string::npos;) text->erase(at, 1);
}

// Whether a command is this one word, which leaves a question open.
bool IsWord(std::string_view action, std::string_view word) {
  const std::size_t begin = action.find_first_not_of(" \t\n"), end = action.find_last_not_of(" \t\n");
  return begin != std::string_view::npos && end - begin + 1 == word.size() &&
         std::equal(word.begin(), word.end(), action.begin() + static_cast<std::ptrdiff_t>(begin),
                    [](char of_word, char c) { return of_word == (c | 0x20); });
}

}  // namespace

void Env::Reset(std::shared_ptr<const Task> task, const Options& options, std::uint64_t /*seed*/) {
  if (task == nullptr) throw InvalidInputError("expected a task, got none");
  *this = Env();
  task_ = std::move(task);
  options_ = options;
  world_ = task_->world;
  CountGoals();
  observation_ = Look();
  Trim(&observation_);
  observation_ += "\n\n" + task_->goal;
}

std::string Env::Look() const { return DescribeRoom(world_, world_.room()); }
std::string Env::Inventory() const { return DescribeInventory(world_); }

void Env::Step(std::string_view action) {
  if (task_ == nullptr) throw InternalError("scienceworld::Env::Step before the first Reset");
  if (ended()) return;
  ++num_steps_;
  const bool asks_task = IsWord(action, "task");
  if (asks_task || IsWord(action, "help") || IsWord(action, "objects")) {
    observation_ = IsWord(action, "objects") ? ObjectNames(world_)
                   : asks_task               ? "Task description:\n" + task_->goal
                                             : Help(task_->teleports, task_->wires);
    return;
  }
  if (!question_.empty()) {
    const std::vector<Action> question = std::exchange(question_, {});
    looked_at_ = kNone;
    if (action.substr(0, 1) == "+") action.remove_prefix(1);
    std::size_t number = 0;
    const bool digits = !action.empty() && action.size() < 6 &&
                        std::all_of(action.begin(), action.end(), [](char c) { return c >= '0' && c <= '9'; });
    for (const char c : action) number = number * 10 + static_cast<std::size_t>(c - '0');
    if (digits && number < question.size()) Play(question[number]);
    else Refuse();
    return;
  }
  ShowEnds(&world_, action);
  std::vector<Action> meant = Parse(world_, action, task_->teleports, task_->wires);
  if (meant.empty()) {
    observation_ = kUnknown;
  } else if (meant.size() == 1) {
    Play(meant[0]);
  } else {
    observation_ = kQuestion;
    for (std::size_t k = 0; k < meant.size(); ++k)
      observation_ += std::to_string(k) + ":\t" + Words(world_, meant[k]) + "\n";
    question_ = std::move(meant);
  }
}

void Env::Refuse() {
  observation_ = kUnknownAction;
  Pass(1);
}

void Env::Pass(int ticks) {
  for (int k = 0; k < ticks; ++k) {
    Tick(&world_);
    CountGoals();
  }
}

void Env::Play(const Action& action) {
  int ticks = 1;
  looked_at_ = action.verb == Verb::kLookAt ? action.first : kNone;
  switch (action.verb) {
    case Verb::kLookAround:
      observation_ = Look();
      ticks = 0;
      break;
    case Verb::kInventory:
      observation_ = Inventory();
      OneSpace(&observation_);
      ticks = 0;
      break;
    case Verb::kTask:
      observation_ = "Task Description:\n" + task_->goal;
      OneSpace(&observation_);
      ticks = 0;
      break;
    case Verb::kReset:
      observation_ = "You reset the goal progress and focus.";
      world_.focus = start_focus_ = kNone;
      focused_ = 0;
      picked_ = near_door_ = moved_ = there_ = false;
      tried_.Reset();
      break;
    case Verb::kWait:
      observation_ = "You decide to wait for 10 iterations.";
      ticks = 11;  // ten, and the one that every action takes
      break;
    case Verb::kWait1:
      observation_ = "You decide to wait for 1 iterations.";
      ticks = 2;
      break;
    default: observation_ = Act(&world_, action); OneSpace(&observation_);
  }
  if (observation_.empty()) return Refuse();
  Trim(&observation_);
  Pass(ticks);
}

bool Env::Fits(Asked asked, Id target) const {
  const Thing& thing = world_[world_.focus];
  const bool plant = thing.kind == Kind::kPlant, animal = thing.kind == Kind::kAnimal;
  switch (asked) {
    case Asked::kLiving: return plant || animal;
    case Asked::kNonLiving: return !plant && !animal && thing.movable;
    case Asked::kPlant: return plant;
    case Asked::kAnimal: return animal;
    case Asked::kThing: return world_.focus == target;
  }
  return false;
}

void Env::CountGoals() {
  if (completed_ || failed_) return;
  const Task& task = *task_;
  const bool leaves = task.box != kNone || world_.room() != task.place;
  if (!moved_ && start_ == kNone && leaves) start_ = world_.room();
  if (world_.room() != start_) moved_ = true;
  if (world_.room() == task.place) there_ = true;
  tried_.Count(world_, task.trials, looked_at_);
  if (task.door && !near_door_)
    for (const Id door : world_.DoorsOf(world_.room())) near_door_ = near_door_ || world_[door].open;
  if (focused_ < task.focus.size() && world_.focus != kNone && world_.focus != start_focus_) {
    if (Fits(task.focus[focused_], task.targets[focused_])) {
      ++focused_;
      start_focus_ = world_.focus;
    } else if (task.focus[focused_] != Asked::kNonLiving || world_[world_.focus].movable) {
      failed_ = true;
      return;
    }
  }
  if (focused_ == 0 && task.box != kNone) return;
  if (task.pick && world_.focus != kNone && world_.Within(world_.focus, world_.inventory)) picked_ = true;
  if (focused_ < task.focus.size()) return;
  completed_ = task.box == kNone || world_.Within(world_.focus, task.box);
}

int Env::num_subgoals() const {
  return task_ == nullptr ? 0 : static_cast<int>(task_->focus.size()) + (task_->box == kNone ? 0 : 1);
}

int Env::score() const {
  if (failed_) return -100;
  if (completed_ || task_ == nullptr) return completed_ ? 100 : 0;
  const Task& task = *task_;
  const int asked = num_subgoals();
  const int on_the_way = (task.pick ? 1 : 0) + (task.door ? 1 : 0) + (task.move ? 1 : 0) +
                         (task.place != kNone ? 1 : 0) + (task.trials.any() ? Trials::kSteps : 0);
  const int counted = (task.pick && picked_ ? 1 : 0) + (task.door && near_door_ ? 1 : 0) + (moved_ ? 1 : 0) +
                      (there_ ? 1 : 0) + tried_.counted();
  const double share = static_cast<double>(focused_) / asked +
                       (on_the_way == 0 ? 0.0 : static_cast<double>(counted) / on_the_way / (asked + 1));
  return static_cast<int>(std::lround(100 * std::min(share, 1.0)));
}

}  // namespace embodied_mem::scienceworld

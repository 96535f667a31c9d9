// Plays a Task of EB-ALFRED: one action of the list in, the original's feedback and what is in view out.
//
// An Env is a value: copying it is its snapshot. It owns its state and shares the Task. One thread at a time may use
// one Env; different Envs are independent. Nothing is left to chance.
//
// What the 3-D engine would decide follows from Options; docs/worlds/eb_alfred.md says what each choice changes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "envs/eb_alfred/scene.h"

namespace embodied_mem::eb_alfred {

// What is within reach after `find`: what shares the standing pose, or what is within 1.5 m and 45 degrees.
enum class Reach : std::uint8_t { kGroup, kGeometry };
// Which instance `pick up` and `slice` mean: the one just found if it fits, else the nearest in view, and `find` of a
// cut instance means one of its own slices; or the nearest.
enum class Instance : std::uint8_t { kFound, kNearest };

constexpr std::uint16_t kMaxInvalid = 60000;

struct Options {
  Reach reach = Reach::kGroup;
  Instance instance = Instance::kFound;
  bool needs_knife = false;        // whether `slice` needs a knife in the hand
  bool shows_view = true;          // false: the feedback line is all that comes back
  std::uint16_t max_invalid = 10;  // invalid actions that end the episode, 1 to kMaxInvalid
  bool ends_when_won = true;       // false: the episode goes on after the goal holds, and may lose it again

  bool operator==(const Options& other) const {
    return reach == other.reach && instance == other.instance && needs_knife == other.needs_knife &&
           shows_view == other.shows_view && max_invalid == other.max_invalid && ends_when_won == other.ends_when_won;
  }
};

class Env {
 public:
  // What VectorEnv (envs/vector_env.h) asks of a world.
  using Task = eb_alfred::Task;
  using Options = eb_alfred::Options;
  struct Extra {};
  static constexpr const char* kOptionsName = "setting";

  // Starts the task from its beginning.
  void Reset(std::shared_ptr<const Task> task, const Options& options, std::uint64_t seed = 0);
  // Plays an action, given by its text or its number. Anything else is invalid and costs no step. After the end nothing
  // changes and the last observation is repeated. Throws InternalError before the first Reset.
  void Step(std::string_view action);
  void FillExtra(Extra*) const {}

  const std::shared_ptr<const Task>& task() const { return task_; }
  const Options& options() const { return options_; }
  const std::string& observation() const { return observation_; }
  const std::string& feedback() const { return feedback_; }
  // Won, unless that ends nothing, or `max_invalid` actions were invalid.
  bool ended() const { return (won_ && options_.ends_when_won) || num_invalid_ >= options_.max_invalid; }
  bool won() const { return won_; }
  // Goal conditions met by their number; 0 for an episode that an unusable answer ended.
  double progress() const { return ended() && unusable_ ? 0 : points_ / num_points_; }
  int num_steps() const { return num_steps_; }
  int num_invalid() const { return num_invalid_; }
  bool valid() const { return valid_; }  // whether the last action was

  // Reading the state, for experts and checks. Indices must be in range.
  bool Visible(std::size_t t) const { return things_[t].visible; }
  bool Open(std::size_t t) const { return things_[t].open; }
  bool On(std::size_t t) const { return things_[t].on; }
  bool Clean(std::size_t t) const { return things_[t].clean; }
  bool Hot(std::size_t t) const { return things_[t].hot; }
  bool Cold(std::size_t t) const { return things_[t].cold; }
  bool Exists(std::size_t t) const { return things_[t].exists && !things_[t].cut; }
  // Whether thing t is in or on r, also by way of a movable receptacle.
  bool Inside(std::size_t t, std::size_t r) const;
  // Things that t is directly in or on.
  std::vector<std::uint16_t> Holders(std::size_t t) const;
  std::uint16_t held() const { return held_; }
  std::uint16_t found() const { return found_; }
  // The actions that would be valid now, tried one by one on a copy.
  std::vector<std::uint16_t> ValidActions() const;

 private:
  static constexpr std::uint16_t kStart = 0xFFFE;  // where the Task says
  static constexpr std::uint16_t kHand = 0xFFFD;

  struct State {
    Point position;
    std::uint16_t parent = kStart;  // a thing, kStart, kHand, or kNone: on the floor
    std::uint16_t group = kNone;    // of what lies on the floor
    bool exists = true, cut = false, visible = false;
    bool open = false, on = false, clean = false, hot = false, cold = false;
  };

  // Calls f(holder) for each thing that t is directly in or on, until one answers true.
  template <typename F>
  bool AnyHolder(std::size_t t, const F& f) const;
  bool InHand(std::size_t t) const;
  bool ClosedIn(std::size_t t) const;
  bool Carries(std::size_t r) const;
  bool Accessible(std::size_t t) const { return !task_->things[t].openable || things_[t].open; }

  // view.cpp
  void Look();
  bool PlaceInView(std::size_t t) const;
  bool ObjectInView(std::size_t t) const;
  bool Near(const Point& position) const;
  void GoTo(std::size_t t);
  void SayView();
  void SayThing(std::size_t t, const std::uint16_t* first, const std::uint16_t* next);

  // choose.cpp
  enum class Purpose : std::uint8_t { kFind, kPickUp, kToggle, kSlice, kOpen, kPutDown };
  bool Fits(std::size_t t, Purpose purpose) const;
  double Distance(std::size_t t) const;
  std::uint16_t Nearest(const Name& name, Purpose purpose, bool visible_only) const;
  std::uint16_t Nearest(const std::uint16_t* candidates, std::size_t count, Purpose purpose, bool visible_only) const;
  std::uint16_t Choose(const Name& name, Purpose purpose) const;

  // Each plays one kind of action and says what came of it.
  void Find(const Name& name, std::uint16_t name_index);
  void PickUp(const Name& name);
  void PutDown();
  bool TryPlace(std::uint16_t target);
  std::uint16_t PutDownTarget(const Name& name) const;
  void OpenOrClose(const Name& name, bool open);
  void Toggle(const Name& name, bool on);
  void Slice(const Name& name);
  void Drop();
  void Succeed();
  void Fail(std::string_view a, std::string_view b = {}, std::string_view c = {}, std::string_view d = {});
  void Score();

  std::shared_ptr<const Task> task_;
  Options options_;
  std::vector<State> things_;
  std::vector<std::uint8_t> num_put_down_;  // by name, at most 3
  std::string feedback_, observation_;
  Point agent_;
  float facing_x_ = 0, facing_z_ = 1;
  double points_ = 0, num_points_ = 1;
  int num_steps_ = 0, num_invalid_ = 0;
  std::uint16_t held_ = kNone;
  std::uint16_t found_ = kNone;        // the thing of the last find
  std::uint16_t current_ = kNone;      // the name of the current receptacle
  std::uint16_t focus_group_ = kNone;  // the group that the agent stands before
  std::uint16_t focus_basin_ = kNone;
  std::uint16_t focus_[4] = {kNone, kNone, kNone, kNone};  // places that held the found thing
  bool won_ = false, valid_ = true, unusable_ = false, prefers_slices_ = false;
};

}  // namespace embodied_mem::eb_alfred

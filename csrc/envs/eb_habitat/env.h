// Plays a Task of EB-Habitat: one action in, the original's feedback, what is in view, and the score out.
//
// An Env is a value: copying it is its snapshot. It owns its state and shares the Task. One thread at a time may use
// one Env; different Envs are independent. All chance (where a placed object lands) follows from the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "envs/eb_habitat/task.h"

namespace embodied_mem::eb_habitat {

constexpr std::uint16_t kNoObject = 0xFFFF;

// What decides whether something is near the robot.
enum class Reach : std::uint8_t {
  kGroup,  // what the target navigated to serves: itself, the inside of its door, the door of its inside
  // Distances and angles from an estimated standing point. What the traces tell comes first: an object that was never
  // moved is near from the place it lies on. Groups where the data has no place.
  kGeometry,
};

struct ObjectState {
  std::uint8_t receptacle;  // where it lies, or lay before it was taken
  bool position_known = true, moved = false;
  Point position;
};

class Env {
 public:
  using Task = eb_habitat::Task;
  struct Options {
    Reach reach = Reach::kGroup;
    int max_invalid = 10;       // invalid actions that end the episode
    bool ends_when_won = true;  // false: the episode goes on after the goal holds, and may lose it again
    bool relations = true;      // the first text tells how places stand to each other
    bool operator==(const Options& other) const {
      return reach == other.reach && max_invalid == other.max_invalid && ends_when_won == other.ends_when_won &&
             relations == other.relations;
    }
  };
  struct Extra {};
  static constexpr const char* kOptionsName = "setting";

  // Starts the task from its beginning. Throws InvalidInputError without a task, or for Reach::kGeometry and a task
  // whose scene has no boxes.
  void Reset(std::shared_ptr<const Task> task, const Options& options, std::uint64_t seed);
  // Plays one action, whatever it says. What is none of the 70 counts as an invalid action and takes no step. After
  // the end nothing changes any more. Throws InternalError before the first Reset.
  void Step(std::string_view action);

  const std::shared_ptr<const Task>& task() const { return task_; }
  const Options& options() const { return options_; }
  const std::string& observation() const { return observation_; }
  // The goal held after a step, unless that ends nothing, or there were too many invalid actions.
  bool ended() const { return ended_; }
  bool won() const { return won_; }  // the goal holds
  double progress() const;
  int num_steps() const { return num_steps_; }
  int num_invalid() const { return num_invalid_; }
  void FillExtra(Extra*) const {}

  // Reading the state, for experts and checks.
  std::uint8_t at() const { return at_; }
  std::uint16_t held() const { return held_; }
  bool open(std::uint8_t part) const { return ((open_ >> part) & 1U) != 0; }
  const std::vector<ObjectState>& objects() const { return objects_; }
  std::uint64_t reached() const { return reached_; }  // subgoals, as bits
  bool Holds(const Literal& literal) const;
  bool NearTarget(std::uint8_t target) const;
  bool NearObject(std::uint16_t object) const;
  bool Pickable(std::uint16_t object) const;  // near, and not inside a closed drawer

 private:
  // Each returns whether its precondition held, and says the feedback.
  bool Act(int id);
  bool Pick(std::uint8_t category);
  bool Place(std::uint8_t receptacle);
  bool OpenOrClose(std::uint8_t part, bool open);

  double Random();
  void Tick();
  void SayView();
  void SayTarget(std::uint8_t target);
  void SayContents(std::uint8_t receptacle);

  std::shared_ptr<const Task> task_;
  Options options_;
  std::vector<ObjectState> objects_;
  std::string observation_;
  std::uint64_t random_ = 0, reached_ = 0;
  int num_steps_ = 0, num_invalid_ = 0;
  std::uint16_t held_ = kNoObject;
  std::uint8_t at_ = kNowhere, open_ = 0;
  bool won_ = false, ended_ = false;
};

}  // namespace embodied_mem::eb_habitat

// Plays a Task of MEMENTO: one action in, the original's answer, observation lines and score out.
//
// An Env is a value: copying it is its snapshot. It owns its state and shares the Task. One thread at a time may use
// one Env; different Envs are independent. All chance follows from the seed given to Reset.
//
// What a simulator with geometry would decide (reach, discovery, costs, where things are put) follows from rules
// fitted on recorded runs; each constant says what it was fitted on. A `Recorded` answer overrides them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "envs/memento/evaluation.h"
#include "envs/memento/task.h"

namespace embodied_mem::memento {

// What a recorded run says of one step, to be believed rather than decided here.
struct Recorded {
  bool has_response = false;
  std::string response;
  bool has_pose = false;  // of the agent after the step
  Point position;
  std::string room;
  bool has_revealed = false;  // which objects the step showed, in their order
  std::vector<std::string> revealed;
};

struct ObjectState {
  Node place;   // furniture or floor; kNothing while held
  Node beside;  // what it was put next to by name
  Point position;
  Relation relation = Relation::kOn;
  bool moved = false, known = false;
  // False: `position` is a guess, since the pose of the agent that put it down was not recorded.
  bool spot_known = true;
};

enum class Skill : std::uint8_t {
  kNavigate,
  kExplore,
  kPick,
  kPlace,
  kOpen,
  kClose,
  kWait,
  kFindReceptacle,
  kFindObject,
  kFindRoom,
  kDescribe,
  kDone,
  kUnused,   // PowerOn, PowerOff, Clean, Fill, Pour: listed to the agent, never used by a task
  kUnknown,  // a name that is no tool
  kMalformed,
};

// "Name[argument, ...]" taken apart; the views live as long as the text.
struct Action {
  Skill skill = Skill::kMalformed;
  std::string_view name, argument;
};
// Reads the last line of the text.
Action ParseAction(std::string_view text);

class Env {
 public:
  // What VectorEnv (envs/vector_env.h) asks of a world.
  using Task = memento::Task;
  struct Options {
    bool operator==(const Options&) const { return true; }
  };
  struct Extra {};
  static constexpr const char* kOptionsName = "option";

  Env() = default;

  // Starts the task from its beginning; chance follows from `seed`.
  void Reset(std::shared_ptr<const Task> task, const Options& options, std::uint64_t seed);
  // Plays one action, whatever it says. After the end nothing changes any more and the last observation is repeated.
  // Throws InternalError before the first Reset.
  void Step(std::string_view action, const Recorded* recorded = nullptr);

  void FillExtra(Extra*) const {}

  const std::shared_ptr<const Task>& task() const { return task_; }
  Options options() const { return {}; }
  const std::string& observation() const { return observation_; }
  const std::string& response() const { return response_; }
  bool ended() const { return ended_; }  // Done[], or five malformed answers in a row
  bool won() const { return score_.Success(*task_); }
  double progress() const { return score_.PercentComplete(*task_); }
  const Score& score() const { return score_; }
  int num_steps() const { return num_steps_; }
  std::int64_t sim_steps() const { return sim_steps_; }

  // Reading the state, for experts and checks.
  const std::vector<ObjectState>& objects() const { return objects_; }
  const std::vector<std::uint16_t>& discovered() const { return discovered_; }
  std::uint16_t held() const { return held_; }
  std::uint16_t agent_room() const { return room_; }
  const Point& agent_position() const { return position_; }
  Node agent_at() const { return at_; }
  bool opened(std::size_t furniture) const { return opened_[furniture]; }
  // Puts the agent somewhere, as a recorded run's start says; an empty or unknown name means an unknown room.
  void PlaceAgent(std::string_view room, const Point& position);

 private:
  struct Arguments;
  std::uint64_t Random();
  bool Chance(double probability);
  std::uint16_t RoomOfObject(std::size_t o) const;
  Node Known(std::string_view name) const;  // room, floor, furniture, or object seen so far; else kNothing
  std::uint16_t RoomOf(Node node) const;
  Point PositionOf(Node node) const;

  // Each sets response_ and the cost, and changes the state when the answer is success.
  void Navigate(std::string_view name);
  void Explore(std::string_view name);
  void Pick(std::string_view name);
  void Place(std::string_view arguments);
  void OpenOrClose(std::string_view name, bool open);
  void Describe(std::string_view name);
  // What happens when the recorded answer is success.
  void Believe(const Action& action, const Recorded& recorded);

  void Succeed(int sim_steps);
  void Fail(std::string text, int sim_steps);
  void UnknownName(std::string_view name);
  void WithTail(std::string text);

  void Arrive(Node target);
  void Take(std::size_t object);
  void PutDown(Node place, Relation relation, Node beside);
  void FinishTour(std::uint16_t room, bool all);
  void Reveal(std::size_t object);
  void RevealOnWalk(const Point& from);
  bool Reaches(Node node) const;
  bool Hovers(Node furniture) const;

  void Tick();
  bool Holds(const Proposition& proposition) const;
  bool NextTo(Node a, Node b, double max_distance_m) const;
  void SayObjects();

  std::shared_ptr<const Task> task_;
  std::vector<ObjectState> objects_;
  std::vector<std::uint16_t> discovered_;
  std::vector<Point> room_points_;  // by room: where `Navigate[room]` ends in this episode
  std::vector<bool> opened_;
  std::string response_, observation_;
  Score score_;
  Point position_;
  Node at_;  // the furniture, floor, room or object of the last walk
  std::uint64_t random_ = 0;
  std::int64_t sim_steps_ = 0;
  int num_steps_ = 0, malformed_in_a_row_ = 0;
  std::uint16_t room_ = kNone, held_ = kNone;
  bool hovers_ = false, ended_ = false, pose_known_ = true;
};

// What the finding tools answer by rule. `known(o)` objects only; see docs/worlds/memento.md for the rule.
std::string FindReceptacles(const House& house, std::string_view query);
std::string FindRooms(const House& house, std::string_view query);
std::string FindObjects(const Env& env, std::string_view query);

}  // namespace embodied_mem::memento

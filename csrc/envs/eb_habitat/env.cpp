#include "envs/eb_habitat/env.h"

#include <bitset>
#include <utility>

#include "core/error.h"

namespace embodied_mem::eb_habitat {
namespace {

constexpr std::string_view kDone = "Last action executed successfully";
constexpr std::string_view kInvalid = "Last action is invalid.";
constexpr std::string_view kPickHandFull =
    " Robot cannot pick any object when holding something. Please place the object before picking something.";
constexpr std::string_view kPickNotNear =
    " Robot cannot pick any object that is not near the robot. Navigate to other place to find the object.";
constexpr std::string_view kPlaceNotNear =
    " Robot cannot place any object that is not near the robot. Navigate to other place to find the object.";
constexpr std::string_view kPlaceHandEmpty =
    " Robot cannot place any object when not holding something. Please pick the object before place it.";
constexpr std::string_view kOpenRefused =
    " Check whether the receptacle is already open or the robot is not near the receptacle.";
constexpr std::string_view kCloseRefused =
    " Check whether the receptacle is already closed or the robot is not near the receptacle.";
// Ours: the original answers nothing to what is no action.
constexpr std::string_view kNoSuchAction = " There is no such action.";

constexpr double kPlaceBoxShrink = 0.8;  // placed objects land in the middle 80 % of a receptacle's box

std::string_view Article(std::string_view noun) {
  return std::string_view("aeiou").find(noun[0]) == std::string_view::npos ? "a " : "an ";
}

}  // namespace

double Env::Random() {  // splitmix64, in [0, 1)
  random_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = random_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1.0p-53;
}

void Env::Reset(std::shared_ptr<const Task> task, const Options& options, std::uint64_t seed) {
  if (task == nullptr) throw InvalidInputError("expected a task, got none");
  if (options.reach == Reach::kGeometry && task->scene == nullptr)
    throw InvalidInputError("task '" + task->id + "': expected boxes for the scene '" + task->scene_name +
                            "', which reach='geometry' needs; install scenes.json beside the episodes, or take "
                            "reach='group'");
  task_ = std::move(task);
  options_ = options;
  objects_.clear();
  for (const ObjectStart& start : task_->objects) objects_.push_back({start.receptacle, true, false, start.position});
  random_ = seed;
  reached_ = 0;
  num_steps_ = num_invalid_ = 0;
  held_ = kNoObject;
  at_ = kNowhere;
  open_ = task_->open;
  ended_ = false;
  Tick();
  observation_.assign("You are in an apartment. Its places are the");
  for (std::size_t r = 0; r < kNumReceptacles; ++r) {
    const Target& place = ReceptacleTarget(static_cast<std::uint8_t>(r));
    observation_.append(r == 0 ? " " : r + 1 == kNumReceptacles ? ", and the " : ", the ").append(place.phrase);
    if (place.phrase.find(place.looks) == std::string_view::npos)
      observation_.append(" (").append(place.looks).append(")");
  }
  observation_.append(". You hold nothing and are near none of them.");
  if (options.relations && !task_->layout.empty()) observation_.append("\n").append(task_->layout);
  observation_.append("\n\nYour task is to: ").append(task_->instruction);
}

void Env::Step(std::string_view action) {
  if (task_ == nullptr) throw InternalError("eb_habitat::Env::Step before the first Reset");
  if (ended_) return;
  observation_.clear();
  const int id = FindAction(action);
  if (id < 0) {
    ++num_invalid_;
    observation_.append(kInvalid).append(kNoSuchAction);
  } else {
    ++num_steps_;
    if (!Act(id)) ++num_invalid_;
  }
  Tick();
  ended_ = (won_ && options_.ends_when_won) || num_invalid_ >= options_.max_invalid;
  SayView();
}

bool Env::Act(int id) {
  const Action action = ActionOf(id);
  switch (action.verb) {
    case Verb::kNavigate:
      at_ = action.argument;
      observation_.append(kDone).append(".");
      return true;
    case Verb::kPick: return Pick(action.argument);
    case Verb::kPlace: return Place(action.argument);
    case Verb::kOpen: return OpenOrClose(action.argument, true);
    case Verb::kClose: return OpenOrClose(action.argument, false);
  }
  return false;
}

bool Env::Pick(std::uint8_t category) {
  if (held_ != kNoObject) {
    observation_.append(kInvalid).append(kPickHandFull);
    return false;
  }
  for (std::size_t o = 0; o < objects_.size(); ++o) {
    if (task_->names.categories[o] != category || !Pickable(static_cast<std::uint16_t>(o))) continue;
    held_ = static_cast<std::uint16_t>(o);
    observation_.append(kDone).append(" and you are holding ").append(kCategories[category]).append(".");
    return true;
  }
  observation_.append(kInvalid).append(kPickNotNear);
  return false;
}

bool Env::Place(std::uint8_t receptacle) {
  if (held_ == kNoObject || !NearTarget(static_cast<std::uint8_t>(kNumParts + receptacle))) {
    observation_.append(kInvalid).append(held_ == kNoObject ? kPlaceHandEmpty : kPlaceNotNear);
    return false;
  }
  ObjectState& object = objects_[held_];
  object.receptacle = receptacle;
  object.moved = true;
  object.position_known = task_->scene != nullptr && task_->scene->known[receptacle];
  if (object.position_known) {
    const Box& box = task_->scene->boxes[receptacle];
    const Point centre = box.Centre();
    object.position.x = centre.x + (Random() - 0.5) * kPlaceBoxShrink * (box.max.x - box.min.x);
    object.position.z = centre.z + (Random() - 0.5) * kPlaceBoxShrink * (box.max.z - box.min.z);
  }
  held_ = kNoObject;
  observation_.append(kDone).append(" and you are holding nothing.");
  return true;
}

bool Env::OpenOrClose(std::uint8_t part, bool open) {
  if (this->open(part) == open || !NearTarget(part)) {
    observation_.append(kInvalid).append(open ? kOpenRefused : kCloseRefused);
    return false;
  }
  open_ = static_cast<std::uint8_t>(open_ ^ (1U << part));
  // The original prints the word "push" where the drawer's number was meant.
  observation_.append(kDone).append(part == kFridge ? " and now refrigerator is " : " and now cabinet push is ");
  observation_.append(open ? "open." : "closed.");
  return true;
}

bool Env::NearTarget(std::uint8_t target) const {
  if (at_ == kNowhere) return false;
  if (options_.reach == Reach::kGeometry && at_ >= kNumParts && target >= kNumParts) {
    const Scene& scene = *task_->scene;
    const std::size_t from = at_ - kNumParts, to = target - kNumParts;
    if (scene.known[from] && scene.known[to]) return IsNear(scene.stands[from], scene.boxes[to].Centre(), kNearTarget);
  }
  return ((kTargets[at_].serves >> target) & 1U) != 0;
}

bool Env::NearObject(std::uint16_t object) const {
  if (at_ == kNowhere) return false;
  if (object == held_) return true;
  const ObjectState& state = objects_[object];
  if (options_.reach == Reach::kGeometry && at_ >= kNumParts && state.position_known) {
    const Scene& scene = *task_->scene;
    const std::size_t from = at_ - kNumParts;
    if (!state.moved && state.receptacle == from) return true;
    if (scene.known[from]) return IsNear(scene.stands[from], state.position, kNearObject);
  }
  return ((kTargets[at_].serves >> (kNumParts + state.receptacle)) & 1U) != 0;
}

bool Env::Pickable(std::uint16_t object) const {
  const std::uint8_t part = ReceptacleTarget(objects_[object].receptacle).inside;
  return (part == kNowhere || part == kFridge || open(part)) && NearObject(object);
}

bool Env::Holds(const Literal& literal) const {
  switch (literal.predicate) {
    case Predicate::kOnTop: return literal.object != held_ && objects_[literal.object].receptacle == literal.place;
    case Predicate::kIn:
      return literal.object != held_ && ReceptacleTarget(objects_[literal.object].receptacle).inside == literal.place;
    case Predicate::kHolding: return literal.object == held_;
    case Predicate::kNotHolding: return held_ == kNoObject;
    case Predicate::kOpened: return open(literal.place);
    case Predicate::kClosed: return !open(literal.place);
    case Predicate::kRobotAt: return NearTarget(literal.place);
    case Predicate::kRobotAtObject: return NearObject(literal.object);
  }
  return false;
}

void Env::Tick() {
  const auto holds = [this](const Literal& literal) { return Holds(literal); };
  won_ = task_->goal.Evaluate(holds);
  for (std::size_t k = 0; k < task_->subgoals.size(); ++k) {
    if (((reached_ >> k) & 1U) != 0) continue;
    bool all = true;
    for (const Literal& literal : task_->subgoals[k]) all = all && Holds(literal);
    if (all) reached_ |= std::uint64_t{1} << k;
  }
}

double Env::progress() const {
  if (won_) return 1.0;
  if (task_ == nullptr) return 0.0;
  const auto reached = static_cast<double>(std::bitset<64>(reached_).count());
  return reached / static_cast<double>(task_->subgoals.size());
}

void Env::SayView() {
  if (at_ != kNowhere) SayTarget(at_);
  if (held_ != kNoObject) {
    const std::string_view name = kCategories[task_->names.categories[held_]];
    observation_.append("\nYou are holding ").append(Article(name)).append(name).append(".");
  }
}

void Env::SayTarget(std::uint8_t target) {
  const bool is_part = target < kNumParts;
  const std::uint8_t part = is_part ? target : kTargets[target].inside;
  if (part == kNowhere) {
    observation_.append("\nOn the ").append(kTargets[target].phrase);
    SayContents(static_cast<std::uint8_t>(target - kNumParts));
    return;
  }
  observation_.append("\nThe ").append(part == kFridge ? "refrigerator" : kTargets[target].phrase);
  observation_.append(open(part) ? " is open. In it" : " is closed.");
  if (!open(part)) return;
  for (std::uint8_t r = 0; r < kNumReceptacles; ++r) {
    if (ReceptacleTarget(r).inside == part) return SayContents(r);
  }
  observation_.append(", you see nothing.");  // the two drawers that take nothing
}

void Env::SayContents(std::uint8_t receptacle) {
  observation_.append(", you see ");
  std::size_t left = 0;
  for (std::size_t o = 0; o < objects_.size(); ++o) left += objects_[o].receptacle == receptacle && o != held_ ? 1 : 0;
  if (left == 0) observation_.append("nothing");
  const std::size_t count = left;
  for (std::size_t o = 0; left > 0; ++o) {
    if (objects_[o].receptacle != receptacle || o == held_) continue;
    const std::string_view name = kCategories[task_->names.categories[o]];
    if (left != count) observation_.append(left == 1 ? ", and " : ", ");
    observation_.append(Article(name)).append(name);
    --left;
  }
  observation_.append(".");
}

}  // namespace embodied_mem::eb_habitat

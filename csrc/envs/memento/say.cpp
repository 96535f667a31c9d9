// Text in and out, and the truth of propositions over the symbolic state.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/text.h"
#include "envs/memento/env.h"

namespace embodied_mem::memento {
namespace {

// Start positions on one piece: farther apart in height than this is another shelf board.
constexpr double kSameBoard_m = 0.25;

struct Tool {
  std::string_view name;
  Skill skill;
};
constexpr std::array<Tool, 17> kTools = {{
    {"Navigate", Skill::kNavigate},
    {"Explore", Skill::kExplore},
    {"Pick", Skill::kPick},
    {"Place", Skill::kPlace},
    {"Open", Skill::kOpen},
    {"Close", Skill::kClose},
    {"Wait", Skill::kWait},
    {"FindReceptacleTool", Skill::kFindReceptacle},
    {"FindObjectTool", Skill::kFindObject},
    {"FindRoomTool", Skill::kFindRoom},
    {"DescribeObjectTool", Skill::kDescribe},
    {"Done", Skill::kDone},
    {"PowerOn", Skill::kUnused},
    {"PowerOff", Skill::kUnused},
    {"Clean", Skill::kUnused},
    {"Fill", Skill::kUnused},
    {"Pour", Skill::kUnused},
}};

}  // namespace

Action ParseAction(std::string_view text) {
  text = StripLikePython(text);
  if (const std::size_t line = text.rfind('\n'); line != std::string_view::npos)
    text = StripLikePython(text.substr(line + 1));
  const std::size_t open = text.find('['), close = text.rfind(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  Action action;
  action.name = StripLikePython(text.substr(0, open));
  if (const std::size_t blank = action.name.find_last_of(" \t"); blank != std::string_view::npos)
    action.name.remove_prefix(blank + 1);
  action.argument = StripLikePython(text.substr(open + 1, close - open - 1));
  action.skill = Skill::kUnknown;
  for (const Tool& tool : kTools) {
    if (tool.name == action.name) action.skill = tool.skill;
  }
  return action;
}

void Env::SayObjects() {
  observation_.assign("Result: ").append(response_).append("\nObjects: ");
  if (discovered_.empty()) observation_ += "No objects found yet";
  bool first = true;
  for (const std::uint16_t o : discovered_) {
    observation_ += first ? "" : "\n";
    first = false;
    observation_.append(task_->objects[o].name).append(": ");
    const ObjectState& object = objects_[o];
    if (o == held_) observation_ += "held by the agent";
    else observation_ += task_->house->PlaceText(object.moved ? object.place : task_->objects[o].text_place);
  }
}

void Env::Tick() {
  score_.Tick(*task_, [this](std::size_t i) { return Holds(task_->propositions[i]); });
}

bool Env::Holds(const Proposition& p) const {
  if (p.predicate == Predicate::kNextTo) {
    return std::any_of(p.first.begin(), p.first.end(), [&](Node a) {
      return std::any_of(p.second.begin(), p.second.end(), [&](Node b) { return NextTo(a, b, p.max_distance_m); });
    });
  }
  const auto listed = [&p](Node node) { return std::find(p.second.begin(), p.second.end(), node) != p.second.end(); };
  return std::any_of(p.first.begin(), p.first.end(), [&](Node node) {
    const ObjectState& object = objects_[node.index];
    const bool carried = node.index == held_;
    switch (p.predicate) {
      case Predicate::kOnTop: return carried ? hovers_ && listed(at_) : listed(object.place);
      case Predicate::kInside: return !carried && object.relation == Relation::kWithin && listed(object.place);
      case Predicate::kInRoom: return listed({NodeKind::kRoom, carried ? room_ : RoomOf(node)});
      case Predicate::kOnFloor: return object.place.kind == NodeKind::kFloor;
      case Predicate::kNextTo: break;
    }
    return false;
  });
}

bool Env::NextTo(Node a, Node b, double max_distance_m) const {
  if (a.kind == NodeKind::kFurniture) std::swap(a, b);
  if (a.kind == NodeKind::kFurniture) return Distance(PositionOf(a), PositionOf(b)) <= max_distance_m;
  const ObjectState& object = objects_[a.index];
  if (a.index == held_ || (b.kind == NodeKind::kObject && b.index == held_)) return false;
  if (object.beside == b) return true;
  if (b.kind == NodeKind::kFurniture) {
    if (object.place.kind == NodeKind::kFloor && !object.spot_known) return RoomOf(object.place) == RoomOf(b);
    // One metre between surfaces, of which half a piece on either side is unknown here: centres, or a spot on a floor.
    const Point& from = object.place.kind == NodeKind::kFurniture ? PositionOf(object.place) : object.position;
    return Distance(from, PositionOf(b)) <= max_distance_m + 1.0;
  }
  const ObjectState& other = objects_[b.index];
  if (other.beside == a) return true;
  if (object.place != other.place || object.place.kind != NodeKind::kFurniture) return false;
  if (object.moved || other.moved) return true;
  return Distance(object.position, other.position) <= max_distance_m &&
         std::abs(object.position.y - other.position.y) <= kSameBoard_m;
}

}  // namespace embodied_mem::memento

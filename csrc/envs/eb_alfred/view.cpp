// Where the agent stands, what is in view from there, and the text that says so.
#include <cmath>

#include "envs/eb_alfred/holders.h"

namespace embodied_mem::eb_alfred {
namespace {

constexpr float kViewDistance_m = 1.5F;
constexpr float kCosViewAngle = 0.70710678F;  // 45 degrees

}  // namespace

// By geometry: horizontally within 1.5 m and 45 degrees of where the agent faces.
bool Env::Near(const Point& position) const {
  const float dx = position.x - agent_.x, dz = position.z - agent_.z;
  const float distance = std::sqrt(dx * dx + dz * dz);
  return distance <= kViewDistance_m && dx * facing_x_ + dz * facing_z_ >= kCosViewAngle * distance;
}

void Env::GoTo(std::size_t t) {
  if (InHand(t)) return;  // it is where the agent is
  const Point& target = things_[t].position;
  float best = -1;
  for (const Point& point : task_->floor_plan->standing) {
    const float dx = target.x - point.x, dz = target.z - point.z;
    const float distance = dx * dx + dz * dz;
    if (best >= 0 && distance >= best) continue;
    best = distance;
    agent_ = {point.x, agent_.y, point.z};
  }
  if (best > 0) {
    best = std::sqrt(best);
    facing_x_ = (target.x - agent_.x) / best;
    facing_z_ = (target.z - agent_.z) / best;
  }
  found_ = static_cast<std::uint16_t>(t);
  focus_basin_ = kNone;
  std::size_t count = 0;
  const auto add = [&](std::uint16_t place) {
    if (count < 4) focus_[count++] = place;
    return false;
  };
  std::size_t outer = t;  // out of the movable receptacles it is in
  while (outer >= task_->num_places) {
    std::uint16_t movable = kNone;
    AnyHolder(outer, [&](std::uint16_t holder) {
      if (holder < task_->num_places) return add(holder);
      movable = holder;
      return false;
    });
    if (count > 0 || movable == kNone) break;
    outer = movable;
  }
  if (outer < task_->num_places) {
    add(static_cast<std::uint16_t>(outer));
    for (const std::uint16_t below : task_->things[outer].in) add(below);
  }
  const std::size_t place = count > 0 ? focus_[0] : outer;
  focus_group_ = count > 0 ? task_->things[place].group : things_[outer].group;
  if (count > 0) focus_basin_ = task_->things[place].basin;
  for (; count < 4; ++count) focus_[count] = kNone;
}

bool Env::PlaceInView(std::size_t t) const {
  const Thing& thing = task_->things[t];
  for (const std::uint16_t place : focus_) {
    if (place == t) return true;
    for (const std::uint16_t below : thing.in) {
      if (place == below) return true;
    }
  }
  if (focus_basin_ != kNone && thing.basin == focus_basin_) return true;
  if (options_.reach == Reach::kGeometry || found_ == kNone) return Near(thing.position);
  return focus_group_ != kNone && thing.group == focus_group_;
}

bool Env::ObjectInView(std::size_t t) const {
  const State& state = things_[t];
  if (!state.exists || state.cut) return false;
  if (state.parent == kHand) return true;
  const bool by_geometry = options_.reach == Reach::kGeometry || found_ == kNone;
  bool held = false;
  const bool seen = AnyHolder(t, [&](std::uint16_t holder) {
    held = true;
    if (!Accessible(holder)) return false;
    if (holder >= task_->num_places) return ObjectInView(holder);
    return by_geometry ? t == found_ || holder == found_ || Near(state.position) : things_[holder].visible;
  });
  if (held) return seen;
  if (t == found_) return true;
  return by_geometry ? Near(state.position) : focus_group_ != kNone && state.group == focus_group_;
}

void Env::Look() {
  for (std::size_t t = 0; t < task_->num_places; ++t) things_[t].visible = PlaceInView(t);
  for (std::size_t t = task_->num_places; t < things_.size(); ++t) things_[t].visible = ObjectInView(t);
}

// "Cabinet_2 (closed)", "Fridge (open) with Egg, Plate_2 with Spoon"; things are listed by holder.
void Env::SayThing(std::size_t t, const std::uint16_t* first, const std::uint16_t* next) {
  const Thing& thing = task_->things[t];
  observation_ += thing.name;
  if (thing.openable && thing.toggleable) {
    observation_ += things_[t].open ? " (open" : " (closed";
    observation_ += things_[t].on ? ", on)" : ", off)";
  } else if (thing.openable) {
    observation_ += things_[t].open ? " (open)" : " (closed)";
  } else if (thing.toggleable) {
    observation_ += things_[t].on ? " (on)" : " (off)";
  }
  const char* joint = " with ";
  for (std::uint16_t inside = first[t]; inside != kNone; inside = next[inside]) {
    observation_ += joint;
    SayThing(inside, first, next);
    joint = ", ";
  }
}

void Env::SayView() {
  std::uint16_t first[kMaxThings], last[kMaxThings], next[kMaxThings];
  bool listed[kMaxThings];
  const std::size_t count = things_.size();
  for (std::size_t t = 0; t < count; ++t) {
    first[t] = last[t] = next[t] = kNone;
    listed[t] = false;
  }
  for (std::size_t t = task_->num_places; t < count; ++t) {
    if (!things_[t].visible) continue;
    std::uint16_t by = kNone;  // the innermost thing in view that holds it
    AnyHolder(t, [&](std::uint16_t holder) {
      if (things_[holder].visible && (by == kNone || holder >= task_->num_places)) by = holder;
      return false;
    });
    if (by == kNone) continue;
    listed[t] = true;
    (first[by] == kNone ? first[by] : next[last[by]]) = static_cast<std::uint16_t>(t);
    last[by] = static_cast<std::uint16_t>(t);
  }
  observation_ += "\nIn view: ";
  bool any = false;
  for (std::size_t t = 0; t < count; ++t) {
    const Thing& thing = task_->things[t];
    const bool worth_saying = !thing.is_static || thing.receptacle || thing.toggleable || t == found_;
    if (!things_[t].visible || listed[t] || t == held_ || !worth_saying) continue;
    if (any) observation_ += "; ";
    any = true;
    SayThing(t, first, next);
  }
  observation_ += any ? ".\nIn hand: " : "nothing.\nIn hand: ";
  if (held_ == kNone) {
    observation_ += "nothing.";
  } else {
    SayThing(held_, first, next);
    observation_ += '.';
  }
}

}  // namespace embodied_mem::eb_alfred

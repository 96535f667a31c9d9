// Where things are, and which instance an action on a bare type means.
#include <cmath>
#include <limits>

#include "envs/eb_alfred/holders.h"

namespace embodied_mem::eb_alfred {

bool Env::Inside(std::size_t t, std::size_t r) const {
  return AnyHolder(
      t, [&](std::uint16_t holder) { return holder == r || (holder >= task_->num_places && Inside(holder, r)); });
}

bool Env::InHand(std::size_t t) const {
  if (things_[t].parent == kHand) return true;
  return AnyHolder(t, [&](std::uint16_t holder) { return holder >= task_->num_places && InHand(holder); });
}

// Whether something that holds it is closed.
bool Env::ClosedIn(std::size_t t) const {
  return AnyHolder(t, [&](std::uint16_t holder) {
    return !Accessible(holder) || (holder >= task_->num_places && ClosedIn(holder));
  });
}

bool Env::Carries(std::size_t r) const {
  for (std::size_t i = task_->num_places; i < things_.size(); ++i) {
    if (Inside(i, r)) return true;
  }
  return false;
}

std::vector<std::uint16_t> Env::Holders(std::size_t t) const {
  std::vector<std::uint16_t> holders;
  AnyHolder(t, [&](std::uint16_t holder) {
    holders.push_back(holder);
    return false;
  });
  return holders;
}

double Env::Distance(std::size_t t) const {
  if (InHand(t)) return 0;
  const Point& position = things_[t].position;
  const double dx = position.x - agent_.x, dy = position.y - agent_.y, dz = position.z - agent_.z;
  return std::sqrt(dx * dx + dy * dy + dz * dz);
}

bool Env::Fits(std::size_t t, Purpose purpose) const {
  const Thing& thing = task_->things[t];
  if (!things_[t].exists) return false;
  switch (purpose) {
    case Purpose::kPickUp: return thing.pickupable;
    case Purpose::kToggle: return thing.toggleable;
    case Purpose::kOpen: return thing.openable;
    case Purpose::kPutDown: return thing.receptacle;
    case Purpose::kFind:
    case Purpose::kSlice: return true;
  }
  return false;
}

std::uint16_t Env::Nearest(const Name& name, Purpose purpose, bool visible_only) const {
  return Nearest(name.candidates.data(), name.candidates.size(), purpose, visible_only);
}

std::uint16_t Env::Nearest(const std::uint16_t* candidates, std::size_t count, Purpose purpose,
                           bool visible_only) const {
  const bool looks = purpose == Purpose::kFind || purpose == Purpose::kPickUp;
  double best_score = std::numeric_limits<double>::infinity();
  std::uint16_t best = kNone;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t t = candidates[i];
    if (!Fits(t, purpose) || (visible_only && !things_[t].visible)) continue;
    double score = Distance(t);
    if (score >= best_score) continue;  // before the penalties, as in the original
    if (ClosedIn(t)) score += 100000;
    if (task_->things[t].is_stove_burner && Carries(t)) score += 10000;
    if (looks && !things_[t].visible) score += 1000;
    if (looks && prefers_slices_ && task_->things[t].is_slice) score -= 100;
    if (score < best_score) {
      best_score = score;
      best = t;
    }
  }
  return best;
}

std::uint16_t Env::Choose(const Name& name, Purpose purpose) const {
  if (options_.instance == Instance::kFound && purpose != Purpose::kFind) {
    if (found_ != kNone && things_[found_].visible && Fits(found_, purpose)) {
      for (const std::uint16_t t : name.candidates) {
        if (t == found_) return found_;
      }
    }
    const std::uint16_t seen = Nearest(name, purpose, true);
    if (seen != kNone) return seen;
  }
  return Nearest(name, purpose, false);
}

}  // namespace embodied_mem::eb_alfred

// The goal conditions of the seven task types: one point each, success is all of them.
#include <algorithm>

#include "envs/eb_alfred/holders.h"

namespace embodied_mem::eb_alfred {
namespace {

enum { kObjects = 0, kPieces = 1, kMovables = 2, kParents = 3, kToggles = 4 };  // bits of Role

}  // namespace

void Env::Score() {
  const auto& objects = task_->by_role[kObjects];
  const auto& parents = task_->by_role[kParents];
  const auto any = [](const std::vector<std::uint16_t>& things, const auto& holds) {
    return std::any_of(things.begin(), things.end(), holds);
  };
  const auto delivered = [&](std::uint16_t t) { return any(parents, [&](std::uint16_t r) { return Inside(t, r); }); };
  const auto treated = [&](bool State::* mark) {
    num_points_ = 3;
    points_ = any(objects, delivered) + any(objects, [&](std::uint16_t o) { return things_[o].*mark; }) +
              any(objects, [&](std::uint16_t o) { return things_[o].*mark && delivered(o); });
  };
  switch (task_->type) {
    case TaskType::kPlace:
      num_points_ = 1;
      points_ = any(objects, delivered);
      break;
    case TaskType::kPlaceTwo: {
      num_points_ = 2;
      std::ptrdiff_t best = 0;
      for (const std::uint16_t r : parents) {
        const auto inside = [&](std::uint16_t o) { return Inside(o, r); };
        best = std::max(best, std::count_if(objects.begin(), objects.end(), inside));
      }
      points_ = static_cast<double>(std::min<std::ptrdiff_t>(best, 2));
      break;
    }
    case TaskType::kLook:
      num_points_ = 2;
      points_ = (held_ != kNone && (task_->things[held_].roles & kObject) != 0) +
                any(task_->by_role[kToggles], [&](std::uint16_t t) { return things_[t].on && things_[t].visible; });
      break;
    case TaskType::kClean: treated(&State::clean); break;
    case TaskType::kHeat: treated(&State::hot); break;
    case TaskType::kCool: treated(&State::cold); break;
    case TaskType::kPlaceMovable: {
      num_points_ = 3;
      const auto loaded = [&](std::uint16_t m) { return any(objects, [&](std::uint16_t o) { return Inside(o, m); }); };
      const auto& movables = task_->by_role[kMovables];
      points_ = any(movables, loaded) + any(movables, delivered) +
                any(movables, [&](std::uint16_t m) { return loaded(m) && delivered(m); });
      break;
    }
  }
  if (task_->sliced) {
    const auto& pieces = task_->by_role[kPieces];
    const double wanted = task_->type == TaskType::kPlaceTwo ? 2 : 1;
    const auto cut = std::count_if(pieces.begin(), pieces.end(), [&](std::uint16_t t) { return things_[t].exists; });
    num_points_ += wanted;
    points_ += std::min(static_cast<double>(cut), wanted);
  }
  won_ = points_ == num_points_;
}

}  // namespace embodied_mem::eb_alfred

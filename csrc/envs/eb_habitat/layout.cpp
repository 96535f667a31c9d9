#include "envs/eb_habitat/layout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

namespace embodied_mem::eb_habitat {
namespace {

constexpr std::uint8_t kSink = 4, kRightCounter = 5, kLeftCounter = 6, kRefrigerator = 8, kLeftDrawer = 9,
                       kRightDrawer = 10;
constexpr double kNextTo_m = 1.0;  // edge to edge, with nothing nearer to both
constexpr double kDiagonal = 0.5;  // a smaller gap that is at least this share of the larger one is told, too
constexpr double kFridgeGap_m = 0.2, kFridgeWidth_m = 0.8;  // estimates

struct Place {
  bool known = false;
  Box box;
  Point heading;  // of who stands in front of it: a unit vector along an axis
};
using Places = std::array<Place, kNumReceptacles>;

// Gaps between two boxes along the right hand and the heading of who stands in front of the first.
struct Gap {
  double right = 0, ahead = 0;
  double Length() const { return std::hypot(right, ahead); }
};

std::pair<double, double> Along(const Box& box, const Point& axis) {
  const double a = box.min.x * axis.x + box.min.z * axis.z, b = box.max.x * axis.x + box.max.z * axis.z;
  return {std::min(a, b), std::max(a, b)};
}

double Between(const std::pair<double, double>& from, const std::pair<double, double>& to) {
  if (to.first > from.second) return to.first - from.second;
  return to.second < from.first ? to.second - from.first : 0;
}

Point RightOf(const Point& heading) { return {-heading.z, heading.x}; }  // y is up

Gap GapFrom(const Place& anchor, const Place& other) {
  const Point right = RightOf(anchor.heading);
  return {Between(Along(anchor.box, right), Along(other.box, right)),
          Between(Along(anchor.box, anchor.heading), Along(other.box, anchor.heading))};
}

Places PlacesOf(const Scene& scene) {
  Places places;
  for (std::size_t r = 0; r < kNumReceptacles; ++r)
    places[r] = {scene.known[r], scene.boxes[r], scene.stands[r].heading};
  if (!scene.known[kLeftCounter] || !scene.known[kRightCounter]) return places;
  const Point left = scene.boxes[kLeftCounter].Centre(), right = scene.boxes[kRightCounter].Centre();
  const double dx = right.x - left.x, dz = right.z - left.z;
  Point row;  // from the left counter to the right one
  if (std::abs(dx) >= std::abs(dz)) row.x = dx < 0 ? -1 : 1;
  else row.z = dz < 0 ? -1 : 1;
  for (const std::uint8_t part : {kSink, kRightCounter, kLeftCounter, kRefrigerator})
    places[part].heading = {row.z, -row.x};
  const bool at_right = scene.name.rfind("v3_sc0", 0) == 0;
  if (!at_right && scene.name.rfind("v3_sc3", 0) != 0) return places;
  const Place& beside = places[at_right ? kRightCounter : kLeftCounter];
  const Point out = at_right ? row : Point{-row.x, -row.z};
  const auto shifted = [&out](double edge, double along, double by) { return along == 0 ? edge : edge + along * by; };
  Place& fridge = places[kRefrigerator];
  fridge.known = true;
  fridge.box = beside.box;  // its depth; along the row it begins where the counter ends
  const double near = kFridgeGap_m, far = kFridgeGap_m + kFridgeWidth_m;
  if (out.x != 0) {
    const double edge = out.x > 0 ? beside.box.max.x : beside.box.min.x;
    const double a = shifted(edge, out.x, near), b = shifted(edge, out.x, far);
    fridge.box.min.x = std::min(a, b);
    fridge.box.max.x = std::max(a, b);
  } else {
    const double edge = out.z > 0 ? beside.box.max.z : beside.box.min.z;
    const double a = shifted(edge, out.z, near), b = shifted(edge, out.z, far);
    fridge.box.min.z = std::min(a, b);
    fridge.box.max.z = std::max(a, b);
  }
  return places;
}

bool IsNextTo(const Places& places, std::size_t one, std::size_t other) {
  const double gap = GapFrom(places[one], places[other]).Length();
  if (gap > kNextTo_m) return false;
  for (std::size_t r = 0; r < kNumReceptacles; ++r) {
    if (r == one || r == other || !places[r].known) continue;
    if (std::max(GapFrom(places[one], places[r]).Length(), GapFrom(places[other], places[r]).Length()) < gap)
      return false;
  }
  return true;
}

void SaySides(const Gap& gap, std::string* text) {
  const double right = std::abs(gap.right), ahead = std::abs(gap.ahead);
  const bool across = gap.ahead != 0 && ahead >= kDiagonal * right;
  const bool beside = gap.right != 0 && right >= kDiagonal * ahead;
  if (across) text->append(gap.ahead > 0 ? " behind" : " in front");
  if (across && beside) text->append(" and");
  if (beside) text->append(gap.right > 0 ? " to the right" : " to the left");
}

std::string_view Name(std::size_t receptacle) { return ReceptacleTarget(static_cast<std::uint8_t>(receptacle)).looks; }

}  // namespace

std::string DescribeLayout(const Scene& scene) {
  const Places places = PlacesOf(scene);
  if (std::count_if(places.begin(), places.end(), [](const Place& place) { return place.known; }) < 2) return {};
  std::string text =
      "Left and right are as seen by someone in front of a place who looks at it; metres are from edge to edge.";
  for (std::size_t anchor = 0; anchor < kNumReceptacles; ++anchor) {
    if (!places[anchor].known) continue;
    std::vector<std::pair<double, std::size_t>> others;
    for (std::size_t r = 0; r < kNumReceptacles; ++r) {
      if (r != anchor && places[r].known) others.emplace_back(GapFrom(places[anchor], places[r]).Length(), r);
    }
    std::sort(others.begin(), others.end());
    text.append("\nAround the ").append(Name(anchor)).append(":");
    for (std::size_t k = 0; k < others.size(); ++k) {
      const auto& [length, r] = others[k];
      char metres[32];
      std::snprintf(metres, sizeof metres, " %.1f m", length);
      text.append(k == 0 ? " the " : "; the ").append(Name(r)).append(metres);
      SaySides(GapFrom(places[anchor], places[r]), &text);
      if (IsNextTo(places, anchor, r)) text.append(", next to it");
    }
    text.append(".");
  }
  for (const auto& [counter, drawer] : {std::pair{kLeftCounter, kLeftDrawer}, std::pair{kRightCounter, kRightDrawer}}) {
    if (places[counter].known)
      text.append("\nUnder the ").append(Name(counter)).append(": the ").append(Name(drawer)).append(".");
  }
  return text;
}

}  // namespace embodied_mem::eb_habitat

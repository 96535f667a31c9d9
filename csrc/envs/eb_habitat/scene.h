// Where a scene's receptacles are, and what is near a robot that has walked to one of them.
//
// The files tell the box that the objects of a receptacle span, not where the robot stands after a walk: a Stand is an
// estimate, held against the recorded traces in tests/worlds/eb_habitat/test_eb_habitat_reach.py. Immutable, shared by tasks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "envs/eb_habitat/domain.h"

namespace embodied_mem::eb_habitat {

struct Point {  // horizontal, metres
  double x = 0, z = 0;
};

struct Box {
  Point min, max;
  Point Centre() const { return {(min.x + max.x) / 2, (min.z + max.z) / 2}; }
};

// Where the robot is and where it looks (a unit vector).
struct Stand {
  Point at, heading;
};

struct Scene {
  std::string name;
  std::array<bool, kNumReceptacles> known{};  // which of the next two are told
  std::array<Box, kNumReceptacles> boxes;
  std::array<Stand, kNumReceptacles> stands;
};

// Sets the stands of a scene by its boxes.
void EstimateStands(Scene* scene);

using Scenes = std::unordered_map<std::string, std::shared_ptr<const Scene>>;

// Limits of the original's two tests of being near: a place or a part; an object to pick.
struct Limits {
  double distance_m, angle_rad;
};
constexpr Limits kNearTarget = {2.0, 1.57}, kNearObject = {1.5, 1.0};

bool IsNear(const Stand& stand, const Point& point, const Limits& limits);

// The scenes in the content of a scenes.json. Throws GameFileError.
Scenes ReadScenes(std::string_view json, const std::string& file);

}  // namespace embodied_mem::eb_habitat

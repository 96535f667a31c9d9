// One episode: where its objects start, which doors are open, what is asked, and the subgoals that measure progress.
//
// A Task is immutable and shared by any number of envs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "envs/eb_habitat/goal.h"
#include "envs/eb_habitat/scene.h"

namespace embodied_mem::eb_habitat {

constexpr std::size_t kMaxSubgoals = 64;  // a set of them is one word

struct ObjectStart {
  std::uint8_t receptacle;
  Point position;
};

struct Task {
  std::string id, instruction, scene_name;
  std::shared_ptr<const Scene> scene;  // null where no file told its boxes
  std::string layout;                  // `DescribeLayout`, of the scene or else of the boxes that the objects span
  ObjectNames names;                   // in handle order
  std::vector<ObjectStart> objects;
  std::uint8_t open = 0;  // parts open at the start, as bits
  GoalTree goal;
  std::vector<std::vector<Literal>> subgoals;
  bool satisfied_at_start = false;
};

// The tasks in the content of a converted episode file, in its order. Throws GameFileError.
std::vector<std::shared_ptr<const Task>> ReadTasks(std::string_view json, const std::string& file,
                                                   const Scenes& scenes);

}  // namespace embodied_mem::eb_habitat

#include "envs/eb_habitat/task.h"

#include <algorithm>
#include <utility>

#include "core/json_fields.h"
#include "envs/eb_habitat/env.h"
#include "envs/eb_habitat/layout.h"

namespace embodied_mem::eb_habitat {
namespace {

void ReadObjects(const JsonValue& episode, Task* task) {
  const auto& objects = ListMember(episode, "objects");
  if (objects.empty() || objects.size() > kMaxObjects)
    throw TextError{episode.offset,
                    "expected 1 to " + std::to_string(kMaxObjects) + " objects, got " + std::to_string(objects.size())};
  for (const JsonValue& entry : objects) {
    const std::string& handle = StringMember(entry, "handle");
    if (!task->names.handles.empty() && !(task->names.handles.back() < handle))
      throw TextError{entry.offset, "expected objects in the order of their handles, each once; " + Quote(handle) +
                                        " follows " + Quote(task->names.handles.back())};
    const std::uint8_t category = FindCategory(StringMember(entry, "category"));
    if (category == kNowhere)
      throw TextError{entry.offset, "no category is called " + Quote(StringMember(entry, "category"))};
    const std::uint8_t receptacle = FindReceptacle(StringMember(entry, "receptacle"));
    if (receptacle == kNowhere)
      throw TextError{entry.offset, "no receptacle is called " + Quote(StringMember(entry, "receptacle"))};
    const JsonValue& position = Member(entry, "pos", JsonValue::Kind::kArray);
    if (position.items.size() != 3)
      throw TextError{position.offset,
                      "'pos': expected [x, y, z], got " + std::to_string(position.items.size()) + " entries"};
    task->names.handles.push_back(handle);
    task->names.categories.push_back(category);
    task->objects.push_back({receptacle, {Number(position.items[0], "x"), Number(position.items[2], "z")}});
  }
}

Scene SceneOf(const Task& task) {
  Scene scene;
  scene.name = task.scene_name;
  for (const ObjectStart& object : task.objects) {
    const auto& [receptacle, point] = object;
    Box& box = scene.boxes[receptacle];
    if (!scene.known[receptacle]) box = {point, point};
    scene.known[receptacle] = true;
    box.min = {std::min(box.min.x, point.x), std::min(box.min.z, point.z)};
    box.max = {std::max(box.max.x, point.x), std::max(box.max.z, point.z)};
  }
  EstimateStands(&scene);
  return scene;
}

std::shared_ptr<const Task> ReadTask(const JsonValue& value, const Scenes& scenes) {
  auto task = std::make_shared<Task>();
  task->id = StringMember(value, "id");
  task->instruction = StringMember(value, "instruction");
  task->scene_name = StringMember(value, "scene");
  if (const auto scene = scenes.find(task->scene_name); scene != scenes.end()) task->scene = scene->second;
  ReadObjects(value, task.get());
  task->layout = DescribeLayout(task->scene != nullptr ? *task->scene : SceneOf(*task));
  for (const auto& [name, state] : Member(value, "initial_articulated", JsonValue::Kind::kObject).members) {
    const std::uint8_t part = FindPart(name);
    if (part == kNowhere) throw TextError{state.offset, "no articulated part is called " + Quote(name)};
    Expect(state, JsonValue::Kind::kString, "the state of " + Quote(name));
    if (state.text != "open" && state.text != "closed")
      throw TextError{state.offset, Quote(name) + ": expected open or closed, got " + Quote(state.text)};
    if (state.text == "open") task->open = static_cast<std::uint8_t>(task->open | (1U << part));
  }
  task->goal = ReadGoal(Member(value, "goal", JsonValue::Kind::kObject), task->names);
  const auto& subgoals = ListMember(value, "subgoals_symbolic");
  if (subgoals.empty() || subgoals.size() > kMaxSubgoals)
    throw TextError{value.offset, "expected 1 to " + std::to_string(kMaxSubgoals) +
                                      " entries in 'subgoals_symbolic', "
                                      "got " +
                                      std::to_string(subgoals.size())};
  for (const JsonValue& subgoal : subgoals) {
    Expect(subgoal, JsonValue::Kind::kArray, "a subgoal");
    if (subgoal.items.empty()) throw TextError{subgoal.offset, "a subgoal without literals"};
    task->subgoals.emplace_back();
    for (const JsonValue& literal : subgoal.items)
      task->subgoals.back().push_back(ReadSubgoalLiteral(literal, task->names));
  }
  Env env;
  env.Reset(task, {}, 0);
  task->satisfied_at_start = env.won();
  return task;
}

}  // namespace

std::vector<std::shared_ptr<const Task>> ReadTasks(std::string_view json, const std::string& file,
                                                   const Scenes& scenes) {
  return ReadJson(json, file, [&](const JsonValue& root) {
    std::vector<std::shared_ptr<const Task>> tasks;
    for (const JsonValue& episode : ListMember(root, "episodes")) tasks.push_back(ReadTask(episode, scenes));
    return tasks;
  });
}

}  // namespace embodied_mem::eb_habitat

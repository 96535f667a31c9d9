// Reads an annotation file of a trial (the layout of json_2.1.0) into a Task.
#include <cmath>
#include <utility>

#include "core/json_fields.h"
#include "envs/eb_alfred/env.h"
#include "envs/eb_alfred/scene.h"

namespace embodied_mem::eb_alfred {
namespace {

using Kind = JsonValue::Kind;

constexpr std::pair<const char*, TaskType> kTaskTypes[] = {
    {"pick_and_place_simple", TaskType::kPlace},
    {"pick_two_obj_and_place", TaskType::kPlaceTwo},
    {"look_at_obj_in_light", TaskType::kLook},
    {"pick_clean_then_place_in_recep", TaskType::kClean},
    {"pick_heat_then_place_in_recep", TaskType::kHeat},
    {"pick_cool_then_place_in_recep", TaskType::kCool},
    {"pick_and_place_with_movable_recep", TaskType::kPlaceMovable},
};

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool Contains(const std::string& text, const std::string& part) {
  return !part.empty() && text.find(part) != std::string::npos;
}

// What its type says of a thing. A basin's type is "SinkBasin", its id ends so.
Thing MakeThing(const Catalog& catalog, std::string id, std::uint16_t type_index, Point position) {
  const Type& type = catalog.types[type_index];
  Thing thing;
  thing.id = std::move(id);
  thing.name = type.name;
  thing.type = type_index;
  thing.position = position;
  thing.pickupable = type.pickupable;
  thing.receptacle = type.receptacle;
  thing.openable = type.openable;
  thing.toggleable = type.toggleable;
  thing.sliceable = type.sliceable;
  thing.is_fridge = type.name == "Fridge";
  thing.is_microwave = type.name == "Microwave";
  thing.is_sink_basin = EndsWith(thing.id, "SinkBasin");
  thing.is_stove_burner = type.name == "StoveBurner";
  thing.starts_open = type.openable && type.movable;  // boxes; the expert puts things into them unopened
  return thing;
}

void AddPlaces(Task* task) {
  for (const Place& place : task->floor_plan->places) {
    Thing thing = MakeThing(*task->catalog, place.id, place.type, place.position);
    thing.is_static = true;
    thing.pickupable = false;
    thing.openable = place.openable;
    thing.toggleable = place.toggleable;
    thing.group = place.group;
    thing.basin = place.basin;
    thing.in = place.on;
    if (thing.receptacle && (EndsWith(place.id, "|SinkBasin") || EndsWith(place.id, "|BathtubBasin")))
      thing.basin = static_cast<std::uint16_t>(task->things.size());
    task->things.push_back(std::move(thing));
  }
  task->num_places = task->things.size();
}

// The objects must come in the trial file in the same order: the derived file holds what that one cannot say. It may
// leave some out (one of the 10,059 at hand).
void AddObjects(const Trial& trial, const JsonValue& scene, Task* task) {
  const JsonValue& poses = Member(scene, "object_poses", Kind::kArray);
  const std::size_t base = task->things.size();
  auto pose = poses.items.begin();
  for (const StartObject& object : trial.objects) {
    const std::string& type = task->catalog->types[object.type].name;
    const auto is_type = [&](const JsonValue& entry) {
      const std::string& name = StringMember(entry, "objectName");
      return name.compare(0, name.find('_'), type) == 0;
    };
    while (pose != poses.items.end() && !is_type(*pose)) ++pose;
    if (pose == poses.items.end()) {
      throw TextError{poses.offset, "object_poses: expected the objects that " + task->catalog->file +
                                        " has for this trial in the same order, found none for " + Quote(object.id)};
    }
    ++pose;
    Thing thing = MakeThing(*task->catalog, object.id, object.type, object.position);
    thing.in = object.in;
    if (object.in_object != kNone) thing.in.push_back(static_cast<std::uint16_t>(base + object.in_object));
    const std::uint16_t beside = object.in.empty() ? object.near : object.in[0];
    if (beside != kNone) thing.group = task->things[beside].group;
    task->things.push_back(std::move(thing));
  }
}

void AddSlices(const JsonValue& where, Task* task) {
  const std::size_t count = task->things.size();
  for (std::size_t i = task->num_places; i < count; ++i) {
    if (!task->things[i].sliceable) continue;
    const std::string name = task->catalog->types[task->things[i].type].name + "Sliced";
    const auto type = task->catalog->type_by_name.find(name);
    if (type == task->catalog->type_by_name.end())
      throw TextError{where.offset, "the scene holds a " + Quote(task->things[i].id) + ", but " + task->catalog->file +
                                        " has no type " + Quote(name)};
    task->things[i].slices = static_cast<std::uint16_t>(task->things.size());
    for (std::size_t k = 1; k <= kNumSlices; ++k) {
      Thing slice = MakeThing(*task->catalog, task->things[i].id + "|" + name + "_" + std::to_string(k), type->second,
                              task->things[i].position);
      slice.is_slice = true;
      slice.whole = static_cast<std::uint16_t>(i);
      slice.in = task->things[i].in;
      slice.group = task->things[i].group;
      task->things.push_back(std::move(slice));
    }
  }
  if (task->things.size() > kMaxThings)
    throw TextError{where.offset, "a scene of more than " + std::to_string(kMaxThings) + " things"};
}

void ReadToggles(const JsonValue& scene, Task* task) {
  for (const JsonValue& toggle : ListMember(scene, "object_toggles")) {
    const std::string& type = StringMember(toggle, "objectType");
    const bool on = BoolMember(toggle, "isOn");
    for (Thing& thing : task->things) {
      if (thing.toggleable && task->catalog->types[thing.type].name == type) thing.starts_on = on;
    }
  }
}

// A thing fits a target if its id contains the name.
void SetRoles(const JsonValue& parameters, Task* task) {
  task->object_target = StringMember(parameters, "object_target");
  task->parent_target = StringMember(parameters, "parent_target");
  task->movable_target = StringMember(parameters, "mrecep_target");
  task->toggle_target = StringMember(parameters, "toggle_target");
  task->sliced = BoolMember(parameters, "object_sliced");
  const auto required = [&](const std::string& target, const char* name) {
    if (target.empty()) throw TextError{parameters.offset, std::string(name) + ": expected a type, got none"};
  };
  required(task->object_target, "object_target");
  if (task->type == TaskType::kLook) {
    required(task->toggle_target, "toggle_target");
  } else {
    required(task->parent_target, "parent_target");
  }
  if (task->type == TaskType::kPlaceMovable) required(task->movable_target, "mrecep_target");
  const std::string slice = task->object_target + "Sliced";
  for (std::size_t i = 0; i < task->things.size(); ++i) {
    Thing& thing = task->things[i];
    const bool is_piece = thing.pickupable && Contains(thing.id, slice);
    const bool is_object = task->sliced ? is_piece : thing.pickupable && Contains(thing.id, task->object_target);
    const bool fits[] = {is_object, is_piece, thing.pickupable && Contains(thing.id, task->movable_target),
                         thing.receptacle && Contains(thing.id, task->parent_target),
                         thing.toggleable && Contains(thing.id, task->toggle_target)};
    for (std::size_t bit = 0; bit < task->by_role.size(); ++bit) {
      if (!fits[bit]) continue;
      thing.roles = static_cast<std::uint8_t>(thing.roles | (1U << bit));
      task->by_role[bit].push_back(static_cast<std::uint16_t>(i));
    }
  }
}

void ReadAgent(const JsonValue& scene, Task* task) {
  const JsonValue& pose = Member(scene, "init_action", Kind::kObject);
  const auto number = [&](const char* name) { return Number(Member(pose, name, Kind::kNumber), name); };
  task->agent = {static_cast<float>(number("x")), static_cast<float>(number("y")), static_cast<float>(number("z"))};
  const double angle = number("rotation") * 3.14159265358979323846 / 180;
  task->facing_x = static_cast<float>(std::sin(angle));
  task->facing_z = static_cast<float>(std::cos(angle));
}

std::string Instruction(const JsonValue& root) {
  const auto& annotations = ListMember(Member(root, "turk_annotations", Kind::kObject), "anns");
  const std::size_t index = Index(Member(root, "repeat_idx", Kind::kNumber), annotations.size(), "repeat_idx");
  const std::string& text = StringMember(annotations[index], "task_desc");
  if (text.empty()) throw TextError{annotations[index].offset, "task_desc: expected a sentence, got an empty text"};
  return text;
}

}  // namespace

std::shared_ptr<const Task> ReadTask(std::string_view json, const std::string& file,
                                     std::shared_ptr<const Catalog> catalog, const std::string& trial,
                                     const std::string& id, const std::string& instruction) {
  if (catalog == nullptr) throw InvalidInputError("expected a catalog, got none");
  const auto found = catalog->trials.find(trial);
  if (found == catalog->trials.end())
    throw GameFileError(catalog->file + ": 'trials' has no entry for " + Quote(trial) + ", which " + file + " needs");
  return ReadJson(json, file, [&](const JsonValue& root) {
    auto task = std::make_shared<Task>();
    task->id = id;
    task->trial = trial;
    task->catalog = catalog;
    task->floor_plan = found->second.floor_plan;
    task->type_name = StringMember(root, "task_type");
    bool known = false;
    for (const auto& [name, type] : kTaskTypes) {
      if (task->type_name != name) continue;
      task->type = type;
      known = true;
    }
    if (!known) throw TextError{root.offset, "task_type: unknown type " + Quote(task->type_name)};
    task->instruction = instruction.empty() ? Instruction(root) : instruction;
    const JsonValue& scene = Member(root, "scene", Kind::kObject);
    AddPlaces(task.get());
    AddObjects(found->second, scene, task.get());
    AddSlices(scene, task.get());
    ReadToggles(scene, task.get());
    ReadAgent(scene, task.get());
    SetRoles(Member(root, "pddl_params", Kind::kObject), task.get());
    BuildActions(task.get());
    Env env;
    env.Reset(task, {});
    task->satisfied_at_start = env.won();
    return std::shared_ptr<const Task>(std::move(task));
  });
}

}  // namespace embodied_mem::eb_alfred

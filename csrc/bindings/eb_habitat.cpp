// Binds the EB-Habitat world: scenes, tasks, one env, the vector env. The GIL is released while files are read and
// while the vector env plays; a single Env, whose step takes microseconds, keeps it.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "bindings/module.h"
#include "bindings/vector_env.h"
#include "core/error.h"
#include "envs/eb_habitat/env.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

using namespace eb_habitat;  // NOLINT: this file is the face of that namespace

// pybind11 holders are of non-const types.
struct ScenesHandle {
  Scenes scenes;
};
struct EbHabitatTask {
  std::shared_ptr<const Task> task;

  const std::shared_ptr<const Task>& shared() const { return task; }
};

py::str Text(std::string_view text) { return py::str(text.data(), text.size()); }

// (predicate, arguments...).
py::tuple DescribeLiteral(const Task& task, const Literal& literal) {
  const py::str name(PredicateName(literal));
  const auto handle = [&] { return TextToPython(task.names.handles[literal.object]); };
  switch (literal.predicate) {
    case Predicate::kOnTop: return py::make_tuple(name, handle(), Text(ReceptacleTarget(literal.place).name));
    case Predicate::kIn: return py::make_tuple(name, handle(), Text(kTargets[literal.place].name));
    case Predicate::kHolding:
    case Predicate::kRobotAtObject: return py::make_tuple(name, handle());
    case Predicate::kNotHolding: return py::make_tuple(name);
    case Predicate::kOpened:
    case Predicate::kClosed:
    case Predicate::kRobotAt: break;
  }
  return py::make_tuple(name, Text(kTargets[literal.place].name));
}

// (op, children...) down to literals.
py::tuple DescribeGoal(const Task& task, std::uint32_t index) {
  const GoalTree::Node& node = task.goal.nodes[index];
  if (node.op == Op::kLiteral) return DescribeLiteral(task, node.literal);
  py::tuple tree(node.count + 1);
  tree[0] = py::str(OpName(node.op));
  for (std::uint32_t k = 0; k < node.count; ++k) tree[k + 1] = DescribeGoal(task, task.goal.children[node.first + k]);
  return tree;
}

py::list DescribeSubgoals(const Task& task) {
  py::list subgoals;
  for (const auto& subgoal : task.subgoals) {
    py::list literals;
    for (const Literal& literal : subgoal) literals.append(DescribeLiteral(task, literal));
    subgoals.append(literals);
  }
  return subgoals;
}

py::dict DescribeState(const Env& env) {
  const Task& task = *env.task();
  py::dict objects, parts;
  py::list near, reached;
  for (std::uint16_t o = 0; o < env.objects().size(); ++o) {
    const ObjectState& object = env.objects()[o];
    py::dict entry;
    entry["category"] = Text(kCategories[task.names.categories[o]]);
    entry["receptacle"] = o == env.held() ? py::object(py::none()) : Text(ReceptacleTarget(object.receptacle).name);
    entry["held"] = o == env.held();
    entry["near"] = env.NearObject(o);
    entry["pickable"] = o != env.held() && env.Pickable(o);
    entry["position"] = object.position_known && o != env.held()
                            ? py::object(py::make_tuple(object.position.x, object.position.z))
                            : py::none();
    objects[TextToPython(task.names.handles[o])] = entry;
  }
  for (std::uint8_t t = 0; t < kNumTargets; ++t) {
    if (t < kNumParts) parts[Text(kTargets[t].name)] = env.open(t);
    if (env.NearTarget(t)) near.append(Text(kTargets[t].name));
  }
  for (std::size_t k = 0; k < task.subgoals.size(); ++k) reached.append(((env.reached() >> k) & 1U) != 0);
  py::dict state;
  state["at"] = env.at() == kNowhere ? py::object(py::none()) : Text(kTargets[env.at()].name);
  state["holding"] = env.held() == kNoObject ? py::object(py::none()) : TextToPython(task.names.handles[env.held()]);
  state["objects"] = objects;
  state["open"] = parts;
  state["near"] = near;
  state["reached"] = reached;
  return state;
}

Env::Options ReadOptions(const std::string& reach, std::int64_t max_invalid, bool ends_when_won, bool relations) {
  if (reach != "group" && reach != "geometry")
    throw InvalidInputError("reach: expected group or geometry, got '" + reach + "'");
  if (max_invalid < 1 || max_invalid > std::numeric_limits<int>::max())
    throw InvalidInputError("max_invalid: expected 1 to " + std::to_string(std::numeric_limits<int>::max()) + ", got " +
                            std::to_string(max_invalid));
  return {reach == "group" ? Reach::kGroup : Reach::kGeometry, static_cast<int>(max_invalid), ends_when_won, relations};
}

struct EbHabitatWorld {
  using Env = eb_habitat::Env;
  using Task = EbHabitatTask;

  // num_invalid int64[B].
  static void AddExtras(const VectorEnv<Env>& envs, const std::vector<std::shared_ptr<Task>>&,
                        std::vector<py::object>* answers) {
    answers->push_back(Column<std::int64_t>(envs, [](const Env& env) { return env.num_invalid(); }));
  }
};
using EbHabitatEnv = EnvHandle<EbHabitatWorld>;

}  // namespace

void BindEbHabitat(py::module_& parent) {
  py::module_ module = parent.def_submodule("eb_habitat", "The world of EB-Habitat.");
  py::list actions;
  for (int id = 0; id < static_cast<int>(kNumActions); ++id) actions.append(Text(ActionText(id)));
  module.attr("ACTIONS") = py::tuple(actions);
  py::list targets;
  for (const Target& target : kTargets)
    targets.append(py::make_tuple(Text(target.name), Text(target.phrase), Text(target.looks)));
  module.attr("TARGETS") = py::tuple(targets);

  py::class_<ScenesHandle>(module, "Scenes", "Where receptacles are, by scene, immutable.")
      .def(py::init<>())
      .def_static(
          "from_text",
          [](const py::bytes& json, const std::string& name) {
            const std::string text = json;
            const py::gil_scoped_release release;
            return ScenesHandle{ReadScenes(text, name)};
          },
          py::arg("json"), py::arg("name"), "The scenes in the content of a scenes.json. Raises GameFileError.")
      .def(
          "stands",
          [](const ScenesHandle& self, const std::string& scene) {
            const auto found = self.scenes.find(scene);
            if (found == self.scenes.end()) throw InvalidInputError("no scene is called '" + scene + "'");
            py::dict stands;
            for (std::uint8_t r = 0; r < kNumReceptacles; ++r) {
              const Stand& stand = found->second->stands[r];
              if (found->second->known[r])
                stands[Text(ReceptacleTarget(r).name)] =
                    py::make_tuple(stand.at.x, stand.at.z, stand.heading.x, stand.heading.z);
            }
            return stands;
          },
          py::arg("scene"), "Estimated (x, z, heading x, heading z) after navigating to each known receptacle.");

  py::class_<EbHabitatTask, std::shared_ptr<EbHabitatTask>>(module, "Task",
                                                            "One episode, immutable, shared by any number of envs.")
      .def_property_readonly("name", [](const EbHabitatTask& self) { return self.task->id; })
      .def_property_readonly("task", [](const EbHabitatTask& self) { return self.task->instruction; })
      .def_property_readonly("scene", [](const EbHabitatTask& self) { return self.task->scene_name; })
      .def_property_readonly(
          "layout", [](const EbHabitatTask& self) { return self.task->layout; },
          "How places stand to each other, a line each, as the first text tells it; empty where that is not known.")
      .def_property_readonly("satisfied_at_start",
                             [](const EbHabitatTask& self) { return self.task->satisfied_at_start; })
      .def_property_readonly(
          "goal", [](const EbHabitatTask& self) { return DescribeGoal(*self.task, 0); },
          "Nested (op, children...) down to (predicate, arguments...), quantifiers expanded.")
      .def_property_readonly("subgoals", [](const EbHabitatTask& self) { return DescribeSubgoals(*self.task); })
      .def("__repr__", [](const EbHabitatTask& self) {
        return "<eb_habitat.Task " + self.task->id + ": " + self.task->instruction + ">";
      });

  module.def(
      "read_tasks",
      [](const py::bytes& json, const std::string& name, const ScenesHandle& scenes) {
        const std::string text = json;
        std::vector<std::shared_ptr<EbHabitatTask>> handles;
        const py::gil_scoped_release release;
        for (auto& task : ReadTasks(text, name, scenes.scenes))
          handles.push_back(std::make_shared<EbHabitatTask>(EbHabitatTask{std::move(task)}));
        return handles;
      },
      py::arg("json"), py::arg("name"), py::arg("scenes"),
      "The tasks in the content of a converted episode file. Raises GameFileError.");

  BindEnv<EbHabitatWorld>(module)
      .def(py::init([](std::shared_ptr<EbHabitatTask> task, std::uint64_t seed, const std::string& reach,
                       std::int64_t max_invalid, bool ends_when_won, bool relations) {
             EbHabitatEnv handle;
             handle.env.Reset(task == nullptr ? nullptr : task->task,
                              ReadOptions(reach, max_invalid, ends_when_won, relations), seed);
             handle.task = std::move(task);
             return handle;
           }),
           py::arg("task"), py::arg("seed") = 0, py::arg("reach") = "group", py::arg("max_invalid") = 10,
           py::arg("ends_when_won") = true, py::arg("relations") = true)
      .def_property_readonly("num_invalid", [](const EbHabitatEnv& self) { return self.env.num_invalid(); })
      .def(
          "state", [](const EbHabitatEnv& self) { return DescribeState(self.env); },
          "The hidden state as a dict: at, holding, objects, open, near, reached.");

  BindVectorEnv<EbHabitatWorld>(module).def(
      py::init([](std::size_t num_envs, std::size_t max_steps, std::size_t num_threads, const std::string& reach,
                  std::int64_t max_invalid, bool ends_when_won, bool relations) {
        return std::make_unique<VectorEnvHandle<EbHabitatWorld>>(
            num_envs, max_steps, num_threads, ReadOptions(reach, max_invalid, ends_when_won, relations));
      }),
      py::arg("num_envs"), py::arg("max_steps"), py::arg("num_threads"), py::arg("reach"), py::arg("max_invalid"),
      py::arg("ends_when_won"), py::arg("relations"));
}

}  // namespace embodied_mem

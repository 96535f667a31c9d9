// Binds EB-ALFRED: the catalog of floor plans, tasks, one env, the vector env. The GIL is released while files are read
// and while the vector env plays. A single Env keeps it: a step takes microseconds, valid_commands (one try of each
// action) a millisecond at most.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/module.h"
#include "bindings/vector_env.h"
#include "core/error.h"
#include "envs/eb_alfred/env.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

// pybind11 holders are of non-const types.
struct CatalogHandle {
  std::shared_ptr<const eb_alfred::Catalog> catalog;
};

// A Task with its actions as one Python tuple, shared by all answers: a list of 250 would cost as much as the step.
class EbAlfredTask {
 public:
  explicit EbAlfredTask(std::shared_ptr<const eb_alfred::Task> task)
      : task_(std::move(task)), actions_(task_->actions.size()) {
    for (std::size_t i = 0; i < task_->actions.size(); ++i) actions_[i] = py::str(task_->actions[i].text);
  }

  const std::shared_ptr<const eb_alfred::Task>& shared() const { return task_; }
  const eb_alfred::Task& task() const { return *task_; }
  const py::tuple& actions() const { return actions_; }
  py::str Text(std::size_t action) const { return actions_[action]; }

 private:
  std::shared_ptr<const eb_alfred::Task> task_;
  py::tuple actions_;
};

struct EbAlfredWorld {
  using Env = eb_alfred::Env;
  using Task = EbAlfredTask;

  // admissible_commands (a tuple per env: the whole list of actions, as an agent is given it), action_valid bool[B],
  // num_invalid int64[B].
  static void AddExtras(const VectorEnv<Env>& envs, const std::vector<std::shared_ptr<Task>>& tasks,
                        std::vector<py::object>* answers) {
    py::list lists(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      py::tuple actions = tasks[i] == nullptr ? py::tuple() : tasks[i]->actions();
      PyList_SET_ITEM(lists.ptr(), static_cast<Py_ssize_t>(i), actions.release().ptr());
    }
    answers->push_back(std::move(lists));
    answers->push_back(Column<bool>(envs, [](const Env& env) { return env.valid(); }));
    answers->push_back(Column<std::int64_t>(envs, [](const Env& env) { return env.num_invalid(); }));
  }
};
using EbAlfredEnv = EnvHandle<EbAlfredWorld>;

eb_alfred::Options ReadOptions(const std::string& reach, const std::string& instance, bool needs_knife, bool shows_view,
                               std::int64_t max_invalid, bool ends_when_won) {
  eb_alfred::Options options;
  if (reach != "group" && reach != "geometry")
    throw InvalidInputError("reach: expected \"group\" or \"geometry\", got \"" + reach + "\"");
  if (instance != "found" && instance != "nearest")
    throw InvalidInputError("instance: expected \"found\" or \"nearest\", got \"" + instance + "\"");
  if (max_invalid < 1 || max_invalid > eb_alfred::kMaxInvalid)
    throw InvalidInputError("max_invalid: expected 1 to " + std::to_string(eb_alfred::kMaxInvalid) + ", got " +
                            std::to_string(max_invalid));
  options.reach = reach == "group" ? eb_alfred::Reach::kGroup : eb_alfred::Reach::kGeometry;
  options.instance = instance == "found" ? eb_alfred::Instance::kFound : eb_alfred::Instance::kNearest;
  options.needs_knife = needs_knife;
  options.shows_view = shows_view;
  options.max_invalid = static_cast<std::uint16_t>(max_invalid);
  options.ends_when_won = ends_when_won;
  return options;
}

py::dict DescribeGoal(const eb_alfred::Task& task) {
  py::dict goal;
  goal["task_type"] = task.type_name;
  goal["object_target"] = task.object_target;
  goal["parent_target"] = task.parent_target;
  goal["movable_target"] = task.movable_target;
  goal["toggle_target"] = task.toggle_target;
  goal["sliced"] = task.sliced;
  return goal;
}

py::dict DescribeState(const eb_alfred::Env& env) {
  const eb_alfred::Task& task = *env.task();
  py::dict things;
  for (std::size_t t = 0; t < task.things.size(); ++t) {
    if (!env.Exists(t)) continue;
    const eb_alfred::Thing& thing = task.things[t];
    py::list holders;
    for (const std::uint16_t holder : env.Holders(t)) holders.append(task.things[holder].id);
    py::dict entry;
    entry["name"] = thing.name;
    entry["type"] = task.catalog->types[thing.type].name;
    entry["in"] = holders;
    entry["visible"] = env.Visible(t);
    entry["held"] = env.held() == t;
    entry["pickupable"] = thing.pickupable;
    entry["receptacle"] = thing.receptacle;
    entry["openable"] = thing.openable;
    entry["open"] = env.Open(t);
    entry["on"] = env.On(t);
    entry["clean"] = env.Clean(t);
    entry["hot"] = env.Hot(t);
    entry["cold"] = env.Cold(t);
    things[py::str(thing.id)] = entry;
  }
  py::dict state;
  state["holding"] = env.held() == eb_alfred::kNone ? "" : task.things[env.held()].id;
  state["found"] = env.found() == eb_alfred::kNone ? "" : task.things[env.found()].id;
  state["things"] = things;
  state["goal"] = DescribeGoal(task);
  return state;
}

}  // namespace

void BindEbAlfred(py::module_& parent) {
  py::module_ module = parent.def_submodule("eb_alfred", "The world of EB-ALFRED.");

  py::class_<CatalogHandle>(module, "Catalog", "Types, floor plans and start positions, immutable.")
      .def_static(
          "from_text",
          [](const py::bytes& json, const std::string& name) {
            const std::string text = json;
            const py::gil_scoped_release release;
            return CatalogHandle{eb_alfred::ReadCatalog(text, name)};
          },
          py::arg("json"), py::arg("name"), "What a floorplans.json holds. Raises GameFileError.")
      .def_property_readonly(
          "trials",
          [](const CatalogHandle& self) {
            std::vector<std::string> names;
            for (const auto& entry : self.catalog->trials) names.push_back(entry.first);
            return names;
          },
          "<task folder>/<trial folder> of every trial, sorted.");

  py::class_<EbAlfredTask, std::shared_ptr<EbAlfredTask>>(
      module, "Task", "One trial with its instruction, immutable, shared by any number of envs.")
      .def_static(
          "from_text",
          [](const py::bytes& json, const std::string& file, const CatalogHandle& catalog, const std::string& trial,
             const std::string& name, const std::string& instruction) {
            const std::string text = json;
            std::shared_ptr<const eb_alfred::Task> task;
            {
              const py::gil_scoped_release release;
              task = eb_alfred::ReadTask(text, file, catalog.catalog, trial, name, instruction);
            }
            return std::make_shared<EbAlfredTask>(std::move(task));
          },
          py::arg("json"), py::arg("file"), py::arg("catalog"), py::arg("trial"), py::arg("name"),
          py::arg("instruction") = "", "The task in the content of an annotation file. Raises GameFileError.")
      .def_property_readonly("name", [](const EbAlfredTask& self) { return self.task().id; })
      .def_property_readonly("task", [](const EbAlfredTask& self) { return self.task().instruction; })
      .def_property_readonly("trial", [](const EbAlfredTask& self) { return self.task().trial; })
      .def_property_readonly(
          "goal", [](const EbAlfredTask& self) { return DescribeGoal(self.task()); },
          "dict: task_type, object_target, parent_target, movable_target, toggle_target, sliced.")
      .def_property_readonly("satisfied_at_start",
                             [](const EbAlfredTask& self) { return self.task().satisfied_at_start; })
      .def_property_readonly("actions", &EbAlfredTask::actions, "A tuple; an action's index is its number.")
      .def_property_readonly(
          "names",
          [](const EbAlfredTask& self) {
            py::dict names;
            for (const eb_alfred::Thing& thing : self.task().things) names[py::str(thing.id)] = thing.name;
            return names;
          },
          "The name of each thing by its id, slices included.")
      .def("__repr__", [](const EbAlfredTask& self) {
        return "<eb_alfred.Task " + self.task().id + ": " + self.task().instruction + ">";
      });

  BindEnv<EbAlfredWorld>(module)
      .def(py::init([](std::shared_ptr<EbAlfredTask> task, const std::string& reach, const std::string& instance,
                       bool needs_knife, bool shows_view, std::int64_t max_invalid, bool ends_when_won) {
             EbAlfredEnv handle;
             handle.env.Reset(task == nullptr ? nullptr : task->shared(),
                              ReadOptions(reach, instance, needs_knife, shows_view, max_invalid, ends_when_won));
             handle.task = std::move(task);
             return handle;
           }),
           py::arg("task"), py::arg("reach") = "group", py::arg("instance") = "found", py::arg("needs_knife") = false,
           py::arg("shows_view") = true, py::arg("max_invalid") = 10, py::arg("ends_when_won") = true)
      .def_property_readonly("feedback", [](const EbAlfredEnv& self) { return TextToPython(self.env.feedback()); })
      .def_property_readonly("action_valid", [](const EbAlfredEnv& self) { return self.env.valid(); })
      .def_property_readonly("num_invalid", [](const EbAlfredEnv& self) { return self.env.num_invalid(); })
      .def_property_readonly("admissible_commands", [](const EbAlfredEnv& self) { return self.task->actions(); })
      .def_property_readonly(
          "valid_commands",
          [](const EbAlfredEnv& self) {
            py::list commands;
            for (const std::uint16_t action : self.env.ValidActions()) commands.append(self.task->Text(action));
            return commands;
          },
          "The actions that would be valid now: hidden knowledge, for experts.")
      .def(
          "state", [](const EbAlfredEnv& self) { return DescribeState(self.env); },
          "The hidden state as a dict: holding and found (ids), things (by id), goal.");

  BindVectorEnv<EbAlfredWorld>(module).def(
      py::init([](std::size_t num_envs, std::size_t max_steps, std::size_t num_threads, const std::string& reach,
                  const std::string& instance, bool needs_knife, bool shows_view, std::int64_t max_invalid,
                  bool ends_when_won) {
        return std::make_unique<VectorEnvHandle<EbAlfredWorld>>(
            num_envs, max_steps, num_threads,
            ReadOptions(reach, instance, needs_knife, shows_view, max_invalid, ends_when_won));
      }),
      py::arg("num_envs"), py::arg("max_steps"), py::arg("num_threads"), py::arg("reach"), py::arg("instance"),
      py::arg("needs_knife"), py::arg("shows_view"), py::arg("max_invalid"), py::arg("ends_when_won"));
}

}  // namespace embodied_mem

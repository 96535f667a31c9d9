// Binds the native world of ScienceWorld: tasks, one env, the vector env. The GIL is released while the vector env
// plays.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/module.h"
#include "bindings/vector_env.h"
#include "envs/scienceworld/env.h"
#include "envs/scienceworld/valid.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

struct ScienceworldTask {  // pybind11 holders are of non-const types
  std::shared_ptr<const scienceworld::Task> task;

  const std::shared_ptr<const scienceworld::Task>& shared() const { return task; }
};

struct ScienceworldWorld {
  using Env = scienceworld::Env;
  using Task = ScienceworldTask;

  // score int64[B].
  static void AddExtras(const VectorEnv<Env>& envs, const std::vector<std::shared_ptr<Task>>&,
                        std::vector<py::object>* answers) {
    answers->push_back(Column<std::int64_t>(envs, [](const Env& env) { return env.score(); }));
  }
};
using Handle = EnvHandle<ScienceworldWorld>;

std::vector<std::string> Commands(const scienceworld::Env& env) {
  if (env.task() == nullptr) return {};
  std::vector<std::string> numbers;
  for (std::size_t k = 0; k < env.num_meanings(); ++k) numbers.push_back(std::to_string(k));
  if (!numbers.empty()) return numbers;
  return scienceworld::ValidCommands(env.world(), env.task()->teleports, env.task()->wires);
}

std::pair<int, int> Subgoals(const scienceworld::Env& env) { return {env.subgoals_met(), env.num_subgoals()}; }

}  // namespace

void BindScienceworld(py::module_& parent) {
  py::module_ module = parent.def_submodule("scienceworld", "The native world of ScienceWorld.");
  py::class_<ScienceworldTask, std::shared_ptr<ScienceworldTask>>(
      module, "Task", "One variation, immutable, shared by any number of envs.")
      .def_property_readonly("name", [](const ScienceworldTask& self) { return self.task->id; })
      .def_property_readonly("task", [](const ScienceworldTask& self) { return self.task->goal; });
  module.def(
      "read_task",
      [](const py::bytes& json, const std::string& name) {
        const std::string text = json;
        return std::make_shared<ScienceworldTask>(ScienceworldTask{scienceworld::ReadTask(text, name)});
      },
      py::arg("json"), py::arg("name"), "The task in a captured beginning. Raises GameFileError.");
  BindEnv<ScienceworldWorld>(module)
      .def(py::init([](std::shared_ptr<ScienceworldTask> task, std::uint64_t seed) {
             Handle handle;
             handle.env.Reset(task == nullptr ? nullptr : task->task, {}, seed);
             handle.task = std::move(task);
             return handle;
           }),
           py::arg("task"), py::arg("seed") = 0)
      .def_property_readonly("admissible_commands", [](const Handle& self) { return Commands(self.env); })
      .def(
          "listed_names",
          [](const Handle& self, bool closed) { return scienceworld::ListedNames(self.env.world(), closed); },
          py::arg("closed") = true, "The names of what can be listed, what is shut away with `closed`.")
      .def_property_readonly("score", [](const Handle& self) { return self.env.score(); })
      .def_property_readonly("subgoals", [](const Handle& self) { return Subgoals(self.env); })
      .def(
          "look", [](const Handle& self) { return TextToPython(self.env.Look()); }, "The room, without a step.")
      .def(
          "inventory", [](const Handle& self) { return TextToPython(self.env.Inventory()); },
          "What is carried, without a step.");
  BindVectorEnv<ScienceworldWorld>(module)
      .def(py::init([](std::size_t num_envs, std::size_t max_steps, std::size_t num_threads) {
             return std::make_unique<VectorEnvHandle<ScienceworldWorld>>(num_envs, max_steps, num_threads);
           }),
           py::arg("num_envs"), py::arg("max_steps"), py::arg("num_threads"))
      .def(
          "subgoals",
          [](const VectorEnvHandle<ScienceworldWorld>& self, std::size_t i) { return Subgoals(self.envs().env(i)); },
          py::arg("index"), "(met, total) of one env.")
      .def(
          "admissible_commands",
          [](const VectorEnvHandle<ScienceworldWorld>& self, std::size_t i) { return Commands(self.envs().env(i)); },
          py::arg("index"), "The commands that one env can play.");
}

}  // namespace embodied_mem

// One Python face for every world's VectorEnv: actions in, lists of strings and arrays out, the GIL released while
// envs are played.
//
// A `World` names its C++ Env, the handle of a task that Python holds (`shared()` is the C++ task), and adds what it
// answers beside text and score:
//   using Env, Task
//   static void AddExtras(const VectorEnv<Env>&, const std::vector<std::shared_ptr<Task>>&, std::vector<py::object>*)
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "envs/vector_env.h"

namespace embodied_mem {

// One env and the handle of its task.
template <typename World>
struct EnvHandle {
  typename World::Env env;
  std::shared_ptr<typename World::Task> task;
};

// A command from Python, valid while `object` lives. A string that UTF-8 cannot carry becomes one that no world knows.
// Throws InvalidInputError for anything that is not a string.
std::string_view CommandFromPython(pybind11::handle object, std::size_t env_index);
// The commands of a sequence; the tuple returned keeps them alive whatever the caller's list does.
pybind11::tuple CommandsFromPython(const pybind11::object& actions, std::vector<std::string_view>* commands);
// Text for Python; what is no UTF-8 in it is replaced.
pybind11::str TextToPython(const std::string& text);

// An array with one entry per env.
template <typename Value, typename Env, typename Read>
pybind11::array_t<Value> Column(const VectorEnv<Env>& envs, const Read& read) {
  pybind11::array_t<Value> column(static_cast<pybind11::ssize_t>(envs.num_envs()));
  Value* data = column.mutable_data();
  for (std::size_t i = 0; i < envs.num_envs(); ++i) data[i] = static_cast<Value>(read(envs.env(i)));
  return column;
}

template <typename World>
class VectorEnvHandle {
 public:
  using Env = typename World::Env;
  using Task = typename World::Task;

  VectorEnvHandle(std::size_t num_envs, std::size_t max_steps, std::size_t num_threads,
                  typename Env::Options options = {})
      : envs_(num_envs, max_steps, num_threads, options), tasks_(num_envs) {}

  const VectorEnv<Env>& envs() const { return envs_; }

  void Reset(const std::vector<std::size_t>& indices, const std::vector<std::shared_ptr<Task>>& tasks,
             const std::vector<std::uint64_t>& seeds) {
    const InUse guard(&busy_);
    std::vector<std::shared_ptr<const typename Env::Task>> plain;
    for (const auto& task : tasks) plain.push_back(task == nullptr ? nullptr : task->shared());
    {
      const pybind11::gil_scoped_release release;
      envs_.Reset(indices, plain, seeds);
    }
    for (std::size_t k = 0; k < indices.size(); ++k) tasks_[indices[k]] = tasks[k];
  }

  pybind11::tuple Step(const pybind11::object& actions) {
    return Step(actions, [this](Env& env, std::size_t i) { env.Step(commands_[i]); });
  }
  // `play(env, i)` plays command(i).
  template <typename Play>
  pybind11::tuple Step(const pybind11::object& actions, const Play& play) {
    const InUse guard(&busy_);
    const pybind11::tuple held = CommandsFromPython(actions, &commands_);
    {
      const pybind11::gil_scoped_release release;
      envs_.Step(commands_, play);
    }
    return Collected();
  }
  std::string_view command(std::size_t i) const { return commands_[i]; }

  // (observations, rewards float64[B], terminations bool[B], truncations bool[B], won bool[B], progress float64[B],
  // the world's extras...).
  pybind11::tuple Answers() const {
    const InUse guard(&busy_);
    return Collected();
  }

  EnvHandle<World> Snapshot(std::size_t i) const {
    const InUse guard(&busy_);
    return {envs_.env(i), tasks_[i]};
  }

  void Restore(std::size_t i, const EnvHandle<World>& snapshot) {
    const InUse guard(&busy_);
    envs_.Restore(i, snapshot.env);
    tasks_[i] = snapshot.task;
  }

 private:
  // One call at a time: a second thread's call while the GIL is released is refused.
  class InUse {
   public:
    explicit InUse(std::atomic<bool>* busy) : busy_(busy) {
      if (busy_->exchange(true))
        throw InvalidInputError(
            "these envs are in use by another thread, or were when this process was forked; one call at a time");
    }
    ~InUse() { busy_->store(false); }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    std::atomic<bool>* busy_;
  };

  pybind11::tuple Collected() const {
    namespace py = pybind11;
    const std::size_t count = envs_.num_envs();
    const auto size = static_cast<py::ssize_t>(count);
    py::list observations(count);
    py::array_t<bool> won(size), terminated(size), truncated(size);
    py::array_t<double> rewards(size), progress(size);
    bool *won_data = won.mutable_data(), *terminated_data = terminated.mutable_data(),
         *truncated_data = truncated.mutable_data();
    double *rewards_data = rewards.mutable_data(), *progress_data = progress.mutable_data();
    for (std::size_t i = 0; i < count; ++i) {
      const Env& env = envs_.env(i);
      const bool started = envs_.started(i);
      PyList_SET_ITEM(observations.ptr(), static_cast<Py_ssize_t>(i), TextToPython(env.observation()).release().ptr());
      won_data[i] = started && env.won();
      rewards_data[i] = won_data[i] ? 1.0 : 0.0;
      terminated_data[i] = started && env.ended();
      truncated_data[i] = started && envs_.truncated(i);
      progress_data[i] = envs_.progress(i);
    }
    std::vector<py::object> answers = {std::move(observations), std::move(rewards), std::move(terminated),
                                       std::move(truncated),    std::move(won),     std::move(progress)};
    World::AddExtras(envs_, tasks_, &answers);
    py::tuple result(answers.size());
    for (std::size_t k = 0; k < answers.size(); ++k)
      PyTuple_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(k), answers[k].release().ptr());
    return result;
  }

  VectorEnv<Env> envs_;
  std::vector<std::shared_ptr<Task>> tasks_;
  std::vector<std::string_view> commands_;  // kept to spare an allocation per step
  mutable std::atomic<bool> busy_{false};
};

// Adds the class "Env" without a constructor, with what every world's has.
template <typename World>
pybind11::class_<EnvHandle<World>> BindEnv(pybind11::module_& module) {
  namespace py = pybind11;
  using Handle = EnvHandle<World>;
  return py::class_<Handle>(module, "Env", "Plays one task, one action at a time. copy() is its snapshot.")
      .def(
          "step",
          [](Handle& self, const py::object& action) {
            self.env.Step(CommandFromPython(action, 0));
            return TextToPython(self.env.observation());
          },
          py::arg("action"), "What the world says to one action.")
      .def(
          "copy", [](const Handle& self) { return self; }, "An independent copy at the same state.")
      .def_property_readonly("task", [](const Handle& self) { return self.task; })
      .def_property_readonly("observation", [](const Handle& self) { return TextToPython(self.env.observation()); })
      .def_property_readonly("ended", [](const Handle& self) { return self.env.ended(); })
      .def_property_readonly("won", [](const Handle& self) { return self.env.won(); })
      .def_property_readonly("progress", [](const Handle& self) { return self.env.progress(); })
      .def_property_readonly("num_steps", [](const Handle& self) { return self.env.num_steps(); });
}

// Adds the class "VectorEnv" without a constructor, which differs by the world's options.
template <typename World, typename Handle = VectorEnvHandle<World>>
pybind11::class_<Handle> BindVectorEnv(pybind11::module_& module) {
  namespace py = pybind11;
  return py::class_<Handle>(module, "VectorEnv", "Several tasks stepped together; see embodied_mem.envs.make.")
      .def_property_readonly("num_envs", [](const Handle& self) { return self.envs().num_envs(); })
      .def_property_readonly("num_threads", [](const Handle& self) { return self.envs().num_threads(); })
      .def("reset", &Handle::Reset, py::arg("indices"), py::arg("tasks"), py::arg("seeds"),
           "Starts tasks[k] in env indices[k] with chance from seeds[k].")
      .def(
          "step", [](Handle& self, const py::object& actions) { return self.Step(actions); }, py::arg("actions"),
          "Plays one action per env; returns the same as answers().")
      .def("answers", &Handle::Answers,
           "(observations, rewards, terminations, truncations, won, progress, extras...) as they stand.")
      .def("snapshot", &Handle::Snapshot, py::arg("index"), "A copy of one env.")
      .def("restore", &Handle::Restore, py::arg("index"), py::arg("snapshot"));
}

}  // namespace embodied_mem

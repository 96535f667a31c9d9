// Binds the vector env: commands in, lists of strings and arrays out, the GIL released while games are played.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "bindings/alfworld.h"
#include "core/error.h"
#include "envs/vector_env.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

using alfworld::Wording;

class VectorEnvHandle {
 public:
  VectorEnvHandle(std::size_t num_envs, std::size_t max_steps, std::size_t num_threads, const std::string& grammar)
      : wording_(ParseWording(grammar)), envs_(num_envs, max_steps, num_threads, wording_), games_(num_envs) {}

  void Reset(const std::vector<std::size_t>& indices, const std::vector<std::shared_ptr<GameHandle>>& games) {
    std::vector<std::shared_ptr<const alfworld::Game>> plain;
    for (const auto& game : games) plain.push_back(game == nullptr ? nullptr : game->shared());
    {
      const py::gil_scoped_release release;
      envs_.Reset(indices, plain);
    }
    for (std::size_t k = 0; k < indices.size(); ++k) games_[indices[k]] = games[k];
  }

  py::tuple Step(const py::object& actions) {
    if (PyUnicode_Check(actions.ptr()))
      throw InvalidInputError("actions: expected a sequence of str, one per env, got one str");
    PyObject* sequence = PySequence_Tuple(actions.ptr());  // keeps the strings alive whatever the caller's list does
    if (sequence == nullptr) throw py::error_already_set();
    const auto held = py::reinterpret_steal<py::tuple>(sequence);
    commands_.clear();
    for (std::size_t i = 0; i < held.size(); ++i)
      commands_.push_back(CommandFromPython(PyTuple_GET_ITEM(sequence, static_cast<Py_ssize_t>(i)), i));
    {
      const py::gil_scoped_release release;
      envs_.Step(commands_);
    }
    return Answers();
  }

  // (observations, rewards float64[B], terminations bool[B], truncations bool[B], won bool[B], progress float64[B],
  // admissible_commands).
  py::tuple Answers() {
    const std::size_t count = envs_.num_envs();
    py::list observations(count), admissible(count);
    const auto size = static_cast<py::ssize_t>(count);
    py::array_t<bool> won(size), terminated(size), truncated(size);
    py::array_t<double> rewards(size), progress(size);
    double* rewards_data = rewards.mutable_data();
    bool* won_data = won.mutable_data();
    bool* terminated_data = terminated.mutable_data();
    bool* truncated_data = truncated.mutable_data();
    double* progress_data = progress.mutable_data();
    for (std::size_t i = 0; i < count; ++i) {
      const alfworld::Env& env = envs_.env(i);
      const std::string& text = env.observation();
      PyObject* observation = PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
      if (observation == nullptr) throw py::error_already_set();
      PyList_SET_ITEM(observations.ptr(), static_cast<Py_ssize_t>(i), observation);
      py::list commands = games_[i] == nullptr ? py::list() : games_[i]->Texts(wording_, envs_.admissible(i));
      PyList_SET_ITEM(admissible.ptr(), static_cast<Py_ssize_t>(i), commands.release().ptr());
      rewards_data[i] = env.won() ? 1.0 : 0.0;
      won_data[i] = terminated_data[i] = env.won();
      truncated_data[i] = envs_.truncated(i);
      progress_data[i] = envs_.progress(i);
    }
    return py::make_tuple(std::move(observations), std::move(rewards), std::move(terminated), std::move(truncated),
                          std::move(won), std::move(progress), std::move(admissible));
  }

  EnvHandle Snapshot(std::size_t i) const { return {envs_.env(i), games_[i]}; }

  void Restore(std::size_t i, const EnvHandle& snapshot) {
    envs_.Restore(i, snapshot.env);
    games_[i] = snapshot.game;
  }

  std::shared_ptr<GameHandle> game(std::size_t i) const {
    static_cast<void>(envs_.env(i));  // checks the index
    return games_[i];
  }
  const VectorEnv& envs() const { return envs_; }

 private:
  Wording wording_;
  VectorEnv envs_;
  std::vector<std::shared_ptr<GameHandle>> games_;
  std::vector<std::string_view> commands_;  // kept to spare an allocation per step
};

}  // namespace

void BindVectorEnv(py::module_& module) {
  py::class_<VectorEnvHandle>(module, "VectorEnv", "Several games stepped together; see embodied_mem.envs.make.")
      .def(py::init<std::size_t, std::size_t, std::size_t, const std::string&>(), py::arg("num_envs"),
           py::arg("max_steps"), py::arg("num_threads"), py::arg("grammar"))
      .def_property_readonly("num_envs", [](const VectorEnvHandle& self) { return self.envs().num_envs(); })
      .def_property_readonly("num_threads", [](const VectorEnvHandle& self) { return self.envs().num_threads(); })
      .def("reset", &VectorEnvHandle::Reset, py::arg("indices"), py::arg("games"),
           "Starts games[k] in env indices[k].")
      .def("step", &VectorEnvHandle::Step, py::arg("actions"),
           "Plays one command per env; returns the same as answers().")
      .def("answers", &VectorEnvHandle::Answers,
           "(observations, rewards, terminations, truncations, won, progress, admissible_commands) as they stand.")
      .def("snapshot", &VectorEnvHandle::Snapshot, py::arg("index"), "A copy of one env.")
      .def("restore", &VectorEnvHandle::Restore, py::arg("index"), py::arg("snapshot"))
      .def("game", &VectorEnvHandle::game, py::arg("index"))
      .def("num_steps", [](const VectorEnvHandle& self, std::size_t i) { return self.envs().env(i).num_steps(); },
           py::arg("index"));
}

}  // namespace embodied_mem

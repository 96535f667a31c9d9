// Binds the household world: houses, tasks, one env, the vector env. The GIL is released while files are read and
// actions are played.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "bindings/alfworld.h"
#include "bindings/module.h"
#include "core/error.h"
#include "envs/partnr/vector_env.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

using namespace partnr;  // NOLINT: this file is the face of that namespace

using TaskPointer = std::shared_ptr<const Task>;

// pybind11 holders are of non-const types.
struct HousesHandle {
  Houses houses;
};
struct TaskHandle {
  TaskPointer task;
};

const char* PredicateName(Predicate predicate) {
  switch (predicate) {
    case Predicate::kOnTop: return "is_on_top";
    case Predicate::kInside: return "is_inside";
    case Predicate::kInRoom: return "is_in_room";
    case Predicate::kOnFloor: return "is_on_floor";
    case Predicate::kNextTo: return "is_next_to";
  }
  return "";
}

py::dict DescribeHouse(const House& house) {
  py::list rooms, furniture;
  for (const Room& room : house.rooms) {
    py::list pieces;
    for (const std::uint16_t f : room.furniture) pieces.append(house.furniture[f].name);
    py::dict entry;
    entry["name"] = room.name;
    entry["type"] = room.type;
    entry["has_floor"] = room.has_floor;
    entry["furniture"] = pieces;
    rooms.append(entry);
  }
  for (const Furniture& piece : house.furniture) {
    py::dict entry;
    entry["name"] = piece.name;
    entry["type"] = piece.type;
    entry["room"] = house.rooms[piece.room].name;
    entry["articulated"] = piece.articulated;
    entry["faucet"] = piece.faucet;
    entry["takes_on"] = piece.takes[0];
    entry["takes_within"] = piece.takes[1];
    entry["position"] = py::make_tuple(piece.position.x, piece.position.y, piece.position.z);
    furniture.append(entry);
  }
  py::dict result;
  result["id"] = house.id;
  result["rooms"] = rooms;
  result["furniture"] = furniture;
  return result;
}

std::string NodeName(const Task& task, Node node) {
  if (node.kind == NodeKind::kObject) return task.objects[node.index].name;
  if (node.kind == NodeKind::kNothing) return "";
  return (node.kind == NodeKind::kFloor ? "floor_" : "") + task.house->NameOf(node);
}

py::dict DescribeState(const Env& env) {
  const Task& task = *env.task();
  const House& house = *task.house;
  py::dict objects;
  for (std::size_t o = 0; o < env.objects().size(); ++o) {
    const ObjectState& state = env.objects()[o];
    py::dict entry;
    entry["handle"] = task.objects[o].handle;
    entry["category"] = task.objects[o].category;
    entry["caption"] = task.objects[o].caption;
    entry["place"] = NodeName(task, state.place);
    entry["room"] = state.place.kind == NodeKind::kNothing ? "" : house.rooms[house.RoomOf(state.place)].name;
    entry["relation"] = state.relation == Relation::kOn ? "on" : "within";
    entry["held"] = o == env.held();
    entry["known"] = state.known;
    entry["moved"] = state.moved;
    entry["position"] = py::make_tuple(state.position.x, state.position.y, state.position.z);
    objects[py::str(task.objects[o].name)] = entry;
  }
  py::list propositions, opened;
  for (std::size_t i = 0; i < task.propositions.size(); ++i) {
    const Proposition& p = task.propositions[i];
    py::list first, second;
    for (const Node node : p.first) first.append(NodeName(task, node));
    for (const Node node : p.second) second.append(NodeName(task, node));
    py::dict entry;
    entry["predicate"] = PredicateName(p.predicate);
    entry["first"] = first;
    entry["second"] = second;
    entry["true_now"] = ((env.score().last >> i) & 1U) != 0;
    entry["true_once"] = ((env.score().ever >> i) & 1U) != 0;
    entry["in_order"] = ((env.score().valid >> i) & 1U) != 0;
    propositions.append(entry);
  }
  for (std::size_t f = 0; f < house.furniture.size(); ++f) {
    if (env.opened(f)) opened.append(house.furniture[f].name);
  }
  py::dict state;
  state["room"] = env.agent_room() == kNone ? "unknown_room" : house.rooms[env.agent_room()].name;
  state["position"] = py::make_tuple(env.agent_position().x, env.agent_position().y, env.agent_position().z);
  state["at"] = NodeName(task, env.agent_at());
  state["holding"] = env.held() == kNone ? "" : task.objects[env.held()].name;
  state["objects"] = objects;
  state["opened"] = opened;
  state["propositions"] = propositions;
  return state;
}

// {"response": str, "room": str, "position": (x, y, z), "revealed": [str]}, each part optional.
Recorded RecordedFromPython(const py::dict& entry) {
  Recorded recorded;
  for (const auto& [key, value] : entry) {
    const auto name = py::cast<std::string>(key);
    if (name == "response") {
      recorded.has_response = true;
      recorded.response = py::cast<std::string>(value);
    } else if (name == "position") {
      const auto xyz = py::cast<std::tuple<double, double, double>>(value);
      recorded.has_pose = true;
      recorded.position = {std::get<0>(xyz), std::get<1>(xyz), std::get<2>(xyz)};
    } else if (name == "room") {
      recorded.room = py::cast<std::string>(value);
    } else if (name == "revealed") {
      recorded.has_revealed = true;
      recorded.revealed = py::cast<std::vector<std::string>>(value);
    } else {
      throw InvalidInputError("recorded: expected response, position, room or revealed, got '" + name + "'");
    }
  }
  return recorded;
}

Labels LabelsFromPython(const std::vector<std::tuple<std::string, std::string, std::optional<std::string>>>& rows) {
  Labels labels;
  for (const auto& [stem, category, caption] : rows) labels[stem] = {category, caption.value_or(""),
      caption.has_value()};
  return labels;
}

class VectorHandle {
 public:
  VectorHandle(std::size_t num_envs, std::size_t max_steps, std::size_t num_threads) : envs_(num_envs, max_steps,
      num_threads) {}

  void Reset(const std::vector<std::size_t>& indices, const std::vector<TaskHandle>& tasks,
      const std::vector<std::uint64_t>& seeds) {
    std::vector<TaskPointer> plain;
    for (const TaskHandle& task : tasks) plain.push_back(task.task);
    const py::gil_scoped_release release;
    envs_.Reset(indices, plain, seeds);
  }

  py::tuple Step(const py::object& actions, const py::object& recorded) {
    if (PyUnicode_Check(actions.ptr()))
      throw InvalidInputError("actions: expected a sequence of str, one per env, got one str");
    PyObject* sequence = PySequence_Tuple(actions.ptr());  // keeps the strings alive whatever the caller's list does
    if (sequence == nullptr) throw py::error_already_set();
    const auto held = py::reinterpret_steal<py::tuple>(sequence);
    actions_.clear();
    for (std::size_t i = 0; i < held.size(); ++i)
      actions_.push_back(CommandFromPython(PyTuple_GET_ITEM(sequence, static_cast<Py_ssize_t>(i)), i));
    std::vector<Recorded> answers;
    std::vector<const Recorded*> pointers;
    if (!recorded.is_none()) {
      const auto entries = py::cast<std::vector<std::optional<py::dict>>>(recorded);
      answers.reserve(entries.size());
      for (const auto& entry : entries) {
        answers.push_back(entry ? RecordedFromPython(*entry) : Recorded());
        pointers.push_back(entry ? &answers.back() : nullptr);
      }
      if (pointers.empty()) throw InvalidInputError("recorded: expected one entry per env, got none");
    }
    {
      const py::gil_scoped_release release;
      envs_.Step(actions_, pointers);
    }
    return Answers();
  }

  // (observations, rewards float64[B], terminations bool[B], truncations bool[B], won bool[B], progress float64[B],
  // sim_steps int64[B]).
  py::tuple Answers() const {
    const std::size_t count = envs_.num_envs();
    const auto size = static_cast<py::ssize_t>(count);
    py::list observations(count);
    py::array_t<bool> won(size), terminated(size), truncated(size);
    py::array_t<double> rewards(size), progress(size);
    py::array_t<std::int64_t> sim_steps(size);
    bool *won_data = won.mutable_data(), *terminated_data = terminated.mutable_data(),
        *truncated_data = truncated.mutable_data();
    double *rewards_data = rewards.mutable_data(), *progress_data = progress.mutable_data();
    std::int64_t* sim_steps_data = sim_steps.mutable_data();
    for (std::size_t i = 0; i < count; ++i) {
      const Env& env = envs_.env(i);
      const bool started = env.task() != nullptr;
      PyObject* text = PyUnicode_DecodeUTF8(env.observation().data(), static_cast<Py_ssize_t>(env.observation().size()),
          "replace");
      if (text == nullptr) throw py::error_already_set();
      PyList_SET_ITEM(observations.ptr(), static_cast<Py_ssize_t>(i), text);
      won_data[i] = started && env.won();
      rewards_data[i] = won_data[i] ? 1.0 : 0.0;
      terminated_data[i] = env.ended();
      truncated_data[i] = started && envs_.truncated(i);
      progress_data[i] = started ? env.percent_complete() : 0.0;
      sim_steps_data[i] = env.sim_steps();
    }
    return py::make_tuple(std::move(observations), std::move(rewards), std::move(terminated), std::move(truncated),
        std::move(won),
                          std::move(progress), std::move(sim_steps));
  }

  const HouseholdVectorEnv& envs() const { return envs_; }
  void Restore(std::size_t i, const Env& snapshot) { envs_.Restore(i, snapshot); }

 private:
  HouseholdVectorEnv envs_;
  std::vector<std::string_view> actions_;  // kept to spare an allocation per step
};

const Env& Ready(const Env& env) {
  if (env.task() == nullptr) throw InvalidInputError("the env was never reset");
  return env;
}

}  // namespace

void BindPartnr(py::module_& parent) {
  py::module_ module = parent.def_submodule("partnr", "The household world of PARTNR and MEMENTO.");

  py::class_<HousesHandle>(module, "Houses", "Houses by scene id, immutable.")
      .def_static("from_text", [](const py::bytes& json, const std::string& name) {
            const std::string text = json;
            const py::gil_scoped_release release;
            return HousesHandle{ReadHouses(text, name)};
          }, py::arg("json"), py::arg("name"), "The houses in the content of a scenes.json. Raises GameFileError.")
      .def_property_readonly("scene_ids", [](const HousesHandle& self) {
            std::vector<std::string> ids;
            for (const auto& entry : self.houses) ids.push_back(entry.first);
            return ids;
          })
      .def("text", [](const HousesHandle& self, const std::string& scene) {
            const auto found = self.houses.find(scene);
            if (found == self.houses.end()) throw InvalidInputError("no house for the scene '" + scene + "'");
            return found->second->text;
          }, py::arg("scene_id"), "What a prompt says of the house.");

  py::class_<TaskHandle>(module, "Task", "One episode, immutable, shared by any number of envs.")
      .def_property_readonly("name", [](const TaskHandle& self) { return self.task->id; })
      .def_property_readonly("task", [](const TaskHandle& self) { return self.task->instruction; })
      .def_property_readonly("scene_id", [](const TaskHandle& self) { return self.task->house->id; })
      .def_property_readonly("house_text", [](const TaskHandle& self) { return self.task->house->text; })
      .def_property_readonly("house", [](const TaskHandle& self) { return DescribeHouse(*self.task->house); })
      .def("__repr__", [](const TaskHandle& self) { return "<partnr.Task " + self.task->id + ": " +
          self.task->instruction + ">"; });

  module.def("read_tasks", [](const py::bytes& json, const std::string& name, const HousesHandle& houses,
                              const std::vector<std::tuple<std::string, std::string,
                                  std::optional<std::string>>>& labels,
                              const TextPlaces& text_places) {
        const std::string text = json;
        std::vector<TaskHandle> handles;
        const py::gil_scoped_release release;
        for (TaskPointer& task : ReadTasks(text, name, houses.houses, LabelsFromPython(labels), text_places))
          handles.push_back({std::move(task)});
        return handles;
      }, py::arg("json"), py::arg("name"), py::arg("houses"), py::arg("labels"), py::arg("text_places"),
      "The tasks in the content of an episode file; labels are (template, category, caption or None). Raises GameFileError.");

  py::class_<Env>(module, "Env", "Plays one task, one action at a time. copy() is its snapshot.")
      .def(py::init([](const TaskHandle& task, std::uint64_t seed) {
             Env env;
             env.Reset(task.task, seed);
             return env;
           }), py::arg("task"), py::arg("seed") = 0)
      .def("step", [](Env& self, const py::object& action, const std::optional<py::dict>& recorded) {
            const std::string_view text = CommandFromPython(action, 0);
            Recorded answer;
            if (recorded) answer = RecordedFromPython(*recorded);
            self.Step(text, recorded ? &answer : nullptr);
            return py::bytes(self.observation()).attr("decode")("utf-8", "replace");
          }, py::arg("action"), py::arg("recorded") = py::none(), "What the world says to one action.")
      .def("copy", [](const Env& self) { return self; }, "An independent copy at the same state.")
      .def("place_agent", [](Env& self, const std::string& room, const std::tuple<double, double, double>& xyz) {
            self.PlaceAgent(room, {std::get<0>(xyz), std::get<1>(xyz), std::get<2>(xyz)});
          }, py::arg("room"), py::arg("position"), "Puts the agent where a recorded run started.")
      .def_property_readonly("observation", [](const Env& self) {
          return py::bytes(self.observation()).attr("decode")("utf-8", "replace"); })
      .def_property_readonly("response", [](const Env& self) {
          return py::bytes(self.response()).attr("decode")("utf-8", "replace"); })
      .def_property_readonly("task", [](const Env& self) { return TaskHandle{self.task()}; })
      .def_property_readonly("ended", &Env::ended)
      .def_property_readonly("won", [](const Env& self) { return Ready(self).won(); })
      .def_property_readonly("progress", [](const Env& self) { return Ready(self).percent_complete(); })
      .def_property_readonly("num_steps", &Env::num_steps)
      .def_property_readonly("sim_steps", &Env::sim_steps)
      .def("state", [](const Env& self) { return DescribeState(Ready(self)); },
           "The hidden state as a dict: room, position, at, holding, objects, opened, propositions.");

  py::class_<VectorHandle>(module, "VectorEnv", "Several tasks stepped together; see embodied_mem.envs.make.")
      .def(py::init<std::size_t, std::size_t, std::size_t>(), py::arg("num_envs"), py::arg("max_steps"),
          py::arg("num_threads"))
      .def_property_readonly("num_envs", [](const VectorHandle& self) { return self.envs().num_envs(); })
      .def_property_readonly("num_threads", [](const VectorHandle& self) { return self.envs().num_threads(); })
      .def("reset", &VectorHandle::Reset, py::arg("indices"), py::arg("tasks"), py::arg("seeds"))
      .def("step", &VectorHandle::Step, py::arg("actions"), py::arg("recorded") = py::none(),
           "Plays one action per env; returns the same as answers().")
      .def("answers", &VectorHandle::Answers,
           "(observations, rewards, terminations, truncations, won, progress, sim_steps) as they stand.")
      .def("snapshot", [](const VectorHandle& self, std::size_t i) { return self.envs().env(i); }, py::arg("index"),
          "A copy of one env.")
      .def("restore", &VectorHandle::Restore, py::arg("index"), py::arg("snapshot"));
}

}  // namespace embodied_mem

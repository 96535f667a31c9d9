// Binds MEMENTO's world: houses, tasks, one env, the vector env. The GIL is released while files are read and
// actions are played.
#include <optional>
#include <string>
#include <utility>

#include "bindings/module.h"
#include "bindings/vector_env.h"
#include "core/error.h"
#include "envs/memento/env.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

using namespace memento;  // NOLINT: this file is the face of that namespace

using TaskPointer = std::shared_ptr<const Task>;

// pybind11 holders are of non-const types.
struct HousesHandle {
  Houses houses;
};
struct TaskHandle {
  TaskPointer task;

  const TaskPointer& shared() const { return task; }
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
    entry["faucet"] = piece.faucet;
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
  for (const auto& [stem, category, caption] : rows)
    labels[stem] = {category, caption.value_or(""), caption.has_value()};
  return labels;
}

struct MementoWorld {
  using Env = memento::Env;
  using Task = TaskHandle;

  // sim_steps int64[B].
  static void AddExtras(const VectorEnv<Env>& envs, const std::vector<std::shared_ptr<Task>>&,
                        std::vector<py::object>* answers) {
    answers->push_back(Column<std::int64_t>(envs, [](const Env& env) { return env.sim_steps(); }));
  }
};
using MementoEnv = EnvHandle<MementoWorld>;

// Steps may be recorded ones.
class MementoVectorEnv : public VectorEnvHandle<MementoWorld> {
 public:
  using VectorEnvHandle::VectorEnvHandle;

  py::tuple StepRecorded(const py::object& actions, const py::object& recorded) {
    if (recorded.is_none()) return Step(actions);
    const auto entries = py::cast<std::vector<std::optional<py::dict>>>(recorded);
    if (entries.size() != envs().num_envs()) {
      throw InvalidInputError("recorded: expected one entry for each of " + std::to_string(envs().num_envs()) +
                              " envs, got " + std::to_string(entries.size()));
    }
    std::vector<std::optional<Recorded>> answers(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i]) answers[i] = RecordedFromPython(*entries[i]);
    }
    return Step(actions, [&](Env& env, std::size_t i) { env.Step(command(i), answers[i] ? &*answers[i] : nullptr); });
  }
};

}  // namespace

void BindMemento(py::module_& parent) {
  py::module_ module = parent.def_submodule("memento", "The world of MEMENTO, played on PARTNR's data.");

  py::class_<HousesHandle>(module, "Houses", "Houses by scene id, immutable.")
      .def_static(
          "from_text",
          [](const py::bytes& json, const std::string& name) {
            const std::string text = json;
            const py::gil_scoped_release release;
            return HousesHandle{ReadHouses(text, name)};
          },
          py::arg("json"), py::arg("name"), "The houses in the content of a scenes.json. Raises GameFileError.");

  py::class_<TaskHandle, std::shared_ptr<TaskHandle>>(module, "Task",
                                                      "One episode, immutable, shared by any number of envs.")
      .def_property_readonly("name", [](const TaskHandle& self) { return self.task->id; })
      .def_property_readonly("task", [](const TaskHandle& self) { return self.task->instruction; })
      .def_property_readonly("scene_id", [](const TaskHandle& self) { return self.task->house->id; })
      .def_property_readonly("house", [](const TaskHandle& self) { return DescribeHouse(*self.task->house); })
      .def("__repr__", [](const TaskHandle& self) {
        return "<memento.Task " + self.task->id + ": " + self.task->instruction + ">";
      });

  module.def(
      "read_tasks",
      [](const py::bytes& json, const std::string& name, const HousesHandle& houses,
         const std::vector<std::tuple<std::string, std::string, std::optional<std::string>>>& labels,
         const TextPlaces& text_places) {
        const std::string text = json;
        std::vector<TaskHandle> handles;
        const py::gil_scoped_release release;
        for (TaskPointer& task : ReadTasks(text, name, houses.houses, LabelsFromPython(labels), text_places))
          handles.push_back({std::move(task)});
        return handles;
      },
      py::arg("json"), py::arg("name"), py::arg("houses"), py::arg("labels"), py::arg("text_places"),
      "The tasks in the content of an episode file; labels are (template, category, caption or None). Raises "
      "GameFileError.");

  BindEnv<MementoWorld>(module)
      .def(py::init([](std::shared_ptr<TaskHandle> task, std::uint64_t seed) {
             MementoEnv handle;
             handle.env.Reset(task == nullptr ? nullptr : task->task, {}, seed);
             handle.task = std::move(task);
             return handle;
           }),
           py::arg("task"), py::arg("seed") = 0)
      .def(
          "step",
          [](MementoEnv& self, const py::object& action, const std::optional<py::dict>& recorded) {
            const std::string_view text = CommandFromPython(action, 0);
            Recorded answer;
            if (recorded) answer = RecordedFromPython(*recorded);
            self.env.Step(text, recorded ? &answer : nullptr);
            return TextToPython(self.env.observation());
          },
          py::arg("action"), py::arg("recorded") = py::none(), "What the world says to one action.")
      .def(
          "place_agent",
          [](MementoEnv& self, const std::string& room, const std::tuple<double, double, double>& xyz) {
            self.env.PlaceAgent(room, {std::get<0>(xyz), std::get<1>(xyz), std::get<2>(xyz)});
          },
          py::arg("room"), py::arg("position"), "Puts the agent where a recorded run started.")
      .def_property_readonly("response", [](const MementoEnv& self) { return TextToPython(self.env.response()); })
      .def_property_readonly("sim_steps", [](const MementoEnv& self) { return self.env.sim_steps(); })
      .def(
          "state", [](const MementoEnv& self) { return DescribeState(self.env); },
          "The hidden state as a dict: room, position, at, holding, objects, opened, propositions.");

  BindVectorEnv<MementoWorld, MementoVectorEnv>(module)
      .def(py::init<std::size_t, std::size_t, std::size_t>(), py::arg("num_envs"), py::arg("max_steps"),
           py::arg("num_threads"))
      .def("step", &MementoVectorEnv::StepRecorded, py::arg("actions"), py::arg("recorded"),
           "The same, with what a recorded run says of each env's step, or None.");
}

}  // namespace embodied_mem

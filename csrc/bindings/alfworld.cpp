// Binds Game and Env of the ALFWorld engine.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/module.h"
#include "bindings/vector_env.h"
#include "core/error.h"
#include "envs/alfworld/env.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

using alfworld::Command;
using alfworld::Env;
using alfworld::Game;
using alfworld::kNone;
using alfworld::Wording;

// A Game with its commands as Python strings, each made once. Used only while the GIL is held.
class GameHandle {
 public:
  explicit GameHandle(std::shared_ptr<const Game> game) : game_(std::move(game)) {}
  ~GameHandle();
  GameHandle(const GameHandle&) = delete;
  GameHandle& operator=(const GameHandle&) = delete;

  const Game& game() const { return *game_; }
  const std::shared_ptr<const Game>& shared() const { return game_; }
  // A new list of the commands as Python strings.
  py::list Texts(Wording wording, const std::vector<Command>& commands);

 private:
  PyObject* Text(Wording wording, const Command& command);

  std::shared_ptr<const Game> game_;
  std::vector<PyObject*> short_[2];                       // by verb and first thing; owned, null until asked for
  std::unordered_map<std::uint64_t, PyObject*> long_[2];  // commands with two things; owned
};

GameHandle::~GameHandle() {
  for (int w = 0; w < 2; ++w) {
    for (PyObject* text : short_[w]) Py_XDECREF(text);
    for (const auto& entry : long_[w]) Py_DECREF(entry.second);
  }
}

PyObject* GameHandle::Text(Wording wording, const Command& command) {
  const auto make = [&] {
    const std::string text = alfworld::CommandText(*game_, wording, command);
    PyObject* object = PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
    if (object == nullptr) throw py::error_already_set();
    return object;
  };
  const auto w = static_cast<std::size_t>(wording);
  if (command.second == kNone) {
    const std::size_t width = game_->by_name.size() + 1;
    if (short_[w].empty()) short_[w].assign(14 * width, nullptr);
    const std::size_t first = command.first == kNone ? width - 1 : command.first;
    PyObject*& slot = short_[w][static_cast<std::size_t>(command.verb) * width + first];
    if (slot == nullptr) slot = make();
    return slot;
  }
  const std::uint64_t key = (static_cast<std::uint64_t>(command.verb) << 32U) |
                            (static_cast<std::uint64_t>(command.first) << 16U) | command.second;
  const auto found = long_[w].find(key);
  if (found != long_[w].end()) return found->second;
  return long_[w].emplace(key, make()).first->second;
}

py::list GameHandle::Texts(Wording wording, const std::vector<Command>& commands) {
  py::list list(commands.size());
  for (std::size_t i = 0; i < commands.size(); ++i) {
    PyObject* text = Text(wording, commands[i]);
    Py_INCREF(text);
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), text);
  }
  return list;
}

Wording ParseWording(const std::string& grammar) {
  if (grammar == "0.4") return Wording::k04;
  if (grammar == "0.3") return Wording::k03;
  throw InvalidInputError("grammar: expected \"0.4\" or \"0.3\", got \"" + grammar + "\"");
}

py::dict DescribeGoal(const Game& game) {
  py::dict goal;
  goal["task_type"] = alfworld::TaskTypeName(game.goal.type);
  goal["object_type"] = game.goal.object_type;
  goal["receptacle_type"] = game.goal.receptacle_type;
  goal["lamp_type"] = game.goal.lamp_type;
  return goal;
}

py::dict DescribeState(const Env& env) {
  const Game& game = *env.task();
  const std::uint16_t here = env.agent_location();
  py::dict objects, receptacles;
  py::list holding, at;
  for (std::size_t o = 0; o < game.objects.size(); ++o) {
    const alfworld::Object& object = game.objects[o];
    py::list inside;
    for (std::size_t r = 0; r < game.receptacles.size(); ++r) {
      if (env.Inside(o, r)) inside.append(game.receptacles[r].name);
    }
    py::dict entry;
    entry["type"] = object.type;
    entry["receptacles"] = inside;
    entry["held"] = env.Held(o);
    entry["pickupable"] = object.pickupable;
    entry["cleanable"] = object.cleanable;
    entry["heatable"] = object.heatable;
    entry["coolable"] = object.coolable;
    entry["toggleable"] = object.toggleable;
    entry["sliceable"] = object.sliceable;
    entry["clean"] = env.Clean(o);
    entry["hot"] = env.Hot(o);
    entry["cool"] = env.Cool(o);
    entry["sliced"] = env.Sliced(o);
    entry["toggled"] = env.Toggled(o);
    objects[py::str(object.name)] = entry;
    if (env.Held(o)) holding.append(object.name);
  }
  for (std::size_t r = 0; r < game.receptacles.size(); ++r) {
    const alfworld::Receptacle& receptacle = game.receptacles[r];
    py::dict entry;
    entry["type"] = receptacle.type;
    entry["location"] = receptacle.location == kNone ? std::string() : game.locations[receptacle.location].name;
    entry["openable"] = receptacle.openable;
    entry["open"] = env.Opened(r);
    receptacles[py::str(receptacle.name)] = entry;
    if (receptacle.location == here) at.append(receptacle.name);
  }
  py::dict state;
  state["location"] = game.locations[here].name;
  state["at"] = at;
  state["holding"] = holding;
  state["objects"] = objects;
  state["receptacles"] = receptacles;
  state["goal"] = DescribeGoal(game);
  return state;
}

std::shared_ptr<GameHandle> MakeHandle(std::shared_ptr<const Game> game) {
  return std::make_shared<GameHandle>(std::move(game));
}

struct AlfworldWorld {
  using Env = alfworld::Env;
  using Task = GameHandle;

  // admissible_commands, a list per env.
  static void AddExtras(const VectorEnv<Env>& envs, const std::vector<std::shared_ptr<Task>>& games,
                        std::vector<py::object>* answers) {
    py::list lists(games.size());
    for (std::size_t i = 0; i < games.size(); ++i) {
      py::list commands = games[i] == nullptr ? py::list() : games[i]->Texts(envs.options(), envs.extra(i));
      PyList_SET_ITEM(lists.ptr(), static_cast<Py_ssize_t>(i), commands.release().ptr());
    }
    answers->push_back(std::move(lists));
  }
};
using GameEnv = EnvHandle<AlfworldWorld>;
using GameVectorEnv = VectorEnvHandle<AlfworldWorld>;

}  // namespace

void BindAlfworld(py::module_& parent) {
  py::module_ module = parent.def_submodule("alfworld", "The ALFWorld engine.");
  module.attr("MAX_FILE_BYTES") = alfworld::kMaxFileBytes;

  py::class_<GameHandle, std::shared_ptr<GameHandle>>(
      module, "Game",
      "One ALFWorld game, immutable: made by load, from_text or from_problem, shared by any number of envs.")
      .def_static(
          "load",
          [](const std::string& path) {
            std::shared_ptr<const Game> game;
            {
              const py::gil_scoped_release release;
              game = Game::Load(path);
            }
            return MakeHandle(std::move(game));
          },
          py::arg("path"), "The game in an official game file. Raises GameFileError.")
      .def_static(
          "from_text",
          [](const py::bytes& json, const std::string& name) {
            return MakeHandle(Game::FromText(static_cast<std::string_view>(json), name));
          },
          py::arg("json"), py::arg("name"), "The game in the content of a game file. Raises GameFileError.")
      .def_static(
          "from_problem",
          [](const std::string& pddl_problem, const std::string& task, const std::string& name) {
            return MakeHandle(Game::FromProblem(pddl_problem, task, name));
          },
          py::arg("pddl_problem"), py::arg("task"), py::arg("name"),
          "The game of a PDDL problem and the sentence of its task, e.g. 'put a clean apple in fridge.' "
          "Raises GameFileError.")
      .def_property_readonly("name", [](const GameHandle& self) { return self.game().name; })
      .def_property_readonly("task", [](const GameHandle& self) { return self.game().task; })
      .def_property_readonly(
          "goal", [](const GameHandle& self) { return DescribeGoal(self.game()); },
          "dict: task_type, object_type, receptacle_type, lamp_type (PDDL types in lower case, '' where unused).")
      .def_property_readonly("walkthrough", [](const GameHandle& self) { return self.game().walkthrough; })
      .def_property_readonly(
          "receptacles",
          [](const GameHandle& self) {
            py::list names;
            for (const auto& receptacle : self.game().receptacles) names.append(receptacle.name);
            return names;
          },
          "Names in the order in which the original lists them.")
      .def_property_readonly(
          "objects",
          [](const GameHandle& self) {
            py::list names;
            for (const auto& object : self.game().objects) names.append(object.name);
            return names;
          },
          "Names in the order in which the original lists them.")
      .def(
          "accepts",
          [](const GameHandle& self, const std::string& receptacle, const std::string& object) {
            const Game& game = self.game();
            const std::uint16_t r = game.FindName(receptacle), o = game.FindName(object);
            if (r == kNone || !game.by_name[r].is_receptacle)
              throw InvalidInputError("unknown receptacle \"" + receptacle + "\" in " + game.name);
            if (o == kNone || game.by_name[o].is_receptacle)
              throw InvalidInputError("unknown object \"" + object + "\" in " + game.name);
            const std::size_t index = game.by_name[o].index;
            return ((game.receptacles[game.by_name[r].index].accepts[index / 64] >> (index % 64)) & 1U) != 0;
          },
          py::arg("receptacle"), py::arg("object"), "Whether the object may be put into the receptacle.")
      .def("__repr__",
           [](const GameHandle& self) { return "<alfworld.Game " + self.game().name + ": " + self.game().task + ">"; });

  BindEnv<AlfworldWorld>(module)
      .def(py::init([](std::shared_ptr<GameHandle> game, const std::string& grammar) {
             if (game == nullptr) throw InvalidInputError("game: expected a Game, got None");
             GameEnv handle;
             handle.env.Reset(game->shared(), ParseWording(grammar));
             handle.task = std::move(game);
             return handle;
           }),
           py::arg("game"), py::arg("grammar") = "0.4")
      .def(
          "reset",
          [](GameEnv& self) {
            self.env.Reset(self.task->shared(), self.env.options());
            return self.env.observation();
          },
          "The first observation; the game is at its beginning.")
      .def_property_readonly("game", [](const GameEnv& self) { return self.task; })
      .def_property_readonly("score", [](const GameEnv& self) { return self.env.won() ? 1 : 0; })
      .def_property_readonly("admissible_commands",
                             [](const GameEnv& self) {
                               std::vector<Command> commands;
                               self.env.FillExtra(&commands);
                               return self.task->Texts(self.env.options(), commands);
                             })
      .def(
          "state", [](const GameEnv& self) { return DescribeState(self.env); },
          "The hidden state as a dict: location, at, holding, objects, receptacles, goal.");
  BindVectorEnv<AlfworldWorld>(module).def(
      py::init([](std::size_t num_envs, std::size_t max_steps, std::size_t num_threads, const std::string& grammar) {
        return std::make_unique<GameVectorEnv>(num_envs, max_steps, num_threads, ParseWording(grammar));
      }),
      py::arg("num_envs"), py::arg("max_steps"), py::arg("num_threads"), py::arg("grammar"));
}

}  // namespace embodied_mem

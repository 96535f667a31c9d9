// Python faces of the ALFWorld engine: each holds the C++ object and the Python strings made for it so far.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "envs/alfworld/env.h"

namespace embodied_mem {

// A Game with its commands as Python strings, each made once. Used only while the GIL is held.
class GameHandle {
 public:
  explicit GameHandle(std::shared_ptr<const alfworld::Game> game);
  ~GameHandle();
  GameHandle(const GameHandle&) = delete;
  GameHandle& operator=(const GameHandle&) = delete;

  const alfworld::Game& game() const { return *game_; }
  const std::shared_ptr<const alfworld::Game>& shared() const { return game_; }
  // A new list of the commands as Python strings.
  pybind11::list Texts(alfworld::Wording wording, const std::vector<alfworld::Command>& commands);

 private:
  PyObject* Text(alfworld::Wording wording, const alfworld::Command& command);

  std::shared_ptr<const alfworld::Game> game_;
  std::vector<PyObject*> short_[2];                           // by verb and first thing; owned, null until asked for
  std::unordered_map<std::uint64_t, PyObject*> long_[2];      // commands with two things; owned
};

// One env and the handle of its game.
struct EnvHandle {
  alfworld::Env env;
  std::shared_ptr<GameHandle> game;
};

// "0.4" or "0.3"; throws InvalidInputError for anything else.
alfworld::Wording ParseWording(const std::string& grammar);
// Everything that the original keeps hidden: places, flags, types, goal.
pybind11::dict DescribeState(const alfworld::Env& env);
pybind11::dict DescribeGoal(const alfworld::Game& game);

// A command from Python, valid while `object` lives. A string that UTF-8 cannot carry becomes one that no game knows.
// Throws InvalidInputError for anything that is not a string.
std::string_view CommandFromPython(pybind11::handle object, std::size_t env_index);

void BindVectorEnv(pybind11::module_& module);

}  // namespace embodied_mem

// One ALFWorld game, immutable once built: names, types, static facts, the first state and the goal.
//
// A Game is shared by any number of envs on any number of threads. Objects, receptacles and locations are
// numbered in the order of their PDDL ids (lower case, by bytes): the order in which the original lists
// them. Sizes are bounded (kMax...), so every index fits 16 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace embodied_mem::alfworld {

constexpr std::size_t kMaxObjects = 1024;
constexpr std::size_t kMaxReceptacles = 256;
constexpr std::size_t kMaxLocations = 1024;
constexpr std::size_t kMaxFileBytes = 64U << 20U;
constexpr std::uint16_t kNone = 0xFFFF;

// The six task types; the values are ALFWorld's own numbers.
enum class TaskType { kPlace = 1, kLook = 2, kClean = 3, kHeat = 4, kCool = 5, kPlaceTwo = 6 };

// ALFWorld's name of a task type, e.g. "pick_and_place_simple".
const char* TaskTypeName(TaskType type);

// What wins. Types are PDDL names in lower case, e.g. "appletype"; the lamp's only for kLook, the receptacle's for
// all others.
struct Goal {
  TaskType type = TaskType::kPlace;
  std::string object_type;
  std::string receptacle_type;
  std::string lamp_type;
};

struct Object {
  std::string id;      // PDDL id, lower case
  std::string name;    // what the player reads, e.g. "apple 1"
  std::string type;    // e.g. "appletype"; "" when the file states none
  std::uint16_t rank;  // in Game::by_name
  bool pickupable = false, cleanable = false, heatable = false, coolable = false;
  bool toggleable = false, sliceable = false, is_container = false, is_knife = false;
  std::vector<std::uint16_t> inner;  // objects inside this object; no action changes it
};

struct Receptacle {
  std::string id;
  std::string name;
  std::string type;  // e.g. "fridgetype"
  std::uint16_t rank;
  std::uint16_t location = kNone;  // kNone when the file states none: nobody can go there
  bool openable = false, cleans = false, heats = false, cools = false;
  std::vector<std::uint64_t> accepts;  // bit o: object o may be put here
};

struct Location {
  std::string id;
  std::string name;                        // e.g. "loc 12", which the 0.3 wording shows
  std::vector<std::uint16_t> receptacles;  // ascending
};

// A receptacle or an object, in the order of names: the order of the admissible commands.
struct NamedThing {
  bool is_receptacle;
  std::uint16_t index;
};

// Where the parts of a state lie in its array of 64-bit words. Sets of objects take `object_words` each.
struct StateLayout {
  std::size_t object_words, receptacle_words;
  std::size_t opened, held, clean, hot, cool, sliced, toggled;
  std::size_t inside;   // + r * object_words: objects in receptacle r
  std::size_t removed;  // + r * object_words: objects taken out of r and not put back
  std::size_t at;       // + l * object_words: objects at location l
  std::size_t size;
};
// Word 0 holds the agent's location (low 32 bits) and whether a hand is full (bit 32).
constexpr std::uint64_t kHoldsAny = 1ULL << 32U;

class Game {
 public:
  // Reads an official game file. Throws GameFileError with file, position and reason.
  static std::shared_ptr<const Game> Load(const std::string& path);
  // The same from a file's content; `name` stands for the file in messages.
  static std::shared_ptr<const Game> FromText(std::string_view json, const std::string& name);
  // From a PDDL problem alone and the sentence of the task, e.g. "put a clean apple in fridge."
  static std::shared_ptr<const Game> FromProblem(std::string_view pddl_problem, const std::string& task,
                                                 const std::string& name);

  std::string name;  // the file's path, or the name given
  std::string task;  // the sentence after "Your task is to: "
  Goal goal;
  std::vector<Object> objects;
  std::vector<Receptacle> receptacles;
  std::vector<Location> locations;
  std::vector<NamedThing> by_name;
  std::vector<std::uint16_t> receptacles_by_name;  // those with a location
  std::vector<std::string> walkthrough;            // of the file; empty without one
  StateLayout layout{};
  std::vector<std::uint64_t> initial_state;
  std::vector<std::uint64_t> goal_objects, goal_lamps;  // sets of objects of the goal's types that can fulfil it
  std::vector<std::uint16_t> goal_receptacles;

  const std::string& NameOf(std::uint16_t rank) const {
    const NamedThing thing = by_name[rank];
    return thing.is_receptacle ? receptacles[thing.index].name : objects[thing.index].name;
  }
  // Rank of the thing of that name, kNone when there is none.
  std::uint16_t FindName(std::string_view thing_name) const;
};

// Checks the domain of a game file; throws TextError (offsets in `domain`) when it is not ALFWorld's.
// Returns whether a receptacle of SinkType cleans (it does in the domain of the official files).
bool CheckDomain(std::string_view domain);
// Checks the grammar and returns the sentence of the task; throws TextError (offsets in `grammar`).
std::string CheckGrammar(std::string_view grammar);
// Throws TextError (offsets in `task`) for a sentence that the grammar could not print as it stands.
void CheckTask(std::string_view task);
// Fills everything but name, task and walkthrough; throws TextError (offsets in `problem`).
void ReadProblem(std::string_view problem, bool sinks_clean, Game* game);

}  // namespace embodied_mem::alfworld

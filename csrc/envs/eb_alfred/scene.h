// What EB-ALFRED plays in: the facts about types, floor plans and start positions (floorplans.json), and one Task.
//
// Both are immutable and shared. What a Task holds is what an Env never changes: the things, the list of actions with
// their numbered instances, and the goal. Reading throws GameFileError, which names the file, the place and the reason.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace embodied_mem::eb_alfred {

constexpr std::uint16_t kNone = 0xFFFF;
constexpr std::size_t kMaxThings = 512;  // the largest scene at hand has about 150, slices included
constexpr std::size_t kNumSlices = 2;    // pieces of one cut; the data does not tell, and no goal asks for more

// In metres; y is the height.
struct Point {
  float x = 0, y = 0, z = 0;
};

struct Type {
  std::string name;
  bool pickupable = false, receptacle = false, movable = false, openable = false, toggleable = false, sliceable = false;
};

// A thing that stays where it is: a receptacle, or a fixture (lamp, faucet, sink, ...).
struct Place {
  std::string id;
  std::uint16_t type = kNone;
  Point position;
  bool openable = false, toggleable = false;
  std::uint16_t group = kNone;    // places with one standing point and direction share it
  std::uint16_t basin = kNone;    // of a sink, bathtub or faucet: index of its basin among the places
  std::vector<std::uint16_t> on;  // of a lamp: the places it stands on
};

struct FloorPlan {
  std::vector<Place> places;  // receptacles by id, then fixtures in the file's order
  std::vector<Point> standing;
};

// An object at the start of a trial, in the order of the trial's `object_poses`.
struct StartObject {
  std::string id;
  std::uint16_t type = kNone;
  Point position;
  std::vector<std::uint16_t> in;    // places it lies in or on
  std::uint16_t in_object = kNone;  // index of the object it lies in
  std::uint16_t near = kNone;       // a place nearby, where `in` is empty
};

struct Trial {
  std::shared_ptr<const FloorPlan> floor_plan;
  std::vector<StartObject> objects;
};

struct Catalog {
  std::string file;
  std::vector<Type> types;
  std::unordered_map<std::string, std::uint16_t> type_by_name;
  std::vector<std::string> find, pick_up, open_close, turn_on_off, slice;  // types that the fixed actions name
  std::map<std::string, Trial> trials;                                     // by <task folder>/<trial folder>
};

// The content of a floorplans.json.
std::shared_ptr<const Catalog> ReadCatalog(std::string_view json, const std::string& file);

enum class Verb : std::uint8_t { kFind, kPickUp, kPutDown, kDrop, kOpen, kClose, kTurnOn, kTurnOff, kSlice };

// A type or a numbered instance, as actions name it.
struct Name {
  std::string text;                       // "CellPhone", "Cabinet_2"
  std::string shown;                      // as feedback writes it: "Cellphone", "Cabinet_2"
  std::uint16_t thing = kNone;            // the instance meant, where the type is numbered
  std::vector<std::uint16_t> candidates;  // things whose id begins so: the type's, basins, slices
  std::uint8_t basin = 0;                 // 1 for Sink and Bathtub, whose basins take what is put down
};

struct Action {
  std::string text;
  Verb verb = Verb::kFind;
  std::uint16_t name = kNone;  // index among the names; kNone for kPutDown and kDrop
};

// What a thing is for the goal; several may hold.
enum Role : std::uint8_t { kObject = 1, kSliceOfObject = 2, kMovable = 4, kParent = 8, kToggle = 16 };

struct Thing {
  std::string id, name;  // `name` is numbered where its type is
  std::uint16_t type = kNone;
  Point position;
  bool is_static = false, pickupable = false, receptacle = false, openable = false, toggleable = false,
       sliceable = false, starts_open = false, starts_on = false;
  bool is_slice = false, is_fridge = false, is_microwave = false, is_sink_basin = false, is_stove_burner = false;
  std::uint8_t roles = 0;
  std::uint16_t group = kNone;
  std::uint16_t basin = kNone;
  std::uint16_t slices = kNone;   // of a whole: its first slice; the others follow
  std::uint16_t whole = kNone;    // of a slice
  std::vector<std::uint16_t> in;  // things it starts in or on
};

enum class TaskType : std::uint8_t { kPlace, kPlaceTwo, kLook, kClean, kHeat, kCool, kPlaceMovable };

struct Task {
  std::string id, trial, instruction;
  TaskType type = TaskType::kPlace;
  std::string type_name, object_target, parent_target, movable_target, toggle_target;
  bool sliced = false;
  bool satisfied_at_start = false;  // the goal holds before anything is done
  std::shared_ptr<const Catalog> catalog;
  std::shared_ptr<const FloorPlan> floor_plan;
  std::vector<Thing> things;  // places, objects, slices
  std::size_t num_places = 0;
  std::vector<Name> names;
  std::vector<Action> actions;                                  // an action's index is its number
  std::unordered_map<std::string_view, std::uint16_t> by_text;  // into the texts of `actions`
  Point agent;                                                  // at the start
  float facing_x = 0, facing_z = 1;
  std::array<std::vector<std::uint16_t>, 5> by_role;  // things by bit of Role
};

// The task in an annotation file of a trial, its sentence replaced by `instruction` unless that is empty.
std::shared_ptr<const Task> ReadTask(std::string_view json, const std::string& file,
                                     std::shared_ptr<const Catalog> catalog, const std::string& trial,
                                     const std::string& id, const std::string& instruction);

// Fills names, actions and by_text from the things and the catalog.
void BuildActions(Task* task);

}  // namespace embodied_mem::eb_alfred

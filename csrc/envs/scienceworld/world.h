// What a house of ScienceWorld consists of: things in things, doors between rooms, wires between terminals.
//
// A World is a value: copying it is its snapshot. Things are numbered; what a substance leaves is used again after a
// tick, any other thing that is gone keeps its number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace embodied_mem::scienceworld {

using Id = std::int32_t;
constexpr Id kNone = -1;

// What decides how a thing is described and what can be done with it.
enum class Kind : std::uint8_t {
  kPlain,
  kUniverse,
  kRoom,
  kAgent,
  kInventory,
  kSubstance,
  kLiquid,
  kPicture,
  kBook,
  kFood,
  kGround,
  kFurniture,
  kBox,
  kCupboard,
  kHeater,
  kCooler,
  kSink,
  kToilet,
  kStove,
  kThermometer,
  kStopwatch,
  kLighter,
  kTool,
  kAnimal,
  kPlant,
  kFlower,
  kPollen,
  kSoil,
  kPot,
  kWire,
  kBulb,
  kSwitch,
  kBattery,
  kPlane,
  kPillow,
  kDoor,
  kDrain,
  kTerminal,
  kJar,
  kHive,
  kDrawer,
};

struct Material {
  std::string substance;
  std::string color;
  std::string state;  // solid, liquid, gas
  double celsius = 0, conductivity = 0, melts = 0, boils = 0, friction = 0;
};

// What each tick reads comes first, on few cache lines.
struct Thing {
  Kind kind = Kind::kPlain;
  bool has_material = false, container = false, open = false, closable = false, activable = false, active = false,
       edible = false, movable = false, gone = false, fills = false, burning = false, burned = false, shut = false,
       device = false, broken = false, heats = false, cools = false;
  Id parent = kNone;
  Id drain = kNone;  // not among what is inside
  std::vector<Id> inside;
  Material material;
  std::string name;
  std::string words;                  // what it looks like, where that is not made from its kind
  std::string reads;                  // what is written in it
  std::vector<std::string> called;    // names that do not change
  std::vector<std::string> holding;   // names that go with "containing ..."
  int burnt = 0;                      // ticks on fire
  double heats_to = 0, cools_to = 0;  // of devices
  // Living things: what it is (a plant has this name only after its first tick), where in its life, for how many ticks.
  std::string life;
  std::string flower;     // what its flowers look like
  std::string pollen_of;  // the word that its pollen begins with
  std::string born_name;  // its name and state before heat changed them
  std::string born_state;
  int stage = 0, stage_ticks = 0, dry_ticks = 0, bare_ticks = 0;  // of these without water, without soil
  bool sick = false;
  bool bare = false;  // whether it has lost its terminals, as the ground and the dead do
  // A door leads from its parent to `leads`; `other` is its other face, or of a terminal the thing that has it.
  Id leads = kNone, other = kNone;
  double slope = 0;             // of a plane: percent of it that things slide in a tick
  int slid = 0;                 // ticks on a plane
  int ticked = 0;               // when it was last its turn, for what flies
  int ticks = 0;                // of a stopwatch; which one a terminal is
  Id end = kNone;               // its first terminal; its second is the next number
  Id link[2] = {kNone, kNone};  // what its two terminals are connected to, as thing * 2 + terminal
};

struct World {
  std::vector<Thing> things;
  std::vector<Id> doors;         // in no contents
  std::vector<Id> spent, spare;  // numbers of what is gone: until the next tick; for what is added
  Id sewer = kNone, agent = kNone, inventory = kNone, universe = kNone, focus = kNone;
  int ticks = 0;
  std::uint64_t chance = 0;  // state of the generator that bees draw from, Java's

  void Seed(std::uint64_t seed);
  std::uint32_t Draw(int bits);
  double Share() { return Draw(24) / static_cast<double>(1 << 24); }
  std::size_t Pick(std::size_t count);  // below count
  Thing& operator[](Id id) { return things[static_cast<std::size_t>(id)]; }
  const Thing& operator[](Id id) const { return things[static_cast<std::size_t>(id)]; }
  Id room() const { return things[static_cast<std::size_t>(agent)].parent; }
  Id RoomOf(Id id) const;
  bool InView(Id id) const;            // whether it is in the agent's room, in nothing closed
  bool Within(Id id, Id outer) const;  // id is outer or somewhere inside it
  void Move(Id id, Id to);
  void Remove(Id id);
  Id Face(Id id) const { return std::max(id, (*this)[id].other); }  // of a door the one that stands for both
  bool Disconnect(Id id);                                           // whether it was connected
  Id Add(Thing thing, Id parent);
  void AddEnds(Id id);                           // its terminals, unless it has them
  void LoseEnds(Id id);                          // to what it is in, once
  std::vector<Id> Sorted(Id id) const;           // contents by name, without terminals
  std::vector<Id> DoorsOf(Id room) const;        // as they were made
  std::vector<Id> SortedDoorsOf(Id room) const;  // by where they lead
};

}  // namespace embodied_mem::scienceworld

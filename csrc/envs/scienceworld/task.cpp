#include "envs/scienceworld/task.h"

#include <cstdlib>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "envs/scienceworld/tables.h"

namespace embodied_mem::scienceworld {
namespace {

constexpr const char* kKinds[] = {
    "plain", "universe",    "room",      "agent",   "inventory", "substance", "liquid", "picture", "book",
    "food",  "ground",      "furniture", "box",     "cupboard",  "heater",    "cooler", "sink",    "toilet",
    "stove", "thermometer", "stopwatch", "lighter", "tool",      "animal",    "plant",  "flower",  "pollen",
    "soil",  "pot",         "wire",      "bulb",    "switch",    "battery",   "plane",  "pillow",  "door",
    "drain", "terminal",    "jar",       "hive",    "drawer",
};

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  [[noreturn]] void Fail(const JsonValue& at, const std::string& expected) const {
    throw GameFileError(name_ + ": offset " + std::to_string(at.offset) + ": expected " + expected + ", got " +
                        JsonKindName(at.kind) + "; make the file again with: embodied-mem data scienceworld");
  }
  const JsonValue& Member(const JsonValue& object, const char* key) const {
    const JsonValue* value = object.kind == JsonValue::Kind::kObject ? object.Find(key) : nullptr;
    if (value == nullptr) Fail(object, std::string("an object with '") + key + "'");
    return *value;
  }
  const std::vector<JsonValue>& Items(const JsonValue& value) const {
    if (value.kind != JsonValue::Kind::kArray) Fail(value, "an array");
    return value.items;
  }
  const std::string& Text(const JsonValue& value) const {
    if (value.kind != JsonValue::Kind::kString) Fail(value, "a string");
    return value.text;
  }
  double Number(const JsonValue& value) const {
    if (value.kind != JsonValue::Kind::kNumber) Fail(value, "a number");
    return std::strtod(value.text.c_str(), nullptr);
  }
  Id ThingId(const JsonValue& value, std::size_t count) const {
    const double number = Number(value);
    if (!(number >= 0 && number < static_cast<double>(count))) Fail(value, "the number of a thing");
    return static_cast<Id>(number);
  }

 private:
  std::string name_;
};

void ReadMaterial(const Reader& reader, const JsonValue& value, Thing* thing) {
  const std::vector<JsonValue>& items = reader.Items(value);
  if (items.size() != 8) reader.Fail(value, "eight entries of a material");
  thing->has_material = true;
  Material& material = thing->material;
  material.substance = reader.Text(items[0]);
  material.color = reader.Text(items[1]);
  material.state = reader.Text(items[2]);
  material.celsius = reader.Number(items[3]);
  material.conductivity = reader.Number(items[4]);
  material.melts = reader.Number(items[5]);
  material.boils = reader.Number(items[6]);
  material.friction = reader.Number(items[7]);
}

Kind ReadKind(const Reader& reader, const JsonValue& value) {
  const std::string& text = reader.Text(value);
  for (std::size_t k = 0; k < std::size(kKinds); ++k)
    if (text == kKinds[k]) return static_cast<Kind>(k);
  reader.Fail(value, "a kind of thing");
}

Thing ReadThing(const Reader& reader, const JsonValue& entry) {
  Thing thing;
  thing.kind = ReadKind(reader, reader.Member(entry, "k"));
  thing.name = reader.Text(reader.Member(entry, "n"));
  if (const JsonValue* words = entry.Find("w")) thing.words = reader.Text(*words);
  if (const JsonValue* reads = entry.Find("r")) thing.reads = reader.Text(*reads);
  if (const JsonValue* flower = entry.Find("flower")) thing.flower = reader.Text(*flower);
  if (const JsonValue* pollen = entry.Find("pollen")) thing.pollen_of = reader.Text(*pollen);
  if (const JsonValue* life = entry.Find("life")) thing.life = reader.Text(*life);
  if (const JsonValue* stage = entry.Find("stage")) thing.stage = reader.ThingId(*stage, 5);
  if (const JsonValue* called = entry.Find("c"))
    for (const JsonValue& name : reader.Items(*called)) thing.called.push_back(reader.Text(name));
  if (const JsonValue* holding = entry.Find("h"))
    for (const JsonValue& name : reader.Items(*holding)) thing.holding.push_back(reader.Text(name));
  if (const JsonValue* material = entry.Find("m")) ReadMaterial(reader, *material, &thing);
  if (thing.kind == Kind::kPlant) {
    thing.life = thing.name;
    thing.name = thing.life == "pea plant" ? "pea" : "plant";
  }
  thing.born_name = thing.name;
  thing.born_state = thing.material.state;
  if (const JsonValue* slope = entry.Find("slope")) thing.slope = reader.Number(*slope);
  if (const JsonValue* heats = entry.Find("heat")) thing.heats = true, thing.heats_to = reader.Number(*heats);
  if (const JsonValue* cools = entry.Find("cool")) thing.cools = true, thing.cools_to = reader.Number(*cools);
  for (const char flag : reader.Text(reader.Member(entry, "f"))) {
    if (flag == 'b') thing.container = true;
    if (flag == 'o') thing.open = true;
    if (flag == 'c') thing.closable = true;
    if (flag == 'a') thing.activable = true;
    if (flag == 'x') thing.active = true;
    if (flag == 'w') thing.fills = true;
    if (flag == 'e') thing.edible = true;
    if (flag == 'm') thing.movable = true;
    if (flag == 'd') thing.device = true;
  }
  for (const Kind kind :
       {Kind::kPicture, Kind::kBook, Kind::kThermometer, Kind::kStopwatch, Kind::kLighter, Kind::kTool})
    thing.shut = thing.shut || (thing.kind == kind && !thing.container);
  return thing;
}

}  // namespace

std::shared_ptr<const Task> ReadTask(std::string_view json, const std::string& name) {
  auto task = std::make_shared<Task>();
  const Reader reader(name);
  JsonValue root;
  try {
    root = ParseJson(json);
  } catch (const TextError& error) {
    throw GameFileError(name + ": " + DescribePosition(json, error.offset) + ": " + error.reason);
  }
  task->id = reader.Text(reader.Member(root, "id"));
  task->goal = reader.Text(reader.Member(root, "goal"));
  task->teleports = reader.Member(root, "teleports").kind == JsonValue::Kind::kTrue;
  if (const JsonValue* wires = root.Find("wires")) task->wires = wires->kind == JsonValue::Kind::kTrue;
  const std::vector<JsonValue>& things = reader.Items(reader.Member(root, "things"));
  World& world = task->world;
  for (std::size_t i = 0; i < things.size(); ++i) {
    Thing thing = ReadThing(reader, things[i]);
    const Id id = static_cast<Id>(i);
    const Kind kind = thing.kind;
    Id parent = kNone;
    if (const JsonValue* outer = things[i].Find("p")) parent = reader.ThingId(*outer, i);
    if (kind == Kind::kDoor) thing.leads = reader.ThingId(reader.Member(things[i], "to"), i);
    world.things.push_back(std::move(thing));
    if (kind == Kind::kUniverse) world.universe = id;
    if (kind == Kind::kAgent) world.agent = id;
    if (kind == Kind::kInventory) world.inventory = id;
    if (world[id].name == "sewer") world.sewer = id;
    if (kind == Kind::kDoor || kind == Kind::kDrain) {
      if (parent == kNone) reader.Fail(things[i], "an object with 'p'");
      world[id].parent = parent;
      if (kind == Kind::kDoor) world.doors.push_back(id);
      else world[parent].drain = id;
    } else if (parent != kNone) {
      world.Move(id, parent);
    }
  }
  if (world.universe == kNone || world.agent == kNone || world.inventory == kNone || world.RoomOf(world.agent) == kNone)
    reader.Fail(root, "things with a universe, an agent in a room and its inventory");
  const auto count = static_cast<Id>(world.things.size());
  for (Id id = 0; id < count; ++id)
    if (ShowsEnds(world[id].kind)) world.AddEnds(id);
  for (const Id door : world.doors)
    for (const Id other : world.doors)
      if (world[other].parent == world[door].leads && world[other].leads == world[door].parent)
        world[door].other = other;
  for (const JsonValue& entry : reader.Items(reader.Member(root, "focus"))) {
    if (entry.kind == JsonValue::Kind::kNumber) {
      task->focus.push_back(Asked::kThing);
      task->targets.push_back(reader.ThingId(entry, things.size()));
      continue;
    }
    const std::string& text = reader.Text(entry);
    task->targets.push_back(kNone);
    task->focus.push_back(text == "living"       ? Asked::kLiving
                          : text == "non-living" ? Asked::kNonLiving
                          : text == "plant"      ? Asked::kPlant
                                                 : Asked::kAnimal);
  }
  if (const JsonValue* box = root.Find("box")) task->box = reader.ThingId(*box, things.size());
  if (const JsonValue* place = root.Find("place")) task->place = reader.ThingId(*place, things.size());
  if (const JsonValue* trials = root.Find("trials")) {
    const std::vector<JsonValue>& items = reader.Items(*trials);
    if (items.size() != 3) reader.Fail(*trials, "two planes and a block");
    Id* const parts[] = {&task->trials.planes[0], &task->trials.planes[1], &task->trials.block};
    for (std::size_t i = 0; i < items.size(); ++i) *parts[i] = reader.ThingId(items[i], things.size());
    for (Id id = 0; id < static_cast<Id>(things.size()); ++id)
      if (world[id].kind == Kind::kStopwatch) task->trials.watches.push_back(id);
  }
  task->move = task->place != kNone;
  task->pick = task->door = task->box != kNone;
  world.Seed(std::strtoull(task->id.substr(task->id.find('/') + 1).c_str(), nullptr, 10));
  if (task->trials.any()) world.Draw(32);  // the original has drawn once before planes are played
  if (task->focus.empty()) reader.Fail(root, "something to focus on");
  return task;
}

}  // namespace embodied_mem::scienceworld

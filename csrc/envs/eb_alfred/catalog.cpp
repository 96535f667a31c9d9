// Reads floorplans.json.
#include <algorithm>

#include "core/json_fields.h"
#include "envs/eb_alfred/scene.h"

namespace embodied_mem::eb_alfred {
namespace {

using Kind = JsonValue::Kind;
using Indices = std::unordered_map<std::string, std::uint16_t>;

Point ReadPoint(const JsonValue& value, const std::string& what) {
  Expect(value, Kind::kArray, what);
  if (value.items.size() != 3)
    throw TextError{value.offset, what + ": expected three coordinates, got " + std::to_string(value.items.size())};
  return {static_cast<float>(Number(value.items[0], what)), static_cast<float>(Number(value.items[1], what)),
          static_cast<float>(Number(value.items[2], what))};
}

std::uint16_t TypeNamed(const Catalog& catalog, const JsonValue& where, const std::string& name) {
  const auto found = catalog.type_by_name.find(name);
  if (found == catalog.type_by_name.end())
    throw TextError{where.offset, "type: expected one of 'types', got " + Quote(name)};
  return found->second;
}

std::uint16_t Named(const Indices& indices, const JsonValue& value, const std::string& what) {
  Expect(value, Kind::kString, what);
  const auto found = indices.find(value.text);
  if (found == indices.end()) throw TextError{value.offset, what + ": nothing here has the id " + Quote(value.text)};
  return found->second;
}

void ReadTypes(const JsonValue& types, Catalog* catalog) {
  if (types.members.size() >= kMaxThings) throw TextError{types.offset, "'types': more than any file has"};
  for (const auto& [name, value] : types.members) {
    if (name.empty()) throw TextError{value.offset, "expected the name of a type, got an empty string"};
    Type type;
    type.name = name;
    type.pickupable = BoolMember(value, "pickupable");
    type.receptacle = BoolMember(value, "receptacle");
    type.movable = BoolMember(value, "movable_receptacle");
    type.openable = BoolMember(value, "openable");
    type.toggleable = BoolMember(value, "toggleable");
    type.sliceable = BoolMember(value, "sliceable");
    catalog->type_by_name.emplace(name, static_cast<std::uint16_t>(catalog->types.size()));
    catalog->types.push_back(std::move(type));
  }
}

std::vector<std::string> ReadNames(const JsonValue& object, std::string_view member) {
  std::vector<std::string> names;
  for (const JsonValue& value : ListMember(object, member)) {
    Expect(value, Kind::kString, std::string(member));
    if (value.text.empty()) throw TextError{value.offset, "expected a name, got an empty string"};
    if (names.size() >= kMaxThings) throw TextError{value.offset, "more names than any file has"};
    names.push_back(value.text);
  }
  return names;
}

Place ReadPlace(const Catalog& catalog, const JsonValue& value) {
  Place place;
  place.id = StringMember(value, "id");
  place.type = TypeNamed(catalog, value, StringMember(value, "type"));
  place.position = ReadPoint(Member(value, "pos", Kind::kArray), "pos");
  place.openable = value.Find("openable") != nullptr && BoolMember(value, "openable");
  place.toggleable = BoolMember(value, "toggleable");
  if (const JsonValue* group = value.Find("group")) {
    place.group = static_cast<std::uint16_t>(Index(*group, kMaxThings, "group"));
  }
  return place;
}

std::shared_ptr<const FloorPlan> ReadFloorPlan(const Catalog& catalog, const JsonValue& value, Indices* indices) {
  auto plan = std::make_shared<FloorPlan>();
  const auto& fixtures = ListMember(value, "fixtures");
  for (const JsonValue& entry : ListMember(value, "receptacles")) plan->places.push_back(ReadPlace(catalog, entry));
  std::sort(plan->places.begin(), plan->places.end(), [](const Place& a, const Place& b) { return a.id < b.id; });
  const std::size_t num_receptacles = plan->places.size();
  for (const JsonValue& entry : fixtures) plan->places.push_back(ReadPlace(catalog, entry));
  if (plan->places.size() >= kMaxThings) throw TextError{value.offset, "more places than any floor plan has"};
  for (std::size_t i = 0; i < plan->places.size(); ++i) {
    if (!indices->emplace(plan->places[i].id, static_cast<std::uint16_t>(i)).second)
      throw TextError{value.offset, "the id " + Quote(plan->places[i].id) + " comes twice"};
  }
  for (std::size_t i = 0; i < fixtures.size(); ++i) {
    Place& place = plan->places[num_receptacles + i];
    if (const JsonValue* basin = fixtures[i].Find("basin")) place.basin = Named(*indices, *basin, "basin");
    if (fixtures[i].Find("on") == nullptr) continue;
    for (const JsonValue& below : ListMember(fixtures[i], "on")) place.on.push_back(Named(*indices, below, "on"));
  }
  for (const JsonValue& point : ListMember(value, "standing")) {
    Expect(point, Kind::kArray, "standing");
    if (point.items.size() != 2) throw TextError{point.offset, "standing: expected [x, z]"};
    plan->standing.push_back(
        {static_cast<float>(Number(point.items[0], "x")), 0, static_cast<float>(Number(point.items[1], "z"))});
  }
  if (plan->standing.empty()) throw TextError{value.offset, "'standing': expected at least one point"};
  return plan;
}

void ReadObjects(const Catalog& catalog, const JsonValue& value, const Indices& places, Trial* trial) {
  const auto& entries = ListMember(value, "objects");
  if (entries.size() >= kMaxThings) throw TextError{value.offset, "more objects than any trial has"};
  Indices objects;
  for (const JsonValue& entry : entries) {
    StartObject object;
    object.id = StringMember(entry, "id");
    object.type = TypeNamed(catalog, entry, StringMember(entry, "type"));
    if (!catalog.types[object.type].pickupable)
      throw TextError{entry.offset, "expected a pickupable object, got " + Quote(object.id)};
    object.position = ReadPoint(Member(entry, "pos", Kind::kArray), "pos");
    for (const JsonValue& holder : ListMember(entry, "in")) object.in.push_back(Named(places, holder, "in"));
    if (const JsonValue* near = entry.Find("near")) object.near = Named(places, *near, "near");
    objects.emplace(object.id, static_cast<std::uint16_t>(trial->objects.size()));  // twins at one spot: the first
    trial->objects.push_back(std::move(object));
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const JsonValue* holder = entries[i].Find("in_object");
    if (holder == nullptr) continue;
    const std::uint16_t outer = Named(objects, *holder, "in_object");
    if (!catalog.types[trial->objects[outer].type].movable || outer == i)
      throw TextError{holder->offset, "in_object: expected a movable receptacle, got " + Quote(holder->text)};
    // Two that touch may name each other; the first in the file's order lies in the other.
    std::size_t at = outer;
    while (at != i && trial->objects[at].in_object != kNone) at = trial->objects[at].in_object;
    if (at != i) trial->objects[i].in_object = outer;
  }
}

}  // namespace

std::shared_ptr<const Catalog> ReadCatalog(std::string_view json, const std::string& file) {
  return ReadJson(json, file, [&](const JsonValue& root) {
    auto catalog = std::make_shared<Catalog>();
    catalog->file = file;
    ReadTypes(Member(root, "types", Kind::kObject), catalog.get());
    const JsonValue& names = Member(root, "action_names", Kind::kObject);
    catalog->find = ReadNames(names, "find");
    catalog->pick_up = ReadNames(names, "pick_up");
    catalog->open_close = ReadNames(names, "open_close");
    catalog->turn_on_off = ReadNames(names, "turn_on_off");
    catalog->slice = ReadNames(names, "slice");
    std::unordered_map<std::string, std::pair<std::shared_ptr<const FloorPlan>, Indices>> plans;
    for (const auto& [name, value] : Member(root, "floorplans", Kind::kObject).members) {
      auto& [plan, indices] = plans[name];
      plan = ReadFloorPlan(*catalog, value, &indices);
    }
    for (const auto& [name, value] : Member(root, "trials", Kind::kObject).members) {
      const auto plan = plans.find(StringMember(value, "floor_plan"));
      if (plan == plans.end())
        throw TextError{value.offset,
                        "floor_plan: expected one of 'floorplans', got " + Quote(StringMember(value, "floor_plan"))};
      Trial& trial = catalog->trials[name];
      trial.floor_plan = plan->second.first;
      ReadObjects(*catalog, value, plan->second.second, &trial);
    }
    return std::shared_ptr<const Catalog>(std::move(catalog));
  });
}

}  // namespace embodied_mem::eb_alfred

#include "envs/memento/house.h"

#include <cmath>

#include "core/json_fields.h"

namespace embodied_mem::memento {
namespace {

Point ReadPoint(const JsonValue& value, const std::string& what) {
  Expect(value, JsonValue::Kind::kArray, what);
  if (value.items.size() != 3)
    throw TextError{value.offset, what + ": expected three coordinates, got " + std::to_string(value.items.size())};
  return {Number(value.items[0], what), Number(value.items[1], what), Number(value.items[2], what)};
}

void Name(House* house, const JsonValue& where, const std::string& name, Node node) {
  if (name.empty()) throw TextError{where.offset, "expected a name, got an empty string"};
  if (!house->names.emplace(name, node).second)
    throw TextError{where.offset, "the name " + Quote(name) + " is given twice in one house"};
}

std::uint16_t RoomNamed(const House& house, const JsonValue& object) {
  const Node room = house.Find(StringMember(object, "room"));
  if (room.kind != NodeKind::kRoom)
    throw TextError{object.offset, "unknown room " + Quote(StringMember(object, "room"))};
  return room.index;
}

void ReadFurniture(const JsonValue& value, House* house) {
  Furniture piece;
  piece.name = StringMember(value, "name");
  piece.type = StringMember(value, "type");
  piece.handle = StringMember(value, "sim_handle");
  piece.room = RoomNamed(*house, value);
  piece.position = ReadPoint(Member(value, "translation", JsonValue::Kind::kArray), "translation");
  piece.articulated = BoolMember(value, "is_articulated");
  for (const JsonValue& component : ListMember(value, "components")) {
    Expect(component, JsonValue::Kind::kString, "a component");
    piece.faucet = piece.faucet || component.text == "faucet";
  }
  const auto index = static_cast<std::uint16_t>(house->furniture.size());
  for (const JsonValue& receptacle : ListMember(value, "receptacles")) {
    const std::string& word = StringMember(receptacle, "relation");
    if (word != "on" && word != "within")
      throw TextError{receptacle.offset, "relation: expected 'on' or 'within', got " + Quote(word)};
    const Relation relation = word == "on" ? Relation::kOn : Relation::kWithin;
    piece.takes[static_cast<std::size_t>(relation)] = true;
    if (!house->receptacles.emplace(StringMember(receptacle, "sim_handle"), Receptacle{index, relation}).second)
      throw TextError{receptacle.offset,
                      "the receptacle " + Quote(StringMember(receptacle, "sim_handle")) + " comes twice"};
  }
  Name(house, value, piece.name, {NodeKind::kFurniture, index});
  if (!house->handles.emplace(piece.handle, index).second)
    throw TextError{value.offset, "the handle " + Quote(piece.handle) + " comes twice"};
  house->rooms[piece.room].furniture.push_back(index);
  house->furniture.push_back(std::move(piece));
}

// Rooms with a floor in their order, then the others in the order in which furniture names them; empty ones nowhere.
std::string Describe(const House& house) {
  std::string text = "Furniture:\n";
  std::vector<bool> said(house.rooms.size(), false);
  const auto say = [&](std::size_t r) {
    const Room& room = house.rooms[r];
    said[r] = true;
    text += room.name + ": ";
    bool first = true;
    const auto item = [&](const std::string& name) {
      text += first ? "" : ", ";
      text += name;
      first = false;
    };
    if (room.has_floor) item("floor_" + room.name);
    for (const std::uint16_t f : room.furniture) item(house.furniture[f].name);
    text += '\n';
  };
  for (std::size_t r = 0; r < house.rooms.size(); ++r) {
    if (house.rooms[r].has_floor) say(r);
  }
  for (const Furniture& piece : house.furniture) {
    if (!said[piece.room]) say(piece.room);
  }
  text += "\nThe following furnitures have a faucet: ";
  bool first = true;
  for (const Furniture& piece : house.furniture) {
    if (!piece.faucet) continue;
    text += (first ? "" : ", ") + piece.name;
    first = false;
  }
  return text;
}

std::shared_ptr<const House> ReadHouse(const std::string& id, const JsonValue& value) {
  auto house = std::make_shared<House>();
  house->id = id;
  for (const JsonValue& entry : ListMember(value, "rooms")) {
    Room room;
    room.name = StringMember(entry, "name");
    room.type = StringMember(entry, "type");
    for (const JsonValue& point : ListMember(entry, "floor_points"))
      room.floor_points.push_back(ReadPoint(point, "floor_points"));
    Name(house.get(), entry, room.name, {NodeKind::kRoom, static_cast<std::uint16_t>(house->rooms.size())});
    house->rooms.push_back(std::move(room));
    if (house->rooms.size() > 1000) throw TextError{entry.offset, "more than 1000 rooms"};
  }
  for (const JsonValue& entry : ListMember(value, "floors")) {
    const std::uint16_t room = RoomNamed(*house, entry);
    if (StringMember(entry, "name") != "floor_" + house->rooms[room].name)
      throw TextError{entry.offset, "a floor's name: expected 'floor_" + house->rooms[room].name + "', got " +
                                        Quote(StringMember(entry, "name"))};
    Name(house.get(), entry, StringMember(entry, "name"), {NodeKind::kFloor, room});
    house->rooms[room].has_floor = true;
  }
  for (const JsonValue& entry : ListMember(value, "furniture")) {
    if (house->furniture.size() >= 10000) throw TextError{entry.offset, "more than 10000 pieces of furniture"};
    ReadFurniture(entry, house.get());
  }
  bool walkable = false;
  for (const Room& room : house->rooms) walkable = walkable || !room.floor_points.empty();
  if (!walkable) throw TextError{value.offset, "a house without a room that has floor_points; nobody can stand in it"};
  house->text = Describe(*house);
  return house;
}

}  // namespace

double Distance(const Point& a, const Point& b) { return std::hypot(a.x - b.x, a.z - b.z); }

Node House::Find(std::string_view name) const {
  const auto found = names.find(std::string(name));
  return found == names.end() ? Node{} : found->second;
}

std::uint16_t House::RoomOf(Node place) const {
  return place.kind == NodeKind::kFurniture ? furniture[place.index].room : place.index;
}

const std::string& House::NameOf(Node place) const {
  return place.kind == NodeKind::kFurniture ? furniture[place.index].name : rooms[place.index].name;
}

std::string House::PlaceText(Node place) const {
  return (place.kind == NodeKind::kFloor ? "floor_" : "") + NameOf(place) + " in " + rooms[RoomOf(place)].name;
}

bool House::Reachable(std::uint16_t room) const {
  // A porch lies outside the walkable mesh although its floor was sampled: all recorded walks to one failed.
  return !rooms[room].floor_points.empty() && rooms[room].type != "porch";
}

Houses ReadHouses(std::string_view json, const std::string& file) {
  return ReadJson(json, file, [](const JsonValue& root) {
    Expect(root, JsonValue::Kind::kObject, "the file");
    Houses houses;
    for (const auto& [id, value] : root.members) houses.emplace(id, ReadHouse(id, value));
    return houses;
  });
}

}  // namespace embodied_mem::memento

// A house as its agents know it: rooms, floors, furniture and receptacles, read from scenes.json.
//
// A House is immutable and shared. Indices are those of its vectors; a Node names one thing of a house or a task.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace embodied_mem::memento {

constexpr std::uint16_t kNone = 0xFFFF;

struct Point {  // metres, y up
  double x = 0, y = 0, z = 0;
};

// Metres in the floor plane.
double Distance(const Point& a, const Point& b);

enum class Relation : std::uint8_t { kOn, kWithin };

enum class NodeKind : std::uint8_t { kNothing, kRoom, kFloor, kFurniture, kObject };

// A floor has the index of its room.
struct Node {
  NodeKind kind = NodeKind::kNothing;
  std::uint16_t index = kNone;
  bool operator==(const Node& other) const { return kind == other.kind && index == other.index; }
  bool operator!=(const Node& other) const { return !(*this == other); }
};

struct Room {
  std::string name, type;
  std::vector<Point> floor_points;       // where `Navigate[room]` may end; empty: it cannot be entered
  std::vector<std::uint16_t> furniture;  // in the order of a tour
  bool has_floor = false;
};

struct Furniture {
  std::string name, type, handle;
  std::uint16_t room = kNone;
  Point position;  // of its centre
  bool articulated = false, faucet = false;
  bool takes[2] = {false, false};  // by Relation
};

struct Receptacle {
  std::uint16_t furniture;
  Relation relation;
};

struct House {
  std::string id;
  std::vector<Room> rooms;
  std::vector<Furniture> furniture;
  std::unordered_map<std::string, Node> names;              // rooms, floors, furniture
  std::unordered_map<std::string, std::uint16_t> handles;   // of furniture
  std::unordered_map<std::string, Receptacle> receptacles;  // by handle
  std::string text;  // what a prompt says of the house, from "Furniture:" to the line about faucets

  // The thing of that name, kNothing when there is none.
  Node Find(std::string_view name) const;
  // The room of a furniture piece or a floor.
  std::uint16_t RoomOf(Node place) const;
  const std::string& NameOf(Node place) const;  // of furniture or a room
  std::string PlaceText(Node place) const;      // "table_3 in kitchen_1", "floor_kitchen_1 in kitchen_1"
  // Whether someone can walk there.
  bool Reachable(std::uint16_t room) const;
};

using Houses = std::unordered_map<std::string, std::shared_ptr<const House>>;

// The houses of a scenes.json by scene id. Throws GameFileError.
Houses ReadHouses(std::string_view json, const std::string& file);

}  // namespace embodied_mem::memento

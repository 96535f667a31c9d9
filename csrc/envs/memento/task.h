// One episode of the benchmark: where its objects start, what is asked, and when it is fulfilled.
//
// A Task is immutable and shared by any number of envs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "envs/memento/house.h"

namespace embodied_mem::memento {

constexpr std::size_t kMaxPropositions = 64;  // a set of them is one word
constexpr std::size_t kMaxObjects = 1000;

struct Label {
  std::string category;
  std::string caption;
  bool has_caption = false;
};
using Labels = std::unordered_map<std::string, Label>;  // by object template

struct ObjectInfo {
  std::string name, handle, category, caption;  // a missing caption reads "nan", as the original says it
  std::uint16_t furniture = kNone;              // where it starts
  Relation relation = Relation::kOn;
  Point start;
  Node text_place;  // where observations say it is while nobody has moved it
};

enum class Predicate : std::uint8_t { kOnTop, kInside, kInRoom, kOnFloor, kNextTo };

// Holds when any of `first` stands in the relation to any of `second`.
struct Proposition {
  Predicate predicate;
  std::vector<Node> first, second;
  double max_distance_m = 1.0;  // of kNextTo
  std::uint64_t ancestors = 0;  // propositions that must have been true strictly earlier
};

// `proposition` is looked at only while the condition over earlier states holds.
struct Dependency {
  std::uint16_t proposition;
  std::uint64_t depends_on;
  bool after;  // true: at any earlier state; false: in the last state
  bool all;    // true: all of depends_on; false: one suffices
};

struct Task {
  std::string id, instruction;
  std::shared_ptr<const House> house;
  std::vector<ObjectInfo> objects;
  std::unordered_map<std::string, std::uint16_t> object_names;
  std::vector<Proposition> propositions;
  std::vector<Dependency> dependencies;
  std::uint64_t terminal = 0;  // propositions that must be true in the last state

  // A house's or the task's own thing of that name.
  Node Find(std::string_view name) const;
};

// Object names of an episode whose text place is not the furniture piece they start on, by episode id.
using TextPlaces = std::unordered_map<std::string, std::unordered_map<std::string, std::string>>;

// The tasks of an episode file in its order. Throws GameFileError.
std::vector<std::shared_ptr<const Task>> ReadTasks(std::string_view json, const std::string& file, const Houses& houses,
                                                   const Labels& labels, const TextPlaces& text_places);

}  // namespace embodied_mem::memento

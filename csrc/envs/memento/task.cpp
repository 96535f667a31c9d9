#include "envs/memento/task.h"

#include <utility>

#include "core/json_fields.h"

namespace embodied_mem::memento {
namespace {

class Reader {
 public:
  Reader(const Houses& houses, const Labels& labels, const TextPlaces& places)
      : houses_(houses), labels_(labels), places_(places) {}

  std::shared_ptr<const Task> Read(const JsonValue& value) {
    task_ = std::make_shared<Task>();
    handles_.clear();
    task_->id = StringMember(value, "episode_id");
    task_->instruction = StringMember(value, "instruction");
    const std::string& scene = StringMember(value, "scene_id");
    const auto house = houses_.find(scene);
    if (house == houses_.end())
      throw TextError{value.offset, "episode " + Quote(task_->id) + ": no house for the scene " + Quote(scene)};
    task_->house = house->second;
    ReadObjects(value);
    const auto& propositions = ListMember(value, "evaluation_propositions");
    if (propositions.empty() || propositions.size() > kMaxPropositions) {
      throw TextError{value.offset, "expected 1 to " + std::to_string(kMaxPropositions) +
                                        " evaluation_propositions, got " + std::to_string(propositions.size())};
    }
    for (const JsonValue& entry : propositions) ReadProposition(entry);
    for (const JsonValue& entry : ListMember(value, "evaluation_proposition_dependencies")) ReadDependency(entry);
    for (const JsonValue& entry : ListMember(value, "evaluation_constraints")) ReadConstraint(entry);
    return std::move(task_);
  }

 private:
  void ReadObjects(const JsonValue& value) {
    const JsonValue& receptacles = Member(value, "name_to_receptacle", JsonValue::Kind::kObject);
    const auto& starts = ListMember(value, "rigid_objs");
    if (starts.size() != receptacles.members.size()) {
      throw TextError{receptacles.offset, "name_to_receptacle has " + std::to_string(receptacles.members.size()) +
                                              " objects, rigid_objs " + std::to_string(starts.size())};
    }
    if (starts.size() > kMaxObjects)
      throw TextError{receptacles.offset, "more than " + std::to_string(kMaxObjects) + " objects"};
    const auto places = places_.find(task_->id);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const auto& [handle, where] = receptacles.members[i];
      Expect(where, JsonValue::Kind::kString, "a receptacle of name_to_receptacle");
      const auto receptacle = task_->house->receptacles.find(where.text);
      if (receptacle == task_->house->receptacles.end())
        throw TextError{where.offset,
                        "the house " + Quote(task_->house->id) + " has no receptacle " + Quote(where.text)};
      const std::string stem = handle.substr(0, handle.rfind("_:"));
      const auto label = labels_.find(stem);
      if (label == labels_.end())
        throw TextError{where.offset, "no category for the object template " + Quote(stem) + " in the captions"};
      ObjectInfo object;
      object.handle = handle;
      object.category = label->second.category;
      object.caption = label->second.has_caption ? label->second.caption : "nan";
      object.name = object.category + "_" + std::to_string(i);
      object.furniture = receptacle->second.furniture;
      object.relation = receptacle->second.relation;
      object.start = ReadStart(starts[i]);
      object.text_place = {NodeKind::kFurniture, object.furniture};
      if (places != places_.end()) {
        if (const auto place = places->second.find(object.name); place != places->second.end()) {
          object.text_place = task_->house->Find(place->second);
          if (object.text_place.kind != NodeKind::kFurniture && object.text_place.kind != NodeKind::kFloor)
            throw TextError{where.offset, "text place of " + Quote(object.name) +
                                              ": expected furniture or a floor, got " + Quote(place->second)};
        }
      }
      const auto index = static_cast<std::uint16_t>(i);
      if (task_->house->names.count(object.name) != 0 || !task_->object_names.emplace(object.name, index).second)
        throw TextError{where.offset, "two things are called " + Quote(object.name)};
      handles_.emplace(handle, index);
      task_->objects.push_back(std::move(object));
    }
  }

  static Point ReadStart(const JsonValue& entry) {
    Expect(entry, JsonValue::Kind::kArray, "an entry of rigid_objs");
    if (entry.items.size() != 2) throw TextError{entry.offset, "rigid_objs: expected [template, matrix]"};
    const JsonValue& matrix = entry.items[1];
    Expect(matrix, JsonValue::Kind::kArray, "the matrix of rigid_objs");
    double column[3];
    if (matrix.items.size() != 4) throw TextError{matrix.offset, "rigid_objs: expected a 4 x 4 matrix"};
    for (std::size_t row = 0; row < 3; ++row) {
      Expect(matrix.items[row], JsonValue::Kind::kArray, "a row of a matrix");
      if (matrix.items[row].items.size() != 4)
        throw TextError{matrix.items[row].offset, "rigid_objs: expected a 4 x 4 matrix"};
      column[row] = Number(matrix.items[row].items[3], "a position");
    }
    return {column[0], column[1], column[2]};
  }

  // Objects, and furniture where allowed, named by their handles.
  std::vector<Node> Handles(const JsonValue& args, std::string_view name, bool objects, bool furniture) const {
    std::vector<Node> nodes;
    for (const JsonValue& handle : ListMember(args, name)) {
      Expect(handle, JsonValue::Kind::kString, "a handle");
      const auto object = handles_.find(handle.text);
      const auto piece = task_->house->handles.find(handle.text);
      if (objects && object != handles_.end()) nodes.push_back({NodeKind::kObject, object->second});
      else if (furniture && piece != task_->house->handles.end())
        nodes.push_back({NodeKind::kFurniture, piece->second});
      else throw TextError{handle.offset, "unknown handle " + Quote(handle.text) + " in '" + std::string(name) + "'"};
    }
    if (nodes.empty()) throw TextError{args.offset, "'" + std::string(name) + "' is empty"};
    return nodes;
  }

  void ReadProposition(const JsonValue& entry) {
    const std::string& function = StringMember(entry, "function_name");
    const JsonValue& args = Member(entry, "args", JsonValue::Kind::kObject);
    if (Number(Member(args, "number", JsonValue::Kind::kNumber), "number") != 1)
      throw TextError{args.offset, "number: only 1 is supported"};
    for (const char* flag : {"is_same_receptacle", "is_same_room", "is_same_b"}) {
      if (args.Find(flag) != nullptr && BoolMember(args, flag))
        throw TextError{args.offset, std::string(flag) + ": only false is supported"};
    }
    Proposition p{};
    if (function == "is_next_to") {
      p.predicate = Predicate::kNextTo;
      p.first = Handles(args, "entity_handles_a", true, true);
      p.second = Handles(args, "entity_handles_b", true, true);
      p.max_distance_m = Number(Member(args, "l2_threshold", JsonValue::Kind::kNumber), "l2_threshold");
    } else {
      p.first = Handles(args, "object_handles", true, false);
      if (function == "is_on_floor") {
        p.predicate = Predicate::kOnFloor;
      } else if (function == "is_in_room") {
        p.predicate = Predicate::kInRoom;
        for (const JsonValue& id : ListMember(args, "room_ids")) {
          Expect(id, JsonValue::Kind::kString, "a room id");
          std::string name = id.text;
          for (char& c : name) c = c == ' ' ? '_' : c;
          Node room = task_->house->Find(name + "_1");
          if (room.kind != NodeKind::kRoom) room = task_->house->Find(name);
          if (room.kind != NodeKind::kRoom) throw TextError{id.offset, "unknown room id " + Quote(id.text)};
          p.second.push_back(room);
        }
      } else if (function == "is_on_top" || function == "is_inside") {
        p.predicate = function == "is_on_top" ? Predicate::kOnTop : Predicate::kInside;
        p.second = Handles(args, "receptacle_handles", false, true);
      } else {
        throw TextError{entry.offset,
                        "function_name: expected is_on_top, is_inside, is_in_room, is_on_floor or is_next_to, got " +
                            Quote(function)};
      }
    }
    task_->propositions.push_back(std::move(p));
  }

  std::uint64_t Set(const std::vector<JsonValue>& indices) const {
    std::uint64_t set = 0;
    for (const JsonValue& i : indices)
      set |= 1ULL << Index(i, task_->propositions.size(), "the index of a proposition");
    return set;
  }

  void ReadDependency(const JsonValue& entry) {
    const std::string& relation = StringMember(entry, "relation_type");
    const std::string& mode = StringMember(entry, "dependency_mode");
    if (relation != "while_satisfied" && relation != "after_satisfied")
      throw TextError{entry.offset,
                      "relation_type: expected while_satisfied or after_satisfied, got " + Quote(relation)};
    if (mode != "any" && mode != "all")
      throw TextError{entry.offset, "dependency_mode: expected any or all, got " + Quote(mode)};
    const std::uint64_t depends_on = Set(ListMember(entry, "depends_on"));
    for (const JsonValue& i : ListMember(entry, "proposition_indices")) {
      const auto index = static_cast<std::uint16_t>(Index(i, task_->propositions.size(), "the index of a proposition"));
      task_->dependencies.push_back({index, depends_on, relation == "after_satisfied", mode == "all"});
    }
  }

  void ReadConstraint(const JsonValue& entry) {
    const std::string& type = StringMember(entry, "type");
    const JsonValue& args = Member(entry, "args", JsonValue::Kind::kObject);
    const std::size_t count = task_->propositions.size();
    if (type == "TemporalConstraint") {
      for (const JsonValue& edge : ListMember(args, "dag_edges")) {
        Expect(edge, JsonValue::Kind::kArray, "an edge");
        if (edge.items.size() != 2) throw TextError{edge.offset, "an edge: expected two propositions"};
        Proposition& later = task_->propositions[Index(edge.items[1], count, "an edge")];
        later.ancestors |= 1ULL << Index(edge.items[0], count, "an edge");
      }
      for (std::size_t round = 0; round < count; ++round) {  // the transitive closure
        for (Proposition& p : task_->propositions) {
          for (std::size_t i = 0; i < count; ++i) {
            if ((p.ancestors >> i) & 1U) p.ancestors |= task_->propositions[i].ancestors;
          }
        }
      }
      for (std::size_t i = 0; i < count; ++i) {
        if ((task_->propositions[i].ancestors >> i) & 1U)
          throw TextError{entry.offset, "dag_edges has a circle; no play can fulfil it"};
      }
    } else if (type == "TerminalSatisfactionConstraint") {
      task_->terminal |= Set(ListMember(args, "proposition_indices"));
    } else if (type == "SameArgConstraint") {
      // The original compares two handles as sets of characters, which every pair of this benchmark passes: no effect.
      Set(ListMember(args, "proposition_indices"));
    } else {
      throw TextError{entry.offset, "a constraint of unknown type " + Quote(type)};
    }
  }

  const Houses& houses_;
  const Labels& labels_;
  const TextPlaces& places_;
  std::shared_ptr<Task> task_;
  std::unordered_map<std::string, std::uint16_t> handles_;
};

}  // namespace

Node Task::Find(std::string_view name) const {
  const auto found = object_names.find(std::string(name));
  return found == object_names.end() ? house->Find(name) : Node{NodeKind::kObject, found->second};
}

std::vector<std::shared_ptr<const Task>> ReadTasks(std::string_view json, const std::string& file, const Houses& houses,
                                                   const Labels& labels, const TextPlaces& text_places) {
  return ReadJson(json, file, [&](const JsonValue& root) {
    Reader reader(houses, labels, text_places);
    std::vector<std::shared_ptr<const Task>> tasks;
    for (const JsonValue& entry : ListMember(root, "episodes")) tasks.push_back(reader.Read(entry));
    return tasks;
  });
}

}  // namespace embodied_mem::memento

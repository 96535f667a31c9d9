#include "memory/graph/graph_update.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "memory/graph/graph_batch.h"
#include "memory/graph/graph_checks.h"
#include "memory/graph/graph_records.h"
#include "memory/graph/node_class.h"

namespace embodied_mem {
namespace {

using Role = ConflictRule::Role;

// Merges facts into the graph of one batch and notes what that changed.
class Merge {
 public:
  Merge(GraphBatch* batch, UpdateResult* result) : batch_(*batch), result_(*result) {}

  FactId Put(NodeId subject, RelationId relation, NodeId object, std::int64_t valid_at,
             std::optional<std::int64_t> source) {
    const FactId known = FindTrue(subject, relation, object, valid_at);
    if (known != kNoFact) {
      if (source) batch_.AddSource(known, *source);
      result_.repeated.push_back(known);
      return known;
    }
    std::int64_t invalid_at = kStillValid;
    conflicts_.clear();
    const auto& of_relation = batch_.state().vocabulary->rules->of_relation;
    if (relation < of_relation.size()) {
      for (const CompiledRules::Place& place : of_relation[relation]) {
        if (Matches(place.rule, place.member, object)) FindConflicts(place, subject, object, valid_at, &invalid_at);
      }
    }
    const auto id = static_cast<FactId>(batch_.state().num_facts);
    for (const UpdateResult::Ended& conflict : conflicts_) {
      if (InvalidAt(batch_.fact(conflict.fact)) <= valid_at) continue;  // found by two rules
      batch_.EndFact(conflict.fact, valid_at);
      result_.ended.push_back({conflict.fact, id, conflict.rule});
    }
    result_.added.push_back(id);
    return batch_.AddFact(subject, relation, object, valid_at, invalid_at, source);
  }

 private:
  // The fact that says the same at that time: the current one, or for a late report the one that was true then.
  FactId FindTrue(NodeId subject, RelationId relation, NodeId object, std::int64_t time) const {
    const FactId current = batch_.FindFact(subject, relation, object);
    if (current != kNoFact) return current;
    const EdgeList* list = batch_.list(subject, false);
    FactId found = kNoFact;
    if (list == nullptr) return found;
    batch_.seen().VisitPast(*list, time, [&](FactId id) {
      const FactRecord& fact = batch_.fact(id);
      if (fact.relation() == relation && fact.object == object && fact.valid_at <= time && time < InvalidAt(fact))
        found = std::min(found, id);  // kNoFact is the largest: the order of the list does not matter
    });
    return found;
  }

  std::int64_t InvalidAt(const FactRecord& fact) const { return fact.InvalidAt(batch_.state().version); }

  bool Matches(std::size_t rule, std::size_t member, NodeId object) const {
    const auto& objects = batch_.state().vocabulary->rules->source.rules[rule].members[member].objects;
    return objects.empty() || std::find(objects.begin(), objects.end(), batch_.node(object).name) != objects.end();
  }

  // The facts that fill the slot of `place.rule` at the node that the new fact fills it for: those true at `valid_at`
  // are in conflict, the first that began later ends the new fact.
  void FindConflicts(const CompiledRules::Place& place, NodeId subject, NodeId object, std::int64_t valid_at,
                     std::int64_t* invalid_at) {
    const ConflictRule& rule = batch_.state().vocabulary->rules->source.rules[place.rule];
    const auto& relations = batch_.state().vocabulary->rules->relations[place.rule];
    const NodeId owner = rule.members[place.member].role == Role::kSubject ? subject : object;
    const auto consider = [&](FactId id, NodeId fact_object, RelationId relation, Role role) {
      for (std::size_t m = 0; m < relations.size(); ++m) {
        if (relations[m] != relation || rule.members[m].role != role || !Matches(place.rule, m, fact_object)) continue;
        const FactRecord& fact = batch_.fact(id);
        if (fact.valid_at > valid_at) {
          *invalid_at = std::min(*invalid_at, fact.valid_at);
        } else if (InvalidAt(fact) > valid_at) {
          conflicts_.push_back({id, kNoFact, place.rule});
        }
      }
    };
    const auto begin = static_cast<std::ptrdiff_t>(conflicts_.size());
    for (const Role role : {Role::kSubject, Role::kObject}) {
      const bool used =
          std::any_of(rule.members.begin(), rule.members.end(), [&](const auto& m) { return m.role == role; });
      const EdgeList* list = used ? batch_.list(owner, role == Role::kObject) : nullptr;
      if (list == nullptr) continue;
      const auto past = [&](FactId id) { consider(id, batch_.fact(id).object, batch_.fact(id).relation(), role); };
      batch_.seen().VisitEdges(
          *list,
          [&](const Edge& edge) {
            consider(edge.fact, role == Role::kSubject ? edge.node : owner, edge.relation(), role);
          },
          past);
      SeenVersion::VisitMoved(*list, valid_at, past);
    }
    // Past facts come in the order in which they ended, which a graph that was read back does not know.
    std::sort(conflicts_.begin() + begin, conflicts_.end(),
              [](const auto& a, const auto& b) { return a.fact < b.fact; });
  }

  GraphBatch& batch_;
  UpdateResult& result_;
  std::vector<UpdateResult::Ended> conflicts_;
};

std::string At(const char* list, std::size_t i, const std::string& field) {
  return std::string(list) + "[" + std::to_string(i) + "]." + field;
}

void CheckWord(const std::string& word, const char* list, std::size_t i, const char* field) {
  if (!word.empty() && !IsName(word)) CheckName(word, At(list, i, field));
}

// The names of nodes in a batch, which lie elsewhere: each is checked, hashed and looked up once.
class Names {
 public:
  explicit Names(std::size_t max_count) {
    std::size_t room = 2;
    while (room < 2 * max_count) room *= 2;
    table_.assign(room, kNone);
    names_.reserve(max_count);
    hashes_.reserve(max_count);
  }
  // The name's number, from 0 on.
  std::uint32_t Add(std::string_view name, const char* list, std::size_t i, const char* field) {
    const std::uint32_t hash = NameHash(name);
    std::size_t place = hash & (table_.size() - 1);
    for (; table_[place] != kNone; place = (place + 1) & (table_.size() - 1)) {
      if (hashes_[table_[place]] == hash && names_[table_[place]] == name) return table_[place];
    }
    if (!IsName(name)) CheckName(name, At(list, i, field));
    table_[place] = static_cast<std::uint32_t>(names_.size());
    names_.push_back(name);
    hashes_.push_back(hash);
    return table_[place];
  }
  void Find(const GraphBatch& batch) { batch.FindNodes(names_, hashes_, &ids_); }

  NodeId id(std::uint32_t number) const { return ids_[number]; }
  // The node of this name, made or given a type where it has none.
  NodeId Link(std::uint32_t number, const Mention& mention, TypeId type, GraphBatch* batch, UpdateResult* result) {
    NodeId& id = ids_[number];
    if (id == kNoNode) {
      result->new_nodes.push_back(static_cast<NodeId>(batch->state().num_nodes));
    } else if (type == kNoType || batch->node(id).type != kNoType) {
      return id;
    }
    return id = batch->PutNode({mention.name, mention.type, {}, kNoEmbedding}, type, hashes_[number], id);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> table_;  // open addressing, at most half full
  std::vector<std::string_view> names_;
  std::vector<std::uint32_t> hashes_;
  std::vector<NodeId> ids_;
};

// The facts that end by themselves, as their names say.
std::vector<FactId> FindEnding(const GraphBatch& batch, const std::vector<NamedEnding>& ends,
                               const std::vector<Changes::Ending>& numbers) {
  std::vector<FactId> facts;
  batch.FindFacts(numbers, &facts);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::string where = "invalidate[" + std::to_string(i) + "]";
    if (facts[i] == kNoFact)
      throw InvalidInputError(where + ": expected a current fact, got (" + Quote(ends[i].subject) + ", " +
                              Quote(ends[i].relation) + ", " + Quote(ends[i].object) + ")");
    const std::int64_t began = batch.fact(facts[i]).valid_at;
    if (ends[i].invalid_at < began || ends[i].invalid_at == kStillValid)
      throw InvalidInputError(where + ": expected a time from " + std::to_string(began) +
                              " on, since when the fact is valid, got " + std::to_string(ends[i].invalid_at));
  }
  std::vector<FactId> sorted = facts;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    throw InvalidInputError("invalidate: expected each fact once, got " + std::to_string(*twice) + " twice");
  return facts;
}

}  // namespace

Triple ClassedTriple(std::string_view subject, std::string_view relation, std::string_view object,
                     std::int64_t valid_at, std::int64_t source, std::string_view state) {
  const std::string_view object_class = relation == state ? std::string_view() : ClassOf(object);
  return {{std::string(subject), std::string(ClassOf(subject))},
          std::string(relation),
          {std::string(object), std::string(object_class)},
          valid_at,
          source};
}

void KnowledgeGraph::Update(const std::vector<Triple>& triples, const UpdateOptions& options, KHopScratch* scratch,
                            UpdateResult* result) {
  Subgraph room = std::move(result->subgraph);
  *result = UpdateResult();
  result->subgraph = std::move(room);
  const std::size_t num_triples = triples.size(), num_ends = options.end.size();
  Names names(2 * (num_triples + num_ends));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers;  // of subject and object: those that end, then triples
  numbers.reserve(num_ends + num_triples);
  for (std::size_t i = 0; i < num_ends; ++i)
    numbers.emplace_back(names.Add(options.end[i].subject, "invalidate", i, "subject"),
                         names.Add(options.end[i].object, "invalidate", i, "object"));
  for (std::size_t i = 0; i < num_triples; ++i) {
    const Triple& triple = triples[i];
    const std::uint32_t subject = names.Add(triple.subject.name, "triples", i, "subject.name");
    CheckWord(triple.subject.type, "triples", i, "subject.type");
    numbers.emplace_back(subject, names.Add(triple.object.name, "triples", i, "object.name"));
    CheckWord(triple.object.type, "triples", i, "object.type");
    if (!IsName(triple.relation)) CheckName(triple.relation, At("triples", i, "relation"));
    if (triple.valid_at == kStillValid)
      throw InvalidInputError(At("triples", i, "valid_at") + ": expected a time below " + std::to_string(kStillValid));
  }
  {
    GraphBatch batch(this);
    CheckRoom(batch.state().num_nodes, 2 * num_triples, "nodes");
    CheckRoom(batch.state().num_facts, num_triples, "facts");
    names.Find(batch);
    std::vector<std::pair<NodeId, NodeId>> linked;
    linked.reserve(numbers.size());
    for (const auto& [subject, object] : numbers) linked.emplace_back(names.id(subject), names.id(object));
    batch.PrefetchLists(linked);
    std::vector<Changes::Ending> ends;
    for (std::size_t i = 0; i < num_ends; ++i) {
      const NamedEnding& end = options.end[i];
      const RelationId relation = batch.state().vocabulary->relations->Find(end.relation);
      ends.push_back({linked[i].first, relation, linked[i].second, end.invalid_at});
    }
    const std::vector<FactId> ended = FindEnding(batch, options.end, ends);
    std::vector<RelationId> relations(num_triples);
    std::vector<std::pair<TypeId, TypeId>> types(num_triples, {kNoType, kNoType});
    for (std::size_t i = 0; i < num_triples; ++i) {
      const bool is_same = i > 0 && triples[i].relation == triples[i - 1].relation;
      relations[i] = is_same ? relations[i - 1] : batch.Relation(triples[i].relation);
    }
    const std::string* last = nullptr;  // the type looked up last, and its number
    TypeId number = kNoType;
    const auto type_of = [&](const std::string& type) {
      if (type.empty()) return kNoType;
      if (last == nullptr || *last != type) number = batch.Type(*(last = &type));
      return number;
    };
    for (std::size_t i = 0; i < num_triples; ++i) {
      types[i].first = type_of(triples[i].subject.type);
      types[i].second = type_of(triples[i].object.type);
    }
    CheckKHop(options.khop, batch.state().vocabulary->relations->words.size());

    for (std::size_t i = 0; i < num_ends; ++i) batch.EndFact(ended[i], options.end[i].invalid_at);
    Merge merge(&batch, result);
    for (auto* const ids : {&result->subjects, &result->objects, &result->facts}) ids->reserve(num_triples);
    for (std::size_t i = 0; i < num_triples; ++i) {
      const Triple& triple = triples[i];
      const auto [subject, object] = numbers[num_ends + i];
      result->subjects.push_back(names.Link(subject, triple.subject, types[i].first, &batch, result));
      result->objects.push_back(names.Link(object, triple.object, types[i].second, &batch, result));
      result->facts.push_back(
          merge.Put(result->subjects[i], relations[i], result->objects[i], triple.valid_at, triple.source));
    }
    batch.Commit();
  }
  if (!options.extract) {
    result->subgraph.Clear();
    return;
  }
  std::vector<NodeId> entities = result->subjects;
  entities.insert(entities.end(), result->objects.begin(), result->objects.end());
  Snapshot(*this).KHop(entities, options.khop, scratch, &result->subgraph);
}

}  // namespace embodied_mem

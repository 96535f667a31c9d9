#include "memory/graph/graph_update.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/error.h"
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

std::string At(std::size_t triple, const char* field) { return "triples[" + std::to_string(triple) + "]." + field; }

// `end` of triple number `triple`.
void CheckMention(const Mention& mention, std::size_t triple, const char* end) {
  if (!IsName(mention.name)) CheckName(mention.name, At(triple, end) + ".name");
  if (!mention.type.empty() && !IsName(mention.type)) CheckName(mention.type, At(triple, end) + ".type");
}

NodeId Link(const Mention& mention, GraphBatch* batch, UpdateResult* result) {
  const NodeId exact = batch->FindNode(mention.name);
  if (exact == kNoNode) {
    result->new_nodes.push_back(static_cast<NodeId>(batch->state().num_nodes));
    return batch->PutNode({mention.name, mention.type, {}, kNoEmbedding}, kNoNode);
  }
  if (!mention.type.empty() && batch->node(exact).type == kNoType)  // its type stays, if it has one
    batch->PutNode({mention.name, mention.type, {}, kNoEmbedding}, exact);
  return exact;
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
  {
    GraphBatch batch(this);
    CheckRoom(batch.state().num_nodes, 2 * triples.size(), "nodes");
    CheckRoom(batch.state().num_facts, triples.size(), "facts");
    std::vector<RelationId> relations;
    for (std::size_t i = 0; i < triples.size(); ++i) {
      const Triple& triple = triples[i];
      CheckMention(triple.subject, i, "subject");
      CheckMention(triple.object, i, "object");
      if (!IsName(triple.relation)) CheckName(triple.relation, At(i, "relation"));
      if (triple.valid_at == kStillValid)
        throw InvalidInputError(At(i, "valid_at") + ": expected a time below " + std::to_string(kStillValid));
    }
    for (const Triple& triple : triples) relations.push_back(batch.Relation(triple.relation));
    for (const Triple& triple : triples) {
      if (!triple.subject.type.empty()) batch.Type(triple.subject.type);
      if (!triple.object.type.empty()) batch.Type(triple.object.type);
    }
    CheckKHop(options.khop, batch.state().vocabulary->relations->words.size());

    Merge merge(&batch, result);
    for (std::size_t i = 0; i < triples.size(); ++i) {
      result->subjects.push_back(Link(triples[i].subject, &batch, result));
      result->objects.push_back(Link(triples[i].object, &batch, result));
      result->facts.push_back(
          merge.Put(result->subjects[i], relations[i], result->objects[i], triples[i].valid_at, triples[i].source));
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

// Reading one version of a knowledge graph; traversals are in khop.cpp.
#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "memory/graph/graph_batch.h"
#include "memory/graph/graph_checks.h"
#include "memory/graph/graph_records.h"
#include "memory/graph/knowledge_graph.h"

namespace embodied_mem {
namespace {

bool TrueAt(const FactRecord& fact, std::int64_t time, std::uint64_t version) {
  return fact.valid_at <= time && time < fact.InvalidAt(version);
}

}  // namespace

Snapshot::Snapshot(const KnowledgeGraph& graph)
    : graph_(graph), pin_(graph.versions_.Acquire(graph.published_.load())), state_(graph.state_.load()) {}

Snapshot::~Snapshot() { Versions::Release(pin_); }

SeenVersion Snapshot::Seen() const {
  return {graph_.facts_, state_->version, state_->num_nodes, state_->num_facts, state_->num_buckets};
}

std::uint64_t Snapshot::version() const { return state_->version; }
std::size_t Snapshot::num_nodes() const { return state_->num_nodes; }
std::size_t Snapshot::num_facts() const { return state_->num_facts; }
std::size_t Snapshot::num_current_facts() const { return state_->num_current_facts; }
std::size_t Snapshot::num_forgotten_nodes() const { return state_->num_forgotten_nodes; }
std::size_t Snapshot::num_erased_facts() const { return state_->num_erased_facts; }
const std::vector<std::string>& Snapshot::relations() const { return state_->vocabulary->relations->words; }
const std::vector<std::string>& Snapshot::types() const { return state_->vocabulary->types->words; }
const ConflictRules& Snapshot::rules() const { return state_->vocabulary->rules->source; }

bool Snapshot::HasNode(NodeId node) const {
  CheckNode(node, num_nodes(), "node");
  return !graph_.nodes_.Read(node, state_->version)->name.empty();
}

bool Snapshot::HasFact(FactId fact) const {
  if (fact >= num_facts())
    throw InvalidInputError("fact: expected a fact id below " + std::to_string(num_facts()) + ", got " +
                            std::to_string(fact));
  return graph_.facts_.Read(fact, state_->version)->subject != kNoNode;
}

void Snapshot::CheckKnown(NodeId node, const std::string& where) const {
  CheckNode(node, num_nodes(), where);
  if (state_->num_forgotten_nodes > 0 && !HasNode(node)) ThrowForgotten(node, where);
}

NodeId Snapshot::FindNode(std::string_view name) const {
  return FindName(graph_.names_, graph_.nodes_, name, NameHash(name), Seen());
}

RelationId Snapshot::KnownRelation(std::string_view relation) const {
  return state_->vocabulary->relations->Find(relation);
}

RelationId Snapshot::FindRelation(std::string_view relation) const {
  const RelationId id = KnownRelation(relation);
  if (id != kNoRelation) return id;
  std::string known;
  for (std::size_t i = 0; i < relations().size() && i < 20; ++i)
    if (!relations()[i].empty()) known += (known.empty() ? "" : ", ") + relations()[i];
  if (relations().size() > 20) known += ", ... (" + std::to_string(relations().size()) + " in all)";
  throw InvalidInputError("relation: expected one that the graph knows, got " + Quote(relation) +
                          "; known: " + (known.empty() ? "none yet, add a fact first" : known));
}

FactId Snapshot::FindFact(NodeId subject, RelationId relation, NodeId object) const {
  CheckKnown(subject, "subject");
  CheckKnown(object, "object");
  return FindEdge(graph_.edges_.Read(2 * static_cast<std::size_t>(subject), state_->version),
                  graph_.edges_.Read(2 * static_cast<std::size_t>(object) + 1, state_->version), subject, relation,
                  object, Seen());
}

Node Snapshot::GetNode(NodeId node) const {
  CheckKnown(node, "node");
  const NodeRecord& record = *graph_.nodes_.Read(node, state_->version);
  return {record.name, record.type == kNoType ? "" : types()[record.type], record.attributes, record.embedding};
}

std::string_view Snapshot::NameOf(NodeId node) const {
  CheckNode(node, num_nodes(), "node");
  return graph_.nodes_.Read(node, state_->version)->name;
}

const FactRecord& Snapshot::KnownFact(FactId fact) const {
  if (!HasFact(fact))
    throw InvalidInputError("fact: expected a known one, got " + std::to_string(fact) + ", which was forgotten");
  return *graph_.facts_.Read(fact, state_->version);
}

Fact Snapshot::GetFact(FactId fact) const {
  const FactRecord& record = KnownFact(fact);
  return {record.subject,  relations()[record.relation()],    record.object,
          record.valid_at, record.InvalidAt(state_->version), record.Sources()};
}

NamedFact Snapshot::GetNamedFact(FactId fact) const {
  const FactRecord& record = KnownFact(fact);
  return {record.subject,
          record.object,
          graph_.nodes_.Read(record.subject, state_->version)->name,
          relations()[record.relation()],
          graph_.nodes_.Read(record.object, state_->version)->name,
          record.valid_at};
}

bool Snapshot::IsCurrent(FactId fact) const { return KnownFact(fact).InvalidAt(state_->version) == kStillValid; }

void Snapshot::AppendFacts(NodeId node, bool incoming, std::optional<std::int64_t> as_of,
                           std::vector<FactId>* facts) const {
  const EdgeList* list = graph_.edges_.Read(2 * static_cast<std::size_t>(node) + (incoming ? 1 : 0), state_->version);
  if (list == nullptr) return;
  const SeenVersion seen = Seen();
  const auto begin = static_cast<std::ptrdiff_t>(facts->size());
  const auto past = [&](FactId id) {
    if (as_of && TrueAt(seen.fact(id), *as_of, seen.version)) facts->push_back(id);
  };
  seen.VisitEdges(
      *list,
      [&](const Edge& edge) {
        if (!as_of || seen.fact(edge.fact).valid_at <= *as_of) facts->push_back(edge.fact);
      },
      past);
  if (!as_of) return;
  SeenVersion::VisitMoved(*list, *as_of, past);
  std::sort(facts->begin() + begin, facts->end());
}

std::vector<FactId> Snapshot::FactsOf(NodeId node, Direction direction, std::optional<std::int64_t> as_of) const {
  CheckKnown(node, "node");
  std::vector<FactId> facts;
  if (direction != Direction::kIn) AppendFacts(node, false, as_of, &facts);
  const std::size_t num_out = facts.size();
  if (direction != Direction::kOut) AppendFacts(node, true, as_of, &facts);
  if (direction == Direction::kBoth) {
    const auto loop = [&](FactId fact) { return graph_.facts_.Read(fact, state_->version)->subject == node; };
    facts.erase(std::remove_if(facts.begin() + static_cast<std::ptrdiff_t>(num_out), facts.end(), loop), facts.end());
  }
  return facts;
}

std::vector<FactId> Snapshot::AllFacts(std::optional<std::int64_t> as_of) const {
  std::vector<FactId> facts;
  for (std::size_t fact = 0; fact < num_facts(); ++fact) {
    const FactRecord& record = *graph_.facts_.Read(fact, state_->version);
    if (as_of ? TrueAt(record, *as_of, state_->version) : record.InvalidAt(state_->version) == kStillValid)
      facts.push_back(static_cast<FactId>(fact));
  }
  return facts;
}

}  // namespace embodied_mem

// Removing what must not be remembered, and the writes of a batch that this needs.
#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "memory/graph/graph_batch.h"
#include "memory/graph/graph_checks.h"
#include "memory/graph/graph_records.h"

namespace embodied_mem {
namespace {

template <typename T>
void SortUnique(std::vector<T>* values) {
  std::sort(values->begin(), values->end());
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

template <typename T>
bool Contains(const std::vector<T>& sorted, T value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

template <typename Visit>
void VisitFacts(const GraphBatch& batch, NodeId node, const Visit& visit) {
  for (const bool incoming : {false, true}) {
    const EdgeList* list = batch.list(node, incoming);
    if (list == nullptr) continue;
    batch.seen().VisitEdges(*list, [&](const Edge& edge) { visit(edge.fact); }, visit);
    SeenVersion::VisitMoved(*list, std::numeric_limits<std::int64_t>::min(), visit);
  }
}

}  // namespace

void GraphBatch::EraseFact(FactId id) {
  changed_ = touched_ = true;
  FactRecord* record = OwnFact(id);
  if (record->InvalidAt(state_.version) == kStillValid) --state_.num_current_facts;
  record->subject = record->object = kNoNode;
  record->set_relation(0);
  record->valid_at = kStillValid;  // true at no time
  record->End(std::numeric_limits<std::int64_t>::min(), state_.version);
  record->ClearSources();
  ++state_.num_erased_facts;
}

void GraphBatch::SetSources(FactId id, const std::vector<std::int64_t>& sources) {
  changed_ = touched_ = true;
  FactRecord* record = OwnFact(id);
  record->ClearSources();
  for (const std::int64_t source : sources) record->AddSource(source);
}

bool GraphBatch::FilterLists(NodeId node, const std::vector<FactId>& erased) {
  bool left = false;
  for (const bool incoming : {false, true}) {
    const std::size_t slot = 2 * static_cast<std::size_t>(node) + (incoming ? 1 : 0);
    if (graph_->edges_.Newest(slot) == nullptr) continue;
    changed_ = touched_ = true;
    // In the copy, what has ended is among the past facts.
    EdgeList* list = CopyList(graph_->edges_.Own(slot, state_.version, &graph_->versions_), 0);
    Edge* const end = std::remove_if(list->edges(), list->edges() + list->count.load(std::memory_order_relaxed),
                                     [&](const Edge& edge) { return Contains(erased, edge.fact); });
    list->count.store(static_cast<std::uint32_t>(end - list->edges()), std::memory_order_relaxed);
    std::vector<FactId> kept;
    SeenVersion::VisitMoved(*list, std::numeric_limits<std::int64_t>::min(), [&](FactId id) {
      if (!Contains(erased, id)) kept.push_back(id);
    });
    list->rest().past = {};
    for (auto it = kept.rbegin(); it != kept.rend(); ++it) list->AppendPast(*it, fact(*it).InvalidAt(state_.version));
    left = left || end != list->edges() || !kept.empty();
  }
  return left;
}

void GraphBatch::ForgetNode(NodeId node) {
  changed_ = touched_ = true;
  const std::string name = graph_->nodes_.Newest(node)->name;
  NameBucket* bucket = CopyBucket(BucketOf(NameHash(name), state_.num_buckets), 0);
  NameBucket::Entry* const end = bucket->entries() + bucket->count.load(std::memory_order_relaxed);
  const auto* const left = std::remove_if(bucket->entries(), end, [&](const auto& entry) { return entry.id == node; });
  bucket->Truncate(static_cast<std::uint32_t>(left - bucket->entries()));
  graph_->nodes_.Put(node, NodeRecord::Make(state_.version, nullptr), &graph_->versions_);
  ++state_.num_forgotten_nodes;
}

void GraphBatch::SkipNode() {
  changed_ = touched_ = true;
  graph_->nodes_.Put(state_.num_nodes++, NodeRecord::Make(state_.version, nullptr), &graph_->versions_);
  ++state_.num_forgotten_nodes;
}

void GraphBatch::SkipFact() {
  changed_ = touched_ = true;
  auto* record = new FactRecord(state_.version, kNoNode, 0, kNoNode, kStillValid);
  record->End(std::numeric_limits<std::int64_t>::min(), state_.version);
  graph_->facts_.Put(state_.num_facts++, record, &graph_->versions_);
  ++state_.num_erased_facts;
}

void GraphBatch::SetWords(std::vector<std::string> relations, std::vector<std::string> types) {
  changed_ = true;
  const auto make = [](std::vector<std::string> list) {
    auto words = std::make_shared<Words>();
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!list[i].empty()) words->ids.emplace(list[i], static_cast<std::uint32_t>(i));
    words->words = std::move(list);
    return words;
  };
  own_relations_ = make(std::move(relations));
  own_types_ = make(std::move(types));
  Vocabulary* vocabulary = OwnVocabulary();
  vocabulary->relations = own_relations_;
  vocabulary->types = own_types_;
}

Forgotten KnowledgeGraph::Forget(const std::vector<NodeId>& nodes, const std::vector<std::int64_t>& sources) {
  GraphBatch batch(this);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string where = "nodes[" + std::to_string(i) + "]";
    CheckNode(nodes[i], batch.state().num_nodes, where);
    if (batch.node(nodes[i]).name.empty()) ThrowForgotten(nodes[i], where);
  }
  Forgotten result;
  result.nodes = nodes;
  SortUnique(&result.nodes);
  std::vector<std::int64_t> gone = sources;
  SortUnique(&gone);
  for (const NodeId node : result.nodes) VisitFacts(batch, node, [&](FactId fact) { result.erased.push_back(fact); });
  if (!gone.empty()) {
    for (std::size_t id = 0; id < batch.state().num_facts; ++id) {
      const FactRecord& fact = batch.fact(static_cast<FactId>(id));
      if (!fact.has_source()) continue;
      const std::vector<std::int64_t> all = fact.Sources();
      const auto num_gone = std::count_if(all.begin(), all.end(), [&](std::int64_t s) { return Contains(gone, s); });
      if (num_gone == static_cast<std::ptrdiff_t>(all.size())) {
        result.erased.push_back(static_cast<FactId>(id));
      } else if (num_gone > 0) {
        result.unsourced.push_back(static_cast<FactId>(id));
      }
    }
  }
  SortUnique(&result.erased);
  const auto erased = [&](FactId fact) { return Contains(result.erased, fact); };
  result.unsourced.erase(std::remove_if(result.unsourced.begin(), result.unsourced.end(), erased),
                         result.unsourced.end());
  if (result.nodes.empty() && result.erased.empty() && result.unsourced.empty()) return result;

  std::vector<NodeId> ends = result.nodes;
  std::vector<RelationId> relations;
  for (const FactId id : result.erased) {
    ends.push_back(batch.fact(id).subject);
    ends.push_back(batch.fact(id).object);
    relations.push_back(batch.fact(id).relation());
  }
  SortUnique(&ends);
  SortUnique(&relations);
  for (const FactId id : result.erased) batch.EraseFact(id);
  for (const FactId id : result.unsourced) {
    std::vector<std::int64_t> left = batch.fact(id).Sources();
    left.erase(std::remove_if(left.begin(), left.end(), [&](std::int64_t s) { return Contains(gone, s); }), left.end());
    batch.SetSources(id, left);
  }
  std::vector<NodeId> empty;
  for (const NodeId node : ends) {
    if (!batch.FilterLists(node, result.erased) && !Contains(result.nodes, node) && batch.node(node).attributes.empty())
      empty.push_back(node);
  }
  result.nodes.insert(result.nodes.end(), empty.begin(), empty.end());
  std::vector<TypeId> types;
  for (const NodeId node : result.nodes) {
    if (batch.node(node).type != kNoType) types.push_back(batch.node(node).type);
    batch.ForgetNode(node);
  }
  SortUnique(&types);

  // Words that only this used.
  std::vector<char> relation_used(batch.state().vocabulary->relations->words.size()),
      type_used(batch.state().vocabulary->types->words.size());
  if (!relations.empty() || !types.empty()) {
    for (std::size_t id = 0; id < batch.state().num_facts; ++id) {
      const FactRecord& fact = batch.fact(static_cast<FactId>(id));
      if (fact.subject != kNoNode) relation_used[fact.relation()] = 1;
    }
    for (std::size_t id = 0; id < batch.state().num_nodes; ++id) {
      const TypeId type = batch.node(static_cast<NodeId>(id)).type;
      if (type != kNoType) type_used[type] = 1;
    }
    for (const auto& rule : batch.state().vocabulary->rules->relations)
      for (const RelationId relation : rule) relation_used[relation] = 1;
    std::vector<std::string> relation_words = batch.state().vocabulary->relations->words,
                             type_words = batch.state().vocabulary->types->words;
    for (const RelationId relation : relations)
      if (relation_used[relation] == 0) relation_words[relation].clear();
    for (const TypeId type : types)
      if (type_used[type] == 0) type_words[type].clear();
    batch.SetWords(std::move(relation_words), std::move(type_words));
  }
  batch.Commit();
  return result;
}

}  // namespace embodied_mem

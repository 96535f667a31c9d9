#include "memory/graph_batch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace embodied_mem {

void FactRecord::AddSource(std::int64_t source) {
  if (num_sources == 0) {
    first_source = source;
  } else if ((more_sources.empty() ? first_source : more_sources.back()) == source) {
    return;
  } else {
    more_sources.Append(source);
  }
  ++num_sources;
}

std::uint32_t NameHash(std::string_view name) {
  const std::uint64_t hash = Fingerprint(name);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32U));
}

NodeId FindName(const VersionedTable<NameBucket>& names, const VersionedTable<NodeRecord>& nodes, std::string_view name,
                std::size_t num_buckets, std::uint64_t version) {
  const std::uint32_t hash = NameHash(name);
  const NameBucket* bucket = names.Read(BucketOf(hash, num_buckets), version);
  if (bucket == nullptr) return kNoNode;
  for (std::uint32_t i = 0; i < bucket->count; ++i) {
    const NameBucket::Entry& entry = bucket->entries()[i];
    if (entry.hash == hash && nodes.Read(entry.id, version)->name == name) return entry.id;
  }
  return kNoNode;
}

FactId FindEdge(const EdgeList* out, const EdgeList* in, NodeId subject, RelationId relation, NodeId object) {
  if (out == nullptr || in == nullptr) return kNoFact;
  const bool use_in = in->count < out->count;
  const EdgeList& list = use_in ? *in : *out;
  const NodeId other = use_in ? subject : object;
  for (std::uint32_t i = 0; i < list.count; ++i) {
    if (list.edges()[i].node == other && list.edges()[i].relation == relation) return list.edges()[i].fact;
  }
  return kNoFact;
}

GraphBatch::GraphBatch(KnowledgeGraph* graph) : graph_(graph), lock_(graph->writer_), state_(*graph->state_.load()) {
  if (graph_->broken_)
    throw InternalError("the knowledge graph is closed for writing, since a batch ended half way for want of memory; "
                        "what it held before can be read, and a fork of it made earlier can be written");
  ++state_.version;
}

GraphBatch::~GraphBatch() {
  if (touched_ && !committed_) graph_->broken_ = true;
}

NodeId GraphBatch::FindNode(std::string_view name) const {
  return FindName(graph_->names_, graph_->nodes_, name, state_.num_buckets, state_.version);
}

void GraphBatch::Prefetch(const Changes& changes) const {
  // Beyond this the first would be gone when their turn comes.
  if (changes.nodes.size() + changes.add.size() + changes.invalidate.size() + changes.end.size() > 64) return;
  const auto out = [](NodeId node) { return 2 * static_cast<std::size_t>(node); };
  const auto in = [](NodeId node) { return 2 * static_cast<std::size_t>(node) + 1; };
  const auto bucket = [this](const Node& node) { return BucketOf(NameHash(node.name), state_.num_buckets); };
  // The bucket that a new node splits.
  std::size_t split = 1;
  while (2 * split <= state_.num_buckets) split *= 2;
  split = state_.num_buckets - split;
  for (const Changes::Ending& end : changes.end) {
    graph_->edges_.PrefetchSlot(out(end.subject));
    graph_->edges_.PrefetchSlot(in(end.object));
  }
  for (const Changes::Invalidation& end : changes.invalidate) graph_->facts_.PrefetchSlot(end.fact);
  for (const Changes::NewFact& fact : changes.add) {
    graph_->edges_.PrefetchSlot(out(fact.subject));
    graph_->edges_.PrefetchSlot(in(fact.object));
  }
  for (const Node& node : changes.nodes) graph_->names_.PrefetchSlot(bucket(node));
  if (!changes.nodes.empty()) graph_->names_.PrefetchSlot(split);
  for (const Changes::Ending& end : changes.end) {
    graph_->edges_.PrefetchRecord(out(end.subject));
    graph_->edges_.PrefetchRecord(in(end.object));
  }
  for (const Changes::Invalidation& end : changes.invalidate) graph_->facts_.PrefetchRecord(end.fact);
  for (const Changes::NewFact& fact : changes.add) {
    graph_->edges_.PrefetchRecord(out(fact.subject));
    graph_->edges_.PrefetchRecord(in(fact.object));
  }
  for (const Node& node : changes.nodes) graph_->names_.PrefetchRecord(bucket(node));
  if (!changes.nodes.empty()) graph_->names_.PrefetchRecord(split);
  for (const Changes::Invalidation& end : changes.invalidate) {
    const FactRecord* fact = graph_->facts_.Newest(end.fact);
    if (fact == nullptr) continue;
    graph_->edges_.PrefetchSlot(out(fact->subject));
    graph_->edges_.PrefetchSlot(in(fact->object));
  }
  for (const Changes::Invalidation& end : changes.invalidate) {
    const FactRecord* fact = graph_->facts_.Newest(end.fact);
    if (fact == nullptr) continue;
    graph_->edges_.PrefetchRecord(out(fact->subject));
    graph_->edges_.PrefetchRecord(in(fact->object));
  }
}

void GraphBatch::FindFacts(const std::vector<Changes::Ending>& ends, std::vector<FactId>* found) const {
  const std::size_t begin = found->size();
  for (const Changes::Ending& end : ends) {
    const EdgeList *out = list(end.subject, false), *in = list(end.object, true);
    const FactId fact = FindEdge(out, in, end.subject, end.relation, end.object);
    found->push_back(fact);
    if (fact == kNoFact) continue;
    graph_->facts_.PrefetchSlot(fact);
    out->past.Prefetch();
    in->past.Prefetch();
  }
  for (std::size_t i = begin; i < found->size(); ++i) {
    if ((*found)[i] != kNoFact) graph_->facts_.PrefetchRecord((*found)[i]);
  }
}

FactId GraphBatch::FindFact(NodeId subject, RelationId relation, NodeId object) const {
  return FindEdge(list(subject, false), list(object, true), subject, relation, object);
}

std::uint32_t GraphBatch::Number(const std::string& word, const char* what, std::shared_ptr<const Words>* words,
                                 std::shared_ptr<Words>* own) {
  const std::uint32_t known = (*words)->Find(word);
  if (known != std::numeric_limits<std::uint32_t>::max()) return known;
  const std::size_t count = (*words)->words.size();
  if (count >= kMaxWords)
    throw InvalidInputError(std::string(what) + ": expected at most " + std::to_string(kMaxWords) + " different ones, got " +
                            Quote(word) + " as one more; put what varies into node names");
  if (*own == nullptr) {
    *own = std::make_shared<Words>(**words);
    *words = *own;
  }
  (*own)->words.push_back(word);
  (*own)->ids.emplace(word, static_cast<std::uint32_t>(count));
  changed_ = true;
  return static_cast<std::uint32_t>(count);
}

RelationId GraphBatch::Relation(const std::string& word) {
  return Number(word, "relation", &state_.relations, &own_relations_);
}

TypeId GraphBatch::Type(const std::string& word) { return Number(word, "type", &state_.types, &own_types_); }

EdgeList* GraphBatch::OwnList(std::size_t slot) {
  std::atomic<EdgeList*>* place = graph_->edges_.Own(slot, state_.version, &graph_->versions_);
  EdgeList* list = place->load(std::memory_order_relaxed);
  if (list != nullptr && list->version == state_.version && list->count < list->capacity) return list;
  EdgeList* fresh = EdgeList::Make(state_.version, list);
  graph_->edges_.Replace(place, fresh, &graph_->versions_);
  return fresh;
}

FactRecord* GraphBatch::OwnFact(FactId id) {
  std::atomic<FactRecord*>* place = graph_->facts_.Own(id, state_.version, &graph_->versions_);
  FactRecord* record = place->load(std::memory_order_relaxed);
  if (record->version == state_.version) return record;
  FactRecord* fresh = FactRecord::Make(state_.version, record);
  graph_->facts_.Replace(place, fresh, &graph_->versions_);
  return fresh;
}

// With room for `more` entries.
NameBucket* GraphBatch::OwnBucket(std::size_t index, std::uint32_t more) {
  std::atomic<NameBucket*>* place = graph_->names_.Own(index, state_.version, &graph_->versions_);
  NameBucket* bucket = place->load(std::memory_order_relaxed);
  if (bucket != nullptr && bucket->version == state_.version && bucket->capacity - bucket->count >= more) return bucket;
  NameBucket* fresh = NameBucket::Make(state_.version, bucket, more);
  graph_->names_.Replace(place, fresh, &graph_->versions_);
  return fresh;
}

void GraphBatch::InsertName(std::string_view name, NodeId node) {
  const std::uint32_t hash = NameHash(name);
  OwnBucket(BucketOf(hash, state_.num_buckets), 1)->Append({hash, node});
  if (state_.num_nodes <= 4 * state_.num_buckets) return;
  const std::size_t made = state_.num_buckets++;
  std::size_t half = 1;
  while (2 * half <= made) half *= 2;
  NameBucket* from = OwnBucket(made - half, 0);
  NameBucket* to = OwnBucket(made, from->count);
  std::uint32_t num_left = 0;
  for (std::uint32_t i = 0; i < from->count; ++i) {
    const NameBucket::Entry entry = from->entries()[i];
    if (BucketOf(entry.hash, state_.num_buckets) == made) {
      to->Append(entry);
    } else {
      from->entries()[num_left++] = entry;
    }
  }
  from->count = num_left;
}

NodeId GraphBatch::PutNode(const Node& node, NodeId known) {
  const TypeId type = node.type.empty() ? kNoType : Type(node.type);
  NodeId id = known;
  const NodeRecord* old = nullptr;
  if (id != kNoNode) {
    old = graph_->nodes_.Newest(id);
    if ((type == kNoType || type == old->type) && node.attributes.empty() &&
        (node.embedding == kNoEmbedding || node.embedding == old->embedding))
      return id;
  }
  changed_ = touched_ = true;
  std::unique_ptr<NodeRecord> record(NodeRecord::Make(state_.version, old));
  if (type != kNoType) record->type = type;
  if (node.embedding != kNoEmbedding) record->embedding = node.embedding;
  for (const auto& attribute : node.attributes) {
    const auto place = std::lower_bound(record->attributes.begin(), record->attributes.end(), attribute,
                                        [](const auto& a, const auto& b) { return a.first < b.first; });
    if (place != record->attributes.end() && place->first == attribute.first) {
      place->second = attribute.second;
    } else {
      record->attributes.insert(place, attribute);
    }
  }
  if (old != nullptr) {
    graph_->nodes_.Put(id, record.release(), &graph_->versions_);
    return id;
  }
  record->name = node.name;
  id = static_cast<NodeId>(state_.num_nodes++);
  graph_->nodes_.Put(id, record.release(), &graph_->versions_);
  InsertName(node.name, id);
  return id;
}

FactId GraphBatch::AddFact(NodeId subject, RelationId relation, NodeId object, std::int64_t valid_at,
                           std::int64_t invalid_at, std::optional<std::int64_t> source) {
  changed_ = touched_ = true;
  const auto id = static_cast<FactId>(state_.num_facts++);
  FactRecord* record = FactRecord::Make(state_.version, nullptr);
  record->subject = subject;
  record->relation = relation;
  record->object = object;
  record->valid_at = valid_at;
  record->invalid_at = invalid_at;
  if (source) record->AddSource(*source);
  graph_->facts_.Put(id, record, &graph_->versions_);
  for (const bool incoming : {false, true}) {
    EdgeList* list = OwnList(2 * static_cast<std::size_t>(incoming ? object : subject) + (incoming ? 1 : 0));
    if (invalid_at == kStillValid) {
      list->edges()[list->count++] = {incoming ? subject : object, relation, id};
    } else {
      list->AppendPast(id, invalid_at);
    }
  }
  if (invalid_at == kStillValid) ++state_.num_current_facts;
  return id;
}

void GraphBatch::EndFact(FactId id, std::int64_t invalid_at) {
  changed_ = touched_ = true;
  FactRecord* record = OwnFact(id);
  const bool current = record->invalid_at == kStillValid;
  record->invalid_at = invalid_at;
  if (!current) return;  // the lists keep its old end as an upper bound
  --state_.num_current_facts;
  for (const bool incoming : {false, true}) {
    EdgeList* list = OwnList(2 * static_cast<std::size_t>(incoming ? record->object : record->subject) + (incoming ? 1 : 0));
    Edge* const end = list->edges() + list->count;
    Edge* const edge = std::lower_bound(list->edges(), end, id, [](const Edge& e, FactId f) { return e.fact < f; });
    if (edge == end || edge->fact != id) throw InternalError("a current fact is missing in the list of its node");
    std::copy(edge + 1, end, edge);
    --list->count;
    list->AppendPast(id, invalid_at);
  }
}

void GraphBatch::AddSource(FactId id, std::int64_t source) {
  const FactRecord& known = fact(id);
  if (known.num_sources > 0 && (known.more_sources.empty() ? known.first_source : known.more_sources.back()) == source) return;
  changed_ = touched_ = true;
  OwnFact(id)->AddSource(source);
}

void GraphBatch::SetRules(std::shared_ptr<const CompiledRules> rules) {
  changed_ = true;
  state_.rules = std::move(rules);
}

void GraphBatch::Commit() {
  if (!changed_) return;
  const GraphState* old = graph_->state_.load(std::memory_order_relaxed);
  auto fresh = std::make_unique<const GraphState>(state_);
  graph_->versions_.Retire(const_cast<GraphState*>(old),
                           [](void* state) { delete static_cast<GraphState*>(state); }, state_.version);
  committed_ = true;
  graph_->state_.store(fresh.release());
  graph_->published_.store(state_.version);
  graph_->versions_.Reclaim(state_.version);
}

}  // namespace embodied_mem

#include "memory/graph_batch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace embodied_mem {

FactRecord* FactRecord::Make(std::uint64_t version, const FactRecord* from) {
  auto record = std::make_unique<FactRecord>();
  record->version = version;
  if (from != nullptr) {
    record->valid_at = from->valid_at;
    record->subject = from->subject;
    record->object = from->object;
    record->invalid_at_ = from->invalid_at_;
    record->ended_.store(from->ended_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    record->relation_ = from->relation_;
    if (from->num_sources_ == Count::kMany) {
      new (&record->sources_) SharedList<std::int64_t, 6>(from->sources_);
    } else {
      record->one_source_ = from->one_source_;
    }
    record->num_sources_ = from->num_sources_;
  }
  return record.release();
}

void FactRecord::AddSource(std::int64_t source) {
  if (!has_source()) {
    one_source_ = source;
    num_sources_ = Count::kOne;
  } else if (last_source() != source) {
    SharedList<std::int64_t, 6> grown;
    if (num_sources_ == Count::kMany) {
      grown = sources_;
    } else {
      grown.Append(one_source_);
    }
    grown.Append(source);
    ClearSources();
    new (&sources_) SharedList<std::int64_t, 6>(std::move(grown));
    num_sources_ = Count::kMany;
  }
}

void FactRecord::ClearSources() {
  if (num_sources_ == Count::kMany) sources_.~SharedList();
  num_sources_ = Count::kNone;
  one_source_ = 0;
}

std::vector<std::int64_t> FactRecord::Sources() const {
  std::vector<std::int64_t> sources;
  if (num_sources_ == Count::kOne) sources.push_back(one_source_);
  if (num_sources_ == Count::kMany) sources_.VisitBackwards([&](std::int64_t source) { sources.push_back(source); });
  std::reverse(sources.begin(), sources.end());
  return sources;
}

std::uint32_t NameHash(std::string_view name) {
  const std::uint64_t hash = Fingerprint(name);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32U));
}

bool SeenVersion::HadEnded(const EdgeList& list, const Edge& edge) const {
  return list.rest().newest_end.load(std::memory_order_acquire) <= version || fact(edge.fact).InvalidAt(version) != kStillValid;
}

NodeId FindName(const VersionedTable<NameBucket>& names, const VersionedTable<NodeRecord>& nodes, std::string_view name,
                const SeenVersion& seen) {
  const std::uint32_t hash = NameHash(name);
  const NameBucket* bucket = names.Read(BucketOf(hash, seen.num_buckets), seen.version);
  if (bucket == nullptr) return kNoNode;
  const NameBucket::Entry* entry = bucket->entries();
  for (const NameBucket::Entry* const end = entry + bucket->count.load(std::memory_order_acquire); entry != end; ++entry) {
    if (entry->hash == hash && entry->id < seen.num_nodes && nodes.Read(entry->id, seen.version)->name == name) return entry->id;
  }
  return kNoNode;
}

FactId FindEdge(const EdgeList* out, const EdgeList* in, NodeId subject, RelationId relation, NodeId object,
                const SeenVersion& seen) {
  if (out == nullptr || in == nullptr) return kNoFact;
  const std::uint32_t num_out = out->CountBelow(seen.num_facts), num_in = in->CountBelow(seen.num_facts);
  const bool use_in = num_in < num_out;
  const EdgeList& list = use_in ? *in : *out;
  const NodeId other = use_in ? subject : object;
  const Edge* edge = list.edges();
  for (const Edge* const end = edge + (use_in ? num_in : num_out); edge != end; ++edge) {
    if (edge->node == other && edge->relation() == relation && !seen.HasEnded(list, *edge)) return edge->fact;
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
  return FindName(graph_->names_, graph_->nodes_, name, seen());
}

void GraphBatch::Prefetch(const Changes& changes) const {
  if (state_.num_nodes < kInCache) return;
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
    const FactId fact = FindEdge(out, in, end.subject, end.relation, end.object, seen());
    found->push_back(fact);
    if (fact == kNoFact) continue;
    graph_->facts_.PrefetchSlot(fact);
  }
  for (std::size_t i = begin; i < found->size(); ++i) {
    if ((*found)[i] != kNoFact) graph_->facts_.PrefetchRecord((*found)[i]);
  }
}

FactId GraphBatch::FindFact(NodeId subject, RelationId relation, NodeId object) const {
  return FindEdge(list(subject, false), list(object, true), subject, relation, object, seen());
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

inline EdgeList* GraphBatch::OwnList(std::size_t slot, std::uint32_t more) {
  std::atomic<EdgeList*>* place = graph_->edges_.Own(slot, state_.version, &graph_->versions_);
  EdgeList* list = place->load(std::memory_order_relaxed);
  if (list != nullptr && list->count.load(std::memory_order_relaxed) + more <= list->capacity &&
      list->refs().load(std::memory_order_acquire) == 1)
    return list;
  return CopyList(place, more);
}

EdgeList* GraphBatch::CopyList(std::atomic<EdgeList*>* place, std::uint32_t more) {
  const EdgeList* list = place->load(std::memory_order_relaxed);
  const Edge* const begin = list == nullptr ? nullptr : list->edges();
  const Edge* const end = list == nullptr ? nullptr : begin + list->count.load(std::memory_order_relaxed);
  const auto num_current = static_cast<std::uint32_t>(std::count_if(begin, end, [](const Edge& edge) { return !edge.ended(); }));
  EdgeList* fresh = EdgeList::Make(state_.version, num_current + more);
  if (list != nullptr) {
    try {
      fresh->rest().past = list->rest().past;
      for (const Edge* edge = begin; edge != end; ++edge) {
        if (edge->ended()) {
          fresh->AppendPast(edge->fact, fact(edge->fact).InvalidAt(state_.version));
        } else {
          fresh->Append(*edge);
        }
      }
    } catch (...) {
      EdgeList::Destroy(fresh);
      throw;
    }
  }
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

NameBucket* GraphBatch::CopyBucket(std::size_t index, std::uint32_t more) {
  std::atomic<NameBucket*>* place = graph_->names_.Own(index, state_.version, &graph_->versions_);
  NameBucket* fresh = NameBucket::Make(state_.version, place->load(std::memory_order_relaxed), more);
  graph_->names_.Replace(place, fresh, &graph_->versions_);
  return fresh;
}

void GraphBatch::InsertName(std::string_view name, NodeId node) {
  const std::uint32_t hash = NameHash(name);
  const std::size_t index = BucketOf(hash, state_.num_buckets);
  NameBucket* bucket = graph_->names_.Own(index, state_.version, &graph_->versions_)->load(std::memory_order_relaxed);
  if (bucket == nullptr || bucket->count.load(std::memory_order_relaxed) == bucket->capacity ||
      bucket->refs().load(std::memory_order_acquire) != 1)
    bucket = CopyBucket(index, 1);
  bucket->Append({hash, node});
  if (state_.num_nodes <= 4 * state_.num_buckets) return;
  const std::size_t made = state_.num_buckets++;
  std::size_t half = 1;
  while (2 * half <= made) half *= 2;
  NameBucket* from = CopyBucket(made - half, 0);
  const std::uint32_t num_entries = from->count.load(std::memory_order_relaxed);
  NameBucket* to = CopyBucket(made, num_entries);
  std::uint32_t num_left = 0;
  for (std::uint32_t i = 0; i < num_entries; ++i) {
    const NameBucket::Entry entry = from->entries()[i];
    if (BucketOf(entry.hash, state_.num_buckets) == made) {
      to->Append(entry);
    } else {
      from->entries()[num_left++] = entry;
    }
  }
  from->Truncate(num_left);
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
  record->set_relation(relation);
  record->object = object;
  record->valid_at = valid_at;
  if (invalid_at != kStillValid) record->End(invalid_at, state_.version);
  if (source) record->AddSource(*source);
  graph_->facts_.Put(id, record, &graph_->versions_);
  for (const bool incoming : {false, true}) {
    EdgeList* list = OwnList(2 * static_cast<std::size_t>(incoming ? object : subject) + (incoming ? 1 : 0), 1);
    Edge edge(incoming ? subject : object, relation, id);
    if (invalid_at != kStillValid) {
      edge.End();
      list->rest().newest_end.store(state_.version, std::memory_order_release);
    }
    list->Append(edge);
  }
  if (invalid_at == kStillValid) ++state_.num_current_facts;
  return id;
}

void GraphBatch::EndFact(FactId id, std::int64_t invalid_at) {
  changed_ = touched_ = true;
  FactRecord* record = graph_->facts_.Own(id, state_.version, &graph_->versions_)->load(std::memory_order_relaxed);
  const bool current = record->InvalidAt(state_.version) == kStillValid;
  if (!current || record->refs().load(std::memory_order_acquire) != 1) record = OwnFact(id);
  record->End(invalid_at, state_.version);
  if (!current) return;  // the lists keep its old end as an upper bound
  --state_.num_current_facts;
  for (const bool incoming : {false, true}) {
    EdgeList* list = OwnList(2 * static_cast<std::size_t>(incoming ? record->object : record->subject) + (incoming ? 1 : 0), 0);
    Edge* const end = list->edges() + list->count.load(std::memory_order_relaxed);
    Edge* const edge = std::lower_bound(list->edges(), end, id, [](const Edge& e, FactId f) { return e.fact < f; });
    if (edge == end || edge->fact != id) throw InternalError("a current fact is missing in the list of its node");
    list->rest().newest_end.store(state_.version, std::memory_order_release);
    edge->End();
  }
}

void GraphBatch::AddSource(FactId id, std::int64_t source) {
  const FactRecord& known = fact(id);
  if (known.has_source() && known.last_source() == source) return;
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
  const std::uint64_t version = state_.version;
  auto fresh = std::make_unique<const GraphState>(std::move(state_));
  graph_->versions_.Retire(const_cast<GraphState*>(old),
                           [](void* state) { delete static_cast<GraphState*>(state); }, version);
  committed_ = true;
  graph_->state_.store(fresh.release(), std::memory_order_release);
  graph_->published_.store(version);
  graph_->versions_.Reclaim(version);
}

}  // namespace embodied_mem

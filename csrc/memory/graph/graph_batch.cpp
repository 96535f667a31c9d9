#include "memory/graph/graph_batch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace embodied_mem {
namespace {

std::size_t OutOf(NodeId node) { return 2 * static_cast<std::size_t>(node); }
std::size_t Into(NodeId node) { return 2 * static_cast<std::size_t>(node) + 1; }

// As FindEdge, for the writer: what is marked has ended, and every edge is of its version.
FactId FindCurrent(const EdgeList* out, const EdgeList* in, NodeId subject, RelationId relation, NodeId object) {
  if (out == nullptr || in == nullptr) return kNoFact;
  const std::uint32_t num_out = out->count.load(std::memory_order_relaxed),
                      num_in = in->count.load(std::memory_order_relaxed);
  const NodeId other = num_in < num_out ? subject : object;
  const Edge* edge = (num_in < num_out ? in : out)->edges();
  for (const Edge* const end = edge + std::min(num_in, num_out); edge != end; ++edge) {
    if (edge->node == other && edge->IsCurrent(relation)) return edge->fact;
  }
  return kNoFact;
}

// The node of the first name in the bucket with that hash, or kNoNode.
NodeId FindHash(const NameBucket* bucket, std::uint32_t hash) {
  if (bucket == nullptr) return kNoNode;
  const NameBucket::Entry* const begin = bucket->entries();
  const NameBucket::Entry* const end = begin + bucket->count.load(std::memory_order_relaxed);
  const auto* const entry = std::find_if(begin, end, [&](const NameBucket::Entry& e) { return e.hash == hash; });
  return entry == end ? kNoNode : entry->id;
}

}  // namespace

FactRecord* FactRecord::Copy(std::uint64_t version) const {
  auto* record = new FactRecord(version, subject, relation_, object, valid_at);
  record->invalid_at_ = invalid_at_;
  record->ended_.store(ended_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  if (num_sources_ == Count::kMany) {
    new (&record->sources_) SharedList<std::int64_t, 6>(sources_);
  } else {
    record->one_source_ = one_source_;
  }
  record->num_sources_ = num_sources_;
  return record;
}

void FactRecord::AddOtherSource(std::int64_t source) {
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

NodeId FindName(const VersionedTable<NameBucket>& names, const VersionedTable<NodeRecord>& nodes, std::string_view name,
                std::uint32_t hash, const SeenVersion& seen) {
  const NameBucket* bucket = names.Read(BucketOf(hash, seen.num_buckets), seen.version);
  if (bucket == nullptr) return kNoNode;
  const NameBucket::Entry* entry = bucket->entries();
  for (const NameBucket::Entry* const end = entry + bucket->count.load(std::memory_order_acquire); entry != end;
       ++entry) {
    if (entry->hash == hash && entry->id < seen.num_nodes && nodes.Read(entry->id, seen.version)->name == name)
      return entry->id;
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
    throw InternalError(
        "the knowledge graph is closed for writing, since a batch ended half way, for want of memory or by a fork of "
        "the "
        "process; "
        "what it held before can be read, and a fork of it made earlier can be written");
  ++state_.version;
}

GraphBatch::~GraphBatch() {
  if (touched_ && !committed_) graph_->broken_ = true;
}

NodeId GraphBatch::FindNode(std::string_view name, std::uint32_t hash) const {
  return FindName(graph_->names_, graph_->nodes_, name, hash, seen());
}

void GraphBatch::Prefetch(const Changes& changes, const std::uint32_t* hashes) const {
  // Beyond this the first would be gone when their turn comes.
  if (changes.nodes.size() + changes.add.size() + changes.invalidate.size() + changes.end.size() > 64) return;
  const auto each_slot = [&](const auto& visit) {
    for (const Changes::Ending& end : changes.end) {
      visit(graph_->edges_, OutOf(end.subject));
      visit(graph_->edges_, Into(end.object));
    }
    for (const Changes::NewFact& fact : changes.add) {
      if (fact.subject < state_.num_nodes) visit(graph_->edges_, OutOf(fact.subject));
      if (fact.object < state_.num_nodes) visit(graph_->edges_, Into(fact.object));
    }
    for (const Changes::Invalidation& end : changes.invalidate) visit(graph_->facts_, end.fact);
    for (std::size_t i = 0; i < changes.nodes.size(); ++i)
      visit(graph_->names_, BucketOf(hashes[i], state_.num_buckets));
    if (!changes.nodes.empty()) visit(graph_->names_, NextSplit(state_.num_buckets));
  };
  if (state_.num_nodes >= kInCache) each_slot([](const auto& table, std::size_t slot) { table.PrefetchSlot(slot); });
  each_slot([](const auto& table, std::size_t slot) { table.PrefetchRecord(slot); });
  for (const bool records : {false, true}) {
    for (const Changes::Invalidation& end : changes.invalidate) {
      const FactRecord* fact = graph_->facts_.Newest(end.fact);
      if (fact == nullptr) continue;
      for (const std::size_t slot : {OutOf(fact->subject), Into(fact->object)}) {
        if (records) {
          graph_->edges_.PrefetchRecord(slot);
        } else {
          graph_->edges_.PrefetchSlot(slot);
        }
      }
    }
  }
}

void GraphBatch::FindNodes(const std::vector<std::string_view>& names, const std::vector<std::uint32_t>& hashes,
                           std::vector<NodeId>* ids) const {
  constexpr std::size_t kAtOnce = 64;  // beyond this the first would be gone when their turn comes
  const SeenVersion now = seen();
  ids->resize(names.size());
  if (state_.num_nodes >= kInCache) graph_->names_.PrefetchSlot(NextSplit(state_.num_buckets));
  for (std::size_t begin = 0; begin < names.size(); begin += kAtOnce) {
    const std::size_t end = std::min(names.size(), begin + kAtOnce);
    const auto each = [&](const auto& visit) {
      for (std::size_t i = begin; i < end; ++i) visit(i, BucketOf(hashes[i], now.num_buckets));
    };
    if (state_.num_nodes >= kInCache) {
      each([&](std::size_t, std::size_t bucket) { graph_->names_.PrefetchSlot(bucket); });
      each([&](std::size_t, std::size_t bucket) { graph_->names_.PrefetchRecord(bucket); });
      each([&](std::size_t i, std::size_t bucket) {
        (*ids)[i] = FindHash(graph_->names_.Newest(bucket), hashes[i]);
        if ((*ids)[i] == kNoNode) return;
        graph_->nodes_.PrefetchSlot((*ids)[i]);
        for (const std::size_t slot : {OutOf((*ids)[i]), Into((*ids)[i])}) graph_->edges_.PrefetchSlot(slot);
      });
      each([&](std::size_t i, std::size_t) {
        if ((*ids)[i] != kNoNode) graph_->nodes_.PrefetchRecord((*ids)[i]);
      });
    }
    each([&](std::size_t i, std::size_t) {
      (*ids)[i] = FindName(graph_->names_, graph_->nodes_, names[i], hashes[i], now);
    });
  }
}

void GraphBatch::PrefetchLists(const std::vector<std::pair<NodeId, NodeId>>& ends) const {
  if (ends.size() > 64) return;
  for (const auto& [subject, object] : ends) {
    if (subject < state_.num_nodes) graph_->edges_.PrefetchRecord(OutOf(subject));
    if (object < state_.num_nodes) graph_->edges_.PrefetchRecord(Into(object));
  }
}

void GraphBatch::FindFacts(const std::vector<Changes::Ending>& ends, std::vector<FactId>* found) const {
  for (const Changes::Ending& end : ends) {
    found->push_back(FindFact(end.subject, end.relation, end.object));
    if (found->back() != kNoFact) graph_->facts_.PrefetchSlot(found->back());
  }
  for (const FactId fact : *found) {
    if (fact != kNoFact) graph_->facts_.PrefetchRecord(fact);
  }
}

FactId GraphBatch::FindFact(NodeId subject, RelationId relation, NodeId object) const {
  return FindCurrent(graph_->edges_.Newest(OutOf(subject)), graph_->edges_.Newest(Into(object)), subject, relation,
                     object);
}

Vocabulary* GraphBatch::OwnVocabulary() {
  if (own_vocabulary_ == nullptr) {
    own_vocabulary_ = std::make_unique<Vocabulary>(*state_.vocabulary);
    state_.vocabulary = own_vocabulary_.get();
  }
  return own_vocabulary_.get();
}

std::uint32_t GraphBatch::Number(const std::string& word, const char* what,
                                 std::shared_ptr<const Words> Vocabulary::* which, std::shared_ptr<Words>* own) {
  const Words& words = *(state_.vocabulary->*which);
  const std::uint32_t known = words.Find(word);
  if (known != std::numeric_limits<std::uint32_t>::max()) return known;
  const std::size_t count = words.words.size();
  if (count >= kMaxWords)
    throw InvalidInputError(std::string(what) + ": expected at most " + std::to_string(kMaxWords) +
                            " different ones, got " + Quote(word) + " as one more; put what varies into node names");
  if (*own == nullptr) {
    Vocabulary* const vocabulary = OwnVocabulary();
    *own = std::make_shared<Words>(words);
    vocabulary->*which = *own;
  }
  (*own)->words.push_back(word);
  (*own)->ids.emplace(word, static_cast<std::uint32_t>(count));
  changed_ = true;
  return static_cast<std::uint32_t>(count);
}

RelationId GraphBatch::Relation(const std::string& word) {
  return Number(word, "relation", &Vocabulary::relations, &own_relations_);
}

TypeId GraphBatch::Type(const std::string& word) { return Number(word, "type", &Vocabulary::types, &own_types_); }

inline GraphBatch::Ends GraphBatch::OwnEnds(NodeId subject, NodeId object) {
  auto* const out = graph_->edges_.Own(OutOf(subject), state_.version, &graph_->versions_);
  return {out,
          graph_->edges_.Own(Into(object), state_.version, &graph_->versions_)};  // a page stays where it was owned
}

inline EdgeList* GraphBatch::OwnList(std::atomic<EdgeList*>* place, std::uint32_t more) {
  EdgeList* list = place->load(std::memory_order_relaxed);
  if (list != nullptr && list->count.load(std::memory_order_relaxed) + more <= list->capacity &&
      list->refs().load(std::memory_order_acquire) == 1)
    return list;
  return CopyList(place, more);
}

EdgeList* GraphBatch::CopyList(std::atomic<EdgeList*>* place, std::uint32_t more) {
  graph_->versions_.Reserve(1);
  const EdgeList* list = place->load(std::memory_order_relaxed);
  const Edge* const begin = list == nullptr ? nullptr : list->edges();
  const Edge* const end = list == nullptr ? nullptr : begin + list->count.load(std::memory_order_relaxed);
  const auto num_current =
      static_cast<std::uint32_t>(std::count_if(begin, end, [](const Edge& edge) { return !edge.ended(); }));
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
  graph_->versions_.Reserve(1);
  FactRecord* fresh = record->Copy(state_.version);
  graph_->facts_.Replace(place, fresh, &graph_->versions_);
  return fresh;
}

NameBucket* GraphBatch::CopyBucket(std::size_t index, std::uint32_t more) {
  std::atomic<NameBucket*>* place = graph_->names_.Own(index, state_.version, &graph_->versions_);
  graph_->versions_.Reserve(1);
  NameBucket* fresh = NameBucket::Make(state_.version, place->load(std::memory_order_relaxed), more);
  graph_->names_.Replace(place, fresh, &graph_->versions_);
  return fresh;
}

void GraphBatch::InsertName(std::uint32_t hash, NodeId node) {
  const std::size_t index = BucketOf(hash, state_.num_buckets);
  NameBucket* bucket = graph_->names_.Own(index, state_.version, &graph_->versions_)->load(std::memory_order_relaxed);
  if (bucket == nullptr || bucket->count.load(std::memory_order_relaxed) == bucket->capacity ||
      bucket->refs().load(std::memory_order_acquire) != 1)
    bucket = CopyBucket(index, 1);
  bucket->Append({hash, node});
  if (state_.num_nodes <= 4 * state_.num_buckets) return;
  NameBucket* from = CopyBucket(NextSplit(state_.num_buckets), 0);
  const std::size_t made = state_.num_buckets++;
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

NodeId GraphBatch::PutNode(const Node& node, TypeId type, std::uint32_t hash, NodeId known) {
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
  InsertName(hash, id);
  return id;
}

FactId GraphBatch::AddFactAt(const Ends& ends, const Changes::NewFact& fact, std::int64_t invalid_at) {
  const auto id = static_cast<FactId>(state_.num_facts++);
  std::atomic<FactRecord*>* place = graph_->facts_.Own(id, state_.version, &graph_->versions_);
  auto* record = new FactRecord(state_.version, fact.subject, fact.relation, fact.object, fact.valid_at);
  if (fact.source) record->AddSource(*fact.source);
  place->store(record, std::memory_order_release);
  EdgeList* const out = OwnList(ends.out, 1);
  EdgeList* const in = OwnList(ends.in, 1);
  Edge out_edge(fact.object, fact.relation, id), in_edge(fact.subject, fact.relation, id);
  if (invalid_at == kStillValid) {
    ++state_.num_current_facts;
  } else {
    record->End(invalid_at, state_.version);
    out_edge.End();
    in_edge.End();
    for (EdgeList* list : {out, in}) list->rest().newest_end.store(state_.version, std::memory_order_release);
  }
  out->Append(out_edge);
  in->Append(in_edge);
  return id;
}

FactId GraphBatch::AddFact(NodeId subject, RelationId relation, NodeId object, std::int64_t valid_at,
                           std::int64_t invalid_at, std::optional<std::int64_t> source) {
  changed_ = touched_ = true;
  return AddFactAt(OwnEnds(subject, object), {subject, relation, object, valid_at, source}, invalid_at);
}

bool GraphBatch::PutFact(const Changes::NewFact& fact, FactId* id) {
  const Ends ends = OwnEnds(fact.subject, fact.object);  // what is copied for that says the same as before
  *id = FindCurrent(ends.out->load(std::memory_order_relaxed), ends.in->load(std::memory_order_relaxed), fact.subject,
                    fact.relation, fact.object);
  if (*id == kNoFact) {
    changed_ = touched_ = true;
    *id = AddFactAt(ends, fact, kStillValid);
    return false;
  }
  if (fact.source) AddSource(*id, *fact.source);
  return true;
}

void GraphBatch::EndFact(FactId id, std::int64_t invalid_at) {
  changed_ = touched_ = true;
  FactRecord* record = graph_->facts_.Own(id, state_.version, &graph_->versions_)->load(std::memory_order_relaxed);
  const bool current = record->InvalidAt(state_.version) == kStillValid;
  if (!current || record->refs().load(std::memory_order_acquire) != 1) record = OwnFact(id);
  record->End(invalid_at, state_.version);
  if (!current) return;  // the lists keep its old end as an upper bound
  --state_.num_current_facts;
  const Ends ends = OwnEnds(record->subject, record->object);
  for (auto* place : {ends.out, ends.in}) {
    EdgeList* list = OwnList(place, 0);
    Edge* const edge = list->Find(id);
    if (edge == nullptr) throw InternalError("a current fact is missing in the list of its node");
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
  OwnVocabulary()->rules = std::move(rules);
}

void GraphBatch::Commit() {
  if (!changed_) return;
  Versions& versions = graph_->versions_;
  const std::uint64_t version = state_.version;
  versions.Reserve(2);
  auto* const fresh = new GraphState(state_);
  if (own_vocabulary_ != nullptr) {
    versions.Retire(
        const_cast<Vocabulary*>(graph_->vocabulary_.release()),
        [](void* words) { delete static_cast<Vocabulary*>(words); }, version);
    graph_->vocabulary_ = std::move(own_vocabulary_);
  }
  versions.Retire(
      const_cast<GraphState*>(graph_->state_.load(std::memory_order_relaxed)),
      [](void* state) { delete static_cast<GraphState*>(state); }, version);
  committed_ = true;
  graph_->state_.store(fresh, std::memory_order_release);
  graph_->published_.store(version);
  versions.Reclaim(version);
}

}  // namespace embodied_mem

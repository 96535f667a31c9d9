// What the knowledge graph stores, as records of versioned tables. Internal to csrc/memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "memory/graph/knowledge_graph.h"
#include "memory/versioned/block_pool.h"
#include "memory/versioned/shared_list.h"
#include "memory/versioned/versioned.h"

namespace embodied_mem {

// A graph with fewer nodes lies in the processor's cache, and needs nothing to be asked for ahead.
constexpr std::size_t kInCache = 8192;

// One end of a fact, as its list sees it: what a traversal reads and nothing more.
class Edge {
 public:
  Edge(NodeId other, RelationId relation, FactId id) : node(other), fact(id), relation_(relation) {}

  RelationId relation() const { return relation_ & ~kEnded; }
  // Whether the fact has ended for the newest readers; an older one asks the fact.
  bool ended() const { return (__atomic_load_n(&relation_, __ATOMIC_ACQUIRE) & kEnded) != 0; }
  void End() { __atomic_store_n(&relation_, relation_ | kEnded, __ATOMIC_RELEASE); }
  // For the writer, who marked what has ended.
  bool IsCurrent(RelationId relation) const { return relation_ == relation; }

  NodeId node;  // at the other end
  FactId fact;

 private:
  static constexpr std::uint32_t kEnded = std::uint32_t{1} << 31;
  static_assert(kMaxWords <= kEnded, "a bit of the relation's number is free");
  std::uint32_t relation_;
};
static_assert(sizeof(Edge) == 12, "four of them and the head of a list are one cache line");

// A fact that is no longer current, and the largest invalid_at in the list up to here.
struct PastEdge {
  std::int64_t latest;
  FactId fact;
};

// The facts at one side of one node, in the order of their ids, and past ones in a list. What lies after the edges is for
// writers and for readers of the past: a reader of four edges looks at one cache line.
//
// The writer of a list that no other graph shares changes it in place, where readers do not mind: it appends edges, which
// older readers know by their facts' ids to be too new, and marks them as ended, where older readers ask the fact. A
// list that is full is replaced by a copy, in which what has ended moved to the list of past facts.
struct EdgeList {
  struct Rest {
    EdgeList* prev = nullptr;
    std::atomic<std::uint64_t> newest_end{0};  // the last version that an edge was marked in
    SharedList<PastEdge, 3> past;
    std::atomic<std::uint32_t> refs{1};
  };
  std::uint64_t version;
  std::atomic<std::uint32_t> count{0};
  std::uint32_t capacity;

  Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  const Edge* edges() const { return reinterpret_cast<const Edge*>(this + 1); }
  Rest& rest() { return *reinterpret_cast<Rest*>(reinterpret_cast<char*>(this) + RestAt(capacity)); }
  const Rest& rest() const { return const_cast<EdgeList*>(this)->rest(); }
  EdgeList*& prev() { return rest().prev; }
  const EdgeList* prev() const { return rest().prev; }
  std::atomic<std::uint32_t>& refs() { return rest().refs; }

  // The number of edges that a reader sees in whose version there are `num_facts` facts.
  std::uint32_t CountBelow(std::size_t num_facts) const {
    std::uint32_t seen = count.load(std::memory_order_acquire);
    while (seen > 0 && edges()[seen - 1].fact >= num_facts) --seen;
    return seen;
  }

  // An empty list with room for at least `room` edges, and a quarter more if they are many; whole cache lines, two or more.
  static EdgeList* Make(std::uint64_t version, std::uint32_t room) {
    constexpr std::size_t kLine = 64;
    const std::size_t bytes = std::max(2 * kLine, (RestAt(room + room / 4) + sizeof(Rest) + kLine - 1) / kLine * kLine);
    auto capacity = static_cast<std::uint32_t>((bytes - sizeof(Rest) - sizeof(EdgeList)) / sizeof(Edge));
    auto* list = new (AllocateBlock(bytes)) EdgeList(version, capacity);
    new (&list->rest()) Rest;
    return list;
  }
  void Append(const Edge& edge) {
    const std::uint32_t place = count.load(std::memory_order_relaxed);
    new (edges() + place) Edge(edge);
    count.store(place + 1, std::memory_order_release);
  }
  // The edge of that fact, or nullptr.
  Edge* Find(FactId fact) {
    Edge* edge = edges();
    Edge* const end = edge + count.load(std::memory_order_relaxed);
    if (end - edge > 16) edge = std::lower_bound(edge, end, fact, [](const Edge& e, FactId f) { return e.fact < f; });
    while (edge != end && edge->fact < fact) ++edge;
    return edge != end && edge->fact == fact ? edge : nullptr;
  }
  // Of a list that no reader sees yet.
  void AppendPast(FactId fact, std::int64_t invalid_at) {
    auto& past = rest().past;
    past.Append({past.empty() || past.back().latest < invalid_at ? invalid_at : past.back().latest, fact});
  }
  static void Destroy(EdgeList* list) {
    const std::size_t bytes = (RestAt(list->capacity) + sizeof(Rest) + 63) / 64 * 64;
    list->rest().~Rest();
    list->~EdgeList();
    FreeBlock(list, bytes);
  }

 private:
  EdgeList(std::uint64_t v, std::uint32_t c) : version(v), capacity(c) {}
  static constexpr std::size_t RestAt(std::size_t room) {
    return (sizeof(EdgeList) + room * sizeof(Edge) + alignof(Rest) - 1) / alignof(Rest) * alignof(Rest);
  }
};
static_assert(sizeof(EdgeList) == 16, "the edges follow");

struct NodeRecord : Pooled {
  std::uint64_t version = 0;
  TypeId type = kNoType;
  std::int64_t embedding = kNoEmbedding;
  std::string name;       // empty: forgotten
  Attributes attributes;  // sorted by key

  NodeRecord*& prev() { return prev_; }
  const NodeRecord* prev() const { return prev_; }
  std::atomic<std::uint32_t>& refs() { return refs_; }
  static NodeRecord* Make(std::uint64_t version, const NodeRecord* from) {
    auto record = std::make_unique<NodeRecord>();
    record->version = version;
    if (from != nullptr) {
      record->type = from->type;
      record->embedding = from->embedding;
      record->name = from->name;
      record->attributes = from->attributes;
    }
    return record.release();
  }
  static void Destroy(NodeRecord* record) { delete record; }

 private:
  NodeRecord* prev_ = nullptr;
  std::atomic<std::uint32_t> refs_{1};
};

// One cache line. The writer ends a fact that no other graph shares in place: older readers go by the version.
class FactRecord : public Pooled {
 public:
  // A current one without source.
  FactRecord(std::uint64_t v, NodeId s, RelationId relation, NodeId o, std::int64_t time)
      : version(v),
        valid_at(time),
        subject(s),
        object(o),
        one_source_(0),
        relation_(static_cast<std::uint16_t>(relation)) {}
  ~FactRecord() { ClearSources(); }

  FactRecord* Copy(std::uint64_t version) const;
  static void Destroy(FactRecord* record) { delete record; }
  FactRecord*& prev() { return prev_; }
  const FactRecord* prev() const { return prev_; }
  std::atomic<std::uint32_t>& refs() { return refs_; }

  RelationId relation() const { return relation_; }
  void set_relation(RelationId relation) { relation_ = static_cast<std::uint16_t>(relation); }
  // As the readers of that version see it; kStillValid: current.
  std::int64_t InvalidAt(std::uint64_t reader) const {
    return ended_.load(std::memory_order_acquire) <= reader ? invalid_at_ : kStillValid;
  }
  // Of a fact that is current in all versions before this one, or that no reader sees yet.
  void End(std::int64_t invalid_at, std::uint64_t in_version) {
    invalid_at_ = invalid_at;
    ended_.store(in_version, std::memory_order_release);
  }

  bool has_source() const { return num_sources_ != Count::kNone; }
  // The one appended last; there is one.
  std::int64_t last_source() const { return num_sources_ == Count::kOne ? one_source_ : sources_.back(); }
  // Unless it is the one appended last.
  void AddSource(std::int64_t source) {
    if (!has_source()) {
      one_source_ = source;
      num_sources_ = Count::kOne;
    } else if (last_source() != source) {
      AddOtherSource(source);
    }
  }
  void ClearSources() {
    if (num_sources_ == Count::kMany) sources_.~SharedList();
    num_sources_ = Count::kNone;
    one_source_ = 0;
  }
  std::vector<std::int64_t> Sources() const;

  std::uint64_t version;
  std::int64_t valid_at;
  NodeId subject;  // kNoNode: erased
  NodeId object;

 private:
  void AddOtherSource(std::int64_t source);

  enum class Count : std::uint8_t { kNone, kOne, kMany };
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  FactRecord* prev_ = nullptr;
  std::int64_t invalid_at_ = kStillValid;
  std::atomic<std::uint64_t> ended_{kNever};  // the version from which on it ends at invalid_at_
  union {
    std::int64_t one_source_;
    SharedList<std::int64_t, 6> sources_;  // of kMany
  };
  std::atomic<std::uint32_t> refs_{1};
  std::uint16_t relation_;
  Count num_sources_ = Count::kNone;
};
static_assert(kMaxWords <= 65536, "a relation has 16 bits");
static_assert(sizeof(FactRecord) == 64, "one cache line");

// One bucket of the name index, a linear hash table: buckets are split one at a time, so that no insertion costs more
// than a few of them.
//
// The writer appends in place to a bucket that no other graph shares: older readers know by the ids what is too new.
struct NameBucket {
  struct Entry {
    std::uint32_t hash;
    NodeId id;
  };
  std::uint64_t version;
  std::atomic<std::uint32_t> count{0};
  std::uint32_t capacity;

  Entry* entries() { return reinterpret_cast<Entry*>(this + 1); }
  const Entry* entries() const { return reinterpret_cast<const Entry*>(this + 1); }
  NameBucket*& prev() { return prev_; }
  const NameBucket* prev() const { return prev_; }
  std::atomic<std::uint32_t>& refs() { return refs_; }

  void Append(Entry entry) {
    const std::uint32_t place = count.load(std::memory_order_relaxed);
    new (entries() + place) Entry(entry);
    count.store(place + 1, std::memory_order_release);
  }
  // Of a bucket that no reader sees yet.
  void Truncate(std::uint32_t left) { count.store(left, std::memory_order_relaxed); }

  // A copy of `from` (or an empty bucket) with room for at least `more` entries; whole cache lines.
  static NameBucket* Make(std::uint64_t version, const NameBucket* from, std::uint32_t more) {
    const std::uint32_t count = from == nullptr ? 0 : from->count.load(std::memory_order_relaxed);
    const std::size_t bytes = (sizeof(NameBucket) + (count + more) * sizeof(Entry) + 63) / 64 * 64;
    const std::size_t capacity = (bytes - sizeof(NameBucket)) / sizeof(Entry);
    auto* bucket = new (AllocateBlock(bytes)) NameBucket(version, static_cast<std::uint32_t>(capacity));
    if (from != nullptr) std::memcpy(bucket->entries(), from->entries(), count * sizeof(Entry));
    bucket->Truncate(count);
    return bucket;
  }
  static void Destroy(NameBucket* bucket) {
    const std::size_t bytes = sizeof(NameBucket) + bucket->capacity * sizeof(Entry);
    bucket->~NameBucket();
    FreeBlock(bucket, bytes);
  }

 private:
  NameBucket(std::uint64_t v, std::uint32_t c) : version(v), capacity(c) {}
  NameBucket* prev_ = nullptr;
  std::atomic<std::uint32_t> refs_{1};
};
static_assert(sizeof(NameBucket) == 32, "the entries follow the header");

// The bucket of a hash among `num_buckets` (>= 1).
inline std::size_t BucketOf(std::uint32_t hash, std::size_t num_buckets) {
  const std::size_t mask = num_buckets < 2 ? 1 : std::size_t{1} << (64 - __builtin_clzll(num_buckets - 1));
  const std::size_t bucket = hash & (mask - 1);
  return bucket < num_buckets ? bucket : bucket & (mask / 2 - 1);
}

// The bucket that is split when one is added to `num_buckets` (>= 1).
inline std::size_t NextSplit(std::size_t num_buckets) {
  return num_buckets - (std::size_t{1} << (63 - __builtin_clzll(num_buckets)));
}

std::uint32_t NameHash(std::string_view name);

}  // namespace embodied_mem

// What the knowledge graph stores, as records of versioned tables. Internal to csrc/memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "memory/block_pool.h"
#include "memory/knowledge_graph.h"
#include "memory/shared_list.h"
#include "memory/versioned.h"

namespace embodied_mem {

// One end of a current fact, as its list sees it: what a traversal reads and nothing more.
struct Edge {
  NodeId node;  // at the other end
  RelationId relation;
  FactId fact;
};

// A fact that is no longer current, and the largest invalid_at in the list up to here.
struct PastEdge {
  std::int64_t latest;
  FactId fact;
};

// The facts at one side of one node: current ones in a row in the order of their ids, past ones in a list.
struct EdgeList {
  std::uint64_t version;
  EdgeList* prev = nullptr;
  SharedList<PastEdge, 3> past;
  std::atomic<std::uint32_t> refs{1};
  std::uint32_t count = 0;
  std::uint32_t capacity;

  Edge* edges() { return reinterpret_cast<Edge*>(this + 1); }
  const Edge* edges() const { return reinterpret_cast<const Edge*>(this + 1); }

  // A copy of `from` (or an empty list) with room for at least one more edge.
  static EdgeList* Make(std::uint64_t version, const EdgeList* from) {
    const std::uint32_t count = from == nullptr ? 0 : from->count;
    const std::uint32_t capacity = count + 1 + (count < 8 ? 1 : count / 8);
    auto* list = new (AllocateBlock(sizeof(EdgeList) + capacity * sizeof(Edge))) EdgeList(version, capacity);
    list->count = count;
    if (from != nullptr) {
      list->past = from->past;
      std::memcpy(list->edges(), from->edges(), count * sizeof(Edge));
    }
    return list;
  }
  void AppendPast(FactId fact, std::int64_t invalid_at) {
    past.Append({past.empty() || past.back().latest < invalid_at ? invalid_at : past.back().latest, fact});
  }
  static void Destroy(EdgeList* list) {
    const std::size_t bytes = sizeof(EdgeList) + list->capacity * sizeof(Edge);
    list->~EdgeList();
    FreeBlock(list, bytes);
  }

 private:
  EdgeList(std::uint64_t v, std::uint32_t c) : version(v), capacity(c) {}
};
static_assert(sizeof(EdgeList) % alignof(Edge) == 0, "the edges follow the header");

struct NodeRecord : Pooled {
  std::uint64_t version = 0;
  NodeRecord* prev = nullptr;
  std::atomic<std::uint32_t> refs{1};
  TypeId type = kNoType;
  std::int64_t embedding = kNoEmbedding;
  std::string name;       // empty: forgotten
  Attributes attributes;  // sorted by key

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
};

struct FactRecord : Pooled {
  std::uint64_t version = 0;
  FactRecord* prev = nullptr;
  std::int64_t valid_at = 0;
  std::int64_t invalid_at = kStillValid;
  std::int64_t first_source = 0;
  SharedList<std::int64_t, 6> more_sources;
  NodeId subject = 0;  // kNoNode: erased
  NodeId object = 0;
  RelationId relation = 0;
  std::uint32_t num_sources = 0;
  std::atomic<std::uint32_t> refs{1};

  static FactRecord* Make(std::uint64_t version, const FactRecord* from) {
    auto* record = new FactRecord;
    record->version = version;
    if (from != nullptr) {
      record->valid_at = from->valid_at;
      record->invalid_at = from->invalid_at;
      record->first_source = from->first_source;
      record->more_sources = from->more_sources;
      record->subject = from->subject;
      record->object = from->object;
      record->relation = from->relation;
      record->num_sources = from->num_sources;
    }
    return record;
  }
  static void Destroy(FactRecord* record) { delete record; }
  // Appends a source unless it is the one appended last.
  void AddSource(std::int64_t source);
};

// One bucket of the name index, a linear hash table: buckets are split one at a time, so that no insertion costs more
// than a few of them.
struct NameBucket {
  struct Entry {
    std::uint32_t hash;
    NodeId id;
  };
  std::uint64_t version;
  NameBucket* prev = nullptr;
  std::atomic<std::uint32_t> refs{1};
  std::uint32_t count = 0;
  std::uint32_t capacity;

  Entry* entries() { return reinterpret_cast<Entry*>(this + 1); }
  const Entry* entries() const { return reinterpret_cast<const Entry*>(this + 1); }
  void Append(Entry entry) { entries()[count++] = entry; }

  // A copy of `from` (or an empty bucket) with room for `more` entries.
  static NameBucket* Make(std::uint64_t version, const NameBucket* from, std::uint32_t more) {
    const std::uint32_t count = from == nullptr ? 0 : from->count;
    auto* bucket = new (AllocateBlock(sizeof(NameBucket) + (count + more) * sizeof(Entry))) NameBucket(version, count + more);
    bucket->count = count;
    if (from != nullptr) std::memcpy(bucket->entries(), from->entries(), count * sizeof(Entry));
    return bucket;
  }
  static void Destroy(NameBucket* bucket) {
    const std::size_t bytes = sizeof(NameBucket) + bucket->capacity * sizeof(Entry);
    bucket->~NameBucket();
    FreeBlock(bucket, bytes);
  }

 private:
  NameBucket(std::uint64_t v, std::uint32_t c) : version(v), capacity(c) {}
};
static_assert(sizeof(NameBucket) % alignof(NameBucket::Entry) == 0, "the entries follow the header");

// The bucket of a hash among `num_buckets` (>= 1).
inline std::size_t BucketOf(std::uint32_t hash, std::size_t num_buckets) {
  const std::size_t mask = num_buckets < 2 ? 1 : std::size_t{1} << (64 - __builtin_clzll(num_buckets - 1));
  const std::size_t bucket = hash & (mask - 1);
  return bucket < num_buckets ? bucket : bucket & (mask / 2 - 1);
}

std::uint32_t NameHash(std::string_view name);

}  // namespace embodied_mem

// A knowledge graph that is updated while an agent acts: nodes, and facts as typed directed edges with a validity.
//
// Ids are dense, stable 32-bit numbers; nothing is renumbered. A fact that stops being true is invalidated and kept, so
// that the state at any past time can be asked for. Times are whatever clock the caller uses (microseconds, steps);
// none is read here.
//
// Many readers, one writer at a time. A Snapshot sees one version, whole, for as long as it lives; taking and reading
// it never waits for a writer. Writers wait for each other. A batch is visible at once or not at all: bad input throws
// InvalidInputError before anything has changed. Fork is a copy in constant time that shares what neither has changed.
// A batch costs what it changes; a node's list of facts is copied only when it is full or a fork shares it. An extraction
// costs the facts at the nodes that it visits. What a batch replaces is kept while a Snapshot is older than the batch, so
// snapshots are for calls and not for days.
//
// One graph belongs to one scope (user, robot, environment); no call takes a scope.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/fork_hook.h"
#include "memory/graph/conflict_rules.h"
#include "memory/versioned/versioned.h"

namespace embodied_mem {

using NodeId = std::uint32_t;
using FactId = std::uint32_t;
using RelationId = std::uint32_t;
using TypeId = std::uint32_t;
using Attributes = std::vector<std::pair<std::string, std::string>>;

constexpr NodeId kNoNode = std::numeric_limits<NodeId>::max();
constexpr FactId kNoFact = std::numeric_limits<FactId>::max();
constexpr RelationId kNoRelation = std::numeric_limits<RelationId>::max();
constexpr TypeId kNoType = std::numeric_limits<TypeId>::max();
constexpr std::int64_t kNoEmbedding = -1;
constexpr std::int64_t kStillValid = std::numeric_limits<std::int64_t>::max();  // invalid_at of a current fact
constexpr std::size_t kMaxNameBytes = 4096;
constexpr std::size_t kMaxWords = 65536;  // relations, and types
constexpr std::size_t kMaxHops = 64;

enum class Direction { kOut, kIn, kBoth };

struct Node {
  std::string name, type;
  Attributes attributes;
  std::int64_t embedding = kNoEmbedding;
};

struct Fact {
  NodeId subject = kNoNode;
  std::string relation;
  NodeId object = kNoNode;
  std::int64_t valid_at = 0;
  std::int64_t invalid_at = kStillValid;  // true at t: valid_at <= t < invalid_at
  std::vector<std::int64_t> sources;      // episode ids in the order in which they came
};

// A fact with the names of its ends, which live as long as the snapshot that gave it.
struct NamedFact {
  NodeId subject = kNoNode, object = kNoNode;
  std::string_view subject_name, relation, object_name;
  std::int64_t valid_at = 0;
};

// One batch. Node ids in `add` may name nodes that `nodes` is about to make: they count on from num_nodes().
struct Changes {
  struct NewFact {
    NodeId subject = kNoNode;
    RelationId relation = 0;  // of Intern
    NodeId object = kNoNode;
    std::int64_t valid_at = 0;
    std::optional<std::int64_t> source;
  };
  struct Invalidation {
    FactId fact = kNoFact;
    std::int64_t invalid_at = 0;
  };
  struct Ending {  // of the current fact that says so
    NodeId subject = kNoNode;
    RelationId relation = 0;
    NodeId object = kNoNode;
    std::int64_t invalid_at = 0;
  };
  std::vector<Node> nodes;  // a name that exists updates that node: attributes by key, type and embedding if given
  std::vector<Invalidation> invalidate;  // done before `add`
  std::vector<NewFact> add;
  std::vector<Ending> end = {};  // done after `invalidate`
};

struct Applied {
  std::vector<NodeId> nodes;           // of each of Changes::nodes
  std::vector<FactId> facts;           // of each of Changes::add
  std::vector<std::uint8_t> repeated;  // whether that fact was current already and has got a source instead of a copy
  std::vector<FactId> ended;           // of each of Changes::end

  void Clear() {
    nodes.clear();
    facts.clear();
    repeated.clear();
    ended.clear();
  }
};

struct KHopOptions {
  std::size_t hops = 2;
  Direction direction = Direction::kBoth;
  std::vector<RelationId> relations;  // empty: all
  std::size_t max_nodes = std::numeric_limits<std::size_t>::max();
  std::optional<std::int64_t> as_of;  // empty: facts that are not invalidated
};

// Nodes in the order of a breadth-first search: sources first, then by the node that led there, its facts out before its
// facts in, by fact id. `facts` are the ones followed between these nodes, each once. Reused, it allocates nothing.
struct Subgraph {
  std::vector<NodeId> nodes;
  std::vector<std::size_t> hop_ends;  // nodes at hop h end at hop_ends[h]; 1 + hops entries
  std::vector<FactId> facts;
  std::vector<std::size_t> fact_ends;  // facts followed from nodes at hop h end at fact_ends[h]; one entry a hop
  bool truncated = false;              // max_nodes left something out

  void Clear() {
    nodes.clear();
    hop_ends.clear();
    facts.clear();
    fact_ends.clear();
    truncated = false;
  }
};

// What a traversal needs beside its result; one per reading thread, good for all graphs. Holds 8 bytes per node of the
// largest graph it has seen, cleared by counting epochs.
class KHopScratch {
 private:
  friend class Snapshot;
  struct Mark {
    std::uint32_t epoch = 0;
    std::uint32_t position = 0;  // in Subgraph::nodes
  };
  std::vector<Mark> marks_;
  std::uint32_t epoch_ = 0;
  std::vector<std::uint8_t> allowed_;  // by relation
  std::vector<FactId> facts_;
  // A result while it grows.
  struct Ids {
    std::unique_ptr<std::uint32_t[]> ids;
    std::size_t capacity = 0;
    void Reserve(std::size_t count, std::size_t more);
  };
  Ids nodes_, followed_;
};

struct EdgeList;
struct NodeRecord;
struct FactRecord;
struct NameBucket;
struct CompiledRules;
struct SeenVersion;

// Words that get small numbers; copied when one is added, so meant for vocabularies.
struct Words {
  std::vector<std::string> words;
  std::unordered_map<std::string, std::uint32_t> ids;
  std::uint32_t Find(std::string_view word) const;  // max() when unknown
};

// Words and rules, replaced as a whole when a batch changes them.
struct Vocabulary {
  std::shared_ptr<const Words> relations, types;
  std::shared_ptr<const CompiledRules> rules;
};

// All of one version that is not in a table.
struct GraphState : Pooled {
  std::uint64_t version = 0;
  std::size_t num_nodes = 0, num_facts = 0, num_current_facts = 0, num_buckets = 1;
  std::size_t num_forgotten_nodes = 0, num_erased_facts = 0;  // ids that stay empty
  const Vocabulary* vocabulary = nullptr;                     // the graph's, or one that it retired
};

class KnowledgeGraph;

// One version of a graph, to read. Any number at the same time; each is used by one thread; the graph outlives it.
class Snapshot {
 public:
  explicit Snapshot(const KnowledgeGraph& graph);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  std::uint64_t version() const;
  std::size_t num_nodes() const;
  std::size_t num_facts() const;  // past ones too
  std::size_t num_current_facts() const;
  std::size_t num_forgotten_nodes() const;
  std::size_t num_erased_facts() const;
  // Whether that id has something behind it: false for what was forgotten. Throws InvalidInputError for an id never given.
  bool HasNode(NodeId node) const;
  bool HasFact(FactId fact) const;
  const std::vector<std::string>& relations() const;  // "" where a word was forgotten
  const std::vector<std::string>& types() const;
  const ConflictRules& rules() const;

  // kNoNode when no node has exactly this name.
  NodeId FindNode(std::string_view name) const;
  // Throws InvalidInputError that lists the known ones.
  RelationId FindRelation(std::string_view relation) const;
  // kNoRelation when there is none.
  RelationId KnownRelation(std::string_view relation) const;
  // The current fact, or kNoFact.
  FactId FindFact(NodeId subject, RelationId relation, NodeId object) const;
  Node GetNode(NodeId node) const;
  // Empty for a forgotten one; lives as long as the snapshot.
  std::string_view NameOf(NodeId node) const;
  Fact GetFact(FactId fact) const;
  NamedFact GetNamedFact(FactId fact) const;
  bool IsCurrent(FactId fact) const;
  // Ids of the facts at a node, ascending; out before in for kBoth, a self-loop once.
  std::vector<FactId> FactsOf(NodeId node, Direction direction, std::optional<std::int64_t> as_of) const;
  // The ids of all facts that are true at `as_of`, or current ones, ascending. Reads the whole graph.
  std::vector<FactId> AllFacts(std::optional<std::int64_t> as_of) const;

  // What lies within `hops` of the sources. Cost: the edges of the nodes visited; with `as_of` their past facts too.
  void KHop(const std::vector<NodeId>& sources, const KHopOptions& options, KHopScratch* scratch,
            Subgraph* result) const;

 private:
  enum class WalkKind { kAll, kFiltered, kAsOf };
  template <WalkKind kKind, int kFirstSide, int kLastSide>
  void Walk(const std::vector<NodeId>& sources, const KHopOptions& options, KHopScratch* scratch,
            Subgraph* result) const;
  SeenVersion Seen() const;
  void CheckKnown(NodeId node, const std::string& where) const;
  const FactRecord& KnownFact(FactId fact) const;
  void AppendFacts(NodeId node, bool incoming, std::optional<std::int64_t> as_of, std::vector<FactId>* facts) const;

  const KnowledgeGraph& graph_;
  Versions::Pin* pin_;
  const GraphState* state_;
};

// What Forget removed.
struct Forgotten {
  std::vector<NodeId> nodes;      // those named, and those that nothing was left of
  std::vector<FactId> erased;     // facts of these nodes, and facts that only the forgotten sources supported
  std::vector<FactId> unsourced;  // facts that lost a source and have others
};

struct Triple;
struct UpdateOptions;
struct UpdateResult;
class GraphBatch;

class KnowledgeGraph {
 public:
  KnowledgeGraph();
  ~KnowledgeGraph();
  KnowledgeGraph& operator=(const KnowledgeGraph&) = delete;

  // An independent copy at the newest version: constant time, shared until either side writes. Waits for a writer.
  std::unique_ptr<KnowledgeGraph> Fork() const;

  // Numbers of relations; new ones are added.
  std::vector<RelationId> Intern(const std::vector<std::string>& relations);
  // Replaces the rules that Update resolves conflicts by; what is stored already is not checked.
  void SetRules(ConflictRules rules);
  // One batch without any rule: what is invalidated and added is what the caller says.
  Applied Apply(const Changes& changes) {
    Applied applied;
    Apply(changes, &applied);
    return applied;
  }
  void Apply(const Changes& changes, Applied* applied);
  // Algorithm 1 of RoboMemory in one call, see graph_update.h.
  void Update(const std::vector<Triple>& triples, const UpdateOptions& options, KHopScratch* scratch,
              UpdateResult* result);

  // Removes nodes with their facts, past ones too, and sources (episodes): a fact that no other source supports is
  // erased, not invalidated; a node that has lost its last fact and has no attributes goes too; and so do words that
  // nothing else uses. Ids are never used again. Ends of other facts stay: nothing becomes true again.
  // Snapshots and forks made before keep what they have until they are dropped. Cost: a look at every fact and node.
  Forgotten Forget(const std::vector<NodeId>& nodes, const std::vector<std::int64_t>& sources);

  // Records and arrays that wait for readers to leave; 0 or little without long-lived snapshots.
  std::size_t num_retired() const;

 private:
  friend class Snapshot;
  friend class GraphBatch;
  KnowledgeGraph(const KnowledgeGraph& other);  // with other's writer_ held

  mutable std::mutex writer_;
  mutable Versions versions_;
  VersionedTable<EdgeList> edges_;  // facts out of node n at 2n, into n at 2n + 1
  VersionedTable<FactRecord> facts_;
  VersionedTable<NodeRecord> nodes_;
  VersionedTable<NameBucket> names_;
  std::unique_ptr<const Vocabulary> vocabulary_;  // of the newest version
  std::atomic<const GraphState*> state_;          // the newest version, published last but one ...
  std::atomic<std::uint64_t> published_;  // ... and its number, so that a reader pins no later one than it reads
  bool broken_ = false;  // a batch ended half way: for want of memory, or in the parent of this process
  ForkHook hook_{[this] { broken_ = RenewMutex(&writer_) || broken_; }};
};

}  // namespace embodied_mem

// One batch of writes to a knowledge graph. Internal to csrc/memory: what it is given was checked before.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "memory/graph/graph_records.h"
#include "memory/graph/knowledge_graph.h"

namespace embodied_mem {

// ConflictRules with relations as numbers.
struct CompiledRules {
  struct Place {
    std::size_t rule, member;
  };
  ConflictRules source;
  std::vector<std::vector<RelationId>> relations;  // of each member of each rule
  std::vector<std::vector<Place>> of_relation;     // the members that a relation appears in
};

// What a reader has to know of the version that it sees.
struct SeenVersion {
  const VersionedTable<FactRecord>& facts;
  std::uint64_t version;
  std::size_t num_nodes, num_facts, num_buckets;

  const FactRecord& fact(FactId id) const { return *facts.Read(id, version); }
  bool HasEnded(const EdgeList& list, const Edge& edge) const {
    return edge.ended() && (list.rest().newest_end.load(std::memory_order_acquire) <= version ||
                            fact(edge.fact).InvalidAt(version) != kStillValid);
  }
  // Calls current(edge) or past(fact) for every edge of the list, by fact id; which of both is asked for marked ones only.
  template <typename Current, typename Past>
  void VisitEdges(const EdgeList& list, Current&& current, Past&& past) const {
    const Edge* edge = list.edges();
    for (const Edge* const end = edge + list.CountBelow(num_facts); edge != end; ++edge) {
      if (HasEnded(list, *edge)) {
        past(edge->fact);
      } else {
        current(*edge);
      }
    }
  }
  // Calls visit(fact) for the list's past facts, in no order; those that ended up to `until` may be missing.
  template <typename Visit>
  void VisitPast(const EdgeList& list, std::int64_t until, Visit&& visit) const {
    VisitEdges(list, [](const Edge&) {}, visit);
    VisitMoved(list, until, visit);
  }
  // The same for those that have left the list's edges.
  template <typename Visit>
  static void VisitMoved(const EdgeList& list, std::int64_t until, Visit&& visit) {
    const auto& moved = list.rest().past;
    if (moved.empty() || moved.back().latest <= until) return;
    moved.VisitBackwards([&](const PastEdge& past) { visit(past.fact); });
  }
};

// Holds the writer's lock. Nothing is visible before Commit; a batch that ends without it after it has written
// to the tables closes the graph for writing.
class GraphBatch {
 public:
  explicit GraphBatch(KnowledgeGraph* graph);
  ~GraphBatch();
  GraphBatch(const GraphBatch&) = delete;
  GraphBatch& operator=(const GraphBatch&) = delete;

  const GraphState& state() const { return state_; }
  SeenVersion seen() const {
    return {graph_->facts_, state_.version, state_.num_nodes, state_.num_facts, state_.num_buckets};
  }
  const EdgeList* list(NodeId node, bool incoming) const {
    return graph_->edges_.Read(2 * static_cast<std::size_t>(node) + (incoming ? 1 : 0), state_.version);
  }
  const FactRecord& fact(FactId id) const { return *graph_->facts_.Read(id, state_.version); }
  const NodeRecord& node(NodeId id) const { return *graph_->nodes_.Read(id, state_.version); }
  // Asks the memory for all that the changes will touch, in an order that lets the requests overlap. `hashes` are those
  // of the nodes' names.
  void Prefetch(const Changes& changes, const std::uint32_t* hashes) const;
  // The ids of many names whose hashes are known, kNoNode for one without a node; the lookups overlap likewise.
  void FindNodes(const std::vector<std::string_view>& names, const std::vector<std::uint32_t>& hashes,
                 std::vector<NodeId>* ids) const;
  // Asks the memory for the lists of the facts' two ends, which FindNodes asked to locate; new nodes have none.
  void PrefetchLists(const std::vector<std::pair<NodeId, NodeId>>& ends) const;
  NodeId FindNode(std::string_view name) const { return FindNode(name, NameHash(name)); }
  NodeId FindNode(std::string_view name, std::uint32_t hash) const;
  FactId FindFact(NodeId subject, RelationId relation, NodeId object) const;

  // Appends the facts that `ends` name to `found`, kNoFact for what is not true now. The nodes are known.
  void FindFacts(const std::vector<Changes::Ending>& ends, std::vector<FactId>* found) const;

  // The number of a word, new ones added. Throws InvalidInputError when there are too many, so call these first.
  RelationId Relation(const std::string& word);
  TypeId Type(const std::string& word);
  // The node of that name, made or updated; `known` is what FindNode says.
  NodeId PutNode(const Node& node, NodeId known) {
    return PutNode(node, node.type.empty() ? kNoType : Type(node.type), NameHash(node.name), known);
  }
  NodeId PutNode(const Node& node, TypeId type, std::uint32_t hash, NodeId known);
  // `invalid_at` kStillValid makes a current fact.
  FactId AddFact(NodeId subject, RelationId relation, NodeId object, std::int64_t valid_at, std::int64_t invalid_at,
                 std::optional<std::int64_t> source);
  // The current fact that says so, which gets the source, or a new one; whether it was current.
  bool PutFact(const Changes::NewFact& fact, FactId* id);
  // Ends a current fact, or moves the end of a past one forward.
  void EndFact(FactId fact, std::int64_t invalid_at);
  void AddSource(FactId fact, std::int64_t source);

  // Forgetting. The lists of its nodes go on naming an erased fact until they are filtered.
  void EraseFact(FactId fact);
  void SetSources(FactId fact, const std::vector<std::int64_t>& sources);
  // Takes the erased facts, which are sorted, out of both lists of a node; whether any fact is left there.
  bool FilterLists(NodeId node, const std::vector<FactId>& erased);
  // A node without facts.
  void ForgetNode(NodeId node);
  // Ids that have nothing behind them, as in the graph that is read back.
  void SkipNode();
  void SkipFact();
  void SetWords(std::vector<std::string> relations, std::vector<std::string> types);
  void SetRules(std::shared_ptr<const CompiledRules> rules);
  void Commit();

 private:
  // The slots of the two lists of a fact, to be written.
  struct Ends {
    std::atomic<EdgeList*>*out, *in;
  };
  Ends OwnEnds(NodeId subject, NodeId object);
  FactId AddFactAt(const Ends& ends, const Changes::NewFact& fact, std::int64_t invalid_at);

  std::uint32_t Number(const std::string& word, const char* what, std::shared_ptr<const Words> Vocabulary::* which,
                       std::shared_ptr<Words>* own);
  Vocabulary* OwnVocabulary();
  // A list to append `more` edges to and to mark edges of, in place where that can be.
  EdgeList* OwnList(std::atomic<EdgeList*>* place, std::uint32_t more);
  // A copy with room for `more` edges in place of the list there, which may be nullptr.
  EdgeList* CopyList(std::atomic<EdgeList*>* place, std::uint32_t more);
  // A record of this batch, to change at will.
  FactRecord* OwnFact(FactId fact);
  NameBucket* CopyBucket(std::size_t bucket, std::uint32_t more);
  void InsertName(std::uint32_t hash, NodeId node);

  KnowledgeGraph* graph_;
  std::unique_lock<std::mutex> lock_;
  GraphState state_;
  std::unique_ptr<Vocabulary> own_vocabulary_;  // where this batch changes it
  std::shared_ptr<Words> own_relations_, own_types_;
  bool changed_ = false;  // there is something to publish
  bool touched_ = false;  // tables were written, not the state alone
  bool committed_ = false;
};

// The id of the node of this name, whose NameHash is `hash`, or kNoNode.
NodeId FindName(const VersionedTable<NameBucket>& names, const VersionedTable<NodeRecord>& nodes, std::string_view name,
                std::uint32_t hash, const SeenVersion& seen);
// The current fact in the shorter one of the subject's list out and the object's list in (each may be nullptr).
FactId FindEdge(const EdgeList* out, const EdgeList* in, NodeId subject, RelationId relation, NodeId object,
                const SeenVersion& seen);

}  // namespace embodied_mem

// Breadth-first extraction from a snapshot.
#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "core/error.h"
#include "memory/graph/graph_batch.h"
#include "memory/graph/graph_checks.h"
#include "memory/graph/graph_records.h"
#include "memory/graph/knowledge_graph.h"

namespace embodied_mem {
namespace {

// How many nodes ahead slots, then lists, then long lists' other edges and the marks of their nodes are asked for: memory
// is slower than the loop.
constexpr std::size_t kSlotsAhead = 16, kListsAhead = 10, kRestAhead = 4;
constexpr std::uint32_t kFirstLine = (64 - sizeof(EdgeList)) / sizeof(Edge);  // edges on a list's first cache line

// The slots of the next nodes to expand; a node's two lie side by side. Asks the memory for them and for their lists.
template <int kFirstSide, int kLastSide>
class Ahead {
 public:
  using Slot = const std::atomic<EdgeList*>*;

  explicit Ahead(const VersionedTable<EdgeList>::Slots& edges) : edges_(edges) {}

  // The slot of the node at `i`, which goes up by one with each call; `limit` is how many nodes are to be expanded so far.
  // `ask_node` is called for nodes at the other ends, early.
  template <typename AskNode>
  Slot Next(const NodeId* nodes, std::size_t i, std::size_t limit, const AskNode& ask_node) {
    for (const std::size_t end = std::min(i + kSlotsAhead, limit); num_slots_ < end; ++num_slots_) {
      const Slot slot = slots_[num_slots_ % kSlotsAhead] = edges_.At(2 * static_cast<std::size_t>(nodes[num_slots_]));
      __builtin_prefetch(slot);
    }
    for (const std::size_t end = std::min(i + kListsAhead, num_slots_); num_lists_ < end; ++num_lists_)
      EachList(num_lists_, [](const EdgeList* list) { __builtin_prefetch(list); });
    for (const std::size_t end = std::min(i + kRestAhead, num_lists_); num_rests_ < end; ++num_rests_)
      EachList(num_rests_, [&](const EdgeList* list) {
        const std::uint32_t count = list->count.load(std::memory_order_acquire);
        if (count > kFirstLine) __builtin_prefetch(reinterpret_cast<const char*>(list) + 64);
        for (std::uint32_t e = 0; e < std::min(count, kFirstLine); ++e) ask_node(list->edges()[e].node);
      });
    return slots_[i % kSlotsAhead];
  }

 private:
  template <typename Visit>
  void EachList(std::size_t i, Visit&& visit) const {
    const Slot slot = slots_[i % kSlotsAhead];
    if (slot == nullptr) return;
    for (int side = kFirstSide; side <= kLastSide; ++side) {
      if (const EdgeList* list = slot[side].load(std::memory_order_acquire)) visit(list);
    }
  }

  const VersionedTable<EdgeList>::Slots& edges_;
  Slot slots_[kSlotsAhead] = {};
  std::size_t num_slots_ = 0, num_lists_ = 0, num_rests_ = 0;  // asked for
};

}  // namespace

void KHopScratch::Ids::Reserve(std::size_t count, std::size_t more) {
  if (capacity - count >= more) return;
  const std::size_t room = 2 * capacity + more + 64;
  std::unique_ptr<std::uint32_t[]> grown(new std::uint32_t[room]);
  std::copy(ids.get(), ids.get() + count, grown.get());
  ids = std::move(grown);
  capacity = room;
}

void CheckKHop(const KHopOptions& options, std::size_t num_relations) {
  if (options.hops > kMaxHops)
    throw InvalidInputError("hops: expected at most " + std::to_string(kMaxHops) + ", got " +
                            std::to_string(options.hops));
  for (std::size_t i = 0; i < options.relations.size(); ++i) {
    if (options.relations[i] >= num_relations)
      throw InvalidInputError("relations[" + std::to_string(i) + "]: expected a relation id below " +
                              std::to_string(num_relations) + ", got " + std::to_string(options.relations[i]));
  }
}

void Snapshot::KHop(const std::vector<NodeId>& sources, const KHopOptions& options, KHopScratch* scratch,
                    Subgraph* result) const {
  CheckKHop(options, relations().size());
  const std::size_t num_known = state_->num_forgotten_nodes > 0 ? 0 : num_nodes();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] >= num_known) CheckKnown(sources[i], "sources[" + std::to_string(i) + "]");
  }
  scratch->allowed_.assign(options.relations.empty() && !options.as_of ? 0 : relations().size(),
                           options.relations.empty() ? 1 : 0);
  for (const RelationId relation : options.relations) scratch->allowed_[relation] = 1;
  if (scratch->marks_.size() < num_nodes()) scratch->marks_.resize(num_nodes() + num_nodes() / 2);
  if (++scratch->epoch_ == 0) {
    std::fill(scratch->marks_.begin(), scratch->marks_.end(), KHopScratch::Mark{});
    scratch->epoch_ = 1;
  }
  const auto walk = [&](auto kind) {
    constexpr WalkKind kKind = decltype(kind)::value;
    switch (options.direction) {
      case Direction::kOut: return Walk<kKind, 0, 0>(sources, options, scratch, result);
      case Direction::kIn: return Walk<kKind, 1, 1>(sources, options, scratch, result);
      case Direction::kBoth: return Walk<kKind, 0, 1>(sources, options, scratch, result);
    }
  };
  if (options.as_of) {
    walk(std::integral_constant<WalkKind, WalkKind::kAsOf>());
  } else if (options.relations.empty()) {
    walk(std::integral_constant<WalkKind, WalkKind::kAll>());
  } else {
    walk(std::integral_constant<WalkKind, WalkKind::kFiltered>());
  }
}

template <Snapshot::WalkKind kKind, int kFirstSide, int kLastSide>
void Snapshot::Walk(const std::vector<NodeId>& sources, const KHopOptions& options, KHopScratch* scratch,
                    Subgraph* result) const {
  const SeenVersion seen = Seen();
  KHopScratch::Mark* const marks = scratch->marks_.data();
  const std::uint32_t epoch = scratch->epoch_;
  const auto max_nodes = static_cast<std::uint32_t>(std::min<std::size_t>(options.max_nodes, kNoNode));
  NodeId* nodes = nullptr;
  FactId* facts = nullptr;
  std::uint32_t num_nodes = 0, i = 0;
  std::size_t num_facts = 0, room = 0;  // room for as many more, at least
  bool truncated = false;
  const auto reserve = [&](std::size_t more) {
    if (__builtin_expect(room < more, 0)) {
      scratch->nodes_.Reserve(num_nodes, more);
      scratch->followed_.Reserve(num_facts, more);
      nodes = scratch->nodes_.ids.get();
      facts = scratch->followed_.ids.get();
      room = std::min(scratch->nodes_.capacity - num_nodes, scratch->followed_.capacity - num_facts);
    }
    room -= more;
  };
  reserve(sources.size());
  for (const NodeId source : sources) {
    if (marks[source].epoch == epoch) continue;
    if (num_nodes >= max_nodes) {
      truncated = true;
      break;
    }
    marks[source] = {epoch, num_nodes};
    nodes[num_nodes++] = source;
  }
  result->hop_ends.assign(1, num_nodes);
  result->fact_ends.clear();

  // Takes one edge of the node at `i`. An edge to a node that was expanded before was noted there, since both ends
  // were marked by then; a self-loop is noted on its way out.
  const auto follow = [&](NodeId node, FactId fact, int side) {
    KHopScratch::Mark& mark = marks[node];
    if (mark.epoch != epoch) {
      if (num_nodes >= max_nodes) {
        truncated = true;
        return;
      }
      mark.epoch = epoch;
      if (kFirstSide != kLastSide) mark.position = num_nodes;
      nodes[num_nodes++] = node;
    } else if (kFirstSide != kLastSide && (mark.position < i || (mark.position == i && side == 1))) {
      return;
    }
    facts[num_facts++] = fact;
  };
  const auto ask_mark = [&](NodeId node) {
    if (node < seen.num_nodes) __builtin_prefetch(marks + node);  // else it is of a later version
  };
  const bool is_large = seen.num_nodes >= kInCache;
  const VersionedTable<EdgeList>::Slots slots(graph_.edges_);
  Ahead<kFirstSide, kLastSide> ahead(slots);
  for (std::size_t hop = 0; hop < options.hops; ++hop) {
    for (const std::uint32_t end = num_nodes; i < end; ++i) {
      const auto* slot = is_large ? ahead.Next(nodes, i, hop + 1 < options.hops ? num_nodes : end, ask_mark)
                                  : slots.At(2 * static_cast<std::size_t>(nodes[i]));
      if (slot == nullptr) continue;
      for (int side = kFirstSide; side <= kLastSide; ++side) {
        if constexpr (kKind == WalkKind::kAsOf) {
          scratch->facts_.clear();
          AppendFacts(nodes[i], side == 1, options.as_of, &scratch->facts_);
          reserve(scratch->facts_.size());
          for (const FactId id : scratch->facts_) {
            const FactRecord& fact = seen.fact(id);
            if (scratch->allowed_[fact.relation()] != 0) follow(side == 1 ? fact.subject : fact.object, id, side);
          }
        } else {
          const EdgeList* list = VersionedTable<EdgeList>::ReadAt(slot[side], seen.version);
          if (list == nullptr) continue;
          const std::uint32_t count = list->CountBelow(seen.num_facts);
          reserve(count);
          const Edge* edge = list->edges();
          for (const Edge* const last = edge + count; edge != last; ++edge) {
            if (seen.HasEnded(*list, *edge)) continue;
            if (kKind == WalkKind::kAll || scratch->allowed_[edge->relation()] != 0)
              follow(edge->node, edge->fact, side);
          }
        }
      }
    }
    result->hop_ends.push_back(num_nodes);
    result->fact_ends.push_back(num_facts);
  }
  result->nodes.assign(nodes, nodes + num_nodes);
  result->facts.assign(facts, facts + num_facts);
  result->truncated = truncated;
}

}  // namespace embodied_mem

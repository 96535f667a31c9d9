// Breadth-first extraction from a snapshot.
#include <algorithm>
#include <limits>
#include <string>

#include "core/error.h"
#include "memory/graph_batch.h"
#include "memory/graph_checks.h"
#include "memory/graph_records.h"
#include "memory/knowledge_graph.h"

namespace embodied_mem {
namespace {

// How many nodes ahead slots and lists are asked for: memory is slower than the loop.
constexpr std::size_t kSlotsAhead = 8;
constexpr std::size_t kListsAhead = 4;

// A list of a few facts lies on two cache lines.
inline void PrefetchList(const EdgeList* list) {
  if (list == nullptr) return;
  __builtin_prefetch(list);
  __builtin_prefetch(reinterpret_cast<const char*>(list) + 64);
}

}  // namespace

// `Follow(edge, incoming)` of the node at `position` takes one edge: marks its node, and notes the fact once.
struct KHopWalk {
  KHopScratch::Mark* marks;
  std::uint32_t epoch;
  std::size_t max_nodes;
  Subgraph* result;

  // An edge to a node that was expanded before was noted there, since both ends were marked by then; a self-loop is
  // noted on its way out.
  void Follow(NodeId node, FactId fact, bool incoming, bool both, std::size_t position) const {
    KHopScratch::Mark& mark = marks[node];
    if (mark.epoch != epoch) {
      if (result->nodes.size() >= max_nodes) {
        result->truncated = true;
        return;
      }
      mark = {epoch, static_cast<std::uint32_t>(result->nodes.size())};
      result->nodes.push_back(node);
    } else if (both && (mark.position < position || (mark.position == position && incoming))) {
      return;
    }
    result->facts.push_back(fact);
  }
};

void CheckKHop(const KHopOptions& options, std::size_t num_relations) {
  if (options.hops > kMaxHops)
    throw InvalidInputError("hops: expected at most " + std::to_string(kMaxHops) + ", got " + std::to_string(options.hops));
  for (std::size_t i = 0; i < options.relations.size(); ++i) {
    if (options.relations[i] >= num_relations)
      throw InvalidInputError("relations[" + std::to_string(i) + "]: expected a relation id below " +
                              std::to_string(num_relations) + ", got " + std::to_string(options.relations[i]));
  }
}

void Snapshot::KHop(const std::vector<NodeId>& sources, const KHopOptions& options, KHopScratch* scratch,
                    Subgraph* result) const {
  CheckKHop(options, relations().size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i] >= num_nodes() || state_->num_forgotten_nodes > 0) CheckKnown(sources[i], "sources[" + std::to_string(i) + "]");
  }
  scratch->allowed_.assign(options.relations.empty() ? 0 : relations().size(), 0);
  for (const RelationId relation : options.relations) scratch->allowed_[relation] = 1;
  if (scratch->marks_.size() < num_nodes()) scratch->marks_.resize(num_nodes() + num_nodes() / 2);
  if (++scratch->epoch_ == 0) {
    std::fill(scratch->marks_.begin(), scratch->marks_.end(), KHopScratch::Mark{});
    scratch->epoch_ = 1;
  }
  result->Clear();
  for (const NodeId source : sources) {
    KHopScratch::Mark& mark = scratch->marks_[source];
    if (mark.epoch == scratch->epoch_) continue;
    if (result->nodes.size() >= options.max_nodes) {
      result->truncated = true;
      break;
    }
    mark = {scratch->epoch_, static_cast<std::uint32_t>(result->nodes.size())};
    result->nodes.push_back(source);
  }
  result->hop_ends.push_back(result->nodes.size());
  const KHopWalk walk{scratch->marks_.data(), scratch->epoch_, options.max_nodes, result};
  if (options.as_of) {
    WalkAsOf(walk, options, scratch);
  } else if (options.relations.empty()) {
    Walk<false>(walk, options, *scratch);
  } else {
    Walk<true>(walk, options, *scratch);
  }
}

template <bool kFiltered>
void Snapshot::Walk(const KHopWalk& walk, const KHopOptions& options, const KHopScratch& scratch) const {
  const bool out = options.direction != Direction::kIn, in = options.direction != Direction::kOut;
  const std::uint64_t version = state_->version;
  std::vector<NodeId>& nodes = walk.result->nodes;
  const std::atomic<EdgeList*>* ahead[kSlotsAhead] = {};  // the slots of the next nodes; a node's two lie side by side
  const auto ask_slot = [&](std::size_t i) {
    const auto* slot = ahead[i % kSlotsAhead] = graph_.edges_.Slot(2 * static_cast<std::size_t>(nodes[i]));
    __builtin_prefetch(slot);
  };
  const auto ask_lists = [&](std::size_t i) {
    const auto* slot = ahead[i % kSlotsAhead];
    if (slot == nullptr) return;
    if (out) PrefetchList(slot[0].load(std::memory_order_relaxed));
    if (in) PrefetchList(slot[1].load(std::memory_order_relaxed));
  };
  std::size_t begin = 0;
  for (std::size_t hop = 0; hop < options.hops; ++hop) {
    const std::size_t end = nodes.size();
    for (std::size_t i = begin; i < std::min(begin + kSlotsAhead, end); ++i) ask_slot(i);
    for (std::size_t i = begin; i < std::min(begin + kListsAhead, end); ++i) ask_lists(i);
    for (std::size_t i = begin; i < end; ++i) {
      if (i + kListsAhead < end) ask_lists(i + kListsAhead);
      const auto* slot = ahead[i % kSlotsAhead];
      if (i + kSlotsAhead < end) ask_slot(i + kSlotsAhead);
      if (slot == nullptr) continue;
      for (int side = out ? 0 : 1; side < (in ? 2 : 1); ++side) {
        const EdgeList* list = VersionedTable<EdgeList>::ReadAt(slot[side], version);
        if (list == nullptr) continue;
        const Edge* edge = list->edges();
        for (const Edge* const last = edge + list->count; edge != last; ++edge) {
          if (kFiltered && scratch.allowed_[edge->relation] == 0) continue;
          walk.Follow(edge->node, edge->fact, side == 1, out && in, i);
        }
      }
    }
    begin = end;
    walk.result->hop_ends.push_back(nodes.size());
  }
}

void Snapshot::WalkAsOf(const KHopWalk& walk, const KHopOptions& options, KHopScratch* scratch) const {
  const bool out = options.direction != Direction::kIn, in = options.direction != Direction::kOut;
  std::vector<NodeId>& nodes = walk.result->nodes;
  std::size_t begin = 0;
  for (std::size_t hop = 0; hop < options.hops; ++hop) {
    const std::size_t end = nodes.size();
    for (std::size_t i = begin; i < end; ++i) {
      for (int side = out ? 0 : 1; side < (in ? 2 : 1); ++side) {
        scratch->facts_.clear();
        AppendFacts(nodes[i], side == 1, options.as_of, &scratch->facts_);
        for (const FactId id : scratch->facts_) {
          const FactRecord& fact = *graph_.facts_.Read(id, state_->version);
          if (!scratch->allowed_.empty() && scratch->allowed_[fact.relation] == 0) continue;
          walk.Follow(side == 1 ? fact.subject : fact.object, id, side == 1, out && in, i);
        }
      }
    }
    begin = end;
    walk.result->hop_ends.push_back(nodes.size());
  }
}

}  // namespace embodied_mem

// A hierarchical navigable small world graph: hnswlib's storage and choice of links, with our own insertion, search and
// repair around them.
//
// What differs from hnswlib's own: a walk keeps several candidates on the upper levels, too, so that topics that come and
// go stay in one piece; levels are drawn from the number of the insertion and not from a generator shared by threads; a
// slot is linked from the lowest level up, with one lock at a time; vectors are aligned to cache lines; search keeps one
// sorted pool, asks memory for the neighbours of a node before it scores them, and scores four at a time; removed slots
// are repaired away: each node that pointed at one gets links to what that one pointed at, chosen by the same heuristic.
// So it derives from hnswlib's class: the public calls (addPoint, searchKnn, markDelete) go down with one candidate,
// neither take nor give the links that files hold, and keep the rows of what was removed.
//
// Source: Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search using hierarchical navigable
// small world graphs"; the repair follows Singh et al., "FreshDiskANN".
#pragma once

#include <hnswlib/hnswlib.h>

#include <cstddef>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "memory/vectors/vector_store.h"

namespace embodied_mem {

class HnswGraph : private hnswlib::HierarchicalNSW<float> {
 public:
  HnswGraph(std::size_t dim, std::size_t connectivity, std::size_t ef_construction);

  std::size_t num_slots() const { return cur_element_count; }
  std::size_t num_removed() const { return num_deleted_; }
  std::uint64_t num_insertions() const { return num_insertions_; }
  Slot entry() const { return enterpoint_node_; }
  float* Row(Slot slot) const { return reinterpret_cast<float*>(getDataByInternalId(slot)); }

  // Room for more slots, with zero rows, at the end; then Link each, from any number of threads, once its row is written.
  void Append(std::size_t count);
  void Link(Slot slot);
  void MarkRemoved(Slot slot) { markDeletedInternal(slot); }
  // Links around the removed slots and closes up. Returns for each slot the one it had before.
  std::vector<Slot> Compact(std::size_t num_threads);

  // The nearest by distance (minus the dot product) that are not removed and, where given, allowed; up to `ef`, unordered.
  void Search(const float* query, std::size_t ef, const std::uint8_t* allowed,
              std::vector<std::pair<float, Slot>>* found) const;

  int Level(Slot slot) const { return element_levels_[slot]; }
  std::vector<Slot> Links(Slot slot, int level) const;
  // From a file, once: levels and links of all slots, checked by the caller; rows are written by Row.
  void Restore(const std::vector<int>& levels, Slot entry, std::uint64_t num_insertions);
  void SetLinks(Slot slot, int level, const Slot* links, std::size_t count);
  std::size_t MaxLinks(int level) const { return level == 0 ? maxM0_ : maxM_; }
  static constexpr int kMaxLevel = 63;

 private:
  struct Scratch;
  using Nearest = std::priority_queue<std::pair<float, Slot>, std::vector<std::pair<float, Slot>>, CompareByFirst>;

  void Reserve(std::size_t slots);
  void MakeUpperLinks(Slot slot, int level);
  void SearchLevel(const float* query, std::size_t ef, int level, const std::uint8_t* allowed, bool all, bool locked,
                   Scratch* scratch) const;
  void Repair(Slot slot, int level);

  std::size_t padded_dim_;
  std::uint64_t num_insertions_ = 0;
};

}  // namespace embodied_mem

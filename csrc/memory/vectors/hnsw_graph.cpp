#include "memory/vectors/hnsw_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>

#include "core/thread_pool.h"

namespace embodied_mem {
namespace {

class DotSpace : public hnswlib::SpaceInterface<float> {
 public:
  std::size_t get_data_size() override { return 0; }
  hnswlib::DISTFUNC<float> get_dist_func() override { return Kernels().distance; }
  void* get_dist_func_param() override { return nullptr; }
};

hnswlib::SpaceInterface<float>* Space() {
  static DotSpace space;
  return &space;
}

// A good mix of the bits (splitmix64), to (0, 1].
double Uniform(std::uint64_t number) {
  number += 0x9E3779B97F4A7C15U;
  number = (number ^ (number >> 30U)) * 0xBF58476D1CE4E5B9U;
  number = (number ^ (number >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>(((number ^ (number >> 31U)) >> 11U) + 1) * 0x1p-53;
}

constexpr Slot kNoSlot = ~Slot{0};
// Candidates above the levels of a slot or a query. With one, as in hnswlib, a walk ends in whichever topic is near first:
// vectors that came topic by topic split into parts that no larger ef finds (recall 0.89 to 0.98 in ours and hnswlib).
constexpr std::size_t kUpperEfLink = 32, kUpperEfSearch = 8;

}  // namespace

HnswGraph::HnswGraph(std::size_t dim, std::size_t connectivity, std::size_t ef_construction)
    : HierarchicalNSW(Space()), padded_dim_(Padded(dim)) {
  M_ = connectivity;
  maxM_ = M_;
  maxM0_ = 2 * M_;
  ef_construction_ = std::max(ef_construction, M_);
  mult_ = 1 / std::log(static_cast<double>(M_));
  revSize_ = 1 / mult_;
  fstdistfunc_ = Kernels().distance;
  dist_func_param_ = &padded_dim_;
  data_size_ = padded_dim_ * sizeof(float);
  // The row first: it starts on a cache line, as the element does.
  offsetData_ = 0;
  offsetLevel0_ = data_size_;
  size_links_level0_ = maxM0_ * sizeof(Slot) + sizeof(hnswlib::linklistsizeint);
  // hnswlib, which prefetches, reads one link past the list; here that is still the element.
  label_offset_ = (offsetLevel0_ + size_links_level0_ + sizeof(Slot) + 7) / 8 * 8;
  size_data_per_element_ = (label_offset_ + sizeof(hnswlib::labeltype) + kAlignment - 1) / kAlignment * kAlignment;
  size_links_per_element_ = maxM_ * sizeof(Slot) + sizeof(hnswlib::linklistsizeint);
  enterpoint_node_ = kNoSlot;
  maxlevel_ = -1;
  visited_list_pool_ = std::make_unique<hnswlib::VisitedListPool>(1, 0);
}

void HnswGraph::Reserve(std::size_t slots) {
  if (slots <= max_elements_) return;
  slots = std::max(slots, max_elements_ + max_elements_ / 2);
  auto* memory =
      static_cast<char*>(std::aligned_alloc(kAlignment, slots * size_data_per_element_));  // freed by hnswlib
  if (memory == nullptr) throw std::bad_alloc();
  if (cur_element_count > 0) std::memcpy(memory, data_level0_memory_, cur_element_count * size_data_per_element_);
  std::free(data_level0_memory_);
  data_level0_memory_ = memory;
  auto** lists = static_cast<char**>(std::realloc(linkLists_, slots * sizeof(char*)));
  if (lists == nullptr) throw std::bad_alloc();
  linkLists_ = lists;
  element_levels_.resize(slots);
  link_list_locks_ = std::vector<std::mutex>(slots);
  visited_list_pool_ = std::make_unique<hnswlib::VisitedListPool>(1, static_cast<int>(slots));
  max_elements_ = slots;
}

void HnswGraph::MakeUpperLinks(Slot slot, int level) {
  element_levels_[slot] = 0;
  if (level > 0) {
    const std::size_t bytes =
        size_links_per_element_ * static_cast<std::size_t>(level) + sizeof(Slot);  // one past, see above
    linkLists_[slot] = static_cast<char*>(std::calloc(bytes, 1));
    if (linkLists_[slot] == nullptr) throw std::bad_alloc();
  }
  element_levels_[slot] = level;
}

void HnswGraph::Append(std::size_t count) {
  Reserve(cur_element_count + count);
  for (std::size_t i = 0; i < count; ++i) {
    const Slot slot = static_cast<Slot>(cur_element_count);
    std::memset(data_level0_memory_ + slot * size_data_per_element_, 0, size_data_per_element_);
    setExternalLabel(slot, slot);
    MakeUpperLinks(slot, std::min(static_cast<int>(-std::log(Uniform(num_insertions_)) * mult_), kMaxLevel));
    ++num_insertions_;
    ++cur_element_count;
  }
}

// Candidates sorted by distance; the first that has not been expanded is next.
struct HnswGraph::Scratch {
  struct Candidate {
    float distance;
    Slot slot;
    bool expanded, counts;
  };
  std::vector<Candidate> pool;
  std::vector<Slot> fresh;
  std::vector<const float*> rows;
  std::vector<float> distances;
};

// From the candidates in the pool to the nearest on a level, until there are `ef` that count: all, or those that are not
// removed and, where given, allowed.
void HnswGraph::SearchLevel(const float* query, std::size_t ef, int level, const std::uint8_t* allowed, bool all,
                            bool locked, Scratch* scratch) const {
  const SimdKernels& kernels = Kernels();
  const std::size_t row_bytes = padded_dim_ * sizeof(float);
  const std::size_t ahead_bytes = std::min<std::size_t>(row_bytes, 256);
  const auto counts = [&](Slot slot) {
    return all || ((allowed == nullptr || allowed[slot] != 0) && !isMarkedDeleted(slot));
  };
  auto& pool = scratch->pool;
  scratch->fresh.resize(maxM0_ + 4);
  scratch->rows.resize(maxM0_ + 4);
  scratch->distances.resize(maxM0_ + 4);
  hnswlib::VisitedList* visited = visited_list_pool_->getFreeVisitedList();
  hnswlib::vl_type* marks = visited->mass;
  const hnswlib::vl_type mark = visited->curV;
  std::size_t num_counted = 0;
  for (Scratch::Candidate& candidate : pool) {
    marks[candidate.slot] = mark;
    candidate.expanded = false;
    candidate.counts = counts(candidate.slot);
    num_counted += candidate.counts ? 1 : 0;
  }
  for (std::size_t next = 0; next < pool.size();) {
    if (pool[next].expanded) {
      ++next;
      continue;
    }
    pool[next].expanded = true;
    std::size_t fresh = 0;
    {
      std::unique_lock<std::mutex> lock;
      if (locked) lock = std::unique_lock<std::mutex>(const_cast<std::mutex&>(link_list_locks_[pool[next].slot]));
      const hnswlib::linklistsizeint* list = get_linklist_at_level(pool[next].slot, level);
      const std::size_t count = getListCount(const_cast<hnswlib::linklistsizeint*>(list));
      const Slot* links = list + 1;
      for (std::size_t i = 0; i < count; ++i) {
        if (marks[links[i]] == mark) continue;
        marks[links[i]] = mark;
        const float* row = Row(links[i]);
        for (std::size_t byte = 0; byte < ahead_bytes; byte += kAlignment)
          __builtin_prefetch(reinterpret_cast<const char*>(row) + byte);
        scratch->fresh[fresh] = links[i];
        scratch->rows[fresh++] = row;
      }
    }
    if (fresh == 0) continue;
    const std::size_t rounded = (fresh + 3) / 4 * 4;
    for (std::size_t i = fresh; i < rounded; ++i) scratch->rows[i] = scratch->rows[fresh - 1];
    for (std::size_t i = 0; i < rounded; i += 4)
      kernels.distance4(query, scratch->rows.data() + i, padded_dim_, scratch->distances.data() + i);
    for (std::size_t i = 0; i < fresh; ++i) {
      const float distance = scratch->distances[i];
      if (num_counted >= ef && distance >= pool.back().distance) continue;
      const auto place = std::upper_bound(pool.begin(), pool.end(), distance,
                                          [](float value, const Scratch::Candidate& c) { return value < c.distance; });
      next = std::min(next, static_cast<std::size_t>(place - pool.begin()));
      const Slot slot = scratch->fresh[i];
      const bool counted = counts(slot);
      pool.insert(place, {distance, slot, false, counted});
      num_counted += counted ? 1 : 0;
      while (num_counted > ef || (num_counted == ef && !pool.back().counts)) {
        num_counted -= pool.back().counts ? 1 : 0;
        pool.pop_back();
      }
    }
  }
  visited_list_pool_->releaseVisitedList(visited);
}

void HnswGraph::Link(Slot slot) {
  thread_local Scratch scratch;
  const float* row = Row(slot);
  const int level = element_levels_[slot];
  std::unique_lock<std::mutex> top(global);
  const int max_level = maxlevel_;
  const Slot entry = enterpoint_node_;
  if (entry == kNoSlot) {
    enterpoint_node_ = slot;
    maxlevel_ = level;
    return;
  }
  if (level <= max_level) top.unlock();
  const int linked = std::min(level, max_level);
  std::vector<Nearest> candidates(static_cast<std::size_t>(linked) + 1);
  scratch.pool = {{fstdistfunc_(row, Row(entry), dist_func_param_), entry, false, true}};
  for (int at = max_level; at >= 0; --at) {
    SearchLevel(row, at > linked ? kUpperEfLink : ef_construction_, at, nullptr, at > linked, true, &scratch);
    if (at > linked) continue;
    Nearest& found = candidates[static_cast<std::size_t>(at)];
    for (const Scratch::Candidate& candidate : scratch.pool)
      if (candidate.counts) found.emplace(candidate.distance, candidate.slot);
    // Where only removed slots are near, one of them leads on.
    if (found.empty()) found.emplace(scratch.pool[0].distance, scratch.pool[0].slot);
  }
  // The lowest level first: whoever comes down through the slot finds it linked already. So, unlike in hnswlib, no lock
  // is held while another one is waited for.
  for (int at = 0; at <= linked; ++at)
    mutuallyConnectNewElement(row, slot, candidates[static_cast<std::size_t>(at)], at, false);
  if (level > max_level) {
    enterpoint_node_ = slot;
    maxlevel_ = level;
  }
}

void HnswGraph::Search(const float* query, std::size_t ef, const std::uint8_t* allowed,
                       std::vector<std::pair<float, Slot>>* found) const {
  thread_local Scratch scratch;
  found->clear();
  if (cur_element_count == 0) return;
  scratch.pool = {{fstdistfunc_(query, Row(enterpoint_node_), dist_func_param_), enterpoint_node_, false, true}};
  for (int level = maxlevel_; level > 0; --level)
    SearchLevel(query, kUpperEfSearch, level, nullptr, true, false, &scratch);
  SearchLevel(query, ef, 0, allowed, allowed == nullptr && num_deleted_ == 0, false, &scratch);
  for (const Scratch::Candidate& candidate : scratch.pool)
    if (candidate.counts) found->emplace_back(candidate.distance, candidate.slot);
}

std::vector<Slot> HnswGraph::Links(Slot slot, int level) const {
  hnswlib::linklistsizeint* list = get_linklist_at_level(slot, level);
  return {list + 1, list + 1 + getListCount(list)};
}

void HnswGraph::SetLinks(Slot slot, int level, const Slot* links, std::size_t count) {
  hnswlib::linklistsizeint* list = get_linklist_at_level(slot, level);
  setListCount(list, static_cast<unsigned short>(count));
  std::copy_n(links, count, list + 1);
  std::fill(list + 1 + count, list + 1 + MaxLinks(level), 0);
}

void HnswGraph::Restore(const std::vector<int>& levels, Slot entry, std::uint64_t num_insertions) {
  Reserve(levels.size());
  for (Slot slot = 0; slot < levels.size(); ++slot) {
    std::memset(data_level0_memory_ + slot * size_data_per_element_, 0, size_data_per_element_);
    setExternalLabel(slot, slot);
    MakeUpperLinks(slot, levels[slot]);
    ++cur_element_count;
  }
  enterpoint_node_ = levels.empty() ? kNoSlot : entry;
  maxlevel_ = levels.empty() ? -1 : levels[entry];
  num_insertions_ = num_insertions;
}

// Only removed slots are read and only `slot`, which is not removed, is written: all slots can be repaired at once.
void HnswGraph::Repair(Slot slot, int level) {
  const std::vector<Slot> links = Links(slot, level);
  if (std::none_of(links.begin(), links.end(), [this](Slot link) { return isMarkedDeleted(link); })) return;
  const std::size_t limit = 4 * MaxLinks(level);
  std::vector<Slot> reached = links;
  std::vector<Slot> kept;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const Slot at = reached[i];
    if (at == slot) continue;
    if (!isMarkedDeleted(at)) {
      kept.push_back(at);
    } else if (kept.size() < limit && reached.size() < 4 * limit) {
      for (const Slot further : Links(at, level)) {
        if (std::find(reached.begin(), reached.end(), further) == reached.end()) reached.push_back(further);
      }
    }
  }
  Nearest candidates;
  for (const Slot other : kept) candidates.emplace(fstdistfunc_(Row(slot), Row(other), dist_func_param_), other);
  getNeighborsByHeuristic2(candidates, MaxLinks(level));
  std::vector<Slot> chosen;
  for (; !candidates.empty(); candidates.pop()) chosen.push_back(candidates.top().second);
  SetLinks(slot, level, chosen.data(), chosen.size());
}

std::vector<Slot> HnswGraph::Compact(std::size_t num_threads) {
  constexpr std::size_t kShare = 256;
  const std::size_t slots = cur_element_count;
  ThreadPool(num_threads).Run((slots + kShare - 1) / kShare, [&](std::size_t share) {
    for (std::size_t slot = share * kShare; slot < std::min(slots, (share + 1) * kShare); ++slot) {
      if (isMarkedDeleted(static_cast<Slot>(slot))) continue;
      for (int level = 0; level <= element_levels_[slot]; ++level) Repair(static_cast<Slot>(slot), level);
    }
  });
  std::vector<Slot> before, now(slots, kNoSlot);
  for (Slot slot = 0; slot < slots; ++slot) {
    if (isMarkedDeleted(slot)) {
      if (element_levels_[slot] > 0) std::free(linkLists_[slot]);
      continue;
    }
    const Slot to = static_cast<Slot>(before.size());
    now[slot] = to;
    before.push_back(slot);
    if (to == slot) continue;
    std::memcpy(Row(to), Row(slot), size_data_per_element_);
    setExternalLabel(to, to);
    linkLists_[to] = linkLists_[slot];
    element_levels_[to] = element_levels_[slot];
  }
  // What was removed is gone from memory, too.
  std::memset(data_level0_memory_ + before.size() * size_data_per_element_, 0,
              (slots - before.size()) * size_data_per_element_);
  std::fill(element_levels_.begin() + static_cast<std::ptrdiff_t>(before.size()), element_levels_.end(), 0);
  cur_element_count = before.size();
  num_deleted_ = 0;
  for (Slot slot = 0; slot < before.size(); ++slot) {
    for (int level = 0; level <= element_levels_[slot]; ++level) {
      hnswlib::linklistsizeint* list = get_linklist_at_level(slot, level);
      const std::size_t count = getListCount(list);
      for (std::size_t i = 1; i <= count; ++i) list[i] = now[list[i]];
    }
  }
  const auto highest =
      std::max_element(element_levels_.begin(), element_levels_.begin() + static_cast<std::ptrdiff_t>(before.size()));
  const bool keep = enterpoint_node_ != kNoSlot && now[enterpoint_node_] != kNoSlot;
  if (before.empty()) {
    enterpoint_node_ = kNoSlot;
    maxlevel_ = -1;
  } else if (keep) {
    enterpoint_node_ = now[enterpoint_node_];
  } else {
    enterpoint_node_ = static_cast<Slot>(highest - element_levels_.begin());
    maxlevel_ = *highest;
  }
  return before;
}

}  // namespace embodied_mem

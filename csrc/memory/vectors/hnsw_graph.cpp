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

class AllowedFilter : public hnswlib::BaseFilterFunctor {
 public:
  explicit AllowedFilter(const std::uint8_t* allowed) : allowed_(allowed) {}
  bool operator()(hnswlib::labeltype slot) override { return allowed_[slot] != 0; }

 private:
  const std::uint8_t* allowed_;
};

constexpr Slot kNoSlot = ~Slot{0};

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

// Goes to the nearest of the neighbours on each level above `above` until none is nearer.
Slot HnswGraph::Descend(const float* row, Slot from, int above, int max_level, bool locked) const {
  float distance = fstdistfunc_(row, Row(from), dist_func_param_);
  for (int level = max_level; level > above; --level) {
    for (bool moved = true; moved;) {
      moved = false;
      std::unique_lock<std::mutex> lock;
      if (locked) lock = std::unique_lock<std::mutex>(const_cast<std::mutex&>(link_list_locks_[from]));
      hnswlib::linklistsizeint* list = get_linklist(from, level);
      const std::size_t count = getListCount(list);
      const Slot* links = list + 1;
      for (std::size_t i = 0; i < count; ++i) {
        const float other = fstdistfunc_(row, Row(links[i]), dist_func_param_);
        if (other < distance) {
          distance = other;
          from = links[i];
          moved = true;
        }
      }
    }
  }
  return from;
}

void HnswGraph::Link(Slot slot) {
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
  Slot current = Descend(row, entry, level, max_level, true);
  const int linked = std::min(level, max_level);
  std::vector<Nearest> candidates(static_cast<std::size_t>(linked) + 1);
  for (int at = linked; at >= 0; --at) {
    Nearest& found = candidates[static_cast<std::size_t>(at)];
    found = searchBaseLayer(current, row, at);
    // Where only removed slots are near, one of them leads on.
    if (found.empty()) found.emplace(fstdistfunc_(row, Row(current), dist_func_param_), current);
    Nearest rest = found;
    for (; !rest.empty(); rest.pop()) current = rest.top().second;
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

// Candidates sorted by distance, at most ef; the first that has not been expanded is next.
struct HnswGraph::Scratch {
  struct Candidate {
    float distance;
    Slot slot;
    bool expanded;
  };
  std::vector<Candidate> pool;
  std::vector<Slot> fresh;
  std::vector<const float*> rows;
  std::vector<float> distances;
};

void HnswGraph::SearchPool(const float* query, std::size_t ef, Slot start,
                           std::vector<std::pair<float, Slot>>* found) const {
  thread_local Scratch scratch;
  const SimdKernels& kernels = Kernels();
  const std::size_t row_bytes = padded_dim_ * sizeof(float);
  const std::size_t ahead_bytes = std::min<std::size_t>(row_bytes, 256);
  auto& pool = scratch.pool;
  pool.resize(ef + 1);
  scratch.fresh.resize(maxM0_ + 4);
  scratch.rows.resize(maxM0_ + 4);
  scratch.distances.resize(maxM0_ + 4);
  hnswlib::VisitedList* visited = visited_list_pool_->getFreeVisitedList();
  hnswlib::vl_type* marks = visited->mass;
  const hnswlib::vl_type mark = visited->curV;
  marks[start] = mark;
  pool[0] = {fstdistfunc_(query, Row(start), dist_func_param_), start, false};
  std::size_t size = 1;
  for (std::size_t next = 0; next < size;) {
    if (pool[next].expanded) {
      ++next;
      continue;
    }
    pool[next].expanded = true;
    const hnswlib::linklistsizeint* list = get_linklist0(pool[next].slot);
    const std::size_t count = getListCount(const_cast<hnswlib::linklistsizeint*>(list));
    const Slot* links = list + 1;
    std::size_t fresh = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (marks[links[i]] == mark) continue;
      marks[links[i]] = mark;
      const float* row = Row(links[i]);
      for (std::size_t byte = 0; byte < ahead_bytes; byte += kAlignment)
        __builtin_prefetch(reinterpret_cast<const char*>(row) + byte);
      scratch.fresh[fresh] = links[i];
      scratch.rows[fresh++] = row;
    }
    if (fresh == 0) continue;
    const std::size_t rounded = (fresh + 3) / 4 * 4;
    for (std::size_t i = fresh; i < rounded; ++i) scratch.rows[i] = scratch.rows[fresh - 1];
    for (std::size_t i = 0; i < rounded; i += 4)
      kernels.distance4(query, scratch.rows.data() + i, padded_dim_, scratch.distances.data() + i);
    for (std::size_t i = 0; i < fresh; ++i) {
      const float distance = scratch.distances[i];
      if (size == ef && distance >= pool[size - 1].distance) continue;
      const auto place = std::upper_bound(pool.begin(), pool.begin() + static_cast<std::ptrdiff_t>(size), distance,
                                          [](float value, const Scratch::Candidate& c) { return value < c.distance; });
      const auto at = static_cast<std::size_t>(place - pool.begin());
      std::memmove(&pool[at + 1], &pool[at], (size - at) * sizeof(Scratch::Candidate));
      pool[at] = {distance, scratch.fresh[i], false};
      size = std::min(size + 1, ef);
      next = std::min(next, at);
    }
  }
  visited_list_pool_->releaseVisitedList(visited);
  for (std::size_t i = 0; i < size; ++i) found->emplace_back(pool[i].distance, pool[i].slot);
}

void HnswGraph::Search(const float* query, std::size_t ef, const std::uint8_t* allowed,
                       std::vector<std::pair<float, Slot>>* found) const {
  found->clear();
  if (cur_element_count == 0) return;
  const Slot start = Descend(query, enterpoint_node_, 0, maxlevel_, false);
  if (allowed == nullptr && num_deleted_ == 0) return SearchPool(query, ef, start, found);
  // hnswlib's search goes through slots that may not be in the answer, and on until there are ef that may.
  AllowedFilter filter(allowed);
  auto best = searchBaseLayerST<false>(start, query, ef, allowed == nullptr ? nullptr : &filter);
  for (; !best.empty(); best.pop()) found->push_back(best.top());
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

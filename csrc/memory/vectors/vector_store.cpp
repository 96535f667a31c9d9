#include "memory/vectors/vector_store.h"

#include <algorithm>

namespace embodied_mem {

void TopK::Offer(const Neighbour& neighbour) {
  if (heap_.size() == k_) {
    if (!Before(neighbour, heap_.front())) return;
    std::pop_heap(heap_.begin(), heap_.end(), Before);
    heap_.back() = neighbour;
  } else {
    heap_.push_back(neighbour);
  }
  std::push_heap(heap_.begin(), heap_.end(), Before);
  if (heap_.size() == k_) threshold_ = heap_.front().score;
}

std::vector<Neighbour> TopK::Take() {
  std::sort(heap_.begin(), heap_.end(), Before);
  return std::move(heap_);
}

AlignedFloats MakeAlignedFloats(std::size_t count) {
  auto* at = static_cast<float*>(
      ::operator new[](std::max<std::size_t>(count, 1) * sizeof(float), std::align_val_t{kAlignment}));
  std::fill_n(at, count, 0.0F);
  return AlignedFloats(at);
}

std::vector<VectorId> VectorStore::Ids() const {
  std::vector<VectorId> ids;
  ids.reserve(slots_.size());
  for (const VectorId id : ids_) {
    if (id != kNoVector) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<std::uint8_t> VectorStore::AllowedSlots(const std::vector<VectorId>& allowed, std::size_t* count) const {
  std::vector<std::uint8_t> marks(ids_.size(), 0);
  *count = 0;
  for (const VectorId id : allowed) {
    const auto found = slots_.find(id);
    if (found == slots_.end() || marks[found->second] != 0) continue;
    marks[found->second] = 1;
    ++*count;
  }
  return marks;
}

std::size_t WorthThreads(double multiplications, std::size_t limit) {
  constexpr double kShare = 1e6;  // about 50 us of work, against 20 us for a thread to start
  return std::clamp<std::size_t>(static_cast<std::size_t>(multiplications / kShare), 1, limit);
}

}  // namespace embodied_mem

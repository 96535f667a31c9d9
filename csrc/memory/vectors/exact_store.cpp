#include "memory/vectors/exact_store.h"

#include <algorithm>

#include "core/thread_pool.h"

namespace embodied_mem {

void ExactStore::Add(const Rows& rows, std::size_t /*num_threads*/) {
  for (std::size_t i = 0; i < rows.count; ++i) {
    const auto found = slots_.find(rows.ids[i]);
    const Slot slot = found == slots_.end() ? static_cast<Slot>(ids_.size()) : found->second;
    if (found == slots_.end()) {  // in an order that leaves all whole if the memory runs out on the way
      if (slot / kBlockRows == blocks_.size()) blocks_.push_back(MakeAlignedFloats(dim_ * kBlockRows));
      ids_.push_back(rows.ids[i]);
      try {
        slots_.emplace(rows.ids[i], slot);
      } catch (...) {
        ids_.pop_back();
        throw;
      }
    }
    float* place = Place(slot);
    for (std::size_t d = 0; d < dim_; ++d) place[d * kBlockRows] = rows.values[i * dim_ + d] * rows.scales[i];
  }
}

void ExactStore::Remove(const std::vector<VectorId>& ids, std::size_t /*num_threads*/) {
  for (const VectorId id : ids) {
    const auto found = slots_.find(id);
    const Slot slot = found->second;
    slots_.erase(found);
    const Slot last = static_cast<Slot>(ids_.size() - 1);
    float* from = Place(last);
    if (slot != last) {
      float* to = Place(slot);
      for (std::size_t d = 0; d < dim_; ++d) to[d * kBlockRows] = from[d * kBlockRows];
      ids_[slot] = ids_[last];
      slots_[ids_[slot]] = slot;
    }
    for (std::size_t d = 0; d < dim_; ++d) from[d * kBlockRows] = 0;
    ids_.pop_back();
    if (last % kBlockRows == 0) blocks_.pop_back();
  }
}

void ExactStore::CopySlot(Slot slot, float* out) const {
  const float* place = Place(slot);
  for (std::size_t d = 0; d < dim_; ++d) out[d] = place[d * kBlockRows];
}

void ExactStore::SearchBlocks(const Queries& queries, std::size_t begin, std::size_t end, const std::uint8_t* allowed,
                              std::vector<TopK>* best) const {
  constexpr std::size_t kTile = 12;
  const SimdKernels& kernels = Kernels();
  alignas(kAlignment) float scores[kTile * kBlockRows];
  for (std::size_t b = begin; b < end; ++b) {
    const std::size_t first = b * kBlockRows;
    const std::size_t rows = std::min(kBlockRows, ids_.size() - first);
    std::uint64_t mask = rows == kBlockRows ? ~std::uint64_t{0} : (std::uint64_t{1} << rows) - 1;
    if (allowed != nullptr) {
      for (std::size_t i = 0; i < rows; ++i) {
        if (allowed[first + i] == 0) mask &= ~(std::uint64_t{1} << i);
      }
      if (mask == 0) continue;
    }
    for (std::size_t q = 0; q < queries.count; q += kTile) {
      const std::size_t count = std::min(kTile, queries.count - q);
      kernels.score_block(blocks_[b].get(), queries.values + q * queries.stride, queries.stride, count, dim_, scores);
      for (std::size_t i = 0; i < count; ++i) {
        TopK& top = (*best)[q + i];
        const float* row = scores + i * kBlockRows;
        for (std::uint64_t bits = kernels.at_least(row, top.threshold()) & mask; bits != 0; bits &= bits - 1) {
          const auto lane = static_cast<std::size_t>(__builtin_ctzll(bits));
          top.Offer({row[lane], ids_[first + lane]});
        }
      }
    }
  }
}

void ExactStore::Search(const Queries& queries, const SearchOptions& options, Neighbour* out) const {
  std::size_t num_allowed = 0;
  std::vector<std::uint8_t> allowed;
  if (options.allowed != nullptr) allowed = AllowedSlots(*options.allowed, &num_allowed);
  const double work = static_cast<double>(queries.count) * static_cast<double>(ids_.size()) * static_cast<double>(dim_);
  const std::size_t parts = std::min(WorthThreads(work, options.num_threads), std::max<std::size_t>(blocks_.size(), 1));
  std::vector<std::vector<TopK>> best(parts, std::vector<TopK>(queries.count, TopK(options.k)));
  const auto search = [&](std::size_t part) {
    SearchBlocks(queries, blocks_.size() * part / parts, blocks_.size() * (part + 1) / parts,
                 options.allowed == nullptr ? nullptr : allowed.data(), &best[part]);
  };
  if (parts == 1) {
    search(0);
  } else {
    ThreadPool(parts).Run(parts, search);
  }
  for (std::size_t q = 0; q < queries.count; ++q) {
    for (std::size_t part = 1; part < parts; ++part) {
      for (const Neighbour& neighbour : best[part][q].Take()) best[0][q].Offer(neighbour);
    }
    const std::vector<Neighbour> found = best[0][q].Take();
    std::fill(std::copy(found.begin(), found.end(), out + q * options.k), out + (q + 1) * options.k, Neighbour{});
  }
}

}  // namespace embodied_mem

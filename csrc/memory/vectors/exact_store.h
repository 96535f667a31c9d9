// The exact index: scores every vector. Blocks of 64 vectors by coordinate (simd.h), so that several queries share each
// block while it is in the cache.
#pragma once

#include <vector>

#include "memory/vectors/vector_store.h"

namespace embodied_mem {

class ExactStore : public VectorStore {
 public:
  using VectorStore::VectorStore;

  void Add(const Rows& rows, std::size_t num_threads) override;
  // The last vector moves to the place of a removed one, whose floats are overwritten.
  void Remove(const std::vector<VectorId>& ids, std::size_t num_threads) override;
  void Search(const Queries& queries, const SearchOptions& options, Neighbour* out) const override;
  void CopySlot(Slot slot, float* out) const override;

 private:
  float* Place(Slot slot) const { return blocks_[slot / kBlockRows].get() + slot % kBlockRows; }
  // Offers what blocks [begin, end) hold to best[query].
  void SearchBlocks(const Queries& queries, std::size_t begin, std::size_t end, const std::uint8_t* allowed,
                    std::vector<TopK>* best) const;

  std::vector<AlignedFloats> blocks_;
};

}  // namespace embodied_mem

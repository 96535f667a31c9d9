// The approximate index: an HNSW graph over the vectors. hnswlib's headers are included by its .cpp alone.
#pragma once

#include <memory>
#include <vector>

#include "memory/vectors/vector_store.h"

namespace embodied_mem {

class HnswGraph;

// The graph as numbers, for files.
struct HnswParts {
  std::vector<std::uint8_t> levels;  // by slot
  std::vector<std::uint32_t> links;  // by slot, by level: how many, then which
  Slot entry = 0;
  std::uint64_t num_insertions = 0;  // levels of slots to come are drawn from it
};

class HnswStore : public VectorStore {
 public:
  HnswStore(std::size_t dim, std::size_t connectivity, std::size_t ef_construction);
  // From a file. Throws InvalidInputError where the parts do not fit together.
  HnswStore(std::size_t dim, std::size_t connectivity, std::size_t ef_construction, std::vector<VectorId> ids,
            const HnswParts& parts, const float* rows);
  ~HnswStore() override;

  // One thread: the graph depends on the order of the vectors only. More: also on which was faster.
  void Add(const Rows& rows, std::size_t num_threads) override;
  // Marks; compacts when more than a tenth is marked.
  void Remove(const std::vector<VectorId>& ids, std::size_t num_threads) override;
  void Search(const Queries& queries, const SearchOptions& options, Neighbour* out) const override;
  void CopySlot(Slot slot, float* out) const override;
  std::size_t num_removed() const override;
  void Compact(std::size_t num_threads) override;

  HnswParts Parts() const;

 private:
  void Mark(VectorId id);
  void CompactIfMany(std::size_t num_threads);

  std::unique_ptr<HnswGraph> graph_;
};

}  // namespace embodied_mem

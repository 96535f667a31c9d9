// Vectors in numbered slots, found by id, searched by dot product.
//
// No checks and no locks: VectorIndex, which owns a store, has both. Rows that come in are float[count][dim], multiplied by
// a scale each while they are copied; queries are padded (simd.h) and scaled already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "simd/simd.h"

namespace embodied_mem {

using VectorId = std::int64_t;
inline constexpr VectorId kNoVector = -1;

struct Neighbour {
  float score = 0;
  VectorId id = kNoVector;
};
// The order of all results: high scores first, equal ones by id.
inline bool Before(const Neighbour& a, const Neighbour& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

// The best k of what it is offered.
class TopK {
 public:
  explicit TopK(std::size_t k) : k_(k) {}
  // No score below this can enter.
  float threshold() const { return threshold_; }
  void Offer(const Neighbour& neighbour);
  // The best first; leaves it empty.
  std::vector<Neighbour> Take();

 private:
  std::size_t k_;
  float threshold_ = -__builtin_inff();
  std::vector<Neighbour> heap_;  // the worst on top
};

struct AlignedFree {
  void operator()(float* at) const { ::operator delete[](at, std::align_val_t{kAlignment}); }
};
using AlignedFloats = std::unique_ptr<float[], AlignedFree>;
// Zeros.
AlignedFloats MakeAlignedFloats(std::size_t count);
inline std::size_t Padded(std::size_t dim) { return (dim + kLanes - 1) / kLanes * kLanes; }

struct Rows {
  const VectorId* ids;  // different ones
  const float* values;
  const float* scales;
  std::size_t count;
};

struct Queries {
  const float* values;  // `stride` floats each
  std::size_t stride;
  std::size_t count;
};

struct SearchOptions {
  std::size_t k = 10;
  std::size_t ef_search = 0;
  std::size_t num_threads = 1;
  const std::vector<VectorId>* allowed = nullptr;  // null: all; ids that are not there are ignored
};

using Slot = std::uint32_t;

class VectorStore {
 public:
  explicit VectorStore(std::size_t dim) : dim_(dim) {}
  virtual ~VectorStore() = default;
  VectorStore(const VectorStore&) = delete;
  VectorStore& operator=(const VectorStore&) = delete;

  std::size_t dim() const { return dim_; }
  std::size_t size() const { return slots_.size(); }
  bool Contains(VectorId id) const { return slots_.count(id) != 0; }
  // Ascending.
  std::vector<VectorId> Ids() const;
  void Copy(VectorId id, float* out) const { CopySlot(slots_.at(id), out); }

  // Ids that exist are replaced.
  virtual void Add(const Rows& rows, std::size_t num_threads) = 0;
  // Ids that exist, each once.
  virtual void Remove(const std::vector<VectorId>& ids, std::size_t num_threads) = 0;
  // To out[count][k], the best first, filled up with kNoVector.
  virtual void Search(const Queries& queries, const SearchOptions& options, Neighbour* out) const = 0;
  // Whether removed vectors are still in memory, and erasing them.
  virtual std::size_t num_removed() const { return 0; }
  virtual void Compact(std::size_t /*num_threads*/) {}

  // Ids by slot. Every slot has one when num_removed() is 0.
  const std::vector<VectorId>& slot_ids() const { return ids_; }
  virtual void CopySlot(Slot slot, float* out) const = 0;

 protected:
  // The slots that a search may answer with, one byte each.
  std::vector<std::uint8_t> AllowedSlots(const std::vector<VectorId>& allowed, std::size_t* count) const;

  std::size_t dim_;
  std::vector<VectorId> ids_;  // by slot; kNoVector: removed
  std::unordered_map<VectorId, Slot> slots_;
};

// Threads that are worth starting for this many multiplications, at most `limit`.
std::size_t WorthThreads(double multiplications, std::size_t limit);

}  // namespace embodied_mem

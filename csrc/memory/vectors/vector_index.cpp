#include "memory/vectors/vector_index.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "memory/vectors/exact_store.h"
#include "memory/vectors/hnsw_store.h"
#include "memory/vectors/vector_file.h"

namespace embodied_mem {
namespace {

// Within these, no product of two rows can overflow, and no scale can.
constexpr double kMinNorm = 1e-30, kMaxNorm = 1e18;

void CheckRange(const char* name, std::size_t value, std::size_t low, std::size_t high) {
  if (value < low || value > high)
    throw InvalidInputError(std::string(name) + ": expected " + std::to_string(low) + " to " + std::to_string(high) +
                            ", got " + std::to_string(value));
}

void CheckDifferent(const VectorId* ids, std::size_t count) {
  std::unordered_set<VectorId> seen;
  seen.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (ids[i] < 0)
      throw InvalidInputError("ids[" + std::to_string(i) + "]: expected 0 or more, got " + std::to_string(ids[i]));
    if (!seen.insert(ids[i]).second)
      throw InvalidInputError("ids[" + std::to_string(i) + "]: " + std::to_string(ids[i]) + " is in the batch twice");
  }
}

}  // namespace

// Whoever waits to write holds the gate, so that readers who come later wait too.
struct VectorIndex::ReadLock {
  explicit ReadLock(const VectorIndex& index) {
    index.CheckWhole();
    const std::lock_guard<std::mutex> gate(index.gate_);
    lock = std::shared_lock<std::shared_mutex>(index.mutex_);
  }
  std::shared_lock<std::shared_mutex> lock;
};

struct VectorIndex::WriteLock {
  explicit WriteLock(VectorIndex& index) {
    index.CheckWhole();
    const std::lock_guard<std::mutex> gate(index.gate_);
    lock = std::unique_lock<std::shared_mutex>(index.mutex_);
  }
  std::unique_lock<std::shared_mutex> lock;
};

VectorIndex::VectorIndex(const VectorIndexOptions& options)
    : options_(options), kind_(options.kind.value_or(IndexKind::kExact)), hook_([this] { InChild(); }) {
  CheckRange("dim", options.dim, 1, 65536);
  CheckRange("connectivity", options.connectivity, 2, 256);
  CheckRange("ef_construction", options.ef_construction, 1, 65536);
  store_ = MakeStore(kind_);
}

void VectorIndex::InChild() {
  RenewMutex(&gate_);
  torn_ = !mutex_.try_lock_shared();
  if (torn_) {
    (void)store_.release();  // nothing in it can be relied on
  } else {
    mutex_.unlock_shared();
  }
  RenewMutex(&mutex_);
}

void VectorIndex::CheckWhole() const {
  if (torn_)
    throw InvalidInputError(
        "vector index: another thread was changing it when this process was forked; load or build it "
        "again here, or fork while no thread writes");
}

std::unique_ptr<VectorStore> VectorIndex::MakeStore(IndexKind kind) const {
  if (kind == IndexKind::kExact) return std::make_unique<ExactStore>(options_.dim);
  return std::make_unique<HnswStore>(options_.dim, options_.connectivity, options_.ef_construction);
}

IndexKind VectorIndex::kind() const {
  const ReadLock lock(*this);
  return kind_;
}

std::size_t VectorIndex::size() const {
  const ReadLock lock(*this);
  return store_->size();
}

std::vector<VectorId> VectorIndex::Ids() const {
  const ReadLock lock(*this);
  return store_->Ids();
}

bool VectorIndex::Contains(VectorId id) const {
  const ReadLock lock(*this);
  return store_->Contains(id);
}

std::size_t VectorIndex::num_removed() const {
  const ReadLock lock(*this);
  return store_->num_removed();
}

void VectorIndex::Copy(VectorId id, float* out) const {
  const ReadLock lock(*this);
  if (!store_->Contains(id))
    throw InvalidInputError("id " + std::to_string(id) + ": no such vector among the " +
                            std::to_string(store_->size()) + " of the index");
  store_->Copy(id, out);
}

// What the row is multiplied by. Throws where it has no direction or a product could be infinite.
float VectorIndex::Scale(const float* row, std::size_t i, const char* what) const {
  double parts[4] = {};
  std::size_t d = 0;
  for (; d + 4 <= options_.dim; d += 4) {
    for (std::size_t p = 0; p < 4; ++p) parts[p] += static_cast<double>(row[d + p]) * static_cast<double>(row[d + p]);
  }
  for (; d < options_.dim; ++d) parts[0] += static_cast<double>(row[d]) * static_cast<double>(row[d]);
  const double norm = std::sqrt((parts[0] + parts[1]) + (parts[2] + parts[3]));
  const std::string where = std::string(what) + "[" + std::to_string(i) + "]: ";
  if (!std::isfinite(norm)) {
    const auto bad = std::find_if_not(row, row + options_.dim, [](float x) { return std::isfinite(x); });
    throw InvalidInputError(where + "expected finite numbers, got " + std::to_string(*bad) + " at position " +
                            std::to_string(bad - row));
  }
  if (norm > kMaxNorm)
    throw InvalidInputError(where + "expected a length of at most 1e18, got " + std::to_string(norm));
  if (options_.metric == Metric::kInnerProduct) return 1;
  if (norm < kMinNorm)
    throw InvalidInputError(where +
                            "its length is 0 (below 1e-30), so it has no cosine with anything; leave it out, or use "
                            "metric=\"inner_product\"");
  return static_cast<float>(1 / norm);
}

void VectorIndex::Add(const VectorId* ids, const float* rows, std::size_t count, std::size_t num_threads) {
  CheckDifferent(ids, count);
  std::vector<float> scales(count);
  for (std::size_t i = 0; i < count; ++i) scales[i] = Scale(rows + i * options_.dim, i, "vectors");
  const WriteLock lock(*this);
  if (count > kMaxSize - std::min(kMaxSize, store_->size() + store_->num_removed()))
    throw InvalidInputError("vectors: expected at most " + std::to_string(kMaxSize) + " in an index");
  if (!options_.kind && kind_ == IndexKind::kExact && store_->size() + count > kAutoLimit) ToHnsw(num_threads);
  store_->Add({ids, rows, scales.data(), count}, num_threads);
}

void VectorIndex::ToHnsw(std::size_t num_threads) {
  std::unique_ptr<VectorStore> next = MakeStore(IndexKind::kHnsw);
  const std::vector<VectorId>& ids = store_->slot_ids();
  std::vector<float> rows(ids.size() * options_.dim);
  for (Slot slot = 0; slot < ids.size(); ++slot) store_->CopySlot(slot, rows.data() + slot * options_.dim);
  const std::vector<float> scales(ids.size(), 1.0F);
  next->Add({ids.data(), rows.data(), scales.data(), ids.size()}, num_threads);
  store_ = std::move(next);
  kind_ = IndexKind::kHnsw;
}

void VectorIndex::Remove(const VectorId* ids, std::size_t count, std::size_t num_threads) {
  CheckDifferent(ids, count);
  const WriteLock lock(*this);
  for (std::size_t i = 0; i < count; ++i) {
    if (!store_->Contains(ids[i]))
      throw InvalidInputError("ids[" + std::to_string(i) + "]: no vector " + std::to_string(ids[i]) +
                              " in the index; nothing was removed");
  }
  store_->Remove({ids, ids + count}, num_threads);
}

// Vectors without groups need so many for a recall of 0.99 (384 numbers, 5,000 to 50,000 vectors); groups need fewer.
std::size_t VectorIndex::DefaultEfSearch(std::size_t k, std::size_t size) {
  return std::max({std::size_t{64}, 2 * k, static_cast<std::size_t>(1.25 * std::sqrt(static_cast<double>(size)))});
}

void VectorIndex::Search(const float* queries, std::size_t count, const SearchOptions& asked, Neighbour* out) const {
  CheckRange("k", asked.k, 1, kMaxAnswers / std::max<std::size_t>(1, count));
  SearchOptions options = asked;
  const std::size_t stride = Padded(options_.dim);
  const AlignedFloats padded = MakeAlignedFloats(count * stride);
  for (std::size_t i = 0; i < count; ++i) {
    const float* row = queries + i * options_.dim;
    const float scale = Scale(row, i, "queries");
    for (std::size_t d = 0; d < options_.dim; ++d) padded[i * stride + d] = row[d] * scale;
  }
  const ReadLock lock(*this);
  if (options.ef_search == 0) options.ef_search = DefaultEfSearch(options.k, store_->size());
  store_->Search({padded.get(), stride, count}, options, out);
}

void VectorIndex::Save(const std::string& path, std::size_t num_threads) {
  while (true) {
    {
      const ReadLock lock(*this);
      if (store_->num_removed() == 0) {
        WriteVectorFile(path, {options_, kind_}, *store_);
        return;
      }
    }
    const WriteLock lock(*this);
    store_->Compact(num_threads);
  }
}

std::unique_ptr<VectorIndex> VectorIndex::Load(const std::string& path) {
  VectorFileHead head;
  std::unique_ptr<VectorStore> store = ReadVectorFile(path, &head);
  auto index = std::make_unique<VectorIndex>(head.options);
  index->kind_ = head.kind;
  index->store_ = std::move(store);
  return index;
}

}  // namespace embodied_mem

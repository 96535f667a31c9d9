// Vectors by id, searched by cosine similarity or inner product: exactly or through an HNSW graph; or by size, exactly
// until there are kAutoLimit and through a graph from then on.
//
// Any number of threads search at a time, beside each other; one adds or removes, alone. A writer that waits lets no new
// readers in before it. Calls check all of their input before they change anything. A forked child has an index of its own;
// one that another thread was changing at that moment throws InvalidInputError there, whatever is called.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "core/fork_hook.h"
#include "memory/vectors/vector_store.h"

namespace embodied_mem {

enum class Metric : std::uint32_t { kCosine = 0, kInnerProduct = 1 };
enum class IndexKind : std::uint32_t { kExact = 1, kHnsw = 2 };

struct VectorIndexOptions {
  std::size_t dim = 0;                // 1 to 65536
  Metric metric = Metric::kCosine;    // vectors and queries are scaled to length 1
  std::optional<IndexKind> kind;      // none: by size
  std::size_t connectivity = 16;      // 2 to 256
  std::size_t ef_construction = 200;  // 1 to 65536
};

class VectorIndex {
 public:
  // With 384 numbers an exact query takes about 2 ms of one core at this size, in a batch 0.2 ms: until then certainty
  // that nothing is missed is worth it.
  static constexpr std::size_t kAutoLimit = 20000;
  static constexpr std::size_t kMaxSize = 0x7FFFFFFF;
  static constexpr std::size_t kMaxAnswers = std::size_t{1} << 27U;  // of one search: k for each query

  explicit VectorIndex(const VectorIndexOptions& options);

  const VectorIndexOptions& options() const { return options_; }
  IndexKind kind() const;
  std::size_t size() const;
  std::vector<VectorId> Ids() const;
  bool Contains(VectorId id) const;
  // As it is kept, so of length 1 by cosine.
  void Copy(VectorId id, float* out) const;
  // Removed vectors that are still in memory, never in an answer or a file.
  std::size_t num_removed() const;

  // rows: float[count][dim]. Ids that exist are replaced.
  void Add(const VectorId* ids, const float* rows, std::size_t count, std::size_t num_threads);
  void Remove(const VectorId* ids, std::size_t count, std::size_t num_threads);
  // queries: float[count][dim]; to out[count][k], at most kMaxAnswers. ef_search 0: DefaultEfSearch(k, size()).
  void Search(const float* queries, std::size_t count, const SearchOptions& options, Neighbour* out) const;
  static std::size_t DefaultEfSearch(std::size_t k, std::size_t size);

  // Writes the file whole or not at all; removed vectors are not in it.
  void Save(const std::string& path, std::size_t num_threads);
  // Throws StorageError for a file that is not whole or not ours.
  static std::unique_ptr<VectorIndex> Load(const std::string& path);

 private:
  struct ReadLock;
  struct WriteLock;

  void InChild();
  void CheckWhole() const;
  float Scale(const float* row, std::size_t i, const char* what) const;
  std::unique_ptr<VectorStore> MakeStore(IndexKind kind) const;
  void ToHnsw(std::size_t num_threads);

  VectorIndexOptions options_;
  IndexKind kind_;
  std::unique_ptr<VectorStore> store_;
  mutable std::mutex gate_;
  mutable std::shared_mutex mutex_;
  bool torn_ = false;  // a writer was in it when this process was forked
  ForkHook hook_;
};

}  // namespace embodied_mem

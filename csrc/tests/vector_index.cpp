// The vector index against scores in double precision: kernels of every instruction set, search, removal, filters, files,
// threads beside each other.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/crc32c.h"
#include "core/error.h"
#include "memory/vectors/vector_index.h"
#include "tests/check.h"
#include "tests/folder.h"

namespace embodied_mem {
namespace {

std::vector<float> RandomRows(std::size_t count, std::size_t dim, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> rows(count * dim);
  for (float& value : rows) value = normal(rng);
  return rows;
}

std::vector<VectorId> Range(std::size_t count) {
  std::vector<VectorId> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = static_cast<VectorId>(i);
  return ids;
}

double Dot(const float* a, const float* b, std::size_t dim) {
  double sum = 0;
  for (std::size_t d = 0; d < dim; ++d) sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
  return sum;
}

TEST(Kernels) {
  CHECK_EQ(std::string(Kernels(NumKernels() - 1).name), "baseline");
  for (std::size_t k = 0; k < NumKernels(); ++k) {
    const SimdKernels& kernels = Kernels(k);
    for (const std::size_t dim : {1U, 15U, 16U, 33U, 48U, 80U}) {
      const std::size_t padded = Padded(dim);
      const std::vector<float> rows = RandomRows(kBlockRows + 13, dim, 1);
      const AlignedFloats aligned = MakeAlignedFloats((kBlockRows + 13) * padded),
                          block = MakeAlignedFloats(dim * kBlockRows);
      for (std::size_t i = 0; i < kBlockRows + 13; ++i) std::copy_n(&rows[i * dim], dim, aligned.get() + i * padded);
      for (std::size_t i = 0; i < kBlockRows; ++i) {
        for (std::size_t d = 0; d < dim; ++d) block[d * kBlockRows + i] = rows[i * dim + d];
      }
      const float* queries = aligned.get() + kBlockRows * padded;
      for (std::size_t count = 1; count <= 13; ++count) {
        std::vector<float> scores(count * kBlockRows);
        kernels.score_block(block.get(), queries, padded, count, dim, scores.data());
        for (std::size_t i = 0; i < scores.size(); ++i) {
          const double expected = Dot(queries + i / kBlockRows * padded, aligned.get() + i % kBlockRows * padded, dim);
          CHECK(std::fabs(scores[i] - expected) < 1e-4);
        }
        std::vector<float> alone(kBlockRows);
        kernels.score_block(block.get(), queries + (count - 1) * padded, padded, 1, dim, alone.data());
        CHECK(std::equal(alone.begin(), alone.end(), scores.end() - kBlockRows));  // bit for bit, whatever is beside it
        const std::uint64_t bits = kernels.at_least(alone.data(), alone[7]);
        for (std::size_t i = 0; i < kBlockRows; ++i) CHECK_EQ((bits >> i & 1U) != 0, alone[i] >= alone[7]);
      }
      const float* four[4] = {aligned.get(), aligned.get() + padded, aligned.get() + 2 * padded,
                              aligned.get() + 3 * padded};
      float distances[4];
      kernels.distance4(queries, four, padded, distances);
      for (std::size_t i = 0; i < 4; ++i) {
        const double expected = -Dot(queries, four[i], padded);
        CHECK(std::fabs(distances[i] - expected) < 1e-4);
        CHECK(std::fabs(kernels.distance(queries, four[i], &padded) - expected) < 1e-4);
      }
    }
  }
}

struct Truth {
  std::map<VectorId, std::vector<float>> rows;

  std::vector<VectorId> Best(const float* query, std::size_t k, const std::set<VectorId>* allowed) const {
    std::vector<std::pair<double, VectorId>> scored;
    for (const auto& [id, row] : rows) {
      if (allowed == nullptr || allowed->count(id) != 0) scored.emplace_back(-Dot(query, row.data(), row.size()), id);
    }
    std::sort(scored.begin(), scored.end());
    std::vector<VectorId> best;
    for (std::size_t i = 0; i < std::min(k, scored.size()); ++i) best.push_back(scored[i].second);
    best.resize(k, kNoVector);
    return best;
  }
};

VectorIndexOptions Options(std::size_t dim, std::optional<IndexKind> kind) {
  VectorIndexOptions options;
  options.dim = dim;
  options.kind = kind;
  options.metric = Metric::kInnerProduct;
  options.ef_construction = 64;
  return options;
}

std::vector<VectorId> Found(const VectorIndex& index, const float* query, std::size_t k,
                            const std::vector<VectorId>* allowed, std::size_t num_threads) {
  std::vector<Neighbour> found(k);
  SearchOptions options;
  options.k = k;
  options.ef_search = 128;
  options.num_threads = num_threads;
  options.allowed = allowed;
  index.Search(query, 1, options, found.data());
  std::vector<VectorId> ids;
  for (const Neighbour& neighbour : found) ids.push_back(neighbour.id);
  return ids;
}

// Random adds, replacements and removals; afterwards exact answers are the truth's and HNSW's nearly all.
void AgainstTruth(IndexKind kind, std::size_t num_threads) {
  constexpr std::size_t kDim = 20;
  VectorIndex index(Options(kDim, kind));
  Truth truth;
  std::mt19937 rng(7);
  std::size_t hits = 0, asked = 0;
  for (unsigned round = 0; round < 12; ++round) {
    const std::size_t count = 1 + rng() % 150;
    const std::vector<float> rows = RandomRows(count, kDim, 100 + round);
    std::set<VectorId> ids;
    while (ids.size() < count) ids.insert(static_cast<VectorId>(rng() % 700));
    const std::vector<VectorId> added(ids.begin(), ids.end());
    index.Add(added.data(), rows.data(), count, num_threads);
    for (std::size_t i = 0; i < count; ++i)
      truth.rows[added[i]] = {rows.begin() + static_cast<long>(i * kDim),
                              rows.begin() + static_cast<long>((i + 1) * kDim)};
    std::vector<VectorId> removed;
    for (const auto& [id, row] : truth.rows) {
      if (rng() % (round == 7 ? 2 : 9) == 0) removed.push_back(id);
    }
    for (const VectorId id : removed) truth.rows.erase(id);
    index.Remove(removed.data(), removed.size(), num_threads);
    CHECK_EQ(index.size(), truth.rows.size());
    std::set<VectorId> allowed;
    for (int i = 0; i < 300; ++i) allowed.insert(static_cast<VectorId>(rng() % 800));
    const std::vector<VectorId> list(allowed.begin(), allowed.end());
    const std::vector<float> queries = RandomRows(10, kDim, 900 + round);
    for (std::size_t q = 0; q < 20; ++q) {
      const float* query = &queries[q / 2 * kDim];
      const bool filtered = q % 2 == 1;
      const std::vector<VectorId> best = truth.Best(query, 10, filtered ? &allowed : nullptr);
      const std::vector<VectorId> found = Found(index, query, 10, filtered ? &list : nullptr, num_threads);
      asked += 10;
      for (const VectorId id : found) hits += static_cast<std::size_t>(std::count(best.begin(), best.end(), id));
      if (kind == IndexKind::kExact || (kind == IndexKind::kHnsw && filtered))
        CHECK(found == best);  // few allowed: scanned
    }
  }
  CHECK(static_cast<double>(hits) >= 0.99 * static_cast<double>(asked));
  index.Remove(index.Ids().data(), index.size(), num_threads);
  CHECK_EQ(Found(index, RandomRows(1, kDim, 1).data(), 3, nullptr, 1)[0], kNoVector);
  const std::vector<float> one = RandomRows(1, kDim, 2);
  const VectorId id = 5;
  index.Add(&id, one.data(), 1, num_threads);
  CHECK_EQ(Found(index, one.data(), 3, nullptr, 1)[0], 5);
}

TEST(BadInput) {
  CHECK_THROWS(VectorIndex(Options(0, {})), InvalidInputError, "dim: expected 1 to 65536, got 0");
  VectorIndex index(Options(2, {}));
  std::vector<float> rows = {1, 2, 3, 4};
  const std::vector<VectorId> ids = {3, 4}, twice = {3, 3}, negative = {-1, 2}, unknown = {3, 9};
  index.Add(ids.data(), rows.data(), 2, 1);
  CHECK_THROWS(index.Add(twice.data(), rows.data(), 2, 1), InvalidInputError, "ids[1]: 3 is in the batch twice");
  CHECK_THROWS(index.Add(negative.data(), rows.data(), 2, 1), InvalidInputError, "ids[0]: expected 0 or more, got -1");
  CHECK_THROWS(index.Remove(unknown.data(), 2, 1), InvalidInputError, "ids[1]: no vector 9");
  rows[3] = std::nanf("");
  CHECK_THROWS(index.Add(ids.data(), rows.data(), 2, 1), InvalidInputError,
               "vectors[1]: expected finite numbers, got nan at position 1");
  CHECK_EQ(index.size(), 2U);
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Whatever the bytes are, loading answers or throws StorageError; a checksum made to fit lets nothing through either.
void Files(IndexKind kind) {
  const testing::Folder folder;
  const std::string path = folder.path() + "/index";
  VectorIndex index(Options(5, kind));
  const std::vector<float> rows = RandomRows(40, 5, 3);
  index.Add(Range(40).data(), rows.data(), 40, 1);
  const VectorId gone = 11;
  index.Remove(&gone, 1, 1);
  index.Save(path, 1);
  const std::string good = Bytes(path);
  CHECK(good.find(std::string(reinterpret_cast<const char*>(&rows[11 * 5]), 20)) == std::string::npos);
  CHECK(good.find(std::string(reinterpret_cast<const char*>(&rows[12 * 5]), 20)) != std::string::npos);
  const auto same = VectorIndex::Load(path);
  CHECK(same->Ids() == index.Ids());
  same->Save(path, 1);
  CHECK(Bytes(path) == good);
  const auto load = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      const auto loaded = VectorIndex::Load(path);
      Found(*loaded, rows.data(), 3, nullptr, 1);
      return true;
    } catch (const StorageError&) {
      return false;
    }
  };
  CHECK(load(good));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << i % 8));
    CHECK(!load(bad));
    CHECK(!load(good.substr(0, i)));
  }
  CHECK(!load(good + "x"));
  std::size_t loaded = 0;
  std::mt19937 rng(4);
  for (int round = 0; round < 3000; ++round) {  // damage behind a valid checksum
    std::string bad = good;
    const bool header = round % 3 == 0;
    // Two sections follow the vectors: levels and links of a graph.
    const std::size_t ids = 39 * 8, vectors = 39 * 5 * 4, more = 68 + ids + 4 + vectors + 4;
    const std::size_t first = 39;
    const std::size_t begin = header ? 12 : kind == IndexKind::kExact ? 68 : round % 3 == 1 ? more : more + first + 4;
    const std::size_t size = header                      ? 52
                             : kind == IndexKind::kExact ? ids
                             : round % 3 == 1            ? first
                                                         : good.size() - 4 - begin;
    bad[begin + rng() % size] = static_cast<char>(rng() % 256);
    const std::size_t from = header ? 0 : begin, bytes = header ? 64 : size;
    const std::uint32_t crc = Crc32c(std::string_view(bad).substr(from, bytes));
    bad.replace(from + bytes, 4, reinterpret_cast<const char*>(&crc), 4);
    loaded += load(bad) ? 1 : 0;
  }
  CHECK(loaded > 0);
  CHECK(loaded < 3000);
  CHECK_THROWS(VectorIndex::Load(path + ".none"), StorageError, "No such file");
  CHECK_THROWS(index.Save("no/such/folder/index", 1), StorageError, "No such file");
}

// Searches beside one writer: each answer holds ids that were there at some time, in order; for ThreadSanitizer.
void Threads(IndexKind kind) {
  constexpr std::size_t kDim = 16;
  VectorIndex index(Options(kDim, kind));
  const std::vector<float> rows = RandomRows(600, kDim, 5);
  const std::vector<VectorId> ids = Range(600);
  index.Add(ids.data(), rows.data(), 300, 3);
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> searches{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&, reader] {
      std::vector<Neighbour> found(5 * 4);
      SearchOptions options;
      options.k = 5;
      options.num_threads = 2;
      while (!stop) {
        index.Search(&rows[static_cast<std::size_t>(reader) * 8 * kDim], 4, options, found.data());
        for (std::size_t q = 0; q < 4; ++q)
          CHECK(std::is_sorted(found.begin() + q * 5, found.begin() + (q + 1) * 5, Before));
        for (const Neighbour& neighbour : found) CHECK(neighbour.id >= 0 && neighbour.id < 600);
        ++searches;
      }
    });
  }
  for (std::size_t round = 0; round < 20 || searches < 20; ++round) {
    index.Add(ids.data() + 300, &rows[300 * kDim], 300, 3);
    index.Remove(ids.data() + 300, round % 2 == 0 ? 300 : 10, 3);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(ExactAgainstTruth) {
  for (const std::size_t num_threads : {1U, 3U}) AgainstTruth(IndexKind::kExact, num_threads);
}
TEST(ExactFiles) { Files(IndexKind::kExact); }
TEST(ExactThreads) { Threads(IndexKind::kExact); }
TEST(HnswAgainstTruth) {
  for (const std::size_t num_threads : {1U, 3U}) AgainstTruth(IndexKind::kHnsw, num_threads);
}
TEST(HnswFiles) { Files(IndexKind::kHnsw); }
TEST(HnswThreads) { Threads(IndexKind::kHnsw); }

}  // namespace
}  // namespace embodied_mem

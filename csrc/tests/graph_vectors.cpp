// Tests of updates that link by vectors: want of memory, which leaves graph and index together, and threads.
#include <atomic>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "memory/graph/graph_update.h"
#include "memory/graph/knowledge_graph.h"
#include "memory/vectors/vector_index.h"
#include "tests/allocations.h"
#include "tests/check.h"

namespace embodied_mem {
namespace {

using testing::allocations_left;

constexpr std::size_t kDim = 4;

VectorIndexOptions Options(IndexKind kind) {
  VectorIndexOptions options;
  options.dim = kDim;
  options.kind = kind;
  return options;
}

Triple Near(const std::string& subject, const std::string& object) {
  return {{subject, "", {}}, "near", {object, "", {}}, 0, {}};
}

// Fails each allocation of an update in turn: the index has the vectors of exactly the nodes that the graph shows.
void WantOfMemory(IndexKind kind) {
  const std::vector<float> rows = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
  const std::vector<Triple> more = {Near("sofa", "door"), Near("lamp", "table")};
  std::size_t num_failed = 0, num_closed = 0;
  for (long n = 0;; ++n) {
    KnowledgeGraph graph;
    VectorIndex index(Options(kind));
    KHopScratch scratch;
    UpdateResult result;
    UpdateOptions options;
    options.vectors = {&index, 0.9F, {"sofa", "lamp", "table"}, rows.data(), 1};
    UpdateOptions first;
    first.vectors = {&index, 0.9F, {"sofa"}, rows.data(), 1};
    graph.Update({Near("sofa", "window")}, first, &scratch, &result);
    CHECK_EQ(index.size(), std::size_t{1});
    bool failed = false;
    allocations_left = n;
    try {
      graph.Update(more, options, &scratch, &result);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    allocations_left = -1;
    const std::size_t num_nodes = Snapshot(graph).num_nodes();
    if (num_nodes == 5) {  // done, and the subgraph after it failed at most
      CHECK_EQ(index.size(), std::size_t{3});
    } else {
      CHECK_EQ(num_nodes, std::size_t{2});
      CHECK_EQ(index.size(), std::size_t{1});
      try {
        graph.Update(more, options, &scratch, &result);
        CHECK_EQ(index.size(), std::size_t{3});
      } catch (const InternalError&) {
        ++num_closed;
        CHECK_EQ(index.size(), std::size_t{1});
      }
    }
    if (!failed) break;
    ++num_failed;
  }
  CHECK(num_failed > 40);
  CHECK(num_closed > 10);
}

// Whoever searches the index and then takes a snapshot finds every node in it.
TEST(Readers) {
  KnowledgeGraph graph;
  VectorIndex index(Options(IndexKind::kExact));
  std::atomic<bool> done{false};
  std::atomic<std::size_t> num_missing{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      const float query[kDim] = {1, 1, 1, 1};
      SearchOptions options;
      options.k = 1000;
      std::vector<Neighbour> found(options.k);
      while (!done) {
        index.Search(query, 1, options, found.data());
        const Snapshot now(graph);
        for (const Neighbour& neighbour : found) {
          if (neighbour.id != kNoVector && static_cast<std::size_t>(neighbour.id) >= now.num_nodes()) ++num_missing;
        }
      }
    });
  }
  KHopScratch scratch;
  UpdateResult result;
  for (int i = 0; i < 300; ++i) {
    const std::string subject = "a" + std::to_string(i), object = "b" + std::to_string(i);
    const auto x = static_cast<float>(i);
    const std::vector<float> rows = {1, x, x * x, 0, 1, x, -x * x, 1};
    UpdateOptions options;
    options.vectors = {&index, 2.0F, {subject, object}, rows.data(), 1};
    graph.Update({Near(subject, object)}, options, &scratch, &result);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  CHECK_EQ(num_missing.load(), std::size_t{0});
  CHECK_EQ(index.size(), std::size_t{600});
}

TEST(WantOfMemoryExact) { WantOfMemory(IndexKind::kExact); }

}  // namespace
}  // namespace embodied_mem

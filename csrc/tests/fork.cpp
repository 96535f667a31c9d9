// Tests of what works in a forked child while other threads of its parent were in the middle of something: never a hang.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/thread_pool.h"
#include "memory/graph/knowledge_graph.h"
#include "memory/vectors/vector_index.h"
#include "models/short_loops.h"
#include "tests/check.h"

#if defined(__SANITIZE_THREAD__)
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }  // a child starts threads of its own
#endif

namespace embodied_mem {
namespace {

// The sanitizers of GCC 12 are not made for a fork beside other threads: that of addresses leaves its allocator's locks
// taken, so that the child may hang whatever the program; that of threads leaves the parent's threads in its tables, and
// ends every second child of a program of 20 lines that starts and joins threads. So a hang counts in neither of them.
// They look for wrong answers and wrong memory, the release build for hangs.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHangCounts = false;
#else
constexpr bool kHangCounts = true;
#endif

// Whether a forked child finds `holds` true; one that hangs is ended by its alarm, one that throws is false, too.
bool InChild(const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kHangCounts ? 30 : 3);
    try {
      ::_exit(holds() ? 0 : 1);
    } catch (const std::exception&) {
      ::_exit(2);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (!kHangCounts && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return true;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::size_t Sum(ThreadPool* pool) {
  std::atomic<std::size_t> sum{0};
  pool->Run(100, [&](std::size_t i) { sum += i; });
  return sum;
}

TEST(Pool) {
  auto pool = std::make_unique<ThreadPool>(4);
  CHECK_EQ(Sum(pool.get()), 4950U);
  CHECK(InChild([&] { return Sum(pool.get()) == 4950 && InChild([&] { return Sum(pool.get()) == 4950; }); }));
  CHECK(InChild([&] {
    pool.reset();
    return true;
  }));
  std::atomic<bool> inside{false}, go{false};
  std::thread other([&] {
    pool->Run(4, [&](std::size_t) {
      inside = true;
      while (!go) std::this_thread::yield();
    });
  });
  while (!inside) std::this_thread::yield();
  CHECK(InChild([&] { return Sum(pool.get()) == 4950; }));
  go = true;
  other.join();
  CHECK_EQ(Sum(pool.get()), 4950U);
}

TEST(Loops) {
  const auto add = [] {
    std::atomic<std::size_t> sum{0};
    SharedLoops().Run(100, [&](std::size_t i) { sum += i; });
    return sum == 4950;
  };
  CHECK(add());
  CHECK(InChild(add));
}

// Forks beside a writer: a child has a whole index that it can search and change, or is told that it has none.
void ForkedIndex(IndexKind kind) {
  constexpr std::size_t kDim = 16;
  VectorIndexOptions options;
  options.dim = kDim;
  options.kind = kind;
  VectorIndex index(options);
  std::vector<float> rows(400 * kDim);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i * 7919 % 1000) + 1;
  std::vector<VectorId> ids(400);
  std::iota(ids.begin(), ids.end(), 0);
  index.Add(ids.data(), rows.data(), 400, 2);
  const auto search = [&] {
    SearchOptions asked;
    asked.k = 3;
    asked.num_threads = 2;
    std::vector<Neighbour> found(3 * 20);
    index.Search(rows.data(), 20, asked, found.data());
  };
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> num_writes{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop) search();
  });
  threads.emplace_back([&] {
    while (!stop) {
      index.Add(ids.data() + 200, rows.data(), 200, 2);
      ++num_writes;
    }
  });
  while (num_writes < 2) std::this_thread::yield();
  for (int round = 0; round < 20; ++round) {
    CHECK(InChild([&] {
      try {
        search();
        index.Remove(ids.data(), 10, 2);
        return index.size() == 390;
      } catch (const InvalidInputError& error) {
        return std::string(error.what()).find("when this process was forked") != std::string::npos;
      }
    }));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(Graph) {
  KnowledgeGraph graph;
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> num_writes{0};
  std::thread writer([&] {
    for (std::size_t i = 0; !stop; ++i, ++num_writes) graph.Intern({"relation " + std::to_string(i % 1000)});
  });
  while (num_writes < 2) std::this_thread::yield();
  for (int round = 0; round < 20; ++round) {
    CHECK(InChild([&] {
      KnowledgeGraph fresh;
      fresh.Intern({"of the child"});
      try {
        return graph.Intern({"near"}).size() == 1;
      } catch (const InternalError& error) {
        return std::string(error.what()).find("fork") != std::string::npos;
      }
    }));
  }
  stop = true;
  writer.join();
}

TEST(IndexExact) { ForkedIndex(IndexKind::kExact); }
TEST(IndexHnsw) { ForkedIndex(IndexKind::kHnsw); }

}  // namespace
}  // namespace embodied_mem

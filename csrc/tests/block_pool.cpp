// Blocks handed from thread to thread: nobody else writes into one that is in use, whoever drops it.
#include "memory/versioned/block_pool.h"

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/check.h"
namespace embodied_mem {
namespace {

struct Held {
  unsigned char* block;
  std::size_t bytes;
  unsigned char mark;
};

// Makes and drops blocks at random, starting with those of `held`; leaves what is in use there. Returns what was damaged.
std::size_t Churn(unsigned seed, std::vector<Held>* held) {
  std::mt19937 rng(seed);
  std::size_t num_damaged = 0;
  for (int i = 0; i < 20000; ++i) {
    if (held->empty() || rng() % 5 < (i < 10000 ? 3U : 2U)) {
      const std::size_t bytes = 1 + rng() % 600;
      Held one{static_cast<unsigned char*>(AllocateBlock(bytes)), bytes, static_cast<unsigned char>(rng())};
      std::memset(one.block, one.mark, bytes);
      held->push_back(one);
    } else {
      std::swap((*held)[rng() % held->size()], held->back());
      const Held one = held->back();
      held->pop_back();
      for (std::size_t b = 0; b < one.bytes; ++b) num_damaged += one.block[b] != one.mark ? 1 : 0;
      FreeBlock(one.block, one.bytes);
    }
  }
  return num_damaged;
}

TEST(HandedBetweenThreads) {
  constexpr unsigned kThreads = 4;
  std::vector<std::vector<Held>> held(kThreads);
  std::vector<std::size_t> damaged(kThreads);
  for (unsigned round = 0; round < 3; ++round) {  // new threads, each with the blocks of another one that has ended
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] { damaged[t] += Churn(kThreads * round + t, &held[(t + round) % kThreads]); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::size_t count : damaged) CHECK_EQ(count, std::size_t{0});
  for (const auto& some : held) {
    CHECK(!some.empty());
    for (const Held& one : some) FreeBlock(one.block, one.bytes);
  }
}

}  // namespace
}  // namespace embodied_mem

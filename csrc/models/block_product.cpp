#include "models/block_product.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/fork_hook.h"
#include "models/xla_call.h"
#include "simd/simd.h"

namespace embodied_mem {
namespace {

constexpr std::size_t kTileRows = 48;  // scores of a tile stay in the first-level cache
constexpr std::size_t kTaskRows = 4 * kTileRows;
constexpr std::size_t kTaskBytes = 1 << 18;  // of blocks
constexpr std::size_t kLooks = 4000;         // some 50 us, in which a model comes to its next product
constexpr std::size_t kMaxThreads = 64;

// Loops that take microseconds. Unlike `ThreadPool`, a thread looks for the next loop for a while before it sleeps, and one
// that comes too late is not waited for.
class ShortLoops {
 public:
  explicit ShortLoops(std::size_t num_threads) {
    try {
      for (std::size_t i = 1; i < num_threads; ++i) std::thread([this] { Work(); }).detach();
    } catch (const std::system_error&) {  // the system gives no more: these do the work
    }
  }

  // Calls body(i) once for each i < count, which must not throw, and returns when all are done. Others wait.
  void Run(std::size_t count, const std::function<void(std::size_t)>& body) {
    const std::lock_guard<std::mutex> alone(run_mutex_);
    const auto loop = std::make_shared<Loop>(count, body);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      loop_ = loop;
      number_.fetch_add(1);
    }
    wake_.notify_all();
    loop->Drain();
    while (loop->done.load() < count) Pause();
  }

 private:
  struct Loop {
    Loop(std::size_t count, const std::function<void(std::size_t)>& body) : count(count), body(body) {}
    void Drain() {
      for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
        body(i);
        done.fetch_add(1);
      }
    }
    const std::size_t count;
    const std::function<void(std::size_t)>& body;  // gone when all are done, and then nobody looks at it
    std::atomic<std::size_t> next{0}, done{0};
  };

  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }

  [[noreturn]] void Work() {
    std::size_t seen = 0;
    while (true) {
      for (std::size_t i = 0; i < kLooks && number_.load() == seen; ++i) Pause();
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return number_.load() != seen; });
      seen = number_.load();
      const std::shared_ptr<Loop> loop = loop_;
      lock.unlock();
      loop->Drain();
    }
  }

  std::mutex run_mutex_, mutex_;
  std::condition_variable wake_;
  std::shared_ptr<Loop> loop_;          // guarded by mutex_
  std::atomic<std::size_t> number_{0};  // of loops so far, raised under mutex_
};

// Never destroyed: its threads and XLA's may outlive static objects. A forked child, which has none of these threads, begins
// with new ones; XLA itself does not work in a child of a process that used it.
ShortLoops& SharedLoops() {
  static std::atomic<ShortLoops*> shared{nullptr};
  static std::mutex mutex;
  static const auto* hook = new ForkHook([] {
    RenewMutex(&mutex);
    shared.store(nullptr);
  });
  (void)hook;
  ShortLoops* loops = shared.load();
  if (loops != nullptr) return *loops;
  const std::lock_guard<std::mutex> lock(mutex);
  if (shared.load() == nullptr)
    shared.store(new ShortLoops(std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxThreads)));
  return *shared.load();
}

XlaError* Handle(XlaCall* call) {
  if (call->extension != nullptr) {
    if (call->extension->type == kXlaMetadata) DescribeHandler(call->extension);
    return nullptr;
  }
  const XlaBuffer &x = *call->arguments.buffers[0], &blocks = *call->arguments.buffers[1],
                  &product = *call->results.buffers[0];
  MultiplyBlocks(static_cast<const float*>(x.data), static_cast<const float*>(blocks.data),
                 static_cast<std::size_t>(x.dims[0]), static_cast<std::size_t>(x.dims[1]),
                 static_cast<std::size_t>(product.dims[1]), static_cast<float*>(product.data));
  return nullptr;
}

}  // namespace

void MultiplyBlocks(const float* x, const float* blocks, std::size_t num_rows, std::size_t depth,
                    std::size_t num_columns, float* product) {
  const SimdKernels& kernels = Kernels();
  const std::size_t block_size = depth * kBlockRows, num_blocks = (num_columns + kBlockRows - 1) / kBlockRows;
  const std::size_t per_task = std::max<std::size_t>(1, kTaskBytes / (block_size * sizeof(float)));
  const std::size_t num_groups = (num_blocks + per_task - 1) / per_task;
  const std::size_t num_parts = std::max<std::size_t>(1, (num_rows + kTaskRows - 1) / kTaskRows);
  SharedLoops().Run(num_groups * num_parts, [&](std::size_t task) {
    alignas(kAlignment) float scores[kTileRows * kBlockRows];
    const std::size_t first = task / num_parts * per_task, last = std::min(num_blocks, first + per_task);
    const std::size_t begin = task % num_parts * kTaskRows, end = std::min(num_rows, begin + kTaskRows);
    for (std::size_t block = first; block < last; ++block) {
      const std::size_t column = block * kBlockRows, width = std::min(kBlockRows, num_columns - column);
      for (std::size_t row = begin; row < end; row += kTileRows) {
        const std::size_t count = std::min(kTileRows, end - row);
        kernels.score_block(blocks + block * block_size, x + row * depth, depth, count, depth, scores);
        for (std::size_t i = 0; i < count; ++i)
          std::memcpy(product + (row + i) * num_columns + column, scores + i * kBlockRows, width * sizeof(float));
      }
    }
  });
}

void* BlockProductHandler() { return reinterpret_cast<void*>(&Handle); }

}  // namespace embodied_mem

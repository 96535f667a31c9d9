#include "models/short_loops.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "core/fork_hook.h"

namespace embodied_mem {
namespace {

constexpr std::size_t kLooks = 4000;  // some 50 us, in which a model comes to its next loop
constexpr std::size_t kMaxThreads = 64;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

struct ShortLoops::Loop {
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

ShortLoops::ShortLoops(std::size_t num_threads) {
  try {
    for (std::size_t i = 1; i < num_threads; ++i) std::thread([this] { Work(); }).detach();
  } catch (const std::system_error&) {  // the system gives no more: these do the work
  }
}

void ShortLoops::Run(std::size_t count, const std::function<void(std::size_t)>& body) {
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

void ShortLoops::Work() {
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

}  // namespace embodied_mem

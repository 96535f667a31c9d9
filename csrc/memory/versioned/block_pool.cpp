#include "memory/versioned/block_pool.h"

#include <sys/mman.h>

#include <cstdint>
#include <mutex>

#include "core/fork_hook.h"

namespace embodied_mem {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

constexpr std::size_t kSegment = std::size_t{1} << 21;  // a huge page
constexpr std::size_t kCut = 16;                        // blocks that are cut at a time, side by side

// A segment at a multiple of its size. Throws std::bad_alloc.
char* MapSegment() {
  void* const mapped = ::mmap(nullptr, 2 * kSegment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(mapped);
  const std::size_t before = (kSegment - reinterpret_cast<std::uintptr_t>(begin) % kSegment) % kSegment;
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + kSegment, kSegment - before);
  return begin + before;
}

}  // namespace

class BlockStore {
 public:
  // Never destroyed, since threads may end after it would be.
  static BlockStore& Get() {
    static auto* store = new BlockStore;
    return *store;
  }

  BlockPool::Stack Take(std::size_t index) {
    const std::lock_guard<std::mutex> lock(mutex_);
    BlockPool::Block*& top = tops_[index];
    if (top == nullptr) return Cut((index + 1) * BlockPool::kGrain);
    const BlockPool::Stack stack{top, top->count};
    top = top->next_top;
    return stack;
  }
  void Give(std::size_t index, BlockPool::Stack stack) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stack.top->next_top = std::exchange(tops_[index], stack.top);
    stack.top->count = stack.count;
  }

 private:
  // The lowest address on top, since blocks are used in the order in which they are asked for.
  BlockPool::Stack Cut(std::size_t bytes) {
    if (left_ < kCut * bytes) {
      next_ = MapSegment();
      left_ = kSegment;
#if defined(MADV_HUGEPAGE)
      if (num_segments_ > 0) ::madvise(next_, kSegment, MADV_HUGEPAGE);  // a small graph stays small
#endif
      ++num_segments_;
    }
    BlockPool::Stack stack;
    for (std::size_t i = kCut; i-- > 0;)
      stack = {new (next_ + i * bytes) BlockPool::Block{stack.top, nullptr, 0}, stack.count + 1};
    next_ += kCut * bytes;
    left_ -= kCut * bytes;
    return stack;
  }

  std::mutex mutex_;
  std::array<BlockPool::Block*, BlockPool::kClasses> tops_{};
  char* next_ = nullptr;
  std::size_t left_ = 0, num_segments_ = 0;
  ForkHook hook_{[this] {  // what another thread was changing is left alone
    if (!RenewMutex(&mutex_)) return;
    tops_ = {};
    left_ = 0;
  }};
};

BlockPool::Stack BlockPool::Take(std::size_t index) { return BlockStore::Get().Take(index); }

void BlockPool::Give(std::size_t index, Stack stack) noexcept {
  if (stack.top != nullptr) BlockStore::Get().Give(index, stack);
}
#endif

}  // namespace embodied_mem

// Small blocks of memory that are made and dropped all the time: each thread keeps some of those it dropped.
//
// A batch makes and drops about fifty records; the system's allocator keeps seven per size at hand. Any thread may drop
// what another made. Under sanitizers every block comes from the system, so that they see each use.
#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace embodied_mem {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline void* AllocateBlock(std::size_t bytes) { return ::operator new(bytes); }
inline void FreeBlock(void* block, std::size_t) noexcept { ::operator delete(block); }
#else

class BlockPool {
 public:
  static constexpr std::size_t kGrain = 32, kClasses = 16;  // up to 512 bytes
  static constexpr std::size_t kMaxKept = 128;              // per class and thread

  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    for (Class& c : classes_) {
      while (c.first != nullptr) {
        void* block = c.first;
        c.first = *static_cast<void**>(block);
        ::operator delete(block);
      }
      c.num_kept = kMaxKept;  // what comes later, at the end of the thread, is not kept
    }
  }

  void* Allocate(std::size_t bytes) {
    const std::size_t index = (bytes - 1) / kGrain;
    if (index >= kClasses) return ::operator new(bytes);
    Class& c = classes_[index];
    if (c.first == nullptr) return ::operator new((index + 1) * kGrain);
    void* block = c.first;
    c.first = *static_cast<void**>(block);
    --c.num_kept;
    return block;
  }
  void Free(void* block, std::size_t bytes) noexcept {
    const std::size_t index = (bytes - 1) / kGrain;
    if (index >= kClasses || classes_[index].num_kept >= kMaxKept) {
      ::operator delete(block);
      return;
    }
    Class& c = classes_[index];
    *static_cast<void**>(block) = c.first;
    c.first = block;
    ++c.num_kept;
  }

 private:
  struct Class {
    void* first = nullptr;
    std::size_t num_kept = 0;
  };
  std::array<Class, kClasses> classes_;
};

inline BlockPool& ThreadBlocks() {
  thread_local BlockPool pool;
  return pool;
}
inline void* AllocateBlock(std::size_t bytes) { return ThreadBlocks().Allocate(bytes); }
inline void FreeBlock(void* block, std::size_t bytes) noexcept { ThreadBlocks().Free(block, bytes); }
#endif

// A base for classes whose objects come from the pool.
struct Pooled {
  static void* operator new(std::size_t bytes) { return AllocateBlock(bytes); }
  static void* operator new(std::size_t, void* place) { return place; }
  static void operator delete(void* block, std::size_t bytes) noexcept { FreeBlock(block, bytes); }
};

}  // namespace embodied_mem

// Small blocks of memory that are made and dropped all the time: each thread keeps some of those it dropped.
//
// A batch makes and drops about fifty records, and a traversal reads records all over the graph. So blocks are cut from
// segments of huge pages, which spares the processor walks through page tables, and start at multiples of 32 bytes, so that
// a list of four facts lies on two cache lines. A thread keeps two stacks of blocks of each size, and exchanges whole ones
// with the store that all threads share; any thread may drop what another made. What a dropped graph leaves is for other
// graphs: nothing goes back to the system. Under sanitizers every block comes from the system, so that they see each use.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace embodied_mem {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline void* AllocateBlock(std::size_t bytes) { return ::operator new(bytes); }
inline void FreeBlock(void* block, std::size_t) noexcept { ::operator delete(block); }
#else

class BlockPool {
 public:
  static constexpr std::size_t kGrain = 32, kClasses = 17;  // up to 544 bytes: a page of a versioned table
  static constexpr std::size_t kStack = 64;                 // blocks in a full stack

  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    for (std::size_t i = 0; i < kClasses; ++i) {
      for (Stack* stack : {&classes_[i].hot, &classes_[i].cold}) Give(i, std::exchange(*stack, {}));
    }
    closed_ = true;
  }

  void* Allocate(std::size_t bytes) {
    const std::size_t index = (bytes - 1) / kGrain;
    if (index >= kClasses) return ::operator new(bytes);
    Class& c = classes_[index];
    if (c.hot.top == nullptr) {
      std::swap(c.hot, c.cold);
      if (c.hot.top == nullptr) c.hot = Take(index);
    }
    --c.hot.count;
    return std::exchange(c.hot.top, c.hot.top->below);
  }
  void Free(void* memory, std::size_t bytes) noexcept {
    const std::size_t index = (bytes - 1) / kGrain;
    if (index >= kClasses) {
      ::operator delete(memory);
      return;
    }
    Class& c = classes_[index];
    if (c.hot.count == kStack) Give(index, std::exchange(c.cold, std::exchange(c.hot, {})));
    c.hot = {new (memory) Block{c.hot.top, nullptr, 0}, c.hot.count + 1};
    if (closed_) Give(index, std::exchange(c.hot, {}));  // the thread ends, and some other object of it only now
  }

 private:
  friend class BlockStore;
  struct Block {
    Block* below;
    Block* next_top;    // of the stack that follows in the store
    std::size_t count;  // blocks from here down; set in the store
  };
  static_assert(sizeof(Block) <= kGrain, "a free block holds these");
  struct Stack {
    Block* top = nullptr;
    std::size_t count = 0;
  };
  struct Class {
    Stack hot, cold;
  };

  // From and to the store. Take throws std::bad_alloc.
  static Stack Take(std::size_t index);
  static void Give(std::size_t index, Stack stack) noexcept;

  std::array<Class, kClasses> classes_;
  bool closed_ = false;
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

// A list that only grows at its end, shared by versions of a record: appending gives a new list and copies at most one
// small chunk; older versions keep theirs. Copies count references, so they may be dropped on any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "memory/versioned/block_pool.h"

namespace embodied_mem {

// Gives back one reference; true when it was the last. Who holds the only one needs no atomic change: nobody else is
// left who could take another.
inline bool DropReference(std::atomic<std::uint32_t>* refs) {
  return refs->load(std::memory_order_acquire) == 1 || refs->fetch_sub(1, std::memory_order_acq_rel) == 1;
}

template <typename T, std::size_t kChunkItems>
class SharedList {
 public:
  SharedList() = default;
  SharedList(const SharedList& other) : last_(other.last_) {
    if (last_ != nullptr) last_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  SharedList(SharedList&& other) noexcept : last_(std::exchange(other.last_, nullptr)) {}
  SharedList& operator=(SharedList other) noexcept {
    std::swap(last_, other.last_);
    return *this;
  }
  ~SharedList() {
    for (Chunk* chunk = last_; chunk != nullptr && DropReference(&chunk->refs);) {
      Chunk* before = chunk->before;
      delete chunk;
      chunk = before;
    }
  }

  bool empty() const { return last_ == nullptr; }
  // The item appended last; the list is not empty.
  const T& back() const { return last_->items[last_->count - 1]; }

  void Append(const T& item) {
    if (last_ != nullptr && last_->count < kChunkItems && last_->refs.load(std::memory_order_acquire) == 1) {
      last_->items[last_->count++] = item;
      return;
    }
    auto* chunk = new Chunk;
    if (last_ != nullptr && last_->count < kChunkItems) {
      chunk->items = last_->items;
      chunk->count = last_->count;
      chunk->before = last_->before;
    } else {
      chunk->before = last_;
    }
    if (chunk->before != nullptr) chunk->before->refs.fetch_add(1, std::memory_order_relaxed);
    chunk->items[chunk->count++] = item;
    SharedList old;
    old.last_ = std::exchange(last_, chunk);
  }

  // Asks the memory for what the next copy or Append touches.
  void Prefetch() const { __builtin_prefetch(last_); }

  // Calls visit(item) from the newest to the oldest.
  template <typename Visit>
  void VisitBackwards(Visit&& visit) const {
    for (const Chunk* chunk = last_; chunk != nullptr; chunk = chunk->before) {
      for (std::uint32_t i = chunk->count; i-- > 0;) visit(chunk->items[i]);
    }
  }

 private:
  struct Chunk : Pooled {
    std::atomic<std::uint32_t> refs{1};
    std::uint32_t count = 0;
    Chunk* before = nullptr;
    std::array<T, kChunkItems> items;
  };
  Chunk* last_ = nullptr;
};

}  // namespace embodied_mem

// Records with versions: one writer replaces them, readers pinned at an older version go on seeing theirs, and a copy
// of a whole table shares all its pages until one side writes.
//
// How it works. A table is pages of slots, a slot points to the newest record, a record points to the one it replaced.
// A batch of writes has one version number; a reader at version v skips records above v. Replaced records, pages and
// arrays go to a list and are dropped once no reader is pinned below the version that replaced them. Pages and records
// are reference-counted only because copies of a table share them: a page that is shared is copied before its first
// change (page and record counts rise by one each), so a copy costs the top level alone: one pointer per 8,192 slots.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "memory/versioned/block_pool.h"
#include "memory/versioned/shared_list.h"

namespace embodied_mem {

// The versions of one store: which readers are pinned, and what waits to be dropped.
class Versions {
 public:
  Versions() = default;
  Versions(const Versions&) = delete;
  Versions& operator=(const Versions&) = delete;
  ~Versions() {
    for (std::size_t i = first_; i < retired_.size(); ++i) retired_[i].drop(retired_[i].what);
    for (Pin* pin = pins_.load(); pin != nullptr;) {
      Pin* next = pin->next;
      delete pin;
      pin = next;
    }
  }

  struct alignas(64) Pin {
    std::atomic<std::uint64_t> version{kFree};
    Pin* next = nullptr;
  };

  // Keeps everything that versions >= `version` need from being dropped until Release. Never waits for the writer.
  Pin* Acquire(std::uint64_t version) const {
    for (Pin* pin = pins_.load(std::memory_order_acquire); pin != nullptr; pin = pin->next) {
      std::uint64_t expected = kFree;
      if (pin->version.load(std::memory_order_relaxed) == kFree &&
          pin->version.compare_exchange_strong(expected, version))
        return pin;
    }
    auto* pin = new Pin;
    pin->version.store(version);
    pin->next = pins_.load();
    while (!pins_.compare_exchange_weak(pin->next, pin)) {
    }
    return pin;
  }
  static void Release(Pin* pin) { pin->version.store(kFree, std::memory_order_release); }

  // The writer's side. `what` was replaced by version `version` and can still be seen by readers below it.
  // Throws nothing if there is room for it.
  void Retire(void* what, void (*drop)(void*), std::uint64_t version) { retired_.push_back({what, drop, version}); }

  // Makes room for `count` calls of Retire.
  void Reserve(std::size_t count) {
    if (retired_.capacity() - retired_.size() < count) retired_.reserve(2 * retired_.capacity() + count);
  }

  // Drops what no reader can see; `version` is the newest published one.
  void Reclaim(std::uint64_t version) {
    std::uint64_t oldest = version;
    for (Pin* pin = pins_.load(); pin != nullptr; pin = pin->next) {
      const std::uint64_t pinned = pin->version.load();
      if (pinned < oldest) oldest = pinned;
    }
    while (first_ < retired_.size() && retired_[first_].version <= oldest) {
      retired_[first_].drop(retired_[first_].what);
      ++first_;
    }
    if (first_ == retired_.size()) {
      retired_.clear();
      first_ = 0;
    } else if (first_ > 1024 && first_ > retired_.size() / 2) {
      retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }
  std::size_t num_retired() const { return retired_.size() - first_; }

 private:
  static constexpr std::uint64_t kFree = std::numeric_limits<std::uint64_t>::max();
  struct Retired {
    void* what;
    void (*drop)(void*);
    std::uint64_t version;
  };

  mutable std::atomic<Pin*> pins_{nullptr};  // grows only
  std::vector<Retired> retired_;             // in the order of versions; the writer's alone
  std::size_t first_ = 0;
};

// `Record` has `version` (std::uint64_t), `prev()` (a Record*&), `refs()` (a std::atomic<std::uint32_t>&, 1 at first) and a
// static Destroy(Record*). An empty slot reads as nullptr. Who owns a slot may change its record in place while no other
// table shares it, `refs()` being 1, if readers of older versions can tell.
template <typename Record>
class VersionedTable {
  static constexpr std::size_t kPageSlots = 64;
  static constexpr std::size_t kChunkPages = 128;
  static constexpr std::size_t kChunkSlots = kPageSlots * kChunkPages;
  struct Page : Pooled {
    std::atomic<std::uint32_t> refs{1};
    std::array<std::atomic<Record*>, kPageSlots> slots{};
  };
  struct Chunk {
    std::atomic<std::uint32_t> refs{1};
    std::array<std::atomic<Page*>, kChunkPages> pages{};
  };
  struct Root {
    explicit Root(std::size_t n) : capacity(n), chunks(new std::atomic<Chunk*>[n]()) {}
    std::size_t capacity;
    std::unique_ptr<std::atomic<Chunk*>[]> chunks;
  };

 public:
  VersionedTable() : root_(new Root(1)) {}
  // Shares all pages with `other`, which nobody writes meanwhile.
  VersionedTable(const VersionedTable& other) : root_(nullptr) {
    const Root* from = other.root_.load(std::memory_order_acquire);
    auto root = std::make_unique<Root>(from->capacity);
    for (std::size_t i = 0; i < from->capacity; ++i) {
      Chunk* chunk = from->chunks[i].load(std::memory_order_acquire);
      if (chunk != nullptr) chunk->refs.fetch_add(1, std::memory_order_relaxed);
      root->chunks[i].store(chunk, std::memory_order_relaxed);
    }
    root_.store(root.release(), std::memory_order_release);
  }
  VersionedTable& operator=(const VersionedTable&) = delete;
  ~VersionedTable() {
    Root* root = root_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < root->capacity; ++i) DropChunk(root->chunks[i].load(std::memory_order_acquire));
    delete root;
  }

  // The record of slot `index` as of `version`, for a reader that is pinned there; nullptr when there was none.
  const Record* Read(std::size_t index, std::uint64_t version) const {
    const std::atomic<Record*>* slot = Slot(index);
    return slot == nullptr ? nullptr : ReadAt(*slot, version);
  }
  static const Record* ReadAt(const std::atomic<Record*>& slot, std::uint64_t version) {
    const Record* record = slot.load(std::memory_order_acquire);
    while (record != nullptr && record->version > version) record = record->prev();
    return record;
  }
  // Where slots lie, for a reader that is pinned before and stays so, or the writer until it writes.
  class Slots {
   public:
    explicit Slots(const VersionedTable& table) {
      const Root* root = table.root_.load(std::memory_order_acquire);
      chunks_ = root->chunks.get();
      capacity_ = root->capacity;
    }
    // nullptr when nothing was ever written near it.
    const std::atomic<Record*>* At(std::size_t index) const {
      const std::size_t c = index / kChunkSlots;
      if (c >= capacity_) return nullptr;
      const auto* chunk = chunks_[c].load(std::memory_order_acquire);
      if (chunk == nullptr) return nullptr;
      const auto* page = chunk->pages[index / kPageSlots % kChunkPages].load(std::memory_order_acquire);
      return page == nullptr ? nullptr : &page->slots[index % kPageSlots];
    }

   private:
    const std::atomic<Chunk*>* chunks_;
    std::size_t capacity_;
  };
  const std::atomic<Record*>* Slot(std::size_t index) const { return Slots(*this).At(index); }

  // Asks the memory for what a write of slot `index` needs: first where it lies, then, once that is there, its record.
  void PrefetchSlot(std::size_t index) const {
    const std::atomic<Record*>* slot = Slot(index);
    if (slot == nullptr) return;
    __builtin_prefetch(slot);
    __builtin_prefetch(slot - index % kPageSlots);  // the page's count of references lies before its slots
  }
  void PrefetchRecord(std::size_t index) const {
    const auto* record = reinterpret_cast<const char*>(Newest(index));
    if (record == nullptr) return;
    __builtin_prefetch(record);
    if constexpr (sizeof(Record) != 64) __builtin_prefetch(record + 64);
  }

  // The writer's side: the newest record, which may belong to the batch at work.
  Record* Newest(std::size_t index) const {
    const std::atomic<Record*>* slot = Slot(index);
    return slot == nullptr ? nullptr : slot->load(std::memory_order_relaxed);
  }
  // Puts `fresh`, whose version is the batch's, in place of the newest record, which is retired. Owns `fresh` even
  // when it throws for want of memory; nothing has changed then.
  void Put(std::size_t index, Record* fresh, Versions* versions) {
    std::atomic<Record*>* slot = nullptr;
    try {
      slot = Own(index, fresh->version, versions);
      versions->Reserve(1);
    } catch (...) {
      Record::Destroy(fresh);
      throw;
    }
    Replace(slot, fresh, versions);
  }
  // The same in two steps, for who looks at the newest record first: the slot in a page that no copy of this table
  // shares; and putting `fresh` there, which throws nothing if there is room to retire what is there.
  std::atomic<Record*>* Own(std::size_t index, std::uint64_t version, Versions* versions) {
    Root* root = root_.load(std::memory_order_relaxed);
    if (const std::size_t c = index / kChunkSlots; c < root->capacity) {
      Chunk* chunk = root->chunks[c].load(std::memory_order_relaxed);
      if (chunk != nullptr && chunk->refs.load(std::memory_order_acquire) == 1) {
        Page* page = chunk->pages[index / kPageSlots % kChunkPages].load(std::memory_order_relaxed);
        if (page != nullptr && page->refs.load(std::memory_order_acquire) == 1) return &page->slots[index % kPageSlots];
      }
    }
    return &OwnPage(index, version, versions)->slots[index % kPageSlots];
  }
  void Replace(std::atomic<Record*>* slot, Record* fresh, Versions* versions) {
    Record* old = slot->load(std::memory_order_relaxed);
    if (old != nullptr) versions->Retire(old, &DropRecordErased, fresh->version);
    // A record of the same batch was never visible: readers go past it.
    fresh->prev() = old != nullptr && old->version == fresh->version ? old->prev() : old;
    slot->store(fresh, std::memory_order_release);
  }

 private:
  static void DropRecord(Record* record) {
    if (record != nullptr && DropReference(&record->refs())) Record::Destroy(record);
  }
  static void DropPage(Page* page) {
    if (page == nullptr || !DropReference(&page->refs)) return;
    for (auto& slot : page->slots) DropRecord(slot.load(std::memory_order_relaxed));
    delete page;
  }
  static void DropChunk(Chunk* chunk) {
    if (chunk == nullptr || !DropReference(&chunk->refs)) return;
    for (auto& page : chunk->pages) DropPage(page.load(std::memory_order_relaxed));
    delete chunk;
  }
  static void DropRecordErased(void* what) { DropRecord(static_cast<Record*>(what)); }
  static void DropPageErased(void* what) { DropPage(static_cast<Page*>(what)); }
  static void DropChunkErased(void* what) { DropChunk(static_cast<Chunk*>(what)); }
  static void DropRootErased(void* what) { delete static_cast<Root*>(what); }

  // The page of slot `index`, shared with no copy of this table: what is shared on the way there is copied.
  __attribute__((noinline)) Page* OwnPage(std::size_t index, std::uint64_t version, Versions* versions) {
    versions->Reserve(3);
    const std::size_t c = index / kChunkSlots;
    Root* root = root_.load(std::memory_order_relaxed);
    if (c >= root->capacity) {
      auto grown = std::make_unique<Root>(c + 1 > 2 * root->capacity ? c + 1 : 2 * root->capacity);
      for (std::size_t i = 0; i < root->capacity; ++i)
        grown->chunks[i].store(root->chunks[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
      versions->Retire(root, &DropRootErased, version);
      root = grown.release();
      root_.store(root, std::memory_order_release);
    }
    Chunk* chunk = root->chunks[c].load(std::memory_order_relaxed);
    if (chunk == nullptr) {
      chunk = new Chunk;
      root->chunks[c].store(chunk, std::memory_order_release);
    } else if (chunk->refs.load(std::memory_order_acquire) != 1) {
      auto* copy = new Chunk;
      for (std::size_t i = 0; i < kChunkPages; ++i) {
        Page* page = chunk->pages[i].load(std::memory_order_relaxed);
        if (page != nullptr) page->refs.fetch_add(1, std::memory_order_relaxed);
        copy->pages[i].store(page, std::memory_order_relaxed);
      }
      versions->Retire(chunk, &DropChunkErased, version);
      chunk = copy;
      root->chunks[c].store(chunk, std::memory_order_release);
    }
    std::atomic<Page*>& place = chunk->pages[index / kPageSlots % kChunkPages];
    Page* page = place.load(std::memory_order_relaxed);
    if (page == nullptr) {
      page = new Page;
      place.store(page, std::memory_order_release);
    } else if (page->refs.load(std::memory_order_acquire) != 1) {
      auto* copy = new Page;
      for (std::size_t i = 0; i < kPageSlots; ++i) {
        Record* record = page->slots[i].load(std::memory_order_relaxed);
        if (record != nullptr) record->refs().fetch_add(1, std::memory_order_relaxed);
        copy->slots[i].store(record, std::memory_order_relaxed);
      }
      versions->Retire(page, &DropPageErased, version);
      page = copy;
      place.store(page, std::memory_order_release);
    }
    return page;
  }

  std::atomic<Root*> root_;
};

}  // namespace embodied_mem

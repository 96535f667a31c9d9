// What an object does in a forked child, where only the thread that forked goes on: other threads are gone, and what they
// held stays held.
//
//   ForkHook hook_{[this] { ... }};   // the last member, so that all others are there while it is
//
// The hook runs in the child before `fork` returns there, with no other thread beside it; it must not throw. A mutex that
// `try_lock` cannot take in it was held by a thread that is gone: what it guards may be half changed, and the mutex is to be
// made anew in its place (`RenewMutex`).
#pragma once

#include <functional>
#include <new>

namespace embodied_mem {

class ForkHook {
 public:
  // Throws std::bad_alloc.
  explicit ForkHook(std::function<void()> in_child);
  ~ForkHook();
  ForkHook(const ForkHook&) = delete;
  ForkHook& operator=(const ForkHook&) = delete;

 private:
  friend class ForkHooks;
  std::function<void()> in_child_;
  ForkHook *before_ = nullptr, *after_ = nullptr;
};

// In a hook: frees the mutex whoever held it, and returns whether a thread that is gone did.
template <typename Mutex>
bool RenewMutex(Mutex* mutex) {
  if (mutex->try_lock()) {
    mutex->unlock();
    return false;
  }
  new (mutex) Mutex;
  return true;
}

}  // namespace embodied_mem

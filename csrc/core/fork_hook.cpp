#include "core/fork_hook.h"

#include <pthread.h>

#include <mutex>
#include <utility>

namespace embodied_mem {

// All that there are. Its mutex is held while the process forks, so that the list is whole in the child.
class ForkHooks {
 public:
  // Never destroyed: static objects may have hooks.
  static ForkHooks& Get() {
    static auto* hooks = new ForkHooks;
    return *hooks;
  }

  void Add(ForkHook* hook) {
    const std::lock_guard<std::mutex> lock(mutex_);
    hook->after_ = first_;
    if (first_ != nullptr) first_->before_ = hook;
    first_ = hook;
  }
  void Remove(ForkHook* hook) {
    const std::lock_guard<std::mutex> lock(mutex_);
    (hook->before_ == nullptr ? first_ : hook->before_->after_) = hook->after_;
    if (hook->after_ != nullptr) hook->after_->before_ = hook->before_;
  }

 private:
  ForkHooks() {
    if (pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); }, [] { Get().InChild(); }) != 0)
      throw std::bad_alloc();
  }

  void InChild() {
    for (const ForkHook* hook = first_; hook != nullptr; hook = hook->after_) hook->in_child_();
    mutex_.unlock();
  }

  std::mutex mutex_;
  ForkHook* first_ = nullptr;
};

ForkHook::ForkHook(std::function<void()> in_child) : in_child_(std::move(in_child)) { ForkHooks::Get().Add(this); }
ForkHook::~ForkHook() { ForkHooks::Get().Remove(this); }

}  // namespace embodied_mem

// Threads for loops that take microseconds, as those inside a function that XLA calls.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

namespace embodied_mem {

// Unlike `ThreadPool`, a thread looks for the next loop for a while before it sleeps, and one that comes too late is not
// waited for. Its threads never end, so it must never be destroyed.
class ShortLoops {
 public:
  // The calling thread works too, so `num_threads` - 1 threads are started. Where the system refuses some, the others do
  // the work.
  explicit ShortLoops(std::size_t num_threads);

  // Calls body(i) once for each i < count, which must not throw, and returns when all are done. Others wait.
  void Run(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  struct Loop;
  [[noreturn]] void Work();

  std::mutex run_mutex_, mutex_;
  std::condition_variable wake_;
  std::shared_ptr<Loop> loop_;          // guarded by mutex_
  std::atomic<std::size_t> number_{0};  // of loops so far, raised under mutex_
};

// Those of the process, one thread for each core that it may use. Its threads and XLA's may outlive static objects. A forked
// child, which has none of these threads, begins with new ones; XLA itself does not work in a child of a process that used
// it. Throws std::system_error where a lock cannot be had.
ShortLoops& SharedLoops();

}  // namespace embodied_mem

// A fixed number of threads that run loops over indices. The result of a loop never depends on their number.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "core/fork_hook.h"

namespace embodied_mem {

class ThreadPool {
 public:
  // The calling thread works too, so `num_threads` - 1 threads are started, by the first Run; in a forked child, which
  // has none of them, by its first Run again. Where the system refuses some, the others do the work.
  // Throws InvalidInputError if not 1 to 1024.
  explicit ThreadPool(std::size_t num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t num_threads() const { return num_threads_; }

  // Calls body(i) once for each i < count and returns when all are done. Bodies of different i run at the same
  // time and must not share what they change. When bodies throw, all others still run, then the exception of the
  // lowest i is thrown here. One Run at a time.
  void Run(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  class Crew;

  const std::size_t num_threads_;
  std::unique_ptr<Crew> crew_;
  ForkHook hook_;
};

}  // namespace embodied_mem

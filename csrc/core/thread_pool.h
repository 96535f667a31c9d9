// A fixed number of threads that run loops over indices. The result of a loop never depends on their number.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace embodied_mem {

class ThreadPool {
 public:
  // The calling thread works too, so `num_threads` - 1 threads are started. Throws InvalidInputError below 1.
  explicit ThreadPool(std::size_t num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t num_threads() const { return workers_.size() + 1; }

  // Calls body(i) once for each i < count and returns when all are done. Bodies of different i run at the same
  // time and must not share what they change. When bodies throw, all others still run, then the exception of the
  // lowest i is thrown here. One Run at a time.
  void Run(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  void Work();
  void Drain();

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  std::size_t generation_ = 0;  // guarded by mutex_, like all below but next_
  std::size_t busy_ = 0;
  bool stopping_ = false;
  const std::function<void(std::size_t)>* body_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_{0};
  std::exception_ptr error_;
  std::size_t error_index_ = 0;
};

}  // namespace embodied_mem

#include "core/thread_pool.h"

#include <string>

#include "core/error.h"

namespace embodied_mem {

ThreadPool::ThreadPool(std::size_t num_threads) {
  if (num_threads < 1 || num_threads > 1024)
    throw InvalidInputError("num_threads: expected 1 to 1024, got " + std::to_string(num_threads));
  for (std::size_t i = 1; i < num_threads; ++i) workers_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(std::size_t count, const std::function<void(std::size_t)>& body) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    body_ = &body;
    count_ = count;
    next_.store(0);
    error_ = nullptr;
    busy_ = workers_.size();
    ++generation_;
  }
  if (!workers_.empty()) start_.notify_all();
  Drain();
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (error_ != nullptr) std::rethrow_exception(error_);
}

void ThreadPool::Drain() {
  for (std::size_t i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) {
    try {
      (*body_)(i);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (error_ == nullptr || i < error_index_) {
        error_ = std::current_exception();
        error_index_ = i;
      }
    }
  }
}

void ThreadPool::Work() {
  std::size_t seen = 0;
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
    }
    Drain();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --busy_;
    }
    done_.notify_one();
  }
}

}  // namespace embodied_mem

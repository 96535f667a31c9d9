#include "core/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

namespace embodied_mem {

// The threads and what they share.
class ThreadPool::Crew {
 public:
  explicit Crew(std::size_t num_workers) {
    workers_.reserve(num_workers);
    try {
      for (std::size_t i = 0; i < num_workers; ++i) workers_.emplace_back([this] { Work(); });
    } catch (const std::exception&) {  // the system gives no more
    }
  }
  ~Crew() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    start_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void Run(std::size_t count, const std::function<void(std::size_t)>& body) {
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

 private:
  void Drain() {
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

  void Work() {
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

// A child can neither join nor destroy threads that it does not have, so it leaves the crew alone.
ThreadPool::ThreadPool(std::size_t num_threads) : num_threads_(num_threads), hook_([this] { (void)crew_.release(); }) {
  if (num_threads < 1 || num_threads > 1024)
    throw InvalidInputError("num_threads: expected 1 to 1024, got " + std::to_string(num_threads));
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::Run(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (crew_ == nullptr) crew_ = std::make_unique<Crew>(num_threads_ - 1);
  crew_->Run(count, body);
}

}  // namespace embodied_mem

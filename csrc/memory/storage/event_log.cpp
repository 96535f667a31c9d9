#include "memory/storage/event_log.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace embodied_mem {
namespace {

constexpr std::string_view kPrefix = "events-", kSuffix = ".log";
constexpr std::size_t kDigits = 16;

std::string SegmentName(std::uint64_t first) {
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(first));
  return std::string(kPrefix) + digits + std::string(kSuffix);
}

bool ParseSegmentName(const std::string& name, std::uint64_t* first) {
  if (name.size() != kPrefix.size() + kDigits + kSuffix.size() || name.rfind(kPrefix, 0) != 0 ||
      name.substr(name.size() - kSuffix.size()) != kSuffix)
    return false;
  *first = std::strtoull(name.substr(kPrefix.size(), kDigits).c_str(), nullptr, 16);
  return SegmentName(*first) == name;
}

}  // namespace

EventLog::EventLog(std::string folder, std::string scope, const LogOptions& options, FileOps* ops)
    : folder_(std::move(folder)),
      scope_(std::move(scope)),
      options_(options),
      ops_(ops == nullptr ? FileOps::System() : ops),
      process_(::getpid()),
      hook_([this] { InChild(); }) {
  if (!options_.read_only) lock_file_ = std::make_unique<FolderLock>(folder_);
}

EventLog::~EventLog() {
  try {
    Close();
  } catch (const std::exception&) {  // a destructor has nobody to tell; what was acknowledged is as safe as promised
  }
}

// The descriptors are closed so that the parent's lock goes with the parent.
void EventLog::InChild() {
  forked_ = true;
  new (&background_) std::thread;  // to destroy these would mean to wait for the thread
  new (&changed_) std::condition_variable;
  file_.Reset(-1);
  lock_file_.reset();
}

std::unique_lock<std::mutex> EventLog::Lock() const {
  if (forked_)
    throw StorageError(folder_ + ": opened in process " + std::to_string(process_) + ", used in " +
                       std::to_string(::getpid()) + "; open it again after a fork");
  return std::unique_lock<std::mutex>(mutex_);
}

std::vector<EventLog::Segment> EventLog::List() const {
  std::vector<Segment> found;
  DIR* const folder = ::opendir(folder_.c_str());
  if (folder == nullptr) throw StorageError(FileProblem("list", folder_));
  while (const dirent* entry = ::readdir(folder)) {
    std::uint64_t first = 0;
    if (ParseSegmentName(entry->d_name, &first)) found.push_back({folder_ + "/" + entry->d_name, first, 0});
  }
  ::closedir(folder);
  std::sort(found.begin(), found.end(), [](const Segment& a, const Segment& b) { return a.first < b.first; });
  return found;
}

void EventLog::Drop(const Segment& segment) {
  if (ops_->Unlink(segment.path) != 0 && errno != ENOENT) throw StorageError(FileProblem("remove", segment.path));
}

void EventLog::Recover(std::uint64_t covered) {
  if (recovered_) throw InternalError("an event log is recovered once");
  std::vector<Segment> found = List();
  // Files that a snapshot covers whole are not looked at: they may be what a crash left of a removal.
  std::size_t begin = 0;
  while (begin + 1 < found.size() && found[begin + 1].first <= covered + 1) ++begin;
  if (begin < found.size() && found[begin].first > covered + 1)
    throw StorageError(folder_ + ": expected records from " + std::to_string(covered + 1) +
                       " on, got a log that begins with " + std::to_string(found[begin].first) + "; a file is missing");
  std::uint64_t last = covered;
  for (std::size_t i = begin; i < found.size(); ++i) {
    Segment& segment = found[i];
    const std::string bytes = ReadFile(segment.path);
    const SegmentHeader header = ReadSegmentHeader(bytes, segment.path);
    if (header.scope != scope_)
      throw InvalidInputError(folder_ + ": expected the scope it was made with, " + header.scope + ", got " + scope_);
    if (header.first_sequence != segment.first)
      throw StorageError(segment.path + ": expected record " + std::to_string(segment.first) + " first, got " +
                         std::to_string(header.first_sequence) + "; the file was renamed");
    const SegmentScan scan = ScanSegment(bytes, header, [](const LogRecord&) {});
    segment.bytes = scan.valid_bytes;
    last = scan.last_sequence;
    const bool is_last = i + 1 == found.size();
    std::string reason = scan.damage;
    if (reason.empty() && !is_last && found[i + 1].first != last + 1)
      reason = "expected record " + std::to_string(last + 1) + " next, but " + found[i + 1].path + " begins with " +
               std::to_string(found[i + 1].first);
    if (reason.empty()) continue;
    // A later file was begun only after all records of this one were acknowledged.
    const bool promised = !is_last || scan.promised > last;
    if (promised && !options_.repair)
      throw StorageError(
          segment.path + ": damaged at offset " + std::to_string(scan.valid_bytes) + " (" + reason + "), and " +
          "records that were acknowledged lie behind; restore the file from a copy, or open the store with " +
          "repair=True to cut everything from record " + std::to_string(last + 1) + " on");
    damage_.push_back({segment.path, scan.valid_bytes, bytes.size() - scan.valid_bytes, reason, !options_.read_only});
    for (std::size_t later = i + 1; later < found.size(); ++later)
      damage_.push_back(
          {found[later].path, 0, ReadFile(found[later].path).size(), "lies behind the damage", !options_.read_only});
    if (!options_.read_only) {
      while (found.size() > i + 1) {  // from the end, so that a crash leaves no gap
        Drop(found.back());
        found.pop_back();
      }
      const OwnedFile file(ops_->Open(segment.path, O_WRONLY));
      if (file.get() < 0 || ops_->Truncate(file.get(), segment.bytes) != 0 || ops_->Sync(file.get()) != 0)
        throw StorageError(FileProblem("cut", segment.path));
    }
    found.resize(i + 1);
  }
  for (std::size_t i = 0; i < begin; ++i) stale_.push_back(found[i]);
  found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(begin));
  if (last < covered) {  // the log lost its end while the snapshot kept it: what is left is in the snapshot
    if (!options_.read_only) {
      for (const Segment& segment : found) Drop(segment);
    }
    found.clear();
    last = covered;
  }
  segments_ = std::move(found);
  acknowledged_ = last;
  next_ = last + 1;
  recovered_ = true;
  if (options_.read_only) return;
  if (segments_.empty()) {
    BeginSegment(next_);
  } else {
    OpenLast();
    // What a killed writer left in the system's cache is acknowledged again from now on, so it goes to the disk.
    if (options_.sync != SyncPolicy::kNever) SyncFile();
  }
  if (options_.sync == SyncPolicy::kInterval) background_ = std::thread(&EventLog::SyncInBackground, this);
}

void EventLog::OpenLast() {
  file_.Reset(ops_->Open(segments_.back().path, O_WRONLY | O_APPEND));
  if (file_.get() < 0) throw StorageError(FileProblem("open", segments_.back().path));
}

void EventLog::CheckOpen() const {
  if (options_.read_only) throw InvalidInputError(folder_ + ": opened with read_only=True, so nothing can be written");
  if (!recovered_) throw InternalError("an event log is recovered before it is written to");
  if (!closed_.empty()) throw StorageError(closed_);
}

EventLog::Ticket EventLog::Enqueue(std::uint32_t kind, std::string_view payload) {
  if (payload.size() > kMaxPayloadBytes)
    throw InvalidInputError("event: expected at most " + std::to_string(kMaxPayloadBytes) + " bytes, got " +
                            std::to_string(payload.size()));
  const std::unique_lock<std::mutex> lock = Lock();
  if (!closed_.empty()) throw StorageError(closed_ + "; the event was not recorded");
  CheckOpen();
  pending_.push_back({kind, std::string(payload)});
  return {next_++, failures_.size()};
}

std::uint64_t EventLog::Wait(const Ticket& ticket) {
  std::unique_lock<std::mutex> lock = Lock();
  for (;;) {
    if (ticket.generation < failures_.size() && ticket.sequence > failures_[ticket.generation].acknowledged)
      throw StorageError(failures_[ticket.generation].message);
    if (ticket.generation < failures_.size() || ticket.sequence <= acknowledged_) return ticket.sequence;
    if (leading_) {
      changed_.wait(lock);
    } else {
      Lead(&lock);
    }
  }
}

// Writes all that is pending; nobody else leads. Does not throw: who waits finds the failure.
void EventLog::Lead(std::unique_lock<std::mutex>* lock) {
  leading_ = true;
  std::vector<Item> batch = std::move(pending_);
  pending_.clear();
  const std::uint64_t first = acknowledged_ + 1;
  std::string problem = closed_;
  if (problem.empty()) {
    lock->unlock();
    try {
      WriteBatch(batch, first);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    lock->lock();
  }
  if (problem.empty()) {
    acknowledged_ += batch.size();
  } else {
    failures_.push_back({acknowledged_, problem + "; the event was not recorded"});
    pending_.clear();
    next_ = acknowledged_ + 1;
  }
  leading_ = false;
  changed_.notify_all();
}

void EventLog::WriteBatch(const std::vector<Item>& batch, std::uint64_t first) {
  if (batch.empty()) return;
  if (segments_.back().bytes >= options_.segment_bytes && segments_.back().first < first) BeginSegment(first);
  std::string bytes;
  for (std::size_t i = 0; i < batch.size(); ++i)
    PutRecord(&bytes, {first + i, first - 1, batch[i].kind, batch[i].payload});
  Segment& segment = segments_.back();
  const auto take_back = [&] {
    if (ops_->Truncate(file_.get(), segment.bytes) == 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_.empty())
      closed_ = FileProblem("take back an unfinished write to", segment.path) + "; open the store again";
  };
  try {
    WriteAll(ops_, file_.get(), bytes, segment.path);
  } catch (const StorageError&) {
    take_back();
    throw;
  }
  unsynced_ = true;
  if (options_.sync == SyncPolicy::kAlways) {
    try {
      SyncFile();
    } catch (const StorageError&) {
      take_back();
      throw;
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  segment.bytes += bytes.size();
}

void EventLog::BeginSegment(std::uint64_t first) {
  if (file_.get() >= 0) SyncFile();  // a later file promises all of this one
  const std::string path = folder_ + "/" + SegmentName(first), temporary = path + ".tmp";
  std::string header;
  PutSegmentHeader(&header, scope_, first);
  OwnedFile file(ops_->Open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND));
  if (file.get() < 0) throw StorageError(FileProblem("make", temporary));
  try {
    WriteAll(ops_, file.get(), header, temporary);
    if (ops_->Sync(file.get()) != 0) throw StorageError(FileProblem("sync", temporary));
    if (ops_->Rename(temporary, path) != 0) throw StorageError(FileProblem("rename", temporary));
    SyncFolder(ops_, folder_);
  } catch (const StorageError& error) {
    // A file that is not written to must not stay where its first record is expected.
    ops_->Unlink(temporary);
    if (ops_->Unlink(path) != 0 && errno != ENOENT) {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = std::string(error.what()) + "; open the store again";
    }
    throw;
  }
  file_ = std::move(file);
  const std::lock_guard<std::mutex> lock(mutex_);
  segments_.push_back({path, first, header.size()});
}

void EventLog::SyncFile() {
  if (ops_->Sync(file_.get()) == 0) {
    unsynced_ = false;
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = FileProblem("sync", segments_.back().path) +
            "; what is on the disk is not known, so nothing more is written: open the store again";
  throw StorageError(closed_);
}

void EventLog::SyncInBackground() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    changed_.wait_for(lock, std::chrono::milliseconds(options_.sync_interval_ms), [this] { return stop_; });
    if (stop_ || leading_ || !unsynced_ || !closed_.empty()) continue;
    leading_ = true;
    lock.unlock();
    try {
      SyncFile();
    } catch (const StorageError&) {  // the next append tells
    }
    lock.lock();
    leading_ = false;
    changed_.notify_all();
  }
}

void EventLog::Sync() {
  std::unique_lock<std::mutex> lock = Lock();
  CheckOpen();
  changed_.wait(lock, [this] { return !leading_; });
  const std::size_t generation = failures_.size();
  Lead(&lock);
  if (failures_.size() > generation) throw StorageError(failures_[generation].message);
  changed_.wait(lock, [this] { return !leading_; });
  leading_ = true;
  lock.unlock();
  std::string problem;
  try {
    SyncFile();
  } catch (const StorageError& error) {
    problem = error.what();
  }
  lock.lock();
  leading_ = false;
  changed_.notify_all();
  if (!problem.empty()) throw StorageError(problem);
}

std::uint64_t EventLog::acknowledged() const {
  const std::unique_lock<std::mutex> lock = Lock();
  return acknowledged_;
}

void EventLog::Roll() {
  std::unique_lock<std::mutex> lock = Lock();
  CheckOpen();
  changed_.wait(lock, [this] { return !leading_; });
  const std::size_t generation = failures_.size();
  Lead(&lock);
  if (failures_.size() > generation) throw StorageError(failures_[generation].message);
  changed_.wait(lock, [this] { return !leading_; });
  if (segments_.back().first == acknowledged_ + 1) return;  // nothing in it yet
  leading_ = true;
  const std::uint64_t first = acknowledged_ + 1;
  lock.unlock();
  std::string problem;
  try {
    BeginSegment(first);
  } catch (const StorageError& error) {
    problem = error.what();
  }
  lock.lock();
  leading_ = false;
  changed_.notify_all();
  if (!problem.empty()) throw StorageError(problem);
}

bool EventLog::RemoveOldest(std::uint64_t covered) {
  std::unique_lock<std::mutex> lock = Lock();
  CheckOpen();
  changed_.wait(lock, [this] { return !leading_; });
  if (!stale_.empty()) {
    Drop(stale_[0]);
    stale_.erase(stale_.begin());
    return true;
  }
  if (segments_.size() < 2 || segments_[1].first > covered + 1) return false;
  Drop(segments_[0]);
  segments_.erase(segments_.begin());
  return true;
}

std::vector<std::string> EventLog::segments() const {
  const std::unique_lock<std::mutex> lock = Lock();
  std::vector<std::string> paths;
  for (const Segment& segment : segments_) paths.push_back(segment.path);
  return paths;
}

void EventLog::Read(std::size_t index, const std::function<void(const LogRecord&)>& visit) const {
  Segment segment;
  {
    const std::unique_lock<std::mutex> lock = Lock();
    if (index >= segments_.size())
      throw InvalidInputError("segment: expected a number below " + std::to_string(segments_.size()) + ", got " +
                              std::to_string(index));
    segment = segments_[index];
  }
  std::string bytes = ReadFile(segment.path);
  if (bytes.size() < segment.bytes) throw StorageError(segment.path + ": became shorter since the log was opened");
  if (segment.bytes > 0) bytes.resize(segment.bytes);
  const SegmentHeader header = ReadSegmentHeader(bytes, segment.path);
  const SegmentScan scan = ScanSegment(bytes, header, visit);
  if (!scan.damage.empty())
    throw StorageError(segment.path + ": damaged at offset " + std::to_string(scan.valid_bytes) +
                       " since the log was opened (" + scan.damage + ")");
}

void EventLog::Close() {
  if (forked_) return;
  if (background_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
      changed_.notify_all();
    }
    background_.join();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !leading_; });
  std::string problem;
  if (file_.get() >= 0 && closed_.empty()) {
    if (!pending_.empty()) Lead(&lock);
    changed_.wait(lock, [this] { return !leading_; });
    if (unsynced_ && closed_.empty() && options_.sync != SyncPolicy::kNever && ops_->Sync(file_.get()) != 0)
      problem = FileProblem("sync", segments_.back().path);
  }
  if (closed_.empty()) closed_ = folder_ + ": expected an open store, got one that was closed; open it again";
  file_.Reset(-1);
  lock_file_.reset();
  if (!problem.empty()) throw StorageError(problem);
}

}  // namespace embodied_mem

// An append-only, checksummed log of events in a folder: what was acknowledged is there after a crash at any point.
//
// One writer per folder (an flock), any number of read-only logs beside it. A writer's calls may come from any thread;
// threads that append at the same time share one write and one fsync (group commit). A record is acknowledged once it is
// written and, with SyncPolicy::kAlways, on the disk. A failed write is taken back and the log goes on; after a failed
// fsync nobody can know what is on the disk, so the log is closed for writing until it is opened again. A forked child has
// no part in the log of its parent: all calls but Close throw StorageError there, and the lock stays with the parent.
//
// Files: FOLDER/events-<first record, 16 hex digits>.log, see log_segment.h and docs/formats.md.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/fork_hook.h"
#include "memory/storage/file_ops.h"
#include "memory/storage/log_segment.h"

namespace embodied_mem {

enum class SyncPolicy {
  kAlways,    // fsync before a record is acknowledged: survives loss of power
  kInterval,  // fsync in the background every sync_interval_ms: survives a kill; loss of power costs that much
  kNever,     // survives a kill; loss of power costs what the system had not written yet
};

struct LogOptions {
  SyncPolicy sync = SyncPolicy::kAlways;
  std::int64_t sync_interval_ms = 100;
  std::size_t segment_bytes = std::size_t{16} << 20U;  // a new file is begun beyond this
  bool read_only = false;
  bool repair = false;  // cut at damage that acknowledged records lie behind, instead of refusing to open
};

// Something that was not a whole record when the log was opened.
struct LogDamage {
  std::string file;
  std::size_t offset = 0, num_bytes = 0;  // to the end of the file
  std::string reason;
  bool cut = false;  // taken off; false for a read-only log, which only ignores it
};

class EventLog {
 public:
  struct Ticket {
    std::uint64_t sequence, generation;
  };

  // Takes the folder, which exists, unless read-only. Throws StorageError when another writer has it.
  EventLog(std::string folder, std::string scope, const LogOptions& options, FileOps* ops = nullptr);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Finds the longest valid prefix behind record `covered`, up to which a snapshot has everything (0: none), and cuts a
  // torn tail. To be called once before anything else.
  // Throws StorageError: damage that acknowledged records lie behind, missing or foreign files, another version;
  // InvalidInputError: another scope.
  void Recover(std::uint64_t covered);
  const std::vector<LogDamage>& damage() const { return damage_; }

  // Appends and waits until it is acknowledged. Returns its number; numbers count up by one from 1.
  // Throws StorageError: it is not in the log, and nothing else was lost.
  std::uint64_t Append(std::uint32_t kind, std::string_view payload) { return Wait(Enqueue(kind, payload)); }
  // The same in two steps: Enqueue gives it its place, and Wait returns when it, and so all before it, is acknowledged.
  Ticket Enqueue(std::uint32_t kind, std::string_view payload);
  std::uint64_t Wait(const Ticket& ticket);
  // Writes what is enqueued, and fsyncs whatever the policy.
  void Sync();
  std::uint64_t acknowledged() const;

  // Begins a new file, so that RemoveOldest can remove all before it. Waits for what is enqueued.
  void Roll();
  // Removes the oldest file if it holds no record behind `covered` and is not the one written to; whether it did.
  bool RemoveOldest(std::uint64_t covered);

  std::vector<std::string> segments() const;  // paths, oldest first
  // Calls visit with each record of a segment in the order of writing, as it was when the log was recovered or, of a
  // writer, as far as it is acknowledged.
  void Read(std::size_t segment, const std::function<void(const LogRecord&)>& visit) const;

  // Syncs and lets go of the folder. The destructor does it too, and is silent about errors.
  void Close();

 private:
  struct Segment {
    std::string path;
    std::uint64_t first;
    std::size_t bytes;  // valid ones
  };
  struct Item {
    std::uint32_t kind;
    std::string payload;
  };
  struct Failure {
    std::uint64_t acknowledged;  // what was before it
    std::string message;
  };

  std::vector<Segment> List() const;
  void Drop(const Segment& segment);
  void OpenLast();
  void CheckOpen() const;
  void InChild();
  std::unique_lock<std::mutex> Lock() const;  // throws StorageError in a forked child
  void Lead(std::unique_lock<std::mutex>* lock);
  void WriteBatch(const std::vector<Item>& batch, std::uint64_t first);
  void BeginSegment(std::uint64_t first);
  void SyncFile();
  void SyncInBackground();

  const std::string folder_, scope_;
  const LogOptions options_;
  FileOps* const ops_;
  std::unique_ptr<FolderLock> lock_file_;
  std::vector<LogDamage> damage_;
  bool recovered_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool leading_ = false;  // a thread writes to the file without holding mutex_
  std::vector<Item> pending_;
  std::uint64_t next_ = 1, acknowledged_ = 0;
  std::vector<Failure> failures_;  // of generation 0, 1, ...
  std::string closed_;             // why no more can be written
  bool stop_ = false;
  std::thread background_;

  // Of the leader:
  std::vector<Segment> segments_;  // changed with mutex_ held, too
  std::vector<Segment> stale_;     // files before them that a snapshot covers
  OwnedFile file_;                 // the last one
  bool unsynced_ = false;

  const int process_;
  bool forked_ = false;  // this is a child of that process
  ForkHook hook_;
};

}  // namespace embodied_mem

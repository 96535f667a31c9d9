// Tests of the event log: torn and flipped files, damage in the middle, a refusing disk at every call, threads.
#include "memory/storage/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/crc32c.h"
#include "core/error.h"
#include "tests/check.h"
#include "tests/folder.h"

namespace embodied_mem {
namespace {

using testing::Folder;

const std::string kScope = R"({"user":"ann"})";

// Tests are about the order of calls; waiting for the disk adds nothing.
class NoSync : public FileOps {
 public:
  int Sync(int) override { return 0; }
};
NoSync no_sync;

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string Event(std::uint64_t i) { return "event " + std::to_string(i) + std::string(i % 7, '.'); }

// Opens and returns the payloads of all records.
std::vector<std::string> Contents(EventLog* log, std::uint64_t covered = 0) {
  log->Recover(covered);
  std::vector<std::string> contents;
  for (std::size_t i = 0; i < log->segments().size(); ++i)
    log->Read(i, [&](const LogRecord& record) {
      CHECK_EQ(record.sequence, covered + contents.size() + 1);
      contents.emplace_back(record.payload);
    });
  CHECK_EQ(log->acknowledged(), covered + contents.size());
  return contents;
}

// That the log in the folder holds the first `count` events, and says how often it was damaged.
void CheckPrefix(const std::string& folder, std::size_t least, std::size_t most, std::size_t num_damages,
                 const LogOptions& options = {}) {
  EventLog log(folder, kScope, options, &no_sync);
  const std::vector<std::string> contents = Contents(&log);
  CHECK(least <= contents.size() && contents.size() <= most);
  for (std::size_t i = 0; i < contents.size(); ++i) CHECK_EQ(contents[i], Event(i + 1));
  CHECK_EQ(log.damage().size(), num_damages);
  if (options.read_only) return;
  CHECK_EQ(log.Append(1, Event(contents.size() + 1)), contents.size() + 1);  // and it goes on
}

std::string MakeLog(const std::string& folder, std::uint64_t count, LogOptions options = {}) {
  EventLog log(folder, kScope, options, &no_sync);
  log.Recover(0);
  for (std::uint64_t i = 1; i <= count; ++i) CHECK_EQ(log.Append(1, Event(i)), i);
  return log.segments().back();
}

TEST(Checksum) {
  CHECK_EQ(Crc32c("123456789"), 0xE3069283U);  // the value that every description of CRC-32C gives
  CHECK_EQ(Crc32c("56789", Crc32c("1234")), 0xE3069283U);
  CHECK_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);
}

TEST(TornTail) {
  Folder folder;
  const std::string path = MakeLog(folder.path(), 5);
  const std::string whole = ReadFile(path);
  std::string header;
  PutSegmentHeader(&header, kScope, 1);
  std::vector<std::size_t> ends = {header.size()};
  for (std::uint64_t i = 1; i <= 5; ++i) ends.push_back(ends.back() + 28 + Event(i).size());
  CHECK_EQ(ends.back(), whole.size());
  for (std::size_t size = header.size(); size < whole.size(); ++size) {
    WriteFile(path, whole.substr(0, size));
    std::size_t kept = 0;
    while (ends[kept + 1] <= size) ++kept;
    LogOptions reader;
    reader.read_only = true;
    CheckPrefix(folder.path(), kept, kept, size == ends[kept] ? 0 : 1, reader);
    CHECK_EQ(ReadFile(path).size(), size);  // readers change nothing
    CheckPrefix(folder.path(), kept, kept, size == ends[kept] ? 0 : 1);
    CHECK_EQ(ReadFile(path).size(), ends[kept] + 28 + Event(kept + 1).size());
  }
  // A flipped bit in the last record is cut; before it, acknowledged records lie behind.
  for (std::size_t bit = 8 * header.size(); bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    WriteFile(path, flipped);
    if (bit >= 8 * ends[4]) {
      CheckPrefix(folder.path(), 4, 4, 1);
    } else if (bit >= 8 * ends[3]) {
      EventLog log(folder.path(), kScope, {}, &no_sync);
      CHECK_THROWS(log.Recover(0), StorageError,
                   "offset " + std::to_string(ends[3]));  // 5 says that 4 was acknowledged
    }
  }
}

TEST(Damage) {
  Folder folder;
  const std::string path = MakeLog(folder.path(), 5);
  const std::string whole = ReadFile(path);
  std::string header;
  PutSegmentHeader(&header, kScope, 1);
  const auto open = [&](bool repair = false, const std::string& scope = kScope) {
    LogOptions options;
    options.repair = repair;
    EventLog log(folder.path(), scope, options, &no_sync);
    log.Recover(0);
    CHECK_EQ(log.damage().size(), std::size_t{repair ? 1U : 0U});
    return log.acknowledged();
  };
  for (std::size_t bit = 8 * header.size(); bit < 8 * (header.size() + 28 + Event(1).size()); bit += 3) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    WriteFile(path, flipped);
    CHECK_THROWS(open(), StorageError, path + ": damaged at offset " + std::to_string(header.size()));
    CHECK_EQ(ReadFile(path), flipped);  // refused means untouched
  }
  CHECK_EQ(open(true), std::uint64_t{0});
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    WriteFile(path, flipped);
    CHECK_THROWS(open(), StorageError, path);
  }
  std::string later = whole;
  later[8] = 9;
  WriteFile(path, later);
  CHECK_THROWS(open(), StorageError, "expected format version 1, got 9");
  WriteFile(path, whole);
  CHECK_THROWS(open(false, R"({"user":"ben"})"), InvalidInputError, "expected the scope it was made with");
  CHECK_EQ(open(), std::uint64_t{5});
  // Writes that were never acknowledged may be torn anywhere: both records were of one write.
  std::string torn = header;
  PutRecord(&torn, {1, 0, 1, "first"});
  const std::size_t middle = torn.size() + 30;
  PutRecord(&torn, {2, 1, 1, "torn"});
  PutRecord(&torn, {3, 1, 1, "whole"});
  torn[middle] = '?';
  WriteFile(path, torn);
  {
    EventLog log(folder.path(), kScope, {}, &no_sync);
    log.Recover(0);
    CHECK_EQ(log.acknowledged(), std::uint64_t{1});
    CHECK_EQ(log.damage().size(), std::size_t{1});
  }
  {
    const EventLog first(folder.path(), kScope, {}, &no_sync);
    CHECK_THROWS(EventLog(folder.path(), kScope, {}), StorageError, "in process " + std::to_string(::getpid()));
  }
  // A file in the middle is missing.
  WriteFile(path, whole);
  LogOptions small;
  small.segment_bytes = 1;
  Folder several;
  MakeLog(several.path(), 4, small);
  ::unlink((several.path() + "/events-0000000000000002.log").c_str());
  EventLog log(several.path(), kScope, {}, &no_sync);
  CHECK_THROWS(log.Recover(0), StorageError, "expected record 2 next");
}

TEST(Segments) {
  Folder folder;
  LogOptions small;
  small.segment_bytes = 200;
  MakeLog(folder.path(), 30, small);
  {
    EventLog log(folder.path(), kScope, small, &no_sync);
    CHECK_EQ(Contents(&log).size(), std::size_t{30});
    CHECK(log.segments().size() > 3);
    log.Roll();
    log.Roll();
    const std::size_t count = log.segments().size();
    CHECK(log.RemoveOldest(30));
    while (log.RemoveOldest(30)) {
    }
    CHECK_EQ(log.segments().size(), std::size_t{1});
    CHECK(count > 4);
    CHECK_EQ(log.Append(1, Event(31)), std::uint64_t{31});
  }
  EventLog log(folder.path(), kScope, small, &no_sync);
  CHECK_THROWS(log.Recover(7), StorageError, "expected records from 8 on");
  CHECK_EQ(Contents(&log, 30).size(), std::size_t{1});
}

// Lets the n-th call fail, once or from then on, and a write be short.
class BadDisk : public NoSync {
 public:
  BadDisk(long n, int error, bool for_good) : left_(n), error_(error), for_good_(for_good) {}
  int Open(const std::string& path, int flags) override { return Fails() ? -1 : FileOps::Open(path, flags); }
  ssize_t Write(int file, const char* bytes, std::size_t count) override {
    if (!Fails()) return FileOps::Write(file, bytes, count);
    if (shorten_ && count > 1) {  // some of it, then the error
      shorten_ = false;
      left_ = 0;
      return FileOps::Write(file, bytes, count / 2);
    }
    return -1;
  }
  int Sync(int file) override { return Fails() ? -1 : NoSync::Sync(file); }
  int Truncate(int file, std::uint64_t size) override { return Fails() ? -1 : FileOps::Truncate(file, size); }
  int Rename(const std::string& a, const std::string& b) override { return Fails() ? -1 : FileOps::Rename(a, b); }
  int Unlink(const std::string& path) override { return Fails() ? -1 : FileOps::Unlink(path); }
  bool failed() const { return failed_; }

 private:
  bool Fails() {
    if (left_ < 0 || left_-- > 0) return false;
    if (for_good_) left_ = 0;
    failed_ = true;
    errno = error_;
    return true;
  }
  long left_;
  const int error_;
  const bool for_good_;
  bool shorten_ = true, failed_ = false;
};

TEST(BadDisk) {
  std::size_t num_failed = 0, num_went_on = 0, num_told = 0;
  for (const int error : {ENOSPC, EIO}) {
    for (const bool for_good : {false, true}) {
      for (long n = 0;; ++n) {
        Folder folder;
        BadDisk disk(n, error, for_good);
        LogOptions small;
        small.segment_bytes = 150;
        std::uint64_t acknowledged = 0;
        bool told = false;
        try {
          EventLog log(folder.path(), kScope, small, &disk);
          log.Recover(0);
          for (int attempt = 0; attempt < 14; ++attempt) {
            try {
              CHECK_EQ(log.Append(1, Event(acknowledged + 1)), acknowledged + 1);
              ++acknowledged;
              if (told) ++num_went_on;
            } catch (const StorageError& problem) {
              told = true;
              const std::string what = problem.what();
              CHECK(what.find(error == EIO ? "Input/output error" : "No space left") != std::string::npos);
              CHECK(what.find(folder.path()) != std::string::npos && what.find("not recorded") != std::string::npos);
            }
            if (attempt == 7) log.Roll();
          }
          log.Close();
        } catch (const StorageError&) {
          told = true;
        }
        if (!disk.failed()) break;
        ++num_failed;
        if (told) ++num_told;
        EventLog log(folder.path(), kScope, {}, &no_sync);
        const std::vector<std::string> contents = Contents(&log);
        CHECK(contents.size() >= acknowledged);
        CHECK(contents.size() <= acknowledged + 1);  // one may have been on its way
        for (std::size_t i = 0; i < contents.size(); ++i) CHECK_EQ(contents[i], Event(i + 1));
      }
    }
  }
  CHECK(num_failed > 100);
  CHECK_EQ(num_told, num_failed);
  CHECK(num_went_on > 100);
}

TEST(Threads) {
  for (const SyncPolicy sync : {SyncPolicy::kAlways, SyncPolicy::kInterval, SyncPolicy::kNever}) {
    Folder folder;
    LogOptions options;
    options.sync = sync;
    options.sync_interval_ms = 1;
    options.segment_bytes = 4000;
    constexpr int kThreads = 6, kEach = 60;
    std::vector<std::uint64_t> got[kThreads];
    std::atomic<bool> stop{false};
    std::atomic<int> num_reads{0};
    {
      EventLog log(folder.path(), kScope, options);
      log.Recover(0);
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
          for (int i = 0; i < kEach; ++i) got[t].push_back(log.Append(7, std::to_string(t) + " " + std::to_string(i)));
        });
      std::thread reader([&] {  // a read-only log beside it sees a prefix at any time
        while (!stop.load()) {
          LogOptions reading;
          reading.read_only = true;
          EventLog other(folder.path(), kScope, reading, &no_sync);
          other.Recover(0);
          std::uint64_t last = 0;
          for (std::size_t s = 0; s < other.segments().size(); ++s)
            other.Read(s, [&](const LogRecord& r) { CHECK_EQ(r.sequence, ++last); });
          num_reads.fetch_add(1);
        }
      });
      for (std::thread& thread : threads) thread.join();
      log.Sync();
      while (num_reads.load() < 2) std::this_thread::yield();
      stop = true;
      reader.join();
    }
    EventLog log(folder.path(), kScope, {}, &no_sync);
    const std::vector<std::string> contents = Contents(&log);
    CHECK_EQ(contents.size(), std::size_t{kThreads * kEach});
    for (int t = 0; t < kThreads; ++t)
      for (int i = 0; i < kEach; ++i)
        CHECK_EQ(contents[got[t][static_cast<std::size_t>(i)] - 1], std::to_string(t) + " " + std::to_string(i));
  }
}

}  // namespace
}  // namespace embodied_mem

// The system calls that durable files are written with, as an interface, so that tests can let any of them fail; and
// what is built from them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace embodied_mem {

// Each returns what its system call returns, -1 with errno set on failure.
class FileOps {
 public:
  virtual ~FileOps() = default;
  virtual int Open(const std::string& path, int flags);
  virtual ssize_t Write(int file, const char* bytes, std::size_t count);
  virtual int Sync(int file);
  virtual int Truncate(int file, std::uint64_t size);
  virtual int Rename(const std::string& from, const std::string& to);
  virtual int Unlink(const std::string& path);

  static FileOps* System();
};

// An open file that is closed at the end.
class OwnedFile {
 public:
  explicit OwnedFile(int file = -1) : file_(file) {}
  OwnedFile(OwnedFile&& other) noexcept : file_(other.Release()) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    Reset(other.Release());
    return *this;
  }
  ~OwnedFile() { Reset(-1); }
  int get() const { return file_; }
  int Release() {
    const int file = file_;
    file_ = -1;
    return file;
  }
  void Reset(int file);

 private:
  int file_;
};

// "cannot WHAT PATH: No space left on device", from errno.
std::string FileProblem(const char* what, const std::string& path);

// All of these throw StorageError.
void WriteAll(FileOps* ops, int file, std::string_view bytes, const std::string& path);
void SyncFolder(FileOps* ops, const std::string& folder);
std::string ReadFile(const std::string& path);

// The only writer of a folder: holds an flock on FOLDER/LOCK, which holds the writer's process id as text. The lock goes
// with the process, however it ends, if its forked children let go of their copies; a copy that goes takes nothing away.
class FolderLock {
 public:
  // Throws StorageError that names the process that has it.
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const pid_t process_;
  OwnedFile file_;
};

}  // namespace embodied_mem

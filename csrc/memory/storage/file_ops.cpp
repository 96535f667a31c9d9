#include "memory/storage/file_ops.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.h"

namespace embodied_mem {

int FileOps::Open(const std::string& path, int flags) { return ::open(path.c_str(), flags | O_CLOEXEC, 0644); }
ssize_t FileOps::Write(int file, const char* bytes, std::size_t count) { return ::write(file, bytes, count); }
int FileOps::Sync(int file) {
#if defined(__APPLE__)
  return ::fsync(file);
#else
  return ::fdatasync(file);
#endif
}
int FileOps::Truncate(int file, std::uint64_t size) { return ::ftruncate(file, static_cast<off_t>(size)); }
int FileOps::Rename(const std::string& from, const std::string& to) { return std::rename(from.c_str(), to.c_str()); }
int FileOps::Unlink(const std::string& path) { return ::unlink(path.c_str()); }

FileOps* FileOps::System() {
  static FileOps ops;
  return &ops;
}

void OwnedFile::Reset(int file) {
  if (file_ >= 0) ::close(file_);
  file_ = file;
}

std::string FileProblem(const char* what, const std::string& path) {
  return std::string("cannot ") + what + " " + path + ": " + std::strerror(errno);
}

void WriteAll(FileOps* ops, int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ops->Write(file, bytes.data(), bytes.size());
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      if (count == 0) errno = EIO;
      throw StorageError(FileProblem("write", path));
    }
  }
}

void SyncFolder(FileOps* ops, const std::string& folder) {
  const OwnedFile file(ops->Open(folder, O_RDONLY | O_DIRECTORY));
  if (file.get() < 0 || ops->Sync(file.get()) != 0) throw StorageError(FileProblem("sync the folder", folder));
}

std::string ReadFile(const std::string& path) {
  const OwnedFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw StorageError(FileProblem("open", path));
  struct stat about{};
  if (::fstat(file.get(), &about) != 0) throw StorageError(FileProblem("look at", path));
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t count = ::read(file.get(), &bytes[have], bytes.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw StorageError(FileProblem("read", path));
    if (count == 0) break;  // cut meanwhile
    have += static_cast<std::size_t>(count);
  }
  bytes.resize(have);
  return bytes;
}

FolderLock::FolderLock(const std::string& folder) : process_(::getpid()) {
  const std::string path = folder + "/LOCK";
  file_.Reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (file_.get() < 0) throw StorageError(FileProblem("open", path));
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw StorageError(FileProblem("lock", path));
    char text[32] = {};
    const ssize_t count = ::pread(file_.get(), text, sizeof(text) - 1, 0);
    const std::string owner(text, count > 0 ? std::strcspn(text, "\n") : 0);
    throw StorageError(folder + ": expected no other writer, got one in process " +
                       (owner.empty() ? "(unknown)" : owner) +
                       "; close it there, or open the store with read_only=True");
  }
  const std::string text = std::to_string(::getpid()) + "\n";
  if (::ftruncate(file_.get(), 0) != 0 || ::pwrite(file_.get(), text.data(), text.size(), 0) < 0)
    throw StorageError(FileProblem("write", path));
}

// Not by closing alone, since a child that was forked a moment ago may still have its copy.
FolderLock::~FolderLock() {
  if (::getpid() == process_) ::flock(file_.get(), LOCK_UN);
}

}  // namespace embodied_mem

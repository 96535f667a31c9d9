#include "core/atomic_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>

#include "core/error.h"

namespace embodied_mem {
namespace {

constexpr std::string_view kEnd = ".partial";
constexpr std::size_t kDigits = 16;

[[noreturn]] void Fail(const std::string& what, const std::string& path) {
  throw StorageError("cannot " + what + " " + path + ": " + std::strerror(errno));
}

// With the slash.
std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string RandomDigits() {
  std::random_device random;
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof(digits), "%08x%08x", random() & 0xFFFFFFFFU, random() & 0xFFFFFFFFU);
  return digits;
}

bool IsOurs(std::string_view entry, const std::string& name) {
  const std::string start = "." + name + ".";
  if (entry.size() != start.size() + kDigits + kEnd.size() || entry.substr(0, start.size()) != start) return false;
  const std::string_view digits = entry.substr(start.size(), kDigits);
  return entry.substr(start.size() + kDigits) == kEnd &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

void RemoveIfLeft(const std::string& leftover) {
  const int file = open(leftover.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;  // taken its place, or removed by another
  if (flock(file, LOCK_EX | LOCK_NB) == 0) unlink(leftover.c_str());
  close(file);
}

void RemoveLeftovers(const std::string& folder, const std::string& name) {
  DIR* const listed = opendir(folder.c_str());
  if (listed == nullptr) return;  // making the new file says why
  while (const dirent* entry = readdir(listed)) {
    if (IsOurs(entry->d_name, name)) RemoveIfLeft(folder + entry->d_name);
  }
  closedir(listed);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path)
    : path_(path),
      folder_(FolderOf(path)),
      name_(NameOf(path)),
      hook_([this] {  // a child does not hold the lock of a file that its parent writes
        if (file_ >= 0) close(file_);
        file_ = -1;
      }) {
  struct stat about{};
  if (name_.empty() || (stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode)))
    throw StorageError("cannot write " + path + ": expected the path of a file, got a folder");
  RemoveLeftovers(folder_, name_);
  while (true) {
    temporary_ = folder_ + "." + name_ + "." + RandomDigits() + std::string(kEnd);
    file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0) Fail("write", path_);
    while (flock(file_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      const int problem = errno;
      close(file_);
      unlink(temporary_.c_str());
      errno = problem;
      Fail("lock", temporary_);
    }
    // Between the two calls another writer may have taken it for a leftover.
    if (fstat(file_, &about) == 0 && about.st_nlink > 0) return;
    close(file_);
  }
}

AtomicFile::~AtomicFile() {
  if (!done_) unlink(temporary_.c_str());
  if (file_ >= 0) close(file_);
}

void AtomicFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) Fail("write", temporary_);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void AtomicFile::Commit() {
  if (fsync(file_) != 0) Fail("sync", temporary_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) Fail("rename " + temporary_ + " to", path_);
  done_ = true;
  const int folder = open(folder_.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = folder >= 0 && fsync(folder) == 0;
  const int problem = errno;
  if (folder >= 0) close(folder);
  errno = problem;
  if (!synced) Fail("sync the folder", folder_);
}

}  // namespace embodied_mem

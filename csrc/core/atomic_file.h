// A file that is replaced whole or not at all, and leaves nothing behind: the native twin of embodied_mem/atomic_file.py,
// with the same names (`.NAME.<16 hex digits>.partial`) and locks, so that each removes what killed writers of the other
// left.
//
//   AtomicFile file("memory/vectors.idx");
//   file.Write(bytes);
//   file.Commit();
#pragma once

#include <string>
#include <string_view>

#include "core/fork_hook.h"

namespace embodied_mem {

class AtomicFile {
 public:
  // Makes and locks a new file beside `path`, and removes what killed writers of `path` left there. Throws StorageError:
  // `path` is a folder, its folder is missing or read-only.
  explicit AtomicFile(const std::string& path);
  // Removes the new file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Throws StorageError.
  void Write(std::string_view bytes);
  // Puts the file, which is on the disk before, in the place of `path`. Once, at the end. Throws StorageError; `path` is
  // as it was then, unless only its folder could not be synced.
  void Commit();

 private:
  const std::string path_, folder_, name_;
  std::string temporary_;
  int file_ = -1;
  bool done_ = false;
  ForkHook hook_;
};

}  // namespace embodied_mem

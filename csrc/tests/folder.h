// A folder for tests of files.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace embodied_mem::testing {

// A folder that is emptied and removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "embodied_mem_log_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace embodied_mem::testing

// Tests of files that are replaced: whole or not at all, by many writers at once, and nothing left behind.
#include "core/atomic_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/check.h"
#include "tests/folder.h"

namespace embodied_mem {
namespace {

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Replace(const std::string& path, const std::string& bytes) {
  AtomicFile file(path);
  file.Write(bytes.substr(0, bytes.size() / 2));
  file.Write(bytes.substr(bytes.size() / 2));
  file.Commit();
}

TEST(WholeOrNotAtAll) {
  const testing::Folder folder;
  const std::string path = folder.path() + "/a";
  const std::vector<std::string> alone = {"a"};
  Replace(path, "old");
  Replace(path, "new one");
  CHECK_EQ(Bytes(path), "new one");
  CHECK(Names(folder.path()) == alone);
  {
    AtomicFile given_up(path);
    given_up.Write("half");
  }
  CHECK_EQ(Bytes(path), "new one");
  CHECK(Names(folder.path()) == alone);

  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile killed(path);
    killed.Write("secret");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  CHECK_EQ(Names(folder.path()).size(), 2U);
  const std::vector<std::string> foreign = {".a.0123.partial", ".a.0123456789ABCDEF.partial",
                                            ".b.0123456789abcdef.partial", "a.0123456789abcdef.partial", "a.tmp"};
  for (const std::string& name : foreign) std::ofstream(folder.path() + "/" + name) << "not ours";
  {
    std::optional<AtomicFile> running(path);
    Replace(path, "whole");  // does not take the running one for a leftover
    CHECK_EQ(Names(folder.path()).size(), foreign.size() + 2);
    running->Commit();
    CHECK_EQ(Bytes(path), "");
  }
  std::vector<std::string> expected = foreign;
  expected.push_back("a");
  std::sort(expected.begin(), expected.end());
  CHECK(Names(folder.path()) == expected);

  std::vector<std::thread> threads;
  for (const char letter : {'a', 'b', 'c'}) {
    threads.emplace_back([&path, letter] {
      for (int round = 0; round < 50; ++round) Replace(path, std::string(5000, letter));
    });
  }
  for (int round = 0; round < 100; ++round) {
    const std::string seen = Bytes(path);
    CHECK(seen.empty() || seen == std::string(5000, seen[0]));
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(Names(folder.path()) == expected);

  CHECK_THROWS(AtomicFile(folder.path()), StorageError, "got a folder");
  CHECK_THROWS(AtomicFile(folder.path() + "/"), StorageError, "got a folder");
  CHECK_THROWS(AtomicFile(folder.path() + "/none/a"), StorageError, "No such file");
}

}  // namespace
}  // namespace embodied_mem

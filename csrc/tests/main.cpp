// Runs native tests, which need no Python: `native_tests` all of them, `native_tests CASE...` these, `--list` names them.
// ctest runs each case by itself; with EMBODIED_MEM_SANITIZE under AddressSanitizer and UBSan, with
// EMBODIED_MEM_SANITIZE_THREAD under ThreadSanitizer.
#include <exception>
#include <vector>

#include "tests/check.h"

namespace embodied_mem::testing {
namespace {

int Run(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = Cases().find(name);
    if (found == Cases().end()) {
      std::cerr << "expected a case of `native_tests --list`, got " << name << "\n";
      return 2;
    }
    const int failures = Failures();
    try {
      found->second();
    } catch (const std::exception& error) {
      ++Failures();
      std::cerr << "uncaught: " << error.what() << "\n";
    }
    std::cout << name << (Failures() == failures ? ": passed" : ": failed") << std::endl;
  }
  return Failures() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace embodied_mem::testing

int main(int argc, char** argv) {
  using namespace embodied_mem::testing;
  std::vector<std::string> names(argv + 1, argv + argc);
  if (names == std::vector<std::string>{"--list"}) {
    for (const auto& [name, run] : Cases()) std::cout << name << "\n";
    return 0;
  }
  if (names.empty()) {
    for (const auto& [name, run] : Cases()) names.push_back(name);
  }
  return Run(names);
}

// A few macros for native tests: each test is a function, each failed check is printed with its line and counted.
#pragma once

#include <iostream>
#include <string>

namespace embodied_mem::testing {

inline int& Failures() {
  static int failures = 0;
  return failures;
}

template <typename A, typename B>
void Equal(const A& a, const B& b, const char* what, const char* file, int line) {
  if (a == b) return;
  ++Failures();
  std::cerr << file << ":" << line << ": " << what << ": " << a << " is not " << b << "\n";
}

}  // namespace embodied_mem::testing

#define CHECK_EQ(a, b) ::embodied_mem::testing::Equal((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK(condition) ::embodied_mem::testing::Equal(static_cast<bool>(condition), true, #condition, __FILE__, __LINE__)
// The message of the exception of this type that `expression` throws; a failure when it throws none.
#define CHECK_THROWS(expression, Type, message)                                          \
  do {                                                                                   \
    bool thrown = false;                                                                 \
    try {                                                                                \
      static_cast<void>(expression);                                                     \
    } catch (const Type& error) {                                                        \
      thrown = true;                                                                     \
      CHECK(std::string(error.what()).find(message) != std::string::npos);               \
    }                                                                                    \
    ::embodied_mem::testing::Equal(thrown, true, #expression " throws", __FILE__, __LINE__); \
  } while (false)

// What native tests are written with: TEST makes a case, CHECK prints what does not hold and its line.
//
//   TEST(Empty) { CHECK_EQ(Graph().size(), 0U); }      the case graph.Empty, if the file is called graph.cpp
//
// ctest runs each case in a process of its own; main.cpp finds them by Cases().
#pragma once

#include <functional>
#include <iostream>
#include <map>
#include <string>

namespace embodied_mem::testing {

inline std::map<std::string, std::function<void()>>& Cases() {
  static std::map<std::string, std::function<void()>> cases;
  return cases;
}

struct Case {
  Case(const std::string& file, const std::string& name, void (*run)()) {
    const std::size_t begin = file.rfind('/') + 1;
    Cases()[file.substr(begin, file.rfind('.') - begin) + "." + name] = run;
  }
};

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

#define TEST(name)                                                              \
  void Test##name();                                                            \
  const ::embodied_mem::testing::Case case_##name(__FILE__, #name, Test##name); \
  void Test##name()
#define CHECK_EQ(a, b) ::embodied_mem::testing::Equal((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK(condition) \
  ::embodied_mem::testing::Equal(static_cast<bool>(condition), true, #condition, __FILE__, __LINE__)
// The message of the exception of this type that `expression` throws; a failure when it throws none.
#define CHECK_THROWS(expression, Type, message)                                              \
  do {                                                                                       \
    bool thrown = false;                                                                     \
    try {                                                                                    \
      static_cast<void>(expression);                                                         \
    } catch (const Type& error) {                                                            \
      thrown = true;                                                                         \
      CHECK(std::string(error.what()).find(message) != std::string::npos);                   \
    }                                                                                        \
    ::embodied_mem::testing::Equal(thrown, true, #expression " throws", __FILE__, __LINE__); \
  } while (false)

// JSON, texts and the thread pool.
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"
#include "core/thread_pool.h"
#include "tests/check.h"

namespace embodied_mem {
namespace {

// What the parser says about a bad text, "" for a good one.
std::string JsonReason(std::string_view text) {
  try {
    ParseJson(text);
    return "";
  } catch (const TextError& error) {
    return error.reason;
  }
}

TEST(Json) {
  const JsonValue value =
      ParseJson(R"( {"a": "x\n\u00e9\ud83d\ude00", "b": [1, -0.5e+3, true, false, null, {}, []]} )");
  CHECK_EQ(value.members.size(), 2U);
  CHECK_EQ(value.Find("a")->text, "x\n\xC3\xA9\xF0\x9F\x98\x80");
  CHECK_EQ(value.Find("b")->items.size(), 7U);
  CHECK_EQ(value.Find("b")->items[1].text, "-0.5e+3");
  CHECK(value.Find("c") == nullptr);
  for (const char* bad : {"",
                          " ",
                          "{",
                          "}",
                          "[1,]",
                          "{\"a\":1,}",
                          "{\"a\" 1}",
                          "{1:2}",
                          "01",
                          "1.",
                          ".5",
                          "+1",
                          "1e",
                          "-",
                          "tru",
                          "nul",
                          "\"",
                          "\"\\",
                          "\"\\x\"",
                          "\"\\u12\"",
                          "\"\\ud800\"",
                          "\"\\ud800\\u0041\"",
                          "\"\\udc00\"",
                          "\"\n\"",
                          "1 2",
                          "\xFF",
                          "\"\xC0\x80\"",
                          "\"\xED\xA0\x80\"",
                          "{\"a\":1,\"a\":2}",
                          "NaN",
                          "'a'"}) {
    CHECK(!JsonReason(bad).empty());
  }
  CHECK_EQ(JsonReason(std::string(60, '[') + std::string(60, ']')), "");
  CHECK(JsonReason(std::string(1000000, '[')).find("nested deeper") != std::string::npos);
  std::string members = "{";
  for (int i = 0; i < 300; ++i) members += "\"m" + std::to_string(i) + "\":0,";
  CHECK(JsonReason(members + "\"z\":0}").find("members") != std::string::npos);
}

TEST(Text) {
  CHECK_EQ(DescribePosition("ab\ncd", 4), "line 2, column 2");
  CHECK_EQ(StripLikePython(" \t\n\x1c look \xC2\xA0\xE3\x80\x80\r"), "look");
  CHECK_EQ(StripLikePython("\xE2\x80\x8B"
                           "look"),
           "\xE2\x80\x8B"
           "look");                             // U+200B is no whitespace
  CHECK_EQ(StripLikePython(" \x85 "), "\x85");  // not UTF-8: no U+0085
  CHECK_EQ(StripLikePython(""), "");
  CHECK_EQ(FindInvalidUtf8("a\xC3\xA9"), std::string_view::npos);
  CHECK_EQ(FindInvalidUtf8("a\xC3"), 1U);
  CHECK_EQ(Fingerprint("a"), 0xAF63DC4C8601EC8CULL);  // published FNV-1a value
}

TEST(ThreadPool) {
  CHECK_THROWS(ThreadPool(0), InvalidInputError, "num_threads");
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> seen(57, 0);
    pool.Run(seen.size(), [&](std::size_t i) { ++seen[i]; });
    CHECK(seen == std::vector<int>(57, 1));
    CHECK_THROWS(pool.Run(40,
                          [](std::size_t i) {
                            if (i % 7 == 3) throw std::runtime_error("at " + std::to_string(i) + ".");
                          }),
                 std::runtime_error, "at 3.");
  }
  pool.Run(0, [](std::size_t) { throw std::runtime_error("never called"); });
}

}  // namespace
}  // namespace embodied_mem

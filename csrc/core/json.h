// A strict JSON reader for files of a few megabytes: RFC 8259, UTF-8 only, nesting at most kMaxJsonDepth.
//
// Every failure throws TextError with the byte offset; no input can make it recurse without bound, read past the end or
// take more memory than some 150 bytes a value and two bytes a byte. Numbers are checked and kept as text, since the readers here need none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"

namespace embodied_mem {

constexpr int kMaxJsonDepth = 64;
constexpr std::size_t kMaxJsonValues = std::size_t{1} << 21;  // ten times what the largest file of a world holds
constexpr std::size_t kMaxJsonMembers = 256;  // per object unless asked for more; members are found by a linear search

struct JsonValue {
  enum class Kind { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::size_t offset = 0;                                  // where the value starts in the text
  std::string text;                                        // of a string (decoded) or a number (as written)
  std::vector<JsonValue> items;                            // of an array
  std::vector<std::pair<std::string, JsonValue>> members;  // of an object, in the file's order, names unique

  // The member of that name, or nullptr.
  const JsonValue* Find(std::string_view name) const;
};

// The kind in words, with its article: "a string", "null", ...
const char* JsonKindName(JsonValue::Kind kind);

JsonValue ParseJson(std::string_view text);
// The same for files whose objects are larger; the cost of an object grows with the square of its members.
JsonValue ParseJson(std::string_view text, std::size_t max_members);

}  // namespace embodied_mem

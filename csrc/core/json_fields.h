// Typed access to a JsonValue: each function throws TextError with the place and what was expected there.
#pragma once

#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/json.h"
#include "core/text.h"

namespace embodied_mem {

constexpr std::size_t kMaxMembers = 4096;  // an episode lists the states of hundreds of handles

inline void Expect(const JsonValue& value, JsonValue::Kind kind, const std::string& what) {
  if (value.kind != kind) {
    throw TextError{value.offset, what + ": expected " + JsonKindName(kind) + ", got " + JsonKindName(value.kind)};
  }
}

inline const JsonValue& Member(const JsonValue& object, std::string_view name, JsonValue::Kind kind) {
  Expect(object, JsonValue::Kind::kObject, "the parent of '" + std::string(name) + "'");
  const JsonValue* member = object.Find(name);
  if (member == nullptr) throw TextError{object.offset, "the member '" + std::string(name) + "' is missing"};
  Expect(*member, kind, "'" + std::string(name) + "'");
  return *member;
}

inline const std::string& StringMember(const JsonValue& object, std::string_view name) {
  return Member(object, name, JsonValue::Kind::kString).text;
}

inline const std::vector<JsonValue>& ListMember(const JsonValue& object, std::string_view name) {
  return Member(object, name, JsonValue::Kind::kArray).items;
}

inline bool BoolMember(const JsonValue& object, std::string_view name) {
  const JsonValue* member = object.Find(name);
  if (member == nullptr || (member->kind != JsonValue::Kind::kTrue && member->kind != JsonValue::Kind::kFalse))
    throw TextError{member == nullptr ? object.offset : member->offset,
                    "expected '" + std::string(name) + "' to be true or false"};
  return member->kind == JsonValue::Kind::kTrue;
}

inline double Number(const JsonValue& value, const std::string& what) {
  Expect(value, JsonValue::Kind::kNumber, what);
  const double number = std::strtod(value.text.c_str(), nullptr);
  if (!std::isfinite(number) || std::abs(number) > 1e6)
    throw TextError{value.offset, what + ": expected a number of at most a million, got " + Quote(value.text)};
  return number;
}

// A whole number from 0 to `limit` - 1.
inline std::size_t Index(const JsonValue& value, std::size_t limit, const std::string& what) {
  const double number = Number(value, what);
  if (number < 0 || number != std::floor(number) || number >= static_cast<double>(limit)) {
    throw TextError{value.offset,
                    what + ": expected a whole number below " + std::to_string(limit) + ", got " + Quote(value.text)};
  }
  return static_cast<std::size_t>(number);
}

// Parses a file's text and hands its root to `read`; every TextError becomes a GameFileError that names the file.
template <typename Read>
auto ReadJson(std::string_view text, const std::string& file, Read read) {
  try {
    const JsonValue root = ParseJson(text, kMaxMembers);
    return read(root);
  } catch (const TextError& error) {
    throw GameFileError(file + ": " + DescribePosition(text, error.offset) + ": " + error.reason);
  }
}

}  // namespace embodied_mem

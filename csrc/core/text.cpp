#include "core/text.h"

#include <cstdint>
#include <cstring>

namespace embodied_mem {
namespace {

// Length in bytes of the Unicode whitespace that starts the text, 0 when there is none.
std::size_t LeadingWhitespace(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned b0 = byte(0), b1 = byte(1), b2 = byte(2);
  if (text.empty()) return 0;
  if ((b0 >= 0x09 && b0 <= 0x0D) || (b0 >= 0x1C && b0 <= 0x20)) return 1;
  if (b0 == 0xC2 && (b1 == 0x85 || b1 == 0xA0)) return 2;  // U+0085, U+00A0
  if (b0 == 0xE1 && b1 == 0x9A && b2 == 0x80) return 3;    // U+1680
  if (b0 == 0xE2 && b1 == 0x80 && ((b2 >= 0x80 && b2 <= 0x8A) || b2 == 0xA8 || b2 == 0xA9 || b2 == 0xAF)) return 3;
  if (b0 == 0xE2 && b1 == 0x81 && b2 == 0x9F) return 3;  // U+205F
  if (b0 == 0xE3 && b1 == 0x80 && b2 == 0x80) return 3;  // U+3000
  return 0;
}

std::size_t TrailingWhitespace(std::string_view text) {
  for (std::size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    if (LeadingWhitespace(text.substr(text.size() - length)) == length) return length;
  }
  return 0;
}

}  // namespace

std::string DescribePosition(std::string_view text, std::size_t offset) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

std::size_t FindInvalidUtf8(std::string_view text) {
  const std::size_t size = text.size();
  std::size_t i = 0;
  while (i < size) {
    if (std::uint64_t eight = 0; i + sizeof(eight) <= size) {  // of ASCII
      std::memcpy(&eight, text.data() + i, sizeof(eight));
      if ((eight & 0x8080808080808080ULL) == 0) {
        i += sizeof(eight);
        continue;
      }
    }
    const auto b0 = static_cast<unsigned char>(text[i]);
    if (b0 < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = b0 >= 0xF0 ? 4 : b0 >= 0xE0 ? 3 : 2;
    if (b0 < 0xC2 || b0 > 0xF4 || i + length > size) return i;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0U) != 0x80U) return i;
    }
    const auto b1 = static_cast<unsigned char>(text[i + 1]);
    if ((b0 == 0xE0 && b1 < 0xA0) || (b0 == 0xED && b1 >= 0xA0) || (b0 == 0xF0 && b1 < 0x90) ||
        (b0 == 0xF4 && b1 >= 0x90)) {
      return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

std::string_view StripLikePython(std::string_view text) {
  while (const std::size_t length = LeadingWhitespace(text)) text.remove_prefix(length);
  while (const std::size_t length = TrailingWhitespace(text)) text.remove_suffix(length);
  return text;
}

std::uint64_t Fingerprint(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3ULL;
  }
  return hash;
}

std::string Quote(std::string_view text) {
  constexpr std::size_t kMax = 40;
  std::string out = "'";
  for (const char c : text.substr(0, kMax)) out += (c >= 0x20 && c < 0x7F) ? c : '?';
  out += text.size() > kMax ? "...'" : "'";
  return out;
}

}  // namespace embodied_mem

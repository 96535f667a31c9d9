// Positions in a text, UTF-8 checks, stripping as Python does it, and a fingerprint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace embodied_mem {

// Thrown by parsers: a reason at a byte offset. Callers that know the file turn it into a GameFileError.
struct TextError {
  std::size_t offset;
  std::string reason;
};

// "line L, column C" of a byte offset; both count from 1, columns in bytes.
std::string DescribePosition(std::string_view text, std::size_t offset);

// Offset of the first byte that is not valid UTF-8 (no overlong forms, no surrogates), or npos.
std::size_t FindInvalidUtf8(std::string_view text);

// The text without the leading and trailing whitespace that Python's str.strip() removes.
std::string_view StripLikePython(std::string_view text);

// FNV-1a, 64 bits. A fingerprint to recognise known texts, no protection against forgery.
std::uint64_t Fingerprint(std::string_view text);

// At most 40 printable bytes of a text between quotation marks, for error messages.
std::string Quote(std::string_view text);

}  // namespace embodied_mem

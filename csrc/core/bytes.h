// Little-endian numbers in byte strings, for our file formats: written by appending, read with bounds checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/text.h"

namespace embodied_mem {

template <typename T>
void PutNumber(std::string* out, T value) {
  static_assert(std::is_integral_v<T>, "whole numbers only");
  const auto bits = static_cast<std::uint64_t>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>(bits >> (8 * i) & 255U));
}
// Its length as u32, then the text.
inline void PutText(std::string* out, std::string_view text) {
  PutNumber(out, static_cast<std::uint32_t>(text.size()));
  out->append(text);
}

// The number at `offset`, where there are enough bytes.
template <typename T>
T NumberAt(std::string_view bytes, std::size_t offset) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i);
  return static_cast<T>(bits);
}

// Reads one after the other; throws TextError with the offset where bytes are missing.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  std::size_t offset() const { return offset_; }
  std::size_t left() const { return bytes_.size() - offset_; }
  template <typename T>
  T Number() {
    Need(sizeof(T));
    const T value = NumberAt<T>(bytes_, offset_);
    offset_ += sizeof(T);
    return value;
  }
  std::string_view Take(std::size_t count) {
    Need(count);
    const std::string_view taken = bytes_.substr(offset_, count);
    offset_ += count;
    return taken;
  }
  std::string_view Text() { return Take(Number<std::uint32_t>()); }

 private:
  void Need(std::size_t count) const {
    if (count > left())
      throw TextError{offset_, "expected " + std::to_string(count) + " more bytes, got " + std::to_string(left())};
  }

  std::string_view bytes_;
  std::size_t offset_ = 0;
};

}  // namespace embodied_mem

#include "core/crc32c.h"

#include <array>
#include <cstddef>

namespace embodied_mem {
namespace {

using Table = std::array<std::array<std::uint32_t, 256>, 8>;

// tables[k][b]: what byte b adds when k more bytes follow it.
Table MakeTables() {
  Table tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t value = b;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0x82F63B78U : 0U);
    tables[0][b] = value;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t b = 0; b < 256; ++b) tables[k][b] = (tables[k - 1][b] >> 8U) ^ tables[0][tables[k - 1][b] & 255U];
  }
  return tables;
}

}  // namespace

std::uint32_t Crc32c(std::string_view bytes, std::uint32_t before) {
  static const Table tables = MakeTables();
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
  std::uint32_t crc = ~before;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    crc ^= byte(i) | byte(i + 1) << 8U | byte(i + 2) << 16U | byte(i + 3) << 24U;
    crc = tables[7][crc & 255U] ^ tables[6][crc >> 8U & 255U] ^ tables[5][crc >> 16U & 255U] ^ tables[4][crc >> 24U] ^
          tables[3][byte(i + 4)] ^ tables[2][byte(i + 5)] ^ tables[1][byte(i + 6)] ^ tables[0][byte(i + 7)];
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8U) ^ tables[0][(crc ^ byte(i)) & 255U];
  return ~crc;
}

}  // namespace embodied_mem

// CRC-32C (Castagnoli polynomial, reflected), the checksum of our files: finds all single bit flips and short bursts.
#pragma once

#include <cstdint>
#include <string_view>

namespace embodied_mem {

// The checksum of the bytes, or of what `before` is the checksum of followed by them.
std::uint32_t Crc32c(std::string_view bytes, std::uint32_t before = 0);

}  // namespace embodied_mem

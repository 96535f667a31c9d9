#include "models/transpose.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace embodied_mem {
namespace {

constexpr std::size_t kTile = 64;

// By tiles: each is copied first, since rows of a large matrix fall on the same few lines of a cache.
template <typename Item>
void TransposeItems(const std::byte* source, std::size_t source_stride, std::size_t num_rows, std::size_t num_columns,
                    std::byte* target, std::size_t target_stride) {
  Item tile[kTile][kTile];
  Item line[kTile];
  for (std::size_t row = 0; row < num_rows; row += kTile) {
    const std::size_t rows = std::min(kTile, num_rows - row);
    for (std::size_t column = 0; column < num_columns; column += kTile) {
      const std::size_t columns = std::min(kTile, num_columns - column);
      for (std::size_t i = 0; i < rows; ++i) {
        std::memcpy(tile[i], source + (row + i) * source_stride + column * sizeof(Item), columns * sizeof(Item));
      }
      for (std::size_t j = 0; j < columns; ++j) {
        for (std::size_t i = 0; i < rows; ++i) line[i] = tile[i][j];
        std::memcpy(target + (column + j) * target_stride + row * sizeof(Item), line, rows * sizeof(Item));
      }
    }
  }
}

}  // namespace

void Transpose(const std::byte* source, std::size_t source_stride, std::size_t num_rows, std::size_t num_columns,
               std::size_t item_bytes, std::byte* target, std::size_t target_stride) {
  if (item_bytes == 2) {
    TransposeItems<std::uint16_t>(source, source_stride, num_rows, num_columns, target, target_stride);
  } else if (item_bytes == 4) {
    TransposeItems<std::uint32_t>(source, source_stride, num_rows, num_columns, target, target_stride);
  } else {
    throw std::invalid_argument("transpose: expected numbers of 2 or 4 bytes, got " + std::to_string(item_bytes));
  }
}

}  // namespace embodied_mem

// The transpose of a matrix of numbers of 2 or 4 bytes, at about the speed of memory.
#pragma once

#include <cstddef>

namespace embodied_mem {

// Writes the transpose of source [num_rows][num_columns] to target [num_columns][num_rows]. Strides are of rows, in bytes;
// numbers of a row follow one another. No address needs to be aligned. `item_bytes` is 2 or 4; else std::invalid_argument.
void Transpose(const std::byte* source, std::size_t source_stride, std::size_t num_rows, std::size_t num_columns,
               std::size_t item_bytes, std::byte* target, std::size_t target_stride);

}  // namespace embodied_mem

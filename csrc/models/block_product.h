// The product of a few rows with a large matrix, at the speed of memory, as a function that XLA calls on a CPU.
//
// XLA's own products repack the matrix at every call, which is most of the time when there are few rows (tokens of a batch
// that are decoded), and one row is multiplied by one thread. Here the matrix [K, N] is repacked once, to
// float[ceil(N / 64)][K][64], columns beyond N zero: the blocks of the vector index (simd/simd.h), whose kernel does the
// work. Each sum runs over K in order, whatever the number of rows and threads.
#pragma once

#include <cstddef>

namespace embodied_mem {

// Writes float[num_rows][num_columns], the product of x float[num_rows][depth] and the blocks, which start at a multiple of
// kAlignment bytes. All cores work; one call at a time, others wait.
void MultiplyBlocks(const float* x, const float* blocks, std::size_t num_rows, std::size_t depth,
                    std::size_t num_columns, float* product);

// The same for XLA: XLA_FFI_Handler of the typed interface, arguments x and blocks, result product, all float32. Throws
// std::system_error where threads cannot be started.
void* BlockProductHandler();

}  // namespace embodied_mem

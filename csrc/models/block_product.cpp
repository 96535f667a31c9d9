#include "models/block_product.h"

#include <algorithm>
#include <cstring>

#include "models/short_loops.h"
#include "models/xla_call.h"
#include "simd/simd.h"

namespace embodied_mem {
namespace {

constexpr std::size_t kTileRows = 48;  // scores of a tile stay in the first-level cache
constexpr std::size_t kTaskRows = 4 * kTileRows;
constexpr std::size_t kTaskBytes = 1 << 18;  // of blocks

XlaError* Handle(XlaCall* call) {
  if (call->extension != nullptr) {
    if (call->extension->type == kXlaMetadata) DescribeHandler(call->extension);
    return nullptr;
  }
  const XlaBuffer &x = *call->arguments.buffers[0], &blocks = *call->arguments.buffers[1],
                  &product = *call->results.buffers[0];
  MultiplyBlocks(static_cast<const float*>(x.data), static_cast<const float*>(blocks.data),
                 static_cast<std::size_t>(x.dims[0]), static_cast<std::size_t>(x.dims[1]),
                 static_cast<std::size_t>(product.dims[1]), static_cast<float*>(product.data));
  return nullptr;
}

}  // namespace

void MultiplyBlocks(const float* x, const float* blocks, std::size_t num_rows, std::size_t depth,
                    std::size_t num_columns, float* product) {
  const SimdKernels& kernels = Kernels();
  const std::size_t block_size = depth * kBlockRows, num_blocks = (num_columns + kBlockRows - 1) / kBlockRows;
  const std::size_t per_task = std::max<std::size_t>(1, kTaskBytes / (block_size * sizeof(float)));
  const std::size_t num_groups = (num_blocks + per_task - 1) / per_task;
  const std::size_t num_parts = std::max<std::size_t>(1, (num_rows + kTaskRows - 1) / kTaskRows);
  SharedLoops().Run(num_groups * num_parts, [&](std::size_t task) {
    alignas(kAlignment) float scores[kTileRows * kBlockRows];
    const std::size_t first = task / num_parts * per_task, last = std::min(num_blocks, first + per_task);
    const std::size_t begin = task % num_parts * kTaskRows, end = std::min(num_rows, begin + kTaskRows);
    for (std::size_t block = first; block < last; ++block) {
      const std::size_t column = block * kBlockRows, width = std::min(kBlockRows, num_columns - column);
      for (std::size_t row = begin; row < end; row += kTileRows) {
        const std::size_t count = std::min(kTileRows, end - row);
        kernels.score_block(blocks + block * block_size, x + row * depth, depth, count, depth, scores);
        for (std::size_t i = 0; i < count; ++i)
          std::memcpy(product + (row + i) * num_columns + column, scores + i * kBlockRows, width * sizeof(float));
      }
    }
  });
}

void* BlockProductHandler() { return reinterpret_cast<void*>(&Handle); }

}  // namespace embodied_mem

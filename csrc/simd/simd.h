// The dot products of the vector index and the attention of models, written once and compiled for several instruction sets; the best one that the
// processor has is chosen at run time.
//
// Rows of floats are padded with zeros to a multiple of kLanes and start at multiples of kAlignment bytes. A block holds
// kBlockRows vectors by coordinate, float[dim][kBlockRows], so that one load brings one coordinate of many vectors: there is
// nothing to add up across lanes, and a score is the same sum in the same order whatever is computed beside it. With and
// without fused multiply-add (AVX2 and AVX-512 have it) the last bits of a score differ; nothing else does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace embodied_mem {

inline constexpr std::size_t kLanes = 16;
inline constexpr std::size_t kAlignment = 64;
inline constexpr std::size_t kBlockRows = 64;
inline constexpr std::size_t kMaxHeadDim = 128;

// The query heads that share one head of keys and values, of one sequence. A row is one position; `query_stride` and
// `key_stride` floats lie between rows, and the heads of a query lie one behind the other. `dim` is a multiple of kLanes, at
// most kMaxHeadDim. See models/attention.h.
struct AttentionHeads {
  std::size_t length, num_heads, dim, query_stride, key_stride;
  const float *query, *keys, *values;
  const std::uint8_t* mask;  // [length]
  float* context;            // like query
  float* log_sums;           // [num_heads][length]
  float* row_sums;           // [num_heads][length], scratch
};

struct AttentionGradients {
  const float* context;
  float *query, *keys, *values;
};

struct SimdKernels {
  const char* name;
  // Minus the dot product of two padded rows; `padded_dim` points to a std::size_t. Small is near, as hnswlib wants it.
  float (*distance)(const void* a, const void* b, const void* padded_dim);
  // The same of one row with four.
  void (*distance4)(const float* query, const float* const* rows, std::size_t padded_dim, float* distances);
  // Dot products of queries (each `stride` floats after the one before) with the vectors of a block, to
  // float[num_queries][kBlockRows].
  void (*score_block)(const float* block, const float* queries, std::size_t stride, std::size_t num_queries,
                      std::size_t dim, float* scores);
  // Bit i says whether scores[i] >= threshold, of kBlockRows scores.
  std::uint64_t (*at_least)(const float* scores, float threshold);
  // Writes `context` and `log_sums`, which the second reads to write all gradients but that of the context.
  void (*attend)(const AttentionHeads& heads);
  void (*attend_backward)(const AttentionHeads& heads, const AttentionGradients& gradients);
};

// The kernels that this processor can run, 0 is the best, the last is the baseline of the build.
std::size_t NumKernels();
const SimdKernels& Kernels(std::size_t i = 0);

}  // namespace embodied_mem

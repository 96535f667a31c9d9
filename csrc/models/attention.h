// Causal attention and its gradients without the matrix of scores, as functions that XLA calls on a CPU.
//
// XLA's own way writes and reads scores [B][K][G][L][L] several times per layer, half of them above the diagonal, which is
// half of the time of a training step of a small model. Here the scores of a few rows at a time live in the first-level
// cache; the backward pass computes them again from the logarithms of the rows' sums.
//
// Arrays are of floats: query, context and their gradients [B][L][K][G][E], keys, values and their gradients [B][L][K][E],
// mask bool[B][L], log_sums [B][K][G][L]. Position i attends to the positions j <= i where the mask is true. A position that
// may attend to nothing gets zeros and gives no gradient. Results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/short_loops.h"

namespace embodied_mem {

// B, L, K, G and E; E a multiple of kLanes, at most kMaxHeadDim (simd/simd.h).
struct AttentionSizes {
  std::size_t batch, length, kv_heads, groups, dim;
};

// Writes softmax(query keys^T) values, the query scaled by the caller, and log(sum(exp(query keys^T))). One call at a time,
// others wait.
void CausalAttention(const AttentionSizes& sizes, const float* query, const float* keys, const float* values,
                     const std::uint8_t* mask, float* context, float* log_sums, ShortLoops& loops = SharedLoops());

// What CausalAttention was given and gave.
struct AttentionPass {
  const float *query, *keys, *values;
  const std::uint8_t* mask;
  const float *context, *log_sums;
};

// Writes the gradients by query, keys and values, given that by the context.
void CausalAttentionBackward(const AttentionSizes& sizes, const AttentionPass& pass, const float* context_gradient,
                             float* query_gradient, float* key_gradient, float* value_gradient,
                             ShortLoops& loops = SharedLoops());

// The same for XLA: XLA_FFI_Handler of the typed interface. Arguments query, keys, values, mask and results context,
// log_sums; and arguments query, keys, values, mask, context, log_sums, gradient of the context and results gradients of
// query, keys, values. Throw std::bad_alloc and std::system_error where memory and threads cannot be had.
void* AttentionHandler();
void* AttentionBackwardHandler();

}  // namespace embodied_mem

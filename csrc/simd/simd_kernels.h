// The bodies of the kernels, for the instruction set of the file that includes this. Everything has internal linkage: were
// a function shared with files built for less, the linker could pick the copy that their processor cannot run. That is
// why no header with inline functions is included here.
#pragma once

#include "simd/attention_kernels.h"
#include "simd/lanes.h"

namespace embodied_mem {
namespace {

// Two sums hide the latency of the additions; 16 lanes are the unit, so 4-lane code has four.
constexpr std::size_t kSums = kLanes / kWidth < 2 ? 2 : kLanes / kWidth;

float Distance(const void* a_pointer, const void* b_pointer, const void* dim_pointer) {
  const auto* a = static_cast<const float*>(a_pointer);
  const auto* b = static_cast<const float*>(b_pointer);
  const std::size_t dim = *static_cast<const std::size_t*>(dim_pointer);
  Lanes sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 * kWidth <= dim; i += 4 * kWidth) {
#pragma GCC unroll 4
    for (std::size_t s = 0; s < 4; ++s) sums[s] += Load(a + i + s * kWidth) * Load(b + i + s * kWidth);
  }
  for (; i < dim; i += kWidth) sums[0] += Load(a + i) * Load(b + i);
  return -Sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void Distance4(const float* query, const float* const* rows, std::size_t dim, float* distances) {
  const float *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3];
  Lanes s0[kSums] = {}, s1[kSums] = {}, s2[kSums] = {}, s3[kSums] = {};
  std::size_t i = 0;
  const auto step = [&](std::size_t at, std::size_t s) __attribute__((always_inline)) {
    const Lanes q = Load(query + at);
    s0[s] += q * Load(r0 + at);
    s1[s] += q * Load(r1 + at);
    s2[s] += q * Load(r2 + at);
    s3[s] += q * Load(r3 + at);
  };
  for (; i + 2 * kWidth <= dim; i += 2 * kWidth) {
    step(i, 0);
    step(i + kWidth, 1);
  }
  if (i < dim) step(i, 0);
  distances[0] = -Sum(s0[0] + s0[1]);
  distances[1] = -Sum(s1[0] + s1[1]);
  distances[2] = -Sum(s2[0] + s2[1]);
  distances[3] = -Sum(s3[0] + s3[1]);
}

// Q queries with C registers of a block's vectors, all sums in registers.
template <std::size_t Q, std::size_t C>
inline __attribute__((always_inline)) void Tile(const float* block, const float* queries, std::size_t stride,
                                                std::size_t dim, float* scores) {
  Lanes sums[Q][C] = {};
  for (std::size_t d = 0; d < dim; ++d) {
    Lanes column[C];
#pragma GCC unroll 16
    for (std::size_t c = 0; c < C; ++c) column[c] = Load(block + d * kBlockRows + c * kWidth);
#pragma GCC unroll 16
    for (std::size_t q = 0; q < Q; ++q) {
      const float x = queries[q * stride + d];
#pragma GCC unroll 16
      for (std::size_t c = 0; c < C; ++c) sums[q][c] += column[c] * x;
    }
  }
#pragma GCC unroll 16
  for (std::size_t q = 0; q < Q; ++q) {
#pragma GCC unroll 16
    for (std::size_t c = 0; c < C; ++c)
      *reinterpret_cast<LooseLanes*>(scores + q * kBlockRows + c * kWidth) = sums[q][c];
  }
}

// AVX-512 has 32 registers, the others 16.
constexpr std::size_t kRegisters = kWidth == 16 ? 4 : 2;
constexpr std::size_t kRegistersAlone = kWidth == 16 ? 4 : 8;

template <std::size_t Q, std::size_t C>
void Tiles(const float* block, const float* queries, std::size_t stride, std::size_t dim, float* scores) {
  for (std::size_t c = 0; c < kBlockRows; c += C * kWidth) Tile<Q, C>(block + c, queries, stride, dim, scores + c);
}

void ScoreBlock(const float* block, const float* queries, std::size_t stride, std::size_t num_queries, std::size_t dim,
                float* scores) {
  while (num_queries >= 6) {
    Tiles<6, kRegisters>(block, queries, stride, dim, scores);
    queries += 6 * stride;
    scores += 6 * kBlockRows;
    num_queries -= 6;
  }
  switch (num_queries) {
    case 1: Tiles<1, kRegistersAlone>(block, queries, stride, dim, scores); break;
    case 2: Tiles<2, 4>(block, queries, stride, dim, scores); break;
    case 3: Tiles<3, kRegisters>(block, queries, stride, dim, scores); break;
    case 4: Tiles<4, kRegisters>(block, queries, stride, dim, scores); break;
    case 5: Tiles<5, kRegisters>(block, queries, stride, dim, scores); break;
    default: break;
  }
}

std::uint64_t AtLeast(const float* scores, float threshold) {
  std::uint64_t bits = 0;
#if defined(__AVX512F__)
  const __m512 limit = _mm512_set1_ps(threshold);
  for (std::size_t i = 0; i < kBlockRows; i += 16)
    bits |= static_cast<std::uint64_t>(_mm512_cmp_ps_mask(_mm512_loadu_ps(scores + i), limit, _CMP_GE_OQ)) << i;
#elif defined(__AVX2__)
  const __m256 limit = _mm256_set1_ps(threshold);
  for (std::size_t i = 0; i < kBlockRows; i += 8)
    bits |= static_cast<std::uint64_t>(static_cast<unsigned>(
                _mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(scores + i), limit, _CMP_GE_OQ))))
            << i;
#elif defined(__SSE2__)
  const __m128 limit = _mm_set1_ps(threshold);
  for (std::size_t i = 0; i < kBlockRows; i += 4)
    bits |= static_cast<std::uint64_t>(
                static_cast<unsigned>(_mm_movemask_ps(_mm_cmpge_ps(_mm_loadu_ps(scores + i), limit))))
            << i;
#else
  for (std::size_t i = 0; i < kBlockRows; ++i) bits |= static_cast<std::uint64_t>(scores[i] >= threshold) << i;
#endif
  return bits;
}

constexpr SimdKernels MakeKernels(const char* name) {
  return {name, &Distance, &Distance4, &ScoreBlock, &AtLeast, &Attend, &AttendBackward};
}

}  // namespace
}  // namespace embodied_mem

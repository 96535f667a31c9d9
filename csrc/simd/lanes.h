// Vectors of floats as wide as the instruction set of the file that includes this; the rules of simd_kernels.h hold.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "simd/simd.h"

namespace embodied_mem {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kWidth = 16;
#elif defined(__AVX2__)
constexpr std::size_t kWidth = 8;
#else
constexpr std::size_t kWidth = 4;
#endif

typedef float Lanes __attribute__((vector_size(kWidth * sizeof(float)), may_alias));
typedef float LooseLanes __attribute__((vector_size(kWidth * sizeof(float)), aligned(4), may_alias));

inline __attribute__((always_inline)) float Sum(Lanes lanes) {
  float parts[kWidth];
  __builtin_memcpy(parts, &lanes, sizeof(lanes));
  for (std::size_t half = kWidth / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
  return parts[0];
}

inline __attribute__((always_inline)) Lanes Load(const float* at) { return *reinterpret_cast<const Lanes*>(at); }
inline __attribute__((always_inline)) Lanes LoadLoose(const float* at) {
  return *reinterpret_cast<const LooseLanes*>(at);
}
inline __attribute__((always_inline)) void Store(float* at, Lanes lanes) { *reinterpret_cast<LooseLanes*>(at) = lanes; }

}  // namespace
}  // namespace embodied_mem

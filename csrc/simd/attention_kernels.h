// Causal attention of the heads that share their keys; the rules of simd_kernels.h hold.
//
// Source: Dao et al., FlashAttention (arXiv 2205.14135), algorithms 1 and 4. Deviations: the loop over keys is the outer one
// in both directions; scores above the diagonal are computed only as far as a register reaches.
#pragma once

#include "simd/lanes.h"

namespace embodied_mem {
namespace {

typedef std::uint32_t Words __attribute__((vector_size(kWidth * sizeof(std::uint32_t)), may_alias));

constexpr std::size_t kKeys = 64;                     // of a tile
constexpr std::size_t kGroup = kWidth == 16 ? 8 : 4;  // rows of a product in registers
constexpr std::size_t kQueries = 32;                  // of a tile in the backward pass
constexpr float kNever = -1e30F;                      // the score of a key that is not to be seen
constexpr float kLowest = -1e29F;                     // below all scores that count

inline __attribute__((always_inline)) Lanes Splat(float x) { return Lanes{} + x; }
inline __attribute__((always_inline)) Lanes Larger(Lanes a, Lanes b) { return a > b ? a : b; }

// The lanes of a vector joined by `join`, which takes two vectors of any width.
template <typename Join>
inline __attribute__((always_inline)) float Joined(Lanes lanes, const Join& join) {
  typedef float Four __attribute__((vector_size(16)));
  Four fours[kWidth / 4];
#if defined(__AVX2__)
  typedef float Eight __attribute__((vector_size(32)));
  Eight eights[kWidth / 8];
  __builtin_memcpy(eights, &lanes, sizeof(lanes));
  if (kWidth == 16) eights[0] = join(eights[0], eights[kWidth / 8 - 1]);
  __builtin_memcpy(fours, eights, sizeof(Eight));
  fours[0] = join(fours[0], fours[1]);
#else
  __builtin_memcpy(fours, &lanes, sizeof(lanes));
#endif
  const float last[4] = {fours[0][0], fours[0][1], fours[0][2], fours[0][3]};
  return join(join(last[0], last[2]), join(last[1], last[3]));
}

inline __attribute__((always_inline)) float Largest(Lanes lanes) {
  return Joined(lanes, [](auto a, auto b) __attribute__((always_inline)) { return a > b ? a : b; });
}

inline __attribute__((always_inline)) float Total(Lanes lanes) {
  return Joined(lanes, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}

// exp(x) for x <= 1: 2^n exp(r) with |r| <= ln(2) / 2, where the Taylor series to the sixth power is off by 1.2e-7 at most;
// 0 below -87.
inline __attribute__((always_inline)) Lanes Exp(Lanes x) {
  const float rounder = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded to a whole number, in the low bits
  const Lanes shifted = x * 1.44269504F + rounder, n = shifted - rounder;
  const Lanes r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // ln(2) in two parts, the first without rounding
  Lanes sum = r * (1.0F / 720) + 1.0F / 120;
  sum = sum * r + 1.0F / 24;
  sum = sum * r + 1.0F / 6;
  sum = sum * r + 0.5F;
  sum = sum * r + 1.0F;
  sum = sum * r + 1.0F;
  Words bits;
  __builtin_memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 127) << 23;
  Lanes power;
  __builtin_memcpy(&power, &bits, sizeof(bits));
  return x < -87.0F ? Lanes{} : sum * power;
}

// c += a b, or c = a b: a has R rows (`a_row` floats apart, its columns `a_depth` apart), b and c have C registers per row.
template <std::size_t R, std::size_t C>
inline __attribute__((always_inline)) void Product(const float* a, std::size_t a_row, std::size_t a_depth,
                                                   const float* b, std::size_t b_row, std::size_t depth, float* c,
                                                   std::size_t c_row, bool add) {
  Lanes sums[R][C] = {};
  for (std::size_t d = 0; d < depth; ++d) {
    Lanes row[C];
#pragma GCC unroll 16
    for (std::size_t j = 0; j < C; ++j) row[j] = LoadLoose(b + d * b_row + j * kWidth);
#pragma GCC unroll 16
    for (std::size_t i = 0; i < R; ++i) {
      const float x = a[i * a_row + d * a_depth];
#pragma GCC unroll 16
      for (std::size_t j = 0; j < C; ++j) sums[i][j] += row[j] * x;
    }
  }
#pragma GCC unroll 16
  for (std::size_t i = 0; i < R; ++i) {
#pragma GCC unroll 16
    for (std::size_t j = 0; j < C; ++j) {
      float* at = c + i * c_row + j * kWidth;
      Store(at, add ? LoadLoose(at) + sums[i][j] : sums[i][j]);
    }
  }
}

template <std::size_t R>
void Products(const float* a, std::size_t a_row, std::size_t a_depth, const float* b, std::size_t b_row,
              std::size_t columns, std::size_t depth, float* c, std::size_t c_row, bool add) {
  std::size_t j = 0;
  for (; j + 2 * kWidth <= columns; j += 2 * kWidth)
    Product<R, 2>(a, a_row, a_depth, b + j, b_row, depth, c + j, c_row, add);
  if (j < columns) Product<R, 1>(a, a_row, a_depth, b + j, b_row, depth, c + j, c_row, add);
}

// The same for 1 to kGroup rows and a multiple of kLanes columns.
void Multiply(const float* a, std::size_t a_row, std::size_t a_depth, const float* b, std::size_t b_row,
              std::size_t rows, std::size_t columns, std::size_t depth, float* c, std::size_t c_row, bool add) {
  while (rows > 0) {
    const std::size_t some = rows >= kGroup ? kGroup : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
    switch (some) {
      case 1: Products<1>(a, a_row, a_depth, b, b_row, columns, depth, c, c_row, add); break;
      case 2: Products<2>(a, a_row, a_depth, b, b_row, columns, depth, c, c_row, add); break;
      case 4: Products<4>(a, a_row, a_depth, b, b_row, columns, depth, c, c_row, add); break;
      default: Products<kGroup>(a, a_row, a_depth, b, b_row, columns, depth, c, c_row, add); break;
    }
    a += some * a_row;
    c += some * c_row;
    rows -= some;
  }
}

// To float[dim][kKeys] from `count` rows, zeros beyond them.
void Transpose(const float* rows, std::size_t stride, std::size_t count, std::size_t dim, float* columns) {
  std::size_t i = 0;
#if defined(__SSE2__)
  for (; i + 4 <= count; i += 4) {
    for (std::size_t d = 0; d < dim; d += 4) {
      const float* at = rows + i * stride + d;
      __m128 a = _mm_loadu_ps(at), b = _mm_loadu_ps(at + stride), c = _mm_loadu_ps(at + 2 * stride),
             e = _mm_loadu_ps(at + 3 * stride);
      _MM_TRANSPOSE4_PS(a, b, c, e);
      float* to = columns + d * kKeys + i;
      _mm_storeu_ps(to, a);
      _mm_storeu_ps(to + kKeys, b);
      _mm_storeu_ps(to + 2 * kKeys, c);
      _mm_storeu_ps(to + 3 * kKeys, e);
    }
  }
#endif
  for (; i < count; ++i)
    for (std::size_t d = 0; d < dim; ++d) columns[d * kKeys + i] = rows[i * stride + d];
  for (; i < kKeys; ++i)
    for (std::size_t d = 0; d < dim; ++d) columns[d * kKeys + i] = 0;
}

// The tile of keys from `start` on.
struct KeyTile {
  std::size_t start, count;
  bool seen;                              // whether any of them may be attended to
  alignas(kAlignment) float bias[kKeys];  // 0, or kNever for those that may not

  KeyTile(const AttentionHeads& heads, std::size_t start) : start(start), seen(false) {
    count = heads.length - start < kKeys ? heads.length - start : kKeys;
    for (std::size_t i = 0; i < kKeys; ++i) {
      const bool real = i < count && heads.mask[start + i] != 0;
      bias[i] = real ? 0 : kNever;
      seen = seen || real;
    }
  }
  // How many of its columns the queries before `end` may attend to, in whole registers of the widest kind.
  std::size_t Width(std::size_t end) const {
    const std::size_t below = (end - start + kLanes - 1) / kLanes * kLanes;
    return below < kKeys ? below : kKeys;
  }
  // scores[i] of the query at `row` at column c, or kNever.
  Lanes Biased(const float* scores, std::size_t row, std::size_t c) const {
    const Lanes biased = Load(scores + c) + Load(bias + c);
    if (row >= start + c + kWidth - 1) return biased;
    Words columns;
    for (std::size_t i = 0; i < kWidth; ++i) columns[i] = static_cast<std::uint32_t>(c + i);
    return columns > static_cast<std::uint32_t>(row - start) ? Splat(kNever) : biased;
  }
};

void Attend(const AttentionHeads& heads) {
  const std::size_t length = heads.length, dim = heads.dim, stride = heads.query_stride;
  alignas(kAlignment) float keys[kMaxHeadDim * kKeys], scores[kGroup * kKeys];
  for (std::size_t g = 0; g < heads.num_heads; ++g) {
    for (std::size_t row = 0; row < length; ++row) {
      heads.log_sums[g * length + row] = kLowest;  // the largest score so far, until the end
      heads.row_sums[g * length + row] = 0;
      __builtin_memset(heads.context + row * stride + g * dim, 0, dim * sizeof(float));
    }
  }
  for (std::size_t start = 0; start < length; start += kKeys) {
    const KeyTile tile(heads, start);
    if (!tile.seen) continue;
    Transpose(heads.keys + start * heads.key_stride, heads.key_stride, tile.count, dim, keys);
    for (std::size_t g = 0; g < heads.num_heads; ++g) {
      float *largest = heads.log_sums + g * length, *sums = heads.row_sums + g * length;
      for (std::size_t first = start; first < length; first += kGroup) {
        const std::size_t rows = length - first < kGroup ? length - first : kGroup, width = tile.Width(first + rows);
        Multiply(heads.query + first * stride + g * dim, stride, 1, keys, kKeys, rows, width, dim, scores, kKeys,
                 false);
        alignas(kAlignment) float now[kWidth] = {}, shrink[kWidth] = {};
        for (std::size_t i = 0; i < rows; ++i) {
          float* at = scores + i * kKeys;
          Lanes best = Splat(largest[first + i]);
          for (std::size_t c = 0; c < width; c += kWidth) {
            const Lanes biased = tile.Biased(at, first + i, c);
            Store(at + c, biased);
            best = Larger(best, biased);
          }
          now[i] = Largest(best);
          shrink[i] = largest[first + i] - now[i];
          largest[first + i] = now[i];
        }
        Store(shrink, Exp(Load(shrink)));
        for (std::size_t i = 0; i < rows; ++i) {
          float *at = scores + i * kKeys, *context = heads.context + (first + i) * stride + g * dim;
          Lanes total = {};
          for (std::size_t c = 0; c < width; c += kWidth) {
            const Lanes weight = Exp(Load(at + c) - now[i]);
            Store(at + c, weight);
            total += weight;
          }
          sums[first + i] = sums[first + i] * shrink[i] + Total(total);
          for (std::size_t d = 0; d < dim; d += kWidth) Store(context + d, LoadLoose(context + d) * shrink[i]);
        }
        Multiply(scores, kKeys, 1, heads.values + start * heads.key_stride, heads.key_stride, rows, dim,
                 width < tile.count ? width : tile.count, heads.context + first * stride + g * dim, stride, true);
      }
    }
  }
  for (std::size_t g = 0; g < heads.num_heads; ++g) {
    for (std::size_t row = 0; row < length; ++row) {
      float *log_sum = heads.log_sums + g * length + row, *context = heads.context + row * stride + g * dim;
      const float sum = heads.row_sums[g * length + row], inverse = sum > 0 ? 1 / sum : 0;
      for (std::size_t d = 0; d < dim; d += kWidth) Store(context + d, LoadLoose(context + d) * inverse);
      *log_sum = sum > 0 ? *log_sum + __builtin_logf(sum) : -kNever;
    }
  }
}

void AttendBackward(const AttentionHeads& heads, const AttentionGradients& gradients) {
  const std::size_t length = heads.length, dim = heads.dim, stride = heads.query_stride, key_stride = heads.key_stride;
  alignas(kAlignment) float keys[kMaxHeadDim * kKeys], values[kMaxHeadDim * kKeys];
  alignas(kAlignment) float weights[kQueries * kKeys], slopes[kQueries * kKeys];
  for (std::size_t row = 0; row < length; ++row) {
    __builtin_memset(gradients.keys + row * key_stride, 0, dim * sizeof(float));
    __builtin_memset(gradients.values + row * key_stride, 0, dim * sizeof(float));
    for (std::size_t g = 0; g < heads.num_heads; ++g) {
      const std::size_t at = row * stride + g * dim;
      __builtin_memset(gradients.query + at, 0, dim * sizeof(float));
      Lanes sum = {};
      for (std::size_t d = 0; d < dim; d += kWidth)
        sum += LoadLoose(gradients.context + at + d) * LoadLoose(heads.context + at + d);
      heads.row_sums[g * length + row] = Sum(sum);
    }
  }
  for (std::size_t start = 0; start < length; start += kKeys) {
    const KeyTile tile(heads, start);
    if (!tile.seen) continue;
    const float *key_rows = heads.keys + start * key_stride, *value_rows = heads.values + start * key_stride;
    Transpose(key_rows, key_stride, tile.count, dim, keys);
    Transpose(value_rows, key_stride, tile.count, dim, values);
    for (std::size_t g = 0; g < heads.num_heads; ++g) {
      const float *log_sums = heads.log_sums + g * length, *row_sums = heads.row_sums + g * length;
      for (std::size_t begin = start; begin < length; begin += kQueries) {
        const std::size_t end = length - begin < kQueries ? length : begin + kQueries;
        const float *query = heads.query + begin * stride + g * dim,
                    *out = gradients.context + begin * stride + g * dim;
        bool used = false;
        for (std::size_t i = 0; i < end - begin && !used; ++i)
          for (std::size_t d = 0; d < dim; ++d) used = used || out[i * stride + d] != 0;
        if (!used) continue;  // no gradient comes from these queries, at padding as a rule
        for (std::size_t first = 0; first < end - begin; first += kGroup) {
          const std::size_t rest = end - begin - first, rows = rest < kGroup ? rest : kGroup;
          const std::size_t width = tile.Width(begin + first + rows);
          float *weight = weights + first * kKeys, *slope = slopes + first * kKeys;
          Multiply(query + first * stride, stride, 1, keys, kKeys, rows, width, dim, weight, kKeys, false);
          Multiply(out + first * stride, stride, 1, values, kKeys, rows, width, dim, slope, kKeys, false);
          for (std::size_t i = 0; i < rows; ++i) {
            const std::size_t row = begin + first + i;
            for (std::size_t c = 0; c < width; c += kWidth) {
              const Lanes chance = Exp(tile.Biased(weight + i * kKeys, row, c) - log_sums[row]);
              Store(weight + i * kKeys + c, chance);
              Store(slope + i * kKeys + c, chance * (Load(slope + i * kKeys + c) - row_sums[row]));
            }
          }
          Multiply(slope, kKeys, 1, key_rows, key_stride, rows, dim, width < tile.count ? width : tile.count,
                   gradients.query + (begin + first) * stride + g * dim, stride, true);
        }
        for (std::size_t key = 0; key < tile.count && start + key < end; key += kGroup) {
          const std::size_t rows = tile.count - key < kGroup ? tile.count - key : kGroup;
          const std::size_t skip = start + key > begin ? start + key - begin : 0, depth = end - begin - skip;
          const std::size_t from = skip * kKeys + key, to = (start + key) * key_stride;
          Multiply(weights + from, 1, kKeys, out + skip * stride, stride, rows, dim, depth, gradients.values + to,
                   key_stride, true);
          Multiply(slopes + from, 1, kKeys, query + skip * stride, stride, rows, dim, depth, gradients.keys + to,
                   key_stride, true);
        }
      }
    }
  }
}

}  // namespace
}  // namespace embodied_mem

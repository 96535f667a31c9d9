// Vectors of texts: sums of those of their words, and which of some hundred texts have the highest dot products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace embodied_mem {

inline constexpr std::size_t kColumnLanes = 16;

// Scores are of `better`; those of `tied` are all `worst`.
struct NearestColumns {
  std::vector<std::int64_t> better, tied;
  std::vector<float> scores;
  float worst;
};

// The columns that score more than the k-th best score and than `above`, best first, ties by number; and those that have
// the k-th best score, if it is above the limit and fewer than k are better. `blocks` is float[][dim][kColumnLanes], each
// a part of the columns, which lie in memory as they are read; the first `count` columns count. k is at least 1, count
// too.
NearestColumns FindNearestColumns(const float* blocks, std::size_t dim, std::size_t count, const float* query,
                                  std::size_t k, float above);

// Adds float[dim] rows to `sum`, one after the other, and scales it to length 1, unless it is zero.
void AddAndScale(const std::vector<const float*>& rows, std::size_t dim, float* sum);

}  // namespace embodied_mem

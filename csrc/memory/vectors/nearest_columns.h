// The columns of a matrix with the highest dot products, for indexes of some hundred texts that change often.
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
// the k-th best score, if it is above the limit and fewer than k are better. `matrix` is float[dim][stride], of which the
// first `count` columns count; `stride` is a multiple of kColumnLanes. k is at least 1, count too.
NearestColumns FindNearestColumns(const float* matrix, std::size_t dim, std::size_t stride, std::size_t count,
                                  const float* query, std::size_t k, float above);

}  // namespace embodied_mem

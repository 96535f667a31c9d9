#include "memory/vectors/nearest_columns.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace embodied_mem {
namespace {

typedef float Lanes __attribute__((vector_size(kColumnLanes * sizeof(float))));

// Sums over the dimensions in which the query is not zero, in their order. 32 columns at a time stay in registers.
template <std::size_t kGroups>
void Score(const float* matrix, std::size_t stride, const float* query, const std::vector<std::size_t>& used,
           float* scores) {
  Lanes sums[kGroups] = {};
  for (const std::size_t d : used) {
    for (std::size_t group = 0; group < kGroups; ++group) {
      Lanes row;
      std::memcpy(&row, matrix + d * stride + group * kColumnLanes, sizeof(row));
      sums[group] += row * query[d];
    }
  }
  std::memcpy(scores, sums, sizeof(sums));
}

}  // namespace

NearestColumns FindNearestColumns(const float* matrix, std::size_t dim, std::size_t stride, std::size_t count,
                                  const float* query, std::size_t k, float above) {
  std::vector<std::size_t> used;
  for (std::size_t d = 0; d < dim; ++d)
    if (query[d] != 0) used.push_back(d);
  std::vector<float> scores((count + kColumnLanes - 1) / kColumnLanes * kColumnLanes);
  std::size_t column = 0;
  for (; column + kColumnLanes < scores.size(); column += 2 * kColumnLanes)
    Score<2>(matrix + column, stride, query, used, scores.data() + column);
  if (column < scores.size()) Score<1>(matrix + column, stride, query, used, scores.data() + column);
  scores.resize(count);

  NearestColumns found;
  std::vector<float> ranked = scores;
  const std::size_t kth = std::min(k, count) - 1;
  std::nth_element(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kth), ranked.end(), std::greater<>());
  found.worst = std::max(ranked[kth], above);
  for (std::size_t i = 0; i < count; ++i) {
    if (scores[i] > found.worst) found.better.push_back(static_cast<std::int64_t>(i));
    if (scores[i] == found.worst && found.worst > above) found.tied.push_back(static_cast<std::int64_t>(i));
  }
  std::stable_sort(found.better.begin(), found.better.end(), [&](std::int64_t a, std::int64_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  for (const std::int64_t i : found.better) found.scores.push_back(scores[static_cast<std::size_t>(i)]);
  return found;
}

}  // namespace embodied_mem

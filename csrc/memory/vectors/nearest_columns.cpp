#include "memory/vectors/nearest_columns.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

namespace embodied_mem {
namespace {

typedef float Four __attribute__((vector_size(16)));  // what one register of any processor of this kind holds

inline Four Load(const float* from) {
  Four four;
  std::memcpy(&four, from, sizeof(four));
  return four;
}

// Sums over the dimensions in which the query is not zero, in their order.
void Score(const float* block, const float* query, const std::vector<std::size_t>& used, float* scores) {
  static_assert(kColumnLanes == 16);
  Four a = {}, b = {}, c = {}, d = {};
  for (const std::size_t i : used) {
    const float* row = block + i * kColumnLanes;
    const float weight = query[i];
    a += Load(row) * weight;
    b += Load(row + 4) * weight;
    c += Load(row + 8) * weight;
    d += Load(row + 12) * weight;
  }
  for (const Four& sums : {a, b, c, d}) {
    std::memcpy(scores, &sums, sizeof(sums));
    scores += 4;
  }
}

}  // namespace

NearestColumns FindNearestColumns(const float* blocks, std::size_t dim, std::size_t count, const float* query,
                                  std::size_t k, float above) {
  std::vector<std::size_t> used;
  used.reserve(dim);
  for (std::size_t d = 0; d < dim; ++d)
    if (query[d] != 0) used.push_back(d);
  std::vector<float> scores((count + kColumnLanes - 1) / kColumnLanes * kColumnLanes);
  for (std::size_t column = 0; column < scores.size(); column += kColumnLanes)
    Score(blocks + column * dim, query, used, scores.data() + column);
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

void AddAndScale(const std::vector<const float*>& rows, std::size_t dim, float* sum) {
  for (const float* row : rows)
    for (std::size_t d = 0; d < dim; ++d) sum[d] += row[d];
  double squares = 0;
  for (std::size_t d = 0; d < dim; ++d) squares += static_cast<double>(sum[d]) * static_cast<double>(sum[d]);
  const auto length = static_cast<float>(std::sqrt(squares));
  if (length == 0) return;
  for (std::size_t d = 0; d < dim; ++d) sum[d] /= length;
}

}  // namespace embodied_mem

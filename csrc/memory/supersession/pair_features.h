// Features of a new statement and earlier ones of the same speaker, and the boosted trees that judge them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace embodied_mem {

// What is compared of a text; see embodied_mem/memory/supersession.py. `words`, `weights` and `is_late` have n values,
// `rows` n unit vectors of one width; `values` are sets, one for each kind. `sum` is that of the weighted rows.
struct Statement {
  std::vector<float> own;
  std::vector<std::int64_t> words;
  std::vector<float> weights;
  std::vector<std::uint8_t> is_late;
  std::vector<float> rows;
  std::vector<std::vector<std::int64_t>> values;
  std::vector<float> sum;
};

// The sum of a statement's weighted rows, without words that are marked.
std::vector<float> SumOfRows(const Statement& statement, const std::vector<std::uint8_t>& marked);

// How many features a pair has.
std::size_t NumPairFeatures(const Statement& statement);

// float[olds][features]. Lengths of `own` and `values` and the width are the same for all; distances are positive. The
// first `num_kinds` of the values have kinds of which the nearest one counts.
std::vector<float> PairFeatures(const Statement& now, const std::vector<const Statement*>& olds,
                                const std::vector<double>& distances, std::size_t num_kinds,
                                const std::vector<std::size_t>& differing);

// Full trees of one depth: float[trees][2^depth - 1] limits of features, double[trees][2^depth] leaves.
struct BoostedTrees {
  double bias;
  std::size_t depth;
  std::vector<std::int32_t> features;
  std::vector<float> limits;
  std::vector<double> leaves;

  // The chances that the trees give float[count][width] rows; all their features are in one.
  std::vector<double> Chances(const float* rows, std::size_t count, std::size_t width) const;
};

}  // namespace embodied_mem

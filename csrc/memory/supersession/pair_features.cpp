#include "memory/supersession/pair_features.h"

#include <algorithm>
#include <cmath>

namespace embodied_mem {
namespace {

constexpr std::size_t kNumShared = 24;
constexpr float kLeast = 1e-6F;

// What a pair shares.
struct Overlap {
  float new_whole = 0, old_whole = 0, new_shared = 0, old_shared = 0;
  float new_early = 0, new_late = 0, new_early_shared = 0, new_late_shared = 0;
  float old_early = 0, old_late = 0, old_early_shared = 0, old_late_shared = 0;
  float num_shared = 0, num_new_rest = 0, num_old_rest = 0;
  float rest = -1, whole_cosine = 0, rest_cosine = 0;

  float alike() const { return (new_shared + old_shared) / std::max(new_whole + old_whole, kLeast); }
};

// The cosine of two sums of rows; 0 for one of no words.
float CosineOfSums(const std::vector<float>& one, const std::vector<float>& other) {
  if (one.empty() || other.empty()) return 0;
  float product = 0, squares[2] = {0, 0};
  for (std::size_t k = 0; k < one.size(); ++k) {
    product += one[k] * other[k];
    squares[0] += one[k] * one[k];
    squares[1] += other[k] * other[k];
  }
  return product / std::sqrt(std::max(squares[0] * squares[1], kLeast));
}

// The largest product of one of some rows with one of others; -1 for none. Eight products go on at once, each in the
// order of its numbers, since one alone waits for each addition.
float LargestProduct(const std::vector<const float*>& some, const std::vector<const float*>& others,
                     std::size_t width) {
  constexpr std::size_t kSome = 2, kOthers = 4;
  float largest = -1;
  for (std::size_t i = 0; i < some.size(); i += kSome) {
    for (std::size_t j = 0; j < others.size(); j += kOthers) {
      const float *ones[kSome], *twos[kOthers];
      for (std::size_t a = 0; a < kSome; ++a) ones[a] = some[std::min(i + a, some.size() - 1)];
      for (std::size_t b = 0; b < kOthers; ++b) twos[b] = others[std::min(j + b, others.size() - 1)];
      float products[kSome][kOthers] = {};
      for (std::size_t k = 0; k < width; ++k)
        for (std::size_t a = 0; a < kSome; ++a)
          for (std::size_t b = 0; b < kOthers; ++b) products[a][b] += ones[a][k] * twos[b][k];
      for (const auto& row : products) largest = std::max(largest, *std::max_element(row, row + kOthers));
    }
  }
  return largest;
}

// The rows of words that are not marked.
std::vector<const float*> Unmarked(const Statement& statement, const std::vector<std::uint8_t>& marked,
                                   std::size_t width) {
  std::vector<const float*> rows;
  for (std::size_t i = 0; i < marked.size(); ++i)
    if (!marked[i]) rows.push_back(statement.rows.data() + i * width);
  return rows;
}

bool Contains(const std::vector<std::int64_t>& values, std::int64_t one) {
  return std::find(values.begin(), values.end(), one) != values.end();
}

// How many of some values others do not have.
std::size_t NumBeyond(const std::vector<std::int64_t>& values, const std::vector<std::int64_t>& others) {
  return static_cast<std::size_t>(
      std::count_if(values.begin(), values.end(), [&](std::int64_t one) { return !Contains(others, one); }));
}

Overlap Compare(const Statement& now, const Statement& old) {
  Overlap found;
  const std::size_t num_new = now.words.size(), num_old = old.words.size();
  const std::size_t width = num_new ? now.rows.size() / num_new : 0;
  std::vector<std::uint8_t> in_old(num_new), in_new(num_old);
  for (std::size_t i = 0; i < num_new; ++i)
    for (std::size_t j = 0; j < num_old; ++j)
      if (now.words[i] == old.words[j]) in_old[i] = in_new[j] = 1;
  for (std::size_t i = 0; i < num_new; ++i) {
    const float weight = now.weights[i], shared = in_old[i] ? weight : 0;
    found.new_whole += weight;
    found.new_shared += shared;
    (now.is_late[i] ? found.new_late : found.new_early) += weight;
    (now.is_late[i] ? found.new_late_shared : found.new_early_shared) += shared;
    (in_old[i] ? found.num_shared : found.num_new_rest) += 1;
  }
  for (std::size_t j = 0; j < num_old; ++j) {
    const float weight = old.weights[j], shared = in_new[j] ? weight : 0;
    found.old_whole += weight;
    found.old_shared += shared;
    (old.is_late[j] ? found.old_late : found.old_early) += weight;
    (old.is_late[j] ? found.old_late_shared : found.old_early_shared) += shared;
    if (!in_new[j]) found.num_old_rest += 1;
  }
  found.rest = LargestProduct(Unmarked(now, in_old, width), Unmarked(old, in_new, width), width);
  found.whole_cosine = found.rest_cosine = CosineOfSums(now.sum, old.sum);
  if (found.num_shared > 0) found.rest_cosine = CosineOfSums(SumOfRows(now, in_old), SumOfRows(old, in_new));
  return found;
}

}  // namespace

std::vector<float> SumOfRows(const Statement& statement, const std::vector<std::uint8_t>& marked) {
  const std::size_t width = statement.words.empty() ? 0 : statement.rows.size() / statement.words.size();
  std::vector<float> sum(width, 0);
  for (std::size_t i = 0; i < statement.words.size(); ++i) {
    if (!marked.empty() && marked[i]) continue;
    const float *row = statement.rows.data() + i * width, weight = statement.weights[i];
    for (std::size_t k = 0; k < width; ++k) sum[k] += weight * row[k];
  }
  return sum;
}

std::size_t NumPairFeatures(const Statement& statement) {
  return 2 * statement.own.size() + 6 * statement.values.size() + kNumShared;
}

std::vector<float> PairFeatures(const Statement& now, const std::vector<const Statement*>& olds,
                                const std::vector<double>& distances, std::size_t num_kinds,
                                const std::vector<std::size_t>& differing) {
  std::vector<float> features;
  features.reserve(olds.size() * (NumPairFeatures(now) + differing.size() + num_kinds));
  std::vector<Overlap> overlaps;
  for (const Statement* old : olds) overlaps.push_back(Compare(now, *old));
  const auto have_both = [&](std::size_t i, std::size_t kind) {
    return !now.values[kind].empty() && !olds[i]->values[kind].empty();
  };
  std::vector<std::size_t> nearest(num_kinds, olds.size());
  for (std::size_t kind = 0; kind < num_kinds; ++kind)
    for (std::size_t i = 0; i < olds.size(); ++i)
      if (have_both(i, kind) && (nearest[kind] == olds.size() || distances[i] < distances[nearest[kind]]))
        nearest[kind] = i;
  const double least = olds.empty() ? 0 : *std::min_element(distances.begin(), distances.end());
  for (std::size_t i = 0; i < olds.size(); ++i) {
    const Statement& old = *olds[i];
    const Overlap& its = overlaps[i];
    features.insert(features.end(), now.own.begin(), now.own.end());
    features.insert(features.end(), old.own.begin(), old.own.end());
    for (std::size_t at : differing) features.push_back(std::abs(now.own[at] - old.own[at]));
    for (std::size_t kind = 0; kind < now.values.size(); ++kind) {
      const auto &new_values = now.values[kind], &old_values = old.values[kind];
      const bool both = have_both(i, kind);
      const std::size_t new_rest = NumBeyond(new_values, old_values), old_rest = NumBeyond(old_values, new_values);
      const bool is_shared = new_rest < new_values.size();
      features.insert(features.end(), {float(both), float(both && !is_shared), float(is_shared && new_rest),
                                       float(is_shared && old_rest), float(!new_values.empty() && old_values.empty()),
                                       float(new_values.empty() && !old_values.empty())});
    }
    for (std::size_t kind = 0; kind < num_kinds; ++kind) features.push_back(nearest[kind] == i);
    float others = 0;
    for (std::size_t j = 0; j < olds.size(); ++j)
      if (j != i) others = std::max(others, overlaps[j].alike());
    const auto share = [](float part, float whole) { return part / std::max(whole, kLeast); };
    const float more[kNumShared] = {
        its.alike(),
        its.alike() - others,
        static_cast<float>(its.alike() >= others),
        its.new_shared,
        its.old_shared,
        share(its.new_shared, its.new_whole),
        share(its.old_shared, its.old_whole),
        its.new_whole - its.new_shared,
        its.old_whole - its.old_shared,
        share(its.new_early_shared, its.new_early),
        share(its.new_late_shared, its.new_late),
        share(its.old_early_shared, its.old_early),
        share(its.old_late_shared, its.old_late),
        its.new_early - its.new_early_shared,
        its.old_early - its.old_early_shared,
        its.num_shared,
        its.num_old_rest,
        its.num_new_rest,
        its.rest,
        its.whole_cosine,
        its.rest_cosine,
        static_cast<float>(std::log1p(distances[i])),
        static_cast<float>(distances[i] <= least),
        static_cast<float>(least == 1),
    };
    features.insert(features.end(), more, more + kNumShared);
  }
  return features;
}

std::vector<double> BoostedTrees::Chances(const float* rows, std::size_t count, std::size_t width) const {
  const std::size_t inner = (std::size_t{1} << depth) - 1;
  std::vector<double> scores(count, bias);
  std::vector<std::size_t> nodes(count);
  for (std::size_t tree = 0; tree * inner < features.size(); ++tree) {
    std::fill(nodes.begin(), nodes.end(), 0);
    const std::int32_t* its_features = features.data() + tree * inner;
    const float* its_limits = limits.data() + tree * inner;
    for (std::size_t level = 0; level < depth; ++level)  // of all rows, whose ways do not wait for each other
      for (std::size_t i = 0; i < count; ++i)
        nodes[i] = 2 * nodes[i] + 1 + (rows[i * width + its_features[nodes[i]]] > its_limits[nodes[i]]);
    for (std::size_t i = 0; i < count; ++i) scores[i] += leaves[tree * (inner + 1) + nodes[i] - inner];
  }
  for (double& score : scores) score = 1 / (1 + std::exp(-score));
  return scores;
}

}  // namespace embodied_mem

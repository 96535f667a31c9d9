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

// The cosine of the weighted sums of two statements' rows, without words that are marked.
float CosineOfSums(const Statement& one, const Statement& other, const std::vector<std::uint8_t>& one_marked,
                   const std::vector<std::uint8_t>& other_marked) {
  if (one.words.empty() || other.words.empty()) return 0;
  const std::size_t width = one.rows.size() / one.words.size();
  std::vector<float> sums[2];
  const auto add = [&](const Statement& its, const std::vector<std::uint8_t>& marked, std::vector<float>& sum) {
    sum.assign(width, 0);
    for (std::size_t i = 0; i < its.words.size(); ++i)
      for (std::size_t k = 0; k < width && (marked.empty() || !marked[i]); ++k)
        sum[k] += its.weights[i] * its.rows[i * width + k];
  };
  add(one, one_marked, sums[0]);
  add(other, other_marked, sums[1]);
  float product = 0, squares[2] = {0, 0};
  for (std::size_t k = 0; k < width; ++k) {
    product += sums[0][k] * sums[1][k];
    squares[0] += sums[0][k] * sums[0][k];
    squares[1] += sums[1][k] * sums[1][k];
  }
  return product / std::sqrt(std::max(squares[0] * squares[1], kLeast));
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
  for (std::size_t i = 0; i < num_new; ++i) {
    for (std::size_t j = 0; j < num_old; ++j) {
      if (in_old[i] || in_new[j]) continue;
      float cosine = 0;
      for (std::size_t k = 0; k < width; ++k) cosine += now.rows[i * width + k] * old.rows[j * width + k];
      found.rest = std::max(found.rest, cosine);
    }
  }
  found.whole_cosine = CosineOfSums(now, old, {}, {});
  found.rest_cosine = CosineOfSums(now, old, in_old, in_new);
  return found;
}

}  // namespace

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

double BoostedTrees::Chance(const float* row) const {
  const std::size_t inner = (std::size_t{1} << depth) - 1;
  double score = bias;
  for (std::size_t tree = 0; tree * inner < features.size(); ++tree) {
    std::size_t node = 0;
    for (std::size_t level = 0; level < depth; ++level) {
      const std::size_t at = tree * inner + node;
      node = 2 * node + 1 + (row[features[at]] > limits[at]);
    }
    score += leaves[tree * (inner + 1) + node - inner];
  }
  return 1 / (1 + std::exp(-score));
}

}  // namespace embodied_mem

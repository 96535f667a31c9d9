// Attention and its gradients against sums in double precision, with every kernel that this processor runs and with several
// threads.
#include "models/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "simd/simd.h"
#include "tests/check.h"

namespace embodied_mem {
namespace {

using Floats = std::vector<float>;

Floats Random(std::mt19937* rng, std::size_t size) {
  std::uniform_real_distribution<float> number(-1, 1);
  Floats numbers(size);
  for (float& x : numbers) x = number(*rng);
  return numbers;
}

struct Example {
  AttentionSizes sizes;
  Floats query, keys, values, slope;
  std::vector<std::uint8_t> mask;

  explicit Example(const AttentionSizes& sizes) : sizes(sizes) {
    std::mt19937 rng(static_cast<unsigned>(sizes.length + sizes.dim));
    const std::size_t num_keys = sizes.batch * sizes.length * sizes.kv_heads * sizes.dim;
    query = Random(&rng, num_keys * sizes.groups);
    slope = Random(&rng, num_keys * sizes.groups);
    keys = Random(&rng, num_keys);
    values = Random(&rng, num_keys);
    mask.resize(sizes.batch * sizes.length);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = rng() % 5 != 0 && i % sizes.length >= sizes.length / 4;
  }
};

struct Result {
  Floats context, log_sums, query, keys, values;
  bool operator==(const Result& other) const {
    return context == other.context && log_sums == other.log_sums && query == other.query && keys == other.keys &&
           values == other.values;
  }
};

Result Computed(const Example& x, ShortLoops& loops) {
  Result y{Floats(x.query.size()), Floats(x.query.size() / x.sizes.dim), Floats(x.query.size()), Floats(x.keys.size()),
           Floats(x.keys.size())};
  CausalAttention(x.sizes, x.query.data(), x.keys.data(), x.values.data(), x.mask.data(), y.context.data(),
                  y.log_sums.data(), loops);
  const AttentionPass pass{x.query.data(), x.keys.data(),    x.values.data(),
                           x.mask.data(),  y.context.data(), y.log_sums.data()};
  CausalAttentionBackward(x.sizes, pass, x.slope.data(), y.query.data(), y.keys.data(), y.values.data(), loops);
  return y;
}

// The largest difference of the gradients and the context from their definitions.
double Error(const Example& x, const Result& y) {
  const auto [batch, length, kv_heads, groups, dim] = x.sizes;
  std::vector<double> context(x.query.size()), query(x.query.size()), keys(x.keys.size()), values(x.keys.size());
  for (std::size_t head = 0; head < batch * kv_heads * groups; ++head) {
    const std::size_t b = head / (kv_heads * groups), h = head % (kv_heads * groups);
    const auto at = [&](std::size_t i) { return ((b * length + i) * kv_heads * groups + h) * dim; };
    const auto key_at = [&](std::size_t j) { return ((b * length + j) * kv_heads + h / groups) * dim; };
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<double> weights(length), slopes(length);
      double total = 0, mean = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        if (x.mask[b * length + j] == 0) continue;
        double score = 0;
        for (std::size_t d = 0; d < dim; ++d) {
          score += static_cast<double>(x.query[at(i) + d]) * x.keys[key_at(j) + d];
          slopes[j] += static_cast<double>(x.slope[at(i) + d]) * x.values[key_at(j) + d];
        }
        total += weights[j] = std::exp(score);
      }
      if (total == 0) continue;
      for (std::size_t j = 0; j <= i; ++j) mean += (weights[j] /= total) * slopes[j];
      for (std::size_t j = 0; j <= i; ++j) {
        for (std::size_t d = 0; d < dim; ++d) {
          const double slope = weights[j] * (slopes[j] - mean);
          context[at(i) + d] += weights[j] * x.values[key_at(j) + d];
          values[key_at(j) + d] += weights[j] * x.slope[at(i) + d];
          query[at(i) + d] += slope * x.keys[key_at(j) + d];
          keys[key_at(j) + d] += slope * x.query[at(i) + d];
        }
      }
    }
  }
  double largest = 0;
  const auto compare = [&](const std::vector<double>& expected, const Floats& got) {
    for (std::size_t i = 0; i < got.size(); ++i) largest = std::max(largest, std::abs(expected[i] - got[i]));
  };
  compare(context, y.context);
  compare(query, y.query);
  compare(keys, y.keys);
  compare(values, y.values);
  return largest;
}

// Sizes of one tile and of several, whole and not; a single row; heads that share keys and that do not.
const AttentionSizes kSizes[] = {
    {1, 1, 1, 1, 16}, {2, 64, 1, 3, 32}, {3, 131, 2, 2, 48}, {1, 77, 3, 1, 128}, {20, 9, 1, 4, 32}};

TEST(AgainstDoublesOnAnyThreads) {
  static ShortLoops& alone = *new ShortLoops(1);
  static ShortLoops& three = *new ShortLoops(3);
  for (const AttentionSizes& sizes : kSizes) {
    const Example example(sizes);
    const Result result = Computed(example, three);
    CHECK(Error(example, result) < 2e-5);
    CHECK(result == Computed(example, alone));
  }
}

TEST(SeveralCallers) {
  bool right[3] = {};
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < 3; ++i)
    callers.emplace_back([&right, i] {
      const Example example(kSizes[i + 1]);
      right[i] = Error(example, Computed(example, SharedLoops())) < 2e-5;
    });
  for (std::thread& caller : callers) caller.join();
  for (bool one : right) CHECK(one);
}

TEST(EveryInstructionSet) {
  const Example x({1, 150, 1, 2, 32});
  for (std::size_t i = 0; i < NumKernels(); ++i) {
    const SimdKernels& kernels = Kernels(i);
    Result y{Floats(x.query.size()), Floats(x.query.size() / 32), Floats(x.query.size()), Floats(x.keys.size()),
             Floats(x.keys.size())};
    Floats row_sums(y.log_sums.size());
    const AttentionHeads heads{150,
                               2,
                               32,
                               64,
                               32,
                               x.query.data(),
                               x.keys.data(),
                               x.values.data(),
                               x.mask.data(),
                               y.context.data(),
                               y.log_sums.data(),
                               row_sums.data()};
    kernels.attend(heads);
    kernels.attend_backward(heads, {x.slope.data(), y.query.data(), y.keys.data(), y.values.data()});
    CHECK(Error(x, y) < 2e-5);
  }
}

}  // namespace
}  // namespace embodied_mem

// The product of rows with a large matrix against sums in double precision, from several threads at once.
#include "models/block_product.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "simd/simd.h"
#include "tests/check.h"

namespace embodied_mem {
namespace {

// Whether a random product of this shape is right, five times.
bool IsRight(std::size_t num_rows, std::size_t depth, std::size_t num_columns) {
  std::mt19937 rng(static_cast<unsigned>(num_rows + depth + num_columns));
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> x(num_rows * depth), matrix(depth * num_columns), product(num_rows * num_columns);
  for (float& value : x) value = number(rng);
  for (float& value : matrix) value = number(rng);
  const std::size_t size = (num_columns + kBlockRows - 1) / kBlockRows * depth * kBlockRows;
  auto* blocks = static_cast<float*>(::operator new(size * sizeof(float), std::align_val_t{kAlignment}));
  for (std::size_t i = 0; i < size; ++i) blocks[i] = 0;
  for (std::size_t d = 0; d < depth; ++d)
    for (std::size_t c = 0; c < num_columns; ++c)
      blocks[(c / kBlockRows * depth + d) * kBlockRows + c % kBlockRows] = matrix[d * num_columns + c];
  double largest = 0;
  for (int round = 0; round < 5; ++round) {
    MultiplyBlocks(x.data(), blocks, num_rows, depth, num_columns, product.data());
    for (std::size_t row = 0; row < num_rows; ++row)
      for (std::size_t c = 0; c < num_columns; ++c) {
        double sum = 0;
        for (std::size_t d = 0; d < depth; ++d)
          sum += static_cast<double>(x[row * depth + d]) * matrix[d * num_columns + c];
        largest = std::max(largest, std::abs(sum - product[row * num_columns + c]));
      }
  }
  ::operator delete(blocks, std::align_val_t{kAlignment});
  return largest < 1e-4;
}

TEST(AgainstDoubles) {
  bool right[4] = {};
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < 4; ++i)
    callers.emplace_back([&right, i] { right[i] = IsRight(1 + 100 * i, 60 - 7 * i, 50 + 333 * i); });
  for (std::thread& caller : callers) caller.join();
  for (bool one : right) CHECK(one);
}

}  // namespace
}  // namespace embodied_mem

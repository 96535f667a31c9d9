// The points that vectors are grouped around, found by k-means.
//
// Distances are those of codes (code_list.h), which are near enough. The result depends on the rows and their order
// only, not on the number of threads.
#pragma once

#include <cstddef>
#include <vector>

#include "memory/vectors/code_list.h"

namespace embodied_mem {

class Centroids {
 public:
  explicit Centroids(std::size_t padded_dim) : padded_dim_(padded_dim), codes_(padded_dim) {}
  // From rows, each padded: `count` of them, evenly spaced, moved to the mean of the rows nearest to them, several times.
  // rows: at least `count`, which is at least 1.
  Centroids(std::size_t padded_dim, const std::vector<const float*>& rows, std::size_t count, std::size_t num_threads);

  std::size_t size() const { return half_squares_.size(); }
  const float* Row(std::size_t i) const { return rows_.data() + i * padded_dim_; }
  const CodeList& codes() const { return codes_; }
  void Append(const float* row);
  void Set(std::size_t i, const float* row);
  // The nearest one to each row, the first of equally near ones.
  std::vector<std::uint32_t> Nearest(const std::vector<const float*>& rows, std::size_t num_threads) const;

 private:
  std::uint32_t Nearest(const QueryCode& row) const;

  std::size_t padded_dim_;
  std::vector<float> rows_;
  std::vector<float> half_squares_;  // half of the squared length of each
  CodeList codes_;
};

}  // namespace embodied_mem

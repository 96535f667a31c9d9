// Vectors in a quarter of the bytes, for a first look: each coordinate a whole number of 8 bits, with a scale per vector.
//
// A score of codes is within about a thousandth of the length of both vectors of the true one, which orders those that are
// not very near each other; the best are scored again by their floats. Codes are a function of the floats alone, and their
// scores are the same bits on every processor. No checks and no locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/vectors/vector_store.h"

namespace embodied_mem {

// A query as codes: whole numbers within +-kMaxQueryCode times `scale`.
struct QueryCode {
  // row: padded float[padded_dim].
  void Encode(const float* row, std::size_t padded_dim);

  std::vector<std::int8_t> codes;
  float scale = 0;
  float norm = 0;
  std::int32_t offset = 0;  // what codes are above zero by, times the sum of the query's codes
};

class CodeList {
 public:
  // How many are scored at a time.
  static constexpr std::size_t kGroup = 4 * kCodeRows;

  explicit CodeList(std::size_t padded_dim) : padded_dim_(padded_dim) {}

  std::size_t size() const { return size_; }
  void Append(const float* row);
  void Set(std::size_t position, const float* row);
  // The last one moves to the place, and its own place is overwritten.
  void Remove(std::size_t position);
  // Scores of positions [begin, begin + kGroup), as far as there are that many, to scores[kGroup]; begin: a multiple of
  // kGroup below size(). What is written beyond the size means nothing.
  void Score(const QueryCode& query, std::size_t begin, float* scores) const;

 private:
  struct alignas(kAlignment) Line {
    std::uint8_t bytes[kAlignment];
  };
  // The four bytes of coordinates [4 quad, 4 quad + 4).
  std::uint8_t* At(std::size_t position, std::size_t quad);

  std::size_t padded_dim_, size_ = 0;
  std::vector<Line> lines_;  // blocks of codes (simd.h), a line for each four coordinates
  std::vector<float> scales_;
};

}  // namespace embodied_mem

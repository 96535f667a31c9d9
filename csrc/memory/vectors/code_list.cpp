#include "memory/vectors/code_list.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace embodied_mem {
namespace {

constexpr int kZero = 128, kMaxCode = 127;
static_assert(4 * kCodeRows == kAlignment, "a line holds four coordinates of a block");

// By lanes, since compilers keep to the order of comparisons as to that of sums.
float Largest(const float* row, std::size_t padded_dim) {
  float lanes[kLanes] = {};
  for (std::size_t d = 0; d < padded_dim; d += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const float size = std::fabs(row[d + i]);
      lanes[i] = size > lanes[i] ? size : lanes[i];
    }
  }
  return *std::max_element(lanes, lanes + kLanes);
}

// What a row is multiplied by so that its largest number becomes `code`; rows as good as zero become zeros.
float Multiplier(float largest, int code) { return largest > 1e-30F ? static_cast<float>(code) / largest : 0; }

// The nearest whole number, halves up; `zero` keeps what is rounded positive.
inline int Rounded(float value, int zero) { return static_cast<int>(value + static_cast<float>(zero) + 0.5F); }

}  // namespace

void QueryCode::Encode(const float* row, std::size_t padded_dim) {
  codes.resize(padded_dim);
  const float largest = Largest(row, padded_dim);
  scale = largest / static_cast<float>(kMaxQueryCode);
  const float by = Multiplier(largest, kMaxQueryCode);
  std::int32_t sum = 0;
  float squares[kLanes] = {};
  for (std::size_t d = 0; d < padded_dim; d += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const int code = Rounded(row[d + i] * by, kMaxQueryCode) - kMaxQueryCode;
      codes[d + i] = static_cast<std::int8_t>(code);
      sum += code;
      squares[i] += row[d + i] * row[d + i];
    }
  }
  for (std::size_t i = 1; i < kLanes; ++i) squares[0] += squares[i];
  norm = std::sqrt(squares[0]);
  offset = kZero * sum;
}

std::uint8_t* CodeList::At(std::size_t position, std::size_t quad) {
  return lines_[position / kCodeRows * (padded_dim_ / 4) + quad].bytes + position % kCodeRows * 4;
}

void CodeList::Append(const float* row) {
  const std::size_t blocks = size_ / kCodeRows + 1;
  if (size_ % kCodeRows == 0) {
    scales_.resize(blocks * kCodeRows);
    lines_.resize(blocks * (padded_dim_ / 4));
  }
  Set(size_++, row);
}

void CodeList::Set(std::size_t position, const float* row) {
  const float largest = Largest(row, padded_dim_);
  const float by = Multiplier(largest, kMaxCode);
  for (std::size_t quad = 0; quad < padded_dim_ / 4; ++quad) {
    std::uint8_t* at = At(position, quad);
    for (std::size_t i = 0; i < 4; ++i) at[i] = static_cast<std::uint8_t>(Rounded(row[4 * quad + i] * by, kZero));
  }
  scales_[position] = largest / static_cast<float>(kMaxCode);
}

void CodeList::Remove(std::size_t position) {
  const std::size_t last = --size_;
  for (std::size_t quad = 0; quad < padded_dim_ / 4; ++quad) {
    std::uint8_t* from = At(last, quad);
    if (position != last) std::memcpy(At(position, quad), from, 4);
    std::memset(from, 0, 4);
  }
  scales_[position] = scales_[last];
  scales_[last] = 0;
  if (last % kCodeRows == 0) {
    lines_.resize(last / kCodeRows * (padded_dim_ / 4));
    scales_.resize(last);
  }
}

void CodeList::Score(const QueryCode& query, std::size_t begin, float* scores) const {
  const std::size_t blocks = std::min(kGroup, size_ - begin + kCodeRows - 1) / kCodeRows;
  Kernels().score_codes(lines_[begin / kCodeRows * (padded_dim_ / 4)].bytes, blocks, query.codes.data(), padded_dim_,
                        query.offset, scales_.data() + begin, query.scale, scores);
}

}  // namespace embodied_mem

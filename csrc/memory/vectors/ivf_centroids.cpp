#include "memory/vectors/ivf_centroids.h"

#include <algorithm>
#include <limits>

#include "core/thread_pool.h"

namespace embodied_mem {
namespace {

constexpr int kRounds = 6;

}  // namespace

Centroids::Centroids(std::size_t padded_dim, const std::vector<const float*>& rows, std::size_t count,
                     std::size_t num_threads)
    : Centroids(padded_dim) {
  for (std::size_t i = 0; i < count; ++i) Append(rows[i * rows.size() / count]);
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<std::uint32_t> nearest = Nearest(rows, num_threads);
    std::vector<float> sums(count * padded_dim, 0.0F);
    std::vector<std::size_t> sizes(count, 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      float* sum = sums.data() + nearest[i] * padded_dim;
      for (std::size_t d = 0; d < padded_dim; ++d) sum[d] += rows[i][d];
      ++sizes[nearest[i]];
    }
    for (std::size_t c = 0; c < count; ++c) {
      if (sizes[c] == 0) continue;
      float* sum = sums.data() + c * padded_dim;
      for (std::size_t d = 0; d < padded_dim; ++d) sum[d] /= static_cast<float>(sizes[c]);
      Set(c, sum);
    }
  }
}

void Centroids::Append(const float* row) {
  rows_.resize(rows_.size() + padded_dim_);
  codes_.Append(row);
  half_squares_.push_back(0);
  Set(size() - 1, row);
}

void Centroids::Set(std::size_t i, const float* row) {
  std::copy_n(row, padded_dim_, rows_.data() + i * padded_dim_);
  codes_.Set(i, row);
  half_squares_[i] = 0;
  for (std::size_t d = 0; d < padded_dim_; ++d) half_squares_[i] += row[d] * row[d] / 2;
}

std::uint32_t Centroids::Nearest(const QueryCode& row) const {
  float scores[CodeList::kGroup];
  float best = -std::numeric_limits<float>::infinity();
  std::size_t nearest = 0;
  for (std::size_t begin = 0; begin < size(); begin += CodeList::kGroup) {
    codes_.Score(row, begin, scores);
    for (std::size_t i = 0; i < std::min(CodeList::kGroup, size() - begin); ++i) {
      const float score = scores[i] - half_squares_[begin + i];
      if (score <= best) continue;
      best = score;
      nearest = begin + i;
    }
  }
  return static_cast<std::uint32_t>(nearest);
}

std::vector<std::uint32_t> Centroids::Nearest(const std::vector<const float*>& rows, std::size_t num_threads) const {
  constexpr std::size_t kShare = 64;
  std::vector<std::uint32_t> nearest(rows.size());
  const auto assign = [&](std::size_t share) {
    QueryCode code;
    for (std::size_t i = share * kShare; i < std::min(rows.size(), (share + 1) * kShare); ++i) {
      code.Encode(rows[i], padded_dim_);
      nearest[i] = Nearest(code);
    }
  };
  const std::size_t shares = (rows.size() + kShare - 1) / kShare;
  const double work = static_cast<double>(rows.size()) * static_cast<double>(size() * padded_dim_) / 8;
  const std::size_t threads = std::min(WorthThreads(work, num_threads), std::max<std::size_t>(shares, 1));
  if (threads == 1) {
    for (std::size_t share = 0; share < shares; ++share) assign(share);
  } else {
    ThreadPool(threads).Run(shares, assign);
  }
  return nearest;
}

}  // namespace embodied_mem

#include "memory/ivf_store.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/error.h"
#include "core/thread_pool.h"

namespace embodied_mem {
namespace {

constexpr std::uint32_t kNowhere = ~std::uint32_t{0};
// Vectors per list that a training looks at; more move the centroids hardly.
constexpr std::size_t kTrainingRows = 64;

float SquaredDistance(const float* a, const float* b, std::size_t padded_dim) {
  float sums[kLanes] = {};
  for (std::size_t d = 0; d < padded_dim; d += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) sums[i] += (a[d + i] - b[d + i]) * (a[d + i] - b[d + i]);
  }
  return std::accumulate(sums, sums + kLanes, 0.0F);
}

// What codes found: the best of what it is offered, the best first.
struct Candidate {
  float score;
  Slot slot;
  VectorId id;
};
bool Better(const Candidate& a, const Candidate& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; }

void Offer(const Candidate& candidate, std::size_t limit, std::vector<Candidate>* best) {
  if (best->size() == limit) {
    if (!Better(candidate, best->back())) return;
    best->pop_back();
  }
  best->insert(std::upper_bound(best->begin(), best->end(), candidate, Better), candidate);
}

}  // namespace

void IvfStore::List::UpdateSpread() {
  float sum = 0;
  for (const Member& member : members) sum += member.square;
  spread = members.empty() ? 0 : std::sqrt(sum / static_cast<float>(members.size()));
}

IvfStore::IvfStore(std::size_t dim, std::vector<VectorId> ids, const IvfParts& parts, const float* rows) : IvfStore(dim) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw InvalidInputError(std::string("the lists of the file do not hold together: ") + what);
  };
  for (Slot slot = 0; slot < ids.size(); ++slot) {
    AppendRow();
    std::copy_n(rows + slot * dim, dim, Row(slot));
    require(slots_.emplace(ids[slot], slot).second, "an id is there twice");
  }
  ids_ = std::move(ids);
  require((parts.num_lists == 0) == ids_.empty() && parts.num_lists <= ids_.size() * 4, "a wrong number of lists");
  require(parts.num_trained <= 4 * ids_.size() && ids_.size() <= 2 * parts.num_trained, "a wrong number of trained vectors");
  num_trained_ = parts.num_trained;
  std::vector<float> centroid(padded_dim_, 0.0F);
  std::size_t at = 0;
  for (std::uint32_t list = 0; list < parts.num_lists; ++list) {
    std::copy_n(parts.centroids.data() + list * dim, dim, centroid.data());
    centroids_.Append(centroid.data());
    lists_.emplace_back(padded_dim_);
    require(at < parts.lists.size(), "a list is missing");
    const std::size_t count = parts.lists[at++];
    require(count <= parts.lists.size() - at, "a list is too long");
    for (; lists_.back().members.size() < count; ++at) {
      require(parts.lists[at] < ids_.size() && places_[parts.lists[at]].list == kNowhere, "a vector is nowhere or twice in lists");
      Put(parts.lists[at], list, centroids_, &lists_, &places_);
    }
    lists_.back().UpdateSpread();
  }
  require(at == parts.lists.size() && at == ids_.size() + parts.num_lists, "a vector is in no list");
}

// The row of one more slot, zeros.
void IvfStore::AppendRow() {
  if (places_.size() == blocks_.size() * kBlockRows) blocks_.push_back(MakeAlignedFloats(padded_dim_ * kBlockRows));
  places_.push_back({kNowhere, 0});
}

// The caller brings the list's spread up to date.
void IvfStore::Put(Slot slot, std::uint32_t list, const Centroids& centroids, std::vector<List>* lists, std::vector<Place>* places) const {
  List& to = (*lists)[list];
  to.members.push_back({slot, SquaredDistance(Row(slot), centroids.Row(list), padded_dim_)});
  try {
    to.codes.Append(Row(slot));
  } catch (...) {
    to.members.pop_back();
    throw;
  }
  (*places)[slot] = {list, static_cast<std::uint32_t>(to.members.size() - 1)};
}

void IvfStore::TakeOut(Slot slot) {
  const Place place = places_[slot];
  if (place.list == kNowhere) return;
  List& list = lists_[place.list];
  list.codes.Remove(place.position);
  list.members[place.position] = list.members.back();
  places_[list.members[place.position].slot].position = place.position;
  list.members.pop_back();
  places_[slot].list = kNowhere;
  touched_.push_back(place.list);
}

// The mean of the members; zeros for a list without any.
void IvfStore::Recentre(std::uint32_t list) {
  std::vector<Member>& members = lists_[list].members;
  std::vector<float> mean(padded_dim_, 0.0F);
  for (const Member& member : members) {
    const float* row = Row(member.slot);
    for (std::size_t d = 0; d < padded_dim_; ++d) mean[d] += row[d];
  }
  if (!members.empty()) {
    for (float& value : mean) value /= static_cast<float>(members.size());
  }
  centroids_.Set(list, mean.data());
  for (Member& member : members) member.square = SquaredDistance(Row(member.slot), centroids_.Row(list), padded_dim_);
  lists_[list].UpdateSpread();
}

void IvfStore::RecentreTouched() {
  std::sort(touched_.begin(), touched_.end());
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  for (const std::uint32_t list : touched_) Recentre(list);
  touched_.clear();
}

// Into the slot of the id, which is in no list then.
void IvfStore::AddRow(VectorId id, const float* row, float scale) {
  const auto [found, is_new] = slots_.emplace(id, static_cast<Slot>(ids_.size()));
  const Slot slot = found->second;
  if (is_new) {
    try {
      ids_.push_back(id);
      AppendRow();
    } catch (...) {
      ids_.resize(slot);
      slots_.erase(id);
      throw;
    }
  } else {
    TakeOut(slot);
  }
  float* to = Row(slot);
  for (std::size_t d = 0; d < dim_; ++d) to[d] = row[d] * scale;
}

void IvfStore::Add(const Rows& rows, std::size_t num_threads) {
  try {
    for (std::size_t i = 0; i < rows.count; ++i) AddRow(rows.ids[i], rows.values + i * dim_, rows.scales[i]);
    if (size() > 2 * num_trained_) return Train(num_threads);
    RecentreTouched();
    std::vector<const float*> added;
    for (std::size_t i = 0; i < rows.count; ++i) added.push_back(Row(slots_.at(rows.ids[i])));
    const std::vector<std::uint32_t> nearest = centroids_.Nearest(added, num_threads);
    for (std::size_t i = 0; i < rows.count; ++i) {
      Put(slots_.at(rows.ids[i]), nearest[i], centroids_, &lists_, &places_);
      lists_[nearest[i]].UpdateSpread();
    }
  } catch (...) {  // the memory ran out: what is in no list yet could not be found
    for (std::size_t i = 0; i < rows.count; ++i) {
      const auto found = slots_.find(rows.ids[i]);
      if (found != slots_.end() && places_[found->second].list == kNowhere) RemoveOne(rows.ids[i]);
    }
    throw;
  }
}

void IvfStore::Train(std::size_t num_threads) {
  std::vector<const float*> rows, sample;
  for (Slot slot = 0; slot < ids_.size(); ++slot) rows.push_back(Row(slot));
  const auto num_lists = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(rows.size()))));
  const std::size_t num_sampled = std::min(rows.size(), kTrainingRows * num_lists);
  for (std::size_t i = 0; i < num_sampled; ++i) sample.push_back(rows[i * rows.size() / num_sampled]);
  Centroids centroids = num_lists == 0 ? Centroids(padded_dim_) : Centroids(padded_dim_, sample, num_lists, num_threads);
  std::vector<List> lists(num_lists, List(padded_dim_));
  std::vector<Place> places(rows.size(), {kNowhere, 0});
  const std::vector<std::uint32_t> nearest = centroids.Nearest(rows, num_threads);
  for (Slot slot = 0; slot < rows.size(); ++slot) Put(slot, nearest[slot], centroids, &lists, &places);
  centroids_ = std::move(centroids);
  lists_ = std::move(lists);
  places_ = std::move(places);
  num_trained_ = rows.size();
  touched_.clear();
  for (std::uint32_t list = 0; list < lists_.size(); ++list) Recentre(list);
}

void IvfStore::RemoveOne(VectorId id) {
  const auto found = slots_.find(id);
  const Slot slot = found->second, last = static_cast<Slot>(ids_.size() - 1);
  slots_.erase(found);
  TakeOut(slot);
  if (slot != last) {
    std::copy_n(Row(last), padded_dim_, Row(slot));
    ids_[slot] = ids_[last];
    slots_.find(ids_[slot])->second = slot;
    places_[slot] = places_[last];
    if (places_[slot].list != kNowhere) lists_[places_[slot].list].members[places_[slot].position].slot = slot;
  }
  std::fill_n(Row(last), padded_dim_, 0.0F);
  ids_.pop_back();
  places_.pop_back();
  if (last % kBlockRows == 0) blocks_.pop_back();
}

void IvfStore::Remove(const std::vector<VectorId>& ids, std::size_t num_threads) {
  for (const VectorId id : ids) RemoveOne(id);
  if (4 * size() < num_trained_) return Train(num_threads);
  RecentreTouched();
}

void IvfStore::CopySlot(Slot slot, float* out) const { std::copy_n(Row(slot), dim_, out); }

struct IvfStore::Scratch {
  QueryCode code;
  std::vector<std::pair<float, std::uint32_t>> promises;  // of lists
  std::vector<Candidate> best;
  std::vector<const float*> rows;
  std::vector<float> distances;
};

void IvfStore::SearchOne(const float* query, const SearchOptions& options, const std::uint8_t* allowed, Scratch* scratch,
                         Neighbour* out) const {
  const SimdKernels& kernels = Kernels();
  auto& [code, promises, best, rows, distances] = *scratch;
  alignas(kAlignment) float scores[CodeList::kGroup] = {};
  code.Encode(query, padded_dim_);
  promises.clear();
  for (std::uint32_t list = 0; list < lists_.size(); ++list) {
    if (list % CodeList::kGroup == 0) centroids_.codes().Score(code, list, scores);
    promises.emplace_back(scores[list % CodeList::kGroup] + options.slack * code.norm * lists_[list].spread, list);
  }
  const auto after = [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.second > b.second; };
  std::make_heap(promises.begin(), promises.end(), after);
  // Some more than k, since codes may order near ones wrongly.
  const std::size_t limit = options.k + options.k / 4 + 4;
  best.clear();
  for (; !promises.empty(); promises.pop_back()) {
    if (best.size() >= options.k && promises.front().first < best[options.k - 1].score) break;
    const List& list = lists_[promises.front().second];
    std::pop_heap(promises.begin(), promises.end(), after);
    for (std::size_t begin = 0; begin < list.members.size(); begin += CodeList::kGroup) {
      const std::size_t count = std::min(CodeList::kGroup, list.members.size() - begin);
      list.codes.Score(code, begin, scores);
      const float threshold = best.size() == limit ? best.back().score : -__builtin_inff();
      std::uint64_t bits = kernels.at_least(scores, threshold) & (~std::uint64_t{0} >> (CodeList::kGroup - count));
      for (; bits != 0; bits &= bits - 1) {
        const auto lane = static_cast<std::size_t>(__builtin_ctzll(bits));
        const Slot slot = list.members[begin + lane].slot;
        if (allowed == nullptr || allowed[slot] != 0) Offer({scores[lane], slot, ids_[slot]}, limit, &best);
      }
    }
  }
  if (best.empty()) {
    std::fill_n(out, options.k, Neighbour{});
    return;
  }
  rows.clear();
  for (const Candidate& candidate : best) rows.push_back(Row(candidate.slot));
  rows.resize((rows.size() + 3) / 4 * 4, rows.back());
  distances.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); i += 4) kernels.distance4(query, rows.data() + i, padded_dim_, distances.data() + i);
  for (std::size_t i = 0; i < best.size(); ++i) best[i].score = -distances[i];
  std::sort(best.begin(), best.end(), Better);
  for (std::size_t i = 0; i < options.k; ++i) out[i] = i < best.size() ? Neighbour{best[i].score, best[i].id} : Neighbour{};
}

void IvfStore::Search(const Queries& queries, const SearchOptions& options, Neighbour* out) const {
  constexpr std::size_t kShare = 16;
  std::size_t num_allowed = 0;
  std::vector<std::uint8_t> allowed;
  if (options.allowed != nullptr) allowed = AllowedSlots(*options.allowed, &num_allowed);
  const double work = static_cast<double>(queries.count) * static_cast<double>(padded_dim_) *
                      static_cast<double>(std::min(ids_.size(), 8 * lists_.size())) / 8;
  const std::size_t shares = (queries.count + kShare - 1) / kShare;
  const std::size_t threads = std::min(WorthThreads(work, options.num_threads), std::max<std::size_t>(shares, 1));
  // Those that search the same list first come one after the other, while it is in the cache.
  std::vector<std::pair<std::uint32_t, std::size_t>> order(queries.count);
  std::vector<const float*> rows;
  for (std::size_t q = 0; q < queries.count; ++q) rows.push_back(queries.values + q * queries.stride);
  const std::vector<std::uint32_t> nearest =
      queries.count > 1 && !lists_.empty() ? centroids_.Nearest(rows, threads) : std::vector<std::uint32_t>(queries.count, 0);
  for (std::size_t q = 0; q < queries.count; ++q) order[q] = {nearest[q], q};
  std::sort(order.begin(), order.end());
  const auto search = [&](std::size_t share) {
    thread_local Scratch scratch;
    for (std::size_t i = share * kShare; i < std::min(queries.count, (share + 1) * kShare); ++i) {
      const std::size_t q = order[i].second;
      SearchOne(rows[q], options, options.allowed == nullptr ? nullptr : allowed.data(), &scratch, out + q * options.k);
    }
  };
  if (threads == 1) {
    for (std::size_t share = 0; share < shares; ++share) search(share);
  } else {
    ThreadPool(threads).Run(shares, search);
  }
}

IvfParts IvfStore::Parts() const {
  IvfParts parts;
  parts.num_lists = lists_.size();
  parts.num_trained = num_trained_;
  for (std::size_t list = 0; list < lists_.size(); ++list) {
    parts.lists.push_back(static_cast<std::uint32_t>(lists_[list].members.size()));
    for (const Member& member : lists_[list].members) parts.lists.push_back(member.slot);
    parts.centroids.insert(parts.centroids.end(), centroids_.Row(list), centroids_.Row(list) + dim_);
  }
  return parts;
}

}  // namespace embodied_mem

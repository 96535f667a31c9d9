#include "memory/vectors/ivf_store.h"

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

// Where the largest is, the first of equal ones; 0 without any.
std::uint32_t Largest(const std::vector<float>& values) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -__builtin_inff());
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
  }
  for (; i < values.size(); ++i) lanes[0] = std::max(lanes[0], values[i]);
  const auto at = std::find(values.begin(), values.end(), *std::max_element(lanes, lanes + kLanes));
  return at == values.end() ? 0 : static_cast<std::uint32_t>(at - values.begin());
}

// The `limit` best of what is offered, for the k best of which lists are searched: few in order, many as a heap with the
// worst in front, since an order costs a move for each of them. Reuses its memory.
class Best {
 public:
  void Clear(std::size_t k, std::size_t limit) {
    k_ = k;
    limit_ = limit;
    found_.clear();
  }

  // What a further one has to reach to be kept.
  float Worst() const {
    if (found_.size() < limit_) return -__builtin_inff();
    return InOrder() ? found_.back().score : found_.front().score;
  }

  // What a further list has to promise: the score of the k-th, or less.
  float Least() const {
    if (!InOrder()) return Worst();
    return found_.size() < k_ ? -__builtin_inff() : found_[k_ - 1].score;
  }

  void Offer(const Candidate& candidate) {
    const bool full = found_.size() == limit_;
    if (full && !Better(candidate, InOrder() ? found_.back() : found_.front())) return;
    if (!InOrder()) {
      if (full) {
        std::pop_heap(found_.begin(), found_.end(), Better);
        found_.pop_back();
      }
      found_.push_back(candidate);
      std::push_heap(found_.begin(), found_.end(), Better);
      return;
    }
    if (!full) found_.push_back(candidate);
    std::size_t at = found_.size() - 1;
    for (; at > 0 && Better(candidate, found_[at - 1]); --at) found_[at] = found_[at - 1];
    found_[at] = candidate;
  }

  std::vector<Candidate>& found() { return found_; }

 private:
  bool InOrder() const { return limit_ <= 256; }

  std::size_t k_ = 0, limit_ = 0;
  std::vector<Candidate> found_;
};

}  // namespace

void IvfStore::List::UpdateSpread() {
  float sum = 0;
  for (const Member& member : members) sum += member.square;
  spread = members.empty() ? 0 : std::sqrt(sum / static_cast<float>(members.size()));
}

IvfStore::IvfStore(std::size_t dim, std::vector<VectorId> ids, const IvfParts& parts, const float* rows)
    : IvfStore(dim) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw InvalidInputError(std::string("the lists of the file do not hold together: ") + what);
  };
  for (Slot slot = 0; slot < ids.size(); ++slot) {
    AppendRow();
    std::copy_n(rows + slot * dim, dim, Row(slot));
    require(slots_.emplace(ids[slot], slot).second, "an id is there twice");
  }
  ids_ = std::move(ids);
  require((parts.num_lists == 0) == (parts.num_trained == 0) && parts.num_trained <= ~Slot{0},
          "a wrong number of lists");
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
      require(parts.lists[at] < ids_.size() && places_[parts.lists[at]].list == kNowhere,
              "a vector is nowhere or twice in lists");
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
void IvfStore::Put(Slot slot, std::uint32_t list, const Centroids& centroids, std::vector<List>* lists,
                   std::vector<Place>* places) const {
  List& to = (*lists)[list];
  to.members.push_back({ids_[slot], slot, SquaredDistance(Row(slot), centroids.Row(list), padded_dim_)});
  try {
    to.codes.Append(Row(slot));
  } catch (...) {
    to.members.pop_back();
    throw;
  }
  (*places)[slot] = {list, static_cast<std::uint32_t>(to.members.size() - 1)};
}

// Like RemoveOne it allocates nothing, so that both can undo what lacked memory.
void IvfStore::TakeOut(Slot slot) {
  const Place place = places_[slot];
  if (place.list == kNowhere) return;
  List& list = lists_[place.list];
  list.codes.Remove(place.position);
  list.members[place.position] = list.members.back();
  places_[list.members[place.position].slot].position = place.position;
  list.members.pop_back();
  places_[slot].list = kNowhere;
  list.lost_one = true;
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
  lists_[list].lost_one = false;
}

void IvfStore::RecentreLosers() {
  for (std::uint32_t list = 0; list < lists_.size(); ++list) {
    if (lists_[list].lost_one) Recentre(list);
  }
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
    RecentreLosers();
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
  Centroids centroids =
      num_lists == 0 ? Centroids(padded_dim_) : Centroids(padded_dim_, sample, num_lists, num_threads);
  std::vector<List> lists(num_lists, List(padded_dim_));
  std::vector<Place> places(rows.size(), {kNowhere, 0});
  const std::vector<std::uint32_t> nearest = centroids.Nearest(rows, num_threads);
  for (Slot slot = 0; slot < rows.size(); ++slot) Put(slot, nearest[slot], centroids, &lists, &places);
  centroids_ = std::move(centroids);
  lists_ = std::move(lists);
  places_ = std::move(places);
  num_trained_ = rows.size();
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
  RecentreLosers();
}

void IvfStore::CopySlot(Slot slot, float* out) const { std::copy_n(Row(slot), dim_, out); }

struct IvfStore::Query {
  const float* row;
  QueryCode code;
  std::vector<float> promises;  // by list
  std::uint32_t first = 0;      // the list that promises most
};

void IvfStore::Promises(const float* row, float slack, Query* query) const {
  query->row = row;
  query->code.Encode(row, padded_dim_);
  query->promises.resize((lists_.size() + CodeList::kGroup - 1) / CodeList::kGroup * CodeList::kGroup);
  for (std::size_t begin = 0; begin < lists_.size(); begin += CodeList::kGroup)
    centroids_.codes().Score(query->code, begin, query->promises.data() + begin);
  query->promises.resize(lists_.size());
  const float reach = slack * query->code.norm;
  for (std::size_t list = 0; list < lists_.size(); ++list) query->promises[list] += reach * lists_[list].spread;
  query->first = Largest(query->promises);
}

void IvfStore::SearchOne(Query* query, std::size_t k, const std::uint8_t* allowed, Neighbour* out) const {
  thread_local Best best;
  thread_local std::vector<const float*> rows;
  thread_local std::vector<float> distances;
  const SimdKernels& kernels = Kernels();
  alignas(kAlignment) float scores[CodeList::kGroup] = {};
  // Some more than k, since codes may order near ones wrongly.
  best.Clear(k, k + k / 4 + 4);
  std::uint32_t next = query->first;
  for (std::size_t searched = 0; searched < lists_.size(); ++searched, next = Largest(query->promises)) {
    if (!(query->promises[next] >= best.Least()) || query->promises[next] == -__builtin_inff()) break;
    query->promises[next] = -__builtin_inff();
    const List& list = lists_[next];
    for (std::size_t begin = 0; begin < list.members.size(); begin += CodeList::kGroup) {
      const std::size_t count = std::min(CodeList::kGroup, list.members.size() - begin);
      list.codes.Score(query->code, begin, scores);
      std::uint64_t bits = kernels.at_least(scores, best.Worst()) & (~std::uint64_t{0} >> (CodeList::kGroup - count));
      for (; bits != 0; bits &= bits - 1) {
        const auto lane = static_cast<std::size_t>(__builtin_ctzll(bits));
        const Member& member = list.members[begin + lane];
        if (allowed == nullptr || allowed[member.slot] != 0) best.Offer({scores[lane], member.slot, member.id});
      }
    }
  }
  std::vector<Candidate>& found = best.found();
  rows.clear();
  for (const Candidate& candidate : found) {
    rows.push_back(Row(candidate.slot));
    for (std::size_t d = 0; d < std::min<std::size_t>(padded_dim_, 128); d += kLanes)
      __builtin_prefetch(rows.back() + d);
  }
  while (rows.size() % 4 != 0) rows.push_back(rows.back());
  distances.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); i += 4)
    kernels.distance4(query->row, rows.data() + i, padded_dim_, distances.data() + i);
  for (std::size_t i = 0; i < found.size(); ++i) found[i].score = -distances[i];
  std::sort(found.begin(), found.end(), Better);
  for (std::size_t i = 0; i < k; ++i) out[i] = i < found.size() ? Neighbour{found[i].score, found[i].id} : Neighbour{};
}

void IvfStore::Search(const Queries& queries, const SearchOptions& options, Neighbour* out) const {
  constexpr std::size_t kAtATime = 1024, kShare = 16;
  std::size_t num_allowed = 0;
  std::vector<std::uint8_t> allowed;
  if (options.allowed != nullptr) allowed = AllowedSlots(*options.allowed, &num_allowed);
  const double work = static_cast<double>(queries.count) * static_cast<double>(padded_dim_) *
                      static_cast<double>(std::min(ids_.size(), 8 * lists_.size())) / 8;
  ThreadPool pool(std::min(WorthThreads(work, options.num_threads), queries.count / kShare + 1));
  std::vector<Query> batch(std::min(queries.count, kAtATime));
  std::vector<std::size_t> order;
  for (std::size_t from = 0; from < queries.count; from += kAtATime) {
    const std::size_t count = std::min(kAtATime, queries.count - from);
    const auto in_shares = [&](const auto& body) {
      pool.Run((count + kShare - 1) / kShare, [&](std::size_t share) {
        for (std::size_t i = share * kShare; i < std::min(count, (share + 1) * kShare); ++i) body(i);
      });
    };
    in_shares([&](std::size_t i) { Promises(queries.values + (from + i) * queries.stride, options.slack, &batch[i]); });
    // Those that search the same list first come one after the other, while it is in the cache.
    order.resize(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return batch[a].first < batch[b].first; });
    in_shares([&](std::size_t i) {
      const std::size_t q = order[i];
      SearchOne(&batch[q], options.k, options.allowed == nullptr ? nullptr : allowed.data(),
                out + (from + q) * options.k);
    });
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

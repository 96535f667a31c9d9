#include "memory/vectors/hnsw_store.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/thread_pool.h"
#include "memory/vectors/hnsw_graph.h"

namespace embodied_mem {
namespace {

// A filter that lets through fewer than this many, or less than this share, is searched by scoring all of them: the graph
// would be walked far and wide to find them.
constexpr std::size_t kScanAllowed = 1000;
constexpr std::size_t kScanShare = 50;
constexpr std::size_t kRemovedShare = 10;

void ScanSlots(const HnswGraph& graph, const std::vector<std::uint8_t>& allowed, const float* query, std::size_t dim,
               std::vector<std::pair<float, Slot>>* found) {
  const SimdKernels& kernels = Kernels();
  const std::size_t padded = Padded(dim);
  found->clear();
  for (Slot slot = 0; slot < allowed.size(); ++slot) {
    if (allowed[slot] != 0) found->emplace_back(kernels.distance(query, graph.Row(slot), &padded), slot);
  }
}

}  // namespace

HnswStore::HnswStore(std::size_t dim, std::size_t connectivity, std::size_t ef_construction)
    : VectorStore(dim), graph_(std::make_unique<HnswGraph>(dim, connectivity, ef_construction)) {}

HnswStore::HnswStore(std::size_t dim, std::size_t connectivity, std::size_t ef_construction, std::vector<VectorId> ids,
                     const HnswParts& parts, const float* rows)
    : HnswStore(dim, connectivity, ef_construction) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw InvalidInputError(std::string("the graph of the file does not hold together: ") + what);
  };
  const std::size_t count = ids.size();
  require(parts.levels.size() == count, "one level for each vector expected");
  require(count == 0 || parts.entry < count, "the entry is no vector");
  for (const std::uint8_t level : parts.levels)
    require(level <= HnswGraph::kMaxLevel && level <= parts.levels[parts.entry], "a level above the entry's");
  graph_->Restore({parts.levels.begin(), parts.levels.end()}, parts.entry, parts.num_insertions);
  std::size_t at = 0;
  for (Slot slot = 0; slot < count; ++slot) {
    for (int level = 0; level <= parts.levels[slot]; ++level) {
      require(at < parts.links.size(), "a list of links is missing");
      const std::size_t links = parts.links[at++];
      require(links <= graph_->MaxLinks(level) && links <= parts.links.size() - at, "too many links in a list");
      for (std::size_t i = at; i < at + links; ++i)
        require(parts.links[i] < count && parts.links[i] != slot && parts.levels[parts.links[i]] >= level,
                "a link leads nowhere");
      graph_->SetLinks(slot, level, parts.links.data() + at, links);
      at += links;
    }
    std::copy_n(rows + slot * dim, dim, graph_->Row(slot));
    require(slots_.emplace(ids[slot], slot).second, "an id is there twice");
  }
  require(at == parts.links.size(), "there are links of no vector");
  ids_ = std::move(ids);
}

HnswStore::~HnswStore() = default;

void HnswStore::Mark(VectorId id) {
  const auto found = slots_.find(id);
  graph_->MarkRemoved(found->second);
  ids_[found->second] = kNoVector;
  slots_.erase(found);
}

void HnswStore::Add(const Rows& rows, std::size_t num_threads) {
  const std::size_t first = ids_.size();
  graph_->Append(rows.count);
  for (std::size_t i = 0; i < rows.count; ++i) {
    const VectorId id = rows.ids[i];
    if (Contains(id)) Mark(id);
    const Slot slot = static_cast<Slot>(first + i);
    ids_.push_back(id);
    slots_[id] = slot;
    float* row = graph_->Row(slot);
    for (std::size_t d = 0; d < dim_; ++d) row[d] = rows.values[i * dim_ + d] * rows.scales[i];
  }
  // Many threads on few vectors would connect each to a graph that lacks the others.
  const std::size_t threads = std::min(num_threads, std::max<std::size_t>(rows.count / 32, 1));
  const auto link = [&](std::size_t i) { graph_->Link(static_cast<Slot>(first + i)); };
  if (threads == 1) {
    for (std::size_t i = 0; i < rows.count; ++i) link(i);
  } else {
    ThreadPool(threads).Run(rows.count, link);
  }
  CompactIfMany(num_threads);
}

void HnswStore::Remove(const std::vector<VectorId>& ids, std::size_t num_threads) {
  for (const VectorId id : ids) Mark(id);
  CompactIfMany(num_threads);
}

std::size_t HnswStore::num_removed() const { return graph_->num_removed(); }

void HnswStore::CompactIfMany(std::size_t num_threads) {
  if (num_removed() * kRemovedShare > ids_.size()) Compact(num_threads);
}

void HnswStore::Compact(std::size_t num_threads) {
  if (num_removed() == 0) return;
  const std::vector<Slot> before = graph_->Compact(num_threads);
  for (Slot slot = 0; slot < before.size(); ++slot) {
    ids_[slot] = ids_[before[slot]];
    slots_[ids_[slot]] = slot;
  }
  ids_.resize(before.size());
}

void HnswStore::CopySlot(Slot slot, float* out) const { std::copy_n(graph_->Row(slot), dim_, out); }

void HnswStore::Search(const Queries& queries, const SearchOptions& options, Neighbour* out) const {
  std::size_t num_allowed = size();
  std::vector<std::uint8_t> allowed;
  if (options.allowed != nullptr) allowed = AllowedSlots(*options.allowed, &num_allowed);
  const bool scan = options.allowed != nullptr && (num_allowed < kScanAllowed || num_allowed * kScanShare < size());
  const std::size_t ef = std::max(options.ef_search, options.k);
  const auto search = [&](std::size_t q) {
    thread_local std::vector<std::pair<float, Slot>> found;
    const float* query = queries.values + q * queries.stride;
    if (scan) {
      ScanSlots(*graph_, allowed, query, dim_, &found);
    } else {
      graph_->Search(query, std::min(ef, std::max<std::size_t>(size(), 1)),
                     options.allowed == nullptr ? nullptr : allowed.data(), &found);
    }
    TopK best(options.k);
    for (const auto& [distance, slot] : found) best.Offer({-distance, ids_[slot]});
    const std::vector<Neighbour> sorted = best.Take();
    std::fill(std::copy(sorted.begin(), sorted.end(), out + q * options.k), out + (q + 1) * options.k, Neighbour{});
  };
  const double work = static_cast<double>(queries.count) * static_cast<double>(dim_) *
                      static_cast<double>(scan ? num_allowed : std::min(size(), 10 * ef));
  const std::size_t threads = std::min(WorthThreads(work, options.num_threads), queries.count);
  if (threads <= 1) {
    for (std::size_t q = 0; q < queries.count; ++q) search(q);
  } else {
    ThreadPool(threads).Run(queries.count, search);
  }
}

HnswParts HnswStore::Parts() const {
  HnswParts parts;
  parts.entry = graph_->num_slots() == 0 ? 0 : graph_->entry();
  parts.num_insertions = graph_->num_insertions();
  for (Slot slot = 0; slot < graph_->num_slots(); ++slot) {
    parts.levels.push_back(static_cast<std::uint8_t>(graph_->Level(slot)));
    for (int level = 0; level <= graph_->Level(slot); ++level) {
      const std::vector<Slot> links = graph_->Links(slot, level);
      parts.links.push_back(static_cast<std::uint32_t>(links.size()));
      parts.links.insert(parts.links.end(), links.begin(), links.end());
    }
  }
  return parts;
}

}  // namespace embodied_mem

#include "memory/graph/similar_nodes.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "memory/graph/graph_records.h"

namespace embodied_mem {
namespace {

constexpr std::size_t kFirstNeighbours = 8;

}  // namespace

SimilarNodes::SimilarNodes(const NamedVectors& vectors, const std::vector<Triple>& triples, const GraphBatch& batch)
    : vectors_(vectors), rows_(vectors.names.size()), kept_(vectors.names.size() * vectors.index->options().dim) {
  const std::size_t dim = vectors.index->options().dim;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!row_of_name_.emplace(vectors.names[i], i).second)
      throw InvalidInputError("vectors: expected one for each name, got two for " + Quote(vectors.names[i]));
    try {
      vectors.index->Normalise(Values(i), 1, kept_.data() + i * dim);
    } catch (const InvalidInputError& error) {
      throw InvalidInputError("vector of " + Quote(vectors.names[i]) + ": " + error.what());
    }
  }
  for (const Triple& triple : triples) {
    for (const Mention* mention : {&triple.subject, &triple.object}) {
      const auto row = row_of_name_.find(mention->name);
      if (row == row_of_name_.end()) continue;
      std::vector<std::string>& types = rows_[row->second].types;
      if (std::find(types.begin(), types.end(), mention->type) == types.end()) types.push_back(mention->type);
    }
  }
  std::vector<std::size_t> unknown;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const NodeId node = batch.FindNode(vectors.names[i]);
    if (node == kNoNode) unknown.push_back(i);
    if (node == kNoNode || !vectors.index->Contains(node)) adds_ = true;
  }
  Search(std::move(unknown), batch);
}

// Asks for more neighbours where all that came are similar enough and none of them will do.
void SimilarNodes::Search(std::vector<std::size_t> rows, const GraphBatch& batch) {
  const std::size_t dim = vectors_.index->options().dim;
  SearchOptions options;
  options.num_threads = vectors_.num_threads;
  for (options.k = kFirstNeighbours; !rows.empty(); options.k *= 2) {
    std::vector<float> queries;
    for (const std::size_t row : rows) queries.insert(queries.end(), Values(row), Values(row) + dim);
    std::vector<Neighbour> found(rows.size() * options.k);
    vectors_.index->Search(queries.data(), rows.size(), options, found.data());
    std::vector<std::size_t> again;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Row& row = rows_[rows[i]];
      row.found.clear();
      for (std::size_t j = i * options.k; j < (i + 1) * options.k; ++j) {
        if (found[j].id == kNoVector || !(found[j].score > vectors_.theta)) break;
        if (static_cast<std::uint64_t>(found[j].id) >= batch.state().num_nodes)
          throw InvalidInputError("index: expected ids of nodes, below " + std::to_string(batch.state().num_nodes) +
                                  ", got " + std::to_string(found[j].id) + "; an index belongs to one graph");
        row.found.push_back(found[j]);
      }
      if (row.found.size() == options.k && !Satisfied(row, batch)) again.push_back(rows[i]);
    }
    rows = std::move(again);
  }
}

bool SimilarNodes::Suits(const Neighbour& neighbour, const std::string& type, const GraphBatch& batch) const {
  const NodeRecord& node = batch.node(static_cast<NodeId>(neighbour.id));
  if (node.name.empty()) return false;  // forgotten, and its vector not yet
  return type.empty() || node.type == kNoType || batch.state().vocabulary->types->words[node.type] == type;
}

bool SimilarNodes::Satisfied(const Row& row, const GraphBatch& batch) const {
  return std::all_of(row.types.begin(), row.types.end(), [&](const std::string& type) {
    return std::any_of(row.found.begin(), row.found.end(),
                       [&](const Neighbour& found) { return Suits(found, type, batch); });
  });
}

void SimilarNodes::Begin(std::size_t num_nodes, std::size_t max_new) {
  if (!adds_) return;
  addition_ = std::make_unique<VectorIndex::Addition>(vectors_.index, rows_.size());
  for (std::size_t id = num_nodes; id < num_nodes + max_new; ++id) {
    if (addition_->Contains(static_cast<VectorId>(id)))
      throw InvalidInputError("index: expected ids of nodes, below " + std::to_string(num_nodes) + ", got " +
                              std::to_string(id) + "; an index belongs to one graph");
  }
}

NodeId SimilarNodes::Find(const Mention& mention, const GraphBatch& batch) const {
  const auto known = row_of_name_.find(mention.name);
  if (known == row_of_name_.end()) return kNoNode;
  Neighbour best;
  for (const Neighbour& found : rows_[known->second].found) {
    if (!Suits(found, mention.type, batch)) continue;
    best = found;
    break;
  }
  const std::size_t dim = vectors_.index->options().dim;
  const float* mine = kept_.data() + known->second * dim;
  for (const std::size_t row : new_rows_) {
    const float* other = kept_.data() + row * dim;
    double product = 0;
    for (std::size_t d = 0; d < dim; ++d) product += static_cast<double>(mine[d]) * static_cast<double>(other[d]);
    const Neighbour made{static_cast<float>(product), rows_[row].node};
    if (made.score > vectors_.theta && (best.id == kNoVector || Before(made, best)) && Suits(made, mention.type, batch))
      best = made;
  }
  return best.id == kNoVector ? kNoNode : static_cast<NodeId>(best.id);
}

void SimilarNodes::Note(const std::string& name, NodeId node) {
  const auto known = row_of_name_.find(name);
  if (known == row_of_name_.end() || rows_[known->second].node != kNoNode) return;
  if (addition_ == nullptr || addition_->Contains(node)) return;
  rows_[known->second].node = node;
  new_rows_.push_back(known->second);
}

void SimilarNodes::Add() {
  if (addition_ == nullptr) return;
  std::vector<VectorId> ids;
  std::vector<float> values;
  for (const std::size_t row : new_rows_) {
    ids.push_back(rows_[row].node);
    values.insert(values.end(), Values(row), Values(row) + vectors_.index->options().dim);
  }
  addition_->Add(std::move(ids), values.data());
}

void SimilarNodes::Keep() {
  if (addition_ != nullptr) addition_->Keep();
}

}  // namespace embodied_mem

// Step 1 of Algorithm 1 for names that no node has: the node whose vector is most similar, above a threshold.
//
// All that can be wrong is found by the constructor and Begin, before the batch writes anything. From Begin to Keep nobody
// else is in the index, so whoever searches it and then takes a snapshot finds every node in it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/graph/graph_batch.h"
#include "memory/graph/graph_update.h"
#include "memory/vectors/vector_index.h"

namespace embodied_mem {

class SimilarNodes {
 public:
  // Searches the index for the names that the graph lacks. Throws InvalidInputError for vectors that the index would not
  // take and for ids in it that are no nodes of the graph.
  SimilarNodes(const NamedVectors& vectors, const std::vector<Triple>& triples, const GraphBatch& batch);

  // Locks the index if it may get a vector. Throws InvalidInputError where an id that a new node may get, one of
  // `max_new` from num_nodes on, is taken in it.
  void Begin(std::size_t num_nodes, std::size_t max_new);
  // The most similar node, of the index or made in this batch, whose type does not contradict; kNoNode: none.
  NodeId Find(const Mention& mention, const GraphBatch& batch) const;
  // The node of this name: its vector comes into the index, if it has none there.
  void Note(const std::string& name, NodeId node);
  // Adds the vectors; if Keep does not follow, they are taken out again.
  void Add();
  void Keep();

 private:
  struct Row {
    std::vector<Neighbour> found;    // above theta, the best first
    std::vector<std::string> types;  // that it is mentioned with, "" for none
    NodeId node = kNoNode;
  };
  void Search(std::vector<std::size_t> rows, const GraphBatch& batch);
  bool Suits(const Neighbour& neighbour, const std::string& type, const GraphBatch& batch) const;
  bool Satisfied(const Row& row, const GraphBatch& batch) const;
  const float* Values(std::size_t row) const { return vectors_.rows + row * vectors_.index->options().dim; }

  const NamedVectors& vectors_;
  std::unordered_map<std::string, std::size_t> row_of_name_;
  std::vector<Row> rows_;
  std::vector<float> kept_;            // the rows as the index would keep them
  std::vector<std::size_t> new_rows_;  // whose nodes get a vector
  bool adds_ = false;                  // some name has no node, or a node without a vector
  std::unique_ptr<VectorIndex::Addition> addition_;
};

}  // namespace embodied_mem

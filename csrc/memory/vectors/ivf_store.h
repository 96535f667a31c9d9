// The approximate index for memories that change: vectors in lists by their nearest centroid (an inverted file). A query
// scores the centroids, then lists, the most promising first, by codes of a quarter of the bytes; the best are scored
// again by their floats.
//
// What differs from the textbook: no fixed number of lists is searched. A list promises the score of its centroid plus
// `slack` times its spread (the root mean square distance of its members from the centroid) times the length of the query;
// the search ends at the first list that promises less than the k-th best score so far. So queries inside a group of alike
// vectors end after one list, others go on as long as it pays, and a filter is followed until k are found.
//
// A list that loses a member gets the mean of the others as its centroid, so that nothing is left of a removed vector.
// All centroids are trained again when the vectors have doubled since, or are a quarter: per vector added
// that is a constant number of assignments. Everything depends on the order of calls only, not on the number of threads.
#pragma once

#include <utility>
#include <vector>

#include "memory/vectors/code_list.h"
#include "memory/vectors/ivf_centroids.h"
#include "memory/vectors/vector_store.h"

namespace embodied_mem {

// The lists as numbers, for files.
struct IvfParts {
  std::vector<std::uint32_t> lists;  // by list: how many, then which slots
  std::vector<float> centroids;      // float[lists][dim]
  std::size_t num_lists = 0;
  std::uint64_t num_trained = 0;  // vectors at the last training
};

class IvfStore : public VectorStore {
 public:
  explicit IvfStore(std::size_t dim) : VectorStore(dim), padded_dim_(Padded(dim)), centroids_(padded_dim_) {}
  // From a file. Throws InvalidInputError where the parts do not fit together.
  IvfStore(std::size_t dim, std::vector<VectorId> ids, const IvfParts& parts, const float* rows);

  void Add(const Rows& rows, std::size_t num_threads) override;
  // The last vector moves to the place of a removed one, whose floats are overwritten.
  void Remove(const std::vector<VectorId>& ids, std::size_t num_threads) override;
  void Search(const Queries& queries, const SearchOptions& options, Neighbour* out) const override;
  void CopySlot(Slot slot, float* out) const override;

  IvfParts Parts() const;

 private:
  struct Member {
    VectorId id;
    Slot slot;
    float square;  // squared distance from the centroid
  };
  struct List {
    explicit List(std::size_t padded_dim) : codes(padded_dim) {}
    CodeList codes;
    std::vector<Member> members;
    float spread = 0;
    bool lost_one = false;  // since its centroid was computed

    void UpdateSpread();
  };
  struct Place {
    std::uint32_t list, position;
  };
  struct Query;

  float* Row(Slot slot) const { return blocks_[slot / kBlockRows].get() + slot % kBlockRows * padded_dim_; }
  void AppendRow();
  void Put(Slot slot, std::uint32_t list, const Centroids& centroids, std::vector<List>* lists,
           std::vector<Place>* places) const;
  void TakeOut(Slot slot);
  void AddRow(VectorId id, const float* row, float scale);
  void RemoveOne(VectorId id);
  void Recentre(std::uint32_t list);
  void RecentreLosers();
  void Train(std::size_t num_threads);
  void Promises(const float* row, float slack, Query* query) const;
  void SearchOne(Query* query, std::size_t k, const std::uint8_t* allowed, Neighbour* out) const;

  std::size_t padded_dim_;
  std::vector<AlignedFloats> blocks_;  // rows by slot, kBlockRows in each
  Centroids centroids_;
  std::vector<List> lists_;    // by centroid
  std::vector<Place> places_;  // by slot
  std::size_t num_trained_ = 0;
};

}  // namespace embodied_mem

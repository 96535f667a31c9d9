// Algorithm 1 of RoboMemory (retrieval-based incremental update) by rules, in one call:
//
// 0. end what the caller says has ended by itself;
// 1. link each entity: a node of exactly this name, else a new node (names that mean the same are the caller's);
// 2. merge: a fact that is current already gets a source; a new one first ends those it is in conflict with by the
//    graph's ConflictRules;
// 3. extract the K-hop subgraph around the linked entities.
//
// Deviation from the paper's order: the subgraph is taken after the merge, so that it shows the result. Rules compare a
// fact only with facts of its own two nodes, which any K >= 1 contains, so the order does not change what is found.
//
// Late reports: a fact older than a conflicting one does not end it; it is stored as valid until that one began, and
// cuts what was thought true at its time. So the order in which reports come does not matter for the places in time,
// as long as each is reported once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/graph/knowledge_graph.h"

namespace embodied_mem {

struct Mention {
  std::string name, type;  // type may be empty: unknown
};

struct Triple {
  Mention subject;
  std::string relation;
  Mention object;
  std::int64_t valid_at = 0;
  std::optional<std::int64_t> source;
};

// A fact between nodes that are typed by their own names, see node_class.h. What the relation `state` says of a node is
// no thing, and has no type.
Triple ClassedTriple(std::string_view subject, std::string_view relation, std::string_view object,
                     std::int64_t valid_at, std::int64_t source, std::string_view state);

// The end of the current fact that says so.
struct NamedEnding {
  std::string subject, relation, object;
  std::int64_t invalid_at = 0;
};

struct UpdateOptions {
  bool extract = true;
  KHopOptions khop;
  std::vector<NamedEnding> end = {};
};

struct UpdateResult {
  struct Ended {
    FactId fact;       // no longer current, or cut to an earlier end
    FactId by;         // the new fact that it is in conflict with
    std::size_t rule;  // in the graph's rules
  };
  std::vector<NodeId> subjects, objects;  // of each triple
  std::vector<FactId> facts;              // of each triple
  std::vector<NodeId> new_nodes;
  std::vector<FactId> added, repeated;
  std::vector<Ended> ended;
  Subgraph subgraph;
};

}  // namespace embodied_mem

// Tests of graphs as bytes, and of forgetting: against a graph that never knew, and against damaged input.
#include "memory/graph/graph_bytes.h"

#include <random>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "memory/graph/graph_update.h"
#include "tests/check.h"

namespace embodied_mem {
namespace {

ConflictRules PlaceRules() {
  using Role = ConflictRule::Role;
  return {{{"place", {{"in", Role::kSubject, {}}, {"holds", Role::kObject, {}}}},
           {"door", {{"is", Role::kSubject, {"open", "closed"}}}}}};
}

void Tell(KnowledgeGraph* graph, const std::string& s, const std::string& r, const std::string& o, std::int64_t time,
          std::int64_t source) {
  KHopScratch scratch;
  UpdateResult result;
  graph->Update({{{s, "thing"}, r, {o, ""}, time, source}}, {false, {}}, &scratch, &result);
}

// A graph with late reports, attributes, repeated facts and past facts.
void Fill(KnowledgeGraph* graph, std::uint64_t seed, int count) {
  std::mt19937_64 rng(seed);
  graph->SetRules(PlaceRules());
  for (int i = 0; i < count; ++i) {
    const std::string thing = "thing " + std::to_string(rng() % 9), place = "place " + std::to_string(rng() % 4);
    const auto time = static_cast<std::int64_t>(rng() % 40), source = static_cast<std::int64_t>(rng() % 5);
    switch (rng() % 4) {
      case 0: Tell(graph, "agent", "holds", thing, time, source); break;
      case 1: Tell(graph, place, "is", rng() % 2 == 0 ? "open" : "closed", time, source); break;
      case 2:
        graph->Apply(
            {{{thing, "", {{"colour", std::to_string(rng() % 3)}}, static_cast<std::int64_t>(rng() % 4)}}, {}, {}});
        break;
      default: Tell(graph, thing, "in", place, time, source);
    }
  }
}

TEST(RoundTrip) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    KnowledgeGraph graph;
    Fill(&graph, seed, 60);
    if (seed % 2 == 1) graph.Forget({2}, {1});
    const std::string bytes = GraphToBytes(Snapshot(graph), "ann's");
    std::string label;
    const auto copy = GraphFromBytes(bytes, &label);
    CHECK_EQ(label, std::string("ann's"));
    CHECK(GraphToBytes(Snapshot(*copy), label) == bytes);
    CHECK_EQ(Snapshot(*copy).num_current_facts(), Snapshot(graph).num_current_facts());
    CHECK_EQ(Snapshot(*copy).num_erased_facts(), Snapshot(graph).num_erased_facts());
    // It goes on as the first one does, late reports included.
    Fill(&graph, seed + 100, 60);
    Fill(copy.get(), seed + 100, 60);
    CHECK(GraphToBytes(Snapshot(*copy), "") == GraphToBytes(Snapshot(graph), ""));
    for (NodeId node = 0; node < Snapshot(graph).num_nodes(); ++node) {
      if (!Snapshot(graph).HasNode(node)) continue;
      for (const std::int64_t time : {0, 10, 30})
        CHECK(Snapshot(graph).FactsOf(node, Direction::kBoth, time) ==
              Snapshot(*copy).FactsOf(node, Direction::kBoth, time));
    }
  }
}

TEST(DamagedBytes) {
  KnowledgeGraph graph;
  Fill(&graph, 5, 25);
  graph.Forget({1}, {});
  const std::string whole = GraphToBytes(Snapshot(graph), "x");
  std::string label;
  std::size_t num_refused = 0, num_read = 0;
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_THROWS(GraphFromBytes(std::string_view(whole).substr(0, size), &label), InvalidInputError, "graph: ");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    CHECK_THROWS(GraphFromBytes(flipped, &label), InvalidInputError, "graph: ");
  }
  // With a checksum that matches, the reader itself is asked. What it reads, it can write.
  std::mt19937_64 rng(7);
  for (int round = 0; round < 20000; ++round) {
    std::string mutated = whole.substr(0, whole.size() - 4);
    for (std::uint64_t i = 0; i <= rng() % 3; ++i) {
      const std::size_t at = 12 + rng() % (mutated.size() - 12);
      switch (rng() % 4) {
        case 0: mutated[at] = static_cast<char>(rng()); break;
        case 1: mutated.erase(at, 1 + rng() % 9); break;
        case 2: mutated.insert(at, mutated.substr(12 + rng() % (mutated.size() - 12), rng() % 20)); break;
        default: mutated[at] = static_cast<char>(mutated[at] ^ (1 << (rng() % 8)));
      }
      if (mutated.size() < 20) break;
    }
    PutNumber(&mutated, Crc32c(mutated));
    try {
      const auto copy = GraphFromBytes(mutated, &label);
      ++num_read;
      CHECK(GraphToBytes(Snapshot(*copy), label) == mutated);
      Fill(copy.get(), 3, 5);
    } catch (const InvalidInputError&) {
      ++num_refused;
    }
  }
  CHECK(num_refused > 5000);
  CHECK(num_read > 500);
}

TEST(Forget) {
  KnowledgeGraph graph;
  graph.SetRules(PlaceRules());
  Tell(&graph, "apple", "in", "fridge", 1, 10);
  Tell(&graph, "apple", "in", "fridge", 2, 11);
  Tell(&graph, "mug", "in", "fridge", 2, 11);
  Tell(&graph, "secret", "likes", "mug", 3, 12);
  Tell(&graph, "mug", "in", "drawer", 4, 12);
  const Snapshot before(graph);
  const auto fork = graph.Fork();
  Forgotten gone = graph.Forget({}, {12});
  CHECK((gone.erased == std::vector<FactId>{2, 3}));
  CHECK((gone.nodes == std::vector<NodeId>{3, 4}));  // secret, and drawer: nothing is left of them
  gone = graph.Forget({}, {11});
  CHECK((gone.erased == std::vector<FactId>{1}));
  CHECK((gone.unsourced == std::vector<FactId>{0}));
  CHECK((gone.nodes == std::vector<NodeId>{2}));
  {
    const Snapshot now(graph);
    CHECK_EQ(now.num_current_facts(), std::size_t{1});
    CHECK((now.GetFact(0).sources == std::vector<std::int64_t>{10}));
    CHECK_EQ(now.FindNode("secret"), kNoNode);
    CHECK(!now.HasNode(3) && !now.HasFact(2));
    CHECK_THROWS(now.GetNode(3), InvalidInputError, "got 3, which was forgotten");
    CHECK_THROWS(now.GetFact(2), InvalidInputError, "got 2, which was forgotten");
    CHECK_THROWS(now.FindRelation("likes"), InvalidInputError, "known: in");
    const std::string bytes = GraphToBytes(now, "");
    for (const char* word : {"secret", "likes", "drawer", "mug"}) {
      CHECK_EQ(bytes.find(word), std::string::npos);
      CHECK(GraphToBytes(before, "").find(word) != std::string::npos);  // it keeps its version
      CHECK(GraphToBytes(Snapshot(*fork), "").find(word) != std::string::npos);
    }
  }
  Tell(&graph, "secret", "in", "fridge", 5, 13);
  CHECK_EQ(Snapshot(graph).FindNode("secret"), NodeId{5});  // not the old id
  CHECK_THROWS(graph.Apply({{}, {}, {{3, 0, 0, 6, std::nullopt}}}), InvalidInputError,
               "add[0].subject: expected a known node, got 3");
  CHECK_THROWS(graph.Apply({{}, {{2, 6}}, {}}), InvalidInputError, "got 2, which was forgotten");
  CHECK_THROWS(graph.Forget({3}, {}), InvalidInputError, "nodes[0]");
  CHECK_THROWS(graph.Forget({99}, {}), InvalidInputError, "below 6, got 99");
  const std::uint64_t version = Snapshot(graph).version();
  CHECK(graph.Forget({}, {77}).erased.empty());
  CHECK_EQ(Snapshot(graph).version(), version);
}

}  // namespace
}  // namespace embodied_mem

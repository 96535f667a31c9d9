// Tests of the knowledge graph: against a plain model, old snapshots, forks, rules, bad input, want of memory, threads.
#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "memory/graph/graph_update.h"
#include "memory/graph/knowledge_graph.h"
#include "tests/allocations.h"
#include "tests/check.h"

namespace embodied_mem {
namespace {

using testing::allocated_bytes;
using testing::allocations_left;

std::string Name(std::size_t i) { return "thing " + std::to_string(i); }

// The facts of a graph as a plain list, and answers by scanning it.
struct Model {
  struct Item {
    NodeId subject;
    RelationId relation;
    NodeId object;
    std::int64_t valid_at, invalid_at;
  };
  std::vector<Item> facts;
  std::size_t num_nodes = 0;

  bool True(const Item& fact, std::optional<std::int64_t> as_of) const {
    return as_of ? fact.valid_at <= *as_of && *as_of < fact.invalid_at : fact.invalid_at == kStillValid;
  }
  // Nodes by hop, and the facts between nodes at hop < K and any node found.
  std::pair<std::vector<std::set<NodeId>>, std::set<FactId>> KHop(const std::vector<NodeId>& sources,
                                                                  const KHopOptions& options) const {
    std::vector<std::set<NodeId>> hops{{sources.begin(), sources.end()}};
    std::set<NodeId> seen = hops[0];
    std::set<FactId> used;
    for (std::size_t hop = 0; hop < options.hops; ++hop) {
      std::set<NodeId> next;
      for (std::size_t f = 0; f < facts.size(); ++f) {
        const Item& fact = facts[f];
        if (!True(fact, options.as_of)) continue;
        if (!options.relations.empty() &&
            std::find(options.relations.begin(), options.relations.end(), fact.relation) == options.relations.end())
          continue;
        const auto follow = [&](NodeId from, NodeId to) {
          if (hops[hop].count(from) == 0) return;
          used.insert(static_cast<FactId>(f));
          if (seen.count(to) == 0) next.insert(to);
        };
        if (options.direction != Direction::kIn) follow(fact.subject, fact.object);
        if (options.direction != Direction::kOut) follow(fact.object, fact.subject);
      }
      seen.insert(next.begin(), next.end());
      hops.push_back(std::move(next));
    }
    return {hops, used};
  }
};

void CompareKHop(const Snapshot& snapshot, const Model& model, std::mt19937_64* rng, KHopScratch* scratch) {
  std::vector<NodeId> sources;
  for (std::size_t i = 0; i <= (*rng)() % 3; ++i) sources.push_back(static_cast<NodeId>((*rng)() % model.num_nodes));
  KHopOptions options;
  options.hops = (*rng)() % 4;
  options.direction = static_cast<Direction>((*rng)() % 3);
  if ((*rng)() % 2 == 0) options.relations = {static_cast<RelationId>((*rng)() % 3)};
  if ((*rng)() % 2 == 0) options.as_of = static_cast<std::int64_t>((*rng)() % 200);
  Subgraph got;
  snapshot.KHop(sources, options, scratch, &got);
  const auto [hops, facts] = model.KHop(sources, options);
  CHECK_EQ(got.hop_ends.size(), hops.size());
  CHECK(!got.truncated);
  std::size_t begin = 0;
  for (std::size_t hop = 0; hop < hops.size(); ++hop) {
    const auto first = got.nodes.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = got.nodes.begin() + static_cast<std::ptrdiff_t>(got.hop_ends[hop]);
    CHECK_EQ(static_cast<std::size_t>(last - first), hops[hop].size());
    CHECK(std::set<NodeId>(first, last) == hops[hop]);
    begin = got.hop_ends[hop];
  }
  CHECK_EQ(got.facts.size(), facts.size());
  CHECK_EQ(got.fact_ends.size(), hops.size() - 1);
  CHECK_EQ(got.fact_ends.empty() ? 0 : got.fact_ends.back(), facts.size());
  CHECK(std::set<FactId>(got.facts.begin(), got.facts.end()) == facts);
  // Theorem 1 of RoboMemory: at most M (D^(K+1) - 1) / (D - 1) nodes when the largest degree is D > 1.
  std::vector<std::size_t> degree(model.num_nodes);
  for (const auto& fact : model.facts) {
    if (!model.True(fact, options.as_of)) continue;
    if (options.direction != Direction::kIn) ++degree[fact.subject];
    if (options.direction != Direction::kOut) ++degree[fact.object];
  }
  const std::size_t largest = std::max<std::size_t>(1, *std::max_element(degree.begin(), degree.end()));
  std::size_t bound = 0, power = 1;
  for (std::size_t hop = 0; hop <= options.hops; ++hop, power *= largest) bound += power;
  CHECK(got.nodes.size() <= bound * std::set<NodeId>(sources.begin(), sources.end()).size());
  // A limit gives a prefix of the same order.
  if (got.nodes.size() > 1) {
    Subgraph cut;
    options.max_nodes = 1 + (*rng)() % (got.nodes.size() - 1);
    snapshot.KHop(sources, options, scratch, &cut);
    CHECK(cut.truncated);
    CHECK_EQ(cut.nodes.size(), options.max_nodes);
    CHECK(std::equal(cut.nodes.begin(), cut.nodes.end(), got.nodes.begin()));
  }
}

// One random batch on both sides.
void Step(KnowledgeGraph* graph, Model* model, std::int64_t time, std::mt19937_64* rng) {
  Changes changes;
  const std::size_t num_new = model->num_nodes == 0 ? 5 : (*rng)() % 3;
  for (std::size_t i = 0; i < num_new; ++i) changes.nodes.push_back({Name(model->num_nodes + i), "", {}, kNoEmbedding});
  std::vector<FactId> current;
  for (std::size_t f = 0; f < model->facts.size(); ++f)
    if (model->facts[f].invalid_at == kStillValid) current.push_back(static_cast<FactId>(f));
  std::shuffle(current.begin(), current.end(), *rng);
  current.resize(std::min<std::size_t>(current.size(), (*rng)() % 3));
  std::vector<FactId> ended;
  for (const FactId fact : current) {  // by their ids or by what they say
    Model::Item& item = model->facts[fact];
    if ((*rng)() % 2 == 0) {
      changes.invalidate.push_back({fact, time});
    } else {
      changes.end.push_back({item.subject, item.relation, item.object, time});
      ended.push_back(fact);
    }
    item.invalid_at = time;
  }
  model->num_nodes += num_new;
  std::vector<FactId> expected;
  for (std::size_t i = 0; i < (*rng)() % 5; ++i) {
    const auto subject = static_cast<NodeId>((*rng)() % model->num_nodes),
               object = static_cast<NodeId>((*rng)() % model->num_nodes);
    const auto relation = static_cast<RelationId>((*rng)() % 3);
    changes.add.push_back({subject, relation, object, time, std::nullopt});
    const auto known = std::find_if(model->facts.begin(), model->facts.end(), [&](const Model::Item& f) {
      return f.subject == subject && f.relation == relation && f.object == object && f.invalid_at == kStillValid;
    });
    expected.push_back(static_cast<FactId>(known - model->facts.begin()));
    if (known == model->facts.end()) model->facts.push_back({subject, relation, object, time, kStillValid});
  }
  const Applied applied = graph->Apply(changes);
  CHECK(applied.facts == expected);
  CHECK(applied.ended == ended);
}

TEST(AgainstModel) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::mt19937_64 rng(seed);
    // Graphs that descend from one another by forks; each with its model, and old snapshots with theirs.
    std::vector<std::pair<std::unique_ptr<KnowledgeGraph>, Model>> graphs;
    graphs.emplace_back(std::make_unique<KnowledgeGraph>(), Model());
    graphs[0].first->Intern({"in", "on", "near"});
    std::vector<std::pair<std::unique_ptr<Snapshot>, Model>> old;
    KHopScratch scratch;
    for (std::int64_t time = 0; time < 200; ++time) {
      auto& [graph, model] = graphs[rng() % graphs.size()];
      Step(graph.get(), &model, time, &rng);
      if (time % 20 == 7) old.emplace_back(std::make_unique<Snapshot>(*graph), model);
      CompareKHop(Snapshot(*graph), model, &rng, &scratch);
      if (!old.empty()) {
        const auto& [snapshot, then] = old[rng() % old.size()];
        CHECK_EQ(snapshot->num_facts(), then.facts.size());
        CompareKHop(*snapshot, then, &rng, &scratch);
        const std::size_t node = rng() % then.num_nodes;
        CHECK_EQ(snapshot->FindNode(Name(node)), static_cast<NodeId>(node));
        CHECK_EQ(snapshot->FindNode(Name(then.num_nodes)), kNoNode);
      }
      if (time % 40 == 11) {
        auto fork = graph->Fork();
        Model copy = model;
        graphs.emplace_back(std::move(fork), std::move(copy));
      }
      if (time % 60 == 59) old.erase(old.begin());
    }
    old.clear();
    for (auto& [graph, model] : graphs) {
      std::vector<FactId> current;
      for (std::size_t f = 0; f < model.facts.size(); ++f)
        if (model.facts[f].invalid_at == kStillValid) current.push_back(static_cast<FactId>(f));
      CHECK(Snapshot(*graph).AllFacts(std::nullopt) == current);
      CHECK_EQ(Snapshot(*graph).num_current_facts(), current.size());
      graph->Apply({{{"one more", "", {}, kNoEmbedding}}, {}, {}});
      CHECK_EQ(graph->num_retired(), std::size_t{0});
    }
  }
}

// One that is larger than what a search takes for cached, with old versions of it.
TEST(LargeGraph) {
  std::mt19937_64 rng(5);
  KnowledgeGraph graph;
  graph.Intern({"in", "on", "near"});
  Model model;
  model.num_nodes = 9000;
  Changes changes;
  for (std::size_t i = 0; i < model.num_nodes; ++i) changes.nodes.push_back({Name(i), "", {}, kNoEmbedding});
  const auto any = [&] { return static_cast<NodeId>(rng() % 9000 * (rng() % 9000) / 9000); };  // some have long lists
  std::set<std::pair<NodeId, NodeId>> pairs;
  while (pairs.size() < 20000) pairs.emplace(any(), any());
  for (const auto& [subject, object] : pairs) {
    const auto relation = static_cast<RelationId>(rng() % 3);
    changes.add.push_back({subject, relation, object, 0, std::nullopt});
    model.facts.push_back({subject, relation, object, 0, kStillValid});
  }
  graph.Apply(changes);
  const Snapshot before(graph);
  const Model then = model;
  KHopScratch scratch;
  for (std::int64_t time = 1; time < 30; ++time) {
    Step(&graph, &model, time, &rng);
    CompareKHop(Snapshot(graph), model, &rng, &scratch);
    CompareKHop(before, then, &rng, &scratch);
  }
}

TEST(Forks) {
  KnowledgeGraph graph;
  const RelationId in = graph.Intern({"in"})[0];
  Changes changes;
  for (std::size_t i = 0; i < 3000; ++i) changes.nodes.push_back({Name(i), "object", {}, kNoEmbedding});
  for (NodeId i = 1; i < 3000; ++i) changes.add.push_back({i, in, i / 2, 0, 7});
  graph.Apply(changes);
  std::vector<std::unique_ptr<KnowledgeGraph>> forks;
  for (std::size_t i = 0; i < 64; ++i) forks.push_back(graph.Fork());
  for (NodeId i = 0; i < 64; ++i) {
    Changes change;
    change.nodes.push_back({"only in " + std::to_string(i), "", {}, kNoEmbedding});
    change.invalidate.push_back({i, 1});
    change.add.push_back({3000, in, i, 1, std::nullopt});
    CHECK_EQ(forks[i]->Apply(change).nodes[0], NodeId{3000});
  }
  CHECK_EQ(Snapshot(graph).num_nodes(), std::size_t{3000});
  CHECK_EQ(Snapshot(graph).num_current_facts(), std::size_t{2999});
  for (NodeId i = 0; i < 64; ++i) {
    const Snapshot snapshot(*forks[i]);
    for (NodeId j = 0; j < 64; ++j) {
      CHECK_EQ(snapshot.GetFact(j).invalid_at, i == j ? 1 : kStillValid);
      CHECK_EQ(snapshot.FindNode("only in " + std::to_string(j)), i == j ? NodeId{3000} : kNoNode);
    }
    CHECK_EQ(snapshot.GetFact(2999).object, i);
  }
  forks.erase(forks.begin(), forks.begin() + 40);  // who goes first does not matter
  CHECK_EQ(Snapshot(*forks[0]).GetFact(40).invalid_at, 1);

  // A fork costs what does not grow with the graph, or hardly; the first write copies a few pages.
  changes = Changes();
  for (std::size_t i = 3000; i < 100000; ++i) changes.nodes.push_back({Name(i), "object", {}, kNoEmbedding});
  for (NodeId i = 3000; i < 100000; ++i) changes.add.push_back({i, in, i / 2, 0, 7});
  graph.Apply(changes);
  allocated_bytes = 0;
  const auto fork = graph.Fork();
  CHECK(allocated_bytes > 0);
  CHECK(allocated_bytes < 4096);
  fork->Apply({{{"one more", "", {}, kNoEmbedding}}, {{77777, 1}}, {{5, in, 99999, 1, std::nullopt}}});
  CHECK(allocated_bytes < 100000);
}

ConflictRules HouseRules() {
  using Role = ConflictRule::Role;
  return {{{"place", {{"in", Role::kSubject, {}}, {"on", Role::kSubject, {}}, {"holds", Role::kObject, {}}}},
           {"hand", {{"holds", Role::kSubject, {}}}},
           {"door", {{"is", Role::kSubject, {"open", "closed"}}}}}};
}

Triple Say(const std::string& subject, const std::string& relation, const std::string& object, std::int64_t time) {
  return {{subject, ""}, relation, {object, ""}, time, time};
}

TEST(Update) {
  KnowledgeGraph graph;
  graph.SetRules(HouseRules());
  KHopScratch scratch;
  UpdateResult result;
  UpdateOptions options;
  const auto tell = [&](const Triple& triple) { graph.Update({triple}, options, &scratch, &result); };
  tell(Say("apple", "in", "fridge", 1));
  CHECK_EQ(result.new_nodes.size(), std::size_t{2});
  CHECK_EQ(result.subgraph.facts.size(), std::size_t{1});
  tell(Say("apple", "in", "fridge", 2));
  CHECK_EQ(result.repeated.size(), std::size_t{1});
  CHECK_EQ(Snapshot(graph).num_facts(), std::size_t{1});
  CHECK((Snapshot(graph).GetFact(0).sources == std::vector<std::int64_t>{1, 2}));
  tell(Say("agent", "holds", "apple", 3));
  CHECK_EQ(result.ended.size(), std::size_t{1});
  CHECK_EQ(result.ended[0].rule, std::size_t{0});
  CHECK_EQ(Snapshot(graph).GetFact(0).invalid_at, 3);
  tell(Say("agent", "holds", "mug", 4));
  CHECK_EQ(result.ended.size(), std::size_t{1});
  CHECK_EQ(result.ended[0].rule, std::size_t{1});
  tell(Say("fridge", "is", "open", 5));
  tell(Say("fridge", "is", "cold", 6));
  CHECK(result.ended.empty());
  tell(Say("fridge", "is", "closed", 7));
  CHECK_EQ(result.ended.size(), std::size_t{1});
  CHECK_EQ(Snapshot(graph).num_current_facts(), std::size_t{3});  // holds mug, is cold, is closed
  graph.Update({{{"mug", "object"}, "on", {"table", "place"}, 8, std::nullopt}}, options, &scratch, &result);
  CHECK_EQ(Snapshot(graph).GetNode(result.objects[0]).type, std::string("place"));
}

// Reports of the same happenings in any order leave the same past.
TEST(LateReports) {
  const std::vector<Triple> reports = {Say("apple", "in", "fridge", 10),  Say("apple", "on", "table", 20),
                                       Say("agent", "holds", "mug", 25),  Say("agent", "holds", "apple", 30),
                                       Say("apple", "in", "sink", 40),    Say("agent", "holds", "knife", 50),
                                       Say("mug", "on", "shelf", 35),     Say("fridge", "is", "open", 5),
                                       Say("fridge", "is", "closed", 15), Say("knife", "on", "table", 20)};
  const auto tell = [](const std::vector<Triple>& order) {
    KnowledgeGraph graph;
    graph.SetRules(HouseRules());
    KHopScratch scratch;
    UpdateResult result;
    for (const Triple& report : order) graph.Update({report}, {}, &scratch, &result);
    const Snapshot snapshot(graph);
    std::set<std::string> past;
    for (FactId f = 0; f < snapshot.num_facts(); ++f) {
      const Fact fact = snapshot.GetFact(f);
      past.insert(snapshot.GetNode(fact.subject).name + " " + fact.relation + " " + snapshot.GetNode(fact.object).name +
                  " " + std::to_string(fact.valid_at) + " " + std::to_string(fact.invalid_at));
    }
    return past;
  };
  std::vector<Triple> order = reports;
  std::sort(order.begin(), order.end(), [](const Triple& a, const Triple& b) { return a.valid_at < b.valid_at; });
  const auto expected = tell(order);
  CHECK_EQ(expected.count("apple in fridge 10 20"), std::size_t{1});
  CHECK_EQ(expected.count("agent holds apple 30 40"), std::size_t{1});
  std::mt19937_64 rng(3);
  for (int round = 0; round < 200; ++round) {
    std::shuffle(order.begin(), order.end(), rng);
    CHECK(tell(order) == expected);
  }
}

TEST(BadInput) {
  KnowledgeGraph graph;
  const RelationId in = graph.Intern({"in"})[0];
  graph.Apply({{{"a", "", {}, kNoEmbedding}, {"b", "", {}, kNoEmbedding}}, {}, {{0, in, 1, 5, std::nullopt}}});
  const std::uint64_t version = Snapshot(graph).version();
  const auto add = [&](NodeId s, RelationId r, NodeId o) {
    graph.Apply({{{"c", "", {}, kNoEmbedding}}, {}, {{s, r, o, 6, std::nullopt}}});
  };
  CHECK_THROWS(add(3, in, 0), InvalidInputError, "add[0].subject: expected a node id below 3, got 3");
  CHECK_THROWS(add(0, in, 9), InvalidInputError, "add[0].object");
  CHECK_THROWS(add(0, 8, 1), InvalidInputError, "add[0].relation: expected a relation id below 1, got 8");
  const auto end = [&](std::vector<Changes::Invalidation> list) { graph.Apply({{}, std::move(list), {}}); };
  CHECK_THROWS(end({{4, 6}}), InvalidInputError, "invalidate[0].fact: expected a fact id below 1, got 4");
  CHECK_THROWS(end({{0, 4}}), InvalidInputError, "expected a time from 5 on");
  CHECK_THROWS(end({{0, 6}, {0, 6}}), InvalidInputError, "got 0 twice");
  CHECK_THROWS(graph.Apply({{{"", "", {}, kNoEmbedding}}, {}, {}}), InvalidInputError, "nodes[0].name");
  CHECK_THROWS(graph.Apply({{{"\xff", "", {}, kNoEmbedding}}, {}, {}}), InvalidInputError, "UTF-8");
  CHECK_THROWS(graph.SetRules({{{"x", {}}}}), InvalidInputError, "expected members");
  CHECK_THROWS(Snapshot(graph).FindRelation("on"), InvalidInputError, "known: in");
  CHECK_THROWS(Snapshot(graph).GetNode(2), InvalidInputError, "below 2, got 2");
  KHopScratch scratch;
  Subgraph subgraph;
  KHopOptions options;
  options.hops = 65;
  CHECK_THROWS(Snapshot(graph).KHop({0}, options, &scratch, &subgraph), InvalidInputError, "hops: expected at most 64");
  UpdateResult result;
  CHECK_THROWS(graph.Update({Say("d", "on", "e", 7)}, {true, options}, &scratch, &result), InvalidInputError, "hops");
  CHECK_EQ(Snapshot(graph).version(), version);
  end({{0, 6}});  // and it goes on
  CHECK_THROWS(end({{0, 7}}), InvalidInputError, "which ended at 6");
}

// Fails each allocation of an update in turn: readers keep the version before, nothing leaks (AddressSanitizer).
TEST(WantOfMemory) {
  std::size_t num_failed = 0, num_closed = 0;
  for (long n = 0;; ++n) {
    KnowledgeGraph graph;
    graph.SetRules(HouseRules());
    KHopScratch scratch;
    UpdateResult result;
    graph.Update({Say("apple", "in", "fridge", 1), Say("mug", "on", "table", 1)}, {}, &scratch, &result);
    const auto fork = graph.Fork();
    const std::uint64_t version = Snapshot(graph).version();
    const std::vector<Triple> more = {Say("agent", "holds", "apple", 2), Say("pen", "in", "drawer", 2),
                                      Say("mug", "on", "table", 2)};
    bool failed = false;
    allocations_left = n;
    try {
      graph.Update(more, {false, {}}, &scratch, &result);
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    allocations_left = -1;
    if (!failed) break;
    ++num_failed;
    CHECK_EQ(Snapshot(graph).version(), version);
    CHECK_EQ(Snapshot(graph).num_current_facts(), std::size_t{2});
    CHECK_EQ(Snapshot(graph).FindNode("pen"), kNoNode);
    try {
      graph.Update(more, {false, {}}, &scratch, &result);
      CHECK_EQ(Snapshot(graph).num_current_facts(), std::size_t{3});
    } catch (const InternalError&) {
      ++num_closed;
    }
    fork->Update(more, {false, {}}, &scratch, &result);
    CHECK_EQ(Snapshot(*fork).num_current_facts(), std::size_t{3});
  }
  CHECK(num_failed > num_closed);  // some before anything was written
  CHECK(num_closed > 10);
}

// One writer moves things between places, and a second one a fork of it, while eight readers look.
TEST(Threads) {
  constexpr NodeId kThings = 40, kPlaces = 8;
  KnowledgeGraph graph;
  graph.SetRules(HouseRules());
  std::vector<Triple> start;
  for (NodeId i = 0; i < kThings; ++i) start.push_back(Say(Name(i), "in", "place " + std::to_string(i % kPlaces), 0));
  KHopScratch scratch;
  UpdateResult result;
  graph.Update(start, {}, &scratch, &result);
  const auto fork = graph.Fork();
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> wrong{0}, num_reads{0}, num_versions{0};
  const auto write = [&](KnowledgeGraph* own, std::uint64_t seed, int rounds) {
    std::mt19937_64 rng(seed);
    KHopScratch mine;
    UpdateResult changed;
    for (int time = 1; time <= rounds; ++time) {
      std::vector<Triple> batch;
      for (int i = 0; i < 4; ++i)
        batch.push_back(
            Say(Name(rng() % kThings), rng() % 2 == 0 ? "in" : "on", "place " + std::to_string(rng() % kPlaces), time));
      if (time % 16 == 0) batch.push_back(Say(Name(kThings + static_cast<NodeId>(time)), "near", Name(0), time));
      own->Update(batch, {}, &mine, &changed);
      if (time % 64 == 0) own->Fork();  // shares all pages, and is gone at once
    }
  };
  const auto read = [&](std::uint64_t seed) {
    std::mt19937_64 rng(seed);
    KHopScratch mine;
    Subgraph around;
    std::uint64_t last = 0;
    while (!stop.load()) {
      const Snapshot snapshot(rng() % 4 == 0 ? *fork : graph);
      // Every thing is in one place, whatever the writer is at.
      const auto thing = static_cast<NodeId>(snapshot.FindNode(Name(rng() % kThings)));
      if (thing == kNoNode || snapshot.FactsOf(thing, Direction::kOut, std::nullopt).size() != 1) ++wrong;
      if (snapshot.AllFacts(std::nullopt).size() != snapshot.num_current_facts()) ++wrong;
      std::vector<NodeId> places;
      for (NodeId i = 0; i < kPlaces; ++i) places.push_back(snapshot.FindNode("place " + std::to_string(i)));
      KHopOptions options;
      options.hops = 1;
      options.direction = Direction::kIn;
      snapshot.KHop(places, options, &mine, &around);
      if (around.facts.size() != kThings || around.nodes.size() != kThings + kPlaces) ++wrong;
      for (const FactId fact : around.facts)
        if (snapshot.GetFact(fact).invalid_at != kStillValid) ++wrong;
      num_reads.fetch_add(1);
      if (snapshot.version() != last) num_versions.fetch_add(1);
      last = snapshot.version();
    }
  };
  std::vector<std::thread> readers;
  for (std::uint64_t i = 0; i < 8; ++i) readers.emplace_back(read, i);
  std::thread other(write, fork.get(), 99, 600);
  write(&graph, 98, 600);
  other.join();
  while (num_reads.load() < 20) std::this_thread::yield();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  CHECK_EQ(wrong.load(), std::size_t{0});
  CHECK(num_versions.load() > 8);  // they did run beside the writer
}

}  // namespace
}  // namespace embodied_mem

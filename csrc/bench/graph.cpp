// What an update and an extraction cost, beside a bare adjacency list that does the same work in the same iteration:
//
//   bench_graph [--benchmark_filter=nodes:1000/] [--benchmark_out=FILE.json] ...      (Google Benchmark's options)
//
// Random graphs of 10^3 ... 10^6 nodes, every node with 4 or 8 facts out. The benchmarks of each:
//
// - khop: an extraction from one random node, 1, 2 or 3 facts out.
// - fork: a copy of the whole graph.
// - update_k2: a round, which is an update (4 facts removed, 8 added, 2 new nodes) and the extraction of all that lies
//   within 2 facts out of the nodes that it touched, as nodes and facts. update: the first part of such a round.
// - update_by_names: Algorithm 1: `Update` of 8 triples given by names, of which 4 end others by a rule, and the same
//   extraction.
//
// 2000 rounds after 200 to warm up, so an update's graph grows by 4400 nodes; each starts with at most a tenth too many.
//
// The two sides take turns on the same work, whose making is outside the clock, and must find the same:
//
// - native: Apply, which finds the 4 facts, a fresh Snapshot, KHop. Names, validity, sources, versions, readers beside it.
// - bare: two vectors of edges per node (out and in), edges found and erased; no names, times or versions. Its search
//   has epoch marks and reuses its result.
//
// The time of an iteration is native's, set by hand. Counters: p50_us and p99_us of it, bare_p50_us and bare_p99_us,
// ratio (of the two p50), visited (nodes in a result, mean), peak_mb (of the process so far). Ends with status 1 if the
// sides differ, and 2 if no benchmark has such a name.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "memory/graph/graph_update.h"
#include "memory/graph/knowledge_graph.h"

namespace embodied_mem {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRounds = 2000, kForks = 100;

double Microseconds(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

std::string Name(std::size_t i) { return "object " + std::to_string(i); }

class Bare {
 public:
  struct Edge {
    NodeId node;
    FactId fact;
  };
  void AddNode() {
    out_.emplace_back();
    in_.emplace_back();
  }
  void AddFact(NodeId subject, NodeId object) {
    out_[subject].push_back({object, num_facts_});
    in_[object].push_back({subject, num_facts_++});
  }
  void RemoveFact(NodeId subject, NodeId object) {
    const auto drop = [](std::vector<Edge>* edges, NodeId node) {
      const auto place =
          std::find_if(edges->begin(), edges->end(), [&](const Edge& edge) { return edge.node == node; });
      if (place != edges->end()) edges->erase(place);
    };
    drop(&out_[subject], object);
    drop(&in_[object], subject);
  }
  const std::vector<Edge>& out(NodeId node) const { return out_[node]; }
  std::size_t num_nodes() const { return out_.size(); }

  void KHop(const std::vector<NodeId>& sources, std::size_t hops) {
    if (marks_.size() < out_.size()) marks_.resize(out_.size() + out_.size() / 2);
    ++epoch_;
    nodes.clear();
    facts.clear();
    for (const NodeId source : sources) {
      if (marks_[source] == epoch_) continue;
      marks_[source] = epoch_;
      nodes.push_back(source);
    }
    std::size_t begin = 0;
    for (std::size_t hop = 0; hop < hops; ++hop) {
      const std::size_t end = nodes.size();
      for (std::size_t i = begin; i < end; ++i) {
        for (const Edge& edge : out_[nodes[i]]) {
          if (marks_[edge.node] != epoch_) {
            marks_[edge.node] = epoch_;
            nodes.push_back(edge.node);
          }
          facts.push_back(edge.fact);
        }
      }
      begin = end;
    }
  }

  std::vector<NodeId> nodes;
  std::vector<FactId> facts;

 private:
  std::vector<std::vector<Edge>> out_, in_;
  std::vector<std::uint32_t> marks_;
  std::uint32_t epoch_ = 0;
  FactId num_facts_ = 0;
};

// What one iteration took; `bare_us` is 0 where nothing is compared.
struct Took {
  double native_us = 0, bare_us = 0;
};

// A random graph on both sides.
class Sides {
 public:
  Sides(std::size_t num_nodes, std::size_t degree) : rng_(num_nodes + degree), num_nodes_(num_nodes), degree_(degree) {
    graph_.SetRules({{{"place", {{"in", ConflictRule::Role::kSubject, {}}}}}});
    const std::vector<RelationId> relations = graph_.Intern({"in", "near"});
    in_ = relations[0];
    near_ = relations[1];
    options_.direction = Direction::kOut;
    Changes changes;
    for (std::size_t i = 0; i < num_nodes; ++i) {
      changes.nodes.push_back({Name(i), "object", {}, kNoEmbedding});
      bare_.AddNode();
    }
    graph_.Apply(changes);
    for (NodeId i = 0; i < num_nodes; ++i) {
      changes = Changes();
      for (std::size_t k = 0; k < degree; ++k) {  // the first by the functional relation
        const NodeId object = Other(i);
        if (std::any_of(bare_.out(i).begin(), bare_.out(i).end(), [&](const auto& e) { return e.node == object; }))
          continue;
        changes.add.push_back({i, k == 0 ? in_ : near_, object, 0, 1});
        bare_.AddFact(i, object);
        if (k > 0) removable_.push_back({i, object});
      }
      graph_.Apply(changes);
    }
  }

  // Whether this is still such a graph, give or take a tenth, and the same one on both sides.
  bool Are(std::size_t num_nodes, std::size_t degree) const {
    return num_nodes_ == num_nodes && degree_ == degree && in_step_ && bare_.num_nodes() <= num_nodes + num_nodes / 10;
  }
  std::size_t num_visited() const { return around_.nodes.size(); }

  // A round: an update and an extraction on both sides; returns what the update alone or all of it took.
  Took Round(bool with_extraction) {
    const Work work = Draw();
    Took update, all;
    auto since = Clock::now();
    bare_.AddNode();
    bare_.AddNode();
    for (const Pair& pair : work.remove) bare_.RemoveFact(pair.first, pair.second);
    for (const Pair& pair : work.add) bare_.AddFact(pair.first, pair.second);
    update.bare_us = Microseconds(since);
    bare_.KHop(work.sources, 2);
    all.bare_us = Microseconds(since);

    Changes changes;
    for (const NodeId node : {work.fresh, work.fresh + 1})
      changes.nodes.push_back({Name(node), "object", {}, kNoEmbedding});
    for (const Pair& pair : work.add) changes.add.push_back({pair.first, near_, pair.second, ++time_, 2});
    for (const Pair& pair : work.remove) changes.end.push_back({pair.first, near_, pair.second, time_});
    since = Clock::now();
    graph_.Apply(changes, &applied_);
    update.native_us = Microseconds(since);
    Snapshot(graph_).KHop(work.sources, options_, &scratch_, &around_);
    all.native_us = Microseconds(since);
    Compare();
    for (std::size_t k = 0; k < work.add.size(); k += 2) removable_.push_back(work.add[k]);
    return with_extraction ? all : update;
  }

  // An extraction from one node on both sides.
  Took KHop(std::size_t hops) {
    const std::vector<NodeId> source = {Any()};
    KHopOptions options = options_;
    options.hops = hops;
    Took took;
    auto since = Clock::now();
    bare_.KHop(source, hops);
    took.bare_us = Microseconds(since);
    since = Clock::now();
    Snapshot(graph_).KHop(source, options, &scratch_, &around_);
    took.native_us = Microseconds(since);
    Compare();
    return took;
  }

  Took Fork() {
    const auto since = Clock::now();
    const auto fork = graph_.Fork();
    return {Microseconds(since), 0};
  }

  // Algorithm 1 on the native side, which leaves the other behind.
  Took UpdateByNames() {
    in_step_ = false;
    ++time_;
    std::vector<Triple> triples;
    const std::string fresh[] = {"late " + std::to_string(2 * time_), "late " + std::to_string(2 * time_ + 1)};
    for (std::size_t k = 0; k < 4; ++k) {
      triples.push_back({{Name(Any()), "object"}, "in", {fresh[k % 2], "object"}, time_, time_});
      triples.push_back({{fresh[k % 2], "object"}, "near", {Name(Any()), "object"}, time_, time_});
    }
    UpdateOptions options;
    options.khop = options_;
    const auto since = Clock::now();
    graph_.Update(triples, options, &scratch_, &result_);
    return {Microseconds(since), 0};
  }

 private:
  using Pair = std::pair<NodeId, NodeId>;
  struct Work {
    NodeId fresh;
    std::vector<Pair> remove, add;
    std::vector<NodeId> sources;
  };

  NodeId Any() { return static_cast<NodeId>(rng_() % num_nodes_); }
  NodeId Other(NodeId node) {
    for (;;) {
      const NodeId other = Any();
      if (other != node) return other;
    }
  }

  // What the next round does. Twice the same pair would be one fact here and two there, so that draw is taken back.
  Work Draw() {
    for (;;) {
      Work work{static_cast<NodeId>(bare_.num_nodes()), {}, {}, {}};
      for (NodeId k = 0; k < 4; ++k) {
        std::swap(removable_[rng_() % removable_.size()], removable_.back());
        work.remove.push_back(removable_.back());
        removable_.pop_back();
        const NodeId subject = work.remove[k].first, node = work.fresh + k % 2, object = Any();
        work.add.push_back({subject, node});
        work.add.push_back({node, object});
        work.sources.insert(work.sources.end(), {subject, node, object});
      }
      std::vector<Pair> sorted = work.add;
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return work;
      removable_.insert(removable_.end(), work.remove.begin(), work.remove.end());
    }
  }

  void Compare() const {
    if (around_.nodes == bare_.nodes && around_.facts.size() == bare_.facts.size()) return;
    throw std::runtime_error("the two sides differ: " + std::to_string(around_.nodes.size()) + " nodes here, " +
                             std::to_string(bare_.nodes.size()) + " there");
  }

  std::mt19937_64 rng_;
  std::size_t num_nodes_, degree_;
  bool in_step_ = true;
  std::int64_t time_ = 0;
  KnowledgeGraph graph_;
  Bare bare_;
  RelationId in_ = 0, near_ = 0;
  std::vector<Pair> removable_;
  KHopScratch scratch_;
  KHopOptions options_;
  Subgraph around_;
  Applied applied_;
  UpdateResult result_;
};

// Benchmarks of one graph follow each other and share it, since making a large one takes seconds.
std::unique_ptr<Sides> shared_sides;
bool any_failed = false;

Sides& SidesOf(std::size_t num_nodes, std::size_t degree) {
  if (!shared_sides || !shared_sides->Are(num_nodes, degree)) {
    shared_sides.reset();  // first, so that there is never memory for two
    shared_sides = std::make_unique<Sides>(num_nodes, degree);
  }
  return *shared_sides;
}

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux counts in kilobytes
}

// Runs `once` as often as the benchmark says, after a tenth of that to warm up.
void Measure(benchmark::State& state, const std::function<Took(Sides&)>& once) {
  std::vector<double> native, bare;
  double num_visited = 0;
  try {
    Sides& sides = SidesOf(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
    for (benchmark::IterationCount i = 0; i < state.max_iterations / 10; ++i) once(sides);
    for ([[maybe_unused]] auto _ : state) {
      const Took took = once(sides);
      state.SetIterationTime(1e-6 * took.native_us);
      native.push_back(took.native_us);
      bare.push_back(took.bare_us);
      num_visited += static_cast<double>(sides.num_visited());
    }
  } catch (const std::exception& error) {
    any_failed = true;
    state.SkipWithError(error.what());
    return;
  }
  state.counters["p50_us"] = Percentile(native, 0.5);
  state.counters["p99_us"] = Percentile(native, 0.99);
  state.counters["peak_mb"] = PeakMegabytes();
  if (const double bare_us = Percentile(bare, 0.5); bare_us > 0) {
    state.counters["bare_p50_us"] = bare_us;
    state.counters["bare_p99_us"] = Percentile(bare, 0.99);
    state.counters["ratio"] = Percentile(native, 0.5) / bare_us;
    state.counters["visited"] = num_visited / static_cast<double>(native.size());
  }
}

void Register(std::int64_t nodes, std::int64_t degree) {
  const auto add = [&](const char* name, std::size_t rounds, std::function<Took(Sides&)> once) {
    return benchmark::RegisterBenchmark(name, [=](benchmark::State& state) { Measure(state, once); })
        ->Iterations(static_cast<benchmark::IterationCount>(rounds))
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  };
  for (const std::int64_t hops : {1, 2, 3}) {
    add("khop", kRounds, [=](Sides& sides) { return sides.KHop(static_cast<std::size_t>(hops)); })
        ->Args({nodes, degree, hops})
        ->ArgNames({"nodes", "degree", "hops"});
  }
  for (auto* each : {add("fork", kForks, [](Sides& sides) { return sides.Fork(); }),
                     add("update", kRounds, [](Sides& sides) { return sides.Round(false); }),
                     add("update_k2", kRounds, [](Sides& sides) { return sides.Round(true); }),
                     add("update_by_names", kRounds, [](Sides& sides) { return sides.UpdateByNames(); })})
    each->Args({nodes, degree})->ArgNames({"nodes", "degree"});
}

}  // namespace
}  // namespace embodied_mem

int main(int argc, char** argv) {
  for (const std::int64_t nodes : {1000, 10000, 100000, 1000000})
    for (const std::int64_t degree : {4, 8}) embodied_mem::Register(nodes, degree);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const bool any_ran = benchmark::RunSpecifiedBenchmarks() > 0;
  embodied_mem::shared_sides.reset();
  benchmark::Shutdown();
  if (!any_ran) return 2;
  return embodied_mem::any_failed ? 1 : 0;
}

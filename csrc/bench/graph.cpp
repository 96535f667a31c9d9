// What an update and an extraction cost, beside a bare adjacency list that does the same work in the same run:
//
//   bench_graph [--nodes N]... [--degree D]... [--rounds R]     default: 1000 ... 1000000, 4 and 8, 2000 rounds
//
// Random graphs, every node with `degree` facts out. A round is an update (4 facts removed, 8 added, 2 new nodes) and
// the extraction of all that lies within 2 facts out of the nodes that it touched, as nodes and facts.
//
// - native: find the 4 facts, Apply, a fresh Snapshot, KHop. Names, validity, sources, versions, readers beside it.
// - bare: two vectors of edges per node (out and in), edges found and erased; no names, times or versions. Its search
//   has epoch marks and reuses its result.
// - named: Algorithm 1: `Update` of 8 triples given by names, of which 4 end others by a rule, and the same extraction.
//
// Native and bare rounds alternate on the same work, whose making is outside the clock; named rounds follow. khopK: one
// random source, K facts out. Prints a table and ends with one JSON line; times in microseconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "memory/graph_update.h"
#include "memory/knowledge_graph.h"

namespace embodied_mem {
namespace {

using Clock = std::chrono::steady_clock;

double Microseconds(Clock::time_point since) { return std::chrono::duration<double, std::micro>(Clock::now() - since).count(); }

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
      const auto place = std::find_if(edges->begin(), edges->end(), [&](const Edge& edge) { return edge.node == node; });
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

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Row {
  std::size_t nodes, degree, visited;
  double fork_us;
  std::map<std::string, std::vector<double>> us;
};

class Bench {
 public:
  Bench(std::size_t num_nodes, std::size_t degree, std::size_t rounds)
      : rng_(num_nodes + degree), num_nodes_(num_nodes), rounds_(rounds), row_{num_nodes, degree, 0, 0, {}} {
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
        if (std::any_of(bare_.out(i).begin(), bare_.out(i).end(), [&](const auto& e) { return e.node == object; })) continue;
        changes.add.push_back({i, k == 0 ? in_ : near_, object, 0, 1});
        bare_.AddFact(i, object);
        if (k > 0) removable_.push_back({i, object});
      }
      graph_.Apply(changes);
    }
  }

  Row Run() {
    for (std::size_t round = 0; round < rounds_ + rounds_ / 10; ++round) {
      if (round == rounds_ / 10) row_.us.clear();  // that was to warm up
      Both();
    }
    for (std::size_t round = 0; round < rounds_; ++round) Alone();
    std::vector<double> forks;
    for (int i = 0; i < 9; ++i) {
      const auto since = Clock::now();
      const auto fork = graph_.Fork();
      forks.push_back(Microseconds(since));
    }
    row_.fork_us = Percentile(forks, 0.5);
    for (std::size_t round = 0; round < rounds_; ++round) Named();
    row_.visited = num_visited_ / (rounds_ + rounds_ / 10);
    return row_;
  }

 private:
  NodeId Any() { return static_cast<NodeId>(rng_() % num_nodes_); }
  NodeId Other(NodeId node) {
    for (;;) {
      const NodeId other = Any();
      if (other != node) return other;
    }
  }

  // An update and an extraction on both sides.
  void Both() {
    struct End {
      NodeId subject, object;
    };
    std::vector<End> remove, add;
    std::vector<NodeId> sources;
    const auto fresh = static_cast<NodeId>(bare_.num_nodes());
    for (NodeId k = 0; k < 4; ++k) {
      const std::size_t pick = rng_() % removable_.size();
      remove.push_back({removable_[pick].first, removable_[pick].second});
      removable_[pick] = removable_.back();
      removable_.pop_back();
      add.push_back({remove[k].subject, fresh + k % 2});
      add.push_back({fresh + k % 2, Any()});
      sources.insert(sources.end(), {add[2 * k].subject, add[2 * k].object, add[2 * k + 1].object});
    }
    // Twice the same pair would be one fact here and two there.
    for (std::size_t i = 0; i < add.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (add[i].subject == add[j].subject && add[i].object == add[j].object) return;

    auto since = Clock::now();
    bare_.AddNode();
    bare_.AddNode();
    for (const End& end : remove) bare_.RemoveFact(end.subject, end.object);
    for (const End& end : add) bare_.AddFact(end.subject, end.object);
    row_.us["bare update"].push_back(Microseconds(since));
    bare_.KHop(sources, 2);
    row_.us["bare update+khop2"].push_back(Microseconds(since));

    Changes changes;
    changes.nodes = {{Name(fresh), "object", {}, kNoEmbedding}, {Name(fresh + 1), "object", {}, kNoEmbedding}};
    for (const End& end : add) changes.add.push_back({end.subject, near_, end.object, ++time_, 2});
    since = Clock::now();
    {
      const Snapshot snapshot(graph_);
      for (const End& end : remove) changes.invalidate.push_back({snapshot.FindFact(end.subject, near_, end.object), time_});
    }
    graph_.Apply(changes);
    row_.us["native update"].push_back(Microseconds(since));
    Snapshot(graph_).KHop(sources, options_, &scratch_, &around_);
    row_.us["native update+khop2"].push_back(Microseconds(since));
    Compare();
    num_visited_ += around_.nodes.size();
    for (std::size_t k = 0; k < add.size(); k += 2) removable_.emplace_back(add[k].subject, add[k].object);
  }

  // Extractions from one node on both sides.
  void Alone() {
    for (std::size_t hops = 1; hops <= 3; ++hops) {
      const std::vector<NodeId> source = {Any()};
      const std::string suffix = " khop" + std::to_string(hops);
      auto since = Clock::now();
      bare_.KHop(source, hops);
      row_.us["bare" + suffix].push_back(Microseconds(since));
      KHopOptions options = options_;
      options.hops = hops;
      since = Clock::now();
      Snapshot(graph_).KHop(source, options, &scratch_, &around_);
      row_.us["native" + suffix].push_back(Microseconds(since));
      Compare();
    }
  }

  void Named() {
    ++time_;
    std::vector<Triple> triples;
    const std::string fresh[] = {"late " + std::to_string(2 * time_), "late " + std::to_string(2 * time_ + 1)};
    for (std::size_t k = 0; k < 4; ++k) {
      triples.push_back({{Name(Any()), "object", {}}, "in", {fresh[k % 2], "object", {}}, time_, time_});
      triples.push_back({{fresh[k % 2], "object", {}}, "near", {Name(Any()), "object", {}}, time_, time_});
    }
    UpdateOptions options;
    options.khop = options_;
    const auto since = Clock::now();
    graph_.Update(triples, options, &scratch_, &result_);
    row_.us["named update+khop2"].push_back(Microseconds(since));
  }

  void Compare() const {
    if (around_.nodes == bare_.nodes && around_.facts.size() == bare_.facts.size()) return;
    throw std::runtime_error("the two sides differ: " + std::to_string(around_.nodes.size()) + " nodes here, " +
                             std::to_string(bare_.nodes.size()) + " there");
  }

  std::mt19937_64 rng_;
  std::size_t num_nodes_, rounds_, num_visited_ = 0;
  std::int64_t time_ = 0;
  KnowledgeGraph graph_;
  Bare bare_;
  RelationId in_ = 0, near_ = 0;
  std::vector<std::pair<NodeId, NodeId>> removable_;
  KHopScratch scratch_;
  KHopOptions options_;
  Subgraph around_;
  UpdateResult result_;
  Row row_;
};

std::string Json(const Row& row) {
  std::string text = "{\"nodes\": " + std::to_string(row.nodes) + ", \"degree\": " + std::to_string(row.degree) +
                     ", \"visited_mean\": " + std::to_string(row.visited) + ", \"fork_us\": " + std::to_string(row.fork_us);
  for (const auto& [name, values] : row.us) {
    std::string key = name;
    std::replace(key.begin(), key.end(), ' ', '_');
    text += ", \"" + key + "\": {\"p50\": " + std::to_string(Percentile(values, 0.5)) +
            ", \"p99\": " + std::to_string(Percentile(values, 0.99)) + "}";
  }
  return text + "}";
}

int Run(int argc, char** argv) {
  std::vector<std::size_t> sizes, degrees;
  std::size_t rounds = 2000;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const std::size_t value = i + 1 < argc ? std::strtoul(argv[++i], nullptr, 10) : 0;
    if (option == "--nodes" && value >= 100) {
      sizes.push_back(value);
    } else if (option == "--degree" && value >= 2) {
      degrees.push_back(value);
    } else if (option == "--rounds" && value >= 10) {
      rounds = value;
    } else {
      std::cerr << "usage: bench_graph [--nodes N >= 100]... [--degree D >= 2]... [--rounds R >= 10]\n";
      return 2;
    }
  }
  if (sizes.empty()) sizes = {1000, 10000, 100000, 1000000};
  if (degrees.empty()) degrees = {4, 8};
  std::string rows;
  std::printf("%9s %6s  %-20s %10s %10s\n", "nodes", "degree", "p50, p99 [us]", "native", "bare");
  for (const std::size_t nodes : sizes) {
    for (const std::size_t degree : degrees) {
      const Row row = Bench(nodes, degree, rounds).Run();
      for (const std::string what : {"update", "update+khop2", "khop1", "khop2", "khop3"}) {
        const auto& native = row.us.at("native " + what);
        const auto& bare = row.us.at("bare " + what);
        std::printf("%9zu %6zu  %-14s p50 %12.2f %10.2f   ratio %.2f\n%9s %6s  %-14s p99 %12.2f %10.2f\n", nodes, degree,
                    what.c_str(), Percentile(native, 0.5), Percentile(bare, 0.5), Percentile(native, 0.5) / Percentile(bare, 0.5),
                    "", "", "", Percentile(native, 0.99), Percentile(bare, 0.99));
      }
      const auto& named = row.us.at("named update+khop2");
      std::printf("%9zu %6zu  by names       p50 %12.2f   p99 %.2f; fork %.2f us; %zu nodes visited\n", nodes, degree,
                  Percentile(named, 0.5), Percentile(named, 0.99), row.fork_us, row.visited);
      rows += (rows.empty() ? "" : ", ") + Json(row);
    }
  }
  std::printf("{\"suite\": \"graph_native\", \"rounds\": %zu, \"rows\": [%s]}\n", rounds, rows.c_str());
  return 0;
}

}  // namespace
}  // namespace embodied_mem

int main(int argc, char** argv) {
  try {
    return embodied_mem::Run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}

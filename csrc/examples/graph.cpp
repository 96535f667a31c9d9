// A knowledge graph in 50 lines: tell it what was seen, ask what is near a thing now, and what was true before.
//
// In a project of your own, see CMakeLists.txt beside this file. Prints what it finds; fails where that is wrong.
#include <iostream>
#include <string>
#include <vector>

#include "memory/graph/graph_update.h"
#include "memory/graph/knowledge_graph.h"

using namespace embodied_mem;

namespace {

std::string Text(const Snapshot& now, FactId id) {
  const Fact fact = now.GetFact(id);
  return now.GetNode(fact.subject).name + " " + fact.relation + " " + now.GetNode(fact.object).name;
}

// The facts within two hops of a thing: current ones, or those that were true at that time.
std::vector<std::string> Around(const KnowledgeGraph& graph, const std::string& name,
                                std::optional<std::int64_t> time) {
  const Snapshot now(graph);  // one version of the graph; a writer does not change it
  KHopOptions options;
  options.hops = 2;
  options.as_of = time;
  KHopScratch scratch;
  Subgraph found;
  now.KHop({now.FindNode(name)}, options, &scratch, &found);
  std::vector<std::string> facts;
  for (const FactId fact : found.facts) facts.push_back(Text(now, fact));
  return facts;
}

}  // namespace

int main() {
  KnowledgeGraph graph;
  // An object is in one place at a time: a later "in" ends the earlier one.
  graph.SetRules({{{"place", {{"in", ConflictRule::Role::kSubject, {}}}}}});
  const Mention apple{"apple", "object"}, fridge{"fridge", "place"}, bowl{"bowl", "object"}, table{"table", "place"};
  KHopScratch scratch;
  UpdateResult result;
  graph.Update({{apple, "in", fridge, 10, 1}, {bowl, "on", table, 12, 1}}, {}, &scratch,
               &result);  // times 10 and 12, episode 1
  graph.Update({{apple, "in", bowl, 20, 2}}, {}, &scratch, &result);
  for (const UpdateResult::Ended& ended : result.ended)
    std::cout << "no longer: " << Text(Snapshot(graph), ended.fact) << "\n";

  const std::vector<std::string> now = Around(graph, "apple", std::nullopt), before = Around(graph, "apple", 15);
  for (const std::string& fact : now) std::cout << "now: " << fact << "\n";
  for (const std::string& fact : before) std::cout << "at 15: " << fact << "\n";
  const bool right = now == std::vector<std::string>{"apple in bowl", "bowl on table"} &&
                     before == std::vector<std::string>{"apple in fridge"};
  return right ? 0 : 1;
}

#include "memory/graph/knowledge_graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "memory/graph/graph_batch.h"
#include "memory/graph/graph_checks.h"
#include "memory/graph/graph_records.h"

namespace embodied_mem {
namespace {

std::string At(const char* list, std::size_t index, const char* field) {
  return std::string(list) + "[" + std::to_string(index) + "]." + field;
}

// Uninitialised room for `size` values, on the stack when they are few: a batch of a dozen allocates nothing for itself.
template <typename T>
class Room {
 public:
  explicit Room(std::size_t size)
      : many_(size > kFew ? new T[size] : nullptr), begin_(size > kFew ? many_.get() : few_) {}
  T* begin() { return begin_; }
  T& operator[](std::size_t i) { return begin_[i]; }

 private:
  static constexpr std::size_t kFew = 16;
  std::unique_ptr<T[]> many_;
  T few_[kFew];
  T* begin_;
};

// A value that is there twice, or `end`. A few are compared pair by pair, more are sorted.
template <typename T>
const T* FindTwice(T* begin, T* end) {
  if (end - begin > 8) {
    std::sort(begin, end);
    return std::adjacent_find(begin, end);
  }
  for (T* value = begin; value != end; ++value)
    if (std::find(begin, value, *value) != value) return value;
  return end;
}

}  // namespace

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && FindInvalidUtf8(name) == std::string_view::npos;
}

void CheckName(std::string_view name, const std::string& where) {
  if (name.empty()) throw InvalidInputError(where + ": expected a name, got \"\"");
  if (name.size() > kMaxNameBytes)
    throw InvalidInputError(where + ": expected at most " + std::to_string(kMaxNameBytes) + " bytes, got " +
                            std::to_string(name.size()) + "; put long texts into attributes");
  const std::size_t bad = FindInvalidUtf8(name);
  if (bad != std::string_view::npos)
    throw InvalidInputError(where + ": expected UTF-8, got another byte at offset " + std::to_string(bad) + " of " +
                            Quote(name));
}

void CheckNode(std::size_t node, std::size_t num_nodes, const std::string& where) {
  if (node >= num_nodes)
    throw InvalidInputError(where + ": expected a node id below " + std::to_string(num_nodes) + ", got " +
                            std::to_string(node));
}

void ThrowForgotten(std::size_t node, const std::string& where) {
  throw InvalidInputError(where + ": expected a known node, got " + std::to_string(node) + ", which was forgotten");
}

void CheckRoom(std::size_t count, std::size_t more, const char* what) {
  if (more > static_cast<std::size_t>(kNoNode) - count)
    throw InvalidInputError(std::string(what) + ": expected at most " + std::to_string(kNoNode) + " in a graph, got " +
                            std::to_string(count) + " and " + std::to_string(more) + " more");
}

std::uint32_t Words::Find(std::string_view word) const {
  const auto found = ids.find(std::string(word));
  return found == ids.end() ? std::numeric_limits<std::uint32_t>::max() : found->second;
}

KnowledgeGraph::KnowledgeGraph() : state_(nullptr), published_(0) {
  const auto none = std::make_shared<const Words>();
  vocabulary_ = std::make_unique<const Vocabulary>(Vocabulary{none, none, std::make_shared<const CompiledRules>()});
  auto* state = new GraphState;
  state->vocabulary = vocabulary_.get();
  state_.store(state);
}

KnowledgeGraph::KnowledgeGraph(const KnowledgeGraph& other)
    : edges_(other.edges_),
      facts_(other.facts_),
      nodes_(other.nodes_),
      names_(other.names_),
      vocabulary_(std::make_unique<const Vocabulary>(*other.vocabulary_)),
      state_(nullptr),
      published_(other.published_.load()) {
  auto* state = new GraphState(*other.state_.load());
  state->vocabulary = vocabulary_.get();
  state_.store(state);
}

KnowledgeGraph::~KnowledgeGraph() { delete state_.load(); }

std::unique_ptr<KnowledgeGraph> KnowledgeGraph::Fork() const {
  const std::lock_guard<std::mutex> lock(writer_);
  if (broken_)
    throw InternalError(
        "the knowledge graph cannot be forked, since a batch ended half way, for want of memory or by a fork "
        "of the process");
  return std::unique_ptr<KnowledgeGraph>(new KnowledgeGraph(*this));
}

std::size_t KnowledgeGraph::num_retired() const {
  const std::lock_guard<std::mutex> lock(writer_);
  return versions_.num_retired();
}

std::vector<RelationId> KnowledgeGraph::Intern(const std::vector<std::string>& relations) {
  for (std::size_t i = 0; i < relations.size(); ++i) CheckName(relations[i], "relations[" + std::to_string(i) + "]");
  GraphBatch batch(this);
  std::vector<RelationId> ids;
  for (const std::string& relation : relations) ids.push_back(batch.Relation(relation));
  batch.Commit();
  return ids;
}

void KnowledgeGraph::SetRules(ConflictRules rules) {
  CheckRules(rules);
  GraphBatch batch(this);
  auto compiled = std::make_shared<CompiledRules>();
  for (std::size_t r = 0; r < rules.rules.size(); ++r) {
    compiled->relations.emplace_back();
    for (std::size_t m = 0; m < rules.rules[r].members.size(); ++m) {
      const RelationId relation = batch.Relation(rules.rules[r].members[m].relation);
      compiled->relations.back().push_back(relation);
      if (compiled->of_relation.size() <= relation) compiled->of_relation.resize(relation + 1);
      compiled->of_relation[relation].push_back({r, m});
    }
  }
  compiled->source = std::move(rules);
  batch.SetRules(std::move(compiled));
  batch.Commit();
}

void KnowledgeGraph::Apply(const Changes& changes, Applied* result) {
  Applied& applied = *result;
  applied.Clear();
  const std::size_t num_named = changes.nodes.size();
  Room<std::uint32_t> hashes(num_named), fresh(num_named);
  Room<TypeId> types(num_named);
  for (std::size_t i = 0; i < num_named; ++i) {
    const std::string &name = changes.nodes[i].name, &type = changes.nodes[i].type;
    hashes[i] = NameHash(name);
    if (!IsName(name)) CheckName(name, At("nodes", i, "name"));
    if (!type.empty() && !IsName(type)) CheckName(type, At("nodes", i, "type"));
    if (changes.nodes[i].embedding < kNoEmbedding)
      throw InvalidInputError(At("nodes", i, "embedding") + ": expected a handle >= 0, or -1 for none, got " +
                              std::to_string(changes.nodes[i].embedding));
  }
  GraphBatch batch(this);
  const GraphState& state = batch.state();
  batch.Prefetch(changes, hashes.begin());
  CheckRoom(state.num_nodes, num_named, "nodes");
  CheckRoom(state.num_facts, changes.add.size(), "facts");
  // Ids of new nodes are known only once they are made, since a name may exist: count those that do not.
  std::size_t num_fresh = 0;
  applied.nodes.resize(num_named);
  for (std::size_t i = 0; i < num_named; ++i) {
    applied.nodes[i] = batch.FindNode(changes.nodes[i].name, hashes[i]);
    if (applied.nodes[i] == kNoNode) fresh[num_fresh++] = hashes[i];
  }
  const bool named_twice =
      FindTwice(fresh.begin(), fresh.begin() + num_fresh) != fresh.begin() + num_fresh;  // it may be
  if (named_twice) {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < num_named; ++i)
      if (applied.nodes[i] == kNoNode) names.push_back(changes.nodes[i].name);
    std::sort(names.begin(), names.end());
    num_fresh = static_cast<std::size_t>(std::unique(names.begin(), names.end()) - names.begin());
  }
  const std::size_t num_nodes = state.num_nodes + num_fresh;
  const std::vector<std::string>& relations = state.vocabulary->relations->words;
  for (std::size_t i = 0; i < changes.add.size(); ++i) {
    const Changes::NewFact& fact = changes.add[i];
    if (fact.subject >= num_nodes) CheckNode(fact.subject, num_nodes, At("add", i, "subject"));
    if (fact.object >= num_nodes) CheckNode(fact.object, num_nodes, At("add", i, "object"));
    if (state.num_forgotten_nodes > 0) {
      if (fact.subject < state.num_nodes && batch.node(fact.subject).name.empty())
        ThrowForgotten(fact.subject, At("add", i, "subject"));
      if (fact.object < state.num_nodes && batch.node(fact.object).name.empty())
        ThrowForgotten(fact.object, At("add", i, "object"));
    }
    if (fact.relation >= relations.size())
      throw InvalidInputError(At("add", i, "relation") + ": expected a relation id below " +
                              std::to_string(relations.size()) + ", got " + std::to_string(fact.relation));
    if (relations[fact.relation].empty())
      throw InvalidInputError(At("add", i, "relation") + ": expected a known relation, got " +
                              std::to_string(fact.relation) + ", which was forgotten; intern its word again");
    if (fact.valid_at == kStillValid)
      throw InvalidInputError(At("add", i, "valid_at") + ": expected a time below " + std::to_string(kStillValid));
  }
  for (std::size_t i = 0; i < changes.end.size(); ++i) {
    const Changes::Ending& end = changes.end[i];
    if (end.subject >= state.num_nodes) CheckNode(end.subject, state.num_nodes, At("invalidate", i, "subject"));
    if (end.object >= state.num_nodes) CheckNode(end.object, state.num_nodes, At("invalidate", i, "object"));
  }
  batch.FindFacts(changes.end, &applied.ended);
  Room<FactId> ended(changes.invalidate.size() + changes.end.size());
  std::size_t num_ended = 0;
  for (std::size_t i = 0; i < changes.end.size(); ++i) {
    const Changes::Ending& end = changes.end[i];
    const FactId id = applied.ended[i];
    if (id == kNoFact)
      throw InvalidInputError(
          "invalidate[" + std::to_string(i) + "]: expected a current fact, got (" + std::to_string(end.subject) + ", " +
          (end.relation < relations.size() ? Quote(relations[end.relation]) : std::to_string(end.relation)) + ", " +
          std::to_string(end.object) + ")");
    const FactRecord& fact = batch.fact(id);
    if (end.invalid_at < fact.valid_at || end.invalid_at == kStillValid)
      throw InvalidInputError(At("invalidate", i, "invalid_at") + ": expected a time from " +
                              std::to_string(fact.valid_at) + " on, since when the fact is valid, got " +
                              std::to_string(end.invalid_at));
    ended[num_ended++] = id;
  }
  for (std::size_t i = 0; i < changes.invalidate.size(); ++i) {
    const Changes::Invalidation& end = changes.invalidate[i];
    if (end.fact >= state.num_facts)
      throw InvalidInputError(At("invalidate", i, "fact") + ": expected a fact id below " +
                              std::to_string(state.num_facts) + ", got " + std::to_string(end.fact));
    const FactRecord& fact = batch.fact(end.fact);
    if (fact.subject == kNoNode)
      throw InvalidInputError(At("invalidate", i, "fact") + ": expected a current fact, got " +
                              std::to_string(end.fact) + ", which was forgotten");
    if (const std::int64_t ended_at = fact.InvalidAt(state.version); ended_at != kStillValid)
      throw InvalidInputError(At("invalidate", i, "fact") + ": expected a current fact, got " +
                              std::to_string(end.fact) + ", which ended at " + std::to_string(ended_at));
    if (end.invalid_at < fact.valid_at || end.invalid_at == kStillValid)
      throw InvalidInputError(At("invalidate", i, "invalid_at") + ": expected a time from " +
                              std::to_string(fact.valid_at) + " on, since when fact " + std::to_string(end.fact) +
                              " is valid, got " + std::to_string(end.invalid_at));
    ended[num_ended++] = end.fact;
  }
  const FactId* const twice = FindTwice(ended.begin(), ended.begin() + num_ended);
  if (twice != ended.begin() + num_ended)
    throw InvalidInputError("invalidate: expected each fact once, got " + std::to_string(*twice) + " twice");

  for (std::size_t i = 0; i < num_named; ++i) {
    const std::string& type = changes.nodes[i].type;
    types[i] = type.empty() ? kNoType : i > 0 && type == changes.nodes[i - 1].type ? types[i - 1] : batch.Type(type);
  }

  for (std::size_t i = 0; i < num_named; ++i) {
    const Node& node = changes.nodes[i];
    NodeId& id = applied.nodes[i];
    if (id == kNoNode && named_twice) id = batch.FindNode(node.name, hashes[i]);
    id = batch.PutNode(node, types[i], hashes[i], id);
  }
  for (const Changes::Invalidation& end : changes.invalidate) batch.EndFact(end.fact, end.invalid_at);
  for (std::size_t i = 0; i < changes.end.size(); ++i) batch.EndFact(applied.ended[i], changes.end[i].invalid_at);
  applied.facts.resize(changes.add.size());
  applied.repeated.resize(changes.add.size());
  for (std::size_t i = 0; i < changes.add.size(); ++i)
    applied.repeated[i] = batch.PutFact(changes.add[i], &applied.facts[i]) ? 1 : 0;
  batch.Commit();
}

}  // namespace embodied_mem

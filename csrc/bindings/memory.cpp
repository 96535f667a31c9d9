// Binds the knowledge graph. Arguments are copied out of Python, then the GIL is released.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/graph_items.h"
#include "bindings/module.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "memory/graph/graph_bytes.h"
#include "memory/graph/graph_update.h"
#include "memory/graph/knowledge_graph.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

// A snapshot that keeps its graph alive.
struct SnapshotHandle {
  explicit SnapshotHandle(GraphPointer of) : graph(std::move(of)), snapshot(std::make_unique<Snapshot>(*graph)) {}
  const Snapshot& get() const {
    if (snapshot == nullptr) throw InvalidInputError("the snapshot was closed; take another one with graph.snapshot()");
    return *snapshot;
  }
  GraphPointer graph;
  std::unique_ptr<Snapshot> snapshot;
};

Direction ParseDirection(const std::string& direction) {
  if (direction == "out") return Direction::kOut;
  if (direction == "in") return Direction::kIn;
  if (direction == "both") return Direction::kBoth;
  throw InvalidInputError("direction: expected \"out\", \"in\" or \"both\", got \"" + direction + "\"");
}

template <typename T>
py::array_t<T> Array(const std::vector<T>& values) {
  return py::array_t<T>(static_cast<py::ssize_t>(values.size()), values.data());
}

KHopOptions MakeOptions(std::size_t hops, const std::string& direction,
                        const std::optional<std::vector<RelationId>>& relations, std::optional<std::size_t> max_nodes,
                        std::optional<std::int64_t> as_of) {
  KHopOptions options;
  options.hops = hops;
  options.direction = ParseDirection(direction);
  if (relations) options.relations = *relations;
  if (max_nodes) options.max_nodes = *max_nodes;
  options.as_of = as_of;
  return options;
}

// The fields of `Triple` in their order.
Triple ToTriple(const Items& row) {
  Triple triple{{std::string(ToText(row[0], "subject")), std::string(ToText(row[5], "subject_type"))},
                std::string(ToText(row[1], "relation")),
                {std::string(ToText(row[2], "object")), std::string(ToText(row[6], "object_type"))},
                ToInteger(row[3], "valid_at"),
                std::nullopt};
  if (!row[4].is_none()) triple.source = ToInteger(row[4], "source");
  return triple;
}

using MemberTuple = std::tuple<std::string, std::string, std::vector<std::string>>;
using RuleTuple = std::pair<std::string, std::vector<MemberTuple>>;

// What an update did; its lists become Python's when they are asked for.
struct Change {
  UpdateResult result;
  bool extracted;
};
using ChangePointer = std::shared_ptr<Change>;

// Updates without the GIL.
ChangePointer Updated(KnowledgeGraph& graph, const std::vector<Triple>& triples, const UpdateOptions& options) {
  auto change = std::make_shared<Change>(Change{{}, options.extract});
  const py::gil_scoped_release release;
  graph.Update(triples, options, &ThreadScratch(), &change->result);
  return change;
}

// `invalidate` has ((subject, relation, object), time) of current facts, by names.
ChangePointer Update(KnowledgeGraph& graph, py::handle tuples, py::handle invalidate, bool extract,
                     const KHopOptions& khop) {
  const Items items(tuples, "triples"), ends(invalidate, "invalidate");
  std::vector<Triple> triples;
  triples.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) triples.push_back(ToTriple(items.Row(i, 7)));
  UpdateOptions options{extract, khop, {}};
  options.end.reserve(ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Items row = ends.Row(i, 2), fact = row.Row(0, 3);
    options.end.push_back({std::string(ToText(fact[0], "invalidate")), std::string(ToText(fact[1], "invalidate")),
                           std::string(ToText(fact[2], "invalidate")), ToInteger(row[1], "invalidate")});
  }
  return Updated(graph, triples, options);
}

ChangePointer Note(KnowledgeGraph& graph, py::handle facts, std::int64_t valid_at, std::int64_t source,
                   const std::string& state) {
  const Items items(facts, "facts");
  std::vector<Triple> triples;
  triples.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Items row = items.Row(i, 3);
    triples.push_back(ClassedTriple(ToText(row[0], "subject"), ToText(row[1], "relation"), ToText(row[2], "object"),
                                    valid_at, source, state));
  }
  return Updated(graph, triples, {false, {}, {}});
}

// A list of a change.
template <auto kMember>
const auto& ListOf(const Change& self) {
  return self.result.*kMember;
}

void BindChange(py::module_& module) {
  py::class_<Change, ChangePointer>(module, "Change", "See embodied_mem.memory.graph.Change.")
      .def_property_readonly("subjects", &ListOf<&UpdateResult::subjects>)
      .def_property_readonly("objects", &ListOf<&UpdateResult::objects>)
      .def_property_readonly("facts", &ListOf<&UpdateResult::facts>)
      .def_property_readonly("new_nodes", &ListOf<&UpdateResult::new_nodes>)
      .def_property_readonly("added", &ListOf<&UpdateResult::added>)
      .def_property_readonly("repeated", &ListOf<&UpdateResult::repeated>)
      .def_property_readonly("ended",
                             [](const Change& self) {
                               std::vector<std::tuple<FactId, FactId, std::size_t>> ended;
                               for (const auto& end : self.result.ended) ended.emplace_back(end.fact, end.by, end.rule);
                               return ended;
                             })
      .def_property_readonly("subgraph", [](const ChangePointer& self) {
        return self->extracted ? std::shared_ptr<Subgraph>(self, &self->result.subgraph) : nullptr;
      });
}

void SetRules(KnowledgeGraph& graph, const std::vector<RuleTuple>& tuples) {
  ConflictRules rules;
  for (std::size_t r = 0; r < tuples.size(); ++r) {
    ConflictRule rule{tuples[r].first, {}};
    for (const auto& [relation, role, objects] : tuples[r].second) {
      if (role != "subject" && role != "object")
        throw InvalidInputError("rules[" + std::to_string(r) +
                                "]: expected the role \"subject\" or \"object\", got \"" + role + "\"");
      rule.members.push_back(
          {relation, role == "subject" ? ConflictRule::Role::kSubject : ConflictRule::Role::kObject, objects});
    }
    rules.rules.push_back(std::move(rule));
  }
  const py::gil_scoped_release release;
  graph.SetRules(std::move(rules));
}

std::vector<RuleTuple> Rules(const Snapshot& snapshot) {
  std::vector<RuleTuple> tuples;
  for (const ConflictRule& rule : snapshot.rules().rules) {
    tuples.emplace_back(rule.name, std::vector<MemberTuple>());
    for (const ConflictRule::Member& member : rule.members)
      tuples.back().second.emplace_back(
          member.relation, member.role == ConflictRule::Role::kSubject ? "subject" : "object", member.objects);
  }
  return tuples;
}

py::tuple FromBytes(const py::bytes& bytes) {
  std::string label;
  GraphPointer graph;
  {
    const std::string_view view(bytes);
    const py::gil_scoped_release release;
    graph = GraphFromBytes(view, &label);
  }
  return py::make_tuple(graph, label);
}

py::tuple Forget(KnowledgeGraph& graph, const std::vector<NodeId>& nodes, const std::vector<std::int64_t>& sources) {
  Forgotten forgotten;
  {
    const py::gil_scoped_release release;
    forgotten = graph.Forget(nodes, sources);
  }
  return py::make_tuple(forgotten.nodes, forgotten.erased, forgotten.unsourced);
}

// Of the first `count` numbers of a row of int64[W, N]: where it has a value, and what another row has there.
py::tuple Where(const py::array_t<std::int64_t, py::array::c_style>& page, std::size_t count, std::size_t row,
                std::int64_t value, std::size_t other) {
  if (page.ndim() != 2) throw InvalidInputError("expected int64[W, N]");
  const auto height = static_cast<std::size_t>(page.shape(0)), width = static_cast<std::size_t>(page.shape(1));
  if (row >= height || other >= height || count > width)
    throw InvalidInputError("expected rows below " + std::to_string(height) + " and a count of at most " +
                            std::to_string(width));
  const std::int64_t *in = page.data() + row * width, *beside = page.data() + other * width;
  std::vector<std::size_t> places;
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < count; ++i) {
    if (in[i] != value) continue;
    places.push_back(i);
    values.push_back(beside[i]);
  }
  return py::make_tuple(places, values);
}

}  // namespace

void BindMemory(py::module_& parent) {
  py::module_ module = parent.def_submodule("memory", "The knowledge graph.");
  module.attr("STILL_VALID") = kStillValid;
  module.attr("NO_EMBEDDING") = kNoEmbedding;
  module.attr("MAX_HOPS") = kMaxHops;
  module.def("crc32c", [](const py::bytes& bytes) { return Crc32c(std::string_view(bytes)); }, py::arg("bytes"));
  module.def("where", &Where, py::arg("page"), py::arg("count"), py::arg("row"), py::arg("value"), py::arg("other"));

  py::class_<KHopOptions>(module, "KHopOptions")
      .def(py::init(&MakeOptions), py::arg("hops"), py::arg("direction"), py::arg("relations"), py::arg("max_nodes"),
           py::arg("as_of"));

  py::class_<SnapshotHandle>(module, "Snapshot", "One version of a graph, to read; see embodied_mem.memory.graph.")
      .def("close", [](SnapshotHandle& self) { self.snapshot.reset(); })
      .def_property_readonly("version", [](const SnapshotHandle& self) { return self.get().version(); })
      .def_property_readonly("num_nodes", [](const SnapshotHandle& self) { return self.get().num_nodes(); })
      .def_property_readonly("num_facts", [](const SnapshotHandle& self) { return self.get().num_facts(); })
      .def_property_readonly("num_current_facts",
                             [](const SnapshotHandle& self) { return self.get().num_current_facts(); })
      .def_property_readonly("num_forgotten_nodes",
                             [](const SnapshotHandle& self) { return self.get().num_forgotten_nodes(); })
      .def_property_readonly("num_erased_facts",
                             [](const SnapshotHandle& self) { return self.get().num_erased_facts(); })
      .def(
          "has_node", [](const SnapshotHandle& self, NodeId node) { return self.get().HasNode(node); }, py::arg("node"))
      .def(
          "has_fact", [](const SnapshotHandle& self, FactId fact) { return self.get().HasFact(fact); }, py::arg("fact"))
      .def(
          "to_bytes",
          [](const SnapshotHandle& self, const std::string& label) {
            std::string bytes;
            {
              const Snapshot& snapshot = self.get();
              const py::gil_scoped_release release;
              bytes = GraphToBytes(snapshot, label);
            }
            return py::bytes(bytes);
          },
          py::arg("label"))
      .def("rules", [](const SnapshotHandle& self) { return Rules(self.get()); })
      .def_property_readonly("relations", [](const SnapshotHandle& self) { return self.get().relations(); })
      .def_property_readonly("types", [](const SnapshotHandle& self) { return self.get().types(); })
      .def(
          "find_node",
          [](const SnapshotHandle& self, const std::string& name) -> std::optional<NodeId> {
            const NodeId node = self.get().FindNode(name);
            return node == kNoNode ? std::nullopt : std::optional<NodeId>(node);
          },
          py::arg("name"))
      .def(
          "find_nodes",
          [](const SnapshotHandle& self, py::handle names) {
            const Snapshot& snapshot = self.get();
            const Items items(names, "names");
            py::list found(items.size());
            for (std::size_t i = 0; i < items.size(); ++i) {
              const NodeId node = snapshot.FindNode(ToText(items[i], "names"));
              found[i] = node == kNoNode ? py::object(py::none()) : py::object(py::int_(node));
            }
            return found;
          },
          py::arg("names"))
      .def(
          "find_relation",
          [](const SnapshotHandle& self, const std::string& relation) { return self.get().FindRelation(relation); },
          py::arg("relation"))
      .def(
          "find_fact",
          [](const SnapshotHandle& self, NodeId subject, RelationId relation, NodeId object) -> std::optional<FactId> {
            const FactId fact = self.get().FindFact(subject, relation, object);
            return fact == kNoFact ? std::nullopt : std::optional<FactId>(fact);
          },
          py::arg("subject"), py::arg("relation"), py::arg("object"))
      .def(
          "node",
          [](const SnapshotHandle& self, NodeId id) {
            const Node node = self.get().GetNode(id);
            return py::make_tuple(node.name, node.type, node.attributes, node.embedding);
          },
          py::arg("node"))
      .def(
          "fact",
          [](const SnapshotHandle& self, FactId id) {
            const Fact fact = self.get().GetFact(id);
            return py::make_tuple(fact.subject, fact.relation, fact.object, fact.valid_at, fact.invalid_at,
                                  py::tuple(py::cast(fact.sources)));
          },
          py::arg("fact"))
      .def(
          "named_facts",
          [](const SnapshotHandle& self, py::handle facts) {
            const Snapshot& snapshot = self.get();
            const std::vector<FactId> ids = ToIds(facts, "facts");
            py::list found(ids.size());
            for (std::size_t i = 0; i < ids.size(); ++i) {
              const NamedFact fact = snapshot.GetNamedFact(ids[i]);
              found[i] = py::make_tuple(fact.subject_name, fact.relation, fact.object_name, fact.subject, fact.object,
                                        fact.valid_at);
            }
            return found;
          },
          py::arg("facts"))
      .def(
          "are_current",
          [](const SnapshotHandle& self, py::handle facts) {
            std::vector<bool> found;
            for (const FactId fact : ToIds(facts, "facts")) found.push_back(self.get().IsCurrent(fact));
            return found;
          },
          py::arg("facts"))
      .def(
          "names",
          [](const SnapshotHandle& self, py::handle nodes) {
            const Snapshot& snapshot = self.get();
            const std::vector<NodeId> ids = ToIds(nodes, "nodes");
            py::list found(ids.size());
            for (std::size_t i = 0; i < ids.size(); ++i) found[i] = snapshot.NameOf(ids[i]);
            return found;
          },
          py::arg("nodes"))
      .def(
          "facts_of_all",
          [](const SnapshotHandle& self, py::handle nodes, const std::string& direction,
             std::optional<std::int64_t> as_of) {
            const Snapshot& snapshot = self.get();
            std::vector<std::vector<FactId>> found;
            for (const NodeId node : ToIds(nodes, "nodes"))
              found.push_back(snapshot.FactsOf(node, ParseDirection(direction), as_of));
            return found;
          },
          py::arg("nodes"), py::arg("direction"), py::arg("as_of"))
      .def(
          "facts_of",
          [](const SnapshotHandle& self, NodeId node, const std::string& direction, std::optional<std::int64_t> as_of) {
            return Array(self.get().FactsOf(node, ParseDirection(direction), as_of));
          },
          py::arg("node"), py::arg("direction"), py::arg("as_of"))
      .def(
          "all_facts",
          [](const SnapshotHandle& self, std::optional<std::int64_t> as_of) {
            const Snapshot& snapshot = self.get();
            std::vector<FactId> facts;
            {
              const py::gil_scoped_release release;
              facts = snapshot.AllFacts(as_of);
            }
            return Array(facts);
          },
          py::arg("as_of"))
      .def(
          "khop",
          [](const SnapshotHandle& self, py::handle sources, const KHopOptions& options) {
            const Snapshot& snapshot = self.get();
            return Extract(snapshot, ToIds(sources, "sources"), options);
          },
          py::arg("sources"), py::arg("options"));

  py::class_<KnowledgeGraph, GraphPointer> graph(module, "KnowledgeGraph",
                                                 "See embodied_mem.memory.graph.KnowledgeGraph.");
  BindGraphBatches(module, graph);
  BindChange(module);
  graph.def(py::init<>())
      .def("snapshot", [](const GraphPointer& self) { return std::make_unique<SnapshotHandle>(self); })
      .def("fork",
           [](const KnowledgeGraph& self) -> GraphPointer {
             const py::gil_scoped_release release;
             return self.Fork();
           })
      .def("set_rules", &SetRules, py::arg("rules"))
      .def("forget", &Forget, py::arg("nodes"), py::arg("sources"))
      .def_static("from_bytes", &FromBytes, py::arg("bytes"))
      .def("update", &Update, py::arg("triples"), py::arg("invalidate"), py::arg("extract"), py::arg("options"))
      .def("note", &Note, py::arg("facts"), py::arg("valid_at"), py::arg("source"), py::arg("state"))
      .def_property_readonly("num_retired", [](const KnowledgeGraph& self) {
        const py::gil_scoped_release release;
        return self.num_retired();
      });
}

}  // namespace embodied_mem

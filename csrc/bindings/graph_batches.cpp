// Binds batches of the knowledge graph, and extractions in the same call. What they return holds its numbers itself;
// an array over them is made when it is asked for, without a copy.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/graph_items.h"
#include "core/error.h"
#include "memory/graph/knowledge_graph.h"

namespace embodied_mem {
namespace {

// An array over numbers that `owner`, a Python object, holds.
template <typename T>
py::array_t<T> View(const std::vector<T>& values, py::handle owner) {
  py::array_t<T> array({static_cast<py::ssize_t>(values.size())}, values.data(), owner);
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;  // others look at it, too
  return array;
}

// The C++ object of a Python one whose type is known.
template <typename T>
T& ValueOf(PyObject* object) {
  void* const value = reinterpret_cast<py::detail::instance*>(object)->get_value_and_holder().value_ptr();
  if (value == nullptr) throw InvalidInputError("expected an object that was made by its __init__");
  return *static_cast<T*>(value);
}

// Runs a function without pybind11's dispatcher, which takes longer than most of what is called here.
template <typename Call>
PyObject* Guarded(const Call& call) noexcept {
  try {
    return call();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (...) {
    py::detail::try_translate_exceptions();
  }
  return nullptr;
}

// A property whose value `kGet` makes from the C++ object and its Python object.
template <typename Owner, py::object (*kGet)(const Owner&, py::handle)>
void DefineProperty(py::handle type, const char* name) {
  static PyGetSetDef definition = {
      name,
      [](PyObject* self, void*) { return Guarded([&] { return kGet(ValueOf<Owner>(self), self).release().ptr(); }); },
      nullptr, nullptr, nullptr};
  type.attr(name) =
      py::reinterpret_steal<py::object>(PyDescr_NewGetSet(reinterpret_cast<PyTypeObject*>(type.ptr()), &definition));
}

// Such a property that is an array.
template <typename Owner, auto kMember>
py::object ViewOf(const Owner& self, py::handle object) {
  return View(self.*kMember, object);
}
py::object NumFacts(const Subgraph& self, py::handle) { return py::int_(self.facts.size()); }

Node ToNode(const Items& row) {
  Node node{std::string(ToText(row[0], "nodes.name")), std::string(ToText(row[1], "nodes.type")), {}, kNoEmbedding};
  for (const auto& [key, value] : py::dict(py::reinterpret_borrow<py::object>(row[2])))
    node.attributes.emplace_back(ToText(key, "nodes.attributes"), ToText(value, "nodes.attributes"));
  if (!row[3].is_none()) {
    node.embedding = ToInteger(row[3], "embedding");
    if (node.embedding < 0)
      throw InvalidInputError("embedding: expected a handle >= 0 or None, got " + std::to_string(node.embedding));
  }
  return node;
}

// Numbers of relations, each word looked up once a batch.
class Relations {
 public:
  explicit Relations(KnowledgeGraph* graph) : graph_(graph) {}
  // Throws InvalidInputError, which lists the known ones, for another word.
  RelationId Known(std::string_view word) { return Look(word, false); }
  // A new word is added, and stays even if the batch is refused.
  RelationId KnownOrNew(std::string_view word) { return Look(word, true); }

 private:
  RelationId Look(std::string_view word, bool adds) {
    for (const auto& [known, number] : known_)
      if (known == word) return number;
    RelationId number = Snapshot(*graph_).KnownRelation(word);
    if (number == kNoRelation)
      number = adds ? graph_->Intern({std::string(word)})[0] : Snapshot(*graph_).FindRelation(word);
    known_.emplace_back(word, number);
    return number;
  }

  KnowledgeGraph* graph_;
  std::vector<std::pair<std::string, RelationId>> known_;  // copies: the words of a generator's rows do not live on
};

// `invalidate` names facts by id, or current ones by (subject, relation, object).
py::tuple Apply(KnowledgeGraph& graph, py::handle nodes, py::handle invalidate, py::handle add) {
  Changes changes;
  const Items new_nodes(nodes, "nodes"), ends(invalidate, "invalidate"), facts(add, "add");
  for (std::size_t i = 0; i < new_nodes.size(); ++i) changes.nodes.push_back(ToNode(new_nodes.Row(i, 4)));
  Relations relations(&graph);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Items row = ends.Row(i, 2);
    const std::int64_t at = ToInteger(row[1], "invalidate");
    if (PyTuple_Check(row[0].ptr()) || PyList_Check(row[0].ptr())) {
      const Items triple = row.Row(0, 3);
      const RelationId relation = relations.Known(ToText(triple[1], "invalidate"));
      changes.end.push_back({ToId(triple[0], "invalidate"), relation, ToId(triple[2], "invalidate"), at});
    } else {
      changes.invalidate.push_back({ToId(row[0], "invalidate"), at});
    }
  }
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const Items row = facts.Row(i, 5);
    Changes::NewFact fact{ToId(row[0], "subject"), relations.KnownOrNew(ToText(row[1], "relation")),
                          ToId(row[2], "object"), ToInteger(row[3], "valid_at"), std::nullopt};
    if (!row[4].is_none()) fact.source = ToInteger(row[4], "source");
    changes.add.push_back(fact);
  }
  Applied applied;
  {
    const py::gil_scoped_release release;
    applied = graph.Apply(changes);
  }
  return py::make_tuple(applied.nodes, applied.facts,
                        std::vector<bool>(applied.repeated.begin(), applied.repeated.end()));
}

}  // namespace

py::object Extract(const Snapshot& snapshot, const std::vector<NodeId>& sources, const KHopOptions& options) {
  auto result = std::make_shared<Subgraph>();
  {
    const py::gil_scoped_release release;
    snapshot.KHop(sources, options, &ThreadScratch(), result.get());
  }
  return py::cast(std::move(result));
}

void BindGraphBatches(py::module_& module, py::class_<KnowledgeGraph, GraphPointer>& graph) {
  py::class_<Subgraph, std::shared_ptr<Subgraph>> subgraph(module, "Subgraph",
                                                           "See embodied_mem.memory.graph.Subgraph.");
  DefineProperty<Subgraph, &ViewOf<Subgraph, &Subgraph::nodes>>(subgraph, "nodes");
  DefineProperty<Subgraph, &ViewOf<Subgraph, &Subgraph::facts>>(subgraph, "facts");
  DefineProperty<Subgraph, &NumFacts>(subgraph, "num_facts");
  subgraph
      .def_property_readonly("hops",
                             [](const Subgraph& self) {
                               py::array_t<std::uint32_t> hops(static_cast<py::ssize_t>(self.nodes.size()));
                               std::uint32_t* begin = hops.mutable_data();
                               std::size_t from = 0;
                               for (std::size_t hop = 0; hop < self.hop_ends.size(); from = self.hop_ends[hop++])
                                 std::fill(begin + from, begin + self.hop_ends[hop], static_cast<std::uint32_t>(hop));
                               return hops;
                             })
      .def_property_readonly("fact_hops",
                             [](const Subgraph& self) {
                               py::list hops(self.facts.size());
                               std::size_t fact = 0;
                               for (std::size_t hop = 0; hop < self.fact_ends.size(); ++hop)
                                 for (const py::int_ number(hop); fact < self.fact_ends[hop]; ++fact)
                                   hops[fact] = number;
                               return hops;
                             })
      .def_readonly("truncated", &Subgraph::truncated)
      .def("__repr__", [](const Subgraph& self) {
        return "Subgraph(" + std::to_string(self.nodes.size()) + " nodes, " + std::to_string(self.facts.size()) +
               " facts" + (self.truncated ? ", truncated)" : ")");
      });

  graph.def("apply", &Apply, py::arg("nodes"), py::arg("invalidate"), py::arg("add"))
      .def(
          "khop",
          [](const KnowledgeGraph& self, py::handle sources, const KHopOptions& options) {
            const std::vector<NodeId> ids = ToIds(sources, "sources");
            return Extract(Snapshot(self), ids, options);
          },
          py::arg("sources"), py::arg("options"));
}

}  // namespace embodied_mem

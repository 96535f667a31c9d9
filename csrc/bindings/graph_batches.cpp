// Binds batches of the knowledge graph, and extractions in the same call. What they return holds its numbers itself;
// an array over them is made when it is asked for, without a copy.
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
#include "core/error.h"
#include "memory/graph_checks.h"
#include "memory/knowledge_graph.h"

namespace embodied_mem {
namespace {

// What `relate` did.
struct Related {
  Applied applied;
  std::shared_ptr<Subgraph> around;
};

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
  static PyGetSetDef definition = {name, [](PyObject* self, void*) {
                                     return Guarded([&] { return kGet(ValueOf<Owner>(self), self).release().ptr(); });
                                   }, nullptr, nullptr, nullptr};
  type.attr(name) = py::reinterpret_steal<py::object>(PyDescr_NewGetSet(reinterpret_cast<PyTypeObject*>(type.ptr()), &definition));
}

// Such a property that is an array.
template <typename Owner, auto kMember>
py::object ViewOf(const Owner& self, py::handle object) { return View(self.*kMember, object); }
template <auto kMember>
py::object ViewOfApplied(const Related& self, py::handle object) { return View(self.applied.*kMember, object); }
py::object NumFacts(const Subgraph& self, py::handle) { return py::int_(self.facts.size()); }
py::object Around(const Related& self, py::handle) { return py::cast(self.around); }

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
    if (number == kNoRelation) number = adds ? graph_->Intern({std::string(word)})[0] : Snapshot(*graph_).FindRelation(word);
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
  std::optional<Snapshot> now;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Items row = ends.Row(i, 2);
    FactId fact = kNoFact;
    if (PyTuple_Check(row[0].ptr()) || PyList_Check(row[0].ptr())) {
      const Items triple = row.Row(0, 3);
      if (!now) now.emplace(graph);
      const std::string_view relation = ToText(triple[1], "invalidate");
      fact = now->FindFact(ToId(triple[0], "invalidate"), now->FindRelation(relation), ToId(triple[2], "invalidate"));
      if (fact == kNoFact)
        throw InvalidInputError(ends.At(i) + ": expected a current fact, got " + std::string(py::repr(row[0])));
    } else {
      fact = ToId(row[0], "invalidate");
    }
    changes.invalidate.push_back({fact, ToInteger(row[1], "invalidate")});
  }
  now.reset();
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const Items row = facts.Row(i, 5);
    Changes::NewFact fact{ToId(row[0], "subject"), relations.KnownOrNew(ToText(row[1], "relation")), ToId(row[2], "object"),
                          ToInteger(row[3], "valid_at"), std::nullopt};
    if (!row[4].is_none()) fact.source = ToInteger(row[4], "source");
    changes.add.push_back(fact);
  }
  Applied applied;
  {
    const py::gil_scoped_release release;
    applied = graph.Apply(changes);
  }
  return py::make_tuple(applied.nodes, applied.facts, std::vector<bool>(applied.repeated.begin(), applied.repeated.end()));
}

// Calls visit(subject, relation, object) for each row of `rows`: tuples or an array of (subject, object), which have the
// relation `common`, or of (subject, relation, object). `number_of` gives the number of a relation's word. First it tells
// `reserve` how many there are.
template <typename NumberOf, typename Reserve, typename Visit>
void VisitRows(py::handle rows, const char* what, std::string_view common, NumberOf&& number_of, Reserve&& reserve, Visit&& visit) {
  const auto wrong = [&](const std::string& where, std::size_t length) {
    throw InvalidInputError(where + ": expected (subject, object) or (subject, relation, object), got " + std::to_string(length) +
                            " values");
  };
  if (py::isinstance<py::array>(rows)) {
    const py::array_t<std::int64_t> array = ToIntegers(rows, what, 2);
    const auto length = array.shape(1);
    if (length != 2 && length != 3) wrong(what, static_cast<std::size_t>(length));
    const RelationId relation = length == 2 && array.shape(0) > 0 ? number_of(common) : 0;
    const auto at = array.unchecked<2>();
    reserve(static_cast<std::size_t>(array.shape(0)));
    for (py::ssize_t i = 0; i < array.shape(0); ++i)
      visit(CheckedId(at(i, 0), what), length == 2 ? relation : CheckedId(at(i, 1), what), CheckedId(at(i, length - 1), what));
    return;
  }
  const Items list(rows, what);
  reserve(list.size());
  RelationId shared = kNoRelation;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Items row(list[i], what);
    if (row.size() == 2) {
      if (shared == kNoRelation) shared = number_of(common);
      visit(ToId(row[0], what), shared, ToId(row[1], what));
    } else if (row.size() == 3) {
      const RelationId relation = PyUnicode_Check(row[1].ptr()) ? number_of(ToText(row[1], what)) : ToId(row[1], what);
      visit(ToId(row[0], what), relation, ToId(row[2], what));
    } else {
      wrong(list.At(i), row.size());
    }
  }
}

// Facts with one time and one source, and with `options` what lies around the nodes of the batch and the ends of the
// facts that were added.
std::unique_ptr<Related> Relate(KnowledgeGraph& graph, py::handle relation, py::handle add, py::handle end, py::handle nodes,
                                py::handle node_type, py::handle at, py::handle source, const KHopOptions* options) {
  Changes changes;
  const std::string_view word = ToText(relation, "relation");
  const std::int64_t time = ToInteger(at, "at");
  std::optional<std::int64_t> episode;
  if (!source.is_none()) episode = ToInteger(source, "source");
  Relations relations(&graph);
  if (PyUnicode_Check(nodes.ptr()))
    throw InvalidInputError("nodes: expected a list of names, got the one str " + std::string(py::repr(nodes)));
  const Items new_nodes(nodes, "nodes");
  changes.nodes.reserve(new_nodes.size());
  for (std::size_t i = 0; i < new_nodes.size(); ++i) {
    if (PyUnicode_Check(new_nodes[i].ptr())) {
      const std::string_view name = ToText(new_nodes[i], "nodes"), type = ToText(node_type, "node_type");
      changes.nodes.push_back({std::string(name), std::string(type), {}, kNoEmbedding});
    } else {
      changes.nodes.push_back(ToNode(new_nodes.Row(i, 4)));
    }
  }
  VisitRows(end, "end", word, [&](std::string_view w) { return relations.Known(w); },
            [&](std::size_t count) { changes.end.reserve(count); },
            [&](NodeId subject, RelationId number, NodeId object) { changes.end.push_back({subject, number, object, time}); });
  VisitRows(add, "add", word, [&](std::string_view w) { return relations.KnownOrNew(w); },
            [&](std::size_t count) { changes.add.reserve(count); },
            [&](NodeId subject, RelationId number, NodeId object) { changes.add.push_back({subject, number, object, time, episode}); });
  if (options != nullptr) CheckKHop(*options, 0);  // now: afterwards the batch is done
  auto related = std::make_unique<Related>();
  {
    const py::gil_scoped_release release;
    graph.Apply(changes, &related->applied);
    if (options != nullptr) {
      std::vector<NodeId> sources;
      sources.reserve(related->applied.nodes.size() + 2 * changes.add.size());
      sources = related->applied.nodes;
      for (const Changes::NewFact& fact : changes.add) {
        sources.push_back(fact.subject);
        sources.push_back(fact.object);
      }
      const Snapshot now(graph);
      // The batch is done, so nothing may fail on what another thread has forgotten since.
      if (now.num_forgotten_nodes() > 0)
        sources.erase(std::remove_if(sources.begin(), sources.end(), [&](NodeId node) { return !now.HasNode(node); }),
                      sources.end());
      related->around = std::make_shared<Subgraph>();
      now.KHop(sources, *options, &ThreadScratch(), related->around.get());
    }
  }
  return related;
}

PyTypeObject* khop_options_type = nullptr;

// `Relate` as a method.
PyObject* RelateMethod(PyObject* self, PyObject* const* args, Py_ssize_t count) noexcept {
  return Guarded([&] {
    if (count != 8) throw InvalidInputError("relate: expected 8 arguments, got " + std::to_string(count));
    const KHopOptions* options = nullptr;
    if (args[7] != Py_None) {
      if (Py_TYPE(args[7]) != khop_options_type)
        throw InvalidInputError("options: expected KHopOptions or None, got " + std::string(py::repr(args[7])));
      options = &ValueOf<KHopOptions>(args[7]);
    }
    auto related = Relate(ValueOf<KnowledgeGraph>(self), args[0], args[1], args[2], args[3], args[4], args[5], args[6], options);
    return py::cast(std::move(related)).release().ptr();
  });
}

PyMethodDef relate_method = {
    "relate", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&RelateMethod)), METH_FASTCALL,
    "relate(relation, add, end, nodes, node_type, at, source, options) -> Related; see embodied_mem.memory.KnowledgeGraph."};

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
  py::class_<Subgraph, std::shared_ptr<Subgraph>> subgraph(module, "Subgraph", "See embodied_mem.memory.facts.Subgraph.");
  DefineProperty<Subgraph, &ViewOf<Subgraph, &Subgraph::nodes>>(subgraph, "nodes");
  DefineProperty<Subgraph, &ViewOf<Subgraph, &Subgraph::facts>>(subgraph, "facts");
  DefineProperty<Subgraph, &NumFacts>(subgraph, "num_facts");
  subgraph
      .def_property_readonly("hops", [](const Subgraph& self) {
            py::array_t<std::uint32_t> hops(static_cast<py::ssize_t>(self.nodes.size()));
            std::uint32_t* begin = hops.mutable_data();
            std::size_t from = 0;
            for (std::size_t hop = 0; hop < self.hop_ends.size(); from = self.hop_ends[hop++])
              std::fill(begin + from, begin + self.hop_ends[hop], static_cast<std::uint32_t>(hop));
            return hops;
          })
      .def_readonly("truncated", &Subgraph::truncated)
      .def("__repr__", [](const Subgraph& self) {
            return "Subgraph(" + std::to_string(self.nodes.size()) + " nodes, " + std::to_string(self.facts.size()) + " facts" +
                   (self.truncated ? ", truncated)" : ")");
          });

  py::class_<Related> related(module, "Related", "See embodied_mem.memory.facts.Related.");
  DefineProperty<Related, &ViewOfApplied<&Applied::nodes>>(related, "nodes");
  DefineProperty<Related, &ViewOfApplied<&Applied::ended>>(related, "ended");
  DefineProperty<Related, &ViewOfApplied<&Applied::facts>>(related, "facts");
  DefineProperty<Related, &Around>(related, "around");
  related.def_property_readonly("repeated", [](const Related& self) {
    py::array_t<bool> repeated(static_cast<py::ssize_t>(self.applied.repeated.size()));
    std::copy(self.applied.repeated.begin(), self.applied.repeated.end(), repeated.mutable_data());
    return repeated;
  });

  khop_options_type = reinterpret_cast<PyTypeObject*>(py::type::of<KHopOptions>().ptr());
  graph.attr("relate") = py::reinterpret_steal<py::object>(
      PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(graph.ptr()), &relate_method));
  graph.def("apply", &Apply, py::arg("nodes"), py::arg("invalidate"), py::arg("add"))
      .def("relation_ids", [](KnowledgeGraph& self, const std::vector<std::string>& words) {
            const py::gil_scoped_release release;
            return self.Intern(words);
          }, py::arg("words"))
      .def("khop", [](const KnowledgeGraph& self, py::handle sources, const KHopOptions& options) {
            const std::vector<NodeId> ids = ToIds(sources, "sources");
            return Extract(Snapshot(self), ids, options);
          }, py::arg("sources"), py::arg("options"));
}

}  // namespace embodied_mem

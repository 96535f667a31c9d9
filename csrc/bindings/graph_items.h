// How the bindings read what a graph is given: lists of tuples item by item, and arrays of integers.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "memory/graph/knowledge_graph.h"

namespace embodied_mem {

namespace py = pybind11;

using GraphPointer = std::shared_ptr<KnowledgeGraph>;

// Adds `apply` and `khop`, and what they return.
void BindGraphBatches(py::module_& module, py::class_<KnowledgeGraph, GraphPointer>& graph);
// What lies around the nodes, as a Python object; without the GIL meanwhile.
py::object Extract(const Snapshot& snapshot, const std::vector<NodeId>& sources, const KHopOptions& options);

// One per thread that extracts, whatever the graph.
inline KHopScratch& ThreadScratch() {
  thread_local KHopScratch scratch;
  return scratch;
}

// Batches are read item by item rather than by pybind11's casters: a batch of a dozen facts is the hot path, and each
// error says which item it is about.
struct Items {
  Items(py::handle items, const char* name)
      : what(name), fast(py::reinterpret_steal<py::object>(PySequence_Fast(items.ptr(), "expected a list"))) {
    if (fast) return;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw py::error_already_set();  // raised by a caller's generator
    PyErr_Clear();
    throw InvalidInputError(std::string(name) + ": expected a list, got " + std::string(py::repr(items)));
  }
  std::size_t size() const { return static_cast<std::size_t>(PySequence_Fast_GET_SIZE(fast.ptr())); }
  py::handle operator[](std::size_t i) const {
    return PySequence_Fast_GET_ITEM(fast.ptr(), static_cast<py::ssize_t>(i));
  }
  // Item i as a sequence of `length` entries.
  Items Row(std::size_t i, std::size_t length) const {
    py::handle item = (*this)[i];
    Items row(item, what);
    if (row.size() != length)
      throw InvalidInputError(At(i) + ": expected " + std::to_string(length) + " values, got " +
                              std::to_string(row.size()));
    return row;
  }
  std::string At(std::size_t i) const { return std::string(what) + "[" + std::to_string(i) + "]"; }

  const char* what;
  py::object fast;
};

inline std::int64_t ToInteger(py::handle value, std::string_view where) {
  const long long number = PyLong_AsLongLong(value.ptr());
  if (number != -1 || !PyErr_Occurred()) return number;
  PyErr_Clear();
  const py::object index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));  // numpy's integers
  if (!index) {
    PyErr_Clear();
    throw InvalidInputError(std::string(where) + ": expected an integer, got " + std::string(py::repr(value)));
  }
  const long long other = PyLong_AsLongLong(index.ptr());
  if (other == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw InvalidInputError(std::string(where) + ": expected 64 bits at most, got " + std::string(py::repr(value)));
  }
  return other;
}

inline NodeId CheckedId(std::int64_t number, const char* what) {
  if (number < 0 || number > std::numeric_limits<std::uint32_t>::max())
    throw InvalidInputError(std::string(what) + ": expected an id from 0 to 4294967295, got " + std::to_string(number));
  return static_cast<NodeId>(number);
}

inline std::uint32_t ToId(py::handle value, const char* where) { return CheckedId(ToInteger(value, where), where); }

inline std::string_view ToText(py::handle value, const char* where) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_Check(value.ptr()) ? PyUnicode_AsUTF8AndSize(value.ptr(), &size) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    throw InvalidInputError(std::string(where) + ": expected a text, got " + std::string(py::repr(value)));
  }
  return {text, static_cast<std::size_t>(size)};
}

// An array of integers of any size.
inline py::array_t<std::int64_t> ToIntegers(py::handle items, const char* what, int num_dims) {
  const auto array = py::reinterpret_borrow<py::array>(items);
  const char kind = array.dtype().kind();
  if (array.ndim() != num_dims || (array.size() > 0 && kind != 'i' && kind != 'u'))
    throw InvalidInputError(std::string(what) + ": expected an array of integers with " + std::to_string(num_dims) +
                            " dimension(s), got " + std::string(py::str(array.dtype())) + " with " +
                            std::to_string(array.ndim()));
  return py::array_t<std::int64_t>::ensure(array);
}

inline std::vector<NodeId> IdsOfArray(py::handle items, const char* what) {
  const py::array_t<std::int64_t> array = ToIntegers(items, what, 1);
  std::vector<NodeId> ids;
  ids.reserve(static_cast<std::size_t>(array.size()));
  for (py::ssize_t i = 0; i < array.size(); ++i) ids.push_back(CheckedId(*array.data(i), what));
  return ids;
}

inline std::vector<NodeId> ToIds(py::handle items, const char* what) {
  if (py::isinstance<py::array>(items)) return IdsOfArray(items, what);
  const Items list(items, what);
  std::vector<NodeId> ids;
  ids.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) ids.push_back(ToId(list[i], what));
  return ids;
}

}  // namespace embodied_mem

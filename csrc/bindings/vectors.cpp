// Binds the vector index. Arrays that are float32 (int64 for ids) and C-contiguous are read in place, without the GIL;
// embodied_mem.memory.vectors has checked their shapes.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bindings/module.h"
#include "core/error.h"
#include "memory/vectors/nearest_columns.h"
#include "memory/vectors/vector_index.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

using IdArray = py::array_t<std::int64_t, py::array::c_style>;
using FloatArray = py::array_t<float, py::array::c_style>;

std::size_t Threads(std::optional<std::size_t> num_threads) {
  if (!num_threads) return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 1024);
  if (*num_threads < 1 || *num_threads > 1024)
    throw InvalidInputError("num_threads: expected 1 to 1024, got " + std::to_string(*num_threads));
  return *num_threads;
}

void CheckRows(const VectorIndex& index, const FloatArray& rows) {
  if (rows.ndim() != 2 || static_cast<std::size_t>(rows.shape(1)) != index.options().dim)
    throw InvalidInputError("expected float32[N, " + std::to_string(index.options().dim) + "]");
}

VectorIndexOptions MakeOptions(std::size_t dim, const std::string& metric, const std::string& kind,
                               std::size_t connectivity, std::size_t ef_construction) {
  VectorIndexOptions options;
  options.dim = dim;
  options.connectivity = connectivity;
  options.ef_construction = ef_construction;
  if (metric == "inner_product") {
    options.metric = Metric::kInnerProduct;
  } else if (metric != "cosine") {
    throw InvalidInputError("metric: expected \"cosine\" or \"inner_product\", got \"" + metric + "\"");
  }
  if (kind == "exact") {
    options.kind = IndexKind::kExact;
  } else if (kind == "hnsw") {
    options.kind = IndexKind::kHnsw;
  } else if (kind != "auto") {
    throw InvalidInputError("kind: expected \"auto\", \"exact\" or \"hnsw\", got \"" + kind + "\"");
  }
  return options;
}

void Add(VectorIndex& self, const IdArray& ids, const FloatArray& rows, std::optional<std::size_t> num_threads) {
  CheckRows(self, rows);
  if (ids.ndim() != 1 || ids.shape(0) != rows.shape(0)) throw InvalidInputError("expected as many ids as vectors");
  const std::size_t threads = Threads(num_threads), count = static_cast<std::size_t>(ids.shape(0));
  const py::gil_scoped_release release;
  self.Add(ids.data(), rows.data(), count, threads);
}

py::tuple Search(const VectorIndex& self, const FloatArray& queries, std::size_t k, std::size_t ef_search,
                 const std::optional<IdArray>& allowed, std::optional<std::size_t> num_threads) {
  CheckRows(self, queries);
  const auto count = static_cast<std::size_t>(queries.shape(0));
  const std::size_t most_k = VectorIndex::kMaxAnswers / std::max<std::size_t>(1, count);
  if (k < 1 || k > most_k)
    throw InvalidInputError("k: expected 1 to " + std::to_string(most_k) + " for " + std::to_string(count) +
                            " queries, got " + std::to_string(k));
  SearchOptions options;
  options.k = k;
  options.ef_search = ef_search;
  options.num_threads = Threads(num_threads);
  const std::size_t most = allowed ? static_cast<std::size_t>(allowed->size()) : 0;
  py::array_t<std::int64_t> ids({count, k});
  py::array_t<float> scores({count, k});
  std::int64_t* id = ids.mutable_data();
  float* score = scores.mutable_data();
  {
    const py::gil_scoped_release release;
    std::vector<VectorId> only;
    if (allowed) {
      only.assign(allowed->data(), allowed->data() + most);
      options.allowed = &only;
    }
    std::vector<Neighbour> found(count * k);
    self.Search(queries.data(), count, options, found.data());
    for (const Neighbour& neighbour : found) {
      *id++ = neighbour.id;
      *score++ = neighbour.id == kNoVector ? -std::numeric_limits<float>::infinity() : neighbour.score;
    }
  }
  return py::make_tuple(ids, scores);
}

// As FindNearestColumns, of the first `count` columns: (better, their scores, the worst score, tied).
py::tuple NearestOf(const FloatArray& blocks, std::size_t count, const FloatArray& query, std::size_t k, float above) {
  if (blocks.ndim() != 3 || query.ndim() != 1 || query.shape(0) != blocks.shape(1) ||
      static_cast<std::size_t>(blocks.shape(2)) != kColumnLanes)
    throw InvalidInputError("expected float32[B, D, 16] and float32[D]");
  const auto dim = static_cast<std::size_t>(blocks.shape(1)), columns = static_cast<std::size_t>(blocks.shape(0));
  if (count < 1 || count > columns * kColumnLanes || k < 1)
    throw InvalidInputError("expected a count of 1 to the number of columns, and k of at least 1");
  NearestColumns found;
  {
    const py::gil_scoped_release release;
    found = FindNearestColumns(blocks.data(), dim, count, query.data(), k, above);
  }
  return py::make_tuple(found.better, found.scores, found.worst, found.tied);
}

// As AddAndScale, of float32[D] arrays; they are so few that the GIL is kept.
void AddAndScaleInto(FloatArray& sum, const std::vector<FloatArray>& rows) {
  if (sum.ndim() != 1) throw InvalidInputError("expected float32[D]");
  std::vector<const float*> parts;
  parts.reserve(rows.size());
  for (const FloatArray& row : rows) {
    if (row.ndim() != 1 || row.shape(0) != sum.shape(0)) throw InvalidInputError("expected rows of one length");
    parts.push_back(row.data());
  }
  AddAndScale(parts, static_cast<std::size_t>(sum.shape(0)), sum.mutable_data());
}

bool AreFinite(const FloatArray& values) {
  const float* value = values.data();
  return std::all_of(value, value + values.size(), [](float one) { return std::isfinite(one); });
}

}  // namespace

void BindVectors(py::module_& parent) {
  py::module_ module = parent.def_submodule("vectors", "The vector index.");
  module.attr("AUTO_LIMIT") = static_cast<std::size_t>(VectorIndex::kAutoLimit);
  py::list kernels;
  for (std::size_t i = 0; i < NumKernels(); ++i) kernels.append(Kernels(i).name);
  module.attr("KERNELS") = py::tuple(kernels);

  module.def("nearest_columns", &NearestOf, py::arg("blocks"), py::arg("count"), py::arg("query"), py::arg("k"),
             py::arg("above"));
  module.def("add_and_scale", &AddAndScaleInto, py::arg("sum").noconvert(), py::arg("rows"));
  module.def("are_finite", &AreFinite, py::arg("values"));

  py::class_<VectorIndex>(module, "VectorIndex", "See embodied_mem.memory.vectors.VectorIndex.")
      .def(py::init([](std::size_t dim, const std::string& metric, const std::string& kind, std::size_t connectivity,
                       std::size_t ef_construction) {
             return std::make_unique<VectorIndex>(MakeOptions(dim, metric, kind, connectivity, ef_construction));
           }),
           py::arg("dim"), py::arg("metric"), py::arg("kind"), py::arg("connectivity"), py::arg("ef_construction"))
      .def_property_readonly("dim", [](const VectorIndex& self) { return self.options().dim; })
      .def_property_readonly(
          "metric",
          [](const VectorIndex& self) { return self.options().metric == Metric::kCosine ? "cosine" : "inner_product"; })
      .def_property_readonly("kind",
                             [](const VectorIndex& self) {
                               const py::gil_scoped_release release;
                               const IndexKind kind = self.kind();
                               return kind == IndexKind::kExact ? "exact" : "hnsw";
                             })
      .def_property_readonly("num_removed",
                             [](const VectorIndex& self) {
                               const py::gil_scoped_release release;
                               return self.num_removed();
                             })
      .def("__len__", &VectorIndex::size, py::call_guard<py::gil_scoped_release>())
      .def("__contains__", &VectorIndex::Contains, py::arg("id"), py::call_guard<py::gil_scoped_release>())
      .def("ids",
           [](const VectorIndex& self) {
             std::vector<VectorId> ids;
             {
               const py::gil_scoped_release release;
               ids = self.Ids();
             }
             return py::array_t<std::int64_t>(static_cast<py::ssize_t>(ids.size()), ids.data());
           })
      .def(
          "vector",
          [](const VectorIndex& self, VectorId id) {
            py::array_t<float> row(static_cast<py::ssize_t>(self.options().dim));
            float* out = row.mutable_data();
            {
              const py::gil_scoped_release release;
              self.Copy(id, out);
            }
            return row;
          },
          py::arg("id"))
      .def("add", &Add, py::arg("ids"), py::arg("vectors"), py::arg("num_threads"))
      .def(
          "remove",
          [](VectorIndex& self, const IdArray& ids, std::optional<std::size_t> num_threads) {
            const std::size_t threads = Threads(num_threads), count = static_cast<std::size_t>(ids.size());
            const py::gil_scoped_release release;
            self.Remove(ids.data(), count, threads);
          },
          py::arg("ids"), py::arg("num_threads"))
      .def("search", &Search, py::arg("queries"), py::arg("k"), py::arg("ef_search"), py::arg("allowed"),
           py::arg("num_threads"))
      .def(
          "save", [](VectorIndex& self, const std::string& path) { self.Save(path, Threads(std::nullopt)); },
          py::arg("path"), py::call_guard<py::gil_scoped_release>())
      .def_static("load", &VectorIndex::Load, py::arg("path"), py::call_guard<py::gil_scoped_release>());
}

}  // namespace embodied_mem

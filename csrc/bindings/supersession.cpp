// Binds features and trees of embodied_mem.memory.supersession, which makes statements of texts.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/module.h"
#include "core/error.h"
#include "memory/supersession/pair_features.h"

namespace py = pybind11;

namespace embodied_mem {
namespace {

Statement MakeStatement(std::vector<float> own, std::vector<std::int64_t> words, std::vector<float> weights,
                        std::vector<std::uint8_t> is_late,
                        const std::vector<py::array_t<float, py::array::c_style>>& rows,
                        std::vector<std::vector<std::int64_t>> values) {
  const std::size_t count = words.size();
  if (weights.size() != count || is_late.size() != count || rows.size() != count)
    throw InvalidInputError("expected a weight, a place and a row for each of " + std::to_string(count) + " words");
  Statement made{std::move(own), std::move(words), std::move(weights), std::move(is_late), {}, std::move(values), {}};
  for (const auto& row : rows) {
    if (row.ndim() != 1 || row.size() != rows[0].size()) throw InvalidInputError("expected rows of one length");
    made.rows.insert(made.rows.end(), row.data(), row.data() + row.size());
  }
  made.sum = SumOfRows(made, {});
  return made;
}

std::vector<float> FeaturesOf(const Statement& now, const std::vector<const Statement*>& olds,
                              const std::vector<double>& distances, std::size_t num_kinds,
                              const std::vector<std::size_t>& differing) {
  if (olds.size() != distances.size()) throw InvalidInputError("expected as many distances as statements");
  for (const Statement* old : olds)
    if (old == nullptr || old->own.size() != now.own.size() || old->values.size() != now.values.size())
      throw InvalidInputError("expected statements of one form");
  if (num_kinds > now.values.size() ||
      std::any_of(differing.begin(), differing.end(), [&](std::size_t at) { return at >= now.own.size(); }))
    throw InvalidInputError("expected positions within a statement");
  return PairFeatures(now, olds, distances, num_kinds, differing);
}

BoostedTrees MakeTrees(double bias, std::size_t depth, std::vector<std::int32_t> features, std::vector<float> limits,
                       std::vector<double> leaves) {
  const std::size_t inner = (std::size_t{1} << std::min<std::size_t>(depth, 16)) - 1;
  if (depth < 1 || depth > 16 || features.size() % inner || limits.size() != features.size() ||
      leaves.size() != features.size() / inner * (inner + 1))
    throw InvalidInputError("expected full trees of depth " + std::to_string(depth));
  return {bias, depth, std::move(features), std::move(limits), std::move(leaves)};
}

std::vector<double> Chances(const BoostedTrees& self, const py::array_t<float, py::array::c_style>& features) {
  if (features.ndim() != 2) throw InvalidInputError("expected a row of features for each pair");
  const auto count = static_cast<std::size_t>(features.shape(0)), width = static_cast<std::size_t>(features.shape(1));
  for (std::int32_t at : self.features)
    if (at < 0 || static_cast<std::size_t>(at) >= width)
      throw InvalidInputError("expected trees over " + std::to_string(width) + " features");
  return self.Chances(features.data(), count, width);
}

}  // namespace

void BindSupersession(py::module_& parent) {
  py::module_ module = parent.def_submodule("supersession", "See embodied_mem.memory.supersession.");
  py::class_<Statement>(module, "Statement")
      .def(py::init(&MakeStatement), py::arg("own"), py::arg("words"), py::arg("weights"), py::arg("is_late"),
           py::arg("rows"), py::arg("values"));
  module.def("features",
             [](const Statement& now, const std::vector<const Statement*>& olds, const std::vector<double>& distances,
                std::size_t num_kinds, const std::vector<std::size_t>& differing) {
               const std::vector<float> found = FeaturesOf(now, olds, distances, num_kinds, differing);
               const std::size_t width = olds.empty() ? 0 : found.size() / olds.size();
               py::array_t<float> made({olds.size(), width});
               std::copy(found.begin(), found.end(), made.mutable_data());
               return made;
             });
  py::class_<BoostedTrees>(module, "BoostedTrees")
      .def(py::init(&MakeTrees), py::arg("bias"), py::arg("depth"), py::arg("features"), py::arg("limits"),
           py::arg("leaves"))
      .def("chances", &Chances);
}

}  // namespace embodied_mem

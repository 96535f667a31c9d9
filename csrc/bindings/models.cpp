// embodied_mem._native.models: what JAX programs call on a CPU.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <stdexcept>

#include "bindings/module.h"
#include "models/attention.h"
#include "models/transpose.h"
#include "simd/simd.h"

namespace py = pybind11;

namespace embodied_mem {

namespace {

void TransposeArrays(const py::array& source, py::array& target) {
  const bool fits = source.ndim() == 2 && target.ndim() == 2 && source.shape(0) == target.shape(1) &&
                    source.shape(1) == target.shape(0) && source.itemsize() == target.itemsize();
  const bool lies = fits && source.strides(1) == source.itemsize() && target.strides(1) == target.itemsize() &&
                    source.strides(0) >= 0 && target.strides(0) >= 0;
  if (!lies)
    throw std::invalid_argument("transpose: expected matrices [R, C] and [C, R] of one kind, rows in one piece");
  const auto* from = static_cast<const std::byte*>(source.data());
  auto* to = static_cast<std::byte*>(target.mutable_data());
  const auto rows = static_cast<std::size_t>(source.shape(0)), columns = static_cast<std::size_t>(source.shape(1));
  const auto size = static_cast<std::size_t>(source.itemsize());
  const auto from_stride = static_cast<std::size_t>(source.strides(0));
  const auto to_stride = static_cast<std::size_t>(target.strides(0));
  const py::gil_scoped_release release;
  Transpose(from, from_stride, rows, columns, size, to, to_stride);
}

}  // namespace

void BindModels(py::module_& module) {
  py::module_ part = module.def_submodule("models", "Functions for loading weights.");
  part.def("transpose", &TransposeArrays, py::arg("source"), py::arg("target").noconvert(),
           "Writes the transpose of a matrix of numbers of 2 or 4 bytes into another, without the GIL.");
  py::module_ attention = module.def_submodule("attention", "For `jax.ffi`; use embodied_mem.models.fused_attention.");
  attention.attr("HEAD_DIM_STEP") = kLanes;
  attention.attr("MAX_HEAD_DIM") = kMaxHeadDim;
  attention.def(
      "forward", [] { return py::capsule(AttentionHandler(), "xla._CUSTOM_CALL_TARGET"); },
      "The handler of attention.h for the forward pass.");
  attention.def(
      "backward", [] { return py::capsule(AttentionBackwardHandler(), "xla._CUSTOM_CALL_TARGET"); },
      "The handler of attention.h for the backward pass.");
}

}  // namespace embodied_mem

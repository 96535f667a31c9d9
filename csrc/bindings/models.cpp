// embodied_mem._native.models: what JAX programs call on a CPU.
#include <pybind11/pybind11.h>

#include "bindings/module.h"
#include "models/attention.h"
#include "models/block_product.h"
#include "simd/simd.h"

namespace py = pybind11;

namespace embodied_mem {

void BindModels(py::module_& module) {
  py::module_ part = module.def_submodule("models", "Functions for `jax.ffi`; use embodied_mem.models.block_product.");
  part.attr("BLOCK_COLUMNS") = kBlockRows;
  part.def(
      "block_product", [] { return py::capsule(BlockProductHandler(), "xla._CUSTOM_CALL_TARGET"); },
      "The handler of block_product.h, to be registered with `jax.ffi.register_ffi_target`.");
  py::module_ attention = module.def_submodule("attention", "More of them; use embodied_mem.models.fused_attention.");
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

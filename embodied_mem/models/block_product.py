"""Products with large matrices on a CPU by a native kernel that XLA calls; the main cost of sampling a real model.

    blocks = Blocks.of(weight)           # once: float32[K, ...] laid out as the kernel reads it
    blocks.multiply(x)                   # x [M, K] -> [M, N], N the product of the other dimensions

XLA for CPUs repacks the matrix at every call, which takes longer than a product with a few rows, and gives a single row
to a single thread. The kernel (`csrc/models/block_product.h`) reads it where it lies, with all threads.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp

from embodied_mem.models.config import DecoderConfig
from embodied_mem.native import part

TARGET = "embodied_mem_block_product"
LARGE_BYTES = 2**26
"""Parameters from which on blocks are used; smaller ones stay in the caches, and XLA's products are good enough."""


@functools.cache
def _native() -> Any:
    """Registers the kernel at the first call."""
    native = part("models")
    jax.ffi.register_ffi_target(TARGET, native.block_product(), platform="cpu", api_version=1)
    return native


@functools.partial(jax.tree_util.register_dataclass, data_fields=("array",), meta_fields=("shape",))
@dataclasses.dataclass(frozen=True)
class Blocks:
    """A matrix for `multiply`.

    Attributes:
        array: float32[ceil(N / C), K, C], its columns in groups of C, zeros beyond N.
        shape: of the weight.
    """

    array: jax.Array
    shape: tuple[int, ...]

    @classmethod
    def of(cls, weight: jax.Array, depth: int | None = None) -> Blocks:
        """Returns a weight in blocks.

        The weight is float32[K, ...], or [..., ...] with leading dimensions of `depth` numbers.
        """
        columns = _native().BLOCK_COLUMNS
        matrix = weight.reshape(depth or weight.shape[0], -1)
        matrix = jnp.pad(matrix, ((0, 0), (0, -matrix.shape[1] % columns)))
        return cls(matrix.reshape(len(matrix), -1, columns).transpose(1, 0, 2), weight.shape)

    def multiply(self, x: jax.Array) -> jax.Array:
        """Returns x float32[M, K] times the matrix, float32[M, N].

        Sums run over K in order, whatever M is.
        """
        _native()
        out = jax.ShapeDtypeStruct((x.shape[0], math.prod(self.shape) // self.array.shape[1]), jnp.float32)
        product: jax.Array = jax.ffi.ffi_call(TARGET, out)(x, self.array)
        return product


def pays(config: DecoderConfig, parameters: list[jax.Array]) -> bool:
    """Decide whether sampling is faster in blocks.

    It is for a large float32 model, layer by layer, on one CPU.
    """
    alone = all(len(array.sharding.device_set) == 1 for array in parameters)
    large = sum(array.nbytes for array in parameters) >= LARGE_BYTES
    suitable = config.dtype == "float32" and not config.scan_layers
    return jax.default_backend() == "cpu" and suitable and alone and large


def in_blocks(config: DecoderConfig, weights: dict[str, Any]) -> dict[str, Any]:
    """Returns `Decoder.weights(False)` with the matrices of layers and head in blocks.

    A tied head then stands beside its table.
    """
    matrices = ("query", "key", "value", "gate", "up")

    def layer(arrays: dict[str, Any]) -> dict[str, Any]:
        named = {name: Blocks.of(arrays[name]) for name in matrices}
        named |= {name: Blocks.of(arrays[name], math.prod(arrays[name].shape[:-1])) for name in ("output", "down")}
        return arrays | named

    head = weights["embedding"].T if config.tie_embeddings else weights["head"]
    return weights | {"layers": tuple(map(layer, weights["layers"])), "head": Blocks.of(head)}

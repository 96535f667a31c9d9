"""A decoder from stored tensors, part by part, each part straight to the devices that hold it.

    decoder = assemble(config, tensor_of)                                   # on the default device
    decoder = assemble(config, tensor_of, shardings=placement.shardings)    # split; see `parallel.placement`

What stores the tensors (`hf.py`, `gguf.py`) answers `tensor_of(name, layer)` with a `StoredTensor`. Only the slices
that a device of this process holds are read; memory of the host holds one such slice of one parameter at a time
(without shardings: one parameter).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.errors import CheckpointError
from embodied_mem.models.config import DecoderConfig, ParameterAxes, logical_axes
from embodied_mem.models.decoder import Decoder

Index = tuple[slice, ...]  # with start and stop as integers, step 1
Shardings = Callable[[Any, ParameterAxes], Any]
"""(tree of abstract arrays, parameter path -> logical axes) -> tree of shardings, or None for the default device."""

# How many leading axes of a parameter are the inputs of its linear map; published weights have [outputs, inputs].
_NUM_INPUT_AXES = {
    "query": 1, "key": 1, "value": 1, "output": 2, "gate": 1, "up": 1, "down": 1, "head": 1,
    "patch": 1, "qkv": 1, "merger_in": 1, "merger_out": 1,
}  # fmt: skip


class StoredTensor(Protocol):
    """An array in a file, of which parts can be read.

    Attributes:
        where: file and name, for messages.
        shape: as stored.
    """

    @property
    def where(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def read(self, index: Index) -> np.ndarray:
        """Returns the part; nothing else of the file is touched."""


def place_array(
    shape: tuple[int, ...], sharding: jax.sharding.Sharding | None, read: Callable[[Index], np.ndarray]
) -> jax.Array:
    """Returns the array of which `read` gives any part, on the devices of `sharding` (None: the default device).

    Each distinct part is read once, whatever number of devices hold a copy of it, and freed before the next is read.
    """
    if sharding is None:
        return jnp.asarray(read(tuple(slice(0, size) for size in shape)))
    holders: dict[tuple[tuple[int, int], ...], list[jax.Device]] = {}
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        bounds = tuple(cut.indices(size)[:2] for cut, size in zip(index or (), shape, strict=True))
        holders.setdefault(bounds, []).append(device)
    pieces = []
    for bounds, devices in holders.items():
        part = read(tuple(slice(*pair) for pair in bounds))
        pieces += [jax.device_put(part, device) for device in devices]
        jax.block_until_ready(pieces[-len(devices) :])
        del part
    return jax.make_array_from_single_device_arrays(shape, sharding, pieces)


def _merged(sizes: tuple[int, ...], index: Index) -> slice:
    """Returns the slice, in one merged axis, of whole entries of the first of several axes."""
    inner = math.prod(sizes[1:])
    return slice(index[0].start * inner, index[0].stop * inner)


def check_shape(tensor: StoredTensor, name: str, shape: tuple[int, ...]) -> None:
    """Raises CheckpointError if what is stored for a parameter of `shape` (one layer's) has another shape."""
    expected = as_stored_shape(name, shape)
    if tuple(tensor.shape) != expected:
        raise CheckpointError(f"{tensor.where}: expected shape {expected}, got {tuple(tensor.shape)}")


def as_stored_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape in which published files have a parameter, see `read_part`."""
    inputs = _NUM_INPUT_AXES.get(name, 0)
    if name == "embedding":
        return shape
    return (math.prod(shape[inputs:]), math.prod(shape[:inputs])) if inputs else (math.prod(shape),)


def as_stored(name: str, array: np.ndarray) -> np.ndarray:
    """Returns a whole parameter (one layer's) as published files have it; what `read_part` undoes."""
    inputs = _NUM_INPUT_AXES.get(name, 0)
    if inputs:
        array = np.ascontiguousarray(array.reshape(math.prod(array.shape[:inputs]), -1).T)
    return array.reshape(as_stored_shape(name, array.shape)) if not inputs else array


def read_part(tensor: StoredTensor, name: str, shape: tuple[int, ...], index: Index) -> np.ndarray:
    """Returns the part `index` of the parameter `name` of `shape` (one layer's), from how published files store it.

    Linear maps are stored as [outputs, inputs] with heads and their dimensions merged; biases merged; norms and
    tables as they are. The stored shape is the right one, see `check_shape`.
    """
    inputs = _NUM_INPUT_AXES.get(name, 0)
    if name == "embedding":
        groups = [(shape[:1], index[:1]), (shape[1:], index[1:])]
    elif inputs:
        groups = [(shape[inputs:], index[inputs:]), (shape[:inputs], index[:inputs])]
    else:
        groups = [(shape, index)]
    stored = tensor.read(tuple(_merged(sizes, cuts) for sizes, cuts in groups))
    if inputs:
        stored, groups = stored.T, groups[::-1]
    whole = [
        (cuts[0].stop - cuts[0].start if axis == 0 else size)
        for sizes, cuts in groups
        for axis, size in enumerate(sizes)
    ]
    rest = [slice(None) if axis == 0 else cut for _, cuts in groups for axis, cut in enumerate(cuts)]
    return stored.reshape(whole)[tuple(rest)]


def assemble(
    config: DecoderConfig,
    tensor_of: Callable[[str, int | None], StoredTensor],
    shardings: Shardings | None = None,
) -> Decoder:
    """Returns a decoder with the stored weights, in `config.param_dtype`; arguments as `fill`."""
    decoder = nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0)))
    fill(decoder, tensor_of, logical_axes(config), shardings)
    return decoder


def fill(
    module: nnx.Module,
    tensor_of: Callable[[str, int | None], StoredTensor],
    axes: ParameterAxes,
    shardings: Shardings | None = None,
) -> None:
    """Puts stored weights into a module whose parameters are abstract (`nnx.eval_shape`), in their dtypes.

    Args:
        module: a parameter at the top is one tensor; one inside a part of it is stacked over layers on axis 0.
        tensor_of: (last name of the parameter, layer or None) -> the stored tensor.
        axes: logical axes by path, for `shardings`.
        shardings: see `Shardings`.

    Raises:
        CheckpointError: a tensor is missing or has another shape.
    """
    state = nnx.state(module)
    leaves, structure = jax.tree_util.tree_flatten_with_path(state)
    tree = None if shardings is None else shardings(state, axes)
    places = [None] * len(leaves) if tree is None else jax.tree.leaves(tree)
    arrays = []
    for (key_path, leaf), place in zip(leaves, places, strict=True):
        path = tuple(str(key.key) for key in key_path if isinstance(key, jax.tree_util.DictKey))
        layers = range(leaf.shape[0]) if len(path) == 2 else (None,)
        tensors = [tensor_of(path[-1], layer) for layer in layers]
        for tensor in tensors:  # before memory is asked for
            check_shape(tensor, path[-1], leaf.shape if len(path) == 1 else leaf.shape[1:])
        read = functools.partial(
            _read_stack if len(path) == 2 else _read_top, tensors, path[-1], leaf.shape, leaf.dtype
        )
        arrays.append(place_array(leaf.shape, place, read))
    nnx.update(module, jax.tree.unflatten(structure, arrays))


def _read_top(tensors: list[StoredTensor], name: str, shape: tuple[int, ...], dtype: Any, index: Index) -> np.ndarray:
    return np.ascontiguousarray(read_part(tensors[0], name, shape, index).astype(dtype))


def _read_stack(tensors: list[StoredTensor], name: str, shape: tuple[int, ...], dtype: Any, index: Index) -> np.ndarray:
    part = np.empty([cut.stop - cut.start for cut in index], dtype)
    for row, tensor in enumerate(tensors[index[0]]):
        part[row] = read_part(tensor, name, shape[1:], index[1:])
    return part

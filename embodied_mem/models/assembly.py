"""A decoder from stored tensors, part by part, each part straight to the devices that hold it.

    decoder = assemble(config, tensor_of)                                   # on the default device
    decoder = assemble(config, tensor_of, shardings=placement.shardings)    # split; see `parallel.placement`

What stores the tensors (`hf.py`, `gguf.py`) answers `tensor_of(name, layer)` with a `StoredTensor`. Only the slices
that a device of this process holds are read, in threads, in pieces of some megabytes, as they are stored; the device
transposes them. Beside what devices hold, host memory has `_AHEAD` pieces that were read and as many on their way.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import functools
import math
import mmap
import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.errors import CheckpointError
from embodied_mem.models.config import DecoderConfig, ParameterAxes, logical_axes
from embodied_mem.models.decoder import Decoder
from embodied_mem.native import part as native_part
from embodied_mem.progress import Progress

Index = tuple[slice, ...]  # with start and stop as integers, step 1
Shardings = Callable[[Any, ParameterAxes], Any]
"""(tree of abstract arrays, parameter path -> logical axes) -> tree of shardings, or None for the default device."""

# How many leading axes of a parameter are the inputs of its linear map; published weights have [outputs, inputs].
_NUM_INPUT_AXES = {
    "query": 1, "key": 1, "value": 1, "output": 2, "gate": 1, "up": 1, "down": 1, "head": 1,
    "patch": 1, "qkv": 1, "merger_in": 1, "merger_out": 1,
}  # fmt: skip
_TABLES = ("embedding", "positions")
_PIECE_BYTES = 16 << 20
_BLOCK_BYTES = 1 << 19  # a core's own cache holds it while it is transposed
_MEMORY = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
"""Not numpy's: it asks for huge pages, for which the kernel may have to move others. XLA takes it as it is."""
_THREADS = min(8, os.cpu_count() or 1)
_AHEAD = 2 * _THREADS
_LONG_BYTES = 1 << 30  # from here on progress is told


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
    """Builds an array on the devices of a sharding, part by part.

    `read` gives any part; a `sharding` of None is the default device.

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


def check_shape(tensor: StoredTensor, name: str, shape: tuple[int, ...]) -> None:
    """Raises CheckpointError if a stored parameter has another shape than expected.

    `shape` is that of one layer's parameter.
    """
    expected = as_stored_shape(name, shape)
    if tuple(tensor.shape) != expected:
        raise CheckpointError(f"{tensor.where}: expected shape {expected}, got {tuple(tensor.shape)}")


def as_stored_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape of a parameter in published files, see `_read_part`."""
    inputs = _NUM_INPUT_AXES.get(name, 0)
    if name in _TABLES:
        return shape
    return (math.prod(shape[inputs:]), math.prod(shape[:inputs])) if inputs else (math.prod(shape),)


def as_stored(name: str, array: np.ndarray) -> np.ndarray:
    """Returns a whole parameter (one layer's) in the layout of published files.

    Loading undoes this.
    """
    inputs = _NUM_INPUT_AXES.get(name, 0)
    if inputs:
        array = np.ascontiguousarray(array.reshape(math.prod(array.shape[:inputs]), -1).T)
    return array.reshape(as_stored_shape(name, array.shape)) if not inputs else array


def _read_part(tensor: StoredTensor, name: str, shape: tuple[int, ...], index: Index) -> np.ndarray:
    """Returns a part of one layer's parameter as it is stored.

    Linear maps are stored as [outputs, inputs] with heads and their dimensions merged: of these the axes are taken
    apart, but outputs still come first. Biases are stored merged; norms and tables as they are.
    """
    inputs = _NUM_INPUT_AXES.get(name, 0)
    groups = [(shape[inputs:], index[inputs:]), (shape[:inputs], index[:inputs])] if inputs else [(shape, index)]
    if name in _TABLES:
        groups = [(shape[:1], index[:1]), (shape[1:], index[1:])]
    inner = [math.prod(sizes[1:]) for sizes, _ in groups]
    stored = tensor.read(tuple(slice(c[0].start * n, c[0].stop * n) for (_, c), n in zip(groups, inner)))
    whole = [n for sizes, cuts in groups for n in (cuts[0].stop - cuts[0].start, *sizes[1:])]
    rest = [cut for _, cuts in groups for cut in (slice(None), *cuts[1:])]
    return stored.reshape(whole)[tuple(rest)]


def _stored_order(name: str, axes: Sequence[Any]) -> tuple[Any, ...]:
    """Returns one layer's axes in the order of `_read_part`."""
    inputs = _NUM_INPUT_AXES.get(name, 0)
    return (*axes[inputs:], *axes[:inputs])


@dataclasses.dataclass
class _Stack:
    """A parameter that is filled piece by piece.

    Attributes:
        name: of the parameter.
        tensors: what is stored, one per layer.
        like: shape and dtype.
        is_layered: whether its first axis is the layers.
    """

    name: str
    tensors: list[StoredTensor]
    like: Any
    is_layered: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one layer."""
        return tuple(self.like.shape[1:] if self.is_layered else self.like.shape)

    @property
    def axis(self) -> int:
        """The axis of one layer, along which pieces follow one another: the first as stored."""
        return _NUM_INPUT_AXES.get(self.name, 0)

    def pieces(self, size: int) -> list[tuple[int, int]]:
        """Returns (first, last + 1) of pieces along an `axis` of `size`."""
        num_bytes = math.prod(self.shape) * self.like.dtype.itemsize
        step = -(-size // max(1, num_bytes // _PIECE_BYTES))
        step = min(-(-step // 32) * 32, size)  # whole cache lines
        return [(first, min(first + step, size)) for first in range(0, size, step)]


class _HostStack(_Stack):
    """One in memory that the device of a CPU takes as it is."""

    def begin(self, sharding: None) -> None:
        size = math.prod(self.like.shape) * self.like.dtype.itemsize
        room = np.frombuffer(mmap.mmap(-1, max(size, 1), _MEMORY), np.uint8, size)
        self._whole = room.view(self.like.dtype).reshape(self.like.shape)

    def cuts(self) -> list[tuple[int, int]]:
        return self.pieces(self.shape[self.axis])

    def read(self, layer: int, cut: tuple[int, int]) -> None:
        row_bytes = math.prod(self.shape) * self.like.dtype.itemsize // max(1, self.shape[self.axis])
        line = max(1, 32 // math.prod(self.shape[self.axis + 1 :]))
        step = -(-max(1, _BLOCK_BYTES // max(1, row_bytes)) // line) * line
        for first in range(*cut, step):
            self._read_block(layer, (first, min(first + step, cut[1])))

    def _read_block(self, layer: int, cut: tuple[int, int]) -> None:
        index = [slice(0, n) for n in self.shape]
        if index:
            index[self.axis] = slice(*cut)
        piece = _read_part(self.tensors[layer], self.name, self.shape, tuple(index)).astype(self.like.dtype, copy=False)
        whole = self._whole[layer] if self.is_layered else self._whole
        if self.axis and self.like.dtype.itemsize in (2, 4):
            columns = math.prod(self.shape[: self.axis])
            inner = math.prod(self.shape[self.axis + 1 :])
            bits = f"u{self.like.dtype.itemsize}"
            target = whole.reshape(columns, -1)[:, cut[0] * inner : cut[1] * inner]
            native_part("models").transpose(piece.reshape(-1, columns).view(bits), target.view(bits))
        else:
            whole[tuple(index)] = np.moveaxis(piece, range(-self.axis, 0), range(self.axis))

    def write(self, layer: int, cut: tuple[int, int], read: None) -> None:
        pass  # `read` did, since pieces do not overlap

    def array(self) -> jax.Array:
        array: jax.Array = jax.device_put(self._whole, may_alias=True)
        return array


class _DeviceStack(_Stack):
    """One on other devices, each of which gets its own part as stored and turns it."""

    def begin(self, sharding: jax.sharding.Sharding | None) -> None:
        if sharding is None:
            mesh = jax.sharding.Mesh([jax.local_devices()[0]], "x")
            sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        assert isinstance(sharding, jax.sharding.NamedSharding)
        axes = (*sharding.spec, *[None] * (len(self.like.shape) - len(sharding.spec)))
        assert not (self.is_layered and axes[0]), "layers are never split"
        spec = jax.sharding.PartitionSpec(*_stored_order(self.name, axes[self.is_layered :]))
        self._place = jax.sharding.NamedSharding(sharding.mesh, spec)
        self._local = sharding.shard_shape(self.like.shape)[self.is_layered :]
        self._holders: dict[tuple[tuple[int, int], ...], list[jax.Device]] = {}
        for device, index in sharding.addressable_devices_indices_map(self.like.shape).items():
            bounds = tuple(cut.indices(size)[:2] for cut, size in zip(index or (), self.like.shape, strict=True))
            self._holders.setdefault(bounds[self.is_layered :], []).append(device)
        make = functools.partial(jnp.zeros, self.like.shape, self.like.dtype)
        self._whole = jax.jit(make, out_shardings=sharding)()
        self._write = _writing(self.name, self.is_layered, sharding, spec)

    def cuts(self) -> list[tuple[int, int]]:
        return self.pieces(self._local[self.axis])

    def read(self, layer: int, cut: tuple[int, int]) -> list[tuple[np.ndarray, list[jax.Device]]]:
        parts = []
        for bounds, devices in self._holders.items():
            index = [slice(*pair) for pair in bounds]
            start = bounds[self.axis][0] if bounds else 0
            index[self.axis] = slice(start + cut[0], start + cut[1])
            part = _read_part(self.tensors[layer], self.name, self.shape, tuple(index))
            own = part if part.flags.writeable else np.array(part)  # else it may be the file itself
            parts.append((own, devices))
        return parts

    def write(self, layer: int, cut: tuple[int, int], read: list[tuple[np.ndarray, list[jax.Device]]]) -> jax.Array:
        """Returns what is there when the piece is no longer needed."""
        local = read[0][0].shape
        shape = tuple(n * m for n, m in zip(local, self._splits()))
        on_devices = [jax.device_put(part, device) for part, devices in read for device in devices]
        piece = jax.make_array_from_single_device_arrays(shape, self._place, on_devices)
        is_done: jax.Array
        self._whole, is_done = self._write(self._whole, piece, layer, cut[0])
        return is_done

    def _splits(self) -> tuple[int, ...]:
        return tuple(
            n // m for n, m in zip(_stored_order(self.name, self.shape), _stored_order(self.name, self._local))
        )

    def array(self) -> jax.Array:
        whole: jax.Array = self._whole
        return whole


@functools.cache
def _writing(name: str, is_layered: bool, sharding: jax.sharding.NamedSharding, spec: Any) -> Callable[..., Any]:
    """Makes a jitted (whole, piece, layer, first) -> (whole, layer)."""
    none = jax.sharding.PartitionSpec()

    def write(whole: jax.Array, piece: jax.Array, layer: jax.Array, first: jax.Array) -> tuple[jax.Array, jax.Array]:
        inputs = _NUM_INPUT_AXES.get(name, 0)
        permuted = jnp.moveaxis(piece, range(-inputs, 0), range(inputs)).astype(whole.dtype)
        start: list[Any] = [0] * permuted.ndim
        start[inputs] = first
        if is_layered:
            permuted, start = permuted[None], [layer, *start]
        return jax.lax.dynamic_update_slice(whole, permuted, start), layer + 0

    program = jax.shard_map(
        write, mesh=sharding.mesh, in_specs=(sharding.spec, spec, none, none), out_specs=(sharding.spec, none),
        check_vma=False,
    )  # fmt: skip
    return jax.jit(program, donate_argnums=0)


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
    """Puts stored weights into a module with abstract parameters, in their dtypes.

    `nnx.eval_shape` makes such a module.

    Args:
        module: a parameter at the top is one tensor; one inside a part of it is stacked over layers on axis 0.
        tensor_of: (last name of the parameter, layer or None) -> the stored tensor.
        axes: logical axes by path, for `shardings`.
        shardings: see `Shardings`.

    Raises:
        CheckpointError: a tensor is missing or has another shape.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(nnx.state(module))
    tree = None if shardings is None else shardings(nnx.state(module), axes)
    places = [None] * len(leaves) if tree is None else jax.tree.leaves(tree)
    found = []
    for key_path, leaf in leaves:
        path = tuple(str(key.key) for key in key_path if isinstance(key, jax.tree_util.DictKey))
        layers = range(leaf.shape[0]) if len(path) == 2 else (None,)
        tensors = [tensor_of(path[-1], layer) for layer in layers]
        for tensor in tensors:  # before memory is asked for
            check_shape(tensor, path[-1], leaf.shape if len(path) == 1 else leaf.shape[1:])
        found.append((path[-1], tensors, jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), len(path) == 2))
    on_host = tree is None and jax.default_backend() == "cpu"
    stacks = [(_HostStack if on_host else _DeviceStack)(*one) for one in found]
    for stack, place in zip(stacks, places):
        stack.begin(place)
    _fill_all(stacks)
    nnx.update(module, jax.tree.unflatten(structure, [stack.array() for stack in stacks]))


def _fill_all(stacks: Sequence[Any]) -> None:
    """Reads all pieces in threads, writes them in one order."""
    jobs = [(stack, layer, cut) for stack in stacks for layer in range(len(stack.tensors)) for cut in stack.cuts()]
    jobs.sort(key=lambda job: job[1])  # files hold one layer after the other
    size = sum(math.prod(stack.like.shape) * stack.like.dtype.itemsize for stack in stacks)
    silent = size < _LONG_BYTES or jax.process_index() > 0
    under_way: collections.deque[Any] = collections.deque()
    with (
        concurrent.futures.ThreadPoolExecutor(_THREADS) as threads,
        Progress("reading weights", len(jobs), unit="piece", silent=silent) as progress,
    ):
        ahead: collections.deque[Any] = collections.deque()
        try:
            for stack, layer, cut in jobs[:_AHEAD]:
                ahead.append(threads.submit(stack.read, layer, cut))
            for i, (stack, layer, cut) in enumerate(jobs):
                under_way.append(stack.write(layer, cut, ahead.popleft().result()))
                if len(under_way) > _AHEAD:
                    jax.block_until_ready(under_way.popleft())
                if i + _AHEAD < len(jobs):
                    after, its_layer, its_cut = jobs[i + _AHEAD]
                    ahead.append(threads.submit(after.read, its_layer, its_cut))
                progress.update()
        finally:
            threads.shutdown(cancel_futures=True)
    jax.block_until_ready(list(under_way))

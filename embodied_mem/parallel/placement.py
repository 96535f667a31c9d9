"""Places a program's arrays: unsharded on one device, by the sharding table on a mesh.

    placement = placement_of(MeshShape(data=2, fsdp=4))      # the mesh is built once
    params = placement.params(params, logical_axes(config))
    step = placement.scoped(jax.jit(step, out_shardings=...))
    params = step(params, placement.batch(batch))            # rows: a multiple of `placement.split`

Training, compiler and executor take a placement, so that the same code runs on any mesh. On one device every method
hands back what it got: numbers and programs are those of code without a mesh.

A mesh may span processes. Each of them then has the same host arrays and hands over the parts that its own devices
hold; `fetch` gives all of them the whole of a result.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from embodied_mem.errors import InvalidInputError
from embodied_mem.parallel.mesh import AXES, MeshShape, make_mesh
from embodied_mem.parallel.sharding import LogicalAxes, batch_sharding, replicated, shardings


@dataclasses.dataclass(frozen=True)
class Placement:
    """A mesh, or None for one device."""

    mesh: jax.sharding.Mesh | None = None

    @property
    def split(self) -> int:
        """Number of parts that a batch is split into."""
        return 1 if self.mesh is None else self.mesh.shape["data"] * self.mesh.shape["fsdp"]

    @property
    def platform(self) -> str:
        """Kind of its devices, as JAX names it."""
        return str(jax.default_backend() if self.mesh is None else self.mesh.devices.flat[0].platform)

    def rows(self, count: int) -> int:
        """Returns `count`, rounded up to a multiple of `split`."""
        return -(-count // self.split) * self.split

    def for_sampling(self, tensor: int) -> Placement:
        """Returns the placement on the same devices for sampling.

        Every `tensor` of them hold one copy of the parameters.

        Nothing is split over `fsdp` there, so that decoding gathers no weights: where D is split, every decoded token
        moves the whole model. On one device, and for 0, it is this placement.

        Raises:
            InvalidInputError: the number of devices is no multiple of `tensor`.
        """
        if self.mesh is None or not tensor:
            return self
        # In the order of the training's mesh, so that one program can read one layout and write the other.
        devices = self.mesh.devices.reshape(MeshShape(*self.mesh.axis_sizes).for_sampling(tensor).sizes)
        return Placement(jax.sharding.Mesh(devices, AXES, axis_types=self.mesh.axis_types))

    def shardings(self, tree: Any, axes: LogicalAxes) -> Any:
        """Returns a sharding per leaf of arrays or abstract arrays, or None.

        They are e.g. for `jax.jit(out_shardings=...)`.
        """
        return None if self.mesh is None else shardings(tree, axes, self.mesh).tree

    def params(self, tree: Any, axes: LogicalAxes) -> Any:
        """Returns parameters on the devices that the table names.

        `tree` may be anything that has the parameters' paths.
        """
        return tree if self.mesh is None else jax.tree.map(_put, tree, self.shardings(tree, axes))

    def whole(self, tree: Any) -> Any:
        """Returns small arrays and PRNG keys, whole on every device."""
        return tree if self.mesh is None else jax.tree.map(lambda leaf: _put(leaf, replicated(self.mesh)), tree)

    def fetch(self, tree: Any) -> Any:
        """Returns the whole of every array in host memory, in each process."""
        return jax.tree.map(fetch, tree)

    def build(self, make: Callable[..., Any], *arguments: Any, axes: LogicalAxes) -> Any:
        """Returns `make(*arguments)`, computed where the table puts it.

        So it never stands on one device whole.
        """
        if self.mesh is None:
            return make(*arguments)
        places = self.shardings(jax.eval_shape(make, *arguments), axes)
        return self.scoped(jax.jit(make, out_shardings=places))(*arguments)

    def batch(self, tree: Any) -> Any:
        """Returns arrays split along their first axis.

        They are host arrays, device arrays or PRNG keys.

        Raises:
            InvalidInputError: an axis that is no multiple of `split`.
        """
        if self.mesh is None:
            return tree
        for leaf in jax.tree.leaves(tree):
            if not leaf.shape or leaf.shape[0] % self.split:
                raise InvalidInputError(
                    f"batch: expected a first axis divisible by data x fsdp = {self.split}, got shape {leaf.shape}"
                )
        return jax.tree.map(lambda leaf: _put(leaf, batch_sharding(self.mesh)), tree)

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context for tracing and running programs of this placement."""
        return contextlib.nullcontext() if self.mesh is None else jax.set_mesh(self.mesh)

    def scoped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `function`, called within `scope`."""
        if self.mesh is None:
            return function

        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            with self.scope():
                return function(*arguments, **keywords)

        return call

    def on_host(self) -> contextlib.AbstractContextManager[Any]:
        """Returns a context that keeps new arrays in host memory.

        It is for models that no single device can hold.
        """
        if self.mesh is None:
            return contextlib.nullcontext()
        scope: contextlib.AbstractContextManager[Any] = jax.default_device(jax.local_devices(backend="cpu")[0])
        return scope


ONE_DEVICE = Placement()


def _put(leaf: Any, sharding: jax.sharding.Sharding) -> Any:
    if jax.process_count() == 1:
        return jax.device_put(leaf, sharding)
    if not getattr(leaf, "is_fully_addressable", True):  # it lies on the mesh already, perhaps otherwise split
        return leaf if leaf.sharding.is_equivalent_to(sharding, leaf.ndim) else _moved(sharding)(leaf)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_put(jax.random.key_data(leaf), sharding), impl=jax.random.key_impl(leaf))
    host = np.asarray(leaf)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


@functools.cache
def _moved(sharding: jax.sharding.Sharding) -> Callable[[jax.Array], jax.Array]:
    return jax.jit(lambda leaf: leaf, out_shardings=sharding)


def fetch(leaf: Any) -> np.ndarray:
    """Returns the whole of an array in host memory.

    Every process that holds a part of it calls this.
    """
    if getattr(leaf, "is_fully_addressable", True) or leaf.is_fully_replicated:
        return np.asarray(leaf)
    from jax.experimental import multihost_utils

    return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))


@functools.cache
def placement_of(shape: MeshShape) -> Placement:
    """Returns the placement over all devices of all processes in this shape.

    On a single device it is `ONE_DEVICE`.

    Raises:
        InvalidInputError: the shape does not make the number of devices.
    """
    sizes = shape.resolve(jax.device_count()).sizes
    return ONE_DEVICE if max(sizes) == 1 else Placement(make_mesh(shape))

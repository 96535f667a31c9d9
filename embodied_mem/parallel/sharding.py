"""Sharding of every array of a run: one table from logical axes to mesh axes, applied to any pytree.

    placed = shardings(nnx.state(decoder), logical_axes(config), mesh)   # also optimizer states, train states
    for line in placed.fallbacks: print(line)                            # what could not be split, and why
    state = jax.device_put(state, placed.tree)

A leaf belongs to the parameter whose path ends its own: `("layers", "query")` names the parameter, its gradient and
its optimizer moments alike. An axis that the mesh does not divide is kept whole and reported, never padded.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from embodied_mem.errors import InvalidInputError

_LOG = logging.getLogger(__name__)

# The table. A logical axis that is mapped to None is whole on every device.
RULES: dict[str, str | None] = {
    "embed": "fsdp",
    "vocab": "tensor",
    "heads": "tensor",
    "kv_heads": "tensor",
    "mlp": "tensor",
    "head_dim": None,
    "layers": None,
    "lora": None,
    "soft": None,
}
BATCH_AXES = ("data", "fsdp")  # the first axis of every batch

Path = tuple[str, ...]
LogicalAxes = Mapping[Path, tuple[str | None, ...]]


@dataclasses.dataclass(frozen=True)
class Shardings:
    """Where a pytree goes.

    Attributes:
        tree: a NamedSharding per leaf.
        fallbacks: what the table would split and the mesh cannot, and arrays without axes, one line each.
    """

    tree: Any
    fallbacks: tuple[str, ...]


class Placement(NamedTuple):
    """The split of one array: whose axes it has, these, mesh axis or None for each, why some are not as in `RULES`."""

    parameter: str
    axes: tuple[str | None, ...]
    split: tuple[str | None, ...]
    reasons: tuple[str, ...]
    bytes_per_device: int


def place(path: Path, leaf: Any, axes: LogicalAxes, mesh: Any) -> Placement:
    """Returns the split of the array at `path` over a mesh.

    The mesh is concrete or abstract.

    Raises:
        InvalidInputError: an axis name is not in `RULES`.
    """
    owner = _owner(path, len(leaf.shape), axes)
    names = (None,) * len(leaf.shape) if owner is None else axes[owner]
    reasons = ["no logical axes, whole on every device"] if owner is None and leaf.shape else []
    split: list[str | None] = []
    for size, axis in zip(leaf.shape, names):
        if axis is not None and axis not in RULES:
            raise InvalidInputError(f"{'.'.join(path)}: logical axis {axis!r} is unknown; known: {', '.join(RULES)}")
        target = None if axis is None else RULES[axis]
        if target is not None and mesh.shape[target] == 1:
            target = None
        if target is not None:
            if target in split:
                reasons.append(f"{axis}={size} is whole, {target} already splits another axis")
                target = None
            elif size % mesh.shape[target]:
                reasons.append(f"{axis}={size} is whole, {target}={mesh.shape[target]} does not divide it")
                target = None
        split.append(target)
    parts = math.prod(mesh.shape[target] for target in split if target is not None)
    parameter = ".".join(owner or path)
    return Placement(parameter, names, tuple(split), tuple(reasons), _num_bytes(leaf) // parts)


def shardings(tree: Any, axes: LogicalAxes, mesh: Any) -> Shardings:
    """Returns the sharding of every leaf of `tree`.

    Leaves are arrays or abstract arrays. What could not be split is logged.

    Args:
        tree: any pytree, e.g. parameters, an optimizer state, or a whole train state.
        axes: parameter path -> logical name of each axis; several models may share one mapping.
        mesh: concrete or abstract.
    """
    leaves, treedef = jax.tree_util.tree_flatten_with_path(tree)
    placed = [place(leaf_path(key_path), leaf, axes, mesh) for key_path, leaf in leaves]
    fallbacks = dict.fromkeys(f"{one.parameter}: {reason}" for one in placed for reason in one.reasons)
    if fallbacks:
        _LOG.warning("not split over the mesh %s: %s", dict(mesh.shape), "; ".join(fallbacks))
    places = [NamedSharding(mesh, PartitionSpec(*placement.split)) for placement in placed]
    return Shardings(jax.tree.unflatten(treedef, places), tuple(fallbacks))


def leaf_path(key_path: tuple[Any, ...]) -> Path:
    """Returns the names along a jax key path.

    The attribute `value` that ends the path of a Flax variable is left out.
    """
    if len(key_path) > 1 and key_path[-1] == jax.tree_util.GetAttrKey("value"):
        key_path = key_path[:-1]
    return tuple(jax.tree_util.keystr((key,), simple=True) for key in key_path)


def batch_sharding(mesh: Any) -> NamedSharding:
    """Returns the sharding of an array with the batch as first axis."""
    return NamedSharding(mesh, PartitionSpec(BATCH_AXES))


def replicated(mesh: Any) -> NamedSharding:
    """Returns the sharding of an array that every device holds whole."""
    return NamedSharding(mesh, PartitionSpec())


def _num_bytes(leaf: Any) -> int:
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.eval_shape(jax.random.key_data, leaf)
    return int(math.prod(leaf.shape) * leaf.dtype.itemsize)


def _owner(path: Path, rank: int, axes: LogicalAxes) -> Path | None:
    """Returns the longest suffix of `path` with axes of this rank.

    It is a parameter's path.
    """
    for start in range(len(path)):
        if len(axes.get(path[start:], (None,) * (rank + 1))) == rank:
            return path[start:]
    return None

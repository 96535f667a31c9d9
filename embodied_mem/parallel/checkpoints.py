"""Checkpoints of a run: any pytree of arrays plus a JSON dictionary, written whole or not at all.

    checkpoints = Checkpoints(run_dir / "checkpoints", max_to_keep=2, config=resolved_config)
    if checkpoints.latest() is not None:
        step, state, metadata = checkpoints.restore(like=state)
    checkpoints.save(step, state, {"data_position": 17})    # returns when the state is copied; the disk comes later
    checkpoints.wait()                                      # now it is there

The only module that knows Orbax. It uses the stable `CheckpointManager`: in orbax-checkpoint 0.12 the v1 interface is
still in `experimental`. A checkpoint becomes visible by one rename after everything in it is on disk, and the one
before it is deleted only after that, so a process killed at any moment leaves the previous checkpoint valid.

Leaves are stored flat under their path in the pytree, beside a table of path to shape, dtype and a sum of their bits.
`restore` compares that table with `like` before it reads an array, and the sum after: Orbax itself reads flipped bits
without a word. The sum is made where the array lies, so that it holds up no step and knows no processes. Typed PRNG
keys are stored as key data and come back as keys. Every process of a distributed run calls `save`, `wait` and
`restore`; the directory must be one that all of them see.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from embodied_mem.errors import CheckpointError, InvalidInputError

_MAX_LISTED = 8  # differences named in one error


class Restored(NamedTuple):
    """The result of `Checkpoints.restore`: step, arrays in the structure of `like`, the saved dictionary."""

    step: int
    arrays: Any
    metadata: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run in one directory.

    Args:
        directory: where they live; made by the first `save`.
        max_to_keep: how many of the newest stay on disk, >= 1.
        config: the run's resolved configuration (JSON values). It is saved with every checkpoint, and `restore`
            refuses a checkpoint that was written under another one. None: neither.

    One writer per directory; any number of readers.
    """

    def __init__(self, directory: str | Path, max_to_keep: int = 2, config: dict[str, Any] | None = None) -> None:
        if max_to_keep < 1:
            raise InvalidInputError(f"max_to_keep: expected >= 1, got {max_to_keep}")
        self._directory = Path(directory).absolute()
        self._max_to_keep = max_to_keep
        self._config = None if config is None else _as_json(config, "config")
        self._manager: Any = None
        self._writes = False
        self._newest: int | None = None  # what this object saved last, perhaps not on disk yet

    def save(self, step: int, arrays: Any, metadata: dict[str, Any] | None = None) -> None:
        """Copies the state, begins to write it and returns.

        The arrays may then be changed or donated.

        Waits for the checkpoint before, if that is still being written: at most one is.

        Args:
            step: >= 0 and greater than the newest step in the directory.
            arrays: pytree whose leaves are jax arrays, typed PRNG keys or numpy arrays.
            metadata: JSON values that belong to the state (data order, counters).

        Raises:
            InvalidInputError: a leaf is no array, or `metadata` is not JSON.
            CheckpointError: `step` is not newer than what is there, or writing this one or the one before failed.
        """
        own = _as_json(metadata or {}, "metadata")
        flat, structure, _ = _flatten(arrays)
        latest = self.latest() if self._newest is None else self._newest
        if step < 0 or (latest is not None and step <= latest):
            raise CheckpointError(
                f"{self._directory}: cannot save step {step}, the newest checkpoint is of step {latest}; "
                "steps must grow. Restore first, or use another directory"
            )
        import orbax.checkpoint as ocp

        record = {"metadata": own, "config": self._config, "structure": structure, "sums": _bit_sums(flat)}
        record["crc32"] = _crc32(record)
        items = ocp.args.Composite(arrays=ocp.args.StandardSave(flat), record=ocp.args.JsonSave(record))
        with self._writing(step):
            self._orbax(write=True).save(step, args=items)
        self._newest = step

    def wait(self) -> None:
        """Returns when the checkpoint that was begun last is on disk.

        Raises:
            CheckpointError: it could not be written.
        """
        if self._newest is not None:
            with self._writing(self._newest):
                self._manager.wait_until_finished()

    @contextlib.contextmanager
    def _writing(self, step: int) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise CheckpointError(
                f"{self._directory}: the checkpoint of step {step} or the one before could not be written; those that "
                f"are there stay valid: {_short(error)}"
            ) from error

    def latest(self) -> int | None:
        """Returns the newest complete step on disk, or None."""
        steps = self.steps()
        return steps[-1] if steps else None

    def steps(self) -> list[int]:
        """Returns the complete steps on disk in ascending order.

        What is being written is waited for.
        """
        self.wait()
        if not self._directory.is_dir():
            return []
        try:
            manager = self._orbax()
            manager.reload()
            return sorted(manager.all_steps())
        except Exception as error:
            raise CheckpointError(
                f"{self._directory}: expected a folder of checkpoints, got one that cannot be listed: {_short(error)}; "
                "delete what is not a checkpoint, or use another run directory"
            ) from error

    def restore(self, step: int | None = None, *, like: Any) -> Restored:
        """Returns a saved state in the structure, types and shardings of `like`.

        Args:
            step: which; None takes the newest.
            like: pytree of arrays or `jax.ShapeDtypeStruct`. A leaf with a sharding is restored onto it, whatever
                mesh wrote it; a `ShapeDtypeStruct` without one goes to the first device. A numpy array stays numpy,
                and so does a dtype that jax would narrow (int64 without x64).

        Raises:
            CheckpointError: there is none, it is damaged, or its structure, shapes, dtypes or configuration differ.
        """
        import jax
        import orbax.checkpoint as ocp

        steps = self.steps()
        if not steps or (step is not None and step not in steps):
            missing = "no checkpoint" if step is None else f"no checkpoint of step {step}"
            raise CheckpointError(f"{self._directory}: {missing} here; steps on disk: {steps or 'none'}")
        step = steps[-1] if step is None else step
        where = f"{self._directory} step {step}"
        record = self._record(step)
        if self._config is not None and record["config"] is not None:
            _raise_differences(f"{where}: written under another configuration", record["config"], self._config)
        wanted, structure, treedef = _flatten(like, abstract=True)
        _raise_differences(f"{where}: holds another state", record["structure"], structure)
        flat = self._read(step, "arrays", ocp.args.StandardRestore(wanted))
        sums = record.get("sums")  # runs begun before there were sums are read unchecked
        if sums is not None and (damaged := [name for name, got in _bit_sums(flat).items() if got != sums.get(name)]):
            raise self._damaged(step, f"`{damaged[0]}` has another sum of bits than when it was written")
        leaves = []
        for name, (_, kind) in structure.items():
            leaf = flat[name]
            leaves.append(jax.random.wrap_key_data(leaf, impl=kind[4:-1]) if kind.startswith("key<") else leaf)
        return Restored(step, jax.tree.unflatten(treedef, leaves), record["metadata"])

    def _record(self, step: int) -> dict[str, Any]:
        """Return what was saved beside the arrays.

        Raises:
            CheckpointError: it is damaged.
        """
        import orbax.checkpoint as ocp

        record = self._read(step, "record", ocp.args.JsonRestore())
        needed, known = {"metadata", "config", "structure"}, {"metadata", "config", "structure", "sums", "crc32"}
        if not isinstance(record, dict) or not needed <= set(record) <= known:
            raise self._damaged(step, f"`record`: expected an object with {', '.join(sorted(known))}")
        if any(not isinstance(record.get(name, {}), dict) for name in ("metadata", "structure", "sums")):
            raise self._damaged(step, "`record`: expected objects in metadata, structure, sums")
        if "crc32" in record and record["crc32"] != _crc32(record):  # runs begun before there was one are not checked
            raise self._damaged(step, "`record` has another checksum than when it was written")
        return record

    def _read(self, step: int, item: str, args: Any) -> Any:
        import orbax.checkpoint as ocp

        try:
            return self._orbax().restore(step, args=ocp.args.Composite(**{item: args}))[item]
        except Exception as error:
            raise self._damaged(step, f"`{item}` cannot be read: {_short(error)}") from error

    def _damaged(self, step: int, reason: str) -> CheckpointError:
        return CheckpointError(
            f"{self._directory} step {step}: damaged, {reason}; "
            f"delete {self._directory / str(step)} to continue from an older step"
        )

    def _orbax(self, write: bool = False) -> Any:
        if self._manager is None or (write and not self._writes):
            import orbax.checkpoint as ocp

            # What a killed writer left behind is removed by the next writer, never by a reader beside a live one.
            options = ocp.CheckpointManagerOptions(
                max_to_keep=self._max_to_keep, enable_async_checkpointing=write, cleanup_tmp_directories=write
            )
            self._manager, self._writes = ocp.CheckpointManager(self._directory, options=options), write
        return self._manager


def _flatten(tree: Any, abstract: bool = False) -> tuple[dict[str, Any], dict[str, list[Any]], Any]:
    """Returns storable leaves and [shape, dtype] by path, and the treedef.

    Both are dictionaries by path; the leaves are in their abstract form if `abstract`.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    paths, treedef = jax.tree_util.tree_flatten_with_path(tree)
    flat, structure = {}, {}
    for path, leaf in paths:
        name = jax.tree_util.keystr(path, simple=True, separator=".") or "."
        if name in flat:
            raise InvalidInputError(f"arrays: two leaves have the path {name!r}; dictionary keys must not contain dots")
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise InvalidInputError(
                f"arrays: leaf {name!r} is {type(leaf).__name__}, expected an array; other values go into `metadata`"
            )
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        structure[name] = [list(leaf.shape), f"key<{_key_impl(leaf)}>" if is_key else str(leaf.dtype)]
        if abstract:
            flat[name] = _abstract(leaf, is_key)
        elif is_key:
            flat[name] = jax.random.key_data(leaf)
        else:
            flat[name] = leaf if isinstance(leaf, jax.Array) else np.array(leaf)
    return flat, structure, treedef


def _key_impl(leaf: Any) -> str:
    import jax

    names = []  # key_impl takes no abstract array, but inside a trace it does
    jax.eval_shape(lambda key: names.append(str(jax.random.key_impl(key))), leaf)
    return names[0]


def _abstract(leaf: Any, is_key: bool) -> Any:
    """Returns shape, dtype and sharding to ask Orbax for a leaf."""
    import jax
    import numpy as np

    narrowed = not is_key and jax.dtypes.canonicalize_dtype(leaf.dtype) != leaf.dtype  # int64 without x64
    if narrowed or isinstance(leaf, (np.ndarray, np.generic)):
        return np.empty(leaf.shape, leaf.dtype)
    sharding = getattr(leaf, "sharding", None) or jax.sharding.SingleDeviceSharding(jax.devices()[0])
    data = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)) if is_key else leaf
    return jax.ShapeDtypeStruct(data.shape, data.dtype, sharding=sharding)


def _short(error: Exception) -> str:
    """Returns the start of a message: TensorStore's print whole specifications."""
    return f"{type(error).__name__}: {str(error)[:200]}"


def _bit_sums(flat: dict[str, Any]) -> dict[str, int]:
    """Returns a checksum per array, the sum of weighted bits modulo 2^32.

    The bits of element i, in row order, count (2 i + 1) times.

    As the factors are odd, every single changed element changes the sum, and an exchange of two unequal ones all but
    always does. It does not depend on how an array is split.
    """
    import jax
    import numpy as np

    def host(leaf: Any) -> int:
        bits = np.ascontiguousarray(leaf).reshape(-1).view(f"u{min(leaf.dtype.itemsize, 4)}").astype(np.uint32)
        return int((bits * (2 * np.arange(bits.size, dtype=np.uint32) + 1)).sum(dtype=np.uint32))

    lying = {name: leaf for name, leaf in flat.items() if isinstance(leaf, jax.Array)}
    sums = {name: int(value) for name, value in _device_sums()(lying).items()} if lying else {}
    return {name: sums[name] if name in sums else host(leaf) for name, leaf in flat.items()}


@functools.cache
def _device_sums() -> Any:
    import jax
    import jax.numpy as jnp

    def one(leaf: jax.Array) -> jax.Array:
        if leaf.dtype == jnp.bool:
            leaf = leaf.astype(jnp.uint8)
        bits = jax.lax.bitcast_convert_type(leaf, f"uint{8 * min(leaf.dtype.itemsize, 4)}").astype(jnp.uint32)
        places = jnp.zeros(bits.shape, jnp.uint32)
        for axis in range(bits.ndim):
            stride = math.prod(bits.shape[axis + 1 :]) % 2**32
            places += jax.lax.broadcasted_iota(jnp.uint32, bits.shape, axis) * jnp.uint32(stride)
        return (bits * (2 * places + 1)).sum(dtype=jnp.uint32)

    return jax.jit(lambda flat: jax.tree.map(one, flat))


def _crc32(record: dict[str, Any]) -> int:
    """Returns the CRC-32 of a record's JSON without its own checksum."""
    return zlib.crc32(json.dumps({k: v for k, v in record.items() if k != "crc32"}, sort_keys=True).encode())


def _as_json(value: Any, name: str) -> Any:
    """Returns `value` as it will come back from JSON.

    So comparisons see what was stored.
    """
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name}: expected JSON values (dict, list, str, number, bool, None): {error}"
        ) from error


def _raise_differences(what: str, saved: Any, wanted: Any) -> None:
    """Raises CheckpointError with the first differences between two JSON values.

    Returns if there are none.
    """
    differences = list(_differences(saved, wanted, ""))
    if differences:
        more = len(differences) - _MAX_LISTED
        listed = "; ".join(differences[:_MAX_LISTED]) + (f"; and {more} more" if more > 0 else "")
        raise CheckpointError(f"{what}: {listed}. Use the configuration it was written with, or another run directory")


def _differences(saved: Any, wanted: Any, path: str) -> Iterator[str]:
    if isinstance(saved, dict) and isinstance(wanted, dict):
        for key in sorted({*saved, *wanted}):
            name = f"{path}.{key}" if path else key
            if key not in saved:
                yield f"{name} is not in the checkpoint"
            elif key not in wanted:
                yield f"{name} is only in the checkpoint"
            else:
                yield from _differences(saved[key], wanted[key], name)
    elif saved != wanted:
        yield f"{path}: checkpoint has {saved}, this run has {wanted}"

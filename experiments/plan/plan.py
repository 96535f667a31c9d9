"""Plans memory per device and the place of each parameter from shapes alone: no weights, no hardware.

    model = PlannedModel("compiler", config, abstract_parameters, logical_axes(config), trainable=is_adapter)
    phase = Phase("update", passes=(Pass("compiler", batch=16, length=4096),), trains=True)
    print(plan([model], MeshShape(2, 4, 2), [phase], optax.adamw(1e-6)).table())

Parameter, gradient and optimizer bytes are exact: the optimizer state is shaped by `jax.eval_shape` and split by the
same table as in training. Activations are estimates by the formula of `activation_bytes`; compilers fuse and reorder,
so expect them within a factor of about 1.5. A phase fits a chip when its total is at most 90 % of the chip's memory.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.sampling import LAYOUT_SHARE
from embodied_mem.parallel.mesh import MeshShape, abstract_mesh
from embodied_mem.parallel.sharding import LogicalAxes, Path, leaf_path, place

CHIPS_GB = (16, 32, 80, 96)
USABLE = 0.9


@dataclasses.dataclass(frozen=True)
class PlannedModel:
    """One model of a run.

    Attributes:
        name: how phases refer to it.
        config: shape of its decoder.
        parameters: pytree of `jax.ShapeDtypeStruct`.
        axes: parameter path -> logical axes.
        trainable: whether the parameter of this path has a gradient and optimizer state.
    """

    name: str
    config: DecoderConfig
    parameters: Any
    axes: LogicalAxes
    trainable: Callable[[Path], bool]


@dataclasses.dataclass(frozen=True)
class Pass:
    """Sequences that one model works on at once.

    Attributes:
        model: name of a `PlannedModel`.
        batch: sequences over all devices (of one microbatch, where gradients are accumulated).
        length: tokens of each.
        logits_chunk: columns whose logits exist at a time; 0 means all.
    """

    model: str
    batch: int
    length: int
    logits_chunk: int = 0


@dataclasses.dataclass(frozen=True)
class Phase:
    """One kind of work whose memory peaks on its own.

    Attributes:
        name: e.g. "sft", "rollout".
        passes: forward and backward passes that are alive together.
        caches: KV caches that are alive together, `length` being their capacity.
        trains: gradients of the trainable parameters exist.
        sampled: models that lie in the layout for sampling, where the plan has one.
        only_sampled: those of them that do not lie in that for training as well.
    """

    name: str
    passes: tuple[Pass, ...] = ()
    caches: tuple[Pass, ...] = ()
    trains: bool = False
    sampled: tuple[str, ...] = ()
    only_sampled: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ParameterRow:
    """Where one parameter goes; layers are stacked, so one row stands for all of them."""

    model: str
    path: str
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[str | None, ...]
    split: tuple[str | None, ...]
    bytes_total: int
    bytes_per_device: int
    trainable: bool


@dataclasses.dataclass(frozen=True)
class ModelMemory:
    """Bytes per device that a model holds whatever the phase; `gradients` only while training, `sampling` in the
    layout for sampling, where there is one, `layers` what its layers have where it is sampled from, if they are
    stacked."""

    model: str
    parameters_total: int
    trainable_total: int
    parameters: int
    gradients: int
    optimizer: int
    sampling: int = 0
    layers: int = 0


@dataclasses.dataclass(frozen=True)
class PhaseMemory:
    """Bytes per device at the peak of a phase; `total` is with remat, the way long runs go, `layouts` has (all weights,
    stacked layers) of each model that is sampled from."""

    phase: str
    resident: int
    gradients: int
    gathered: int
    activations: int
    activations_remat: int
    caches: int
    total: int
    total_without_remat: int
    fits_gb: tuple[int, ...]
    fits_gb_without_remat: tuple[int, ...]
    layouts: tuple[tuple[int, int], ...] = ()

    def on_gpu(self, memory: float) -> int:
        """Returns the total on GPUs of so many bytes.

        Layers that are stacked lie there once more, one by one, unless the model is too large
        (`models.sampling.sampling_config`).
        """
        return self.total + sum(layers for whole, layers in self.layouts if LAYOUT_SHARE * whole <= memory)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The answer of `plan`: memory per model and phase, one row per parameter, and what could not be split."""

    mesh: dict[str, int]
    models: tuple[ModelMemory, ...]
    phases: tuple[PhaseMemory, ...]
    parameters: tuple[ParameterRow, ...]
    fallbacks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values.

        All sizes are in bytes per device unless the name says total.
        """
        values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return values

    def table(self) -> str:
        """Return the plan for a person."""
        devices = math.prod(self.mesh.values())
        lines = [f"mesh: {' x '.join(f'{axis} {size}' for axis, size in self.mesh.items())} = {devices} devices", ""]
        rows: list[tuple[str, ...]] = [
            ("model", "parameters", "trainable", "weights", "gradients", "optimizer", "to sample")
        ]
        for m in self.models:
            counts = (f"{m.parameters_total:,}", f"{m.trainable_total:,}")
            held = (m.parameters, m.gradients, m.optimizer, m.sampling)
            rows.append((m.model, *counts, *map(size_of, held)))
        lines += [*columns(rows), ""]
        rows = [("per device", "resident", "gradients", "gathered", "activations", "caches", "total", "fits chips of")]
        for p in self.phases:
            kinds = [("", 0, p.total, p.fits_gb)]
            if p.activations:
                kinds = [
                    (" (remat)", p.activations_remat, p.total, p.fits_gb),
                    ("", p.activations, p.total_without_remat, p.fits_gb_without_remat),
                ]
            if p.layouts:
                most = p.on_gpu(math.inf)
                fits = tuple(gb for gb in CHIPS_GB if p.on_gpu(gb * 1e9) <= USABLE * gb * 1e9)
                kinds.append((" (GPU, layers apart)", 0, most, fits))
            for kind, activations, total, fits in kinds:
                sizes = (p.resident, p.gradients, p.gathered, activations, p.caches, total)
                rows.append((p.phase + kind, *map(size_of, sizes), named(fits)))
        lines += [*columns(rows), ""]
        rows = [("parameter", "shape", "dtype", "logical axes", "split over", "per device")]
        for r in self.parameters:
            name = f"{r.model}.{r.path}{' *' if r.trainable else ''}"
            axes, split = (", ".join(a or "-" for a in names) for names in (r.axes, r.split))
            rows.append((name, "x".join(map(str, r.shape)), r.dtype, axes, split, size_of(r.bytes_per_device)))
        lines += [*columns(rows), "* trainable"]
        if self.fallbacks:
            lines += ["", "not split as the table would have it:", *(f"  {line}" for line in self.fallbacks)]
        return "\n".join(lines)


def plan(
    models: Sequence[PlannedModel],
    mesh_shape: MeshShape,
    phases: Sequence[Phase],
    optimizer: Any,
    sampling_shape: MeshShape | None = None,
) -> Plan:
    """Returns the memory of every phase and the place of every parameter.

    Args:
        models: all that are resident.
        mesh_shape: without -1.
        phases: what happens, one peak each.
        optimizer: an optax transformation; its state is made for the trainable parameters.
        sampling_shape: the same devices as models are sampled from (`Placement.for_sampling`), if otherwise.
    """
    mesh, sampling = abstract_mesh(mesh_shape), abstract_mesh(sampling_shape) if sampling_shape else None
    by_name = {model.name: model for model in models}
    rows, memories, fallbacks = [], [], []
    for model in models:
        model_rows, reasons = _parameter_rows(model, mesh)
        rows += model_rows
        fallbacks += reasons
        trained = {leaf_path(p): x for p, x in _leaves(model.parameters) if model.trainable(leaf_path(p))}
        state = jax.eval_shape(optimizer.init, _nest(trained)) if trained else ()
        memories.append(
            ModelMemory(
                model=model.name,
                parameters_total=sum(math.prod(row.shape) for row in model_rows),
                trainable_total=sum(math.prod(row.shape) for row in model_rows if row.trainable),
                parameters=sum(row.bytes_per_device for row in model_rows),
                gradients=sum(row.bytes_per_device for row in model_rows if row.trainable),
                optimizer=sum(place(leaf_path(p), x, model.axes, mesh).bytes_per_device for p, x in _leaves(state)),
                sampling=weight_bytes(model, sampling) if sampling else 0,
                layers=layer_bytes(model, sampling or mesh) if model.config.scan_layers else 0,
            )
        )
    gradients = sum(m.gradients for m in memories)
    answers = []
    for phase in phases:
        sampled, only = (phase.sampled, phase.only_sampled) if sampling else ((), ())
        resident = sum(m.parameters + m.optimizer for m in memories if m.model not in only)
        resident += sum(m.sampling for m in memories if m.model in sampled)
        drawn_from = [m for m in memories if m.model in phase.sampled and phase.caches]
        layouts = tuple((m.sampling or m.parameters, m.layers) for m in drawn_from if m.layers)
        mesh_of: dict[Pass, Any] = dict.fromkeys(phase.passes, mesh)
        mesh_of |= {work: sampling if work.model in sampled else mesh for work in phase.caches}
        gathered = max((_gathered_bytes(by_name[work.model], where) for work, where in mesh_of.items()), default=0)
        both = [
            sum(activation_bytes(by_name[w.model].config, mesh.shape, w.batch, w.length, remat, w.logits_chunk)
                for w in phase.passes)
            for remat in (False, True)
        ]  # fmt: skip
        caches = sum(cache_bytes(by_name[w.model].config, mesh_of[w].shape, w.batch, w.length) for w in phase.caches)
        fixed = resident + gathered + caches + (gradients if phase.trains else 0)
        totals = [fixed + activations for activations in both]
        fits = [fitting(total) for total in totals]
        answers.append(
            PhaseMemory(
                phase=phase.name, resident=resident, gradients=gradients if phase.trains else 0, gathered=gathered,
                activations=both[0], activations_remat=both[1], caches=caches, total=totals[1],
                total_without_remat=totals[0], fits_gb=fits[1], fits_gb_without_remat=fits[0],
                layouts=layouts,
            )
        )  # fmt: skip
        for work, where in mesh_of.items():
            parts = where.shape["data"] * where.shape["fsdp"]
            if work.batch % parts:
                fallbacks.append(
                    f"{phase.name}: batch {work.batch} of {work.model} does not divide over {parts} devices"
                )
    return Plan(dict(mesh.shape), tuple(memories), tuple(answers), tuple(rows), tuple(dict.fromkeys(fallbacks)))


def activation_bytes(
    config: DecoderConfig, mesh: Mapping[str, int], batch: int, length: int, remat: bool, logits_chunk: int = 0
) -> int:
    """Estimate activation bytes per device, kept for the backward pass.

    With b = ceil(batch / (data fsdp)) sequences of L tokens per device, s bytes per element of the compute dtype,
    T = tensor (1 where it does not divide), and a mean of A = (L + block) / 2 keys per query:

        layer  = b L [ s (4 D + (3 H + 3 K) E / T + 4 M / T) + 4 * 4 D + (4 + s) A H / T ]
        logits = 3 * 4 b min(L, chunk) V / T            (scaled logits, their softmax, their gradient, float32)
        without remat: num_layers * layer + logits
        with remat:    num_layers * s b L D + layer + logits
    """
    tensor, size = mesh["tensor"], jnp.dtype(config.dtype).itemsize
    rows = -(-batch // (mesh["data"] * mesh["fsdp"]))
    tokens = rows * length
    heads, mlp, vocab = (_part(n, tensor) for n in (config.num_heads, config.mlp_width, config.vocab_size))
    kv_heads = _part(config.num_kv_heads, tensor)
    keys = (length + min(config.attention_block or length, length)) / 2
    narrow = 4 * config.width + 3 * (heads + kv_heads) * config.head_dim + 4 * mlp
    layer = tokens * (size * narrow + 16 * config.width + (4 + size) * keys * heads)
    logits = 12 * rows * min(logits_chunk or length, length) * vocab
    kept = config.num_layers * size * tokens * config.width + layer if remat else config.num_layers * layer
    return round(kept + logits)


def cache_bytes(config: DecoderConfig, mesh: Mapping[str, int], batch: int, capacity: int) -> int:
    """Return the bytes per device of a KV cache.

    They are 2 * layers * b * capacity * K / T * E * s.
    """
    rows = -(-batch // (mesh["data"] * mesh["fsdp"]))
    kv_heads = _part(config.num_kv_heads, mesh["tensor"])
    size = jnp.dtype(config.dtype).itemsize
    return 2 * config.num_layers * rows * capacity * kv_heads * config.head_dim * size


def _part(count: int, parts: int) -> int:
    return count // parts if count % parts == 0 else count


def weight_bytes(model: PlannedModel, mesh: Any, without: Sequence[Path] = ()) -> int:
    """Return the bytes per device of a model's parameters on a mesh.

    Those at the paths `without` are left out.
    """
    parts = ((leaf_path(key_path), leaf) for key_path, leaf in _leaves(model.parameters))
    return sum(place(path, leaf, model.axes, mesh).bytes_per_device for path, leaf in parts if path not in without)


def layer_bytes(model: PlannedModel, mesh: Any) -> int:
    """Returns the bytes per device of layers without adapters."""
    parts = [(leaf_path(key_path), leaf) for key_path, leaf in _leaves(model.parameters)]
    return weight_bytes(model, mesh, [path for path, _ in parts if "layers" not in path or "_lora_" in path[-1]])


def _gathered_bytes(model: PlannedModel, mesh: Any) -> int:
    """Return the bytes of weights that exist in the compute dtype.

    They exist while one layer and the head are computed. That is the sum over parameters of their tensor-split size in
    the compute dtype, of a stacked parameter one layer. Nothing is gathered or copied if fsdp is 1 and the parameters
    are stored in the compute dtype.
    """
    size = jnp.dtype(model.config.dtype).itemsize
    total = 0
    for key_path, leaf in _leaves(model.parameters):
        placed = place(leaf_path(key_path), leaf, model.axes, mesh)
        if "fsdp" not in placed.split and leaf.dtype.itemsize == size:
            continue
        count = math.prod(leaf.shape)
        count //= math.prod(mesh.shape[axis] for axis in placed.split if axis not in (None, "fsdp"))
        if placed.axes[:1] == ("layers",):
            count //= leaf.shape[0]
        total += count * size
    return total


def _parameter_rows(model: PlannedModel, mesh: Any) -> tuple[list[ParameterRow], list[str]]:
    rows, fallbacks = [], []
    for key_path, leaf in _leaves(model.parameters):
        path = leaf_path(key_path)
        placed = place(path, leaf, model.axes, mesh)
        rows.append(
            ParameterRow(
                model=model.name, path=".".join(path), shape=tuple(leaf.shape), dtype=str(leaf.dtype),
                axes=placed.axes, split=placed.split, bytes_total=math.prod(leaf.shape) * leaf.dtype.itemsize,
                bytes_per_device=placed.bytes_per_device, trainable=bool(model.trainable(path)),
            )
        )  # fmt: skip
        fallbacks += [f"{model.name}.{'.'.join(path)}: {reason}" for reason in placed.reasons]
    return rows, fallbacks


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_flatten_with_path(tree)[0]


def _nest(flat: Mapping[Path, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, leaf in flat.items():
        node = tree
        for name in path[:-1]:
            node = node.setdefault(name, {})
        node[path[-1]] = leaf
    return tree


def size_of(count: int) -> str:
    """Returns bytes as a person reads them, decimal as chips are sold."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.2f} {unit}"
    return f"{count} B" if count else "-"


def fitting(total: int) -> tuple[int, ...]:
    """Return the chips of `CHIPS_GB` with usable memory for `total` bytes."""
    return tuple(gb for gb in CHIPS_GB if total <= USABLE * gb * 1e9)


def named(chips: Sequence[int]) -> str:
    """Returns chips as a person reads them."""
    return ", ".join(f"{gb} GB" for gb in chips) or f"none of {', '.join(map(str, CHIPS_GB))} GB"


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table with aligned columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]

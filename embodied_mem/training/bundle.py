"""The weights behind a result as one small folder: safetensors, tokenizer, configuration.

    save_bundle(directory, config, tokenizer, executor, model)
    bundle = load_bundle(directory, mesh=MeshConfig(fsdp=8))     # on any mesh, whatever the models were trained on
    bundle.config, bundle.tokenizer, bundle.executor, bundle.model

A model whose published weights stay as they are is stored without them: its adapters and its Soft-Mem head, and in the
metadata of the file, as JSON under `published`, the SHA-256 of each file of the weights. They are found by
`model.weights` of the configuration, or by another path that is given, and must have the same sums. Any other model is
stored whole; the metadata then has the shape of its decoder, where that came with published weights.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from flax import nnx

from embodied_mem.atomic_file import write_bytes, write_text
from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.errors import CheckpointError, DataNotFoundError, InvalidInputError
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.assembly import place_array
from embodied_mem.models.config import DecoderConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.soft_mem import embedding_std
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.object_store import local_copy
from embodied_mem.parallel.placement import Placement, fetch
from embodied_mem.parallel.processes import is_first
from embodied_mem.parallel.sharding import Path, leaf_path
from embodied_mem.training.config import Config, MeshConfig, is_frozen, is_published, weights_of
from embodied_mem.training.models import (
    CompilerModel,
    compiler_of,
    executor_of,
    load_tokenizer,
    make_compiler,
    make_executor,
    new_decoder,
    parameter_axes,
    placement,
    scratch_shape,
    sums_of,
)

Module = typing.TypeVar("Module", Decoder, CompilerModel)
Kind = typing.TypeVar("Kind")
FILES = ("config.json", "tokenizer.json", "weights.safetensors")
OWN_TOKENIZER = "executor_tokenizer.json"


@dataclasses.dataclass(frozen=True)
class Bundle:
    """The result of `load_bundle`; `config.mesh` is the mesh that the models are on, tokenizers are as in `Run`."""

    config: Config
    tokenizer: Tokenizer
    executor: Decoder
    model: CompilerModel
    own_tokenizer: Tokenizer | None = None

    @property
    def executor_tokenizer(self) -> Tokenizer:
        """The tokenizer that the executor reads with."""
        return self.own_tokenizer or self.tokenizer

    def acting(self, **settings: Any) -> tuple[Executor, MemoryCompiler]:
        """Return executor and compiler that act, with settings of `Executor` and `MemoryCompiler`."""
        return (
            make_executor(self.config, self.executor, self.executor_tokenizer, **settings),
            make_compiler(self.config, self.model, self.tokenizer, **settings),
        )


def flat_arrays(prefix: str, module: nnx.Module, whole: bool = True) -> dict[str, np.ndarray]:
    """Return a module's host arrays by dotted path; `whole` includes its base."""
    state = nnx.state(module) if whole else nnx.state(module, nnx.Not(_in_base))
    leaves, _ = jax.tree_util.tree_flatten_with_path(state)
    return {_name(prefix, leaf_path(path)): fetch(leaf) for path, leaf in leaves}


def _in_base(path: Any, variable: Any) -> bool:
    """Return whether a variable belongs to the decoder without adapters."""
    return isinstance(variable, nnx.Param) and path[0] != "soft_mem"


def _name(prefix: str, path: Path) -> str:
    return ".".join((prefix, *path))


def save_bundle(
    directory: str | os.PathLike[str],
    config: Config,
    tokenizer: Tokenizer,
    executor: Decoder,
    model: CompilerModel,
    own_tokenizer: Tokenizer | None = None,
) -> None:
    """Write the folder, the weights file last and atomically.

    Every process of a run calls it, and the first one writes.

    Raises:
        DataNotFoundError: the published weights that a model was made of are no longer where they were.
    """
    from safetensors.numpy import save

    decoders = {"executor": executor, "compiler": model.decoder}
    frozen = {role: is_frozen(config, role) for role in decoders}
    arrays = flat_arrays("executor", executor, not frozen["executor"])
    arrays |= flat_arrays("compiler", model, not frozen["compiler"])
    if not is_first():
        return
    published = {}
    for role, decoder in decoders.items():
        if frozen[role] and (source := weights_of(config, role)):
            published[role] = {"files": sums_of(source)}
        elif is_published(config, role):
            published[role] = {"decoder": dataclasses.asdict(decoder.config)}
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    write_text(directory / "config.json", config.to_json() + "\n")
    tokenizer.save(directory / "tokenizer.json")
    if own_tokenizer is not None:
        own_tokenizer.save(directory / OWN_TOKENIZER)
    write_bytes(
        directory / "weights.safetensors", save(arrays, {"published": json.dumps(published)} if published else None)
    )


def load_bundle(directory: str | os.PathLike[str], *, mesh: MeshConfig | None = None, weights: str = "") -> Bundle:
    """Load a folder's models, each array straight to its devices.

    Args:
        directory: as `save_bundle` wrote it.
        mesh: where the models go; None takes the mesh of the training where that has as many devices as there are here,
            else all devices along `data`.
        weights: where published weights are instead of `model.weights` of the configuration.

    Raises:
        CheckpointError: a file is missing or damaged, the weights do not fit the configuration (the first difference is
            named), or the published weights are not those that the models were trained beside.
        DataNotFoundError: published weights are not where they were.
        InvalidInputError: the tokenizer's file is damaged, or there are not as many devices as `mesh` has.
    """
    directory = local_copy(directory)
    missing = [name for name in FILES if not (directory / name).is_file()]
    if missing:
        what = "no folder" if not directory.is_dir() else f"{', '.join(missing)} is missing"
        raise CheckpointError(f"{directory}: expected a folder with {', '.join(FILES)}; {what}")
    config = _read_config(directory / "config.json")
    config = dataclasses.replace(config, mesh=_mesh_here(config.mesh) if mesh is None else mesh)
    sources = config
    if weights:
        sources = dataclasses.replace(config, model=dataclasses.replace(config.model, weights=weights))
    place, tokenizer = placement(config), load_tokenizer(directory / "tokenizer.json")
    stored = _open_weights(directory / "weights.safetensors")
    shape, base = _decoder_of(stored, sources, tokenizer, place, "executor")
    executor = _fill("executor", lambda: executor_of(config, _new(shape)), stored, base, place)
    std = embedding_std(executor.embedding[...])
    shape, base = _decoder_of(stored, sources, tokenizer, place, "compiler")
    model = _fill(
        "compiler",
        lambda: compiler_of(config, _new(shape), executor.config.width, std),
        stored, {("decoder", *path): leaf for path, leaf in base.items()}, place,
    )  # fmt: skip
    if stored.left:
        raise CheckpointError(f"{stored.path}: {min(stored.left)}: expected nothing of that name, got an array")
    own = directory / OWN_TOKENIZER
    return Bundle(config, tokenizer, executor, model, load_tokenizer(own) if own.exists() else None)


def _read_config(path: pathlib.Path) -> Config:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: expected JSON, got {error}") from error
    try:
        return from_dict(Config, values)
    except (CheckpointError, InvalidInputError) as error:
        raise CheckpointError(f"{path}: {error}") from error


def _mesh_here(mesh: MeshConfig) -> MeshConfig:
    try:
        MeshShape(mesh.data, mesh.fsdp, mesh.tensor).resolve(jax.device_count())
    except InvalidInputError:
        return dataclasses.replace(mesh, data=-1, fsdp=1, tensor=1, sampling_tensor=0)
    return mesh


class _Stored:
    """The arrays of an open weights file.

    Attributes:
        path: of the file.
        published: what its metadata says of models that started from published weights, by role.
        left: names of the arrays that nobody has asked for.
    """

    def __init__(self, path: pathlib.Path, file: Any):
        self.path, self._file, self.left = path, file, set(file.keys())
        self.published = json.loads((file.metadata() or {}).get("published", "{}"))
        if not all(isinstance(part, dict) for part in (self.published, *self.published.values())):
            raise ValueError(f"metadata `published`: expected an object by role, got {self.published!r:.80}")

    def read(self, name: str, like: jax.ShapeDtypeStruct, sharding: jax.sharding.Sharding | None) -> jax.Array:
        """Read an array; each device of `sharding` reads its part.

        Raises:
            CheckpointError: there is none, or one of another shape or type.
        """
        expected = f"{self.path}: {name}: expected shape {like.shape} of {like.dtype}"
        if name not in self.left:
            raise CheckpointError(
                f"{expected}, got nothing. If it was trained by a version that left adapters out, give the command of "
                "its run again: it trains nothing anew and saves the weights from its checkpoints"
            )
        array = self._file.get_slice(name)
        self.left.discard(name)
        shape = tuple(array.get_shape())
        if shape != like.shape:
            raise CheckpointError(f"{expected}, got shape {shape}")
        placed = place_array(shape, sharding, array.__getitem__)
        if placed.dtype != like.dtype:
            raise CheckpointError(f"{expected}, got {placed.dtype}")
        return placed


def _open_weights(path: pathlib.Path) -> _Stored:
    from safetensors import SafetensorError, safe_open

    try:
        return _Stored(path, safe_open(os.fspath(path), framework="numpy"))
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: expected a safetensors file of weights: {error}") from error


def _decoder_of(
    stored: _Stored, config: Config, tokenizer: Tokenizer, place: Placement, role: str
) -> tuple[DecoderConfig, dict[Path, jax.Array]]:
    """Return the shape of a role's decoder and its frozen parameters."""
    described = stored.published.get(role, {})
    if "files" in described:
        _check_published(stored.path, config, role, described["files"])
        decoder = new_decoder(config, tokenizer, role, 0, place)
        leaves, _ = jax.tree_util.tree_flatten_with_path(nnx.state(decoder))
        return decoder.config, {leaf_path(path): leaf for path, leaf in leaves}
    if "decoder" in described:
        return from_dict(DecoderConfig, described["decoder"]), {}
    if is_published(config, role):  # saved before shapes were: only the published files have it
        return new_decoder(config, tokenizer, role, 0, place).config, {}
    return scratch_shape(config, tokenizer, role), {}


def _new(shape: DecoderConfig) -> Decoder:
    return Decoder(shape, rngs=nnx.Rngs(0))


def _check_published(path: pathlib.Path, config: Config, role: str, files: Mapping[str, str]) -> None:
    """Check a role's published weights. Raises DataNotFoundError or CheckpointError."""
    if not is_first():  # the sums take as long as the reading; another process's error ends all of them
        return
    named = ", ".join(f"{name} with SHA-256 {digest}" for name, digest in files.items())
    needs = f"{path}: the {role} needs the published weights of {getattr(config.model, role)} ({named})"
    option = "say where they are with --model.weights"
    try:
        source = weights_of(config, role)
    except DataNotFoundError as error:
        raise DataNotFoundError(f"{needs}; {option}. {error}") from error
    if source is None:
        raise DataNotFoundError(f"{needs}; {option}")
    found = sums_of(source)
    if sorted(found.values()) != sorted(files.values()):
        raise CheckpointError(f"{needs}, got {source} with {found}; {option}")


def _fill(
    role: str, make: Callable[[], Module], stored: _Stored, base: Mapping[Path, jax.Array], place: Placement
) -> Module:
    """Call `make` abstractly; fill its arrays from `base` or the file."""
    module = nnx.eval_shape(make)
    state = nnx.state(module)
    leaves, structure = jax.tree_util.tree_flatten_with_path(state)
    tree = place.shardings(state, parameter_axes(module))
    places = [None] * len(leaves) if tree is None else jax.tree.leaves(tree)
    arrays = []
    for (key_path, leaf), sharding in zip(leaves, places, strict=True):
        path = leaf_path(key_path)
        arrays.append(base[path] if path in base else stored.read(_name(role, path), leaf, sharding))
    nnx.update(module, jax.tree.unflatten(structure, arrays))
    return module


def from_dict(kind: type[Kind], values: Any) -> Kind:
    """Make a dataclass from what `dataclasses.asdict` and JSON made of it.

    Raises:
        CheckpointError: unknown or missing fields, or something else than an object where fields belong.
        InvalidInputError: a field's value is none that it can have.
    """
    if not isinstance(values, dict):
        raise CheckpointError(f"{kind.__name__}: expected an object with fields, got {values!r:.80}")
    hints = typing.get_type_hints(kind)
    unknown = set(values) - set(hints)
    if unknown:
        raise CheckpointError(f"{kind.__name__}: unknown fields {sorted(unknown)}; known: {sorted(hints)}")
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(kind)  # type: ignore[arg-type]  # a dataclass
    needed = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
    if missing := needed - set(values):
        raise CheckpointError(f"{kind.__name__}: expected the fields {sorted(missing)}, got {sorted(values)}")
    arguments = {}
    for name, value in values.items():
        hint: Any = hints[name]
        if isinstance(hint, types.UnionType) and value is not None:  # `X | None`
            hint = typing.get_args(hint)[0]
        nested = dataclasses.is_dataclass(hint)
        if nested:
            value = from_dict(hint, value)
        elif isinstance(value, list):
            value = tuple(value)
        arguments[name] = value
    return kind(**arguments)

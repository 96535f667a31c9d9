"""The weights behind a result as one small folder: safetensors, tokenizer, configuration.

save_bundle(directory, config, tokenizer, executor, model)
bundle = load_bundle(directory)
bundle.config, bundle.tokenizer, bundle.executor, bundle.model
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import typing

import jax
import numpy as np
from flax import nnx

from embodied_mem.errors import CheckpointError
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.decoder import Decoder
from embodied_mem.parallel.placement import fetch
from embodied_mem.parallel.processes import is_first
from embodied_mem.training.config import Config
from embodied_mem.training.sft import CompilerModel

FILES = ("config.json", "tokenizer.json", "weights.safetensors")


@dataclasses.dataclass(frozen=True)
class Bundle:
    """What `load_bundle` gives."""

    config: Config
    tokenizer: Tokenizer
    executor: Decoder
    model: CompilerModel


def flat_arrays(prefix: str, module: nnx.Module) -> dict[str, np.ndarray]:
    """The parameters of a module by dotted path, whole in host memory."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(nnx.to_pure_dict(nnx.state(module, nnx.Param)))
    return {f"{prefix}." + ".".join(str(key.key) for key in path): fetch(leaf) for path, leaf in leaves}


def save_bundle(
    directory: str | os.PathLike, config: Config, tokenizer: Tokenizer, executor: Decoder, model: CompilerModel
) -> None:
    """Writes the folder; the weights file comes last and at once, so that a folder that has it is whole.

    Every process of a run calls it, and the first one writes.
    """
    from safetensors.numpy import save_file

    arrays = flat_arrays("executor", executor) | flat_arrays("compiler", model)
    if not is_first():
        return
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(config.to_json() + "\n")
    tokenizer.save(directory / "tokenizer.json")
    temporary = directory / ".weights.safetensors.part"
    save_file(arrays, temporary)
    os.replace(temporary, directory / "weights.safetensors")


def load_bundle(directory: str | os.PathLike) -> Bundle:
    """The models in a folder.

    Raises:
        CheckpointError: a file is missing, or the weights do not fit the configuration (the first difference is named).
    """
    from safetensors.numpy import load_file

    from embodied_mem.training.model_sources import new_decoder
    from embodied_mem.training.stages import new_compiler
    from embodied_mem.training.vocabulary import load_tokenizer

    directory = pathlib.Path(directory)
    missing = [name for name in FILES if not (directory / name).exists()]
    if missing:
        raise CheckpointError(f"{directory}: expected {', '.join(FILES)}, {', '.join(missing)} is missing")
    try:
        config = from_dict(Config, json.loads((directory / "config.json").read_text()))
    except json.JSONDecodeError as error:
        raise CheckpointError(f"{directory}/config.json: expected JSON, got {error}") from error
    arrays = load_file(directory / "weights.safetensors")
    tokenizer = load_tokenizer(directory / "tokenizer.json")
    executor = new_decoder(config, tokenizer, "executor", 0)
    _fill(directory, "executor", executor, arrays)
    model = new_compiler(config, tokenizer, executor)
    _fill(directory, "compiler", model, arrays)
    unused = sorted(set(arrays) - set(flat_arrays("executor", executor)) - set(flat_arrays("compiler", model)))
    if unused:
        raise CheckpointError(
            f"{directory}/weights.safetensors: {unused[0]}: expected nothing of that name, got an array"
        )
    return Bundle(config, tokenizer, executor, model)


def _fill(directory: pathlib.Path, prefix: str, module: nnx.Module, arrays: dict[str, np.ndarray]) -> None:
    wanted = flat_arrays(prefix, module)
    for name, value in wanted.items():
        found = arrays.get(name)
        if found is None or found.shape != value.shape:
            got = "nothing" if found is None else f"shape {found.shape}"
            raise CheckpointError(f"{directory}/weights.safetensors: {name}: expected shape {value.shape}, got {got}")
    state = nnx.state(module, nnx.Param)
    pure = nnx.to_pure_dict(state)
    leaves, structure = jax.tree_util.tree_flatten_with_path(pure)
    names = [f"{prefix}." + ".".join(str(key.key) for key in path) for path, _ in leaves]
    filled = jax.tree_util.tree_unflatten(structure, [jax.numpy.asarray(arrays[name]) for name in names])
    nnx.replace_by_pure_dict(state, filled)
    nnx.update(module, state)


def from_dict(kind: type, values: dict):
    """A dataclass from what `dataclasses.asdict` and JSON made of it; unknown fields are an error."""
    hints = typing.get_type_hints(kind)
    unknown = set(values) - set(hints)
    if unknown:
        raise CheckpointError(f"{kind.__name__}: unknown fields {sorted(unknown)}; known: {sorted(hints)}")
    needed = {f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING}
    if missing := needed - set(values):
        raise CheckpointError(f"{kind.__name__}: expected the fields {sorted(missing)}, got {sorted(values)}")
    arguments = {}
    for name, value in values.items():
        hint = hints[name]
        if dataclasses.is_dataclass(hint):
            value = from_dict(hint, value)
        elif isinstance(value, list):
            value = tuple(value)
        arguments[name] = value
    return kind(**arguments)

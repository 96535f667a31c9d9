"""The stages of a run, each of which resumes from its own checkpoints to the same numbers.

    run = Run(config, tokenizer, run_dir)
    executor = train_executor(run, samples)
    executor = correct_executor(run, samples, executor, games)
    model = train_compiler(run, samples, executor)
    model = correct_compiler(run, samples, executor, model, games)
    model = train_grpo(run, model, executor, games)                   # `grpo_stage`

A stage is a loop over steps; step t depends on the state after t - 1, the configuration and t alone (data order,
formats, keys and tasks are functions of seed and step). So a process may be killed anywhere: started again it takes
the last checkpoint and repeats what came after.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from embodied_mem.compiler.executor import Acts, Executor
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.config import LoraConfig, logical_axes
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import LoraParam, add_lora, add_tower_lora, remove_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig, embedding_std
from embodied_mem.models.soft_mem import logical_axes as soft_mem_axes
from embodied_mem.models.vision.qwen_vl_vision import vision_axes
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.placement import ONE_DEVICE, Placement, placement_of
from embodied_mem.parallel.sharding import LogicalAxes
from embodied_mem.training.bundle import Bundle
from embodied_mem.training.config import Config, CorrectionConfig, SFTConfig
from embodied_mem.training.objectives.batches import Batch, HostBatch, batches, fill_rows, first_seen, spots_of
from embodied_mem.training.objectives.sft import (
    CompilerBatch,
    CompilerModel,
    ExecutorBatch,
    Params,
    TrainState,
    cosine,
    make_below,
    make_compiler_step,
    make_executor_step,
    make_muon,
    make_optimizer,
)
from embodied_mem.training.rows import ACTION_MULTIPLE, compiler_batch, executor_batch, reference_ids
from embodied_mem.training.run.loop import Metrics, run_loop
from embodied_mem.training.run.throughput import flops_per_token
from embodied_mem.training.sources.format import executor_format, picture_reader
from embodied_mem.training.sources.weights import is_published, is_taught, new_decoder
from embodied_mem.training.teachers.dagger import own_commands, own_episodes
from embodied_mem.training.teachers.episodes import Sample, input_formats
from embodied_mem.training.teachers.games import Games

MEAN_LENGTH = 512
"""Tokens of a row on average, for the small attention term of MFU."""


def placement(config: Config) -> Placement:
    """Where this run's arrays go: the mesh of `config.mesh`, built once."""
    return placement_of(MeshShape(config.mesh.data, config.mesh.fsdp, config.mesh.tensor))


def acting_placement(config: Config) -> Placement:
    """Where this run's models lie while they play episodes (`mesh.sampling_tensor`)."""
    return placement(config).for_sampling(config.mesh.sampling_tensor)


def parameter_axes(model: CompilerModel | Decoder) -> LogicalAxes:
    """Logical axes of every parameter of a compiler or an executor, adapters and Soft-Mem head included."""
    if isinstance(model, Decoder):
        adapters = () if model.lora is None else (model.lora.rank, model.lora.targets)
        seeing: LogicalAxes = {}
        if model.config.vision is not None:
            seeing = vision_axes(model.config.vision, model.vision.lora.rank if model.vision.lora else 0)
        return {**logical_axes(model.config, *adapters), **seeing}
    return {**parameter_axes(model.decoder), **(soft_mem_axes(model.soft_mem.config) if model.soft_mem else {})}


def fresh_state(
    optimizer: optax.GradientTransformation, params: Params, axes: LogicalAxes, place: Placement
) -> tuple[TrainState, Any]:
    """(the state before the first step, on its devices; a sharding per leaf of it, None on one device).

    The parameters are copied, since a step uses up the state that it is given. On one device the state is put there by
    name, as what is restored from a checkpoint is: else a resumed run would be other programs, each compiled anew.
    """
    params = jax.tree.map(jnp.copy, place.params(params, axes))
    state = TrainState(params, place.build(optimizer.init, params, axes=axes))
    if place.mesh is None:
        state = jax.device_put(state, jax.devices()[0])
    return state, place.shardings(state, axes)


def step_key(config: Config, stage: int, step: int) -> jax.Array:
    """The PRNG key of one step of one stage."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(config.seed), stage), step)


def sft_optimizer(sft: SFTConfig) -> optax.GradientTransformation:
    """The optimizer of a stage of supervised training, with its schedule."""
    schedule = cosine(sft.learning_rate, sft.learning_rate / 10, max(sft.steps, 1), warmup=sft.warmup)
    if sft.optimizer == "muon":
        return make_muon(schedule, sft.weight_decay, sft.max_grad_norm)
    return make_optimizer(schedule, sft.weight_decay, sft.max_grad_norm, b2=0.999, eps=1e-8)


@dataclasses.dataclass(frozen=True)
class Run:
    """What the stages of a run share.

    Attributes:
        config: of the run.
        tokenizer: of both models.
        folder: that each stage has its own in.
    """

    config: Config
    tokenizer: Tokenizer
    folder: pathlib.Path

    @property
    def place(self) -> Placement:
        """Where the arrays go."""
        return placement(self.config)


Model = TypeVar("Model", Decoder, CompilerModel)
Step = Callable[..., tuple[TrainState, Metrics]]


class SupervisedStage(abc.ABC, Generic[Model]):
    """A stage of supervised training in rounds of `sft.steps` steps; the learning rate falls over all of them.

    A subclass sets `start` and `work`.

    Args:
        run: of which this is a stage.
        name: its folder in that of the run.
        number: tells its randomness from that of other stages.
        sft: how it is trained in a round.
        rounds: of which the last one ends the stage.

    Attributes:
        start: the state before the first step, of which a resumed stage uses the shapes alone.
        work: see `throughput`.
    """

    start: TrainState
    work: dict[str, float]

    def __init__(self, run: Run, name: str, number: int, sft: SFTConfig, rounds: int):
        self.run, self.name, self.number, self.sft, self.rounds = run, name, number, sft, rounds
        self.optimizer = sft_optimizer(dataclasses.replace(sft, steps=sft.steps * rounds))

    @abc.abstractmethod
    def length(self, sample: Sample) -> int:
        """About how long its row is; rows of one batch are about as long."""

    @abc.abstractmethod
    def batch(self, samples: Sequence[Sample], random: np.random.Generator) -> Any:
        """The batch of these samples."""

    @abc.abstractmethod
    def step(self, state: TrainState, batch: Any, key: jax.Array) -> tuple[TrainState, Metrics]:
        """One step."""

    @abc.abstractmethod
    def model(self, state: TrainState) -> Model:
        """The model in this state."""

    @abc.abstractmethod
    def own(self, number: int, model: Model, games: Games) -> list[Sample]:
        """Samples of the episodes that the model plays in a round."""

    def train(self, samples: Sequence[Sample], done: int = 1) -> Model:
        """The model, trained on from where it is to the end of round `done`."""
        last = self.sft.steps * done
        state = run_loop(
            self.name, self.run.folder, self.run.config, self.start, self._numbered_step,
            num_steps=last, checkpoint_every=self.sft.checkpoint_every,
            batches_from=functools.partial(self._batches, samples, last), work=self.work,
        )  # fmt: skip
        return self.model(state)

    def corrected(self, samples: Sequence[Sample], model: Model, games: Games) -> Model:
        """`model` after rounds of play and training, on its own samples of all rounds so far and as many teacher's."""
        own: list[Sample] = []
        for number in range(self.rounds):
            own += self.own(number, model, games)
            others: np.ndarray = np.random.default_rng((self.run.config.seed, 6, number)).permutation(len(samples))
            model = self.train([*own, *(samples[i] for i in others[: len(own)])], number + 1)
        return model

    def _numbered_step(self, state: TrainState, number: int, batch: Any) -> tuple[TrainState, Metrics]:
        return self.step(state, batch, self.run.place.whole(step_key(self.run.config, self.number, number)))

    def _batches(self, samples: Sequence[Sample], last: int, first: int) -> Iterator[Any]:
        seed, lengths = self.run.config.seed, list(map(self.length, samples))
        order = batches(lengths, self.sft.batch_size, seed=seed + self.number - 1, first_step=first, num_steps=last)
        for step, indices in enumerate(order, first):
            yield self.batch([samples[i] for i in indices], np.random.default_rng((seed, self.number, step)))


class ExecutorStage(SupervisedStage[Decoder]):
    """Trains an executor on all input formats that will be compared."""

    def __init__(self, run: Run, executor: Decoder, name: str, number: int, sft: SFTConfig, rounds: int = 1):
        super().__init__(run, name, number, sft, rounds)
        config, place, axes = run.config, run.place, parameter_axes(executor)
        self._top = config.model.executor_lora if executor.lora else None
        self._graph, params, frozen = split_executor(executor)
        self._frozen = place.params(frozen, axes)
        self._reader = picture_reader(config, "executor", executor, run.tokenizer)
        self.start, places = fresh_state(self.optimizer, params, axes, place)
        self._step: Step = place.scoped(
            make_executor_step(
                self._graph, self._frozen, self.optimizer, sft, top=self._top, places=places, mesh=config.mesh
            )
        )
        if self._top is not None:
            bare: Decoder = nnx.merge(self._graph, params, frozen)
            bare_graph = nnx.split(remove_lora(bare))[0]
            self._below = place.scoped(make_below(bare_graph, self._frozen, self._top))
        self.work = {"tokens": flops_per_token(executor.config, MEAN_LENGTH, trained=not executor.lora)}

    def length(self, sample: Sample) -> int:
        """As `SupervisedStage.length`, in characters."""
        turns = sample.view[2]
        return sum(map(len, turns[-1])) + sum(len(action) for action, _ in turns) if turns else 0

    def batch(self, samples: Sequence[Sample], random: np.random.Generator) -> ExecutorBatch[np.ndarray]:
        """Rows in a drawn format, and the tokens that stand in the places of soft tokens."""
        config, tokenizer = self.run.config, self.run.tokenizer
        kinds, shares = input_formats(config.data.without_memory)
        kind = kinds[random.choice(len(kinds), p=shares)]
        batch = executor_batch(tokenizer, samples, kind, config, random, reader=self._reader)
        references = reference_ids(tokenizer, samples, max(config.memory.num_soft, 1))
        read = batch, references, spots_of(batch, ACTION_MULTIPLE)
        return ExecutorBatch(*self.run.place.batch(filled(read, self.run.place)))

    def step(self, state: TrainState, batch: ExecutorBatch[np.ndarray], key: jax.Array) -> tuple[TrainState, Metrics]:
        """As `SupervisedStage.step`."""
        return self._step(state, batch, key)

    def model(self, state: TrainState) -> Decoder:
        """As `SupervisedStage.model`."""
        return nnx.merge(self._graph, state.trainable, self._frozen)

    def _batches(self, samples: Sequence[Sample], last: int, first: int) -> Iterator[Any]:
        """Over frozen layers every epoch has the batches of the first; what these layers give for one is kept."""
        if self._top is None:
            yield from super()._batches(samples, last, first)
            return
        seed, per_epoch = self.run.config.seed + self.number, max(1, len(samples) // self.sft.batch_size)
        per_epoch = min(per_epoch, self.sft.num_batches or per_epoch)
        kept: dict[int, ExecutorBatch[Any]] = {}
        for step in range(first, last):
            number = first_seen(step, per_epoch, seed)
            batch = kept.get(number)
            if batch is None:
                (batch,) = super()._batches(samples, number + 1, number)
                key = self.run.place.whole(step_key(self.run.config, self.number, number))
                batch = batch._replace(below=self._below(batch.rows, batch.references, key))
                if last > per_epoch:
                    kept[number] = batch
            yield batch

    def own(self, number: int, model: Decoder, games: Games) -> list[Sample]:
        """As `SupervisedStage.own`."""
        executor = make_executor(self.run.config, model, self.run.tokenizer)
        return own_commands(games, executor, number, self.run.folder / self.name)


class CompilerStage(SupervisedStage[CompilerModel]):
    """Trains a compiler on the teacher's outputs, the executor frozen."""

    def __init__(
        self, run: Run, executor: Decoder, model: CompilerModel, name: str, number: int, correction: CorrectionConfig
    ):
        super().__init__(run, name, number, correction.sft, correction.rounds)
        config, place, axes = run.config, run.place, parameter_axes(model)
        self._executor = executor
        self._readers = (
            picture_reader(config, "compiler", model.decoder, run.tokenizer),
            picture_reader(config, "executor", executor, run.tokenizer),
        )
        self._graph, params, frozen = split_model(config, model)
        self._frozen = place.params(frozen, axes)
        executor_graph, executor_state = nnx.split(executor)
        self._executor_state = place.params(executor_state, parameter_axes(executor))
        self.start, places = fresh_state(self.optimizer, params, axes, place)
        self._step: Step = place.scoped(
            make_compiler_step(
                self._graph, self._frozen, executor_graph, self.optimizer, self.sft, places=places, mesh=config.mesh
            )
        )
        self.work = {
            "tokens": flops_per_token(model.decoder.config, MEAN_LENGTH, trained=not config.model.lora),
            "executor_tokens": flops_per_token(executor.config, MEAN_LENGTH, trained=False),
        }

    def length(self, sample: Sample) -> int:
        """As `SupervisedStage.length`, in characters."""
        return len(sample.compiler_prompt) + len(sample.output)

    def batch(self, samples: Sequence[Sample], random: np.random.Generator) -> CompilerBatch[np.ndarray]:
        """What both models read; the executor reads a share of the samples, those with guidance first."""
        batch = compiler_batch(
            self.run.tokenizer, samples, self.run.config, self.sft.action_share, random, self._readers
        )
        return CompilerBatch(*self.run.place.batch(filled(batch, self.run.place)))

    def step(self, state: TrainState, batch: CompilerBatch[np.ndarray], key: jax.Array) -> tuple[TrainState, Metrics]:
        """As `SupervisedStage.step`."""
        return self._step(state, self._executor_state, batch, key)

    def model(self, state: TrainState) -> CompilerModel:
        """As `SupervisedStage.model`."""
        return nnx.merge(self._graph, state.trainable, self._frozen)

    def own(self, number: int, model: CompilerModel, games: Games) -> list[Sample]:
        """As `SupervisedStage.own`."""
        config = self.run.config
        executor, compiler = Bundle(config, self.run.tokenizer, self._executor, model).acting()
        acts: Acts = games.tasks.follower if config.data.commands else executor
        return own_episodes(games, compiler, acts, number, self.run.folder / self.name)


def train_executor(run: Run, samples: Sequence[Sample]) -> Decoder:
    """The executor, trained on all input formats that will be compared."""
    config, place = run.config, run.place
    with place.on_host():
        executor = executor_of(config, new_decoder(config, run.tokenizer, "executor", config.seed + 1, place))
    if not config.executor_sft.steps:  # no optimizer state for what is not trained
        nnx.update(executor, place.params(nnx.state(executor), parameter_axes(executor)))
        return executor
    return ExecutorStage(run, executor, "executor", 1, config.executor_sft).train(samples)


def correct_executor(run: Run, samples: Sequence[Sample], executor: Decoder, games: Games) -> Decoder:
    """The executor after rounds of SFT on the states that its own commands lead to; it is frozen afterwards."""
    correction = run.config.executor_correction
    stage = ExecutorStage(run, executor, "executor_correction", 7, correction.sft, correction.rounds)
    return stage.corrected(samples, executor, games)


def train_compiler(
    run: Run, samples: Sequence[Sample], executor: Decoder, model: CompilerModel | None = None
) -> CompilerModel:
    """The compiler after SFT on the teacher's outputs, the executor frozen; a new one, or `model` trained on."""
    if model is None:
        with run.place.on_host():
            model = new_compiler(run.config, run.tokenizer, executor, run.place)
    once = CorrectionConfig(sft=run.config.compiler_sft)
    return CompilerStage(run, executor, model, "compiler", 2, once).train(samples)


def correct_compiler(
    run: Run, samples: Sequence[Sample], executor: Decoder, model: CompilerModel, games: Games
) -> CompilerModel:
    """The compiler after rounds of SFT on its own episodes of all rounds so far, and as many of the teacher's."""
    stage = CompilerStage(run, executor, model, "correction", 4, run.config.correction)
    return stage.corrected(samples, model, games)


def filled(batch: Iterable[HostBatch | np.ndarray | None], place: Placement) -> tuple[Any, ...]:
    """A batch with rows that nothing is learned from, up to a number that the mesh can split: `Batch`es, and arrays
    [B, ...] whose further rows are zero."""
    parts: list[HostBatch | np.ndarray | None] = []
    for part in batch:
        if part is None:
            parts.append(None)
        elif isinstance(part, Batch):
            parts.append(fill_rows(part, place.rows(len(part.tokens))))
        else:
            missing = place.rows(len(part)) - len(part)
            parts.append(np.concatenate([part, np.zeros((missing, *part.shape[1:]), part.dtype)]))
    return tuple(parts)


def new_compiler(
    config: Config, tokenizer: Tokenizer, executor: Decoder, place: Placement = ONE_DEVICE
) -> CompilerModel:
    """The compiler before training: from scratch it starts from the executor's weights, as pretrained ones both start
    from a language model, if the two have one shape."""
    decoder = new_decoder(config, tokenizer, "compiler", config.seed + 2, place)
    if not is_published(config, "compiler") and decoder.config == executor.config:
        nnx.update(decoder, jax.tree.map(jnp.copy, nnx.state(executor)))
    return compiler_of(config, decoder, executor.config.width, embedding_std(executor.embedding[...]))


def executor_of(config: Config, decoder: Decoder) -> Decoder:
    """A decoder with the adapters that are trained in it, new ones, if the run has them.

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
    """A decoder with what is trained beside it: new adapters if the run has them, and a new Soft-Mem head.

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
    """Which variables of the compiler are trained: all but its vision tower, or adapters and the Soft-Mem head."""
    if not config.model.lora:
        return lambda path, value: isinstance(value, nnx.Param) and path[:2] != ("decoder", "vision")
    return lambda path, value: isinstance(value, LoraParam) or (path[0] == "soft_mem" and isinstance(value, nnx.Param))


def split_executor(executor: Decoder) -> tuple[nnx.GraphDef[Decoder], Params, Params]:
    """(graph, what is trained, what is not) of an executor that is trained: its adapters, or all of it."""
    graph, params, *frozen = nnx.split(executor, LoraParam if executor.lora else True, ...)
    return graph, params, frozen[0]


def split_model(config: Config, model: CompilerModel) -> tuple[nnx.GraphDef[CompilerModel], Params, Params]:
    """(graph, what is trained, what is not) of a compiler."""
    graph, params, *frozen = nnx.split(model, trainable_filter(config), ...)
    return graph, params, frozen[0]


def make_compiler(config: Config, model: CompilerModel, tokenizer: Tokenizer, **settings: Any) -> MemoryCompiler:
    """The acting compiler of a model under this configuration, on the devices where it acts."""
    place = acting_placement(config)
    acting = moved(model, place)
    return MemoryCompiler(
        acting.decoder, acting.soft_mem, tokenizer,
        max_tokens=config.model.max_compiler_tokens, placement=place, marks=config.memory.compiler_marks,
        reader=picture_reader(config, "compiler", model.decoder, tokenizer), **settings,
    )  # fmt: skip


def make_executor(config: Config, executor: Decoder, tokenizer: Tokenizer, **settings: Any) -> Executor:
    """The acting executor under this configuration, on the devices where it acts."""
    place = acting_placement(config)
    return Executor(
        moved(executor, place), tokenizer,
        max_action_tokens=config.model.max_action_tokens, placement=place,
        format=executor_format(config, tokenizer), reader=picture_reader(config, "executor", executor, tokenizer),
        **settings,
    )  # fmt: skip


def moved(model: Model, place: Placement) -> Model:
    """The model with its arrays where `place` puts them: itself if they are there, else another module."""
    graph, state = nnx.split(model)
    places = place.shardings(state, parameter_axes(model))
    if places is None or all(
        leaf.sharding.is_equivalent_to(at, leaf.ndim)
        for leaf, at in zip(jax.tree.leaves(state), jax.tree.leaves(places), strict=True)
    ):
        return model
    return nnx.merge(graph, place.params(state, parameter_axes(model)))

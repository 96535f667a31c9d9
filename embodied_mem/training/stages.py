"""The stages of a run, each of which resumes from its own checkpoints to the same numbers.

    executor = train_executor(config, tokenizer, samples, run_dir)
    executor = correct_executor(config, tokenizer, samples, run_dir, executor, own_of)
    model = train_compiler(config, tokenizer, samples, executor, run_dir)
    model = train_grpo(config, tokenizer, model, executor, bank, envs, run_dir)

A stage is a loop over steps; step t depends on the state after t - 1, the configuration and t alone (data order,
formats, keys and tasks are functions of seed and step). So a process may be killed anywhere: started again it takes
the last checkpoint and repeats what came after.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import time
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from embodied_mem.agents.deliveries import make_delivery
from embodied_mem.agents.executor import Executor, encode_prompts
from embodied_mem.agents.player import play
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.memory import MemoryBank
from embodied_mem.models.config import LoraConfig, logical_axes
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.lora import LoraParam, add_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig, embedding_std
from embodied_mem.models.soft_mem import logical_axes as soft_mem_axes
from embodied_mem.models.weights_version import weights_version
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.placement import ONE_DEVICE, Placement, placement_of
from embodied_mem.training import grpo
from embodied_mem.training.config import Config, SFTConfig
from embodied_mem.training.data import Batch, Row, batches, fill_rows, pad_rows, spots_of
from embodied_mem.training.loop import run_loop
from embodied_mem.training.model_sources import is_published, new_decoder
from embodied_mem.training.schedules import cosine
from embodied_mem.training.sft import (
    CompilerBatch,
    CompilerModel,
    TrainState,
    apply_gradients,
    make_compiler_step,
    make_executor_step,
    make_muon,
    make_optimizer,
)
from embodied_mem.training.teacher_data import EXECUTOR_FORMATS, Sample
from embodied_mem.training.throughput import flops_per_token

MEAN_LENGTH = 512
"""Tokens of a row on average, for the small attention term of MFU."""

OUTPUT_MULTIPLE, ACTION_MULTIPLE = 64, 16
"""The numbers of tokens of outputs and actions that are learned are rounded up to these, for few shapes."""


def placement(config: Config) -> Placement:
    """Where this run's arrays go: the mesh of `config.mesh`, built once."""
    return placement_of(MeshShape(config.mesh.data, config.mesh.fsdp, config.mesh.tensor))


def parameter_axes(model: CompilerModel | Decoder) -> dict:
    """Logical axes of every parameter of a compiler or an executor, adapters and Soft-Mem head included."""
    if isinstance(model, Decoder):
        adapters = () if model.lora is None else (model.lora.rank, model.lora.targets)
        return logical_axes(model.config, *adapters)
    return parameter_axes(model.decoder) | (soft_mem_axes(model.soft_mem.config) if model.soft_mem else {})


def fresh_state(optimizer, params, axes: dict, place: Placement) -> tuple[TrainState, TrainState | None]:
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


def sft_optimizer(sft: SFTConfig):
    """The optimizer of a stage of supervised training, with its schedule."""
    schedule = cosine(sft.learning_rate, sft.learning_rate / 10, max(sft.steps, 1), warmup=sft.warmup)
    if sft.optimizer == "muon":
        return make_muon(schedule, sft.weight_decay, sft.max_grad_norm)
    return make_optimizer(schedule, sft.weight_decay, sft.max_grad_norm, b2=0.999, eps=1e-8)


def reference_ids(tokenizer: Tokenizer, samples: Sequence[Sample], num_soft: int) -> np.ndarray:
    """int32[B, N]: the first N tokens of each reference, filled up with the soft token."""
    ids = np.full((len(samples), num_soft), tokenizer.soft_id, np.int32)
    for b, encoded in enumerate(tokenizer.encode_batch([f" {s.reference}" if s.reference else "" for s in samples])):
        ids[b, : len(encoded)] = encoded[:num_soft]
    return ids


def executor_batch(
    tokenizer: Tokenizer, samples: Sequence[Sample], kind: str, config: Config, multiple: int = 64
) -> Batch:
    """Executor rows in one format; `suffix` marks the placeholders of soft tokens."""
    num_soft = config.memory.num_soft if kind == "compiled" else 0
    prompts = encode_prompts(
        tokenizer,
        [
            s.executor_text(
                memory=kind == "static",
                hint=kind.startswith("compiled"),
                num_soft=num_soft,
                full_turns=config.memory.full_turns,
            )
            for s in samples
        ],
    )
    actions = tokenizer.encode_batch([f" {s.action}" for s in samples])
    rows = [Row(prompt, [*action, tokenizer.eos_id]) for prompt, action in zip(prompts, actions)]
    batch = pad_rows(rows, tokenizer.pad_id, multiple)
    return batch._replace(suffix=(batch.tokens == tokenizer.soft_id) & batch.mask)


@dataclasses.dataclass(frozen=True)
class SFTStage:
    """A stage of supervised training in `rounds` of `sft.steps` steps; the learning rate falls over all of them.

    `name` is its folder in `run_dir`; `number` tells its randomness from that of other stages.
    """

    name: str
    number: int
    sft: SFTConfig
    rounds: int
    config: Config
    run_dir: pathlib.Path

    def optimizer(self):
        """The optimizer with the schedule of all rounds."""
        return sft_optimizer(dataclasses.replace(self.sft, steps=self.sft.steps * self.rounds))

    def train(
        self, samples: Sequence[Sample], lengths: Sequence[int], done: int, state: TrainState, step_fn, batch_of, work
    ) -> TrainState:
        """`state` at the end of round `done`, by `step_fn(state, batch, key)` on `batch_of(samples, generator)`."""
        config, seed, last = self.config, self.config.seed, self.sft.steps * done

        def step_of(state, step, batch):
            return step_fn(state, batch, placement(config).whole(step_key(config, self.number, step)))

        def batches_from(first: int):
            order = batches(lengths, self.sft.batch_size, seed=seed + self.number - 1, first_step=first, num_steps=last)
            for step, indices in enumerate(order, first):
                yield batch_of([samples[i] for i in indices], np.random.default_rng((seed, self.number, step)))

        every = self.sft.checkpoint_every
        return run_loop(self.name, self.run_dir, config, last, every, state, step_of, batches_from, work)


def train_executor(config: Config, tokenizer: Tokenizer, samples: Sequence[Sample], run_dir: pathlib.Path) -> Decoder:
    """The executor, trained from scratch on all input formats that will be compared."""
    place = placement(config)
    with place.on_host():
        executor = new_decoder(config, tokenizer, "executor", config.seed + 1, place)
    if not config.executor_sft.steps:  # no optimizer state for what is not trained
        nnx.update(executor, place.params(nnx.state(executor), parameter_axes(executor)))
        return executor
    stage = SFTStage("executor", 1, config.executor_sft, 1, config, run_dir)
    return _executor_trainer(stage, tokenizer, executor)(samples, 1)


def correct_executor(
    config: Config,
    tokenizer: Tokenizer,
    samples: Sequence[Sample],
    run_dir: pathlib.Path,
    executor: Decoder,
    own_of: Callable[[int, Decoder], Sequence[Sample]],
) -> Decoder:
    """The executor after rounds of SFT on the states that its own commands lead to; it is frozen afterwards.

    `own_of(round, executor)` gives the samples of the episodes that it plays in a round.
    """
    correction = config.executor_correction
    stage = SFTStage("executor_correction", 7, correction.sft, correction.rounds, config, run_dir)
    return _corrected(stage, samples, executor, own_of, _executor_trainer(stage, tokenizer, executor))


def _corrected(stage: SFTStage, samples: Sequence[Sample], model, own_of: Callable, train: Callable):
    """`model` after rounds of play and training, on its own samples of all rounds so far and as many teacher's."""
    own: list[Sample] = []
    for number in range(stage.rounds):
        own += own_of(number, model)
        others = np.random.default_rng((stage.config.seed, 6, number)).permutation(len(samples))[: len(own)]
        model = train([*own, *(samples[i] for i in others)], number + 1)
    return model


def _executor_trainer(
    stage: SFTStage, tokenizer: Tokenizer, executor: Decoder
) -> Callable[[Sequence[Sample], int], Decoder]:
    """(samples, rounds done) -> the executor, trained on from where it is to the end of that round."""
    config, optimizer = stage.config, stage.optimizer()
    place = placement(config)
    graphdef, params = nnx.split(executor)
    state, places = fresh_state(optimizer, params, parameter_axes(executor), place)
    step_fn = place.scoped(make_executor_step(graphdef, optimizer, stage.sft, places=places, mesh=config.mesh))
    names, shares = zip(*EXECUTOR_FORMATS)
    work = {"tokens": flops_per_token(executor.config, MEAN_LENGTH, trained=True)}

    def batch_of(chosen: Sequence[Sample], random: np.random.Generator) -> tuple[Batch, np.ndarray]:
        batch = executor_batch(tokenizer, chosen, names[random.choice(len(names), p=shares)], config)
        references = reference_ids(tokenizer, chosen, max(config.memory.num_soft, 1))
        return place.batch(filled((batch, references), place))

    def train(samples: Sequence[Sample], done: int) -> Decoder:
        turns = [s.view[2] for s in samples]
        lengths = [sum(map(len, t[-1])) + sum(len(a) for a, _ in t) if t else 0 for t in turns]
        trained = stage.train(samples, lengths, done, state, lambda s, b, key: step_fn(s, *b, key), batch_of, work)
        return nnx.merge(graphdef, trained.trainable)

    return train


def filled(batch: tuple, place: Placement) -> tuple:
    """A batch with rows that nothing is learned from, up to a number that the mesh can split: `Batch`es, and arrays
    [B, ...] whose further rows are zero."""

    def more(part):
        if isinstance(part, Batch):
            return fill_rows(part, place.rows(len(part.tokens)))
        missing = place.rows(len(part)) - len(part)
        return np.concatenate([part, np.zeros((missing, *part.shape[1:]), part.dtype)])

    return tuple(map(more, batch))


def new_compiler(
    config: Config, tokenizer: Tokenizer, executor: Decoder, place: Placement = ONE_DEVICE
) -> CompilerModel:
    """The compiler before training: from scratch it starts from the executor's weights, as pretrained ones both start
    from a language model, if the two have one shape."""
    decoder = new_decoder(config, tokenizer, "compiler", config.seed + 2, place)
    if not is_published(config, "compiler") and decoder.config == executor.config:
        nnx.update(decoder, jax.tree.map(jnp.copy, nnx.state(executor)))
    if config.model.lora:
        add_lora(decoder, LoraConfig(), rngs=nnx.Rngs(config.seed + 4))
    soft_mem = None
    if config.memory.num_soft:
        soft_mem = SoftMem(
            SoftMemConfig(
                config.memory.num_soft, config.memory.projection, embedding_std=embedding_std(executor.embedding[...])
            ),
            compiler_width=decoder.config.width,
            executor_width=executor.config.width,
            rngs=nnx.Rngs(config.seed + 3),
        )
    return CompilerModel(decoder, soft_mem)


def train_compiler(
    config: Config, tokenizer: Tokenizer, samples: Sequence[Sample], executor: Decoder, run_dir: pathlib.Path
) -> CompilerModel:
    """The compiler after SFT on the teacher's outputs, the executor frozen."""
    place = placement(config)
    with place.on_host():
        model = new_compiler(config, tokenizer, executor, place)
    stage = SFTStage("compiler", 2, config.compiler_sft, 1, config, run_dir)
    return _compiler_trainer(stage, tokenizer, executor, model)(samples, 1)


def correct_compiler(
    config: Config,
    tokenizer: Tokenizer,
    samples: Sequence[Sample],
    executor: Decoder,
    run_dir: pathlib.Path,
    model: CompilerModel,
    own_of: Callable[[int, CompilerModel], Sequence[Sample]],
) -> CompilerModel:
    """The compiler after rounds of SFT on its own episodes, those of all rounds so far, and as many teacher's samples.

    `own_of(round, model)` gives the samples of the episodes that the model plays in a round.
    """
    correction = config.correction
    stage = SFTStage("correction", 4, correction.sft, correction.rounds, config, run_dir)
    return _corrected(stage, samples, model, own_of, _compiler_trainer(stage, tokenizer, executor, model))


def _compiler_trainer(
    stage: SFTStage, tokenizer: Tokenizer, executor: Decoder, model: CompilerModel
) -> Callable[[Sequence[Sample], int], CompilerModel]:
    """(samples, rounds done) -> the compiler, trained on from where it is to the end of that round."""
    config, sft, optimizer = stage.config, stage.sft, stage.optimizer()
    place = placement(config)
    axes = parameter_axes(model)
    graphdef, params, frozen = nnx.split(model, trainable_filter(config), ...)
    frozen = place.params(frozen, axes)
    executor_graphdef, executor_state = nnx.split(executor)
    executor_state = place.params(executor_state, parameter_axes(executor))
    state, places = fresh_state(optimizer, params, axes, place)
    step_fn = place.scoped(
        make_compiler_step(graphdef, frozen, executor_graphdef, optimizer, sft, places=places, mesh=config.mesh)
    )
    num_soft = config.memory.num_soft
    work = {
        "tokens": flops_per_token(model.decoder.config, MEAN_LENGTH, trained=not config.model.lora),
        "executor_tokens": flops_per_token(executor.config, MEAN_LENGTH, trained=False),
    }

    def batch_of(chosen: Sequence[Sample], random: np.random.Generator) -> CompilerBatch:
        bare = random.random(len(chosen)) < config.data.no_brief
        prompts = tokenizer.encode_batch([s.no_brief_prompt if b else s.compiler_prompt for s, b in zip(chosen, bare)])
        outputs = tokenizer.encode_batch([s.output for s in chosen])
        suffix = [tokenizer.soft_id] * num_soft
        rows = [Row(p, [*o, tokenizer.eos_id], suffix) for p, o in zip(prompts, outputs)]
        guided = np.asarray([bool(s.hint) for s in chosen])
        origin = np.argsort(~guided, kind="stable")[: math.ceil(sft.action_share * len(chosen))].astype(np.int32)
        compiling = pad_rows(rows, tokenizer.pad_id)
        acting = executor_batch(tokenizer, [chosen[i] for i in origin], "compiled", config, multiple=256)
        references = reference_ids(tokenizer, chosen, max(num_soft, 1))
        spots = spots_of(compiling, OUTPUT_MULTIPLE), spots_of(acting, ACTION_MULTIPLE)
        batch = CompilerBatch(compiling, references, guided, acting, origin, *spots)
        return CompilerBatch(*place.batch(filled(batch, place)))

    def step_of(state, batch, key):
        return step_fn(state, executor_state, batch, key)

    def train(samples: Sequence[Sample], done: int) -> CompilerModel:
        lengths = [len(s.compiler_prompt) + len(s.output) for s in samples]
        trained = stage.train(samples, lengths, done, state, step_of, batch_of, work)
        return nnx.merge(graphdef, trained.trainable, frozen)

    return train


def trainable_filter(config: Config):
    """Which variables of the compiler are trained: all, or adapters and the Soft-Mem head."""
    if not config.model.lora:
        return nnx.Param
    return lambda path, value: isinstance(value, LoraParam) or (path[0] == "soft_mem" and isinstance(value, nnx.Param))


def make_compiler(config: Config, model: CompilerModel, tokenizer: Tokenizer, **settings) -> MemoryCompiler:
    """The acting compiler of a model under this configuration."""
    return MemoryCompiler(
        model.decoder, model.soft_mem, tokenizer, max_tokens=config.model.max_compiler_tokens, **settings
    )


def make_executor(config: Config, executor: Decoder, tokenizer: Tokenizer, **settings) -> Executor:
    """The acting executor under this configuration."""
    return Executor(executor, tokenizer, max_action_tokens=config.model.max_action_tokens, **settings)


def train_grpo(
    config: Config,
    tokenizer: Tokenizer,
    model: CompilerModel,
    executor: Decoder,
    bank: MemoryBank,
    envs,
    tasks: Sequence[int],
    run_dir: pathlib.Path,
) -> CompilerModel:
    """The compiler after GRPO on the training tasks; the executor acts greedily and stays frozen."""
    rl = config.grpo
    if envs.num_envs < rl.num_tasks * rl.group_size:
        raise InvalidInputError(f"envs: expected {rl.num_tasks * rl.group_size} for a batch, got {envs.num_envs}")
    place, axes = placement(config), parameter_axes(model)
    graphdef, params, frozen = nnx.split(model, trainable_filter(config), ...)
    frozen = place.params(frozen, axes)
    nnx.update(executor, place.params(nnx.state(executor), parameter_axes(executor)))
    schedule = cosine(rl.learning_rate, rl.min_learning_rate, max(rl.steps * rl.minibatches, 1))
    optimizer = make_optimizer(schedule, rl.weight_decay, rl.max_grad_norm, b2=0.95, eps=1e-5)
    state, places = fresh_state(optimizer, params, axes, place)
    gradient_of = place.scoped(
        grpo.make_grpo_gradient(graphdef, rl, places=places and places.trainable, mesh=config.mesh)
    )

    def gradient(trainable, frozen, data, total):
        return gradient_of(trainable, frozen, place.batch(data), total)

    def grpo_update(state, gradients):
        return apply_gradients(optimizer, state, gradients)

    update = place.scoped(jax.jit(grpo_update, out_shardings=places, donate_argnums=0))
    microbatch, max_gap = place.rows(rl.microbatch), grpo.max_log_prob_gap(model.decoder.config.dtype)
    soft_shape = (config.memory.num_soft, executor.config.width)

    def step_of(state, step, _):
        current = nnx.merge(graphdef, state.trainable, frozen)
        settings = {"temperature": rl.temperature, "top_k": rl.top_k, "top_p": rl.top_p, "placement": place}
        random = np.random.default_rng((config.seed, 3, step))
        drawn = np.repeat(random.choice(np.asarray(tasks), rl.num_tasks, replace=False), rl.group_size)
        started = time.perf_counter()
        trajectories = play(  # with models of its own, whose kept prompts make room for the update after it
            envs, make_executor(config, executor, tokenizer, placement=place),
            make_delivery("compiled", make_compiler(config, current, tokenizer, **settings)), bank,
            tasks=drawn, seeds=config.seed * 1_000_003 + step * len(drawn) + np.arange(len(drawn)),
            top_k=config.memory.top_k, full_turns=config.memory.full_turns, max_steps=rl.max_steps,
        )  # fmt: skip
        rollout_s = time.perf_counter() - started
        advantages, equal = grpo.advantages_of(trajectories, rl.group_size)
        metrics = rollout_metrics(trajectories) | {"equal_groups": equal, "rollout_s": rollout_s}
        samples = grpo.policy_samples(trajectories, advantages, soft_shape, tokenizer.soft_id)
        grpo.refuse_stale(samples, weights_version(current.decoder, current.soft_mem))
        parts = np.array_split(random.permutation(len(samples)), rl.minibatches) if samples else []
        for number, part in enumerate(part for part in parts if len(part)):
            chosen = [samples[i] for i in part]
            gradients, values = grpo.accumulate(
                gradient, state.trainable, frozen, chosen, microbatch, tokenizer.pad_id,
                max_gap=math.inf if number else max_gap,
            )  # fmt: skip
            state = update(state, gradients)
            gap = metrics.get("log_prob_gap", values["log_prob_gap"])  # of the first minibatch, where it should be 0
            metrics |= values | {"log_prob_gap": gap}
        return state, metrics

    work = {"tokens": flops_per_token(model.decoder.config, MEAN_LENGTH, trained=not config.model.lora)}
    state = run_loop("grpo", run_dir, config, rl.steps, rl.checkpoint_every, state, step_of, work=work)
    return nnx.merge(graphdef, state.trainable, frozen)


def rollout_metrics(trajectories) -> dict[str, float]:
    """Success, length and how well the compiler's outputs could be read."""
    records = [d.record for t in trajectories for d in t.delivered if d.record is not None]
    return {
        "won": float(np.mean([t.won for t in trajectories])),
        "progress": float(np.mean([t.progress for t in trajectories])),
        "steps": float(np.mean([len(t.delivered) for t in trajectories])),
        "well_formed": float(np.mean([r.output.well_formed for r in records])) if records else 1.0,
        "refused_edits": float(np.mean([r.refused_edits for r in records])) if records else 0.0,
        "guided": float(np.mean([bool(d.hint) for t in trajectories for d in t.delivered])),
    }

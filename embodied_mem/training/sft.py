"""Supervised training: the executor learns to act in every format, then the compiler learns from the teacher.

    executor = train_executor(run, samples)
    executor = correct_executor(run, samples, executor, games)
    model = train_compiler(run, samples, executor)
    model = correct_compiler(run, samples, executor, model, games)

Each is a stage: a loop over one jitted step (`loop.run_loop`), which resumes from its own checkpoints.

    step = make_executor_step(graphdef, frozen, optimizer, config)
    state, metrics = step(state, ExecutorBatch(...), key)         # the old state is used up

    step = make_compiler_step(graphdef, frozen, executor_graphdef, optimizer, config)
    state, metrics = step(state, executor_state, CompilerBatch(...), key)

Compiler loss (MemCompiler eqs. 6, 7, 9):

    L = L_text + a L_action + e L_entropy + l L_latent + o L_orth

    L_text     cross-entropy of the output tokens, label-smoothed
    L_action   cross-entropy of the frozen executor's action tokens with the guidance in its prompt and the sampled soft
               tokens over its placeholders; the gradient reaches the compiler through the soft tokens only
    L_latent   semantic alignment, first term of eq. 6: the i-th soft mean should name the i-th token of a reference
               text out of memory (the places that come next), see `models.soft_mem.semantic_alignment`; where memory
               has pictures and the executor sees, also the i-th part of them (`perceptual_alignment`)
    L_orth     complementarity, second term of eq. 6
    L_entropy  minus the Gaussian entropy of the soft tokens per dimension. The paper leaves the term open; this reading
               keeps the channel's variance from collapsing before RL, which needs it to explore.

Rows without guidance have no soft tokens and take part in L_text only (NOACTION and BRIEF give the executor nothing).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from embodied_mem.agents.citations import is_from_memory
from embodied_mem.compiler.executor import Acts
from embodied_mem.errors import InvalidInputError
from embodied_mem.models.decoder import Decoder, TokenScores, score_tokens
from embodied_mem.models.lora import remove_lora
from embodied_mem.models.soft_mem import (
    complementarity,
    entropy_per_dimension,
    perceptual_alignment,
    rows_of,
    sample,
    semantic_alignment,
)
from embodied_mem.models.vision.pictures import embed_seen
from embodied_mem.models.vision.qwen_vl_vision import see
from embodied_mem.training.bundle import Bundle
from embodied_mem.training.config import ONE_DEVICE, MeshConfig, SFTConfig
from embodied_mem.training.data import (
    ACTION_MULTIPLE,
    Batch,
    CompilerBatch,
    ExecutorBatch,
    batches,
    compiler_batch,
    executor_batch,
    fill_batch,
    first_seen,
    reference_ids,
    spots_of,
)
from embodied_mem.training.loop import MEAN_LENGTH, Metrics, Run, flops_per_token, run_loop, step_key
from embodied_mem.training.models import (
    CompilerModel,
    Model,
    Params,
    executor_of,
    make_executor,
    new_compiler,
    new_decoder,
    parameter_axes,
    picture_reader,
    split_executor,
    split_model,
)
from embodied_mem.training.optimizers import TrainState, apply_gradients, fresh_state, sft_optimizer
from embodied_mem.training.teachers.dagger import own_commands, own_episodes
from embodied_mem.training.teachers.episodes import Sample, input_formats
from embodied_mem.training.teachers.games import Games


def masked_mean(values: jax.Array, mask: jax.Array, denominator: float | jax.Array | None = None) -> jax.Array:
    """Return sum(values where mask) / denominator, by default the mask's count."""
    values = jnp.where(mask, values.astype(jnp.float32), 0.0)
    total = jnp.maximum(mask.astype(jnp.float32).sum(), 1.0) if denominator is None else denominator
    return values.sum() / total


def smoothed_cross_entropy(
    log_probs: jax.Array,
    mean_log_probs: jax.Array,
    mask: jax.Array,
    *,
    smoothing: float = 0.1,
    denominator: float | jax.Array | None = None,
) -> jax.Array:
    """Return the mean cross-entropy to smoothed targets over the mask.

    The target distribution gives 1 - smoothing to the token and spreads smoothing evenly over all V tokens, it
    included: loss_t = -(1 - smoothing) log p(token) - smoothing mean_v log p(v). Two numbers per position are all it
    needs, so logits need not be kept.

    Args:
        log_probs: float32[...], log p(token).
        mean_log_probs: float32[...], mean of log p over the vocabulary.
        mask: bool[...], positions that carry loss.
        smoothing: in [0, 1); C.3.1: 0.1.
        denominator: divides the sum; None counts the mask.
    """
    if not 0 <= smoothing < 1:
        raise InvalidInputError(f"label smoothing: expected in [0, 1), got {smoothing!r}")
    loss = -(1 - smoothing) * log_probs - smoothing * mean_log_probs
    return masked_mean(loss, mask, denominator)


def make_executor_step(
    graphdef: nnx.GraphDef[Decoder],
    frozen: Params,
    optimizer: optax.GradientTransformation,
    config: SFTConfig,
    *,
    top: int | None = None,
    places: Any = None,
    mesh: MeshConfig = ONE_DEVICE,
) -> functools.partial[tuple[TrainState, Metrics]]:
    """Make a jitted (state, ExecutorBatch, key) -> (state, metrics) for the executor.

    Placeholders hold what `soft_stand_ins` gives. The loss is the cross-entropy of the action plus `prompt_weight`
    times that of the prompt's other tokens, which is what teaches a model from scratch to copy names from its context.
    Without it logits are those of the action alone.

    Args:
        graphdef: of the executor.
        frozen: its parameters that are not trained (base weights under adapters).
        optimizer: see `make_optimizer`.
        config: weight of the prompt.
        top: so many layers are trained, by adapters, and start from `ExecutorBatch.below`; None: all parameters.
        places: on a mesh, a sharding per leaf of the new state, so that it lies as the old one does.
        mesh: remat and chunks.
    """

    def loss_of(
        trainable: Params, frozen: Params, data: ExecutorBatch[jax.Array], key: jax.Array
    ) -> tuple[jax.Array, Metrics]:
        executor, batch = nnx.merge(graphdef, trainable, frozen), data.rows
        if top is None:
            hidden = executor_hidden(executor, batch, soft_stand_ins(executor, data.references, key), mesh)
        else:
            hidden = executor(embeddings=data.below, mask=batch.mask, remat=mesh.remat, top=top)
        if config.prompt_weight:
            scores = score_tokens(executor, hidden, batch.targets, chunk_size=mesh.logits_chunk)
            learned = batch.learned
        else:
            scores, learned = score_completion(executor, hidden, batch, data.spots, mesh)
        loss = action = masked_mean(-scores.log_probs, learned)
        if config.prompt_weight:
            prompt = batch.mask & ~batch.learned & ~batch.suffix
            prompt &= batch.learned.any(1, keepdims=True)  # not in rows that only fill up the batch
            prompt &= jnp.roll(prompt, -1, axis=1).at[:, -1].set(False)
            loss = loss + config.prompt_weight * masked_mean(-scores.log_probs, prompt)
        accuracy = share_right(scores, learned)
        return loss, {"loss": loss, "action": action, "action_accuracy": accuracy, "tokens": num_tokens(batch)}

    def executor_step(
        frozen: Params, state: TrainState, data: ExecutorBatch[jax.Array], key: jax.Array
    ) -> tuple[TrainState, Metrics]:
        gradients, metrics = jax.grad(loss_of, has_aux=True)(state.trainable, frozen, data, key)
        metrics["grad_norm"] = optax.global_norm(gradients)
        return apply_gradients(optimizer, state, gradients), metrics

    return functools.partial(_jitted(executor_step, places, 1), frozen)


def make_below(graphdef: nnx.GraphDef[Decoder], frozen: Params, top: int) -> functools.partial[jax.Array]:
    """Make a jitted function that gives the last `top` layers' input.

    It is (rows, references, key) -> [B, L, D]. The layers are those of an executor without its adapters; `graphdef`
    and `frozen` are its graph and parameters.
    """

    @jax.jit
    def below(frozen: Params, batch: Batch[jax.Array], references: jax.Array, key: jax.Array) -> jax.Array:
        executor = nnx.merge(graphdef, frozen)
        embeddings, _ = embed_batch(executor, batch, (batch.suffix, soft_stand_ins(executor, references, key)))
        return executor.below(embeddings, mask=batch.mask, top=top)

    return functools.partial(below, frozen)


def soft_stand_ins(executor: Decoder, references: jax.Array, key: jax.Array) -> jax.Array:
    """Embed reference tokens [B, N, D], with noise of 0.6 standard deviations.

    That is what a compiler whose soft tokens are aligned (eq. 6) writes at the start of its own training, so that the
    frozen executor can read soft tokens later. Those past the end of a reference (-1) are noise alone.
    """
    named = (references >= 0)[..., None]
    soft = jnp.where(named, executor.embed(jnp.maximum(references, 0)), 0)
    noise = jax.random.normal(key, soft.shape, soft.dtype) * jnp.where(named, 0.6, 1.0)
    return soft + jax.lax.stop_gradient(jnp.std(executor.embedding[...])) * noise


def _jitted(step: Callable[..., Any], places: Any, state: int) -> Callable[..., Any]:
    """Jit a step that donates its argument number `state`."""
    options: dict[str, Any] = {} if places is None else {"out_shardings": (places, None)}
    jitted: Callable[..., Any] = jax.jit(step, donate_argnums=state, **options)
    return jitted


def score_completion(
    decoder: Decoder, hidden: jax.Array, batch: Batch[jax.Array], spots: jax.Array, mesh: MeshConfig
) -> tuple[TokenScores, jax.Array]:
    """Return (scores [B, M] of completions' tokens, bool[B, M] of real ones).

    The head is a quarter of a tiny model's work, and completions are a tenth of its positions.
    """
    targets, learned = (jnp.take_along_axis(array, spots, 1) for array in (batch.targets, batch.learned))
    hidden = jnp.take_along_axis(hidden, spots[..., None], 1)
    return score_tokens(decoder, hidden, targets, chunk_size=mesh.logits_chunk), learned


def executor_hidden(executor: Decoder, batch: Batch[jax.Array], soft: jax.Array, mesh: MeshConfig) -> jax.Array:
    """Compute final hidden states [B, L, D] of rows with soft tokens.

    Soft tokens [B, N, D] are written over the placeholders that `batch.suffix` marks in executor rows.
    """
    embeddings, positions = embed_batch(executor, batch, (batch.suffix, soft))
    return executor(embeddings=embeddings, mask=batch.mask, positions=positions, remat=mesh.remat)


def embed_batch(
    decoder: Decoder, batch: Batch[jax.Array], soft: tuple[jax.Array, jax.Array] | None = None
) -> tuple[jax.Array, jax.Array | None]:
    """Embed rows with their pictures, see `vision.pictures.embed_seen`."""
    return embed_seen(decoder, batch.tokens, batch.mask, ~batch.text, batch.pictures, soft)


def share_right(scores: TokenScores, learned: jax.Array) -> jax.Array:
    """Return the share of rows with only the likeliest tokens."""
    right = (scores.log_probs >= scores.top_log_probs) | ~learned
    return masked_mean(right.all(1).astype(jnp.float32), learned.any(1))


def num_tokens(batch: Batch[jax.Array]) -> jax.Array:
    """Count real tokens, without filler rows."""
    return (batch.mask & batch.learned.any(1, keepdims=True)).sum()


def by_parts(function: Callable[..., Any], size: int, *rows: Any) -> Any:
    """Applies a function of rows to parts of a batch in turn.

    A part's activations are computed again on the way back, so that those of one part exist at a time and gradients
    add up. Every device has rows in every part, and what the batch is divided by is that of the whole.

    Args:
        function: of a part's number, None where there is one part, and its rows.
        size: most rows of a part over all devices; 0: all.
        rows: arrays [B, ...].
    """
    count = len(jax.tree.leaves(rows)[0])
    mesh = jax.sharding.get_abstract_mesh().shape
    devices = mesh.get("data", 1) * mesh.get("fsdp", 1)
    own = count // devices
    parts = next(n for n in range(1, own + 1) if own % n == 0 and (own // n <= max(size // devices, 1) or not size))
    if parts == 1:
        return function(None, *rows)

    def cut(array: jax.Array) -> jax.Array:
        apart = array.reshape(devices, parts, own // parts, *array.shape[1:])
        return apart.swapaxes(0, 1).reshape(parts, count // parts, *array.shape[1:])

    def join(array: jax.Array) -> jax.Array:
        apart = array.reshape(parts, devices, own // parts, *array.shape[2:])
        return apart.swapaxes(0, 1).reshape(count, *array.shape[2:])

    of_part = jax.checkpoint(lambda part: function(part[0], *part[1]))
    return jax.tree.map(join, jax.lax.map(of_part, (jnp.arange(parts), jax.tree.map(cut, rows))))


def make_compiler_step(
    graphdef: nnx.GraphDef[CompilerModel],
    frozen: Params,
    executor_graphdef: nnx.GraphDef[Decoder],
    optimizer: optax.GradientTransformation,
    config: SFTConfig,
    *,
    places: Any = None,
    mesh: MeshConfig = ONE_DEVICE,
) -> functools.partial[tuple[TrainState, Metrics]]:
    """Make a jitted (state, executor_state, CompilerBatch, key) -> (state, metrics).

    Args:
        graphdef: of `CompilerModel`.
        frozen: its parameters that are not trained (base weights under LoRA).
        executor_graphdef: of the frozen executor.
        optimizer: see `make_optimizer`.
        config: weights of the terms.
        places: on a mesh, a sharding per leaf of the new state.
        mesh: remat and chunks.
    """

    def loss_of(
        trainable: Params, frozen: Params, executor_state: Params, data: CompilerBatch[jax.Array], key: jax.Array
    ) -> tuple[jax.Array, Metrics]:
        batch, references, guided, executor_batch, origin, spots, executor_spots, recalled = data
        model = nnx.merge(graphdef, trainable, frozen)
        executor = nnx.merge(executor_graphdef, executor_state)
        noise_key, dropout_key = jax.random.split(key)

        def compile_rows(number: Any, batch: Batch[jax.Array], spots: jax.Array) -> Any:
            embeddings, positions = embed_batch(model.decoder, batch)
            own_key = dropout_key if number is None else jax.random.fold_in(dropout_key, number)
            hidden = model.decoder(
                embeddings=embeddings, mask=batch.mask, positions=positions, dropout_key=own_key, remat=mesh.remat
            )
            soft = None
            if model.soft_mem is not None:
                h_soft = rows_of(hidden, batch.suffix, references.shape[1])
                soft = model.soft_mem(h_soft), complementarity(h_soft, hidden, batch.text)
            return *score_completion(model.decoder, hidden, batch, spots, mesh), soft

        scores, learned, soft_outputs = by_parts(compile_rows, config.microbatch, batch, spots)
        loss = smoothed_cross_entropy(
            scores.log_probs, scores.mean_log_probs, learned, smoothing=config.label_smoothing
        )
        metrics = {"text": loss, "text_nll": -masked_mean(scores.log_probs, learned)}
        metrics["text_accuracy"] = share_right(scores, learned)
        metrics["tokens"] = num_tokens(batch)
        if model.soft_mem is not None:
            gaussian, similarity = soft_outputs
            soft = sample(gaussian, jax.random.split(noise_key, len(references)))

            def act_rows(_: Any, batch: Batch[jax.Array], soft: jax.Array, spots: jax.Array) -> Any:
                return score_completion(executor, executor_hidden(executor, batch, soft, mesh), batch, spots, mesh)

            acting = executor_batch, soft[origin], executor_spots
            scores, learned = by_parts(act_rows, config.microbatch, *acting)
            metrics["action_accuracy"] = share_right(scores, learned)
            metrics["executor_tokens"] = num_tokens(executor_batch)
            metrics["action"] = masked_mean(-scores.log_probs, learned & guided[origin][:, None])
            alignment = semantic_alignment(
                gaussian.mu, jnp.maximum(references, 0), references >= 0, executor.embedding[...]
            )
            metrics["latent"] = masked_mean(alignment, guided)
            if recalled is not None and batch.pictures is not None and executor.config.vision is not None:
                seen = see(executor.vision, batch.pictures)[..., : executor.config.width]
                shown = perceptual_alignment(gaussian.mu, seen, recalled)
                metrics["perceptual"] = masked_mean(shown, guided & recalled.any(1))
                loss += config.latent * metrics["perceptual"]
            metrics["orth"] = masked_mean(similarity, guided)
            loss += config.action * metrics["action"] + config.latent * metrics["latent"]
            loss += config.orthogonality * metrics["orth"]
            if model.soft_mem.config.stochastic:
                metrics["entropy"] = -masked_mean(entropy_per_dimension(gaussian).mean(-1), guided)
                loss += config.entropy * metrics["entropy"]
        metrics["loss"] = loss
        return loss, metrics

    def compiler_step(
        frozen: Params, state: TrainState, executor_state: Params, data: CompilerBatch[jax.Array], key: jax.Array
    ) -> tuple[TrainState, Metrics]:
        gradients, metrics = jax.grad(loss_of, has_aux=True)(state.trainable, frozen, executor_state, data, key)
        metrics["grad_norm"] = optax.global_norm(gradients)
        return apply_gradients(optimizer, state, gradients), metrics

    # An argument and not a constant of the program, which would hold it whole on every device.
    return functools.partial(_jitted(compiler_step, places, 1), frozen)


Step = Callable[..., tuple[TrainState, Metrics]]
Batches = Callable[[Sequence[Sample], int, int], Iterator[Any]]
"""(samples, last step, first step) -> batches."""


def train_executor(run: Run, samples: Sequence[Sample]) -> Decoder:
    """Train the executor on all input formats that will be compared."""
    config, place = run.config, run.place
    with place.on_host():
        executor = executor_of(config, new_decoder(config, run.executor_tokenizer, "executor", config.seed + 1, place))
    if not config.executor_sft.steps:  # no optimizer state for what is not trained
        nnx.update(executor, place.params(nnx.state(executor), parameter_axes(executor)))
        return executor
    return executor_training(run, executor, "executor", 1, config.executor_sft)(samples)


def correct_executor(run: Run, samples: Sequence[Sample], executor: Decoder, games: Games) -> Decoder:
    """Train the executor in rounds on states its own commands reach."""
    correction = run.config.executor_correction
    train = executor_training(run, executor, "executor_correction", 7, correction.sft, correction.rounds)

    def own_samples(number: int, model: Decoder) -> list[Sample]:
        acting = make_executor(run.config, model, run.executor_tokenizer)
        return own_commands(games, acting, number, run.folder / "executor_correction")

    return correct_in_rounds(run, samples, executor, correction.rounds, own_samples, train)


def train_compiler(
    run: Run, samples: Sequence[Sample], executor: Decoder, model: CompilerModel | None = None
) -> CompilerModel:
    """Train a new or given compiler on the teacher's outputs."""
    samples = weigh_memory(samples, run.config.data.memory_weight)
    sft = run.config.compiler_sft.of(len(samples))
    if model is None:
        with run.place.on_host():
            model = new_compiler(run.config, run.tokenizer, executor, run.place)
    return compiler_training(run, executor, model, "compiler", 2, sft)(samples)


def weigh_memory(samples: Sequence[Sample], weight: int) -> list[Sample]:
    """Repeat samples with new guidance out of memory.

    Each of them then counts `weight` times. Most others go on with the guidance of the step before, or say what the
    answer shows.
    """
    before = [None, *samples[:-1]]
    news = [
        now for now, last in zip(samples, before)
        if is_from_memory(now.output) and (last is None or not now.view[2] or now.hint != last.hint)
    ]  # fmt: skip
    return [*samples, *news * (weight - 1)]


def correct_compiler(
    run: Run, samples: Sequence[Sample], executor: Decoder, model: CompilerModel, games: Games
) -> CompilerModel:
    """Train the compiler in rounds on its own and teacher's episodes."""
    correction = run.config.correction
    train = compiler_training(run, executor, model, "correction", 4, correction.sft, correction.rounds)

    def own_samples(number: int, model: CompilerModel) -> list[Sample]:
        acting, compiler = Bundle(run.config, run.tokenizer, executor, model, run.own_tokenizer).acting()
        acts: Acts = games.tasks.follower if run.config.data.commands else acting
        return own_episodes(games, compiler, acts, number, run.folder / "correction")

    return correct_in_rounds(run, samples, model, correction.rounds, own_samples, train)


def correct_in_rounds(
    run: Run,
    samples: Sequence[Sample],
    model: Model,
    rounds: int,
    own_samples: Callable[[int, Model], list[Sample]],
    train: Callable[[Sequence[Sample], int], Model],
) -> Model:
    """Alternate play and training on own samples and as many teacher's.

    Args:
        run: of the models.
        samples: the teacher's.
        model: before the first round.
        rounds: their number.
        own_samples: (round, model) -> samples of the episodes that the model plays in it.
        train: (samples, rounds done at its end) -> the model trained to there.
    """
    own: list[Sample] = []
    for number in range(rounds):
        own += own_samples(number, model)
        others: np.ndarray = np.random.default_rng((run.config.seed, 6, number)).permutation(len(samples))
        model = train([*own, *(samples[i] for i in others[: len(own)])], number + 1)
    return model


def executor_training(
    run: Run, executor: Decoder, name: str, number: int, sft: SFTConfig, rounds: int = 1
) -> Callable[..., Decoder]:
    """Make a function (samples, last round = 1) -> trained executor.

    `number` tells the stage's randomness from that of others. The learning rate falls over all rounds.
    """
    config, tokenizer, place, axes = run.config, run.executor_tokenizer, run.place, parameter_axes(executor)
    top = config.model.executor_lora if executor.lora else None
    graph, params, frozen = split_executor(executor)
    frozen = place.params(frozen, axes)
    reader = picture_reader(config, "executor", executor, tokenizer)
    optimizer = sft_optimizer(dataclasses.replace(sft, steps=sft.steps * rounds))
    start, places = fresh_state(optimizer, params, axes, place)
    step: Step = place.scoped(
        make_executor_step(graph, frozen, optimizer, sft, top=top, places=places, mesh=config.mesh)
    )
    work = {"tokens": flops_per_token(executor.config, MEAN_LENGTH, trained=not executor.lora)}

    def length(sample: Sample) -> int:
        turns = sample.view[2]
        return sum(map(len, turns[-1])) + sum(len(action) for action, _ in turns) if turns else 0

    def batch(samples: Sequence[Sample], random: np.random.Generator) -> ExecutorBatch[np.ndarray]:
        """Make rows in a drawn format, and soft tokens' reference tokens."""
        kinds, shares = input_formats(config.data.without_memory)
        kind = kinds[random.choice(len(kinds), p=shares)]
        rows = executor_batch(tokenizer, samples, kind, config, random, reader=reader)
        references = reference_ids(tokenizer, samples, config.memory)
        return ExecutorBatch(*place.batch(fill_batch((rows, references, spots_of(rows, ACTION_MULTIPLE)), place)))

    whole = functools.partial(_batches, run, number, sft, length, batch)
    if top is None:
        batches_of: Batches = whole
    else:
        bare: Decoder = nnx.merge(graph, params, frozen)
        below = place.scoped(make_below(nnx.split(remove_lora(bare))[0], frozen, top))
        batches_of = functools.partial(_cached_batches, run, number, sft, whole, below)
    state_after = functools.partial(_train_rounds, run, name, number, sft, start, step, batches_of, work)
    return lambda samples, done=1: nnx.merge(graph, state_after(samples, done).trainable, frozen)


def compiler_training(
    run: Run, executor: Decoder, model: CompilerModel, name: str, number: int, sft: SFTConfig, rounds: int = 1
) -> Callable[..., CompilerModel]:
    """Make a function (samples, last round = 1) -> trained compiler."""
    config, tokenizer, place, axes = run.config, run.tokenizer, run.place, parameter_axes(model)
    readers = (
        picture_reader(config, "compiler", model.decoder, tokenizer),
        picture_reader(config, "executor", executor, run.executor_tokenizer),
    )
    graph, params, frozen = split_model(config, model)
    frozen = place.params(frozen, axes)
    executor_graph, executor_state = nnx.split(executor)
    executor_state = place.params(executor_state, parameter_axes(executor))
    optimizer = sft_optimizer(dataclasses.replace(sft, steps=sft.steps * rounds))
    start, places = fresh_state(optimizer, params, axes, place)
    with_executor: Step = place.scoped(
        make_compiler_step(graph, frozen, executor_graph, optimizer, sft, places=places, mesh=config.mesh)
    )
    work = {
        "tokens": flops_per_token(model.decoder.config, MEAN_LENGTH, trained=not config.model.lora),
        "executor_tokens": flops_per_token(executor.config, MEAN_LENGTH, trained=False),
    }

    def step(state: TrainState, data: CompilerBatch[np.ndarray], key: jax.Array) -> tuple[TrainState, Metrics]:
        return with_executor(state, executor_state, data, key)

    def length(sample: Sample) -> int:
        return len(sample.compiler_prompt) + len(sample.output)

    def batch(samples: Sequence[Sample], random: np.random.Generator) -> CompilerBatch[np.ndarray]:
        rows = compiler_batch(tokenizer, samples, config, sft.action_share, random, readers, run.own_tokenizer)
        return CompilerBatch(*place.batch(fill_batch(rows, place)))

    batches_of = functools.partial(_batches, run, number, sft, length, batch)
    state_after = functools.partial(_train_rounds, run, name, number, sft, start, step, batches_of, work)
    return lambda samples, done=1: nnx.merge(graph, state_after(samples, done).trainable, frozen)


def _train_rounds(
    run: Run,
    name: str,
    number: int,
    sft: SFTConfig,
    start: TrainState,
    step: Step,
    batches_of: Batches,
    work: Mapping[str, float],
    samples: Sequence[Sample],
    done: int,
) -> TrainState:
    """Run a stage through round `done`; resuming uses `start`'s shapes only."""

    def numbered_step(state: TrainState, index: int, batch: Any) -> tuple[TrainState, Metrics]:
        return step(state, batch, run.place.whole(step_key(run.config, number, index)))

    last = sft.steps * done
    return run_loop(
        name, run.folder, run.config, start, numbered_step,
        num_steps=last, checkpoint_every=sft.checkpoint_every,
        batches_from=functools.partial(batches_of, samples, last), work=work,
    )  # fmt: skip


def _batches(
    run: Run,
    number: int,
    sft: SFTConfig,
    length: Callable[[Sample], int],
    batch: Callable[[Sequence[Sample], np.random.Generator], Any],
    samples: Sequence[Sample],
    last: int,
    first: int,
) -> Iterator[Any]:
    """Yield batches of steps `first` to `last` - 1, similar in length."""
    seed, lengths = run.config.seed, list(map(length, samples))
    order = batches(lengths, sft.batch_size, seed=seed + number - 1, first_step=first, num_steps=last)
    for step, indices in enumerate(order, first):
        yield batch([samples[i] for i in indices], np.random.default_rng((seed, number, step)))


def _cached_batches(
    run: Run,
    number: int,
    sft: SFTConfig,
    batches_of: Batches,
    below: Callable[..., Any],
    samples: Sequence[Sample],
    last: int,
    first: int,
) -> Iterator[Any]:
    """Repeat the first epoch's batches with the frozen layers' outputs."""
    seed, per_epoch = run.config.seed + number, max(1, len(samples) // sft.batch_size)
    per_epoch = min(per_epoch, sft.num_batches or per_epoch)
    seen_batches: dict[int, ExecutorBatch[Any]] = {}
    for step in range(first, last):
        index = first_seen(step, per_epoch, seed)
        batch = seen_batches.get(index)
        if batch is None:
            (batch,) = batches_of(samples, index + 1, index)
            key = run.place.whole(step_key(run.config, number, index))
            batch = batch._replace(below=below(batch.rows, batch.references, key))
            if last > per_epoch:
                seen_batches[index] = batch
        yield batch

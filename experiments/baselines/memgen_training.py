"""Trains MemGen's weaver and trigger for an executor, which stays as it is.

    model = Weaving(bundle.executor, rngs=nnx.Rngs(0))
    train_weaver(model, bundle, samples, MemGenConfig())
    train_trigger(model, bundle, games, MemGenConfig())

The weaver first, by the teacher's commands on the training games: cross-entropy of the frozen executor's command with
the weaver's soft tokens in its prompt. Then the trigger, by groups of episodes that the executor plays with its drawn
decisions d, of INVOKE (1) and SKIP (0):

    r_i = R_i - w mean_j max(0, d_ij - p),    p the mean of d in episodes whose R is at least the median
    A_i = r_i - mean of its group,    loss = -mean over (i, j) of A_i log pi(d_ij)

Source: MemGen (Zhang et al. 2026), sections 4.2 and 4.3. Deviations: the penalty is a mean over an episode's decisions
and no sum, so that long episodes do not cost more; R is 1 for a game that was won, else 0; advantages are not divided
by their spread, which in a group that wins every game is the penalty's alone and drives the trigger to SKIP; one update
per batch of episodes, of a drawn part of its decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from embodied_mem.agents.rollout import Trajectory, play
from embodied_mem.compiler.view import start_view
from embodied_mem.envs.checks import checked_finite
from embodied_mem.models.decoder import Decoder, TokenScores
from embodied_mem.progress import Progress
from embodied_mem.training.bundle import Bundle
from embodied_mem.training.config import ONE_DEVICE
from embodied_mem.training.data import ACTION_MULTIPLE, Batch, HostBatch, Row, batches, pad_rows, spots_of
from embodied_mem.training.models import executor_format, special_ids
from embodied_mem.training.optimizers import TrainState, apply_gradients, cosine, make_optimizer
from embodied_mem.training.sft import executor_hidden, masked_mean, score_completion, share_right
from embodied_mem.training.teachers.episodes import Sample
from embodied_mem.training.teachers.games import Games

from .memgen import NUM_SOFT, MemGen, WovenMemory, place_prompt
from .memgen_config import MemGenConfig
from .weaver import Weaving, trigger_only, weaver_only

LENGTH_MULTIPLE = 128


class WeaverBatch(NamedTuple):
    """Rows that the executor reads, whether each is a later step, and where its command's tokens are."""

    rows: HostBatch
    later: np.ndarray
    spots: np.ndarray


def weaver_batch(bundle: Bundle, samples: Sequence[Sample], num_soft: int = NUM_SOFT) -> WeaverBatch:
    """Rows with places and the teacher's commands; `rows.suffix` marks the places."""
    format, ids = executor_format(bundle.config, bundle.executor_tokenizer), special_ids(bundle.executor_tokenizer)
    shown = bundle.config.memory.shown
    prompts = format.prompts([place_prompt(*sample.view, shown, num_soft) for sample in samples])
    rows = [Row(*row) for row in zip(prompts, format.commands([sample.action for sample in samples]))]
    batch = pad_rows(rows, ids.pad, LENGTH_MULTIPLE)
    batch = batch._replace(suffix=(batch.tokens == ids.soft) & batch.mask)
    later = np.array([bool(sample.view[2]) for sample in samples])
    return WeaverBatch(batch, later, spots_of(batch, ACTION_MULTIPLE))


def command_scores(
    model: Weaving, executor: Decoder, batch: WeaverBatch, dropout_key: jax.Array | None = None
) -> tuple[TokenScores, jax.Array]:
    """Return the executor's scores of command tokens, and the real ones' mask.

    The executor reads what the weaver writes at the places.
    """
    rows: Batch[jax.Array] = jax.tree.map(jnp.asarray, batch.rows)
    soft = model.weave(rows.tokens, rows.mask, rows.suffix, jnp.asarray(batch.later), dropout_key)
    hidden = executor_hidden(executor, rows, soft, ONE_DEVICE)
    return score_completion(executor, hidden, rows, jnp.asarray(batch.spots), ONE_DEVICE)


def train_weaver(model: Weaving, bundle: Bundle, samples: Sequence[Sample], settings: MemGenConfig) -> list[float]:
    """Train the weaver of `model` in place.

    Returns the loss of each step.
    """
    graph, trained, *others = nnx.split(model, weaver_only, ...)
    [frozen] = others
    executor_graph, executor_state = nnx.split(bundle.executor)
    rate = settings.learning_rate
    optimizer = make_optimizer(cosine(rate, rate / 10, max(settings.steps, 1), 0.05), 0.0, 1.0, b2=0.999, eps=1e-8)

    @jax.jit
    def step(
        state: TrainState, frozen: Any, executor_state: Any, batch: WeaverBatch, key: jax.Array
    ) -> tuple[TrainState, jax.Array]:
        def loss_of(trained: Any) -> jax.Array:
            executor = nnx.merge(executor_graph, executor_state)
            scores, learned = command_scores(nnx.merge(graph, trained, frozen), executor, batch, key)
            return masked_mean(-scores.log_probs, learned)

        loss, gradients = jax.value_and_grad(loss_of)(state.trainable)
        return apply_gradients(optimizer, state, gradients), loss

    state, losses = TrainState(trained, optimizer.init(trained)), []
    lengths = [sum(len(action) + len(answer) for action, answer in sample.view[2][-2:]) for sample in samples]
    order = batches(lengths, settings.batch_size, seed=settings.seed, first_step=0, num_steps=settings.steps)
    with Progress("weaver", settings.steps, unit="step") as progress:
        for number, indices in enumerate(order):
            key = jax.random.fold_in(jax.random.key(settings.seed), number)
            batch = weaver_batch(bundle, [samples[i] for i in indices])
            state, loss = step(state, frozen, executor_state, batch, key)
            losses.append(float(loss))
            progress.update(1, loss=float(np.mean(losses[-20:])))
    nnx.update(model, state.trainable)
    return losses


def held_out_losses(model: Weaving, bundle: Bundle, samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """Return the executor's losses without soft tokens and with the weaver's.

    The form is {"none", "memgen"}: {"loss", "right"} of the executor's commands.
    """
    graph, state = nnx.split(model)
    executor_graph, executor_state = nnx.split(bundle.executor)

    @jax.jit
    def scored(state: Any, executor_state: Any, batch: WeaverBatch) -> tuple[jax.Array, jax.Array]:
        scores, learned = command_scores(nnx.merge(graph, state), nnx.merge(executor_graph, executor_state), batch)
        return masked_mean(-scores.log_probs, learned), share_right(scores, learned)

    found = {}
    for name, num_soft in (("none", 0), ("memgen", NUM_SOFT)):
        parts = [weaver_batch(bundle, samples[i : i + 64], num_soft) for i in range(0, len(samples), 64)]
        loss, right = np.mean([jax.device_get(scored(state, executor_state, part)) for part in parts], axis=0)
        found[name] = {"loss": float(loss), "right": float(right)}
    return found


class Decision(NamedTuple):
    """One of the trigger's: what it had read, INVOKE or not, what its episode earned against its group."""

    prefix: list[int]
    invoked: bool
    advantage: float


def shaped_rewards(rewards: np.ndarray, invoked: Sequence[np.ndarray], penalty: float) -> np.ndarray:
    """Rewards less the penalty of each episode's decisions; see the module.

    Args:
        rewards: float[N].
        invoked: of each episode bool[decisions].
        penalty: w.
    """
    for i, reward in enumerate(rewards):
        checked_finite(f"rewards[{i}]", reward)
    high = [d for reward, d in zip(rewards, invoked) if reward >= np.median(rewards) and len(d)]
    usual = float(np.mean([d.mean() for d in high])) if high else 0.0
    excess = [np.maximum(0.0, d - usual).mean() if len(d) else 0.0 for d in invoked]
    return rewards - penalty * np.array(excess)


def decisions_of(trajectories: Sequence[Trajectory], memgen: MemGen, settings: MemGenConfig) -> list[Decision]:
    """Return all decisions of a batch of episodes; groups stand together."""
    invoked = [np.array([d.soft is not None for d in one.delivered[1:]], float) for one in trajectories]
    rewards = shaped_rewards(np.array([float(one.won) for one in trajectories]), invoked, settings.penalty)
    groups = rewards.reshape(-1, settings.group_size)
    advantages = (groups - groups.mean(1, keepdims=True)).ravel()
    found = []
    for one, chosen, advantage in zip(trajectories, invoked, advantages):
        if not len(chosen) or advantage == 0:
            continue
        episode = one.episode
        room = start_view(episode.goal, episode.first_observation, ()).room
        turns = [(step.action, answer) for step, answer in zip(episode.steps, episode.answers)]
        prefixes = memgen.prefixes([(episode.goal, room, turns[:at]) for at in range(1, len(chosen) + 1)])
        found += [Decision(ids, bool(d), float(advantage)) for ids, d in zip(prefixes, chosen)]
    return found


def make_trigger_step(model: Weaving, optimizer: optax.GradientTransformation) -> tuple[Any, TrainState, Any]:
    """Make the trigger's training step, its first state and the frozen rest.

    The step is jitted: (state, frozen, tokens, mask, invoked, advantages) -> (state, loss).
    """
    graph, trained, *others = nnx.split(model, trigger_only, ...)
    [frozen] = others

    @jax.jit
    def step(
        state: TrainState, frozen: Any, tokens: jax.Array, mask: jax.Array, invoked: jax.Array, advantages: jax.Array
    ) -> tuple[TrainState, jax.Array]:
        def loss_of(trained: Any) -> jax.Array:
            logits = nnx.merge(graph, trained, frozen).decide(tokens, mask, tokens.shape[1] - 1)
            log_probs = jax.nn.log_sigmoid(jnp.where(invoked, logits, -logits))
            return -(advantages * log_probs).mean()

        loss, gradients = jax.value_and_grad(loss_of)(state.trainable)
        return apply_gradients(optimizer, state, gradients), loss

    return step, TrainState(trained, optimizer.init(trained)), frozen


def train_trigger(model: Weaving, bundle: Bundle, games: Games, settings: MemGenConfig) -> list[dict[str, float]]:
    """Train the trigger of `model` in place.

    Returns won games and share of INVOKE of each batch of episodes. `games.tasks.rollout` plays `num_tasks *
    group_size` episodes of `max_steps` side by side.
    """
    executor, _ = bundle.acting(
        temperature=settings.temperature, batch_buckets=(settings.num_tasks * settings.group_size,)
    )
    shown, seen = bundle.config.memory.shown, []
    optimizer = make_optimizer(lambda _: settings.trigger_learning_rate, 0.0, 1.0, b2=0.95, eps=1e-8)
    step, state, frozen = make_trigger_step(model, optimizer)
    with Progress("trigger", settings.trigger_steps, unit="update") as progress:
        for number in range(settings.trigger_steps):
            random = np.random.default_rng((settings.seed, 11, number))
            drawn = random.choice(games.tasks.num_train, settings.num_tasks, replace=False)
            tasks = np.repeat(drawn, settings.group_size).tolist()
            memgen = MemGen(executor, model, shown, sampled=True)
            played = play(
                games.tasks.rollout, executor, WovenMemory(memgen), games.seen(0), tasks=tasks,
                seeds=settings.seed * 1_000_003 + number * len(tasks) + np.arange(len(tasks)),
                top_k=1, shown=shown, max_steps=settings.max_steps,
            )  # fmt: skip
            asked = [d.soft is not None for one in played for d in one.delivered[1:]]
            seen.append({"won": float(np.mean([one.won for one in played])), "invoked": float(np.mean(asked))})
            found = decisions_of(played, memgen, settings)
            if found:
                part = [found[i] for i in random.permutation(len(found))[: settings.decisions]]
                part += [Decision(part[0].prefix, False, 0.0)] * (settings.decisions - len(part))
                tokens, mask = memgen.padded([one.prefix for one in part], places=0)
                invoked, advantages = (
                    np.array([getattr(one, name) for one in part]) for name in ("invoked", "advantage")
                )
                state, _ = step(state, frozen, tokens, mask, invoked, advantages)
                nnx.update(model, state.trainable)
            progress.update(1, **seen[-1])
    return seen

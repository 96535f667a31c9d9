"""GRPO as a stage of a run: it plays groups of episodes by the compiler as it is, and moves it by what they earned.

    model = train_grpo(run, model, executor, games)

Resumes as the other stages do (`stages`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from flax import nnx

from embodied_mem.agents.rollout import Trajectory, play
from embodied_mem.errors import InvalidInputError
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.weights_version import weights_version
from embodied_mem.training.config import Config
from embodied_mem.training.objectives import grpo_update as grpo
from embodied_mem.training.objectives.sft import CompilerModel, Params, TrainState, cosine, make_optimizer
from embodied_mem.training.run.loop import Metrics, run_loop
from embodied_mem.training.run.throughput import flops_per_token
from embodied_mem.training.sources.tokenizer import special_ids
from embodied_mem.training.stages import (
    MEAN_LENGTH,
    Run,
    acting_placement,
    fresh_state,
    make_compiler,
    make_executor,
    parameter_axes,
    split_model,
)
from embodied_mem.training.teachers.dagger import delivery_in_training
from embodied_mem.training.teachers.games import Games


def train_grpo(run: Run, model: CompilerModel, executor: Decoder, games: Games) -> CompilerModel:
    """The compiler after GRPO on the training tasks; the executor acts greedily and stays frozen."""
    return GRPOStage(run, model, executor, games).train()


class GRPOStage:
    """Plays groups of episodes by the compiler as it is, and moves it by what they earned.

    Raises:
        InvalidInputError: too few envs for a batch of episodes.
    """

    def __init__(self, run: Run, model: CompilerModel, executor: Decoder, games: Games):
        self._run, self._executor, self._games = run, executor, games
        config, rl, place, axes = run.config, run.config.grpo, run.place, parameter_axes(model)
        needed, num_envs = rl.num_tasks * rl.group_size, games.tasks.rollout.num_envs
        if num_envs < needed:
            raise InvalidInputError(f"envs: expected {needed} for a batch, got {num_envs}")
        self._graph, params, frozen = split_model(config, model)
        self._frozen = place.params(frozen, axes)
        # From here on the executor only acts; what is frozen of the compiler lies in both layouts.
        self._acting = acting_placement(config)
        nnx.update(executor, self._acting.params(nnx.state(executor), parameter_axes(executor)))
        self._frozen_acting = self._acting.params(self._frozen, axes)
        schedule = cosine(rl.learning_rate, rl.min_learning_rate, max(rl.steps * rl.minibatches, 1))
        optimizer = make_optimizer(schedule, rl.weight_decay, rl.max_grad_norm, b2=0.95, eps=1e-5)
        self._first = place.params(params, axes)
        self._start, places = fresh_state(optimizer, params, axes, place)
        self._gradient: Callable[..., tuple[Params, Metrics]] = place.scoped(
            grpo.make_grpo_gradient(self._graph, rl, places=places and places.trainable, mesh=config.mesh)
        )
        self._update = place.scoped(grpo.make_grpo_update(optimizer, places))
        self._max_gap = grpo.max_log_prob_gap(model.decoder.config.dtype)
        self._work = {"tokens": flops_per_token(model.decoder.config, MEAN_LENGTH, trained=not config.model.lora)}

    def train(self) -> CompilerModel:
        """The compiler after all updates."""
        run, rl = self._run, self._run.config.grpo
        state = run_loop(
            "grpo", run.folder, run.config, self._start, self.step,
            num_steps=rl.steps, checkpoint_every=rl.checkpoint_every, work=self._work,
        )  # fmt: skip
        return nnx.merge(self._graph, state.trainable, self._frozen)

    def step(self, state: TrainState, step: int, _: None) -> tuple[TrainState, Metrics]:
        """One batch of episodes and the updates by it."""
        run, rl = self._run, self._run.config.grpo
        current = nnx.merge(self._graph, state.trainable, self._frozen)
        random = np.random.default_rng((run.config.seed, 3, step))
        started = time.perf_counter()
        trajectories = self._play(nnx.merge(self._graph, state.trainable, self._frozen_acting), step, random)
        rollout_s = time.perf_counter() - started
        advantages, equal = grpo.advantages_of(rewarded(run.config, trajectories, step), rl.group_size)
        metrics = rollout_metrics(trajectories) | {"equal_share": equal / rl.num_tasks, "rollout_s": rollout_s}
        soft_shape, ids = (run.config.memory.num_soft, self._executor.config.width), special_ids(run.tokenizer)
        samples = grpo.policy_samples(trajectories, advantages, soft_shape, ids.soft)
        grpo.refuse_stale(samples, weights_version(current.decoder, current.soft_mem))
        parts = np.array_split(random.permutation(len(samples)), rl.minibatches) if samples else []
        metrics |= {"samples": len(samples), "tokens": 0}
        if samples:
            metrics |= self._from_start([samples[i] for i in parts[0][: rl.microbatch]])
        for number, part in enumerate(part for part in parts if len(part)):
            gradients, values = grpo.accumulate(
                self._gradient_of, state.trainable, self._frozen, [samples[i] for i in part],
                run.place.rows(rl.microbatch), ids.pad, max_gap=math.inf if number else self._max_gap,
            )  # fmt: skip
            state = self._update(state, gradients)
            gap = metrics.get("log_prob_gap", values["log_prob_gap"])  # of the first minibatch, where it should be 0
            metrics |= values | {"log_prob_gap": gap, "tokens": metrics["tokens"] + values["tokens"]}
        return state, metrics

    def _from_start(self, samples: Sequence[grpo.PolicySample]) -> dict[str, float]:
        """How far the policy has gone from where it started, estimated on one microbatch that it has just sampled.

        KL(policy || start): of text in nats per token, r - 1 - log r with r = pi_start / pi; of soft tokens in nats per
        dimension, -log r.
        """
        rows, pad = self._run.place.rows(self._run.config.grpo.microbatch), special_ids(self._run.tokenizer).pad
        _, values = grpo.accumulate(self._gradient_of, self._first, self._frozen, samples, rows, pad)
        drift = {"text_kl_to_start": values["text_approximate_kl"]}
        return drift | ({"soft_kl_to_start": -values["soft_log_ratio"]} if "soft_log_ratio" in values else {})

    def _gradient_of(
        self, trainable: Params, frozen: Params, data: grpo.PolicyBatch[np.ndarray], totals: grpo.Totals
    ) -> tuple[Params, Metrics]:
        return self._gradient(trainable, frozen, self._run.place.batch(data), totals)

    def _play(self, model: CompilerModel, step: int, random: np.random.Generator) -> list[Trajectory]:
        """Episodes of drawn tasks, in groups, by models of their own, whose kept prompts make room for the update."""
        run, games, config, rl = self._run, self._games, self._run.config, self._run.config.grpo
        tasks = np.repeat(random.choice(games.tasks.num_train, rl.num_tasks, replace=False), rl.group_size)
        sampling = {"temperature": rl.temperature, "top_k": rl.top_k, "top_p": rl.top_p}
        compiler = make_compiler(config, model, run.tokenizer, **sampling)
        return play(
            games.tasks.rollout, make_executor(config, self._executor, run.tokenizer),
            delivery_in_training(config, compiler), games.seen(0), tasks=tasks.tolist(),
            seeds=config.seed * 1_000_003 + step * len(tasks) + np.arange(len(tasks)),
            top_k=config.memory.top_k, shown=config.memory.shown, max_steps=rl.max_steps,
        )  # fmt: skip


def rewarded(config: Config, trajectories: Sequence[Trajectory], step: int) -> list[Trajectory]:
    """Whose reward each trajectory earns: its own, or under `grpo.rewards=shuffled` that of any one of the batch."""
    count = len(trajectories)
    shuffled = config.grpo.rewards == "shuffled"
    order = np.random.default_rng((config.seed, 10, step)).permutation(count) if shuffled else range(count)
    return [trajectories[i] for i in order]


def rollout_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
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

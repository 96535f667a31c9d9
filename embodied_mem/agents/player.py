"""Playing episodes: a batch of worlds in lockstep with an executor and a delivery of memory.

    trajectories = play(envs, executor, delivery, bank, tasks=range(64), seeds=[0] * 64, top_k=6)
    sum(t.won for t in trajectories)

Rows that are finished leave the batch; what is random in a row depends on its task and seed only, not on its
neighbours.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

import jax
import numpy as np

from embodied_mem.agents.deliveries import Delivered, Delivery
from embodied_mem.agents.executor import Executor
from embodied_mem.agents.views import View, place_of
from embodied_mem.language.prompts import compact_room, executor_prompt
from embodied_mem.memory import MemoryBank
from embodied_mem.types import Episode, Step


@dataclasses.dataclass
class Trajectory:
    """One played episode with what it cost.

    Attributes:
        task: index of the task in the environments.
        seed: of the episode.
        episode: what was seen and done.
        progress: largest share of the goal's conditions that held.
        delivered: what memory gave at each step.
        executor_tokens: (in, out) per step.
        compile_s: wall time of the delivery per step, its batch's time shared evenly.
        execute_s: likewise of the executor.
    """

    task: int
    seed: int
    episode: Episode
    progress: float
    delivered: list[Delivered]
    executor_tokens: list[tuple[int, int]]
    compile_s: float
    execute_s: float

    @property
    def won(self) -> bool:
        """Whether the goal was reached."""
        return self.episode.won

    @property
    def weights_versions(self) -> tuple[int, ...]:
        """The versions of the compiler's weights that made it, in order: one, unless they changed while it played."""
        return tuple(dict.fromkeys(d.record.weights_version for d in self.delivered if d.record is not None))


def row_keys(seeds: Sequence[int], tasks: Sequence[int]) -> jax.Array:
    """PRNG keys [B], each from its row's seed and task."""
    pairs = np.stack([np.asarray(seeds, np.uint32), np.asarray(tasks, np.uint32)], 1)
    return jax.vmap(lambda pair: jax.random.fold_in(jax.random.key(pair[0]), pair[1]))(pairs)


_fold_in = jax.jit(jax.vmap(jax.random.fold_in, (0, None)))


def play(
    envs,
    executor: Executor,
    delivery: Delivery,
    bank: MemoryBank,
    *,
    tasks: Sequence[int],
    seeds: Sequence[int],
    top_k: int,
    full_turns: int = 2,
    max_steps: int | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> list[Trajectory]:
    """Plays one episode per entry of `tasks`, at most `envs.num_envs` of them, and returns them in that order.

    Args:
        envs: vector environment of `embodied_mem.envs`; rows beyond `len(tasks)` stay idle.
        executor: acts.
        delivery: gives memory; `begin` is called once.
        bank: experiences; those of the task being played are left out.
        tasks: task indices; equal indices start from the same state.
        seeds: per row, for sampling.
        top_k: experiences retrieved per episode.
        full_turns: see `executor_prompt`.
        max_steps: stop earlier than the environments do.
        on_step: called after each step with (episodes running, episodes won).
    """
    count = len(tasks)
    indices = [*tasks, *[tasks[0]] * (envs.num_envs - count)]
    observations, info = envs.reset(options={"task_indices": np.asarray(indices)})
    goals, task_ids = list(info["goal"][:count]), list(info["task_id"][:count])
    views = [
        View(
            goals[row],
            compact_room(observations[row].partition("Your task is to:")[0]),
            bank.retrieve(goals[row], top_k=top_k, context=observations[row], exclude_task_ids=(task_ids[row],)),
        )
        for row in range(count)
    ]
    delivery.begin(views)
    steps: list[list[Step]] = [[] for _ in range(count)]
    given: list[list[Delivered]] = [[] for _ in range(count)]
    used: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    current = [observations[row] for row in range(count)]
    won = [False] * count
    progress = [float(p) for p in info["progress"][:count]]
    compile_s, execute_s = np.zeros(count), np.zeros(count)
    keys = row_keys(seeds, tasks)
    running = list(range(count))
    for step in range(max_steps or envs.max_steps):
        active = [views[row] for row in running]
        # Always `count` keys, those of the running rows first: arrays of one shape are compiled once.
        step_keys = _fold_in(keys[np.asarray([*running, *running[:1] * (count - len(running))])], step)
        started = time.perf_counter()
        delivered = delivery.deliver(active, step_keys)
        compiled = time.perf_counter()
        prompts = [
            executor_prompt(
                view.goal, view.room, view.turns, here=place_of(view.turns),
                memory=d.memory, hint=d.hint, num_soft=0 if d.soft is None else len(d.soft), full_turns=full_turns,
            )
            for view, d in zip(active, delivered)
        ]  # fmt: skip
        turn = executor.act(prompts, _fold_in(step_keys, 1), [d.soft for d in delivered])
        done = time.perf_counter()
        actions = ["look"] * envs.num_envs
        for position, row in enumerate(running):
            actions[row] = turn.actions[position]
        observations, _, terminations, truncations, info = envs.step(actions)
        for position, row in enumerate(running):
            steps[row].append(Step(current[row], actions[row]))
            given[row].append(delivered[position])
            used[row].append((turn.tokens_in[position], turn.tokens_out[position]))
            current[row] = observations[row]
            views[row].turns.append((actions[row], observations[row]))
            won[row] = bool(info["won"][row])
            progress[row] = max(progress[row], float(info["progress"][row]))
            compile_s[row] += (compiled - started) / len(running)
            execute_s[row] += (done - compiled) / len(running)
        running = [row for row in running if not (terminations[row] or truncations[row])]
        if on_step:
            on_step(len(running), sum(won))
        if not running:
            break
    return [
        Trajectory(
            int(tasks[row]), int(seeds[row]),
            Episode(task_ids[row], goals[row], tuple(steps[row]), won[row], current[row]),
            progress[row], given[row], used[row], float(compile_s[row]), float(execute_s[row]),
        )
        for row in range(count)
    ]  # fmt: skip

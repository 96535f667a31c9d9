"""Tasks played again and again without clearing memory in between, by the planner-critic agent and its ablations.

    played = play(["full", "no_critic"], make_envs, make_agent, num_tasks=140, runs=2, lives=1)
    print(table(rows_of(played)))

A life is one robot with one memory; each plays its share of the tasks in order, and then all of them once more.
`no_long_term` forgets everything after each task, so that its runs are the same.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from embodied_mem.agents.agent import Agent
from embodied_mem.agents.rollout import Played, rollout
from embodied_mem.evaluation.benchmark import EpisodeResult
from embodied_mem.evaluation.intervals import paired_difference, success_row
from embodied_mem.evaluation.tables import between, difference, markdown, percent
from embodied_mem.language.seats import seat_tokens
from embodied_mem.progress import Progress

Runs = dict[str, list[list[Played]]]
"""Agent -> runs -> outcomes in order of the tasks."""


def play(
    names: Sequence[str],
    make_envs: Callable[[int], Any],
    make_agent: Callable[[str], Agent],
    *,
    num_tasks: int,
    runs: int,
    lives: int,
    lists_actions: bool = False,
    parallel: int = 1,
) -> Runs:
    """Outcomes by agent and run.

    Args:
        names: of the agents.
        make_envs: number of lives -> vector env with the tasks.
        make_agent: name -> a new agent.
        num_tasks: tasks of the env.
        runs: how often the tasks are played.
        lives: robots that share the tasks, each with its own memory, in lockstep.
        lists_actions: as for `rollout`.
        parallel: lives that are played side by side in threads, each in envs of its own; 1 plays them in lockstep.

    An agent with a method `curriculum` (goals -> numbers) says itself in which order it plays them.
    """
    lives = min(lives, num_tasks)
    played: Runs = {}
    for name in names:
        agents = [make_agent(name) for _ in range(lives)]
        order: Sequence[int] = range(num_tasks)
        if curriculum := getattr(agents[0], "curriculum", None):
            _, info = make_envs(num_tasks).reset(options={"task_indices": np.arange(num_tasks)})
            order = curriculum(info["goal"])
        shares = [list(order[life::lives]) for life in range(lives)]
        width = 1 if parallel > 1 else lives
        groups = [slice(first, first + width) for first in range(0, lives, width)]
        worlds = [make_envs(width) for _ in groups]
        with Progress(name, num_tasks * runs, unit="task") as progress, ThreadPoolExecutor(parallel) as pool:
            count = functools.partial(_count, progress, threading.Lock())
            play_group = functools.partial(rollout, on_episode=count, lists_actions=lists_actions)
            played[name] = []
            for _ in range(runs):
                parts = pool.map(play_group, worlds, [agents[own] for own in groups], [shares[own] for own in groups])
                played[name].append(sorted(itertools.chain(*parts), key=lambda one: one.task))
    return played


def _count(progress: Progress, lock: threading.Lock, one: Played) -> None:
    with lock:
        progress.update(steps=one.record.steps)


def episodes_of(played: Runs, task_names: Sequence[str]) -> list[EpisodeResult]:
    """Return the results of the episodes, tasks by their names."""
    return [
        EpisodeResult(
            name, task_names[o.task], o.won, o.progress, o.record.steps, run=run,
            tokens=seat_tokens(o.record.seats), milliseconds=1000 * (o.record.memory_s + o.record.think_s),
            more={"replans": o.record.replans, "vetoes": o.record.vetoes, **o.record.seats},
        )
        for name, runs in played.items()
        for run, outcomes in enumerate(runs, 1)
        for o in outcomes
    ]  # fmt: skip


def rows_of(played: Runs) -> dict[str, list[dict[str, Any]]]:
    """Return the numbers of each agent, a row per run."""
    full = played.get("full")
    return {
        name: [row_of(outcomes, runs[0], full[run] if full else None) for run, outcomes in enumerate(runs)]
        for name, runs in played.items()
    }


def row_of(outcomes: Sequence[Played], first: Sequence[Played] | None, full: Sequence[Played] | None) -> dict[str, Any]:
    """Return one agent's numbers in one run.

    Differences to its first run and to the full agent in this run are paired.
    """
    records = [outcome.record for outcome in outcomes]
    won, steps = _won_and_steps(outcomes)
    row = success_row(won) | {
        "steps": float(steps.mean()),
        "replans": float(np.mean([record.replans for record in records])),
        "vetoes": float(np.mean([record.vetoes for record in records])),
        "memory_ms_per_step": 1e3 * float(np.array([record.memory_s for record in records]).sum()) / steps.sum(),
        "planning_ms_per_step": 1e3 * float(np.array([record.think_s for record in records]).sum()) / steps.sum(),
    }
    for name, other in (("first_run", first), ("full", full)):
        if other is not None and other is not outcomes:
            other_won, other_steps = _won_and_steps(other)
            row[f"success_difference_to_{name}"] = list(paired_difference(won, other_won))
            row[f"steps_difference_to_{name}"] = list(paired_difference(steps, other_steps))
    return row


def _won_and_steps(outcomes: Sequence[Played]) -> np.ndarray:
    """float[2, tasks]."""
    return np.array([(outcome.won, outcome.record.steps) for outcome in outcomes], float).T


def table(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Return the comparison as a Markdown table."""
    head = ["agent", "run", "success", "95 % interval", "vs full, paired", "steps", "steps vs full"]
    head += ["steps vs first run", "replans", "vetoes", "memory ms/step"]
    return markdown(
        head,
        [
            [
                name, str(run), percent(row["success"]), between(row["interval"]),
                difference(row.get("success_difference_to_full")), f"{row['steps']:.2f}",
                *(difference(row.get(f"steps_difference_to_{other}"), 1, 2) for other in ("full", "first_run")),
                *(f"{row[key]:.2f}" for key in ("replans", "vetoes", "memory_ms_per_step")),
            ]
            for name, runs in rows.items()
            for run, row in enumerate(runs, 1)
        ],
    )  # fmt: skip

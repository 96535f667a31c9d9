"""Tasks played twice in homes that an agent lives in: what is its memory of a home worth there?

    --twice 15

Each task has a home of its own, of whose name the agent is told, things are hidden where the world can hide them, and
an episode has few steps. A new robot plays the task a first time, and once more with what it remembers (`kept`). Two
controls play the second time: one whose memory was wiped, and one that takes the memory of the next task's home for
this one's (`other home`), as wrong as memory can be. No robot has seen training tasks.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import numpy as np

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import ABLATIONS
from embodied_mem.agents.planner_critic.beliefs import in_home
from embodied_mem.agents.rollout import Played, rollout
from embodied_mem.agents.trace import open_trace, traced
from embodied_mem.evaluation.benchmark import AgentNumbers, episodes_data
from embodied_mem.evaluation.benchmarks.planner import (
    PlannerBenchmark,
    PlannerConfig,
    episode_of,
    numbers_of,
    scored_tasks,
)
from embodied_mem.evaluation.intervals import paired_difference, success_row
from embodied_mem.evaluation.report import write_result
from embodied_mem.evaluation.tables import difference, markdown, rate
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.progress import Progress

ROWS = ("first", "kept", "wiped", "other home")
"""The first time, and three second times."""
LABELS = {
    "first": "first time",
    "kept": "second time, memory kept",
    "wiped": "second time, memory wiped",
    "other home": "second time, memory of another home",
}


class Named:
    """Envs whose first texts name the home: `home`, or that of the task, which is called as the task is."""

    def __init__(self, world: Any, home: str = ""):
        self._world, self._home = world, home
        self.num_envs, self.max_steps = world.num_envs, world.max_steps

    def reset(self, *, options: dict[str, Any]) -> tuple[list[str], Any]:
        observations, info = self._world.reset(options=options)
        homes = [self._home or name for name in info["task_id"]]
        return [in_home(home, text) for home, text in zip(homes, observations)], info

    def step(self, actions: Sequence[str], /) -> Any:
        return self._world.step(actions)


def live(
    benchmark: PlannerBenchmark,
    task: Any,
    home: str,
    memory: LifelongMemory | None,
    max_steps: int,
    trace: TextIO | None = None,
    name: str = "",
) -> tuple[Played, LifelongMemory]:
    """A task played in the home of this name by an agent with this memory, or a new one; with what it remembers.

    It is written to `trace` under its `name`.
    """
    world = envs.make(benchmark.world, tasks=[task], num_envs=1, max_steps=max_steps)
    named = Named(benchmark.hides(world), home)
    agent = benchmark.agent(ABLATIONS["full"], memory)
    [played] = rollout(named, [traced(agent, trace, name)], [[0]], lists_actions=benchmark.lists_actions)
    return played, agent.memory


def play_twice(
    benchmark: PlannerBenchmark,
    tasks: Sequence[Any],
    max_steps: int,
    progress: Progress,
    trace: TextIO | None = None,
) -> dict[str, list[AgentNumbers]]:
    """Numbers of each of `ROWS`, tasks in order."""
    rows: dict[str, list[AgentNumbers]] = {name: [] for name in ROWS}
    for i, task in enumerate(tasks):
        home = task.name
        played, memory = live(benchmark, task, home, None, max_steps, trace, "first")
        _, other = live(benchmark, tasks[(i + 1) % len(tasks)], home, None, max_steps)
        seconds = {"kept": memory.fork(), "wiped": None, "other home": other.fork()}
        outcomes = {"first": played} | {
            name: live(benchmark, task, home, kept, max_steps, trace, name)[0] for name, kept in seconds.items()
        }
        for name, outcome in outcomes.items():
            rows[name].append(numbers_of(outcome))
        progress.update(won=outcomes["kept"].won)
    return rows


def evaluate_twice(
    benchmark: PlannerBenchmark, config: PlannerConfig, facts: dict[str, Any], result: pathlib.Path | None
) -> dict[str, Any]:
    """The report of `PlannerBenchmark.evaluate` for `config.twice`; `facts` are its manifest."""
    subsets = config.subsets or benchmark.subsets
    played = {}
    with open_trace(config.trace) as trace:
        for subset in subsets:
            tasks = scored_tasks(benchmark, subset)[: config.num_tasks or None]
            names = [task.name for task in tasks]
            with Progress(f"{subset}, twice", len(tasks), unit="task") as progress:
                played[subset] = names, play_twice(benchmark, tasks, config.twice, progress, trace)
    report = {"twice": {subset: rows_of(rows) for subset, (_, rows) in played.items()}, **facts}
    report |= episodes_data(
        benchmark.world,
        [
            dataclasses.replace(episode_of(name, subset, task, 0, row), run=1 if name == "first" else 2)
            for subset, (tasks, rows) in played.items()
            for name, column in rows.items()
            for task, row in zip(tasks, column)
        ],
        max_steps=config.twice,
    )
    if result:
        write_result(result, report)
    return report


def rows_of(rows: dict[str, list[AgentNumbers]]) -> dict[str, dict[str, Any]]:
    """Success and steps of each row with 95 % intervals; paired differences to the second time without memory."""
    won = {name: np.array([row.won for row in column], float) for name, column in rows.items()}
    steps = {name: np.array([row.steps for row in column], float) for name, column in rows.items()}
    return {
        name: success_row(won[name])
        | {
            "steps": float(steps[name].mean()),
            "success_difference_to_wiped": list(paired_difference(won[name], won["wiped"])),
            "steps_difference_to_wiped": list(paired_difference(steps[name], steps["wiped"])),
            "tasks": len(column),
        }
        for name, column in rows.items()
    }


def table(subsets: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The rows as a Markdown table."""
    columns = [column for subset in subsets for column in (f"{subset}: success", "vs wiped", "steps", "vs wiped")]
    lines = []
    for name in ROWS:
        cells = [LABELS[name]]
        for row in (rows[name] for rows in subsets.values()):
            second = name in ("kept", "other home")
            cells.append(rate(row["success"], row["interval"]))
            cells.append(difference(row["success_difference_to_wiped"]) if second else "-")
            cells.append(f"{row['steps']:.1f}")
            cells.append(difference(row["steps_difference_to_wiped"], 1, 1) if second else "-")
        lines.append(cells)
    return markdown(["robot", *columns], lines)

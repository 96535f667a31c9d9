"""Agents of other papers beside ours on the subsets of a world, tasks played again without clearing memory.

    --runs 3 --max_steps 15 --agents full first_reading reflexion voyager cradle

Each task has a home of its own, of whose name every agent is told, and things are hidden where the world can hide them.
A robot lives through a subset and then through it again. Ours begins with the memory of the training tasks, since the
player of the others knows where such things usually are. Agents of other papers read the world in its text adapter's
sentences, and a player by rules that remembers nothing acts for them (`TaskSource.player`); it carries out one
reading of the instruction, as `first_reading` does. `full` may try others. Steps are the world's own in every row.
"""

from __future__ import annotations

import dataclasses
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from embodied_mem import envs, registry
from embodied_mem.agents.rollout import Played
from embodied_mem.evaluation.benchmark import episodes_data
from embodied_mem.evaluation.benchmarks import lifelong
from embodied_mem.evaluation.benchmarks.delivery import source_of
from embodied_mem.evaluation.benchmarks.twice import Named
from embodied_mem.evaluation.report import write_result
from embodied_mem.memory.lifelong import LifelongMemory

from .planner import AGENTS as PLANNERS
from .planner import PlannerBenchmark, PlannerConfig, remember, scored_tasks


def play_again(
    benchmark: PlannerBenchmark,
    memories: Mapping[str, LifelongMemory | None],
    tasks: Sequence[Any],
    max_steps: int,
    runs: int,
) -> lifelong.Runs:
    """Outcomes by row and run; rows of agents of other papers say that rules act.

    Args:
        benchmark: of the world.
        memories: name of each agent -> what it begins with.
        tasks: that are played.
        max_steps: of an episode.
        runs: how often.
    """

    def ours(name: str) -> Any:
        memory = memories[name]
        return benchmark.agent(PLANNERS[name], memory.fork() if memory else None)

    def native(count: int) -> Any:
        world = envs.make(benchmark.world, tasks=list(tasks), num_envs=count, max_steps=max_steps)
        return Named(benchmark.hides(world))

    def adapted(count: int) -> Any:
        return Named(source_of(benchmark.world).envs(tasks, count, max_steps))

    settings: dict[str, Any] = {"num_tasks": len(tasks), "runs": runs, "lives": 1}
    played: lifelong.Runs = {}
    for name in memories:
        if name in PLANNERS:
            played |= lifelong.play([name], native, ours, lists_actions=benchmark.lists_actions, **settings)
            continue

        def by_rules(row: str, name: str = name) -> Any:
            return registry.load("agents", name)(player=source_of(benchmark.world).player())

        [outcomes] = lifelong.play([f"{name} (rules)"], adapted, by_rules, **settings).values()
        played[f"{name} (rules)"] = [[_counted(one) for one in run] for run in outcomes]
    return played


def _counted(outcome: Played) -> Played:
    """The same with the world's own steps, of which a command may take several, or none."""
    record = dataclasses.replace(outcome.record, steps=max(int(outcome.info["steps"][outcome.row]), 1))
    return dataclasses.replace(outcome, record=record)


def evaluate_again(
    benchmark: PlannerBenchmark, config: PlannerConfig, facts: dict[str, Any], result: pathlib.Path | None
) -> dict[str, Any]:
    """The report of `PlannerBenchmark.evaluate` for `config.runs`; `facts` are its manifest."""
    started = time.perf_counter()
    again, episodes = {}, []
    training = benchmark.training()[: config.training_tasks or None]
    memories = {
        name: remember(benchmark, PLANNERS[name], training) if name in PLANNERS else None for name in config.agents
    }
    for subset in config.subsets or benchmark.subsets:
        tasks = scored_tasks(benchmark, subset)[: config.num_tasks or None]
        played = play_again(benchmark, memories, tasks, config.max_steps, config.runs)
        again[subset] = lifelong.rows_of(played)
        names = [task.name for task in tasks]
        episodes += [dataclasses.replace(one, subset=subset) for one in lifelong.episodes_of(played, names)]
    report = {"again": again, **facts, "seconds": round(time.perf_counter() - started, 1)}
    report |= episodes_data(
        benchmark.world, episodes, max_steps=config.max_steps, runs=config.runs, training_tasks=len(training)
    )
    if result:
        write_result(result, report)
    return report


def table(subsets: Mapping[str, Mapping[str, Any]]) -> str:
    """The rows of each subset as Markdown tables."""
    return "\n\n".join(f"{subset}\n\n{lifelong.table(rows)}" for subset, rows in subsets.items())

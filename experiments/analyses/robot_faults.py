"""Plays generated homes with a robot whose skills fail, twice with memory kept, by the agent and its ablations.

    python experiments/analyses/robot_faults.py --result experiments/results/robot_faults.json

Each agent plays the tasks in order, and then all of them once more with what it remembers, once with a robot that never
fails and once with one that does. A fault is recovered if the task is won after it. The robot's time is simulated.

Errors are those of the agent, in RoboMemory's kinds (4.4, where people read the trajectories of failed tasks; this is a
rule for what a program sees). A command that has no effect, though the robot did nothing wrong, is an error of

- perception, if planner and critic were told something wrong: what is held, or where the robot is, is not as believed;
- reasoning, if what they knew was right and said so: the same command had no effect before, and nothing has changed;
- planning otherwise: the planner gave a command that is not right here.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from embodied_mem import envs
from embodied_mem.agents.agent import Agent
from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.agents.robot.runner import Limits, Run, Runner
from embodied_mem.agents.robot.simulated import Faults, Roles, SimulatedRobot
from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.intervals import paired_difference, success_row
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.progress import Progress
from embodied_mem.registry import load
from embodied_mem.worlds.alfworld.generator import generate

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from experiments.solvers.embodiedbench import AGENTS

ROLES = Roles(take="take", put="put", open="open", go="go_to")
FAULTS = Faults(grasp=0.15, slip=0.05, stuck=0.15, wrong=0.05, blind=0.1, late=0.05)
LIMITS = Limits(max_steps=50)
RUNS = 2
KINDS = ("planning", "reasoning", "perception")


@dataclasses.dataclass
class Task:
    """One task that was played.

    Attributes:
        won: whether the goal was reached.
        steps: skills asked for.
        seconds: of the robot's answers that were late.
        injected: kinds of the faults.
        mistakes: of the agent.
        replans, vetoes: as `TaskRecord`.
    """

    won: bool
    steps: int
    seconds: float
    injected: list[str]
    mistakes: list[str]
    replans: int
    vetoes: int


class Watched(Agent):
    """An agent with a note of what it believes, and what is so, at each command."""

    def __init__(self, agent: PlannerCriticAgent, robot: SimulatedRobot):
        self._agent, self._robot = agent, robot
        self.states: list[tuple[tuple[str, str], tuple[str, str]]] = []

    def reset(self, goal: str, observation: str, info: Mapping[str, Any]) -> None:
        self._agent.reset(goal, observation, info)

    def act(self, observation: str, info: Mapping[str, Any]) -> str | None:
        command = self._agent.act(observation, info)
        self.states.append((self._agent.believed, (self._robot.held, self._robot.at)))
        return command

    def end(self, won: bool, observation: str) -> None:
        self._agent.end(won, observation)


def play(agent: PlannerCriticAgent, robot: SimulatedRobot, task: int, attempt: int) -> Task:
    """Return one task."""
    robot.begin(task, attempt)
    began, watched = robot.clock.now, Watched(agent, robot)
    done = Runner(robot, LIMITS, clock=robot.clock).run(watched, robot.goal, robot.task_id, lambda: robot.won)
    faults = [one.fault for one in robot.injected]
    mistakes = mistakes_of(done, watched, robot)
    record = agent.record
    return Task(
        done.won, len(done.steps), robot.clock.now - began, faults, mistakes, record.replans, record.vetoes
    )  # fmt: skip


def mistakes_of(done: Run, watched: Watched, robot: SimulatedRobot) -> list[str]:
    """Return the agent's errors, in order."""
    hit = {one.step for one in robot.injected if one.fault in ("grasp", "stuck")}
    return sort_errors(
        (step.command, not worked, number in hit, believed, true)
        for number, (step, worked, (believed, true)) in enumerate(zip(done.steps, robot.worked, watched.states), 1)
    )


def sort_errors(commands: Iterable[tuple[str, bool, bool, tuple[str, str], tuple[str, str]]]) -> list[str]:
    """Sort errors into `KINDS`.

    A row is the command, failure, whether a fault was why, what was believed, what was true.
    """
    errors: list[str] = []
    refused: set[tuple[str, tuple[str, str]]] = set()
    for command, has_failed, is_injected, believed, true in commands:
        if not has_failed:
            refused.clear()
        elif not is_injected:
            is_again = (command, true) in refused
            errors.append("perception" if believed != true else "reasoning" if is_again else "planning")
            refused.add((command, true))
    return errors


def rows_of(played: Mapping[str, Sequence[Sequence[Task]]]) -> dict[str, list[dict[str, Any]]]:
    """Return a row per agent and run.

    Differences are paired, to the full agent and to its own first run.
    """

    def columns(tasks: Sequence[Task]) -> np.ndarray:
        return np.array([(task.won, task.steps) for task in tasks], float).T

    rows: dict[str, list[dict[str, Any]]] = {}
    for name, runs in played.items():
        rows[name] = []
        for number, tasks in enumerate(runs):
            won, steps = columns(tasks)
            faults = Counter(fault for task in tasks for fault in task.injected)
            recovered = Counter(fault for task in tasks if task.won for fault in task.injected)
            row = success_row(won) | {
                "steps": float(steps.mean()),
                "late_s": float(np.mean([task.seconds for task in tasks])),
                **{key: float(np.mean([getattr(task, key) for task in tasks])) for key in ("replans", "vetoes")},
                "faults": dict(sorted(faults.items())),
                "recovered": dict(sorted(recovered.items())),
                "tasks_with_error": {kind: sum(kind in task.mistakes for task in tasks) for kind in KINDS},
                "lost_with_error": {
                    kind: sum(kind in task.mistakes and not task.won for task in tasks) for kind in KINDS
                },
                "lost": sum(not task.won for task in tasks),
            }
            for key, other in (("first_run", runs[0]), ("full", played["full"][number] if "full" in played else None)):
                if other is not None and other is not tasks:
                    other_won, other_steps = columns(other)
                    row[f"success_difference_to_{key}"] = list(paired_difference(won, other_won))
                    row[f"steps_difference_to_{key}"] = list(paired_difference(steps, other_steps))
            rows[name].append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num_tasks", type=int, default=60, help="generated homes with a task each")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--seed", type=int, default=0, help="of homes and faults")
    parser.add_argument("--result", type=output_file, help="JSON file for the report")
    options = parser.parse_args()
    games = [game.load() for game in generate(options.num_tasks, seed=options.seed, split="valid")]
    rows = {}
    for condition, faults in (("no faults", Faults()), ("faults", FAULTS)):
        played: dict[str, list[list[Task]]] = {}
        for name in options.agents:
            config = AGENTS[name]
            agent = PlannerCriticAgent.for_world("alfworld", config)
            world = envs.make("alfworld", tasks=games, num_envs=1, max_steps=None)
            robot = SimulatedRobot(world, load("alfworld", "skills")(config), ROLES, faults, seed=options.seed)
            with Progress(f"{condition}: {name}", len(games) * RUNS, unit="task") as progress:
                played[name] = []
                for attempt in range(RUNS):
                    tasks = []
                    for task in range(len(games)):
                        tasks.append(play(agent, robot, task, attempt))
                        progress.update(won=tasks[-1].won)
                    played[name].append(tasks)
        rows[condition] = rows_of(played)
    settings = {"limits": dataclasses.asdict(LIMITS), "faults": dataclasses.asdict(FAULTS)}
    report = {"rows": rows, **manifest(num_tasks=len(games), seed=options.seed, runs=RUNS, **settings)}
    if options.result:
        write_result(options.result, report)
    print(json.dumps({name: [row["success"] for row in runs] for name, runs in rows["faults"].items()}))


if __name__ == "__main__":
    run(main)

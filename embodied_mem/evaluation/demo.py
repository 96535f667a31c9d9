"""The worth of memory, shown in the terminal within seconds: needs no data, no model and no extra.

    embodied-mem demo                    # four generated homes, twelve tasks in each
    embodied-mem demo --homes 20         # enough homes for an interval over homes
    embodied-mem demo --trace demo.jsonl && embodied-mem view demo.jsonl     # both robots step by step, as a page
    embodied-mem demo --commands         # every command of both robots, side by side

Two robots get the same tasks in the same homes, one after the other. They are the same agent by rules and differ in
one thing: one starts each task with empty memories, the other keeps them from task to task. In such a home each kind of
thing has a place of its own, drawn evenly from all that can hold it, so nobody can guess it and only memory tells. A
task may take 15 steps, which a search often exceeds. Real homes are easier to guess, and memory is worth less there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import TextIO

import numpy as np

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.agents.rollout import Played, rollout
from embodied_mem.agents.trace import open_trace, traced
from embodied_mem.envs import make
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.command import output_file
from embodied_mem.evaluation.intervals import paired_difference, wilson
from embodied_mem.evaluation.tables import difference, rate
from embodied_mem.registry import card, load, names

ROBOTS = ("without memory", "with memory")

MAX_STEPS = 15
MIN_HOMES = 10
"""Homes from which on the interval is one over homes."""

_WIDTH = 38


def demo(
    num_homes: int, num_tasks: int, seed: int, output: TextIO, commands: bool = False, trace: TextIO | None = None
) -> np.ndarray:
    """Play and print; return float[homes, tasks, 2 robots, 2].

    The last axis holds won, and steps taken.

    Args:
        num_homes: homes of the seeds from `seed` on.
        num_tasks: of each home, in order.
        seed: of the first home.
        output: where the text goes.
        commands: whether all commands are shown; else those of the last task.
        trace: gets what both robots saw, were given by memory and did, see `agents.trace`.
    """
    world = next(name for name in names("generated") if card(name).agent)
    results = np.zeros((num_homes, num_tasks, len(ROBOTS), 2))
    for home in range(num_homes):
        envs = make(
            world, num_envs=len(ROBOTS), max_steps=MAX_STEPS, **load(world, "generated")(num_tasks, seed + home)
        )
        remembers = PlannerCriticAgent.for_world(world)
        print(f"\n{'Home ' + str(seed + home):52}{'   '.join(ROBOTS)}", file=output)
        for task in range(num_tasks):
            agents = [PlannerCriticAgent.for_world(world), remembers]
            robots = [traced(one, trace, name) for one, name in zip(agents, ROBOTS)]
            both = sorted(rollout(envs, robots, [[task], [task]]), key=lambda played: played.row)
            results[home, task] = [(played.won, len(played.actions)) for played in both]
            cells = "".join(f"{steps_of(played):>{len(name) + 3}}" for name, played in zip(ROBOTS, both))
            print(f"{task + 1:3} {both[0].info['goal'][0]:45.45}{cells}", file=output, flush=True)
            if commands or (home, task) == (num_homes - 1, num_tasks - 1):
                print(side_by_side(both), file=output, flush=True)
    return results


def steps_of(played: Played) -> str:
    """Give the steps of a solved task, or say `not solved`."""
    return f"{len(played.actions)} steps" if played.won else "not solved"


def side_by_side(both: Sequence[Played]) -> str:
    """Show the commands of two episodes in two columns."""
    longest = max(len(played.actions) for played in both)
    left, right = ([*played.actions, *[""] * (longest - len(played.actions))] for played in both)
    return "\n".join(f"      {a:{_WIDTH}.{_WIDTH}}  {b}".rstrip() for a, b in zip(left, right))


def table(results: np.ndarray) -> str:
    """Compare both robots: shares solved, steps, and what the intervals are of.

    Args:
        results: float[homes, tasks, 2, 2], as `demo` returns.
    """
    won, steps = np.moveaxis(results, -1, 0)
    homes, tasks, _ = won.shape
    lines = [f"{'':18}{'solved':>24}{'steps per task':>18}"]
    for robot, name in enumerate(ROBOTS):
        share = float(won[..., robot].mean())
        solved = rate(share, wilson(share, homes * tasks), 0)
        lines.append(f"{name:18}{solved:>24}{steps[..., robot].mean():>18.1f}")
    unit = "homes" if homes >= MIN_HOMES else "tasks"
    lines += [
        "",
        f"In brackets: 95 % intervals, of the gains over {homes if unit == 'homes' else homes * tasks} {unit}. A task "
        f"not solved counts with the {MAX_STEPS} steps",
        "that it may take, or with fewer where the robot gave up.",
    ]
    if unit == "tasks":
        lines.append(f"Tasks of a home share its memory, and {homes} home(s) are few: embodied-mem demo --homes 20")
    return "\n".join(lines)


def gain(results: np.ndarray) -> str:
    """State the gain of memory in tasks and steps in one sentence.

    Args:
        results: float[homes, tasks, 2, 2], as `demo` returns.
    """
    won, steps = np.moveaxis(results, -1, 0)
    homes, tasks, _ = won.shape
    unit = (homes, tasks) if homes >= MIN_HOMES else (homes * tasks, 1)
    solved, taken = (
        paired_difference(*(numbers[..., robot].reshape(unit) for robot in (1, 0))) for numbers in (won, steps)
    )
    more = int(won[..., 1].sum() - won[..., 0].sum())
    saved = 1 - steps[..., 1].mean() / steps[..., 0].mean()
    return (
        f"With memory the robot solved {abs(more)} {'more' if more >= 0 else 'fewer'} of {homes * tasks} tasks "
        f"({difference(solved, 100, 0)} points) and changed\nits steps per task by {difference(taken, 1, 1)}, "
        f"which is {100 * abs(saved):.0f} % {'less' if saved >= 0 else 'more'}."
    )


def main(arguments: Sequence[str] | None = None, prog: str = "embodied-mem demo", output: TextIO | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--homes", type=int, default=4, help="generated homes, a seed each; default: 4")
    parser.add_argument("--tasks", type=int, default=12, help="tasks in each home; default: 12")
    parser.add_argument("--seed", type=int, default=0, help="of the first home; the others have the next ones")
    parser.add_argument("--commands", action="store_true", help="show all commands, side by side")
    parser.add_argument("--trace", type=output_file, help="JSON lines for `embodied-mem view`")
    options = parser.parse_args(None if arguments is None else list(arguments))
    for name, least in (("homes", 1), ("tasks", 1), ("seed", 0)):
        if getattr(options, name) < least:
            raise InvalidInputError(f"--{name}: expected >= {least}, got {getattr(options, name)}")
    output = output or sys.stdout
    began = time.perf_counter()
    with open_trace(options.trace) as trace:
        results = demo(options.homes, options.tasks, options.seed, output, options.commands, trace)
    seconds = time.perf_counter() - began
    played = f"{results[..., 1].sum():.0f} steps in {seconds:.1f} s."
    print(f"\n{table(results)}\n{played}\n\n{gain(results)}", file=output)
    return 0

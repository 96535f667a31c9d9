"""The same actions in a native world and in the real simulator of its name, compared step by step.

    embodied-mem parity eb_habitat --backend embodiedbench --tasks 50 --python PYTHON --folder CHECKOUT

The actions are planned in the native world, with some mistakes between them, and are then played in both. Compared are
the instruction, and after each step the feedback, whether the action was valid, progress, success and whether the
episode is over. After a first difference the two are in different states, so what follows says less; the report counts
steps until then apart. A finished task is on the disk: a command that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import pathlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from embodied_mem.atomic_file import write_text
from embodied_mem.envs import make
from embodied_mem.errors import InvalidInputError, SimulatorError
from embodied_mem.evaluation.report import commit, manifest, write_result
from embodied_mem.evaluation.tables import markdown, percent
from embodied_mem.parallel.resume import kept_beside
from embodied_mem.progress import Progress
from embodied_mem.registry import card, load, names

ASPECTS = ("feedback", "valid", "progress", "won", "over")
"""Values compared after each step."""


class Parity(Protocol):
    """A world's part "parity": how it is held against its simulator.

    Attributes:
        options: of the native envs.
    """

    options: Mapping[str, Any]

    def actions(self, env: Any, rng: np.random.Generator) -> list[str]:
        """Return the actions to play in an episode that begins as `env`.

        `env` is a copy of the native env.
        """

    def feedback(self, observation: str) -> str:
        """Return the part of a native observation that the simulator says, too."""


def compare(native: Any, simulator: Any, world: Parity, number: int, seed: int) -> dict[str, Any]:
    """Play one task in two vector envs of one env each.

    Returns what each said of each step.

    Args:
        native: where the actions are planned.
        simulator: played after it.
        world: the world's part.
        number: the task's place in its set.
        seed: decides, with the task, which mistakes are made.
    """
    places = [_number(native.task_id(index)) for index in range(native.num_tasks)]
    _, info = native.reset(options={"task_indices": [places.index(number)]})
    try:
        _, simulated = simulator.reset(options={"task_indices": [number]})
    except SimulatorError as error:
        return {"goals": (str(info["goal"][0]), ""), "steps": [], "crash": str(error)}
    goals = str(info["goal"][0]), str(simulated["goal"][0])
    actions = world.actions(native.env(0), np.random.default_rng([seed, number]))
    steps, invalid = [], [0, 0]
    for action in actions:
        told = []
        for k, envs in enumerate((native, simulator)):
            observations, _, terminations, truncations, info = envs.step([action])
            invalid_now = int(info["num_invalid"][0])
            told.append({
                "feedback": observations[0] if k else world.feedback(observations[0]),
                "valid": invalid_now == invalid[k],
                "progress": round(float(info["progress"][0]), 6),
                "won": bool(info["won"][0]),
                "over": bool(terminations[0] or truncations[0]),
            })  # fmt: skip
            invalid[k] = invalid_now
        differs = [aspect for aspect in ASPECTS if told[0][aspect] != told[1][aspect]]
        steps.append({"action": action, "native": told[0], "simulator": told[1], "differs": differs})
        crash = str(info["crash_reason"][0])
        if crash or told[0]["over"] or told[1]["over"]:
            return {"goals": goals, "steps": steps, "crash": crash}
    return {"goals": goals, "steps": steps, "crash": ""}


def summary(tasks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts of a comparison.

    They are tasks, steps per aspect, first differences by kind of action.
    """
    steps = [step for task in tasks.values() for step in task["steps"]]
    first = {name: _first(task["steps"]) for name, task in tasks.items()}
    until = 0
    for name, task in tasks.items():
        place = first[name]
        until += len(task["steps"]) if place is None else place
    kinds = Counter(step["action"].split(" ")[0] for step in steps)
    causes: Counter[tuple[str, str]] = Counter()
    for name, place in first.items():
        if place is not None:
            step = tasks[name]["steps"][place]
            causes[step["action"].split(" ")[0], ", ".join(step["differs"])] += 1
    return {
        "tasks": len(tasks),
        "equal_tasks": sum(place is None and not tasks[name]["crash"] for name, place in first.items()),
        "equal_instructions": sum(task["goals"][0] == task["goals"][1] for task in tasks.values()),
        "crashed_tasks": sum(bool(task["crash"]) for task in tasks.values()),
        "steps": len(steps),
        "steps_before_a_difference": until,
        "equal": {aspect: sum(aspect not in step["differs"] for step in steps) for aspect in ASPECTS},
        "actions": dict(kinds),
        "first_differences": [[kind, aspects, count] for (kind, aspects), count in causes.most_common()],
    }


def readable(report: Mapping[str, Any]) -> str:
    """Return a report as Markdown."""
    found = report["summary"]
    steps = max(found["steps"], 1)
    lines = [
        f"# {report['world']} in {report['backend']}, {report['tasks_of']}, seed {report['seed']}", "",
        f"`{report['command']}`, commit {report['commit'][:7]}", "",
        f"{found['equal_tasks']} of {found['tasks']} tasks are equal in every step, "
        f"{found['equal_instructions']} have the same instruction, {found['crashed_tasks']} crashed. "
        f"{found['steps_before_a_difference']} of {found['steps']} steps come before a first difference.", "",
        markdown(
            ["after each step", "equal", "of", "share"],
            [[name, str(n), str(found["steps"]), percent(n / steps)] for name, n in found["equal"].items()],
        ), "",
    ]  # fmt: skip
    if found["first_differences"]:
        rows = [[kind, aspects, str(count)] for kind, aspects, count in found["first_differences"]]
        lines += [markdown(["first difference at", "in", "tasks"], rows), ""]
    for name, task in report["tasks"].items():
        place = _first(task["steps"])
        if task["goals"][0] != task["goals"][1]:
            lines += [f"- {name}: instruction {task['goals'][0]!r}, simulator {task['goals'][1]!r}"]
        if task["crash"]:
            lines += [f"- {name}: crashed: {task['crash'].splitlines()[-1]}"]
        if place is not None:
            step = task["steps"][place]
            said = [
                f"{aspect} {step['native'][aspect]!r}, simulator {step['simulator'][aspect]!r}"
                for aspect in step["differs"]
            ]
            lines += [f"- {name}, step {place + 1}, `{step['action']}`: {'; '.join(said)}"]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str], prog: str = "embodied-mem parity") -> dict[str, Any]:
    """Compare a world with its simulator and write the report.

    It is written as JSON and beside it as Markdown.
    """
    parser = argparse.ArgumentParser(prog=prog, description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("world", choices=names("parity"))
    parser.add_argument("--backend", help="the simulator; default: the world's first")
    parser.add_argument("--tasks", type=int, default=50, help="number of tasks, from the first of the set; default: 50")
    parser.add_argument("--set", default="", help="episode set; default: the world's own")
    parser.add_argument("--seed", type=int, default=0, help="decides the mistakes; default: 0")
    parser.add_argument("--result", type=pathlib.Path, help="default: parity_<world>.json")
    for name, about in (("python", "the simulator's interpreter"), ("folder", "the checkout of its program")):
        parser.add_argument(f"--{name}", help=about)
    parser.add_argument("--gpu", type=int, help="device that renders, where a choice is offered")
    given = parser.parse_args(list(arguments))
    if given.tasks < 1:
        raise InvalidInputError(f"--tasks: expected >= 1, got {given.tasks}")
    world: Parity = load(given.world, "parity")
    backend = given.backend or next(iter(card(given.world).backends))
    tasks_of = given.set or load(given.world, "env").default_tasks
    result = given.result or pathlib.Path(f"parity_{given.world}.json")
    placed = {name: value for name in ("python", "folder", "gpu") if (value := getattr(given, name)) is not None}
    native = make(given.world, tasks=tasks_of, **world.options)
    settings = {"world": given.world, "backend": backend, "tasks_of": tasks_of, "seed": given.seed}
    belongs_to = {**settings, "commit": commit(), **{name: str(value) for name, value in placed.items()}}
    numbers = sorted(_number(native.task_id(index)) for index in range(native.num_tasks))[: given.tasks]
    row: Callable[..., list[Any]] | None = None  # a task's report, as it is
    with kept_beside(result, "tasks", belongs_to, row) as finished:
        left = [number for number in numbers if ("", tasks_of, str(number)) not in finished.rows]
        simulator = make(given.world, backend=backend, tasks=tasks_of, **placed) if left else None
        try:
            title = f"{given.world} in {backend}"
            with Progress(title, len(numbers), start=len(numbers) - len(left), unit="task", interval_s=10) as progress:
                for number in left:
                    played = compare(native, simulator, world, number, given.seed)
                    finished.add("", tasks_of, str(number), [played])
                    progress.update(differences=_differences(finished.rows))
        finally:
            if simulator is not None:
                simulator.close()
        tasks = {f"{tasks_of}/{number}": finished.rows["", tasks_of, str(number)][0] for number in numbers}
        report = {**settings, **manifest(), "summary": summary(tasks), "tasks": tasks}
        write_result(result, report)
        write_text(result.with_suffix(".md"), readable(report))
    print(readable(report))
    return report


def _number(task_id: str) -> int:
    return int(task_id.rpartition("/")[2])


def _first(steps: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the place of the first step that differs."""
    return next((place for place, step in enumerate(steps) if step["differs"]), None)


def _differences(rows: Mapping[Any, Sequence[Any]]) -> int:
    return sum(_first(row[0]["steps"]) is not None for row in rows.values())

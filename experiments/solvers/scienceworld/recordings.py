"""Records teacher episodes of ScienceWorld once: the simulator's own solutions with detours.

    recordings = record_all(pairs, "recordings.jsonl", detour=0.15, seed=0)
    recordings[0].steps[3]          # Taught("go to kitchen", "The door is not open.", "open door to kitchen")

The simulator needs seconds for a solution and a process of its own, so training reads what was recorded and plays
nothing. A label is the command that the teacher would give; in a detour another one is given. Detours are commands of
the solution that come too early, and walks into a room next door, from which the teacher comes back. The simulator's
solutions name things that nobody has seen; the teacher looks around in a room before it does anything there.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from embodied_mem.progress import Progress
from embodied_mem.worlds.scienceworld import jvm

from .gold_paths import DOOR, MOVED, room_of

HARMLESS = ("open ", "pick up ", "examine ", "look ", "activate ", "go to ", "use ")
"""Commands that may be given too early without spoiling the task."""

VARIATIONS = 32
"""Most variations of a task, evenly spaced over its training variations; by bisection, the middle ones first."""

SKIPPED = (
    "mendelian-genetics-known-plant",
    "mendelian-genetics-unknown-plant",
    "inclined-plane-friction-unnamed-surfaces",
)
"""Tasks whose solutions take the simulator a minute, or are longer than what is played."""


def spread(values: Sequence[int], count: int) -> list[int]:
    """Return `count` values, evenly spaced from the first on.

    Where there are fewer, it returns all.
    """
    count = min(count, len(values))
    return [values[len(values) * i // count] for i in range(count)]


def bisected(values: Sequence[int]) -> list[int]:
    """Order values so that every beginning is spread: first, middle, quarters."""
    order = sorted(range(len(values)), key=lambda i: int(f"{i:0{max(len(values) - 1, 1).bit_length()}b}"[::-1], 2))
    return [values[i] for i in order]


def training_pairs(count: int) -> list[tuple[str, int]]:
    """Return the first `count` (task, training variation) pairs; 0 takes all.

    The tasks take turns.
    """
    found: dict[str, list[int]] = {}
    for game, variation in jvm.official_variations("train"):
        if game not in SKIPPED:
            found.setdefault(game, []).append(variation)
    columns = [[(game, v) for v in bisected(spread(variations, VARIATIONS))] for game, variations in found.items()]
    pairs = [pair for turn in itertools.zip_longest(*columns) for pair in turn if pair]
    return pairs[: count or None]


@dataclasses.dataclass(frozen=True)
class Taught:
    """One step: the command that was given, its answer, and the command that the teacher would have given."""

    command: str
    answer: str
    label: str


@dataclasses.dataclass(frozen=True)
class Recording:
    """One episode of a training variation, as `GoldPath`; score from 0 to 100."""

    game: str
    variation: int
    goal: str
    first: str
    steps: tuple[Taught, ...]
    score: int


def record(
    simulator: jvm.Simulator, game: str, variation: int, detour: float, random: np.random.Generator
) -> Recording:
    """Play the simulator's own solution with random detours.

    A detour comes before a command with probability `detour`.
    """
    solution = simulator.gold_path(game, variation)  # leaves the simulator at the start of the episode
    goal, first = simulator.goal, simulator.first_text
    here, doors, looked = room_of(first), [name for name, _ in DOOR.findall(first)], True
    steps: list[Taught] = []
    score, over = 0, False

    def give(command: str, label: str) -> None:
        nonlocal here, doors, looked, score, over
        answer, score, completed = simulator.step(command)
        steps.append(Taught(command, answer, label))
        if moved := MOVED.match(answer):
            here, doors, looked = moved[1], [], False
        elif room_of(answer) == here:
            doors, looked = [name for name, _ in DOOR.findall(answer)], True
        over = completed or score < 0

    for i, label in enumerate(solution):
        asked = bool(steps) and steps[-1].answer.startswith("Ambiguous")
        if not (looked or asked or label.startswith(("look around", "open door", "go to"))):
            give("look around", "look around")
        if not asked and random.random() < detour:
            early, back = [command for command in solution[i + 1 :] if command.startswith(HARMLESS)], here
            if doors and random.random() < 0.5:
                room = doors[int(random.integers(len(doors)))]
                give(f"open door to {room}", label)
                give(f"go to {room}", label)
            elif early:
                give(early[int(random.integers(len(early)))], label)
                if steps[-1].answer.startswith("Ambiguous"):
                    give("0", "0")
            if here != back and not over:
                give(f"go to {back}", f"go to {back}")
        if not over:
            give(label, label)
        if over:
            break
    return Recording(game, variation, goal, first, tuple(steps), max(score, 0))


def record_all(
    pairs: Sequence[tuple[str, int]], path: str | os.PathLike[str], *, detour: float, seed: int
) -> list[Recording]:
    """Return one recording per (task, variation) pair.

    Those that did not reach the whole score are left out. What the file has is not played again, so a process that was
    stopped goes on.
    """
    path = pathlib.Path(path)
    known: dict[tuple[str, int], Recording] = {}
    text = path.read_text() if path.exists() else ""
    if text and not text.endswith("\n"):  # the process was killed within a line
        text = text[: text.rfind("\n") + 1]
        path.write_text(text)
    for row in map(_read, map(json.loads, text.splitlines())):
        known[row.game, row.variation] = row
    left = [pair for pair in pairs if pair not in known]
    if left:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            jvm.Simulator(answers_within_s=jvm.SOLVES_S) as simulator,
            path.open("a") as file,
            Progress("recording", len(left), unit="task") as progress,
        ):
            for game, variation in left:
                random = np.random.default_rng((seed, variation, *game.encode()))
                row = record(simulator, game, variation, detour, random)
                if row.score < 100 and detour:  # some solutions name things as they are at one moment only
                    row = record(simulator, game, variation, 0.0, random)
                file.write(json.dumps(dataclasses.asdict(row)) + "\n")
                file.flush()
                known[game, variation] = row
                progress.update()
    return [known[pair] for pair in pairs if known[pair].score == 100]


def _read(row: dict[str, Any]) -> Recording:
    return Recording(**{**row, "steps": tuple(Taught(**step) for step in row["steps"])})

"""Samples for executor and compiler from recorded episodes of ScienceWorld: the next action, and the place in memory.

    samples = samples_of(recordings, draws=3, seed=0)
    samples[0].output            # "hybrid\\n+ now: 1 pick up thermometer\\ndo: open door to kitchen"

The memory is the recorded solution of another variation of the task. Its lines are aligned with the solution of the
variation that is played; `now` in the Brief State is the line that the next aligned step stands for. Guidance is the
teacher's command. A tenth of the states is given another line for `now`, which the output then takes back.
"""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from embodied_mem.compiler.brief_state import Create, Edit, Update, apply_all
from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.compiler.view import View, start_state
from embodied_mem.memory import Experience
from embodied_mem.training.config import Config
from embodied_mem.training.teachers.episodes import Sample, sample_of
from embodied_mem.training.teachers.lesson import Lesson

from .gold_paths import GoldPath, Memories, steps_of
from .narration import Line, Narrator, PathExperience, experience_of, lines_of
from .recordings import Recording, record_all, training_pairs

FALSE_NOW = 0.1
"""Share of the states whose `now` is another line nearby."""
MAX_SAMPLES = 40
"""Steps of an episode that are taken, drawn at random, so that the longest do not rule."""
CANDIDATES = 2
"""Variations out of which the most similar is remembered: as many as there are of a task when agents are scored."""


def recorded_samples(config: Config, folder: pathlib.Path, say: Callable[[str], None]) -> list[Sample]:
    """Return the samples of a run, recording what `folder` lacks.

    See `SampleSource`; a recording takes seconds.

    Raises:
        MissingDependencyError: Java or the package `scienceworld` is not installed, and recordings are missing.
    """
    pairs = training_pairs(config.world.num_train)
    recordings = record_all(pairs, folder / "recordings.jsonl", detour=config.data.detour, seed=config.seed)
    say(f"recordings: {len(recordings)} of {len(pairs)} training variations reached the whole score")
    return samples_of(recordings, draws=config.data.passes, seed=config.seed)


def solution_of(recording: Recording) -> GoldPath:
    """Return the path of a recording without its detours."""
    steps = [step for step in recording.steps if step.command == step.label]
    return GoldPath(
        recording.game,
        recording.variation,
        recording.goal,
        recording.first,
        tuple(step.command for step in steps),
        tuple(step.answer for step in steps),
    )


def samples_of(recordings: Sequence[Recording], *, draws: int, seed: int) -> list[Sample]:
    """Return samples of every recording, `draws` times with another memory each.

    There are none of the only recording of its task.
    """
    paths = {(r.game, r.variation): solution_of(r) for r in recordings}
    by_game: dict[str, list[GoldPath]] = collections.defaultdict(list)
    for path in paths.values():
        by_game[path.game].append(path)
    samples: list[Sample] = []
    for number in range(draws):
        for recording in recordings:
            random = np.random.default_rng((seed, number, recording.variation, *recording.game.encode()))
            others = [path for path in by_game[recording.game] if path.variation != recording.variation]
            if not others:
                continue
            chosen = random.permutation(len(others))[:CANDIDATES]
            memory = Memories([others[i] for i in chosen]).retrieve(recording.goal)[0]
            taught = teach(recording, experience_of(memory, recording.goal), random)
            kept = np.sort(random.permutation(len(taught))[:MAX_SAMPLES])
            samples += [taught[i] for i in kept]
    return samples


def teach(recording: Recording, memory: PathExperience, random: np.random.Generator) -> list[Sample]:
    """Return a sample per step of a recording with this memory."""
    now = positions(recording, memory.lines)
    narrator = Narrator(recording.first)
    experience = cast(Experience, memory)  # of which a view reads `brief` alone
    view = View(recording.goal, "", [experience], [], start_state(recording.goal, ""))
    samples = []
    for step, line in zip(recording.steps, now):
        if view.state.current and random.random() < FALSE_NOW:
            wrong = int(np.clip(line + random.integers(-3, 4), 0, len(memory.lines) - 1))
            view.state = apply_all([Update("now", memory.name(wrong))], view.state)[0]
        name = memory.name(line) if memory.lines else ""
        edits: list[Edit] = []
        if name and not view.state.current:
            edits = [Create("now", name)]
        elif name != view.state.current:
            edits = [Update("now", name)]
        output = CompilerOutput.make(step.label, edits)
        state = apply_all(edits, view.state)[0]
        samples.append(sample_of(view, Lesson(output, state, step.label, step.label)))
        view.turns.append((step.command, narrator.tell(step.command, step.answer)))
        view.state = state
    return samples


def positions(recording: Recording, remembered: Sequence[Line]) -> list[int]:
    """Return the memory's line that each recorded step works towards.

    It is that of the next step that has one.
    """
    solution = solution_of(recording)
    steps = steps_of(solution)
    lines, line_of_step = lines_of(steps)
    aligned = align([line.command for line in lines], [line.command for line in remembered])
    # The commands of the solution that are steps, in order; `steps_of` leaves out the others.
    found, spot = {}, 0
    for i, command in enumerate(solution.commands):
        if spot < len(steps) and command == steps[spot].command:
            if (line := aligned.get(line_of_step[spot])) is not None:
                found[i] = line
            spot += 1
        elif i - 1 in found and command == solution.commands[i - 1]:  # looked at again, which is no step of its own
            found[i] = found[i - 1]
    after, line = [0] * len(solution.commands), max(len(remembered) - 1, 0)
    for i in reversed(range(len(after))):
        line = found.get(i, line)
        after[i] = line
    now, at = [], 0
    for step in recording.steps:
        now.append(after[min(at, len(after) - 1)] if after else 0)
        at += step.command == step.label
    return now


def align(ours: Sequence[str], theirs: Sequence[str]) -> dict[int, int]:
    """Align our commands with theirs, both in order.

    The result is our index -> their index, of the greatest sum of likeness.
    """
    best = np.zeros((len(ours) + 1, len(theirs) + 1))
    like = np.array([[likeness(a, b) for b in theirs] for a in ours]).reshape(len(ours), len(theirs))
    for i in range(len(ours)):
        for j in range(len(theirs)):
            best[i + 1, j + 1] = max(best[i, j + 1], best[i + 1, j], best[i, j] + like[i, j])
    pairs, i, j = {}, len(ours), len(theirs)
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs[i] = j
    return pairs


def likeness(a: str, b: str) -> float:
    """Compare two commands; 0 if their verbs differ.

    For equal verbs it is the share of common words, raised.
    """
    left, right = a.split(), b.split()
    if left[:1] != right[:1]:
        return 0.0
    common = len({*left} & {*right}) / len({*left} | {*right})
    return 0.4 + 0.6 * common if common > 0.25 else 0.0

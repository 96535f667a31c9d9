"""Narrates ScienceWorld in few words, for models of a few hundred tokens: answers, and memory as numbered lines.

    narrator = Narrator(first_text)
    narrator.tell("open cupboard", "The cupboard is now open.")      # "The cupboard is now open.\\nkitchen: chair; ..."
    bank = PathBank(paths)
    bank.retrieve(goal, k=1)[0].brief()             # "@ kitchen\\n1 pick up thermometer\\n2 open cupboard ..."
    world = BriefScienceWorld(envs)                     # what `agents.rollout.play` plays

An answer is followed by the room and what the last look around saw there, the names that commands need, and by the
latest commands that were no ways, which tell a compiler what it chose (which wire goes where). A remembered path is the
steps that changed something, their names replaced by ours as the agents without a model do, rooms on lines of their
own, ways left out; waits and measurements that are repeated soon after stand once, with a star.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from embodied_mem.envs.vector_env import Answers, Reset
from embodied_mem.memory import Experience

from .gold_paths import (
    MOVED,
    ROOM,
    GoldPath,
    Memories,
    Phrase,
    Step,
    adapt,
    steps_of,
    substitutions,
)

MAX_ANSWER, MAX_THINGS, MAX_LINES, MAX_BEFORE = 160, 440, 32, 4
"""Characters of an answer and of a room's things, lines of a memory, and commands that are said again."""
SOON = 4
"""A wait or a measurement that one of the last so many lines says already is a repetition."""
_REPEATED = ("wait", "examine ", "use ", "look ", "activate stopwatch", "deactivate stopwatch")

_LEFT_OUT = re.compile(
    r"\.? (?:On|In) the [\w -]+ is: nothing\.?|, which is (?:turned )?off|,? ?\(containing nothing\)"
    r"|(?:a )?substance called |, which is deactivated|, currently reading a temperature of -?\d+ degrees celsius"
)
_DOOR_OF = re.compile(r"\.? The [\w -]+ door is (open|closed)\.?")
_HOLDS = re.compile(r"\.? (?:On|In) the [\w -]+ is: ")
_ARTICLE = re.compile(r"(?<![\w-])(?:an?|the) (?=\w)", re.IGNORECASE)
_DOOR = re.compile(r"door to ([a-z ]{1,80}) \(that is (open|closed)\)")
_WAYS = ("go to", "open door", "look around", "wait")
_UNSAID = {"agent", "air", "picture", ""}


def things_of(look: str) -> str:
    """Write a look around in one line.

    An example is `counter: bowl (red apple), drawer; cupboard closed; doors: hallway open, outside`.
    """
    inside, _, also = look.partition("You also see:")
    items = []
    for line in inside.split("\n")[1:]:
        item = _HOLDS.sub(": ", _DOOR_OF.sub(r" \1", _LEFT_OUT.sub("", line)))
        item = _ARTICLE.sub("", item).strip(" \t.").replace("(containing ", "(")
        if item not in _UNSAID:
            items.append(item)
    doors = [name + " open" * (state == "open") for name, state in _DOOR.findall(_ARTICLE.sub("", also))]
    text = "; ".join(items)[:MAX_THINGS]
    return f"{text}; doors: {', '.join(doors)}" if doors else text


class Narrator:
    """Answers of one episode in few words."""

    def __init__(self, first: str):
        """Begin with the first text, a look around."""
        self._room = self._things = ""
        self._before: list[str] = []
        self.first = self.tell("", first)

    def tell(self, command: str, answer: str) -> str:
        """Write a command's answer, the room seen last, and earlier commands.

        Each has a line.
        """
        said = ""
        if found := ROOM.search(answer):
            self._room, self._things = found[1], things_of(answer)
        else:
            if moved := MOVED.match(answer):
                self._room, self._things = moved[1], ""
            said = " ".join(answer.split())[:MAX_ANSWER] + "\n"
        text = f"{said}{self._room}: {self._things}".rstrip(": ")
        if self._before:
            text += f"\nbefore: {'; '.join(self._before)}"
        if command and not command.startswith(_WAYS):
            self._before = [*self._before, command][-MAX_BEFORE:]
        return text


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a memory: a step, and whether it was done again soon after."""

    room: str
    command: str
    again: bool = False


def lines_of(steps: Sequence[Step]) -> tuple[list[Line], list[int]]:
    """(steps without repetitions, the line of each step)."""
    lines: list[Line] = []
    where = []
    for step in steps:
        recent = range(max(len(lines) - SOON, 0) if step.command.startswith(_REPEATED) else len(lines), len(lines))
        known = next((i for i in recent if (lines[i].room, lines[i].command) == (step.room, step.command)), None)
        if known is None:
            lines.append(Line(step.room, step.command))
            known = len(lines) - 1
        else:
            lines[known] = dataclasses.replace(lines[known], again=True)
        where.append(known)
    return lines, where


@dataclasses.dataclass(frozen=True)
class PathExperience:
    """A remembered path in our names.

    Attributes:
        lines: its steps, `MAX_LINES` at most.
        images: none: the simulator gives texts alone.
    """

    lines: tuple[Line, ...]
    images: ClassVar[tuple[bytes, ...]] = ()

    def name(self, number: int) -> str:
        """Return a numbered line, from 0, as the Brief State says it."""
        return f"{number + 1} {self.lines[number].command}"

    def brief(self) -> str:
        """Return the path as text."""
        text, room = [], ""
        for number, line in enumerate(self.lines):
            if line.room != room:
                room = line.room
                text.append(f"@ {room}")
            text.append(self.name(number) + " *" * line.again)
        return "\n".join(text)


def experience_of(path: GoldPath, goal: str) -> PathExperience:
    """Return a path as somebody with this goal remembers it."""
    replaced: dict[Phrase, Phrase] = substitutions(path.goal, goal)
    steps = [dataclasses.replace(step, command=adapt(step.command, replaced)) for step in steps_of(path)]
    return PathExperience(tuple(lines_of(steps)[0][:MAX_LINES]))


class PathBank:
    """Gold paths behind the call of a `Experiences` that `agents.rollout.play` makes."""

    def __init__(self, paths: Sequence[GoldPath]):
        """Keep the paths."""
        self._memories = Memories(paths)

    def retrieve(self, goal: str, k: int, context: str = "", exclude_task_ids: Sequence[str] = ()) -> list[Experience]:
        """Return the `k` most similar paths, in our names.

        They are of the kind of task that the description fits best. `context` is not looked at; the own paths of the
        tasks in `exclude_task_ids` ("boil/12") are left out.
        """
        found = [p for p in self._memories.retrieve(goal) if f"{p.game}/{p.variation}" not in exclude_task_ids]
        # Models read `brief` alone.
        return [cast(Experience, experience_of(path, goal)) for path in found[:k]]


class Outcome(NamedTuple):
    """Result of an episode: score from 0 to 100, share of the subgoals, whether the simulator called it failed,
    plans and repairs of the critic, tokens and milliseconds of models."""

    won: int
    score: int
    subgoals: float
    steps: int
    failed: int
    plans: int = 0
    repairs: int = 0
    tokens: float = 0
    ms: float = 0


def outcome_of(envs: Any, info: Mapping[str, Any], row: int, steps: int) -> Outcome:
    """Return the outcome of an episode of `ScienceWorldVectorEnv` that ended."""
    met, number = envs.subgoals(row)
    score, won = int(info["score"][row]), bool(info["won"][row])
    return Outcome(int(won), max(score, 0), 1.0 if won else met / number, steps, int(score < 0))


class BriefScienceWorld:
    """`ScienceWorldVectorEnv` in few words, with the outcome of each row's episode when it ended."""

    def __init__(self, envs: Any):
        """Wrap the envs; the caller closes them."""
        self._envs = envs
        self.num_envs, self.max_steps = envs.num_envs, envs.max_steps
        self.outcomes: list[Outcome | None] = [None] * self.num_envs
        self._narrators = [Narrator("")] * self.num_envs
        self._steps = np.zeros(self.num_envs, int)

    def reset(self, *, options: dict[str, Any]) -> Reset:
        """Start episodes in all rows, or in those of `options["reset_mask"]`."""
        texts, info = self._envs.reset(options=options)
        for row in np.flatnonzero(options.get("reset_mask", np.ones(self.num_envs, bool))):
            self._narrators[row] = Narrator(texts[row].removesuffix(f"\n\n{info['goal'][row]}"))
            self.outcomes[row], self._steps[row] = None, 0
        return [narrator.first for narrator in self._narrators], info

    def step(self, commands: Sequence[str]) -> Answers:
        """Return one command per row. As `gymnasium.vector.VectorEnv.step`."""
        texts, rewards, ended, cut, info = self._envs.step(list(commands))
        self._steps += 1
        for row in range(self.num_envs):
            if (ended[row] or cut[row]) and self.outcomes[row] is None and not info["crashed"][row]:
                self.outcomes[row] = outcome_of(self._envs, info, row, int(self._steps[row]))
        told = [narrator.tell(*said) for narrator, *said in zip(self._narrators, commands, texts)]
        return told, rewards, ended, cut, info

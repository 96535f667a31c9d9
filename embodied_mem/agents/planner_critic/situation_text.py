"""Renders situations for models: everything that is known is stated once, the newest answer word by word.

describe(situation)                              # for a planner
describe(situation, step)                        # for a critic: with the step and what follows it
describe_names(skills, situation.commands)       # "open, close: Fridge, Cabinet (_2, _3)\\nfind, pick_up: Apple"
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import PlanStep
from embodied_mem.agents.robot.skills import Skill, read_command
from embodied_mem.memory.readers.reading import AGENT
from embodied_mem.memory.record import Record
from embodied_mem.memory.trust import QUOTED, WARNING, marked

MANY_REFUSALS = 2
"""Refusals of a command from which on planners are warned."""
_MAX_SUMMARIES = 8
_MAX_ANSWER = 160
_GOAL = "Your task is to:"
_IN_ROOM = "in room"
_MIRRORS = {"left of": "right of", "right of": "left of", "next to": "next to", "near": "near"}
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
_NAME_WITH_NUMBER = re.compile(r"(.+?)(_\d+)")
_TIMES = {1: "once", 2: "twice"}


def describe(situation: Situation, step: PlanStep | None = None) -> str:
    """Render a situation in words, as planner and critic read it."""
    room, answer = first_view(situation.room), situation.observation.strip()
    newest = _Statements([answer])
    beliefs = [line for line in situation.beliefs.describe().splitlines() if not newest.has_belief(line)]
    earlier = situation.summaries[-_MAX_SUMMARIES:-1] if answer else situation.summaries[-_MAX_SUMMARIES:]
    earlier = [*_steps_before(situation), *earlier]
    parts = [
        f"Task: {situation.goal}",
        f"At first: {room}" if room else "",
        f"Progress: {situation.progress}" if situation.progress else "",
        "Earlier steps:\n" + "\n".join(earlier) if earlier else "",
        f"Last step: {situation.action}\nIts answer: {answer}" if answer else "",
        "Now:\n" + "\n".join(beliefs) if beliefs else "",
        "\n".join(_refusals(situation)),
        _memory_part(situation, _Statements([answer, *beliefs]), _Statements([room])),
        f"The last plan was given up: {situation.objection}" if situation.objection else "",
    ]
    if step is not None:
        parts.append(f"Next step: {step.command}" + (f" (why: {step.why})" if step.why else ""))
        following = "; ".join(one.command for one in situation.next_steps)
        parts.append(f"Then: {following}" if following else "")
    return "\n\n".join(part for part in parts if part)


def _steps_before(situation: Situation) -> list[str]:
    """Return what temporal memory says of steps before the last summaries."""
    if len(situation.summaries) <= _MAX_SUMMARIES or (temporal := situation.memory.temporal) is None:
        return []
    summaries = [one for one in temporal.entries if one.first_step < one.last_step]
    return [marked(one.text, one.trust) if one.trust in QUOTED else one.text for one in summaries]


def first_view(room: str) -> str:
    """Return the first text of a task without its goal."""
    lines = (" ".join(line.split()) for line in room.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(_GOAL))


def describe_times(number: int) -> str:
    """Return a number of times in words."""
    return _TIMES.get(number, f"{number} times")


def _refusals(situation: Situation) -> Iterator[str]:
    """Yield a line for each refused command missing elsewhere."""
    recent = situation.summaries[-_MAX_SUMMARIES:]
    for command, (times, answer) in situation.refusals.items():
        if times < MANY_REFUSALS and any(summary.startswith(f"{command}:") for summary in recent):
            continue
        answer = "" if command == situation.action else " ".join(answer.split())[:_MAX_ANSWER]
        yield f"{command!r} was refused {describe_times(times)}" + (f": {answer}" if answer else ".")


def _memory_part(situation: Situation, now: _Statements, room: _Statements) -> str:
    """Return memories that are not told elsewhere, with a warning about quotations."""
    if situation.pool is None:
        return ""
    items, pairs = [], set[tuple[str, str, str]]()
    for item in situation.pool.records:
        is_known = False
        if item.fact is not None and item.module == "spatial":
            subject, relation, object_ = item.fact
            is_known = room.has_names(subject) if relation == _IN_ROOM else now.has_fact(item)
            is_known |= (object_, _MIRRORS.get(relation, ""), subject) in pairs
            pairs.add(item.fact)
        if not is_known:
            items.append(item)
    warning = f" ({WARNING})" if any(item.trust in QUOTED for item in items) else ""
    return f"Remembered{warning}:\n" + "\n".join(item.text for item in items) if items else ""


class _Statements:
    """The sentences that a prompt has already."""

    def __init__(self, texts: Iterable[str]):
        self._sentences = [one for text in texts for one in _SENTENCE.split(text.lower()) if one]

    def has_names(self, *names: str) -> bool:
        """Tell whether one sentence has all these names."""
        patterns = [re.compile(rf"(?<!\w){re.escape(name.lower())}(?!\w)") for name in names]
        return any(all(pattern.search(one) for pattern in patterns) for one in self._sentences)

    def has_fact(self, item: Record) -> bool:
        assert item.fact is not None
        subject, _, object_ = item.fact
        return self.has_names("you" if subject == AGENT else subject, object_)

    def has_belief(self, line: str) -> bool:
        """Tell whether a line of `Beliefs.describe` only repeats a place."""
        name, mark, place = line.removesuffix(".").rpartition(" is at ")
        return bool(mark) and line.endswith(".") and self.has_names(name, place)


def names_in(skills: Sequence[Skill], commands: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the names in a list of actions, each with its skills.

    Source: RoboMemory B.1, which lists all names.
    """
    takers: defaultdict[str, list[str]] = defaultdict(list)
    for command in commands:
        if (call := read_command(skills, command)) is not None:
            for name in call.arguments.values():
                takers[name].append(call.skill)
    return {name: tuple(dict.fromkeys(own)) for name, own in takers.items()}


def describe_names(names: dict[str, tuple[str, ...]]) -> str:
    """Render names by the skills that take them.

    One line a group; more things of a kind are told by their numbers alone.
    """
    groups: defaultdict[tuple[str, ...], dict[str, list[str]]] = defaultdict(dict)
    for name, skills in names.items():
        parts = _NAME_WITH_NUMBER.fullmatch(name)
        if parts and names.get(parts[1]) == skills:
            groups[skills].setdefault(parts[1], []).append(parts[2])
        else:
            groups[skills].setdefault(name, [])
    return "\n".join(
        f"{', '.join(skills)}: "
        + ", ".join(f"{kind} ({', '.join(more)})" if more else kind for kind, more in kinds.items())
        for skills, kinds in groups.items()
    )

"""Readers by rules: what an oracle, a bank of past episodes or the lifelong memory tell about a task of a life.

    known = LifelongReader(memory).read(goal, room)
    known.places, known.task, known.avoid           # best first, what the goal means, from where nothing is taken

Each reads through the public interface alone, and nothing of the simulator. The reader of the lifelong memory weighs
what it finds by age: what was told comes first while nothing newer was seen, a place where a kind is mostly found
comes before the last sighting, and each is only looked at, never relied on.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.bank import relevant_events
from embodied_mem.memory.record import Record
from embodied_mem.types import Episode
from embodied_mem.worlds.alfworld.life import Truth, deed_of, read_instruction, read_sentence
from embodied_mem.worlds.alfworld.wording.text import CHANGERS, CHANGES, Task, parse_command, task_of, type_of

K = 32
"""Records that are asked for."""
CONCENTRATED = 0.6
"""Share of a kind's first sightings at one kind of place from which on that is its own place."""
_COUNTED = re.compile(r"(?:on|in) ([a-z]+) \((\d+)")
_TYPE_OF_CHANGE = {change: task_type for task_type, change in CHANGES.items()}


@dataclasses.dataclass(frozen=True)
class Known:
    """What is known about a task.

    Attributes:
        task: what is to be done; None if nothing tells.
        places: where the thing may be, best first.
        avoid: places from which it must not be taken.
    """

    task: Task | None
    places: tuple[str, ...] = ()
    avoid: frozenset[str] = frozenset()


class Reader(Protocol):
    """Tells what is known when a task begins."""

    def read(self, goal: str, room: Sequence[str]) -> Known:
        """Return what is known about a goal in a room with these receptacles."""
        ...


def told_by(goal: str) -> Known:
    """Return what the instruction itself says."""
    said = read_instruction(goal)
    return Known(said.task, (said.place,) if said.place else ())


class Nothing:
    """No memory."""

    def read(self, goal: str, room: Sequence[str]) -> Known:
        """Return what the instruction says, as `Reader.read`."""
        return told_by(goal)


class Oracle:
    """Knows today's truth, which whoever plays sets.

    Attributes:
        truth: of the task.
    """

    truth: Truth

    def read(self, goal: str, room: Sequence[str]) -> Known:
        """Return the truth, as `Reader.read`."""
        avoid = frozenset() if self.truth.forbidden is None else frozenset(self.truth.forbidden[1:])
        return Known(self.truth.task, self.truth.places, avoid)


def deed_in(actions: Iterable[str], kind: str) -> Task | None:
    """Return what was done in a won episode, as the same task for a kind of thing."""
    change = target = ""
    for command in map(parse_command, actions):
        if command.verb in CHANGERS:
            change = command.verb
        elif command.verb == "put":
            target = type_of(command.receptacle)
    return task_of(_TYPE_OF_CHANGE.get(change, "pick_and_place_simple"), kind, target) if target else None


class BankReader:
    """Reads all past episodes, the newest first; what was done in them, and what their goals said.

    It is given every episode, so that no limit of retrieval holds it back.

    Args:
        episodes: grows while it is played.
    """

    def __init__(self, episodes: Sequence[Episode]):
        self._episodes = episodes

    def read(self, goal: str, room: Sequence[str]) -> Known:
        """Return what past episodes tell, as `Reader.read`."""
        said = read_instruction(goal)
        task, places = said.task, (said.place,) if said.place else self._places(said.kind)
        for episode in reversed(self._episodes) if task is None else ():
            other = read_instruction(episode.goal)
            if said.name:
                if episode.won and other.name == said.name:
                    task = deed_in((step.action for step in episode.steps), said.kind)
            elif other.kind == said.kind and not other.name and other.place:
                topic, values = read_sentence(episode.goal)
                if topic == "like":
                    task = deed_of(f"put it in the {values['target']}", said.kind)
                elif episode.won and other.task is None:
                    task = deed_in((step.action for step in episode.steps), said.kind)
            if task is not None:
                break
        return Known(task, places)

    def _places(self, kind: str) -> tuple[str, ...]:
        taken: list[str] = []
        put: list[str] = []
        for episode in reversed(self._episodes):
            for _, event, thing, place in relevant_events(episode):
                if type_of(thing) == kind and event in ("take", "place"):
                    (taken if event == "take" else put).append(place)
        often = Counter(taken).most_common(1)
        own = [place for place, count in often if count >= CONCENTRATED * len(taken)]
        return tuple(dict.fromkeys([*own, *taken[:1], *put[:1], *taken]))


class LifelongReader:
    """Reads the records of a `LifelongMemory` and its sightings.

    Args:
        memory: with all modules or some.
    """

    def __init__(self, memory: LifelongMemory):
        self._memory = memory

    def read(self, goal: str, room: Sequence[str]) -> Known:
        """Return what the memory tells, as `Reader.read`."""
        said = read_instruction(goal)
        records = self._records(said.name or said.kind)
        notes = {record.id: record for record in records["notes"]}
        for number in (number for record in records["profile"] for number in record.data["notes"]):
            if (note := self._note(number)) is not None:  # found by what the profile has of it
                notes.setdefault(note.id, note)
        told = [(record, *read_sentence(record.text)) for record in notes.values() if record.ended is None]
        told.sort(key=lambda row: (self._is_users(row[0]), _age(row[0])), reverse=True)
        about = [row for row in told if row[2].get("kind", said.kind) == said.kind]
        owned = [values["place"] for _, _, values in self._owned(records, about, said.kind)]
        places = (said.place,) if said.place else self._places(said.kind, room, records, about, owned)
        task = said.task
        if task is None:
            task = self._meaning(said.name, said.kind, records, told) if said.name else None
        if task is None and not said.name:
            task = self._wish(said.kind, records, about)
        return Known(task, places, frozenset(owned[:1]))

    def _records(self, query: str) -> Mapping[str, list[Record]]:
        found: dict[str, list[Record]] = {name: [] for name in ("notes", "profile", "episodic", "semantic")}
        here = self._memory.place
        for record in self._memory.retrieve(query, k=K).items:
            if record.module != "episodic" or record.place == here:
                found.setdefault(record.module, []).append(record)
        return found

    def _note(self, number: int) -> Record | None:
        return self._memory.get(f"notes:{number}") if self._memory.notes is not None else None

    def _is_users(self, record: Record) -> bool:
        return record.trust == "user" and self._memory._is_user(record.speaker)

    def _places(
        self,
        kind: str,
        room: Sequence[str],
        records: Mapping[str, list[Record]],
        about: Sequence[tuple],
        owned: Sequence[str],
    ) -> tuple[str, ...]:
        """Rank places; where one was somebody's before, there is one that may be taken now."""
        sights = [one for one in self._memory.sightings(kind) if one.receptacle in room]
        known = [one.receptacle for one in sights if one.current]
        taken = {}  # place -> the last episode in which such a thing was taken there
        for record in records["episodic"]:
            for command in map(parse_command, record.data["actions"]):
                if command.verb == "take" and type_of(command.object) == kind:
                    taken[command.receptacle] = max(taken.get(command.receptacle, -1), record.episode or 0)
        counts: Counter[str] = Counter()
        for record in records["semantic"]:
            if record.kind == "found" and record.text.startswith(f"{kind}:"):
                counts.update({name: int(count) for name, count in _COUNTED.findall(record.text)})
        numbered = {name: self._of_type(name, room, [*known, *taken]) for name in counts}
        own = [p for name, n in counts.most_common(1) if n >= CONCENTRATED * counts.total() for p in numbered[name]]
        newest = max((one.episode for one in sights), default=-1)
        told = [(record, values["place"]) for record, topic, values in about if topic == "place"]
        fresh = [
            place for record, place in told[:1]
            if self._is_users(record) and _age(record)[0] >= min(newest, taken.get(place, newest))
        ]  # fmt: skip
        last = sorted(taken, key=lambda place: -taken[place])
        others = [p for name, _ in counts.most_common() for p in numbered[name][:1]]
        rest = [place for _, place in told]
        ranked = [*owned[1:], *fresh, *own[:1], *known[:1], *last[:1], *known, *last, *rest, *others, *own]
        return tuple(dict.fromkeys(place for place in ranked if place in room))

    @staticmethod
    def _of_type(name: str, room: Sequence[str], known: Sequence[str]) -> list[str]:
        """The places of a type, those first where such a thing was."""
        alike = [place for place in room if type_of(place) == name]
        return sorted(alike, key=lambda place: (place not in known, int(place.rpartition(" ")[2])))

    def _meaning(self, name: str, kind: str, records: Mapping[str, list[Record]], told: Sequence[tuple]) -> Task | None:
        for _, topic, values in told:
            if topic == "meant" and values["name"] == name and (task := deed_of(values["deed"], kind)) is not None:
                return task
        for record in sorted(records["episodic"], key=_age, reverse=True):
            if record.data["won"] and f"do the {name}" in record.data["goal"]:
                return deed_in(record.data["actions"], kind)
        return None

    def _wish(self, kind: str, records: Mapping[str, list[Record]], about: Sequence[tuple]) -> Task | None:
        wishes = [(record, *read_sentence(record.text)) for record in records["profile"] if record.ended is None]
        wishes += [row for row in about if self._is_users(row[0])]
        wishes = [row for row in wishes if row[1] == "like" and row[2]["kind"] == kind]
        for _, _, values in sorted(wishes, key=lambda row: _age(row[0]), reverse=True):
            return deed_of(f"put it in the {values['target']}", kind)
        for record in sorted(records["episodic"], key=_age, reverse=True):
            if record.data["won"] and f"take the {kind} from" in record.data["goal"] and "like" in record.data["goal"]:
                return deed_in(record.data["actions"], kind)
        return None

    def _owned(self, records: Mapping[str, list[Record]], about: Sequence[tuple], kind: str) -> list[tuple]:
        rows = [(record, *read_sentence(record.text)) for record in records["profile"] if record.ended is None]
        rows = [row for row in rows if row[2].get("kind") == kind] + [row for row in about if self._is_users(row[0])]
        return [row for row in sorted(rows, key=lambda row: _age(row[0]), reverse=True) if row[1] == "owned"]


def _age(record: Record) -> tuple[int, int]:
    """Return when something was learned last: task and step."""
    return (record.episode if record.episode is not None else -1, record.step or 0)

"""Readers by rules: what an oracle, a bank of past episodes or the lifelong memory tell about a task of a life.

    knowledge = LifelongReader(memory).read(goal, room)
    knowledge.places, knowledge.task, knowledge.avoid     # best first, meaning of the goal, what stays untouched

Each reads through the public interface alone, and nothing of the simulator. Places come in the order of their age,
whether they were told or seen, and each is only looked at, never relied on.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.bank import relevant_events
from embodied_mem.memory.pool import Pool
from embodied_mem.memory.record import Record
from embodied_mem.types import Episode
from embodied_mem.worlds.alfworld.wording.text import CHANGERS, CHANGES, Task, parse_command, task_of, type_of

from .lives import Truth, deed_of, read_instruction, read_sentence

K = 32
"""Records that are asked for."""
_COUNT = re.compile(r"(?:on|in) ([a-z]+) \((\d+)")
_TYPE_OF_CHANGE = {change: task_type for task_type, change in CHANGES.items()}


@dataclasses.dataclass(frozen=True)
class Knowledge:
    """Knowledge about a task.

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

    def read(self, goal: str, room: Sequence[str]) -> Knowledge:
        """Return knowledge of a goal in a room with these receptacles."""
        ...


def told_by(goal: str) -> Knowledge:
    """Return what the instruction itself says."""
    instruction = read_instruction(goal)
    return Knowledge(instruction.task, (instruction.place,) if instruction.place else ())


class Nothing:
    """No memory."""

    def read(self, goal: str, room: Sequence[str]) -> Knowledge:
        """Return what the instruction says, as `Reader.read`."""
        return told_by(goal)


class Oracle:
    """Knows today's truth, which whoever plays sets.

    Attributes:
        truth: of the task.
    """

    truth: Truth

    def read(self, goal: str, room: Sequence[str]) -> Knowledge:
        """Return the truth, as `Reader.read`."""
        avoid = frozenset() if self.truth.forbidden is None else frozenset(self.truth.forbidden[1:])
        return Knowledge(self.truth.task, self.truth.places, avoid)


def deed_in(actions: Iterable[str], kind: str) -> Task | None:
    """Return what actions did, as the same task for a kind."""
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

    def read(self, goal: str, room: Sequence[str]) -> Knowledge:
        """Return what past episodes tell, as `Reader.read`."""
        instruction = read_instruction(goal)
        task, places = instruction.task, (instruction.place,) if instruction.place else self._places(instruction.kind)
        for episode in reversed(self._episodes) if task is None else ():
            other = read_instruction(episode.goal)
            if instruction.name:
                if episode.won and other.name == instruction.name:
                    task = deed_in((step.action for step in episode.steps), instruction.kind)
            elif other.kind == instruction.kind and not other.name and other.place:
                topic, values = read_sentence(episode.goal)
                if topic == "like":
                    task = deed_of(f"put it in the {values['target']}", instruction.kind)
                elif episode.won and other.task is None:
                    task = deed_in((step.action for step in episode.steps), instruction.kind)
            if task is not None:
                break
        return Knowledge(task, places)

    def _places(self, kind: str) -> tuple[str, ...]:
        events = (one for episode in reversed(self._episodes) for one in relevant_events(episode))
        return tuple(dict.fromkeys(
            place for _, event, thing, place in events if event == "take" and type_of(thing) == kind
        ))  # fmt: skip


class LifelongReader:
    """Reads the records of a `LifelongMemory` and its sightings.

    Args:
        memory: with all modules or some.
    """

    def __init__(self, memory: LifelongMemory):
        self._memory = memory

    def read(self, goal: str, room: Sequence[str]) -> Knowledge:
        """Return what the memory tells, as `Reader.read`."""
        instruction = read_instruction(goal)
        records = self._records(instruction.name or instruction.kind)
        notes = {record.id: record for record in records["notes"]}
        for number in (number for record in records["profile"] for number in record.data["notes"]):
            if (note := self._note(number)) is not None:  # found by what the profile has of it
                notes.setdefault(note.id, note)
        statements = [(record, *read_sentence(record.text)) for record in notes.values() if record.ended is None]
        statements.sort(key=lambda row: (self._is_users(row[0]), _age(row[0])), reverse=True)
        about = [row for row in statements if row[2].get("kind", instruction.kind) == instruction.kind]
        owned_places = [values["place"] for _, _, values in self._owners(records, about, instruction.kind)]
        places = (
            (instruction.place,) if instruction.place else self._places(instruction.kind, room, records, owned_places)
        )
        task = instruction.task
        if task is None:
            task = self._meaning(instruction.name, instruction.kind, records, statements) if instruction.name else None
        if task is None and not instruction.name:
            task = self._wish(instruction.kind, records, about)
        return Knowledge(task, places, frozenset(owned_places[:1]))

    def _records(self, query: str) -> Mapping[str, list[Record]]:
        by_module: dict[str, list[Record]] = {name: [] for name in ("notes", "profile", "episodic", "semantic")}
        here = self._memory.place
        for record in self._memory.retrieve(query, k=K).items:
            if record.module != "episodic" or record.place == here:
                by_module.setdefault(record.module, []).append(record)
        return by_module

    def _note(self, number: int) -> Record | None:
        return self._memory.get(f"notes:{number}") if self._memory.notes is not None else None

    def _is_users(self, record: Record) -> bool:
        return record.trust == "user" and record.speaker in ("", self._memory.scope.user)

    def _places(
        self,
        kind: str,
        room: Sequence[str],
        records: Mapping[str, list[Record]],
        owned_places: Sequence[str],
    ) -> tuple[str, ...]:
        """List places by age, then those where most were found.

        One that was somebody's before may be used now.
        """
        by_age = self._places_by_age(kind, records)
        counts: Counter[str] = Counter()
        for record in records["semantic"]:
            if f"{kind}: found " in record.text:
                counts.update({name: int(count) for name, count in _COUNT.findall(record.text)})
        often = [place for name, _ in counts.most_common() for place in self._of_type(name, room, by_age)[:1]]
        return tuple(dict.fromkeys(place for place in (*owned_places[1:], *by_age, *often) if place in room))

    def _places_by_age(self, kind: str, records: Mapping[str, list[Record]]) -> list[str]:
        """List where such a thing was told to be, seen or taken."""
        some = [*records["notes"], *records["episodic"]]
        rows = [(_age(record)[0], place) for record in some for place in self._places_in(record, kind)]
        rows += [(one.episode, one.receptacle) for one in self._memory.sightings(kind) if one.current]
        return [place for _, place in sorted(rows, key=lambda row: -row[0])]

    def _places_in(self, record: Record, kind: str) -> list[str]:
        """List places that a record names; none if it has ended."""
        if record.ended is not None:
            return []
        if record.module == "spatial":
            return [record.fact[2]] if record.fact is not None and type_of(record.fact[0]) == kind else []
        if record.module == "episodic":
            commands = map(parse_command, record.data["actions"])
            return [one.receptacle for one in commands if one.verb == "take" and type_of(one.object) == kind]
        topic, values = read_sentence(record.text)
        return [values["place"]] if topic == "place" and values["kind"] == kind and self._is_users(record) else []

    @staticmethod
    def _of_type(name: str, room: Sequence[str], seen_places: Sequence[str]) -> list[str]:
        """List places of a type, those with such a thing first."""
        alike = [place for place in room if type_of(place) == name]
        return sorted(alike, key=lambda place: (place not in seen_places, int(place.rpartition(" ")[2])))

    def _meaning(
        self, name: str, kind: str, records: Mapping[str, list[Record]], statements: Sequence[tuple]
    ) -> Task | None:
        for _, topic, values in statements:
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

    def _owners(self, records: Mapping[str, list[Record]], about: Sequence[tuple], kind: str) -> list[tuple]:
        rows = [(record, *read_sentence(record.text)) for record in records["profile"] if record.ended is None]
        rows = [row for row in rows if row[2].get("kind") == kind] + [row for row in about if self._is_users(row[0])]
        return [row for row in sorted(rows, key=lambda row: _age(row[0]), reverse=True) if row[1] == "owned"]


def knowledge_of(memories: Any, goal: str, room: Sequence[str]) -> Knowledge:
    """Read a pool, or experiences of a bank, for a goal."""
    if isinstance(memories, Pool):
        return GivenReader(memories).read(goal, room)
    return BankReader([one.episode for one in sorted(memories, key=lambda one: one.index)]).read(goal, room)


class PoolReader(LifelongReader):
    """Reads `memory.pool` alone, so nothing that a compiler could not read.

    Args:
        memory: the memory.
        k: records of the pool.
    """

    def __init__(self, memory: LifelongMemory, k: int):
        super().__init__(memory)
        self._k = k
        self._pool: list[Record] = []

    def _records(self, query: str) -> Mapping[str, list[Record]]:
        self._pool = [_with_actions(record) for record in self._records_about(query)]
        by_module: dict[str, list[Record]] = {name: [] for name in ("notes", "profile", "episodic", "semantic")}
        for record in self._pool:
            by_module.setdefault(record.module, []).append(record)
        return by_module

    def _records_about(self, query: str) -> Sequence[Record]:
        return self._memory.pool(k=self._k, about=query, by_age=True)

    def _places_by_age(self, kind: str, records: Mapping[str, list[Record]]) -> list[str]:
        return [place for record in self._pool for place in self._places_in(record, kind)]


class GivenReader(PoolReader):
    """Reads a pool that is given, by the texts that a compiler sees.

    Args:
        pool: of a task that begins.
        user: who is believed.
    """

    def __init__(self, pool: Pool, user: str = "ann"):
        self._all, self._user = pool.records, user

    def _records_about(self, query: str) -> Sequence[Record]:
        return self._all

    def _note(self, number: int) -> Record | None:
        return None

    def _is_users(self, record: Record) -> bool:
        return record.trust == "user" and record.speaker in ("", self._user)


def _with_actions(record: Record) -> Record:
    if record.kind not in ("experience", "failure"):
        return record
    steps = record.data["experience"].episode.steps
    return record._replace(data={**record.data, "actions": [step.action for step in steps]})


def _age(record: Record) -> tuple[int, int]:
    """Return when something was learned last: task and step."""
    return (record.episode if record.episode is not None else -1, record.step or 0)

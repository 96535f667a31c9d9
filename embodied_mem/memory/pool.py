"""The pool: all that a memory knows for a step, as records on one scale, for a compiler to read.

    records = memory.pool("put a clean mug in cabinet.", observation, k=8, budget_tokens=400)
    records[0].text                  # "here: mug was in desk 1; cleaned at sinkbasin 1; placed in cabinet 1"
    records[0].data["age"]           # tasks since it was last true
    records[0].sources, records[0].trust, records[0].score

Trajectories come from the episodic memory, all else from `LifelongMemory.retrieve`, whose scores they share: a
trajectory's is its score among trajectories as a share of the highest one possible. The last steps are left out, for
they stand in the Brief State, and so are the entries of the episodic memory, whose trajectories say the same.

Source: MemCompiler 3.1, eq. 1, the pool `M = Retrieve(B, g)`. Deviation: of all memories, not of trajectories alone.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple, Protocol

from ..errors import InvalidInputError
from .arguments import checked_flag, checked_number, checked_text, checked_texts, shown
from .bank import Experience, draws, with_numbers
from .episodic import EpisodicMemory
from .notes import NoteMemory
from .recollection import Recollection, count_tokens, record_json
from .record import Record, Source, new_record
from .trust import QUOTED
from .words import words_of

FORMS = ("brief", "rationale", "trajectory", "summary")
"""Forms of a trajectory: `Experience.brief` alone; also goal, outcome and actions; every command with its answer; or
what the episodic memory says of all tries, in words that a model may have written."""
KINDS = ("experience", "failure", "place", "told", "rule")
"""Won and lost episodes; where things are; what somebody said, and what follows from it; regularities and lessons."""
_KIND, _TEXT, _DATA = map(Record._fields.index, ("kind", "text", "data"))
_DENIAL = re.compile(r"\b(?:not|never|no|nor)\b|n't\b", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+")
_KIND_OF = {"spatial": "place", "notes": "told", "profile": "told", "semantic": "rule"}


class LeftOut(NamedTuple):
    """A record that is not in a pool, and why."""

    record: Record
    reason: str


@dataclasses.dataclass(frozen=True)
class Reading:
    """The part of a memory that a compiler reads.

    Attributes:
        k: at most so many records.
        budget_tokens: limit of their texts; None for none.
        form: of trajectories.
        kinds: of records, of `KINDS`.
        numbered: trajectories have numbers, so that guidance can name its source.
        newest_first: trajectories stand in order of age.
        with_ages: lines of trajectories say how many tasks ago they were, as those of other records do.
        focused: only records whose text has all words of what is to be done.
        with_verified: lines of told things say when they were last verified: told again, or seen where they were told
            to be.
        by_age: the records stand newest first, those without an age and regularities last. What others say comes after
            all that is known at first hand, and takes the room that is left.
    """

    k: int = 8
    budget_tokens: int | None = None
    form: str = "brief"
    kinds: tuple[str, ...] = KINDS
    numbered: bool = False
    newest_first: bool = False
    with_ages: bool = False
    focused: bool = False
    with_verified: bool = False
    by_age: bool = False

    def __post_init__(self) -> None:
        checked_number("k", self.k, least=0)
        if self.budget_tokens is not None:
            checked_number("budget_tokens", self.budget_tokens, least=0)
        if self.form not in FORMS:
            raise InvalidInputError(f"form: expected one of {', '.join(FORMS)}, got {shown(self.form)}")
        if unknown := set(checked_texts("kinds", self.kinds)) - set(KINDS):
            raise InvalidInputError(f"kinds: expected some of {', '.join(KINDS)}, got {shown(min(unknown))}")
        for name in ("numbered", "newest_first", "with_ages", "focused", "with_verified", "by_age"):
            checked_flag(name, getattr(self, name))


@dataclasses.dataclass(frozen=True)
class Pool(Sequence[Experience]):
    """The records for a step, best first, and those that were found and left out.

    As a sequence it is its `experiences`: length, index and iteration see no other records.
    """

    records: tuple[Record, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def experiences(self) -> list[Experience]:
        """The trajectories among the records."""
        return [record.data["experience"] for record in self.records if "experience" in record.data]

    def as_json(self) -> dict[str, Any]:
        """Return the records that were `given` and `left_out`, as JSON data."""
        left = [record_json(one.record) | {"reason": one.reason} for one in self.left_out]
        return {"given": [record_json(record) for record in self.records], "left_out": left}

    def __len__(self) -> int:
        return len(self.experiences)

    def __getitem__(self, index: Any) -> Any:
        return self.experiences[index]

    def __iter__(self) -> Iterator[Experience]:
        return iter(self.experiences)


class Recalls(Protocol):
    """The source of a pool: a `LifelongMemory`."""

    goal: str
    episode: int
    running: bool
    task_ids: list[str]
    episodic: EpisodicMemory | None
    notes: NoteMemory | None

    def retrieve(
        self, query: str | None = None, budget_tokens: int | None = None, *, k: int | None = None
    ) -> Recollection: ...

    def get(self, id: str) -> Record | None: ...


def retrieve_pool(
    memory: Recalls,
    goal: str,
    observation: str,
    reading: Reading,
    about: str = "",
    exclude_task_ids: Iterable[str] = (),
    task_key: Callable[[str], str] = str,
    counter: Callable[[str], int] = count_tokens,
) -> Pool:
    """Retrieve the pool of a step; see `LifelongMemory.pool`."""
    exclude = tuple(checked_texts("exclude_task_ids", exclude_task_ids))
    goal, about = checked_text("goal", goal), checked_text("about", about)
    context = checked_text("observation", observation)
    keys = {task_key(one) for one in exclude}
    task_ids = exclude if task_key is str else [one for one in memory.task_ids if task_key(one) in keys]
    records = _trajectories(memory, goal, context, reading, exclude, task_ids)
    if set(reading.kinds) - {"experience", "failure"}:
        for query in dict.fromkeys(filter(None, (goal, about))):
            records += _others(memory, query, reading, keys, task_key)
    best: dict[str, Record] = {}
    for record in sorted(records, key=lambda one: (reading.by_age and one.trust in QUOTED, -one.score)):
        # One entry may stand for several trajectories.
        is_lived = record.kind in KINDS[:2] and reading.form != "summary"
        best.setdefault(record.text if is_lived or not record.id else record.id, record)
    words = set(words_of(about)) if reading.focused else set()
    return _packed([*best.values()], reading, counter, words)


def _verbatim(memory: Recalls, item: Record) -> Record:
    """Return the note with a profile's newest source, if there is one."""
    numbers = item.data["notes"]
    note = memory.get(f"notes:{max(numbers)}") if numbers and memory.notes is not None else None
    return (
        item if note is None or (note.episode, note.ended) != (item.episode, None) else note._replace(score=item.score)
    )


def _trajectories(
    memory: Recalls,
    goal: str,
    context: str,
    reading: Reading,
    exclude: Sequence[str],
    task_ids: Sequence[str],
) -> list[Record]:
    episodic = memory.episodic
    if episodic is None or not len(episodic.trajectories):
        return []
    records = []
    for kind in KINDS[:2]:
        if kind not in reading.kinds:
            continue
        is_won = kind == "experience"
        count = reading.k * (4 if reading.focused else 1)
        rows = episodic.experiences(goal, count, context=context, exclude_task_ids=task_ids, won=is_won)
        if reading.newest_first:
            rows = sorted(rows, key=lambda row: -row[0].index)
        origins = {one.index: (number, entry) for one, number, entry in rows}
        some = [one for one, *_ in rows]
        if reading.numbered and is_won:
            some = with_numbers(some, draws(0, goal, context, exclude))
        most = 1 + episodic.trajectories.object_weight + episodic.trajectories.context_weight
        scores = sorted((min(max(one.score / most, 0.0), 1.0) for one in some), reverse=True)
        for one, score in zip(some, scores):  # in the order of trajectories, whatever comes between
            number, entry = origins[one.index]
            own, text = {} if entry is None else entry.data, text_of(one, reading.form)
            if reading.form == "summary" and entry is not None:
                text, number = entry.text, entry.support[-1].episode
            age = memory.episode - number + (not memory.running)
            if reading.with_ages and text:
                text = text.replace(":", f"{since_text(age)}:", 1)
            data = own | {
                "goal": one.episode.goal, "won": is_won, "why": one.rationale, "steps": len(one.episode.steps),
                "age": age, "experience": one,
            }  # fmt: skip
            records.append(
                Record(
                    "" if entry is None else f"episodic:{entry.id}", "episodic", kind, text,
                    place=own.get("place", ""), data=data, sources=(Source(number, None),),
                    score=score, why="the goal, its thing and the room are compared",
                )
            )  # fmt: skip
    return records


def since_text(age: int) -> str:
    """Write an age in tasks."""
    return " now" if age <= 0 else f" {age} tasks ago" if age > 1 else " 1 task ago"


def text_of(one: Experience, form: str) -> str:
    """Write a trajectory; empty if it has no safe line."""
    line = one.brief()
    if not one.episode.won and line:
        line = f"failed {line}"
    if form in ("brief", "summary") or not line:
        return line
    episode = one.episode
    if form == "rationale":
        return line if not (acts := one.render().partition("\nacts: ")[2]) else f"{line}\nacts: {acts}"
    room = " ".join(episode.first_observation.partition("Your task is to:")[0].split())
    lines = [f"past: {' '.join(episode.goal.split()).rstrip('.')}\n{room}"]
    lines += [f"> {step.action}\n{' '.join(answer.split())}" for step, answer in zip(episode.steps, episode.answers)]
    return "\n".join(lines)


def _others(
    memory: Recalls, query: str, reading: Reading, exclude: set[str], task_key: Callable[[str], str]
) -> list[Record]:
    """Return records of the other modules, each with its kind and age."""
    records = []
    earlier = {number for number, one in enumerate(memory.task_ids) if task_key(one) in exclude} if exclude else set()
    items = memory.retrieve(query, k=None if query == memory.goal else 2 * reading.k).items
    places = [item for item in items if item.module == "spatial"] if reading.with_verified else []
    for item in items:
        if item.module == "profile":
            item = _verbatim(memory, item)
        kind = _KIND_OF.get(item.module, "")
        if kind not in reading.kinds:
            continue
        episode = item.episode
        is_past = episode is not None and (episode < memory.episode or not memory.running)
        if is_past and episode in earlier:
            continue
        age = None if episode is None else memory.episode - episode + (not memory.running)
        since = "" if age is None else since_text(age)
        if age is not None and reading.with_verified and kind == "told":
            since = _told_since(item, places, age)
        who = f" {item.speaker}" if item.speaker else ""
        line = " ".join(item.text.split())
        text, data = f"{kind}{who}{since}: {line}", {**item.data, "age": age}
        records.append(new_record((*item[:_KIND], kind, text, *item[_TEXT + 1 : _DATA], data, *item[_DATA + 1 :])))
    return records


def _told_since(item: Record, places: Sequence[Record], age: int) -> str:
    """Write when a record was told first and last confirmed."""
    words = set() if _DENIAL.search(item.text) else set(words_of(item.text))
    tasks = [item.sources[-1].episode]
    for place in places:
        if (
            place.fact is not None
            and place.sources
            and words.issuperset(words_of(_NUMBERS.sub("", f"{place.fact[0]} {place.fact[2]}")))
        ):
            tasks.append(place.sources[-1].episode)
    first, last = (age + tasks[0] - task for task in (item.sources[0].episode, max(tasks)))
    return since_text(first) + (f", last verified{since_text(last)}" if last < first else "")


def _packed(
    best: Sequence[Record], reading: Reading, counter: Callable[[str], int], words: Set[str] = frozenset()
) -> Pool:
    """Take the best that fit and have all words; cut raw trajectories."""
    records: list[Record] = []
    rest: list[LeftOut] = []
    room = reading.budget_tokens
    for record in best:
        if not record.text:
            rest.append(LeftOut(record, "its reason is not one that rules write or a quotation"))
        elif words and not words <= set(words_of(record.text)):
            rest.append(LeftOut(record, "does not name what is to be done"))
        elif len(records) == reading.k:
            rest.append(LeftOut(record, f"{reading.k} records fit better"))
        elif room is None or (size := counter(record.text)) <= room:
            records.append(record)
            room = None if room is None else room - size
        elif reading.form == "trajectory" and "experience" in record.data and (cut := _cut(record.text, room, counter)):
            records.append(record._replace(text=cut))
            room -= counter(cut)
        else:
            rest.append(LeftOut(record, f"costs {size} tokens, {room} were left"))
    if reading.by_age:
        records.sort(key=lambda one: (one.trust in QUOTED, _age(one)))
    return Pool(tuple(records), tuple(rest))


def _age(record: Record) -> float:
    age = None if record.kind == "rule" else record.data.get("age")
    return math.inf if age is None else age


def _cut(text: str, room: int, counter: Callable[[str], int]) -> str:
    """Return the first steps of a trajectory that fit; empty for none."""
    lines = text.split("\n")
    low, high = 1, len(lines) // 2  # goal and room, then a command and its answer each
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if counter("\n".join(lines[: 2 * middle])) <= room else (low, middle - 1)
    return "\n".join(lines[: 2 * low]) if low > 1 else ""

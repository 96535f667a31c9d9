"""Facts of episodes by rules, and a search among texts: the common part of memory methods of other papers.

Rules read what the reader of household sentences says, and write facts in the words of `Experience.brief`, so that an
executor that was trained with those reads them. The room stands behind a fact, and is read back as `here` or
`elsewhere`.
"""

from __future__ import annotations

from collections.abc import Iterable

from embodied_mem.agents.method import MemoryMethod
from embodied_mem.compiler.prompts import compact_room, plain_goal
from embodied_mem.language.chat import ChatModel, Json
from embodied_mem.memory.bank import relevant_events
from embodied_mem.memory.embedders import default_embedder
from embodied_mem.memory.search import TextIndex
from embodied_mem.types import Episode

_SAID = {"take": "was in", "place": "placed in", "clean": "cleaned at", "heat": "heated in", "cool": "cooled in"}
TEXT: Json = {"type": "string"}
TEXTS: Json = {"type": "array", "items": TEXT}


class SearchingMethod(MemoryMethod):
    """A method that searches its texts by a question."""

    TASK_WEIGHT = 1
    """Times that the task stands in a question before the room; 0 for the task alone. Free: chosen on `dev` games,
    with as many tries for every method (`experiments/analyses/baseline_trials.py`)."""
    TOP_K = 5
    """Entries that are recalled."""

    def __init__(self, chat: ChatModel | None = None):
        super().__init__(chat)
        self.entries = Entries()

    def near(self, text: str, k: int) -> dict[int, str]:
        """Return the `k` entries that fit a text best, by id."""
        return {number: self.entries.texts[number] for number, _ in self.entries.index.search(text, k)}

    def recall(self, task: str, observation: str, newest: str = "") -> list[str]:
        return lines_for(self.near(self.question(task, observation, newest), self.TOP_K).values(), observation)

    def texts(self) -> list[str]:
        return [*self.entries.texts.values()]

    def question(self, task: str, observation: str, newest: str = "") -> str:
        """Make a search text of task, newest answer and any shown room."""
        said = " ".join([*[plain_goal(task)] * max(self.TASK_WEIGHT, 1), *newest.split()])
        room = compact_room(observation.partition("Your task is to:")[0])
        return tagged(said, room if self.TASK_WEIGHT else "")


class Entries:
    """Texts under ids that count from 0, searched by meaning. An entry may be searched by another text than it has."""

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.index = TextIndex(default_embedder())
        self._next = 0

    def add(self, text: str, searched_by: str = "") -> int:
        """Return the new entry's id."""
        number, self._next = self._next, self._next + 1
        self.put(number, text, searched_by)
        return number

    def put(self, number: int, text: str, searched_by: str = "") -> None:
        """Writes an entry anew."""
        self.texts[number] = text
        self.index.add(number, searched_by or text)

    def remove(self, number: int) -> None:
        """Takes an entry away."""
        del self.texts[number]
        self.index.remove(number)


def schema_of(**properties: Json) -> Json:
    """Return an object with all of these."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def schema_list(**properties: Json) -> Json:
    """Return a list of such objects."""
    return {"type": "array", "items": schema_of(**properties)}


def transcript(episode: Episode) -> str:
    """Return an episode as a model reads it."""
    lines = [f"task: {plain_goal(episode.goal)}", " ".join(episode.first_observation.split())]
    lines += [f"> {step.action}\n{' '.join(a.split())}" for step, a in zip(episode.steps, episode.answers)]
    return "\n".join([*lines, "The task was done." if episode.won else "The task was not done."])


def facts_of(episode: Episode) -> list[str]:
    """Return what was where and what was done where.

    Each is a fact, with the room.
    """
    room = compact_room(episode.first_observation)
    return [tagged(fact, room) for fact in clauses_of(episode)]


def clauses_of(episode: Episode) -> list[str]:
    """Return the facts without room and numbers of objects, each once.

    They stand in the order in which they came about.
    """
    clauses = []
    for _, kind, name, place in relevant_events(episode):
        what = name if kind == "use" else name.rstrip("0123456789 ")
        clauses.append(f"used {what} in {place}" if kind == "use" else f"{what} {_SAID[kind]} {place}")
    return list(dict.fromkeys(clauses))


def tagged(fact: str, room: str) -> str:
    """Return a fact with its room."""
    return f"{fact} (room: {room})" if room else fact


def untagged(text: str) -> str:
    """Return a text without its room."""
    return text.partition(" (room: ")[0] if text.endswith(")") else text


def room_of(text: str) -> str:
    """Return the room that follows a fact; empty if none does."""
    return text.partition(" (room: ")[2].removesuffix(")") if text.endswith(")") else ""


def lines_for(texts: Iterable[str], observation: str) -> list[str]:
    """Write memories as lines of a prompt, each once.

    `here` marks a fact of this room, `elsewhere` that of another.
    """
    here = compact_room(observation.partition("Your task is to:")[0])
    lines = []
    for text in texts:
        room, said = room_of(text), " ".join(untagged(text).split())
        lines.append(f"{'here' if room == here else 'elsewhere'}: {said}" if room else said)
    return list(dict.fromkeys(lines))

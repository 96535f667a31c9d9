"""What every memory method is: it observes episodes, and recalls lines of text for a task.

    class Method(MemoryMethod):
        def observe(self, episode): ...
        def recall(self, task, observation): return ["here: apple was in fridge 1"]

A call to a model is `ask`: the same question goes to a chat model, or to a rule that answers in the same schema. Rules
read what the reader of household sentences says, and write facts in the words of `Experience.brief`, so that an
executor that was trained with those reads them. The room stands behind a fact, and is read back as `here` or
`elsewhere`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from embodied_mem.compiler.prompts import compact_room, plain_goal
from embodied_mem.language.chat import ChatModel, Json
from embodied_mem.language.json_answers import complete_json
from embodied_mem.memory.bank import relevant_events
from embodied_mem.memory.embedders import default_embedder
from embodied_mem.memory.search import TextIndex
from embodied_mem.types import Episode

_ROOM = re.compile(r" \(room: (.*)\)\Z")
_SAID = {"take": "was in", "place": "placed in", "clean": "cleaned at", "heat": "heated in", "cool": "cooled in"}
TEXT: Json = {"type": "string"}
TEXTS: Json = {"type": "array", "items": TEXT}


class MemoryMethod:
    """The common part: calls to a model, and what they were.

    Args:
        chat: answers the calls; None for rules.

    Attributes:
        calls: made so far, of the model or of rules in its place.
        tokens: [sent, received] by these. Of rules, what a model would have been sent, at four bytes a token.
    """

    TASK_WEIGHT = 1
    """How often the task stands in a question before the room; 0 for the task alone. Free: chosen on `dev` games,
    with as many tries for every method (`experiments/analyses/baseline_trials.py`)."""

    def __init__(self, chat: ChatModel | None = None):
        self.chat, self.calls, self.tokens = chat, 0, [0, 0]

    def observe(self, episode: Episode) -> None:
        """Takes note of an episode."""
        raise NotImplementedError

    def recall(self, task: str, observation: str, newest: str = "") -> list[str]:
        """Memories for a task, best first.

        Args:
            task: the goal.
            observation: the first text of the episode.
            newest: answer to the last command, where something is recalled at a later step.
        """
        raise NotImplementedError

    def texts(self) -> list[str]:
        """All that is kept, as texts: its growth is counted from these."""
        raise NotImplementedError

    def ask(self, instruction: str, given: Json, schema: Json, rule: Callable[[], Any]) -> Any:
        """The answer of the model, or of the rule where there is none; it fits the schema.

        Raises:
            ChatError: the model gave none that fits.
        """
        self.calls += 1
        told, shown = f"{instruction} Answer with JSON only.", json.dumps(given)
        if self.chat is None:
            answer = rule()
            self._count(num_tokens(told) + num_tokens(shown), num_tokens(json.dumps(answer)))
            return answer
        messages: list[dict[str, object]] = [
            {"role": "system", "content": told},
            {"role": "user", "content": shown},
        ]
        meter = self.chat.meter
        sent, received = meter.prompt_tokens, meter.completion_tokens
        answer = complete_json(self.chat, messages, schema, max_tokens=1024)
        self._count(meter.prompt_tokens - sent, meter.completion_tokens - received)
        return answer

    def _count(self, sent: int, received: int) -> None:
        self.tokens = [self.tokens[0] + sent, self.tokens[1] + received]

    def question(self, task: str, observation: str, newest: str = "") -> str:
        """What is searched for: the task, what was seen last, and the room where the observation shows one."""
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
        """The new entry's id."""
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
    """An object with all of these."""
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def schema_list(**properties: Json) -> Json:
    """A list of such objects."""
    return {"type": "array", "items": schema_of(**properties)}


def transcript(episode: Episode) -> str:
    """An episode as a model reads it."""
    lines = [f"task: {plain_goal(episode.goal)}", " ".join(episode.first_observation.split())]
    lines += [f"> {step.action}\n{' '.join(a.split())}" for step, a in zip(episode.steps, episode.answers)]
    return "\n".join([*lines, "The task was done." if episode.won else "The task was not done."])


def facts_of(episode: Episode) -> list[str]:
    """What was where and what was done where, a fact each, with the room."""
    room = compact_room(episode.first_observation)
    return [tagged(fact, room) for fact in clauses_of(episode)]


def clauses_of(episode: Episode) -> list[str]:
    """The facts without room and numbers of objects, in the order in which they came about, each once."""
    clauses = []
    for _, kind, name, place in relevant_events(episode):
        what = name if kind == "use" else name.rstrip("0123456789 ")
        clauses.append(f"used {what} in {place}" if kind == "use" else f"{what} {_SAID[kind]} {place}")
    return list(dict.fromkeys(clauses))


def tagged(fact: str, room: str) -> str:
    """A fact with its room."""
    return f"{fact} (room: {room})" if room else fact


def num_tokens(text: str) -> int:
    """Tokens of a text whose tokenizer is not known: one for four bytes, rounded up."""
    return -(-len(text.encode()) // 4)


def untagged(text: str) -> str:
    """A text without its room."""
    return _ROOM.sub("", text)


def room_of(text: str) -> str:
    """The room that stands behind a fact; empty if there is none."""
    found = _ROOM.search(text)
    return found[1] if found else ""


def lines_for(texts: Iterable[str], observation: str) -> list[str]:
    """Memories as lines of a prompt, each once: `here` for a fact of this room, `elsewhere` for that of another."""
    here = compact_room(observation.partition("Your task is to:")[0])
    lines = []
    for text in texts:
        room, said = room_of(text), " ".join(untagged(text).split())
        lines.append(f"{'here' if room == here else 'elsewhere'}: {said}" if room else said)
    return list(dict.fromkeys(lines))

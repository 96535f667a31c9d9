"""Mem0 in its two forms: memories that a model keeps up to date (1.0), and memories that are only ever added (2.2).

    mem0_1   facts of an episode; the five nearest memories of each; one call says ADD, UPDATE, DELETE or NONE for all
    mem0_2   one call with ten neighbours and the last ten messages gives what is new; equal texts are kept once;
             found by meaning, words and entities together

Source: Chhikara et al., "Mem0" (2025), and the package mem0ai. Ours: prompts, rules, embedder, how entities are found,
the mean length in BM25 (the package's is fixed at 256 words). An episode is one message.
"""

from __future__ import annotations

import math
import re
from collections import deque

from embodied_mem.language.chat import ChatModel, Json
from embodied_mem.memory.search import K1, WordIndex
from embodied_mem.memory.words import content_words
from embodied_mem.types import Episode

from .method import (
    TEXT,
    TEXTS,
    Entries,
    SearchingMethod,
    facts_of,
    lines_for,
    room_of,
    schema_list,
    schema_of,
    transcript,
    untagged,
)

TOP_K = 20
_PLACE = re.compile(r"(was|placed|cleaned|heated|cooled|used .{,80}?) (?:in|at) .*")


class Mem0One(SearchingMethod):
    """Release 1.0: each new fact is added, replaces an old memory, removes one, or changes nothing."""

    NEIGHBOURS, TOP_K = 5, TOP_K
    FACTS = "List what is worth remembering of this episode, one short fact each."
    DECIDE = (
        "Decide for each new fact what becomes of the memory: ADD it, UPDATE the memory with this id to a new text, "
        "DELETE the memory with this id, which it contradicts, or NONE."
    )
    DECISIONS = schema_of(memory=schema_list(id=TEXT, text=TEXT, event={"enum": ["ADD", "UPDATE", "DELETE", "NONE"]}))

    def observe(self, episode: Episode) -> None:
        """Make two calls; one where there is no fact."""
        facts = self.ask(
            self.FACTS, {"episode": transcript(episode)}, schema_of(facts=TEXTS), lambda: {"facts": facts_of(episode)}
        )["facts"]
        if not facts:
            return
        near: dict[int, str] = {}
        for fact in facts:
            near |= self.near(fact, self.NEIGHBOURS)
        numbers = {str(i): number for i, number in enumerate(near)}  # a model copies small numbers rightly
        old = [{"id": i, "text": near[number]} for i, number in numbers.items()]
        given: Json = {"memory": old, "new_facts": facts}
        for one in self.ask(self.DECIDE, given, self.DECISIONS, lambda: {"memory": _decided(old, facts)})["memory"]:
            if one["event"] == "ADD" and one["text"]:
                self.entries.add(one["text"])
            elif (number := numbers.get(one["id"])) in self.entries.texts:
                if one["event"] == "UPDATE":
                    self.entries.put(number, one["text"])
                elif one["event"] == "DELETE":
                    self.entries.remove(number)


def _decided(old: list[dict[str, str]], facts: list[str]) -> list[dict[str, str]]:
    """Decide by rule what new facts change.

    What is known changes nothing; another place of the same thing in that room replaces it.
    """
    known = {one["text"]: one["id"] for one in old}
    about = {_topic(one["text"]): one["id"] for one in old}
    decided = []
    for fact in facts:
        event, number = ("NONE", known[fact]) if fact in known else ("ADD", "")
        if event == "ADD" and _topic(fact) in about:
            event, number = "UPDATE", about[_topic(fact)]
        decided.append({"id": number, "text": fact, "event": event})
    return decided


def _topic(text: str) -> tuple[str, str]:
    """Return the topic: (the text without its place, room)."""
    return _PLACE.sub(r"\1", untagged(text)), room_of(text)


class Mem0Two(SearchingMethod):
    """Release 2.2: nothing is ever changed; what is new is added, and found by three scores together."""

    NEIGHBOURS, LAST_MESSAGES, THRESHOLD = 10, 10, 0.1
    ENTITY_WEIGHT, SAME_ENTITY, NEAR_ENTITY, MAX_ENTITIES = 0.5, 0.95, 0.5, 8
    EXTRACT = "List what the new episode tells that the existing memories do not, one self-contained sentence each."

    def __init__(self, chat: ChatModel | None = None):
        super().__init__(chat)
        self.words = WordIndex()
        self.entities, self.linked = Entries(), dict[int, set[int]]()
        self._by_name: dict[str, int] = {}
        self._last: deque[str] = deque(maxlen=self.LAST_MESSAGES)

    def observe(self, episode: Episode) -> None:
        """Make one call."""
        message = transcript(episode)
        near = [*self.near(message, self.NEIGHBOURS).values()]
        existing = [{"id": str(i), "text": text} for i, text in enumerate(near)]
        given: Json = {"existing": existing, "last": [*self._last], "new": message}
        rule = lambda: {"memory": [{"text": fact} for fact in facts_of(episode)]}  # noqa: E731
        answer = self.ask(self.EXTRACT, given, schema_of(memory=schema_list(text=TEXT)), rule)
        known = set(near)  # duplicates are looked for among the neighbours only, as the original does
        for text in (one["text"] for one in answer["memory"]):
            if text and text not in known:
                known.add(text)
                number = self.entries.add(text)
                self.words.add(number, content_words(text))
                for entity in entities_of(text):
                    self._link(entity, number)
        self._last.append(message)

    def _link(self, entity: str, number: int) -> None:
        same = self._by_name.get(entity)
        if same is None:
            found = self.entities.index.search(entity, 1)
            if found and found[0][1] >= self.SAME_ENTITY:
                same = found[0][0]
            else:
                same = self._by_name[entity] = self.entities.add(entity)
        self.linked.setdefault(same, set()).add(number)

    def recall(self, task: str, observation: str, newest: str = "") -> list[str]:
        found = self.search(self.question(task, observation, newest))
        return lines_for((self.entries.texts[number] for number, _ in found), observation)

    def search(self, query: str, k: int = TOP_K) -> list[tuple[int, float]]:
        """(id, score), best first.

        score = (cosine + sigmoid(BM25) + entity boost) / (1 + 1 + 0.5), a part that finds nothing counts nowhere; what
        has a cosine below 0.1 is left out.
        """
        near = [(n, c) for n, c in self.entries.index.search(query, max(4 * k, 60)) if c >= self.THRESHOLD]
        words, boosts = self._word_scores(query, max(4 * k, 60)), self._boosts(query)
        most = 1.0 + bool(words) + self.ENTITY_WEIGHT * bool(boosts)
        scored = [(n, min((c + words.get(n, 0.0) + boosts.get(n, 0.0)) / most, 1.0)) for n, c in near]
        return sorted(scored, key=lambda one: -one[1])[:k]

    def _word_scores(self, query: str, k: int) -> dict[int, float]:
        asked = content_words(query)
        whole = (K1 + 1) * sum(self.words.weight(word) for word in dict.fromkeys(asked))
        steps = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5))
        middle, slope = next(((m, s) for most, m, s in steps if len(asked) <= most), (12.0, 0.5))
        best = sorted(self.words.search(asked).items(), key=lambda one: -one[1])[:k]
        return {n: 1 / (1 + math.exp(-slope * (whole * share - middle))) for n, share in best if share > 0}

    def _boosts(self, query: str) -> dict[int, float]:
        boosts: dict[int, float] = {}
        for entity in entities_of(query)[: self.MAX_ENTITIES]:
            for same, cosine in self.entities.index.search(entity, 500):
                if cosine < self.NEAR_ENTITY:
                    break
                linked = self.linked[same]
                boost = cosine * self.ENTITY_WEIGHT / (1 + 0.001 * (len(linked) - 1) ** 2)
                boosts |= {number: max(boosts.get(number, 0.0), boost) for number in linked}
        return boosts


_VERBS = set(
    ["put", "placed", "clean", "cleaned", "heat", "heated", "cool", "cooled", "used", "hot", "was", "examine", "look"]
)


def entities_of(text: str) -> list[str]:
    """Return the names in a text, each once.

    Here they are every word that says what a thing is; the original asks a parser for nouns.
    """
    words = re.findall(r"[a-z]+", untagged(text).lower())
    return list(dict.fromkeys(word for word in words if word not in _VERBS and content_words(word)))

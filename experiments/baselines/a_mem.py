"""A-Mem: notes that are linked to each other, and that change when a new note tells more about them.

A note is a content with keywords, a context and tags, all of which it is searched by. A second call sees the five
nearest notes and may link the new one to them, and write their contexts and tags anew; what a neighbour is searched by
follows only when the index is rebuilt, after every 100 such evolutions.

Source: Xu et al., "A-Mem: Agentic Memory for LLM Agents" (2025). Ours: prompts, rules, embedder; an episode's facts
are the content where rules write it, its transcript where a model annotates it.
"""

from __future__ import annotations

import dataclasses

from embodied_mem.compiler.prompts import compact_room, plain_goal
from embodied_mem.language.chat import ChatModel, Json
from embodied_mem.memory.words import content_words
from embodied_mem.types import Episode

from .method import (
    TEXT,
    TEXTS,
    SearchingMethod,
    clauses_of,
    lines_for,
    schema_list,
    schema_of,
    tagged,
    transcript,
    untagged,
)


@dataclasses.dataclass
class Note:
    """One note.

    Attributes:
        content: what it says.
        keywords, context, tags: what a model said of it.
        links: ids of notes.
    """

    content: str
    keywords: list[str]
    context: str
    tags: list[str]
    links: list[int] = dataclasses.field(default_factory=list)

    @property
    def searched_by(self) -> str:
        return " ".join([self.content, *self.keywords, self.context, *self.tags])


class AMem(SearchingMethod):
    """Notes, links, evolution."""

    NEIGHBOURS, TOP_K, REBUILD_EVERY = 5, 10, 100
    TASK_WEIGHT = 4
    ANNOTATE = "Give keywords, one sentence of context and tags of this episode."
    EVOLVE = (
        "Say to which of the neighbours the note should be linked (their ids), which tags it should have, and for each "
        "neighbour that the note tells more about its new context and tags."
    )
    KEYWORDS = "Give the keywords to search the memory for this task by."
    ANNOTATION = schema_of(keywords=TEXTS, context=TEXT, tags=TEXTS)
    EVOLUTION = schema_of(links=TEXTS, tags=TEXTS, neighbours=schema_list(id=TEXT, context=TEXT, tags=TEXTS))

    def __init__(self, chat: ChatModel | None = None):
        super().__init__(chat)
        self.notes: dict[int, Note] = {}
        self.evolutions = 0

    def observe(self, episode: Episode) -> None:
        """Make two calls; the second where there are neighbours."""
        message, goal = transcript(episode), plain_goal(episode.goal)
        words = list(dict.fromkeys(content_words(goal)))
        about = self.ask(
            self.ANNOTATE, {"episode": message}, self.ANNOTATION,
            lambda: {"keywords": words, "context": goal, "tags": words[-2:]},
        )  # fmt: skip
        content = message
        if self.chat is None:
            content = tagged("; ".join(clauses_of(episode)) or goal, compact_room(episode.first_observation))
        note = Note(content, about["keywords"], about["context"], about["tags"])
        near = [*self.near(note.searched_by, self.NEIGHBOURS)]
        if near:
            self._evolve(note, near)
        self.notes[self.entries.add(note.content, note.searched_by)] = note
        if near and self.evolutions % self.REBUILD_EVERY == 0:
            for number, old in self.notes.items():
                self.entries.put(number, old.content, old.searched_by)

    def _evolve(self, note: Note, near: list[int]) -> None:
        shown = [{"id": str(n), **dataclasses.asdict(self.notes[n])} for n in near]
        given: Json = {"note": dataclasses.asdict(note), "neighbours": shown}
        answer = self.ask(self.EVOLVE, given, self.EVOLUTION, lambda: self._by_rule(note, near))
        note.links = [n for n in near if str(n) in answer["links"]]
        note.tags = answer["tags"] or note.tags
        for one in answer["neighbours"]:
            if one["id"] in map(str, near):
                old = self.notes[int(one["id"])]
                old.context, old.tags = one["context"], one["tags"]
        self.evolutions += bool(note.links or answer["neighbours"])

    def _by_rule(self, note: Note, near: list[int]) -> Json:
        """Link notes with a common tag; give them the new one's tags."""
        same = [n for n in near if set(self.notes[n].tags) & set(note.tags)]
        changed = []
        for n in same:
            old = self.notes[n]
            if not set(note.tags) <= set(old.tags):
                tags = list(dict.fromkeys([*old.tags, *note.tags]))
                changed.append({"id": str(n), "context": old.context, "tags": tags})
        return {"links": [str(n) for n in same], "tags": note.tags, "neighbours": changed}

    def recall(self, task: str, observation: str, newest: str = "") -> list[str]:
        """Return the ten nearest notes, each followed by its linked notes.

        It costs one call.
        """
        asked = self.question(task, observation, newest)
        words = self.ask(self.KEYWORDS, {"task": asked}, schema_of(keywords=TEXTS), lambda: {"keywords": [asked]})
        found = self.near(" ".join(words["keywords"]), self.TOP_K)
        numbers = [n for first in found for n in (first, *self.notes[first].links)]
        return lines_for((self.notes[n].content for n in dict.fromkeys(numbers)), observation)

    def texts(self) -> list[str]:
        return [untagged(note.searched_by) for note in self.notes.values()]

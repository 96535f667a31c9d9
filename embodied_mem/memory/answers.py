"""Answers of each memory to a question, on one scale.

    asked = Question("where is the blue mug?")
    items = answers("spatial", memory.spatial, asked, weight)

For the goal of the running task every memory scores by itself: its last steps and what is around the agent fit it. For
any other question an item is scored by `relevance`: of the words of the question, each with its weight, what its text
has, and what its memory found similar or near. How recent a step is moves its score by a tenth at most.
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from .episodic import EpisodicMemory
from .notes import NoteMemory
from .profile import UserProfile
from .record import Record
from .search import SIMILAR, Asked, relevance
from .semantic import SemanticMemory
from .spatial import SpatialMemory
from .temporal import TemporalMemory
from .views import ViewMemory
from .words import content_words

_FOUND = 8
_FEW = 16
"""Least knowledge asked of a profile; words and vectors then rank it, since a sum of vectors may lose shared words."""
_OF_QUOTED = 0.9
"""Factor on the score of words of another agent or a document."""
_BIAS, _WEIGHTS = -3.47, (2.57, 2.22, 1.34, -0.58, -1.17)
"""Logistic regression over `features`, of generated dialogues and weeks (`experiments/dialogues/calibration.py`)."""
_LEAST = 0.05
"""Below this nothing fits: two words whose hashes meet."""


class Question(NamedTuple):
    """A question and its situation.

    Attributes:
        query: the text.
        k: at most so many items are wanted; None for as many as each memory gives.
        as_of: a time to look back to; None for now.
        where: values that an item must have.
        of_task: whether it is the goal of the running task.
        place: of the running task.
        hops: how far to go from what the query names.
    """

    query: str
    k: int | None = None
    as_of: int | None = None
    where: Mapping[str, Any] = types.MappingProxyType({})
    of_task: bool = False
    place: str = ""
    hops: int = 2


def answers(name: str, module: Any, asked: Question, weight: Callable[[str], float] | None) -> list[Record]:
    """Return what a memory finds.

    Each is of one of the types below and of no other: asking an abstract class whether it has an instance takes longer.

    Args:
        name: of the memory.
        module: the memory.
        asked: the question.
        weight: how much a stem tells; None if they all tell the same.
    """
    if asked.where.get("module", name) != name or type(module) is ViewMemory:
        return []  # views are asked by pose and time, see `LifelongMemory.sightings`
    if type(module) is NoteMemory:
        values = {name: value for name, value in asked.where.items() if name != "module"}
        found = module.retrieve(asked.query, max(asked.k or 0, _FOUND), as_of=asked.as_of, where=values)
        return [item for item in found if item.score >= _LEAST]
    words = None if asked.of_task else Asked(asked.query, _same if weight is None else weight)
    if words is not None and not words.weights:
        words = None  # such as "what did you just do?"
    found = _found(module, asked, words)
    if asked.where:
        numbers = [module.number_like(item.number) for item in found]
        found = [item for item, number in zip(found, numbers) if module.record(number).fits(asked.where)]
    return found if words is None else _fitting(module, found, words)


def lowered(item: Record) -> Record:
    """Lower a quotation's score a little, so that trusted equals come first."""
    return item._replace(score=_OF_QUOTED * item.score)


def best_of(items: Iterable[Record], k: int) -> list[Record]:
    """Return the `k` best items; those that repeat better ones are skipped."""
    found: list[Record] = []
    said: set[str] = set()
    for item in sorted(items, key=lambda item: -item.score):
        ids = {item.id, item.text.rstrip(".! "), *(f"notes:{note}" for note in item.data.get("notes", ())[:1])}
        if said.isdisjoint(ids):
            found.append(item)
            if len(found) >= k:
                break
        said |= ids
    return found[:k]


def features(items: Iterable[Record], query: str, notes: NoteMemory) -> dict[str, tuple[float, ...]]:
    """Give the features of the best items by their id.

    They say whether an item answers, and depend little on what a memory is about: is it the first, its score less the
    mean of the best eight, the share of the question's words that it has, each with its weight, the share that none of
    the eight has, and whether the question names a speaker whom it does not name.
    """
    words, best, names = Asked(query, notes.word_weight), best_of(items, _FOUND), notes.names_in(query)
    if not words.weights:
        return {}
    stems = [notes.stems_of(int(i.number)) if i.module == "notes" else set(content_words(i.text)) for i in best]
    unknown = 1 - words.share_of(set().union(*stems))
    mean = sum(item.score for item in best) / _FOUND
    return {
        item.id: (
            float(not at), item.score - mean, words.share_of(its), unknown, float(bool(names) and names.isdisjoint(its))
        )
        for at, (item, its) in enumerate(zip(best, stems))
    }  # fmt: skip


def with_probabilities(items: list[Record], query: str, notes: NoteMemory) -> list[Record]:
    """Say how likely the best items answer: logistic regression."""
    chances = {
        id: 1 / (1 + math.exp(-_BIAS - sum(map(operator.mul, _WEIGHTS, its))))
        for id, its in features(items, query, notes).items()
    }
    return [item._replace(probability=chances[item.id]) if item.id in chances else item for item in items]


def _same(word: str) -> float:
    return 1.0


def _found(module: Any, asked: Question, words: Asked | None) -> list[Record]:
    """Return the items of a memory beside the notes, as it scores."""
    if type(module) is SpatialMemory:
        options: dict[str, Any] = {"hops": asked.hops, "as_of": asked.as_of}
        if words is None:
            return module.retrieve(asked.query, **options)
        named = module.retrieve(asked.query, agent=False, **options)
        around = module.retrieve(asked.query, **options)
        texts = {item.text for item in named}
        return named + [item for item in around if item.text not in texts and words.share(item.text)]
    if type(module) is TemporalMemory:
        return module.retrieve(asked.query, as_of=asked.as_of)
    if type(module) is UserProfile:
        near = module.retrieve(asked.query, max(asked.k or 0, _FEW), as_of=asked.as_of, above=-1.0)
        if words is not None:
            return near
        if not near:
            return []
        same = Asked(asked.query, _same)
        return [item for item in near if item.score > SIMILAR or same.share(item.text)][: max(asked.k or 0, 5)]
    if type(module) is EpisodicMemory:  # of the place of the running task only for that task
        return module.retrieve(asked.query, place=asked.place if asked.of_task else "", as_of=asked.as_of)
    assert type(module) is SemanticMemory
    return module.retrieve(asked.query, as_of=asked.as_of)


def _fitting(module: Any, found: Iterable[Record], words: Asked) -> list[Record]:
    """Return the items that fit the question, on the scale of `relevance`."""
    items = []
    for item in found:
        share = words.share(item.text)
        score = relevance(share, item.score)
        if type(module) is TemporalMemory:
            score = relevance(share, share) * (0.9 + 0.1 * item.score) if share else 0.0
        if score >= _LEAST:
            items.append(item._replace(score=score))
    return items

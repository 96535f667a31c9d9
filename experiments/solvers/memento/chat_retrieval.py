"""A chat model in retrieval: how much a memory is needed, and what the user may have said earlier.

    model = ChatRetrieval(ChatWriter(chat), parallel=8)
    TraceMemory(traces, embedder, model=model).retrieve(instruction, scene_id, k=3, strategy="reranker")

Each question is asked once. Source: MEMENTO E.3: a pointwise reranker of the ten best by similarity, and reworded
queries, by the model that acts. Its prompts are not published; the wording is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from embodied_mem.language.chat import Json
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory.chat_writer import ChatWriter

MAX_SCORE = 10
_MAX_SENTENCES, _MAX_LENGTH = 4, 400


def _object_of(name: str, schema: Json) -> Json:
    return {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}


class ChatRetrieval:
    """A model's answers about instructions; `writer` counts its calls, `parallel` go side by side."""

    def __init__(self, writer: ChatWriter, parallel: int = 1):
        self.writer, self._parallel = writer, parallel
        self._scores: dict[tuple[str, str], float] = {}
        self._sentences: dict[str, tuple[str, ...]] = {}

    def scores(self, instruction: str, memories: Sequence[str]) -> list[float]:
        """Rate each memory from 0 to `MAX_SCORE`; 0 without a usable answer."""
        new = [text for text in dict.fromkeys(memories) if (instruction, text) not in self._scores]
        with ThreadPoolExecutor(self._parallel) as pool:
            ratings = pool.map(lambda text: self._score(instruction, text), new)
            self._scores.update(((instruction, text), rating) for text, rating in zip(new, ratings))
        return [self._scores[instruction, text] for text in memories]

    def sentences(self, instruction: str) -> tuple[str, ...]:
        """Reword an instruction as earlier sentences; none without a usable answer."""
        if instruction not in self._sentences:
            schema = _object_of("sentences", {"type": "array", "items": {"type": "string"}})
            question = f"Asked now: {instruction}"
            self._sentences[instruction] = (
                self.writer.ask(prompt(__package__, "expand"), question, _texts, schema) or ()
            )
        return self._sentences[instruction]

    def _score(self, instruction: str, memory: str) -> float:
        question = f"Asked now: {instruction}\n\nEarlier task: {memory}"
        schema = _object_of("score", {"type": "number"})
        return self.writer.ask(prompt(__package__, "rerank"), question, _rating, schema) or 0.0


def _rating(answer: Any) -> float:
    score = float(answer["score"])
    if not 0 <= score <= MAX_SCORE:
        raise ValueError(f"expected a score from 0 to {MAX_SCORE}, got {score}")
    return score


def _texts(answer: Any) -> tuple[str, ...]:
    texts = tuple(" ".join(text.split())[:_MAX_LENGTH] for text in answer["sentences"] if text.strip())
    if not texts:
        raise ValueError("expected sentences, got none")
    return texts[:_MAX_SENTENCES]

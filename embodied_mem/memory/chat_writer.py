"""Lets a chat model write memories: answers follow strict schemas, failures are counted, rules replace them.

    writer = ChatWriter(model)                       # a ChatModel, or a function from messages to the answer's text
    spatial = SpatialMemory(extractor=writer.facts)
    temporal = TemporalMemory(summarizer=writer.summary)
    writer.calls, writer.malformed, writer.failed

An answer must hold the JSON that was asked for; thoughts, words and code fences around it are left out. Where a
question has a schema, it goes along to the model, and the answer is held against it. Otherwise the caller gets None, or
nothing, and goes on by rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ..errors import InvalidInputError
from ..forks import forking_lock
from ..language.chat import ChatModel, Json
from ..language.images import Picture, content
from ..language.json_answers import close_json, find_json, read_json
from ..language.prompt_files import prompt
from .arguments import checked_number, shown

Chat = Callable[[list[dict[str, Any]]], str]
"""Messages {"role", "content"} -> the answer's text."""

Value = TypeVar("Value")

_FACTS = prompt("embodied_mem.memory", "facts")
_SUMMARY = prompt("embodied_mem.memory", "steps")
_STEP = prompt("embodied_mem.memory", "step")
SUMMARY: Json = {
    "type": "object",
    "properties": {"summary": {"type": "string", "minLength": 1, "maxLength": 400}},
    "required": ["summary"],
    "additionalProperties": False,
}
_UNFIT = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_MAX_FACTS = 64
_MAX_TEXT = 400


class ChatWriter:
    """Asks a chat model and believes only well-formed answers.

    Attributes:
        calls: questions asked.
        malformed: answers that were not what was asked for.
        failed: questions that got no answer, whatever the caller's model raised.
        last_error: the last reason for one; empty if there was none.
    """

    def __init__(self, chat: Chat | ChatModel, *, max_tokens: int = 512):
        """Ask `chat`; `max_tokens` is the most that a `ChatModel` may answer."""
        if not callable(chat) and not callable(getattr(chat, "complete", None)):
            raise InvalidInputError(
                f"chat: expected a ChatModel or a function from messages to an answer, got {shown(chat)}"
            )
        self._chat = chat
        self._max_tokens = checked_number("max_tokens", max_tokens, least=1)
        self._lock = forking_lock()
        self.calls = self.malformed = self.failed = 0
        self.last_error = ""

    @property
    def fallbacks(self) -> int:
        """Questions after which rules had to do."""
        return self.malformed + self.failed

    def ask(
        self,
        instruction: str,
        question: str,
        parse: Callable[[Any], Value],
        schema: Json | None = None,
        images: Sequence[Picture] = (),
        is_strict: bool = True,
    ) -> Value | None:
        """Parse the model's JSON answer; None if it is unusable.

        Args:
            instruction: what to do and in which form to answer.
            question: the material.
            parse: checks the value; raises ValueError, KeyError or TypeError for one that was not asked for.
            schema: which JSON is asked for, an object; None if `parse` alone knows. The value of an object with one
                property may come without the object.
            is_strict: whether the answer must fit the schema; else `parse` judges what there is of it, and an answer
                that was cut off is read as far as it goes.
            images: pictures that belong to the question; a function as model gets them as content parts, too.
        """
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": instruction},
            {"role": "user", "content": content(question, images)},
        ]
        with self._lock:
            self.calls += 1
        try:
            answer = self._answer(messages, schema)
        except Exception as error:  # of the caller's client: no list of types would have them all
            with self._lock:
                self.failed += 1
                self.last_error = shown(error)
            return None
        try:
            if not isinstance(answer, str):
                raise TypeError("expected a text")
            if schema is not None and is_strict:
                return parse(_fitting(answer, schema))
            try:
                return _parsed(answer, parse)
            except ValueError:
                if is_strict:
                    raise
                return _parsed(close_json(answer), parse)
        except _UNFIT as error:
            with self._lock:
                self.malformed += 1
                self.last_error = f"{shown(error)}; the answer was {shown(answer)}"
            return None

    def _answer(self, messages: list[dict[str, Any]], schema: Json | None) -> str:
        if callable(self._chat):
            return self._chat(messages)
        wanted = None
        if schema is not None:
            wanted = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
        return self._chat.complete(
            [dict(message) for message in messages], max_tokens=self._max_tokens, response_format=wanted
        ).text

    def facts(self, action: str, text: str) -> Iterable[tuple[str, str, str]]:
        """Extract facts from a text; none if the answer is unusable."""
        return self.ask(_FACTS, f"The robot did: {action or 'nothing'}\nIt was told: {text}", parse_facts) or ()

    def summary(self, texts: Sequence[str]) -> str | None:
        """Merge several texts into one; a `Summarizer` of the temporal memory."""
        return self.ask(_SUMMARY, "\n".join(texts), lambda value: parse_text(value["summary"]), SUMMARY)

    def step_summary(self, action: str, text: str) -> str | None:
        """Return what came of one action. A `StepSummarizer` of the temporal memory."""
        question = f"The robot did: {action or 'nothing'}\nIt was told: {text}"
        return self.ask(_STEP, question, lambda value: parse_text(value["summary"]), SUMMARY)


def checked_writer(writer: ChatWriter | None) -> ChatWriter | None:
    """Return the writer, or None. Raises InvalidInputError for what cannot be asked."""
    if writer is not None and not callable(getattr(writer, "ask", None)):
        raise InvalidInputError(f"writer: expected a ChatWriter or None, got {shown(writer)}")
    return writer


def parse_facts(value: Any) -> tuple[tuple[str, str, str], ...]:
    """Parse facts from [subject, relation, object] lists. Raises ValueError."""
    if not isinstance(value, list) or len(value) > _MAX_FACTS:
        raise ValueError(f"expected a list of at most {_MAX_FACTS} facts")
    facts = []
    for fact in value:
        if not isinstance(fact, list) or len(fact) != 3:
            raise ValueError("expected [subject, relation, object]")
        subject, relation, object_ = map(parse_text, fact)
        facts.append((subject, relation, object_))
    return tuple(facts)


def parse_text(value: Any) -> str:
    """Return a text on one line. Raises ValueError if unusable."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not 0 < len(text) <= _MAX_TEXT:
        raise ValueError(f"expected a text of 1 to {_MAX_TEXT} characters")
    return text


def _parsed(answer: str, parse: Callable[[Any], Value]) -> Value:
    """Parse the JSON in an answer. Raises ValueError if none fits."""
    taken: list[Value] = []

    def check(value: object) -> tuple[object, str]:
        try:
            taken.append(parse(value))
        except _UNFIT as error:
            return value, shown(error)
        return value, ""

    _, wrong = find_json(answer, check)
    if wrong:
        raise ValueError(wrong)
    return taken[0]


def _fitting(answer: str, schema: Json) -> Any:
    """Return an answer's value. Raises ValueError if the schema refuses it."""
    value, wrong = read_json(answer, schema)
    if wrong and len(names := list(schema["properties"])) == 1:
        inner, still_wrong = read_json(answer, schema["properties"][names[0]])
        value, wrong = ({names[0]: inner}, still_wrong)
    if wrong:
        raise ValueError(wrong)
    return value

"""Checks arguments as they enter a memory: type, range, and text in one Unicode form (NFC).

    goal = checked_text("goal", goal)
    k = checked_number("k", k, least=0)

Every function returns the value to go on with, or raises InvalidInputError that names the argument.
"""

from __future__ import annotations

import functools
import math
import numbers
import operator
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from ..errors import EmbodiedMemError, InvalidInputError
from ..types import Episode, Step

LEAST, MOST = -(2**63), 2**63 - 1
"""Range of a time, a step and the number of an episode."""

WHEN = ("episode", "step", "time")
"""Fields of an event that say in which episode, at which step and when."""

MAX_DEPTH = 100
"""Lists and mappings within each other in what is stored; JSON is read and written by recursion, 1,000 deep at most."""

_MAX_SHOWN = 80

F = TypeVar("F", bound=Callable[..., Any] | None)
P = ParamSpec("P")
R = TypeVar("R")


def shown(value: Any) -> str:
    """Return a value as messages show it: short, and never an error."""
    try:
        text = repr(value)
    except Exception:  # e.g. an int of more digits than Python writes
        return f"one of type {type(value).__name__}"
    if not text:
        return f"one of type {type(value).__name__}"
    most = _MAX_SHOWN * (4 if isinstance(value, BaseException) else 1)
    return text if len(text) <= most else f"{text[:most]}... ({type(value).__name__})"


def checked_text(name: str, value: Any) -> str:
    """Return the text in Unicode's composed form."""
    if not isinstance(value, str):
        raise InvalidInputError(f"{name}: expected text, got {shown(value)}")
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"{name}: expected text that UTF-8 can hold, got {shown(value)}: {error}") from None
    return unicodedata.normalize("NFC", value)


def checked_number(name: str, value: Any, least: int = LEAST, most: int = MOST) -> int:
    """Check for a whole number and return it as an `int`."""
    if type(value) is not int:  # what is asked most comes first
        try:
            if isinstance(value, bool):
                raise TypeError
            value = operator.index(value)
        except TypeError:
            raise InvalidInputError(f"{name}: expected a whole number, got {shown(value)}") from None
    if not least <= value <= most:
        expected = f">= {least}" if value < least and most == MOST else f"{least} to {most}"
        raise InvalidInputError(f"{name}: expected {expected}, got {shown(value)}")
    number: int = value
    return number


def checked_real(name: str, value: Any) -> float:
    """Check for a finite number and return it."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise InvalidInputError(f"{name}: expected a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInputError(f"{name}: expected a finite number, got {shown(value)}")
    return number


def checked_flag(name: str, value: Any) -> bool:
    """True or False."""
    if type(value).__name__ not in ("bool", "bool_"):  # numpy's too
        raise InvalidInputError(f"{name}: expected True or False, got {shown(value)}")
    return bool(value)


def checked_texts(name: str, value: Any) -> list[str]:
    """Return the texts of a list; one text alone is a mistake."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InvalidInputError(f"{name}: expected a list of texts, got {shown(value)}")
    return [checked_text(f"{name}[{i}]", text) for i, text in enumerate(value)]


def checked_call(name: str, value: F) -> F:
    """Something that can be called, or None."""
    if value is not None and not callable(value):
        raise InvalidInputError(f"{name}: expected a function or None, got {shown(value)}")
    return value


def checked_episode(value: Any) -> Episode:
    """Return the episode, with texts in it."""
    if not isinstance(value, Episode) or not isinstance(value.steps, Sequence):
        raise InvalidInputError(f"episode: expected an Episode with a sequence of steps, got {shown(value)}")
    for i, step in enumerate(value.steps):
        if not isinstance(step, Step):
            raise InvalidInputError(f"episode.steps[{i}]: expected a Step, got {shown(step)}")
    for images in (value.final_images, *(step.images for step in value.steps)):
        if type(images) is not tuple or (images and not all(type(image) is bytes for image in images)):
            raise InvalidInputError(f"episode: images: expected a tuple of files as bytes, got {shown(images)}")
    texts = [value.task_id, value.goal, value.final_observation]
    texts += [text for step in value.steps for text in (step.observation, step.action)]
    for text in texts:
        if type(text) is not str or not text.isascii():
            checked_text("episode", text)
    checked_flag("episode.won", value.won)
    return value


class Fields(NamedTuple):
    """Names of what an event must have that is a whole number, and that is text."""

    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


def checked_event(where: str, event: Any, operations: Mapping[str, Fields]) -> str:
    """Return an event's operation; check its name and fields."""
    op = event.get("op") if type(event) is dict or isinstance(event, Mapping) else None
    if not isinstance(op, str) or op not in operations:
        *most, last = operations
        expected = f"{', '.join(most)} or {last}" if most else last
        raise InvalidInputError(f"{where}: expected op {expected}, got {shown(event if op is None else op)}")
    numbers, texts = operations[op]
    for name in numbers:
        number = event.get(name)
        if type(number) is not int or not LEAST <= number <= MOST:
            checked_number(f"{where}: {name}", number)
    for name in texts:
        text = event.get(name)
        if type(text) is not str or not text.isascii():
            checked_text(f"{where}: {name}", text)
    return op


def check_given(where: str, event: Mapping[str, Any], **checks: Callable[[str, Any], Any]) -> None:
    """Raise InvalidInputError for a given field that its check refuses."""
    for name, check in checks.items():
        if event.get(name) is not None:
            check(f"{where}: {name}", event[name])


def native_call(method: Callable[P, R]) -> Callable[P, R]:
    """Wrap a native call: turn its type errors into InvalidInputError.

    The native part looks at its arguments before it does anything, so nothing has changed then.
    """

    @functools.wraps(method)
    def checked(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return method(*arguments, **named)
        except EmbodiedMemError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            got = [type(value).__name__ for value in arguments[1:]]
            got += [f"{name}: {type(value).__name__}" for name, value in named.items()]
            raise InvalidInputError(
                f"{method.__name__}: expected arguments of the types and ranges that its documentation has, got "
                f"({', '.join(got)}): {str(error).partition(chr(10))[0][:200]}"
            ) from error

    return checked


def check_depth(name: str, value: Any, text: str | bytes) -> None:
    """Raise InvalidInputError for lists and mappings more than `MAX_DEPTH` within each other.

    Args:
        name: of the value.
        value: of types that JSON has.
        text: the value as JSON; few brackets in it need no look at the value.
    """
    num_opened = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if num_opened <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inside = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))]
        level = [value for values in inside for value in values]
        if not inside:
            return
    raise InvalidInputError(f"{name}: expected lists and mappings at most {MAX_DEPTH} within each other, got more")


def checked_rows(where: str, value: Any) -> Sequence[Any]:
    """Return a list or tuple; refuse other types."""
    if not isinstance(value, (list, tuple)):
        raise InvalidInputError(f"{where}: expected a list, got {shown(value)}")
    return value


def checked_mapping(where: str, value: Any) -> Mapping[str, Any]:
    """Return a dictionary, as of a JSON object."""
    if type(value) is not dict and not isinstance(value, Mapping):
        raise InvalidInputError(f"{where}: expected a mapping, got {shown(value)}")
    return value

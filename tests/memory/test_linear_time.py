"""Time of each door on long runs of one mark: it grows with the text, not faster."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory

UNITS = [" ", "\t", "\u00a0", "a, ", "and ", "not ", "'", '"', "(", "-", "9", "a", "\n", "猫", "Aa-"]


def update(memory: LifelongMemory, text: str) -> None:
    memory.update(memory.tell("I like milk.").stored[0].id, text)


DOORS: dict[str, Callable[[LifelongMemory, str], object]] = {
    "tell": lambda memory, text: memory.tell(text),
    "update": update,
    "retrieve": lambda memory, text: memory.retrieve(text),
    "forget": lambda memory, text: memory.forget(object=text),
    "action": lambda memory, text: memory.observe(text, "You see a mug."),
    "observation": lambda memory, text: memory.observe("look", text),
    "subject": lambda memory, text: memory.observe("look", facts=[(text, "on", "desk")]),
    "relation": lambda memory, text: memory.observe("look", facts=[("mug", text, "desk")]),
    "object": lambda memory, text: memory.observe("look", facts=[("mug", "on", text)]),
    "goal": lambda memory, text: memory.begin_task("second", text, ""),
    "first": lambda memory, text: memory.begin_task("second", "bring the mug", text),
}


def seconds(door: str, text: str) -> float:
    """CPU time of a door; a refusal counts as an answer."""
    memory = LifelongMemory()
    if door not in ("goal", "first"):
        memory.begin_task("first", "bring the mug", "")
    begin = time.process_time()
    with contextlib.suppress(InvalidInputError):
        DOORS[door](memory, text)
    return time.process_time() - begin


@pytest.mark.parametrize("form", ["{}", "I like{}tea."])
@pytest.mark.parametrize("door", DOORS)
def test_time_grows_with_the_text(door: str, form: str) -> None:
    seconds(door, "猫")  # makes the patterns that a first text needs
    slow = {}
    for unit in UNITS:
        short, long = (form.format(unit * (length // len(unit))) for length in (12_500, 50_000))
        first = seconds(door, short)
        assert first < 3, (unit, first)
        then = seconds(door, long)
        if then > min(8 * first + 0.1, 3):
            first, then = min(first, seconds(door, short)), min(then, seconds(door, long))
        if then > min(8 * first + 0.1, 3):
            slow[unit] = (first, then)
    assert not slow


def test_the_first_text_outside_ascii_costs_little() -> None:
    from embodied_mem.memory import words

    words._patterns.cache_clear()
    assert seconds("tell", "猫") < 1

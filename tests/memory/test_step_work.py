"""How much work a step of `LifelongMemory` with rules alone is, counted in calls of functions: the same on any machine.

The benchmark `experiments/benchmarks/lifelong.py` says how long a step takes. This finds work that grows with what
is remembered.
"""

import gc
import sys

import pytest

from embodied_mem.memory import Scope
from embodied_mem.memory.lifelong import LifelongMemory

KINDS = ("cabinet", "drawer", "countertop", "shelf", "stoveburner", "sinkbasin", "garbagecan", "fridge")
THINGS = ("mug", "apple", "fork", "plate", "pan")


def room(number, size):
    """A first observation: furniture that no other room has in these numbers."""
    names = [f"a {KINDS[i % len(KINDS)]} {number * 100 + i}" for i in range(size)]
    return f"You are in the middle of a room. Looking quickly around you, you see {', '.join(names)}."


def seen(number, size):
    """(action, answer) of one step in such a room."""
    names = [f"a {THINGS[i % len(THINGS)]} {i}" for i in range(size)]
    return f"go to shelf {number}", f"You arrive at shelf {number}. On the shelf {number}, you see {', '.join(names)}."


def calls_of(work):
    """Calls of Python's and of C's functions."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def first_step(memory, number, size):
    def work():
        memory.begin_task(f"task {number}", "put a clean mug in cabinet.", room(number, size))
        memory.retrieve(budget_tokens=256)

    calls = calls_of(work)
    for step in range(3):
        memory.observe(*seen(number + step, 4))
    memory.end_task(True)
    return calls


@pytest.fixture(scope="module")
def grown():
    memory = LifelongMemory(Scope(user="ann"))
    for number in range(60):
        first_step(memory, number, 20)
    return memory


def test_a_step_is_no_more_work_in_a_memory_that_has_grown(grown):
    young = LifelongMemory(Scope(user="ann"))
    for number in range(6):
        first_step(young, number, 20)
    assert first_step(grown.fork(), 100, 20) < 1.25 * first_step(young, 100, 20)


def test_a_fork_and_a_restored_memory_take_as_little_work(grown):
    restored = LifelongMemory(grown.scope)
    restored.restore(grown.state())
    calls = {}
    for name, memory in (("fork", grown.fork()), ("restored", restored)):
        first = first_step(memory, 200, 20)  # which no fork has asked: they share vectors
        memory.begin_task("known room", "put a clean mug in cabinet.", room(7, 20))
        calls[name] = first, calls_of(lambda: memory.observe(*seen(700, 20)))  # noqa: B023 (called at once)
    fork, restored = calls["fork"], calls["restored"]
    assert restored[0] < 1.15 * fork[0]
    assert restored[1] < 1.15 * fork[1]


def test_garbage_is_collected_between_tasks_rather_than_within_a_step():
    memory, ran = LifelongMemory(Scope(user="ann")), []

    def note(phase, info):
        ran.append(info["generation"])

    for number in range(20):
        gc.callbacks[:] = [*gc.callbacks, *([note] if number else [])]
        try:
            memory.begin_task(f"task {number}", "put a clean mug in cabinet.", room(number, 40))
            memory.retrieve(budget_tokens=256)
            for step in range(3):
                memory.observe(*seen(number + step, 4))
                memory.retrieve(budget_tokens=256)
        finally:
            gc.callbacks[:] = [one for one in gc.callbacks if one is not note]
        memory.end_task(True)
    assert ran == []

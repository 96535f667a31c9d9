"""Seats at a chat model: each is counted for itself, and a recording answers each task whatever is played beside it."""

from __future__ import annotations

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.language import RecordedChatModel
from embodied_mem.language.chat import ChatError, ChatReply, Usage, UsageMeter
from embodied_mem.language.seats import Seats
from embodied_mem.memory import LifelongMemory


class Counting:
    """A model whose n-th answer is n."""

    name = "counting"

    def __init__(self):
        self.meter, self.seeds = UsageMeter(max_total_tokens=90), []

    def complete(self, messages, *, seed=None, **settings):
        with self.meter.call(0):
            self.seeds.append(seed)
            self.meter.count(Usage(10, 5))
            return ChatReply(str(len(self.seeds)), Usage(10, 5))


ASKED = [{"role": "user", "content": "Where is the mug?"}]


def test_a_recording_answers_each_task_whatever_the_order(tmp_path):
    def answers(model, tasks):
        found = {}
        for task in tasks:
            seats = Seats(model, "agent")
            seats.begin(task)
            found[task] = [seats["planner"].complete(ASKED).text for _ in range(2)]
        return found

    path = tmp_path / "calls.jsonl"
    recorded = answers(RecordedChatModel(Counting(), path), ["a", "b"])
    assert recorded == {"a": ["1", "2"], "b": ["3", "4"]}
    assert answers(RecordedChatModel(None, path, "counting"), ["b", "a"]) == recorded


def test_a_seed_is_the_agents_and_the_tasks_and_nobody_elses():
    model = Counting()
    for name, task in (("full", "a"), ("full", "b"), ("blind", "a"), ("full", "a"), ("", "a")):
        seats = Seats(model, name)
        seats.begin(task)
        seats["critic"].complete(ASKED)
    first, *others, again, none = model.seeds
    assert again == first
    assert len({first, *others}) == 3
    assert none is None


def test_a_function_is_no_chat_model():
    with pytest.raises(InvalidInputError, match=r"model: expected a chat model with complete.*got <function"):
        Seats(lambda messages: "yes")


def test_each_seat_is_counted_since_the_task_began():
    seats = Seats(Counting(), "agent", memory=Counting())
    seats["planner"].complete(ASKED)
    seats.begin("task")
    seats["planner"].complete(ASKED)
    seats["memory"].complete(ASKED)
    seats["memory"].complete(ASKED)
    counts = {name: count for name, count in seats.counts().items() if count and not name.endswith("_ms")}
    assert counts == {"planner_calls": 1, "planner_tokens": 15, "memory_calls": 2, "memory_tokens": 30}


def test_a_budget_that_a_memory_survives_is_told_at_the_end_of_the_task():
    seats = Seats(Counting(), memory=Counting())
    seats.begin("task")
    memory = LifelongMemory(chat=seats.memory)
    memory.begin_task("task", "put a mug on desk 1.", "")
    for number in range(12):
        memory.observe("look", f"Grumpf {number} xyzzy. " * 12)
    assert memory.writer.failed > 0
    with pytest.raises(ChatError, match="the budget of 90 tokens is used up"):
        seats.counts()

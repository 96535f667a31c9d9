"""Every reader of what a model wrote takes 300 KB of the worst characters in linear time, and no raw error leaves it.

The limit is in seconds of the processor and far above what a linear reader needs; one that is not linear would take
hours. It interrupts the reader, regular expressions included.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import signal

import pytest
from text_room import TextRoom

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.agents.planner_critic.chat import (
    VERDICT_SCHEMA,
    ChatCritic,
    ChatPlanner,
    ChatPreprocessor,
    plan_schema,
)
from embodied_mem.agents.robot.skills import Skill
from embodied_mem.compiler.brief_state import BriefState, apply_all
from embodied_mem.compiler.output_grammar import MAX_EDITS, parse_output
from embodied_mem.language import ChatReply
from embodied_mem.language.chat import UsageMeter
from embodied_mem.language.json_answers import MAX_DEPTH, load_json, read_json
from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.memory.conflicts import ChatResolver
from embodied_mem.training.teachers.chat_teacher import ChatTeacher
from embodied_mem.worlds.alfworld.wording.text import parse_command
from embodied_mem.worlds.memento.agent.react import ReActAgent
from embodied_mem.worlds.memento.traces.trace import parse_action

SIZE = 300_000
SECONDS = 10
ROOM = TextRoom({"desk 1": ["pen 1"], "shelf 1": []})
GOAL = "put a clean apple in fridge."


def many(unit: str, before: str = "", after: str = "") -> str:
    return before + unit * (SIZE // len(unit)) + after


def numbered(line: str) -> str:
    return "\n".join(itertools.islice((line % number for number in itertools.count()), SIZE // len(line)))


WORST = {
    "backticks": many("`"), "fences": many("```"), "a fence that does not end": many("\n", "```json", "x"),
    "blank lines in a fence": many("\n", "```json\n", "\n```"), "fences on lines": many("```\n"),
    "spaces in a fence": many(" ", "```", "\n1```x"), "newlines": many("\n"), "spaces": many(" ", "", "x"),
    "carriage returns": many("\r"), "tabs": many("\t", "a", "b"), "braces": many("{"), "objects": many('{"a":'),
    "brackets": many("["), "lists": "[" * 150_000 + "]" * 150_000, "pairs": many("[]", "[", "]"),
    "quotes": many('"'), "backslashes": many("\\"), "escapes": many("\\u", '"'), "less than": many("<"),
    "words": many("a "), "one word": many("a"), "digits": many("1"), "a fraction": many("1", "0."),
    "many numbers": many("1,", "[", "1]"), "colons": many(":"), "semicolons": many(";", "next: "),
    "nulls": many("\0"), "halves of characters": many("\ud800"), "accents": many("e\u0301"),
    "calls": many("Explore["), "calls in a call": many("] ", "Explore[", "x"), "tools": many("FindRoomTool["),
    "commas": many(",", "Place[", "]"), "assigned": many("Assigned!"),
    "spaces before assigned": many(" ", "x", "Assigned"),
    "go": many("go to "), "take": many("take a from "), "a long thing": many("a", "take ", " 1 from desk 1"),
    "edits": numbered("+ seen: apple %d in bed 1"), "facts": numbered("+ searched: shelf %d"), "folds": many("fold\n"),
    "subgoals": "+ now: a\n" + numbered("+ next: find %d"), "reasons": many("why: a\n"), "guidance": many("do: a\n"),
}  # fmt: skip
DEEP = {
    "steps": json.dumps({"steps": [{"action": "x" * SIZE}]}),
    "many steps": json.dumps({"steps": [{"action": "look"}] * 50_000}),
    "lists in steps": '{"steps": ' + "[" * 400 + "]" * 400 + "}",
    "deeper than it is read": "[" * 300 + "]" * 300,
    "lesson": json.dumps({"output": numbered("+ seen: apple %d in bed 1"), "action": "a " * 1000, "reference": ""}),
    "facts": json.dumps([["a", "in", "b"]] * 60_000),
}


@contextlib.contextmanager
def limit(seconds=SECONDS):
    def stop(*_):
        raise AssertionError(f"more than {seconds} s of the processor")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


SKILLS = [Skill("take", ("thing",)), Skill("look", wording="look")]


class Says:
    """A model with one answer."""

    name = "says"

    def __init__(self, text: str):
        self.text, self.meter = text, UsageMeter()

    def complete(self, messages, **settings):
        return ChatReply(self.text)


def plan(text):
    model, preprocessor = Says(text), ChatPreprocessor(Says(text))
    agent = PlannerCriticAgent.for_world("alfworld", planner=ChatPlanner(model, SKILLS))
    agent.begin("t", "put a mug in shelf.", ROOM.text())
    ChatCritic(model).review(agent.plan.steps[0], agent._look(False))
    preprocessor.summarise(GOAL, "look", "nothing")
    preprocessor.query(GOAL, "look", "nothing")


def write(text):
    writer = ChatWriter(lambda messages: text)
    assert list(writer.facts("look", "A mug is on the desk."))[64:] == []
    writer.summary(["a"])
    ChatResolver(writer)((), ())
    memory = LifelongMemory(chat=lambda messages: text)
    memory.begin_task("t", "put a mug in shelf.", ROOM.text())
    memory.observe("look", "You see nothing.")
    memory.end_task(True)
    memory.tell("I keep my tea in the kitchen.")


def teach(text):
    for answer in (text, json.dumps({"edits": [text], **dict.fromkeys(("do", "why", "action", "reference"), text)})):
        ChatTeacher(Says(answer), "look").begin(GOAL, ROOM.text(), ())


def compile_(text):
    output = parse_output(text)
    assert len(output.edits) <= MAX_EDITS
    apply_all(output.edits, BriefState.start(GOAL))
    BriefState.parse(text)


def react(text):
    agent = ReActAgent(Says(text))
    agent.begin("put the cup on the bed", "Furniture:\nkitchen_1: table_4")
    parse_action(agent.act("").action)


def command(text):
    parse_command(text)
    parse_action(text)
    ROOM.step(text)


def read(text):
    for schema in ({}, VERDICT_SCHEMA, plan_schema(SKILLS, 8)):
        value, wrong = read_json(text, schema)
        assert wrong or value is not None


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in (WORST | DEEP).items()])
def test_every_reader_is_linear(text):
    for reader in (read, plan, write, teach, compile_, react, command):
        with limit():
            reader(text)


def test_the_limit_stops_a_regular_expression():
    with pytest.raises(AssertionError, match="of the processor"), limit(0.05):
        re.match(r"^```[a-zA-Z]*\s*\n(.*?)\n?\s*```$", many("\n", "```json", "x"), re.DOTALL)


def test_depth_is_bounded_exactly():
    assert load_json("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert load_json('{"a": ' * MAX_DEPTH + "1" + "}" * MAX_DEPTH)
    for text in ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "[" * 10**6, '{"a":' * 10**5):
        with pytest.raises(ValueError, match="nested deeper than"):
            load_json(text)


def test_edits_beyond_the_limit_are_malformed():
    output = parse_output("brief\n" + "\n".join(f"+ searched: shelf {number}" for number in range(MAX_EDITS + 3)))
    assert (len(output.edits), output.malformed) == (MAX_EDITS, 3)
    assert (len(parse_output("fold\n" * 300).edits), parse_output("fold\n" * 300).malformed) == (MAX_EDITS, 44)

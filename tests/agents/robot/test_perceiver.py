"""The perceiver: what a model is told and shown, what becomes of its answers, what memory then knows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent
from embodied_mem.agents.planner_critic.plan import Plan, PlanStep
from embodied_mem.agents.robot.perceiver import Perceiver
from embodied_mem.agents.robot.robot import Outcome
from embodied_mem.agents.robot.runner import Runner
from embodied_mem.agents.robot.skills import TASK_COMPLETE, Skill
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.json_answers import close_json
from embodied_mem.memory import Image, LifelongMemory

FRAME = np.zeros((8, 8, 3), np.uint8)


def answering(*answers):
    """A model that gives these answers, JSON or texts, and what it was sent."""
    sent, left = [], iter(answers)

    def chat(messages):
        sent.append(messages)
        answer = next(left)
        return answer if isinstance(answer, str) else json.dumps(answer)

    return chat, sent


def answer(*facts, summary="It looks.", outcome="unknown", ended=()):
    return {"summary": summary, "facts": list(facts), "outcome": outcome, "ended": list(ended)}


def remembering(chat, **options) -> LifelongMemory:
    memory = LifelongMemory(perceiver=Perceiver(chat, **options))
    memory.begin_task("t", "bring the apple", "", place="flat")
    return memory


def current(memory) -> set[str]:
    return {one.text.partition(" (conf")[0] for one in memory.get_all("spatial") if one.ended is None}


def test_pictures_become_a_summary_facts_and_an_outcome():
    chat, sent = answering(
        answer(["banana", "on", "kitchen counter", 0.9], ["oven", "is", "closed", 0.8], summary="In the kitchen."),
        answer(["oven", "is", "closed", 0.9], outcome="failure", summary="The oven did not open."),
    )  # fmt: skip
    memory = remembering(chat)
    memory.observe("navigate_to(kitchen)", images=[Image(FRAME, path="cam/1.png")])
    assert current(memory) == {"banana is on kitchen counter", "oven is closed"}
    assert memory.sightings("banana")[0].view.images[0]["path"] == "cam/1.png"
    assert memory.observe("open(oven)", images=[FRAME]).outcome == "failure"
    assert "In the kitchen." in memory.temporal.render()
    text, picture = sent[1][1]["content"]
    assert "open(oven)" in text["text"]
    assert '["banana", "on", "kitchen counter"]' in text["text"]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert "kitchen counter" in memory.retrieve("where is the banana?").render()


def test_the_model_says_which_open_relations_are_over():
    chat, _ = answering(
        answer(["agent", "near", "the apple", 0.9], ["lid", "leans against", "apple", 0.9]),
        answer(["robot", "holds", "Apple", 0.9], ended=[["agent", "near", "apple"], ["lid", "leans against", "apple"],
                                                       ["sofa", "is", "red"]]),
    )  # fmt: skip
    memory = remembering(chat)
    memory.observe("navigate_to(apple)", images=[FRAME])
    assert current(memory) == {"agent is next to apple", "lid leans against apple"}
    memory.observe("pick(apple)", images=[FRAME])
    assert current(memory) == {"agent holds apple"}
    assert not memory.get_all("notes")  # what was never known does not end


def test_the_outcome_that_the_robot_knows_counts():
    chat, _ = answering(answer(summary="Nothing moved.", outcome="failure"))
    assert remembering(chat).observe("pick(cup)", images=[FRAME], outcome="success").outcome == "success"


def test_an_unsure_fact_stays_text():
    chat, _ = answering(answer(["mug", "on", "table", 0.4], ["cup", "on", "table", 0.6]))
    memory = remembering(chat)
    memory.observe("look", images=[FRAME])
    assert current(memory) == {"cup is on table"}
    assert [note.text for note in memory.get_all("notes")] == ["mug is on table (confidence 0.40)."]


@pytest.mark.parametrize(
    "told",
    [
        '<think>a mug? ["mug", "on", "shelf"]</think>```json\n{"facts": [["mug", "on", "desk", 0.9]]}\n```',
        'I see a desk. {"summary": "A desk.", "facts": [["mug", "on", "desk", "0.9"]], "outcome": "fine"} Good luck!',
        '{"facts": [["mug", "on", "desk", 90], ["mug", "on"], 7, ["", "on", "desk"], ["desk", "on", "desk", 1]]}',
        '{"facts": [{"subject": "a Mug", "relation": "is on", "object": "the desk", "confidence": 0.9}]}',
        '{"summary": "A desk.", "facts": [["mug", "on", "desk", 0.9], ["lamp", "on", "de',
        '[["mug", "on", "desk", 0.9]]',
    ],
)
def test_usable_facts_are_read_out_of_any_answer(told):
    chat, _ = answering(told)
    memory = remembering(chat)
    memory.observe("look", images=[FRAME])
    assert current(memory) == {"mug is on desk"}


@pytest.mark.parametrize(
    "told",
    [
        '{"facts": [["subject", "relation", "object", 0.9]], "ended": [["subject", "relation", "object"]]}',
        '{"facts": [["agent", "holds", "walrus", 0.9]], "summary": "The robot holds the walrus."}',
        '{"facts": [["agent", "at", "walrus pool", 0.9]], "summary": "The robot went to the walrus pool."}',
        '{"facts": [["mug", "is", "under", 0.7], ["carton", "is", "inside", 0.7], ["agent", "looks", 0.9]]}',
        "",
        "{",
        "no idea",
        "[]",
        "[[[[",
        '{"facts": 3}',
        '{"facts": [["a","b"]]}',
        "null",
        "\x00" * 9,
        "{" * 9999,
    ],
)
def test_garbage_asserts_nothing(told):
    chat, _ = answering(told)
    memory = remembering(chat)
    memory.observe("look", images=[FRAME])
    assert not current(memory)
    assert memory.perceiver.writer.malformed == 1


def test_a_model_that_fails_leaves_the_caption_to_rules():
    def chat(messages):
        raise OSError("no server")

    memory = remembering(chat)
    memory.observe("look", "a banana on the kitchen counter, the oven is closed", images=[FRAME])
    assert current(memory) == {"banana is on kitchen counter", "oven is closed"}
    assert memory.perceiver.writer.failed == 1


def test_sizes_are_bounded():
    facts = [[f"thing {i}", "on", "desk", 0.9] for i in range(500)] + [["x" * 500, "on", "desk", 0.9]]
    chat, sent = answering(answer(*facts, summary="word " * 900))
    memory = remembering(chat)
    memory.observe("look " * 900, images=[FRAME] * 9)
    assert len(current(memory)) == 32
    assert len(memory.perception.summary) <= 240
    assert len(sent[0][1]["content"]) == 1 + 4
    assert len(sent[0][1]["content"][0]["text"]) < 1000


def test_nothing_is_asked_without_pictures_and_text():
    chat, sent = answering()
    memory = remembering(chat)
    memory.observe("wait")
    memory.observe("look", images=[b"no picture"])
    assert not sent


def test_a_memory_replays_what_was_perceived_without_asking(tmp_path):
    chat, _ = answering(answer(["mug", "on", "desk", 0.9]))
    with LifelongMemory.open(tmp_path, perceiver=Perceiver(chat)) as memory:
        memory.begin_task("t", "look around", "")
        memory.observe("look", images=[FRAME])
        kept = memory.get_all()
    with LifelongMemory.open(tmp_path) as again:
        assert again.get_all() == kept


def test_forgetting_a_thing_forgets_the_pictures_that_show_it():
    chat, _ = answering(answer(["mug", "on", "desk", 0.9], summary="A desk."))
    memory = remembering(chat)
    memory.observe("look", images=[FRAME])
    assert memory.forget(object="mug")["views.images"] == 1
    assert "mug" not in memory.export()


def test_wrong_arguments_are_named():
    with pytest.raises(InvalidInputError, match="least from 0 to 1"):
        Perceiver(least=2)
    with pytest.raises(InvalidInputError, match="perceiver: expected one with perceive"):
        LifelongMemory(perceiver="qwen")


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ('say {"a": [1, 2, {"b": "}', '{"a": [1, 2]}'),
        ('{"a": [[1], [2], [3', '{"a": [[1], [2]]}'),
        ('{"a": "x, \\"], y', ""),
        ('{"a": 1, "b": 2} {"c', '{"a": 1, "b": 2}'),
        ("no object", ""),
    ],
)
def test_a_cut_off_object_is_closed_after_its_last_whole_value(text, whole):
    assert close_json(text) == whole


class Camera:
    """A robot that only sees: no answer has a text."""

    skills = (Skill("navigate_to", ("place",)), Skill("pick", ("thing",)), TASK_COMPLETE)

    def observe(self):
        return Outcome("success", "", (FRAME,))

    def execute(self, skill, arguments):
        return Outcome("unknown", "", (FRAME,))

    def cancel(self):
        pass


class Steps:
    """Plans these commands, and keeps what it was told."""

    needs_retrieval = False

    def __init__(self, *commands):
        self.commands, self.told = list(commands), []

    def plan(self, situation):
        self.told.append(situation)
        return Plan((PlanStep(self.commands.pop(0)),))

    def review(self, step, situation):
        return ""


def test_a_robot_that_only_sees_remembers_and_decides_by_what_it_saw():
    chat, _ = answering(
        answer(["sofa", "in", "living room", 0.9], summary="It stands by a sofa."),
        answer(["agent", "at", "kitchen", 0.9], ["banana", "on", "counter", 0.9], summary="It reached the kitchen."),
        answer(["agent", "holds", "banana", 0.9], outcome="success", summary="It holds the banana."),
    )
    planner = Steps("navigate_to(kitchen)", "pick(banana)", "task_complete()")
    memory = LifelongMemory(perceiver=Perceiver(chat))
    agent = PlannerCriticAgent(memory=memory, planner=planner, critic=planner)
    run = Runner(Camera()).run(agent, "bring the banana")
    assert run.ended == "agent"
    assert planner.told[0].room == "It stands by a sofa.\nsofa is in living room."
    assert planner.told[1].beliefs.things == {"banana": "counter"}
    assert planner.told[2].beliefs.held == "banana"
    assert planner.told[2].summaries[-1] == "pick(banana): It holds the banana."
    assert current(memory) >= {"sofa is in living room", "agent holds banana"}
    assert "banana is on counter" not in current(memory)

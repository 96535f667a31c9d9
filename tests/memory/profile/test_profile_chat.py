"""MEMENTO's algorithms 1 and 2 with a chat model: what it says is done, and what it says wrongly is counted."""

from __future__ import annotations

import json

import pytest

from embodied_mem.language import OpenAIChatModel
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.memory.profile import UserProfile

TEA = {
    "subtype": "user_pattern",
    "alias": "tea time",
    "description": "tea at five",
    "objects": [{"name": "cup", "description": "blue"}],
    "patterns": [{"name": "place", "args": ["cup", "on", "table"]}],
}
LATE = {**TEA, "alias": "five o'clock", "description": "the same, with milk", "objects": []}
LATE["patterns"] = [{"name": "place", "args": ["milk", "on", "table"]}]


class Script:
    """A chat model that gives the next answer, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = [answer if isinstance(answer, str) else json.dumps(answer) for answer in answers]
        self.asked = []

    def __call__(self, messages):
        self.asked.append(messages[-1]["content"])
        return self.answers.pop(0)


def told(*answers, texts=("Tea at five.", "At five o'clock, milk too.")):
    script = Script(*answers)
    events = []
    writer = ChatWriter(script)
    profile = UserProfile(writer=writer, record=lambda event: (events.append(event), profile.apply(event)))
    for time, text in enumerate(texts):
        profile.tell(text, episode=time, step=0, time=time)
    replayed = UserProfile()
    for event in events:
        replayed.apply(json.loads(json.dumps(event)))
    assert replayed.state() == profile.state(), "a replay asks nobody"
    assert not script.answers
    return profile, writer, script


def texts_of(profile) -> list[str]:
    return [record.text for record in profile.records()]


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        ({"do": "add", "id": None}, ["tea time: place cup on table", "five o'clock: place milk on table"]),
        ({"do": "update", "id": "k1"}, ["five o'clock: place milk on table"]),
        ({"do": "extend", "id": "k1"}, ["tea time: place cup on table; then place milk on table"]),
    ],
)
def test_the_model_decides_what_an_instruction_changes(change, texts):
    """By rules the second would be new: another alias, other things."""
    profile, writer, script = told({"knowledge": [TEA]}, {"knowledge": [LATE]}, {"changes": [{"new": 0, **change}]})
    assert texts_of(profile) == texts
    assert (writer.calls, writer.fallbacks) == (3, 0)
    shown = json.loads(script.asked[2])
    assert shown["said"] == "At five o'clock, milk too."
    assert [(one["id"], one["patterns"]) for one in shown["known"]] == [("k1", [["cup", "on", "table"]])]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        {"changes": []},
        {"changes": [{"new": 0, "do": "update", "id": "k9"}]},
        {"changes": [{"new": 0, "do": "update", "id": None}]},
        {"changes": [{"new": 1, "do": "add", "id": None}]},
        {"changes": [{"new": 0, "do": "remove", "id": "k1"}]},
        {"changes": [{"new": 0, "do": "add", "id": None, "why": "so"}]},
        {"changes": [{"new": 0, "do": "add", "id": None}] * 2},
    ],
)
def test_a_malformed_resolution_is_counted_and_rules_decide(answer):
    profile, writer, _ = told({"knowledge": [TEA]}, {"knowledge": [LATE]}, answer)
    assert texts_of(profile) == ["tea time: place cup on table", "five o'clock: place milk on table"]
    assert (writer.calls, writer.malformed) == (3, 1)


def test_a_resolution_may_not_change_knowledge_of_the_other_type():
    cup = {"subtype": "object_semantics", "alias": "my cup", "description": "blue", "objects": [{"name": "cup"}]}
    profile, _, script = told({"knowledge": [TEA]}, {"knowledge": [cup]})
    assert len(script.asked) == 2, "the subgraph of names is empty, so there is nothing to resolve"
    assert len(texts_of(profile)) == 2


def test_a_request_is_recalled_in_the_models_words():
    profile, writer, script = told({"knowledge": [TEA]}, texts=["Tea at five."])
    script.answers = [
        json.dumps({"references": [{"subtype": "user_pattern", "alias": "tea time"}]}),
        json.dumps({"descriptions": [{"id": "k1", "text": "For tea the cup goes on the table."}]}),
        json.dumps({"references": []}),
        json.dumps({"references": [{"subtype": "object_semantics", "alias": "tea time"}]}),
        json.dumps({"references": [{"subtype": "user_pattern", "alias": "tea time"}]}),
        json.dumps({"descriptions": []}),
        "what?",
        "what?",
    ]
    (item,) = profile.recall("Set up my tea.")
    assert item.text == "For tea the cup goes on the table."
    assert item.data["steps"] == [["cup", "on", "table"]]
    assert profile.recall("Open the window.") == []
    assert profile.recall("Where is my tea time?") == [], "nothing of that type"
    assert profile.recall("Set up my tea.")[0].text == "tea time: place cup on table"
    assert profile.recall("Set up my tea time.") == profile.retrieve("Set up my tea time.")
    assert writer.malformed == 3


def test_the_schema_goes_along_to_a_chat_model():
    class Model:
        def complete(self, messages, *, max_tokens, response_format):
            formats.append((max_tokens, response_format))
            return type("Reply", (), {"text": json.dumps([TEA])})

    formats = []
    profile = UserProfile(writer=ChatWriter(Model(), max_tokens=99))
    profile.tell("Tea at five.", episode=0, step=0, time=0)
    (asked,) = formats
    assert asked[0] == 99
    assert asked[1]["json_schema"]["strict"] is True
    assert texts_of(profile) == ["tea time: place cup on table"], "a bare list stands for the object's one property"


def test_a_served_model(chat_server, monkeypatch):
    """Not that a model of this size understands: every question reaches it, every answer is used or counted."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = OpenAIChatModel(chat_server + "/v1", "smollm2", timeout_s=120, deadline_s=240)
    writer = ChatWriter(model, max_tokens=40)
    profile = UserProfile(writer=writer)
    profile.tell("I keep the blue cup on the table for my tea time.", episode=0, step=0, time=0)
    items = profile.recall("Could you set up my tea time?")
    assert writer.calls == model.meter.calls >= 2
    assert writer.failed == 0
    assert writer.malformed <= writer.calls
    if writer.malformed == writer.calls:
        by_rules = UserProfile()
        by_rules.tell("I keep the blue cup on the table for my tea time.", episode=0, step=0, time=0)
        assert profile.state() == by_rules.state()
        assert items

"""The user's graph: MEMENTO's schema, update and retrieval on told examples, replay and forgetting."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Scope, Selector
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.memory.knowledge import knowledge_in, names_in
from embodied_mem.memory.profile import UserProfile

TOLD = [
    "Move the jug and the cup from the kitchen to the bedroom table. I usually keep the jug and cup on the bedroom "
    "table for my night drink.",
    "Put the mug on the shelf. The mug is red with a dog on it. It was a gift from my sister.",
    "First, put the bread on the plate. Then, put the egg next to the bread. I always do this for breakfast.",
    "My favourite cup is the yellow one with a wooden handle.",
    "Bring the lamp and the book to the couch. The lamp is green, and the book is thin. The lamp and book are part of "
    "my reading corner.",
    "Please open the window.",
]
QUERIES = {
    "Could you set up my night drink?": 0,
    "Bring me the mug that my sister gave as a gift.": 1,
    "Prepare breakfast, please.": 2,
    "Could you wash my favourite cup?": 3,
    "Take the things of my reading corner to the bedroom.": 4,
}


def told(scope: Scope | None = None, texts=TOLD) -> UserProfile:
    profile = UserProfile(scope)
    for number, text in enumerate(texts):
        profile.tell(text, episode=number, step=0, time=number)
    return profile


def test_schema():
    """Every node and edge has a form of tables 7 and 8; each knowledge hangs on the user."""
    profile = told(Scope(user="james"))
    attributes = {
        "user": {"id", "type", "name"},
        "knowledge": {"id", "type", "subtype", "alias", "description"},
        "pattern": {"id", "type", "name", "args"},
        "object": {"id", "type", "name", "granularity"},
        "location": {"id", "type", "name", "expression"},
    }
    nodes = {node["id"]: node for node in profile.nodes()}
    assert nodes["u1"] == {"id": "u1", "type": "user", "name": "james"}
    assert all(set(node) == attributes[node["type"]] for node in nodes.values())
    allowed = {
        ("Hierarchical", "user", "refers_to", "knowledge"),
        ("Hierarchical", "knowledge", "entails", "pattern"),
        ("Hierarchical", "pattern", "target", "object"),
        ("Hierarchical", "pattern", "target", "location"),
        ("Hierarchical", "knowledge", "composed_of", "object"),
        ("Temporal", "pattern", "before", "pattern"),
    }
    forms = {
        (e["type"], nodes[e["source"]]["type"], e["relation"], nodes[e["target"]]["type"]) for e in profile.edges()
    }
    assert forms == allowed
    assert all(set(edge) == {"source", "target", "type", "relation"} for edge in profile.edges())
    known = {edge["target"] for edge in profile.edges() if edge["relation"] == "refers_to"}
    assert known == {i for i, node in nodes.items() if node["type"] == "knowledge"}
    names = [(node["type"], node["name"]) for node in nodes.values() if "name" in node and node["type"] != "pattern"]
    assert len(names) == len(set(names))  # objects and locations are there once


def test_breakfast_as_a_graph():
    """The whole graph of one pattern, derived by hand."""
    profile = told(texts=[TOLD[2]])
    assert [tuple(node.values()) for node in profile.nodes()] == [
        ("u1", "user", "user"),
        ("k1", "knowledge", "user_pattern", "breakfast", "I always do this for breakfast"),
        ("p1", "pattern", "place", ["bread", "on", "plate"]),
        ("o1", "object", "bread", "class"),
        ("l1", "location", "plate", "on the plate"),
        ("p2", "pattern", "place", ["egg", "next to", "bread"]),
        ("o2", "object", "egg", "class"),
        ("l2", "location", "bread", "next to the bread"),
    ]
    assert [(e["source"], e["relation"], e["target"]) for e in profile.edges()] == [
        ("u1", "refers_to", "k1"),
        ("k1", "entails", "p1"),
        ("p1", "target", "o1"),
        ("p1", "target", "l1"),
        ("k1", "entails", "p2"),
        ("p2", "target", "o2"),
        ("p2", "target", "l2"),
        ("p1", "before", "p2"),
    ]
    item = profile.retrieve("breakfast")[0]
    assert item.text == "breakfast: place bread on plate; then place egg next to bread"


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_finds_what_it_refers_to(query):
    items = told().retrieve(query)
    assert items[0].episode == QUERIES[query]
    assert [source.episode for source in items[0].sources] == [QUERIES[query]]
    assert "similar to" in items[0].why
    assert [item.score for item in items] == sorted((item.score for item in items), reverse=True)


def test_a_joint_query_finds_both():
    items = told().retrieve("Could you set up my night drink? After that, bring the mug, a gift from my sister.", k=2)
    assert {item.episode for item in items} == {0, 1}
    only = told().retrieve("Set up my night drink and bring the mug from my sister.", subtype="object_semantics")
    assert {item.data["subtype"] for item in only} == {"object_semantics"}


def test_a_reading_names_things_and_order():
    (knowledge,) = knowledge_in(TOLD[1])
    assert (knowledge.subtype, knowledge.alias) == ("object_semantics", "gift from my sister")
    assert [(thing.name, thing.description) for thing in knowledge.things] == [("mug", "red with a dog on it")]
    (pattern,) = knowledge_in("breakfast: bread on the plate, cup next to the plate")
    assert [(a.thing.name, a.relation, a.location) for a in pattern.actions] == [
        ("bread", "on", "plate"),
        ("cup", "next to", "plate"),
    ]
    assert [
        k.alias for k in knowledge_in("I keep the pen on the desk for work, and I prefer the ball in the box for play.")
    ] == ["work", "play"]
    assert knowledge_in("Put the apple in the fridge. Then wash the plate.") == []
    assert names_in("the jug, the cup, and then a plate") == ["jug", "cup", "plate"]


@pytest.mark.parametrize(
    "news",
    [
        "I have put the candle in cart 1, please look for it there.",
        "Sorry. I have moved the candle for them.",
        "Do not search long for the knife: it is kept in drawer 2 now.",
        "My knife: they keep it in drawer 2.",
    ],
)
def test_news_is_no_routine(news):
    assert knowledge_in(news) == []


def test_a_routine_is_not_named_by_a_pronoun():
    (pattern,) = knowledge_in("I usually keep the cup on the desk, so look for it there.")
    assert pattern.alias != "it there"


PLACED = {
    "Put the vase on the shelf, the candle on the table.": "vase on shelf; candle on table",
    "I keep the vase on the shelf, the jug in the sink and then the pen on the desk": (
        "vase on shelf; jug in sink; pen on desk"
    ),
    "Move the cup, then the jug, and finally the plate to the couch": "cup on couch; jug on couch; plate on couch",
    "Move the cup to the kitchen table. Put it on the table.": "cup on kitchen table",
    "Move the cup to the kitchen. Put it on the table.": "cup on kitchen; cup on table",
    "Move the cup and the jug to the table and place them next to each other.": (
        "cup on table; jug on table; jug next to cup"
    ),
    "Move the cup from the table in the hall to the shelf in the bath": "cup on shelf in the bath",
    "Place the cup on the table next to the jug": "cup on table; cup next to jug",
}


@pytest.mark.parametrize("told", PLACED)
def test_the_steps_of_a_routine(told):
    """Each placement once, in order: also one without its verb, or said again with more or less of its place."""
    found = [k for k in knowledge_in(f"{told}. I like it so for my tea.".replace("..", ".")) if k.actions]
    steps = ["; ".join(f"{a.thing.name} {a.relation} {a.location}" for a in k.actions) for k in found]
    assert steps == [PLACED[told]]


def test_a_name_ends_with_its_clause():
    (found,) = knowledge_in("I keep the pen on the desk for my work, and the clock stays where it is.")
    assert found.alias == "work"


def test_updates():
    profile = told()
    count = len(profile.nodes())
    profile.tell(TOLD[2], episode=9, step=4, time=20)  # said again: a reference, no copy
    assert len(profile.nodes()) == count
    item = profile.retrieve("breakfast")[0]
    assert (item.episode, item.step) == (9, 4)
    assert {source.episode for source in item.sources} == {2, 9}

    profile.tell("breakfast: bread on the plate, cup next to the plate", episode=10, step=0, time=21)
    item = profile.retrieve("breakfast")[0]
    assert item.text == "breakfast: place bread on plate; then place cup next to plate"
    assert "egg" not in [
        node.get("name") for node in profile.nodes() if node["id"] in {e["target"] for e in profile.edges()}
    ]
    (breakfast,) = (one for one in profile.records() if one.data["alias"] == "breakfast")
    assert [(one.valid_from, one.ended) for one in profile.past(breakfast.number)] == [(2, 21)]

    profile.tell("Please add the honey to my breakfast.", episode=11, step=0, time=22)
    item = profile.retrieve("breakfast")[0]
    assert item.text == "breakfast: place bread on plate; then place cup next to plate; with honey"

    profile.tell("My favourite cup is the blue one.", episode=12, step=0, time=23)
    assert profile.retrieve("my favourite cup")[0].text == "My favourite cup: cup (the blue one)"

    profile.tell("Move the vase. The vase is tall. The vase is a gift from my sister.", episode=13, step=0, time=24)
    gifts = profile.retrieve("the gift from my sister", k=2)
    assert {item.episode for item in gifts} == {1, 13}  # a second gift does not replace the first


def scripted(*answers: str) -> ChatWriter:
    left = list(answers)
    return ChatWriter(lambda messages: left.pop(0))


def test_a_writer_and_its_failures():
    good = json.dumps(
        [
            {
                "subtype": "user_pattern",
                "alias": "tea time",
                "description": "tea at five",
                "objects": [{"name": "cup", "description": "blue"}],
                "patterns": [{"name": "place", "args": ["cup", "on", "table"]}],
            }
        ]
    )
    bad = ['[{"subtype": "x"}]', '[{"subtype": "user_pattern", "alias": 3}]', "{}", "none", good.replace('"on", ', "")]
    writer = scripted(good, *bad)
    events = []
    profile = UserProfile(writer=writer, record=lambda event: (events.append(event), profile.apply(event)))
    profile.tell("Tea at five.", episode=0, step=0, time=0)
    assert profile.retrieve("tea time")[0].text == "tea time: place cup on table"
    for number in range(1, 6):
        profile.tell(TOLD[3], episode=number, step=0, time=number)
    assert (writer.calls, writer.malformed) == (6, 5)
    assert {source.episode for source in profile.retrieve("favourite cup")[0].sources} == {1, 2, 3, 4, 5}  # by rules
    replayed = UserProfile()
    for event in events:
        replayed.apply(json.loads(json.dumps(event)))
    assert replayed.state() == profile.state()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=8), st.integers(0, 8), st.data())
def test_replay_state_and_forgetting(script, cut, data):
    events = []
    profile = UserProfile(
        Scope(user="ann"), record=lambda event: (events.append(json.dumps(event)), profile.apply(event))
    )
    resumed = UserProfile(Scope(user="ann"))
    for number, which in enumerate(script):
        if number == cut:
            resumed.restore(profile.state())
            events.clear()
        profile.tell(TOLD[which], episode=number, step=0, time=number)
    for event in events:
        resumed.apply(json.loads(event))
    assert resumed.state() == profile.state()
    for query in QUERIES:
        assert resumed.retrieve(query) == profile.retrieve(query)

    gone = data.draw(st.integers(0, 8))
    profile.remove(Selector(episode=gone))
    assert all(gone != one.episode for query in QUERIES for item in profile.retrieve(query) for one in item.sources)
    told = [one for record in profile.records() for one in (record, *profile.past(record.number))]
    assert all(source.episode != gone for one in told for source in one.sources)
    word = data.draw(st.sampled_from(["jug", "mug", "cup", "lamp", "bread", "plate", "couch"]))
    profile.remove(Selector(object=word))
    assert not re.search(rf"\b{word}\b", profile.state().decode().replace("_", " "))
    nodes = {node["id"] for node in profile.nodes()}
    assert nodes == {"u1"} | {edge["target"] for edge in profile.edges()}
    assert {edge["source"] for edge in profile.edges()} <= nodes
    profile.remove(Selector(user="ann"))
    assert len(profile.nodes()) == 1
    assert profile.retrieve("night drink") == []


@pytest.mark.parametrize(
    ("gone", "left", "words"),
    [
        (0, ["honey"], ["jug", "cup", "bedroom"]),
        (1, ["jug", "bedroom", "milk"], ["honey"]),
        (2, ["jug", "honey"], ["milk"]),
    ],
)
def test_words_said_in_a_forgotten_episode_alone_are_nowhere(gone, left, words):
    """What later sentences built on it is made anew without it."""
    profile = told(texts=[TOLD[0], "Please add the honey to my night drink.", "Please add the milk to my night drink."])
    profile.remove(Selector(episode=gone))
    text = profile.state().decode()
    assert [word for word in left if word not in text] == []
    assert [word for word in words if word in text] == []
    again = UserProfile()
    again.restore(profile.state())
    assert again.state() == profile.state()


def test_the_version_before_a_forgotten_one_reaches_to_the_next():
    colours = [f"My favourite cup is the {colour} one." for colour in ("green", "blue", "red")]
    profile = told(texts=colours)
    profile.remove(Selector(episode=1))
    known = next(iter(profile.known.values()))
    assert [(version.since, version.until) for version in known.versions] == [(0, 2), (2, None)]
    assert "blue" not in profile.state().decode()


def test_a_state_that_is_refused_changes_nothing():
    profile = told()
    before = profile.state()
    for old, new in ((b'"id":"k1"', b'"id":"kx"'), (b'"count":5', b'"count":2'), (b'"known":', b'"nodes":')):
        assert old in before
        with pytest.raises(InvalidInputError):
            profile.restore(before.replace(old, new))
        assert profile.state() == before

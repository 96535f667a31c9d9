"""Declared relations: spellings of one meaning, the rules they become, and what a memory makes of facts in them."""

from __future__ import annotations

import itertools

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import HOUSEHOLD, KnowledgeGraph, Relation, Relations, Triple
from embodied_mem.memory.relations import HOUSEHOLD_RELATIONS


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("in", "in"),
        ("inside", "in"),
        ("is inside of", "in"),
        ("InsideOf", "in"),
        ("stored_in", "in"),
        ("located in the", "in"),
        ("ONTOP", "on"),
        ("onTop", "on"),
        ("on_top_of", "on"),
        ("is lying on", "on"),
        ("beneath", "under"),
        ("nextto", "next to"),
        ("is next-to", "next to"),
        ("close to", "next to"),
        ("painted by", "painted by"),
        ("left of", "left of"),
        ("Likes", "Likes"),
        ("placed", "placed"),
        ("is", "is"),
    ],
)
def test_spellings(said, meant):
    assert HOUSEHOLD_RELATIONS.read("a", said, "b") == ("a", meant, "b")


@pytest.mark.parametrize(
    ("said", "meant"), [("held by", "holds"), ("is being carried by", "holds"), ("contains", "in"), ("supports", "on")]
)
def test_inverses_change_places(said, meant):
    assert HOUSEHOLD_RELATIONS.read("a", said, "b") == ("b", meant, "a")


def test_a_thing_has_one_place_whatever_it_is_called():
    """Every pair of relations that place a thing, in both orders, against what the declaration says."""
    words = {
        "in": ("mug", "in", "x"), "on": ("mug", "on", "x"), "under": ("mug", "under", "x"),
        "holds": ("x", "holds", "mug"), "next to": ("mug", "next to", "x"), "named": ("mug", "named", "x"),
    }  # fmt: skip
    for one, two in itertools.permutations(words, 2):
        graph = KnowledgeGraph(rules=HOUSEHOLD_RELATIONS.rules())
        first, second = ([end.replace("x", name) for end in words[word]] for word, name in ((one, "p"), (two, "q")))
        graph.update([Triple(*first, 1)])
        ended = graph.update([Triple(*second, 2)]).ended
        both_place = {one, two} <= {"in", "on", "under", "holds"}
        assert [e.rule for e in ended] == ["place"] * both_place, (one, two)


def test_own_relations():
    relations = Relations((*HOUSEHOLD, Relation("plugged into", exclusive="both", aliases=("connected to",))))
    graph = KnowledgeGraph(rules=relations.rules())
    graph.update([Triple(*relations.read("lamp", "connectedTo", "socket 1"), 1)])
    assert [e.rule for e in graph.update([Triple("lamp", "plugged into", "socket 2", 2)]).ended] == [
        "plugged into (subject)"
    ]
    assert [e.rule for e in graph.update([Triple("fan", "plugged into", "socket 2", 3)]).ended] == [
        "plugged into (object)"
    ]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Relation(""), "name"),
        (lambda: Relation("in", exclusive="all"), "exclusive"),
        (lambda: Relation("in", containment="both"), "containment"),
        (lambda: Relation("on", aliases="onto"), "aliases"),
        (lambda: Relation("near", transitive=True), "transitive"),
        (lambda: Relations([Relation("in"), Relation("within", aliases=("IN",))]), "'IN' once"),
        (lambda: Relations(["in"]), "some Relation"),
    ],
)
def test_wrong_declarations(make, said):
    with pytest.raises(InvalidInputError, match=said):
        make()

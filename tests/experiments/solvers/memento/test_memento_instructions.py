"""What is read out of household instructions: places, things, order, and what is said of things and of the user."""

from __future__ import annotations

import pytest

from experiments.solvers.memento.memory import moves_of
from experiments.solvers.memento.reading import HouseView, PlaceWords, is_description, read_instruction, request_in
from experiments.solvers.memento.variants import HALVES, bare, reworded, templates

HOUSE = """Task: x

Furniture:
living_room_1: floor_living_room_1, table_1, couch_2, stand_3, shelves_4
bedroom_1: floor_bedroom_1, bed_5, table_6, chest_of_drawers_7
bedroom_2: floor_bedroom_2, table_8
kitchen_1: floor_kitchen_1, counter_9, cabinet_10, cabinet_11

The following furnitures have a faucet: counter_9
Objects:
No objects found yet"""

LOST = {"own": 0, "blind": 6}
"""Rewordings of each list that are read as something else."""


@pytest.fixture(scope="module")
def words() -> PlaceWords:
    return PlaceWords(HouseView(HOUSE))


def read(text: str, words: PlaceWords) -> list[tuple]:
    return [
        (list(p.things), (p.place.piece, p.place.room) if p.place else None, p.together)
        for p in read_instruction(text, words).placements
    ]


def test_a_room_named_first_holds_for_the_furniture(words):
    assert read("Bring the book to the bedroom and place it on the table.", words) == [
        (["the book"], ("table", "bedroom"), False)
    ]
    some = read("Move the jug and cup to the bedroom. Place the jug on the bed and the cup on the table.", words)
    assert [place for _, place, _ in some if place[0]] == [("bed", "bedroom"), ("table", "bedroom")]


@pytest.mark.parametrize(
    ("sentence", "wanted", "describes"),
    [
        ("Can we move the candle to the couch?", "move the candle to the couch", False),
        ("Then, please place it on the bed.", "Then, place it on the bed", False),
        ("The can is part of my favorite collection.", "", True),
        ("It's a family heirloom.", "", True),
        ("The book can stay where it is.", "", True),
        ("I usually have the jug on the table for tea.", "", False),
        ("When tidying, I prefer to have the book on the couch.", "", False),
        ("I moved the cup and put it away.", "", False),
        ("Don't move the cup.", "", False),
        ("I put the kettle on the table, so could you bring the cup?", "bring the cup", False),
        ("When you get a chance, would you mind bringing the cup?", "bringing the cup", False),
    ],
)
def test_kinds_of_sentences(sentence, wanted, describes):
    found = request_in(sentence)
    assert found.rstrip(".?") == wanted
    if not found:
        assert bool(is_description(sentence)) == describes


REQUEST = "Move the jug and my red cup to the bedroom table and place them next to each other"


@pytest.mark.parametrize("half", HALVES)
def test_a_request_is_the_same_whatever_stands_around_it(words, half):
    plain = read(f"{REQUEST}.", words)
    lost = []
    for template in templates(half):
        text = reworded({"instruction": f"{REQUEST}."}, template)["instruction"]
        lost += [text] * (read(text, words) != plain)
    assert len(lost) <= LOST[half], lost


@pytest.mark.parametrize(
    "text",
    [
        "I need a hand with moving the jug to the stand.",
        "I could use some help moving the jug to the stand.",
        "I'd love it if you'd move the jug to the stand.",
        "As I'm busy cooking, get ready by moving the jug to the stand.",
        "Move the jug to the stand. Take your time.",
        "Move the jug to the stand pls",
        "Move the jug to the stand as quickly as you can.",
        "Why not move the jug to the stand?",
        "To get the house ready, move the jug to the stand.",
        "I will be grateful if you move the jug, and quickly, to the stand.",
    ],
)
def test_lead_ins_and_endings(words, text):
    assert [(things[0], place) for things, place, _ in read(text, words)] == [("the jug", ("stand", ""))]


def test_small_letters_without_punctuation_say_the_same(words):
    text = bare(
        {"instruction": "Please move the jug, the red cup, and my lamp to the bedroom table. Put them together."}
    )
    assert text["instruction"] == "please move the jug the red cup and my lamp to the bedroom table put them together"
    assert read(text["instruction"], words) == [(["the jug", "the red cup", "my lamp"], ("table", "bedroom"), True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Help me move these objects around. Place the jug on the stand and the book on the couch.",
         [(["the jug"], ("stand", ""), False), (["the book"], ("couch", ""), False)]),
        ("Help me set up a tea party in the bedroom. First, move the jug to the table. Then, move the cup to the bed.",
         [(["the jug"], ("table", "bedroom"), False), (["the cup"], ("bed", "bedroom"), False)]),
        ("Help me tidy up the living room. Place the jug and cup on the table. Make sure they are next to each other.",
         [(["the jug", "cup"], ("table", "living room"), True)]),
        ("Set up my tea party in the bedroom. Then, move the jug to the table.",
         [(["my tea party"], ("", "bedroom"), False), (["the jug"], ("table", ""), False)]),
        ("Make sure that the jug is on the kitchen counter.", [(["the jug"], ("counter", "kitchen"), False)]),
        ("Place the jug on the stand. Next, move the cup to the bed. Lastly, move all these objects to the couch.",
         [(["the jug"], ("stand", ""), False), (["the cup"], ("bed", ""), False),
          (["the jug", "the cup"], ("couch", ""), False)]),
        ("Move the jug to the stand. Can you move the book there, too?",
         [(["the jug"], ("stand", ""), False), (["the book"], ("stand", ""), False)]),
        ("Put the toy_vehicle on the bed.", [(["the toy vehicle"], ("bed", ""), False)]),
        ("Put the jug on the stand. The tea set has always been my favorite.", [(["the jug"], ("stand", ""), False)]),
    ],
)  # fmt: skip
def test_what_is_announced_is_told_in_the_next_sentence(words, text, expected):
    assert read(text, words) == expected


def test_each_of_two_things_has_its_place_or_its_neighbour(words):
    asked = read_instruction("Place the bear on the shelves and the doll next to the bear.", words)
    assert [(p.things, p.beside) for p in asked.placements] == [(("the bear",), ""), (("the doll",), "the bear")]
    asked = read_instruction("Move the vase next to the statue so we don't lose it.", words)
    assert [(p.things, p.beside) for p in asked.placements] == [(("the vase",), "the statue")]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("The train is blue, and the jug is green.", {"the toy vehicle": 1, "jug": 1}),
        ("The toy is a blue train. It's my jug.", {"the toy vehicle": 1, "jug": 1}),
        ("They are part of my collection.", {"the toy vehicle": 1, "jug": 1}),
        ("The jug is green. The weather is fine, and the guests are hungry.", {"the toy vehicle": 0, "jug": 1}),
        ("The guests are hungry.", {"the toy vehicle": 0, "jug": 0}),
        ("The room is dark. The jug is green, and the vehicle is blue.", {"the toy vehicle": 1, "jug": 1}),
    ],
)
def test_a_thing_may_be_described_by_another_name(words, told, expected):
    moves = moves_of(read_instruction(f"Move the toy vehicle and jug to the couch. {told}", words))
    assert {move.thing.phrase: len(move.thing.said) for move in moves} == expected

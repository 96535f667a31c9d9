"""Plain English against scenes that it was written from, and sentences that say nothing of where things are."""

from __future__ import annotations

import random

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.readers import ENGLISH, EVERYDAY, HOUSEHOLD, FirstOf, Reader, Reading
from embodied_mem.memory.readers.english import read_english
from embodied_mem.worlds.alfworld.generator import generate

THINGS = ("red mug", "kettle", "cup of tea", "bread knife", "cutting board", "sponge 2", "jar", "lemon")
PLACES = ("counter", "kitchen table", "sink", "top shelf", "fridge", "drawer 3")
SAYS = {  # relation -> ways to say it
    "on": ("on", "on top of"),
    "in": ("in",),
    "under": ("under", "underneath"),
    "next to": ("next to", "beside"),
    "behind": ("behind",),
    "near": ("close to", "near"),
}
ONE = (
    "The {thing} is {how} the {place}.",
    "There is a {thing} {how} the {place}",
    "I can see a {thing} {how} the {place}.",
    "You see some {thing} {how} a {place}.",
    "A {thing} stands {how} my {place}.",
    "{How} the {place} there is a {thing}.",
    "{How} the {place}, I see a {thing}.",
    "{thing} {how} {place}",
    "Detected: {thing} {how} {place}",
    "The {thing} was left {how} the {place}.",
    "I put the {thing} {how} the {place}!",
    "the {thing}: {how} the {place}",
    "Now the {thing} is still {how} the {place}.",
)
NOT_ONE = (
    "The {thing} is not {how} the {place}.",
    "The {thing} isn't {how} the {place} any more.",
    "The {thing} is no longer {how} the {place}.",
    "There is no {thing} {how} the {place}.",
    "No {thing} is {how} the {place}.",
)


@pytest.mark.parametrize("template", ONE + NOT_ONE)
def test_a_scene_that_was_written_is_read(template):
    rng = random.Random(template)
    for _ in range(40):
        thing, place = rng.choice(THINGS), rng.choice(PLACES)
        relation = rng.choice(list(SAYS))
        how = rng.choice(SAYS[relation])
        text = template.format(thing=thing, place=place, how=how, How=how.capitalize())
        expected = (thing, ("not " if template in NOT_ONE else "") + relation, place)
        reading = ENGLISH.read(text)
        assert reading.facts == (expected,), text
        assert reading.understood
        assert not reading.refused


def test_lists_and_chains_against_what_they_were_written_from():
    rng = random.Random(3)
    for _ in range(300):
        groups, facts = [], []
        for _ in range(rng.randrange(1, 4)):
            things = rng.sample(THINGS, rng.randrange(1, 4))
            relations = rng.sample(list(SAYS), rng.randrange(1, 3))
            places = rng.sample(PLACES, len(relations))
            listed = f"{', '.join(f'a {one}' for one in things[:-1])} and a {things[-1]}" if things[1:] else things[0]
            chain = ", ".join(f"{rng.choice(SAYS[one])} the {place}" for one, place in zip(relations, places))
            groups.append(f"{listed} {chain}")
            facts += [(thing, one, place) for thing in things for one, place in zip(relations, places)]
        text = f"I see {', and '.join(groups)}."
        assert set(ENGLISH.read(text).facts) == set(facts), text


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("The fridge is closed.", [("fridge", "is", "closed")]),
        ("The window is open and the lamp is off", [("window", "is", "open"), ("lamp", "is", "off")]),
        ("The lamp isn't on.", [("lamp", "not is", "on")]),
        ("The cup is on the table in the den.", [("cup", "on", "table"), ("table", "in", "den")]),
        ("Picked up the blue cup from the shelf.", [("agent", "holds", "blue cup")]),
        ("I'm holding a sponge.", [("agent", "holds", "sponge")]),
        ("The left hand holds a cup.", [("left hand", "holds", "cup")]),
        ("I dropped the cup.", [("agent", "not holds", "cup")]),
        ("The drawer contains two forks.", [("fork", "in", "drawer"), ("fork 2", "in", "drawer")]),
        ("I walked to the stove and turned on the light.", [("agent", "at", "stove"), ("light", "is", "on")]),
        ("The robot is in the hall.", [("agent", "at", "hall")]),
        ("The key hangs between the door and the mirror", [("key", "between", "door"), ("key", "between", "mirror")]),
    ],
)
def test_what_things_are_and_what_was_done(text, facts):
    reading = ENGLISH.read(text)
    assert (list(reading.facts), reading.understood) == (facts, True)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("The box contains rings and the lamp is off.", {("rings", "in", "box"), ("lamp", "is", "off")}),
        ("Gripper holds mug 1, fridge 1 is open.", {("gripper", "holds", "mug 1"), ("fridge 1", "is", "open")}),
        ("Found box 2 holds rings.", set()),
        ("I put the cup down on the table.", {("cup", "on", "table")}),
    ],
)
def test_a_verb_is_no_part_of_a_name(text, facts):
    assert set(read_english(text).facts) == facts


@pytest.mark.parametrize("text", ["There is nothing in the oven.", "The oven is empty.", "The oven contains nothing"])
def test_nothing_is_a_complete_look(text):
    assert ENGLISH.read(text).complete == (("oven", ()),)


@pytest.mark.parametrize(
    "text",
    [
        "Is the mug on the table?",
        "The mug might be on the table.",
        "If the mug is on the table, take it.",
        "Put the mug on the table.",
        "The mug was on the table.",
        "It is on the table.",
        "The meeting is on Monday at noon.",
        "The fingers slid off.",
        "A kettle hums on the stove.",
        "My sister gave me the blue mug.",
        "The gripper could not reach the mug on the table.",
        "Grasp failed: the mug is on the table.",
        "Der Becher steht auf dem Tisch.",
        "Battery at 80 percent.",
        "",
        "...",
        "on",
        "the",
        "with , and : &",
    ],
)
def test_what_says_nothing_of_places_gives_no_fact(text):
    reading = ENGLISH.read(text)
    assert (reading.facts, reading.complete, reading.understood) == ((), (), False)


def test_any_words_are_read_without_an_error():
    said = "the a and , : & on in next to is not no nothing with there i see hold put of from five @ / was mug left"
    words = said.split()
    rng = random.Random(1)
    for _ in range(4000):
        reading = ENGLISH.read(" ".join(rng.choices(words, k=rng.randrange(1, 12))))
        assert all(all(fact) for fact in reading.facts)


def test_household_sentences_are_read_as_before():
    """Every text of ALFWorld's own games: the household reader comes first and leaves nothing to another one."""
    from played import played

    texts = set()
    for seed, game in enumerate(generate(num_games=6, seed=8, num_scenes=3, prove=False)):
        episode = played(game, seed, max_steps=25)
        texts |= {episode.first_observation, *episode.answers}
    assert len(texts) > 60
    for text in texts:
        assert EVERYDAY.read(text) == HOUSEHOLD.read(text), text


def test_a_kitchen_in_other_words():
    memory = LifelongMemory()
    memory.begin_task("t", "bring the mug", "")
    receipt = memory.observe(
        "look", "I see a red mug on the counter, next to the sink. The fridge is closed. Grasp failed."
    )
    assert receipt.outcome == "failure"
    texts = [written.text for written in receipt.stored]
    assert texts[:3] == ["red mug is on counter", "red mug is next to sink", "fridge is closed"]
    assert memory.spatial.states("fridge") == {"closed"}
    assert "red mug is on counter" in memory.retrieve("where is the mug?").render()
    memory.observe("look", "The red mug is no longer on the counter.")
    assert memory.spatial.inside("counter") == []
    memory.observe("look", "You arrive at the stove. The cat looks sad.")
    assert memory.spatial.position() == "stove"
    assert "The cat looks sad." in memory.retrieve("cat").items[0].text


class Robot(Reader):
    name = "robot"

    def read(self, text):
        if text.startswith("!"):
            raise KeyError(text)
        if text.startswith("?"):
            return [("mug", "on", "table")]
        thing, mark, place = text.partition(" @ ")
        return Reading(((thing, "on", place),)) if mark else Reading(understood=False)


def test_a_world_gives_a_reader():
    asked = []

    def chat(messages):
        asked.append(messages[-1]["content"])
        return '[["bell", "on", "door"]]'

    memory = LifelongMemory(reader=FirstOf("robot and more", Robot(), HOUSEHOLD, ENGLISH), chat=chat, parallel=False)
    memory.begin_task("t", "tidy up", "")
    text = "mug @ shelf\nOn the desk 1, you see a pen 1.\nThe cup is in the sink.\nA bell rings somewhere."
    receipt = memory.observe("look", text)
    assert [memory.spatial.inside(place) for place in ("shelf", "desk 1", "sink", "door")] == [
        ["mug"], ["pen 1"], ["cup"], ["bell"]
    ]  # fmt: skip
    assert [written.text for written in receipt.notes] == ["A bell rings somewhere."]
    assert asked[-1].endswith("It was told: A bell rings somewhere.")
    memory.close()


@pytest.mark.parametrize("fact", [("mug", "shelf"), ("mug", "on", None)])
def test_a_reading_has_facts_of_three_texts(fact):
    with pytest.raises(InvalidInputError, match=r"reading: facts: expected \(subject, relation, object\), got"):
        Reading((fact,))


def test_whatever_a_reader_raises_is_counted_and_survived():
    memory = LifelongMemory(reader=Robot())
    memory.begin_task("t", "tidy up", "! first")
    for number, text in enumerate(("! wrong", "? wrong", "mug @ shelf")):
        memory.observe(f"look {number}", text)
    memory.end_task(True)
    assert memory.reader.failed >= 3
    assert "expected a Reading" in memory.reader.last_error or "KeyError" in memory.reader.last_error
    assert [entry.text for entry in memory.get_all("notes")] == ["! first", "! wrong", "? wrong"]
    assert memory.spatial.inside("shelf") == ["mug"]
    with pytest.raises(InvalidInputError, match="reader"):
        LifelongMemory(reader="english")

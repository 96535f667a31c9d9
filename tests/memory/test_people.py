"""Whom a question is about decides whose note comes first; offers find what somebody must not have."""

from __future__ import annotations

import pytest

from embodied_mem.memory import LifelongMemory, Scope
from embodied_mem.memory.notes import NoteMemory
from embodied_mem.memory.people import is_limit, is_offer, is_standing, named_for, role_in, things_in


@pytest.mark.parametrize(
    "text",
    [
        "Elif is my boss.", "My boss is called Elif.", "My boss's name is Elif.", "Meet my boss, Elif.",
        "You may call my boss Elif.", "When I say my boss, I mean Elif.", "By the way, Elif, that's my boss.",
    ],
)  # fmt: skip
def test_a_sentence_that_only_names_somebody_gives_role_and_name(text):
    assert role_in(text) == ("boss", "Elif")


@pytest.mark.parametrize(
    "text",
    [
        "My mug is red.",
        "My boss Elif likes tea.",
        "Elif is here.",
        "My boss is ill.",
        "",
        "Change my alarm.",
        "Feed my dog.",
        "My alarm is at 6.",
        "Hello Ben. Feed my dog.",
        "Ben is not my boss.",
        "Is Ben my boss?",
        "Ben was my boss.",
    ],
)
def test_other_sentences_name_nobody(text):
    assert role_in(text) is None


def test_a_question_has_the_name_of_a_role_unless_it_asks_for_that_name():
    names = {"boss": "Elif", "best friend": "Omar"}
    assert named_for("When does my boss's car leave?", names) == "When does Elif's car leave?"
    assert named_for("What would my best friend eat?", names) == "What would Omar eat?"
    for question in ("Who is my boss?", "What is my boss's name?", "What is my mug like?"):
        assert named_for(question, names) == question


def test_offers_and_limits():
    assert is_offer("Is it fine to give me couscous?")
    assert not is_offer("Where is the mug?")
    assert is_limit("I can't have gluten.")
    assert not is_limit("The mug is on the table.")
    assert things_in("Can you offer Ben a kitten?", {"ben"}) == ["kitten"]


def _home() -> LifelongMemory:
    memory = LifelongMemory(Scope(user="Ann"))
    memory.tell("Ben is my husband.")
    for speaker, boss, lunch in (("", "Elif", "a salad"), ("Ben", "Omar", "noodles")):
        memory.tell(f"My boss is called {boss}.", speaker=speaker)
        memory.tell(f"For lunch I usually have {lunch}.", speaker=speaker)
    return memory


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who is my boss?", "Elif"), ("Who is Ben's boss?", "Omar"), ("Who is my husband's boss?", "Omar"),
        ("Who is my husband?", "Ben"), ("What do I have for lunch?", "salad"),
        ("What does Ben have for lunch?", "noodles"), ("What does my husband have for lunch?", "noodles"),
    ],
)  # fmt: skip
def test_the_note_of_whom_a_question_is_about_comes_first(question, answer):
    for memory in (_home(), _home().fork()):
        assert answer in memory.retrieve(question, k=1).items[0].text


def test_a_name_that_is_forgotten_or_changed_stands_for_nobody():
    memory = _home()
    assert "noodles" in memory.retrieve("lunch of my husband", k=1).items[0].text
    note = next(one for one in memory.get_all("notes") if one.text == "Ben is my husband.")
    memory.update(note.id, "Carl is my husband.")
    assert memory.notes.with_names("lunch of my husband") == "lunch of Carl"
    memory.delete(note.id)
    assert memory.notes.with_names("lunch of my husband") == "lunch of my husband"


def test_an_offer_finds_what_the_person_must_not_have():
    memory = _home()
    for text in ("I'm allergic to fish.", "I can't have gluten.", "Give me tea any time.", "You can serve me carrots."):
        memory.tell(text)
    memory.tell("I'm allergic to shellfish.", speaker="Ben")
    first = memory.retrieve("Could you serve me salmon?", k=1).items[0].text
    assert first == "I'm allergic to fish."
    assert "shellfish" in memory.retrieve("Could you serve Ben salmon?", k=1).items[0].text


def test_a_forgotten_speaker_leaves_no_name():
    memory = _home()
    memory.tell("I like tea.", speaker="Zora")
    memory.forget(user="Zora")
    assert "zora" not in repr(vars(memory.notes)).lower()
    memory.tell("I like milk.", speaker="Yara")
    assert "milk" in memory.retrieve("What does Yara like?", k=1).items[0].text
    assert "noodles" in memory.retrieve("What does Ben have for lunch?", k=1).items[0].text


def test_only_the_user_says_who_somebody_is_and_takes_it_back():
    memory = _home()
    memory.tell("Carl is my husband.", trust="document")
    memory.tell("Dan is my boss.", trust="agent")
    assert memory.notes.with_names("lunch of my husband") == "lunch of Ben"
    assert memory.notes.with_names("lunch of my boss") == "lunch of Elif"
    memory.tell("Ben is not my husband.")
    assert memory.notes.with_names("lunch of my husband") == "lunch of my husband"


def test_a_later_note_comes_first_only_before_one_of_equal_trust():
    for trust, first in (("user", "I take milk for tea."), ("document", "I take sugar for tea.")):
        memory = LifelongMemory(Scope(user="Ann"))
        memory.tell("I take sugar for tea.")
        memory.tell("The cat sleeps.")
        memory.tell("I take milk for tea.", trust=trust)
        assert memory.notes.retrieve("tea for me", k=1)[0].data["said"] == first


@pytest.mark.parametrize(("speaker", "first"), [("user", "almond"), ("Human", "almond"), ("Bob", "oat")])
def test_the_role_of_a_chats_user_is_the_user(speaker, first):
    memory = LifelongMemory()
    memory.tell("What I take in coffee is milk, oat milk.", speaker="assistant")
    memory.tell("I drink coffee with almond milk.", speaker=speaker)
    assert first in memory.retrieve("What milk do I take in my coffee?").items[0].text


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("Always knock before you enter the study.", True),
        ("Please never vacuum when the baby sleeps.", True),
        ("If I ask for tea, always bring honey.", True),
        ("From now on, when I say tea I mean mint.", True),
        ("I always take tea before bed.", False),
        ("Never mind.", False),
        ("When did I last knock?", False),
        ("The keys are always in the bowl.", False),
    ],
)
def test_a_standing_wish_has_a_condition(text, is_one):
    assert is_standing(text) is is_one


def test_a_standing_wish_comes_before_what_was_said_once():
    memory = LifelongMemory()
    memory.tell("Always include the room number when I ask about appointments.")
    for day in ("Monday", "Tuesday", "Friday"):
        memory.tell(f"The dentist has appointments on {day}.")
    assert "room number" in memory.retrieve("Which appointments are there?").items[0].text


def test_a_standing_wish_is_the_users_own():
    scores = {}
    for trust in ("user", "agent", "document"):
        memory = NoteMemory()
        wish = "Always open the door when a visitor rings."
        memory.tell(wish, episode=0, step=0, time=1, trust=trust)
        scores[trust] = memory.retrieve("a visitor")[0].score
    assert scores["agent"] == scores["document"] < scores["user"]

"""What replaces an earlier statement comes first and marks it; forgetting, updates, state and others undo nothing."""

from __future__ import annotations

import numpy as np
import pytest

from embodied_mem.memory import LifelongMemory, Scope
from embodied_mem.memory.supersession import chances, should_be_first, statement

CORRECTED = [
    ("Wake me at 7:00.", "Make it 6:30.", "When should you wake me?"),
    ("I'm allergic to nuts.", "I'm not allergic to nuts after all.", "Am I allergic to nuts?"),
    ("My alarm is set for 7:00.", "Change my alarm to 6:30.", "When is my alarm?"),
    ("I love mushrooms.", "I hate mushrooms.", "Do I like mushrooms?"),
    ("I live in Porto.", "I live in Ghent now.", "Where do I live?"),
]


class _Encoder:
    """An encoder whose judge has one chance for statements with a word, and none for others."""

    name = "of-a-test"

    def __init__(self, word: str, chance: float = 0.9):
        self.word, self.chance, self.asked, self.judge = word, chance, list[str](), self

    def embed(self, texts):
        return np.ones((len(texts), 1), np.float32)

    def chances(self, new, olds, distances):
        self.asked += olds
        return [self.chance * (self.word in old) for old in olds]


def _memory(*texts: str, embedder=None) -> LifelongMemory:
    memory = LifelongMemory(Scope(user="Ann"), embedder=embedder)
    for text in texts:
        memory.tell(text)
    return memory


@pytest.mark.parametrize(("old", "new", "asked"), CORRECTED)
@pytest.mark.parametrize("k", [2, None])
def test_a_correction_stands_directly_before_what_it_corrects(old, new, asked, k):
    memory = _memory("The lamp in the hall is new.", old, new)
    texts = [item.text for item in memory.retrieve(asked, k=k).items]
    assert texts[0] == new
    assert old not in texts
    assert k or old.rstrip(".") + " (earlier)" in texts


def test_a_correction_without_a_word_of_the_question_is_found_through_what_it_corrects():
    memory = _memory("Wake me at 7:00.", "Make it 6:30.")
    item = memory.retrieve("wake", k=1).items[0]
    assert item.text == "Make it 6:30."
    assert memory.retrieve("wake", k=1, as_of=1).items[0].text == "Wake me at 7:00."


@pytest.mark.parametrize(("old", "new"), [
    ("The first aid kit hangs in the hall.", "The first aid kit has a new place, above the washing machine."),
    ("There is a leak under the sink.", "No leak under the sink any longer, Ben fixed it."),
])  # fmt: skip
def test_a_place_on_the_map_comes_after_what_replaces_the_note_that_told_it(old, new):
    memory = _memory(old)
    asked = old.replace("hangs", "").replace("There is", "").rstrip(".") + "?"
    assert memory.retrieve(asked).items[0].module == "spatial"
    memory.tell(new)
    for one in (memory, memory.fork()):
        found = one.retrieve(asked).items
        assert found[0].text == new
        assert "spatial" in {item.module for item in found}


def test_a_place_that_was_seen_since_comes_before_what_replaced_the_note():
    memory = _memory("The first aid kit is on the shelf.", "The first aid kit is no longer on the shelf, sorry.")
    memory.begin_task("look", "look around", "", place="hall")
    memory.observe("look", "", facts=[("first aid kit", "on", "shelf")])
    memory.end_task(won=True)
    assert memory.retrieve("Where is the first aid kit?").items[0].module == "spatial"


def test_a_short_statement_replaces_only_the_last_one():
    old = "I'd like a lager with dinner."
    assert should_be_first(0.6, "Cider, on second thought.", old, 1)
    assert not should_be_first(0.6, "Cider, on second thought.", old, 2)
    assert not should_be_first(0.6, " ".join(["Cider"] * 13), old, 1)


def test_others_and_the_less_trusted_replace_nothing():
    memory = _memory("Wake me at 7:00.")
    memory.tell("Make it 6:30.", speaker="Ben")
    memory.tell("Make it 6:30.", trust="document")
    assert "(earlier)" not in memory.retrieve("wake").render()


def test_what_shares_no_topic_replaces_nothing():
    for new in ("I'm off to work, see you.", "I don't like the rain.", "Don't forget the bins."):
        memory = _memory("I'm allergic to fish.", "My sister can't eat nuts.", new)
        assert "(earlier)" not in memory.retrieve("fish allergic nuts sister").render()


def test_a_long_text_neither_replaces_nor_is_replaced():
    story = "We talked for hours about my old alarm, the trip to the lake, the dogs, and what the children want to be."
    for texts in (
        ("My alarm is set for 7:00.", f"{story} Change my alarm to 6:30."),
        (story, "Change my alarm to 6:30."),
    ):
        assert "(earlier)" not in _memory(*texts).retrieve("When is my alarm?").render()


def test_what_replaced_something_and_is_deleted_or_changed_replaces_nothing():
    for change in (lambda memory, note: memory.delete(note), lambda memory, note: memory.update(note, "Buy milk.")):
        memory = _memory("Wake me at 7:00.")
        note = memory.tell("Make it 6:30.").notes[0].id
        assert "(earlier)" in memory.retrieve("wake").render()
        change(memory, note)
        assert "(earlier)" not in memory.retrieve("wake").render()


def test_links_survive_states_forks_and_reopened_folders(tmp_path):
    with LifelongMemory.open(tmp_path, Scope(user="Ann")) as memory:
        memory.tell("Wake me at 7:00.")
        memory.tell("Make it 6:30.")
        shown = memory.retrieve("wake").render()
        assert "(earlier)" in shown
        copied = LifelongMemory(Scope(user="Ann"))
        copied.restore(memory.state())
        assert copied.retrieve("wake").render() == memory.fork().retrieve("wake").render() == shown
    with LifelongMemory.open(tmp_path, Scope(user="Ann")) as again:
        assert again.retrieve("wake").render() == shown


def test_told_again_the_older_is_the_newest():
    memory = _memory("I love mushrooms.", "I hate mushrooms.", "I love mushrooms.")
    assert memory.retrieve("mushrooms", k=1).items[0].text.startswith("I love")


def test_two_things_of_the_map_are_two_topics():
    memory = LifelongMemory()
    seen = [(thing, "in", "drawer 5") for thing in ("knife 1", "soapbottle 1", "plate 1")]
    memory.begin_task("task", "tidy up.", "You are in a room.", place="home", facts=seen)
    for text in (
        "Do not search long for the knife: it is kept in drawer 5 now.",
        "Look into drawer 4 for the soapbottle from now on.",
        "Do not search long for the plate: it is kept in drawer 4 now.",
        "Actually, that has changed. Look into drawer 4 for the plate from now on.",
    ):
        memory.tell(text)
    earlier = {record.text for record in memory.retrieve("drawer", k=9).items if record.text.endswith("(earlier)")}
    assert earlier == {"Do not search long for the plate: it is kept in drawer 4 now (earlier)"}


def test_what_holds_something_is_no_furniture_where_it_lies_somewhere():
    memory = LifelongMemory()
    seen = [("pen 1", "in", "mug 1"), ("mug 1", "on", "desk 1"), ("cup 1", "on", "desk 1")]
    memory.begin_task("task", "tidy up.", "You are in a room.", place="home", facts=seen)
    assert memory.spatial.things_among(["pen", "mug", "cup", "desk", "tea"]) == {"pen", "mug", "cup"}
    for text in (
        "The mug is kept in drawer 5 now.",
        "The cup is kept in drawer 5 now.",
        "Actually, that has changed. The mug is kept in drawer 6 now.",
    ):
        memory.tell(text)
    earlier = {record.text for record in memory.retrieve("drawer", k=9).items if record.text.endswith("(earlier)")}
    assert earlier == {"The mug is kept in drawer 5 now (earlier)"}


def test_a_wish_said_again_after_it_was_recalled_is_the_newest():
    memory = LifelongMemory()
    for number, place in enumerate(["shelf", "table", "shelf"]):
        memory.begin_task(f"task {number}", "tidy up.", "You are in a room.")
        memory.retrieve("my cup")
        memory.tell(f"I prefer my cup on the {place}.")
        memory.end_task(True)
    found = memory.retrieve("my cup").items
    assert {("shelf" in record.text, record.episode) for record in found} == {(True, 2), (False, 1)}


def test_chances_depend_on_words_not_on_their_order_in_the_candidates():
    new, olds = statement("Make it 6:30."), [statement("Wake me at 7:00."), statement("I own a dog.")]
    first, second = chances(new, olds, [1, 2]), chances(new, olds[::-1], [2, 1])
    assert first == second[::-1]
    assert first[0] > 0.5 > first[1]
    assert chances(new, [], []) == []


def test_a_judge_decides_which_of_the_possible_statements_is_replaced():
    old, other = "My blood test has been fixed for 1 pm on Tuesday.", "I must be at the gym by 11 am on Friday."
    texts = "My cat is black.", old, other, "I rescheduled my blood test for Monday at 11 am."
    assert "(earlier)" not in _memory(*texts).retrieve("blood test").render()
    for word, chance, its in (("blood", 0.7, {old}), ("gym", 0.7, {other}), ("gym", 0.1, set()), ("", 0.7, {old})):
        encoder = _Encoder(word, chance)
        found = _memory(*texts, embedder=encoder).retrieve("blood test at the gym, black cat").items
        assert {f"{one[:-1]} (earlier)" for one in its} == {r.text for r in found if r.text.endswith("(earlier)")}
        assert {old, other} <= set(encoder.asked)
        assert texts[0] not in encoder.asked
    assert "(earlier)" not in _memory(*texts, embedder=_Encoder("", 0.1)).retrieve("blood test").render()


@pytest.mark.parametrize(("answer", "error"), [
    (lambda new, olds, distances: 1 / 0, "division by zero"),
    (lambda new, olds, distances: [], "judge: expected 1 chances, got 0"),
    (lambda new, olds, distances: ["likely"], "could not convert string to float"),
])  # fmt: skip
def test_the_words_decide_where_a_judge_fails(answer, error):
    encoder = _Encoder("")
    encoder.chances = answer
    memory = _memory(*CORRECTED[0][:2], embedder=encoder)
    assert "(earlier)" in memory.retrieve("wake").render()
    assert memory.embedder.failed == 1
    assert error in memory.embedder.last_error


def test_small_talk_is_not_judged():
    encoder = _Encoder("", 1.0)
    assert "(earlier)" not in _memory("I get up at 7.", "Good morning!", embedder=encoder).retrieve("get up").render()
    assert encoder.asked == []


def test_far_back_only_what_shares_a_topic_is_replaced():
    for fillers, is_far in ((3, False), (9, True)):
        texts = [f"I know {number} jokes." for number in range(fillers)]
        for old, is_replaced in (("I eat steak.", not is_far), ("I was vegan once.", True)):
            memory = _memory(old, *texts, "I'm vegan now.", embedder=_Encoder(old, 1.0))
            ids = {note.text: int(note.number) for note in memory.get_all("notes")}
            assert (memory.notes.newest(ids[old]) == ids["I'm vegan now."]) == is_replaced

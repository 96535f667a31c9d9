"""A denial ends what it denies word for word; of two statements about one thing the newer comes first."""

from __future__ import annotations

import itertools

import pytest

from embodied_mem.memory import LifelongMemory, Scope

UNRELATED = [
    ("I like my brother's dog.", "I don't like my brother."), ("I like coffee with milk.", "I don't like milk."),
    ("I like people who smoke.", "I like people who don't smoke."),
    ("I think that he is well.", "I think that he is not well."),
    ("I like coffee.", "I didn't like coffee as a child."), ("I drank coffee.", "I don't drink coffee."),
    ("I drink coffee.", "I don't always drink coffee."), ("I live in Paris.", "I am not living near Paris."),
    ("I am living in Paris.", "I am used to living in Paris."), ("The cup of Ann is here.", "Ann is not here."),
    ("I work.", "I don't work on Sundays."), ("I like to swim.", "I don't like to swim in winter."),
    ("I have a dog.", "My sister does not have a dog."), ("I eat fish.", "If I don't eat fish I am sad."),
    ("I eat fish.", "Don't I eat fish?"), ("I eat fish.", "She said I don't eat fish."),
    ("Ich mag Tee.", "Ich mag keinen Kaffee."),
    ("I like cakes that have nuts.", "I like cakes that have no nuts."), ("I trust Tom's wife.", "I never trust Tom."),
]  # fmt: skip
FORMS = [
    ("I {} {}.", "I don't {} {}."), ("I {} {}", "I do not {} {} anymore"), ("i {} {}", "I dont {} {} any more."),
    ("I {} {}.", "I no longer {} {}."), ("We {} {}.", "We never {} {}."), ("I {} {}.", "I used to {} {}."),
    ("I don't {} {}.", "I {} {} again."), ("I can {} {}.", "I can't {} {}."), ("I can {} {}.", "I cannot {} {} now."),
    ("My son will {} {}.", "My son won't {} {}."), ("They {} {}!", "THEY DO NOT {} {}"),
    ("I {} {}.", "Well, I don't {} {} any longer!"),
]  # fmt: skip
PHRASES = [("eat", "meat"), ("like", "my brother's dog")]


@pytest.mark.parametrize(("old", "new"), UNRELATED)
def test_a_denial_ends_nothing_else(old, new):
    memory = LifelongMemory()
    memory.tell(old)
    assert memory.tell(new).ended == ()
    assert "no longer, since" not in memory.retrieve(old).render()


@pytest.mark.parametrize(("forms", "phrase"), itertools.product(FORMS, PHRASES))
def test_a_denial_ends_the_same_sentence(forms, phrase):
    memory = LifelongMemory()
    old = memory.tell(forms[0].format(*phrase)).notes[0]
    assert old.id in {row.id for row in memory.tell(forms[1].format(*phrase)).ended}


CONTRADICTED = [
    (old.format(thing), new.format(thing), asked.format(thing))
    for thing in ("coffee", "my old boss")
    for old, new, asked in (
        ("I like {}.", "I hate {}.", "{}"), ("I love {}.", "I can't stand {}.", "do I love {}?"),
        ("I need {}.", "I gave up {}.", "do I need {}?"), ("I enjoy {}.", "I quit {}.", "do I enjoy {}?"),
        ("I like tea and {}.", "I don't like {} anymore.", "do I like {}?"),
        ("I love {}, tea and cake.", "I no longer love {}.", "what about {}?"),
        ("My brother likes {}.", "My brother hates {}.", "does my brother like {}?"),
        ("I miss {}.", "I got over {}.", "do I miss {}?"),
    )
] + [
    ("I have two cats.", "I have no cats.", "do I have cats?"),
    ("I eat meat.", "No more meat for me. I don't eat meat.", "meat"),
    ("Ich mag Kaffee.", "Ich hasse Kaffee.", "Mag ich Kaffee?"), ("我喜欢咖啡。", "我讨厌咖啡。", "我喜欢咖啡吗？"),
    ("My daughter Lily likes tea.", "Lily doesn't like tea anymore.", "does Lily like tea?"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "asked"), CONTRADICTED)
@pytest.mark.parametrize("k", [1, None])
def test_the_newer_comes_first_and_the_older_is_marked(old, new, asked, k):
    memory = LifelongMemory(Scope(user="Ann"))
    memory.tell("The lamp in the hall is new.")
    memory.tell(old, speaker="Ann")
    memory.tell(new)
    items = memory.retrieve(asked, k=k).items
    assert items[0].text.rstrip(".") == new.rstrip(".")
    for item in items:
        assert item.text.endswith(("(earlier)", ")")) or old.rstrip(".。") not in item.text


ALONGSIDE = [
    ("I like tea.", "I like coffee.", "what do I like?"), ("I like item 1.", "I like item 2.", "which item do I like?"),
    ("I like green tea.", "I like black tea.", "do I like green tea?"),
    ("I like coffee.", "My sister hates coffee.", "coffee"),
    ("My brother likes tea.", "My sister hates tea.", "tea"),
    ("I like my brother's dog.", "I don't like my brother.", "brother's dog"),
    ("I like tea.", "Do I hate tea?", "tea"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "asked"), ALONGSIDE)
def test_what_only_differs_is_not_earlier(old, new, asked):
    memory = LifelongMemory()
    memory.tell(old)
    memory.tell(new)
    assert "(earlier)" not in memory.retrieve(asked).render()


def test_an_earlier_text_told_again_is_not_newer():
    memory = LifelongMemory()
    memory.tell("I like coffee.")
    memory.tell("I hate coffee.")
    shown = [item.text for item in memory.retrieve("coffee").items]
    assert shown[:2] == ["I hate coffee.", "I like coffee (earlier)"]
    memory.tell(shown[1])
    assert memory.retrieve("coffee").items[0].text == "I hate coffee."
    memory.tell("I like coffee.")
    assert "like" in memory.retrieve("coffee", k=1).items[0].text


IDLE = [
    "How are you?", "thanks!", "Do I like coffee?", "do i like coffee", "What time is it", "Good morning!",
    "Hi! How are you?",
    "Where's my red cup?", "Danke!", "谢谢", "我喜欢咖啡吗？", "¿Dónde está mi taza?", "Is the door open", "Ok.",
    "Can you hear me",
]  # fmt: skip


@pytest.mark.parametrize("text", IDLE)
@pytest.mark.parametrize("form", [str, str.lower, str.upper, lambda text: text.rstrip("?!.")])
def test_a_question_is_no_answer_to_itself(text, form):
    memory = LifelongMemory()
    memory.tell(text)
    memory.tell("I like my coffee in the red cup.")
    assert form(text) == text or memory.get_all()
    assert all(item.data["said"] != text for item in memory.retrieve(form(text)).items if item.module == "notes")
    assert text in [entry.text for entry in memory.get_all("notes")]
    assert memory.get_all("profile") == [] or all("?" not in one.text for one in memory.get_all("profile"))


@pytest.mark.parametrize("text", ["Yes, I like it.", "Do the dishes.", "When I was young I lived in Rome.", "Peanuts."])
def test_what_tells_something_is_an_answer(text):
    memory = LifelongMemory()
    memory.tell(text)
    assert text in memory.retrieve(text).render()

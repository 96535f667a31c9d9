"""What a user, an object or an episode is when it is forgotten, and what the receipt says."""

from __future__ import annotations

import asyncio
import json

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import AsyncLifelongMemory, LifelongMemory, Scope
from embodied_mem.serve.tools import call

SAID = {  # who said it -> a word that only this speaker says
    "": "sesame",
    "ann": "walnuts",
    "ANN": "cashews",
    "Bob": "pistachios",
    "bob": "almonds",
    "Zoë Müller": "hazelnuts",
    "老王": "花生",
}


def told(memory: LifelongMemory) -> LifelongMemory:
    memory.begin_task("t", "put a mug on the shelf", "You see a desk 1, and a shelf 1.", place="kitchen")
    memory.observe("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1.", pose=(1, 2))
    memory.observe("look", "A faint smell of gas.")
    for speaker, word in SAID.items():
        memory.tell(f"I am allergic to {word}.", speaker=speaker)
    memory.tell("My favorite mug is the blue mug.")
    memory.tell("Bob never eats sugar.")
    memory.tell("The manual says: descale monthly.", trust="document")
    return memory


CASES = {
    "ann": ["", "ann", "ANN"],
    "ANN": ["", "ann", "ANN"],
    " Ａｎｎ ": ["", "ann", "ANN"],
    "BOB": ["Bob", "bob"],
    "zoe\u0308 mu\u0308ller": ["Zoë Müller"],
    "老王": ["老王"],
}


@pytest.mark.parametrize("asked", CASES)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_user_is_who_spoke(tmp_path, asked, is_async):
    def raw():
        return b"".join(path.read_bytes() for path in tmp_path.iterdir())

    is_own = "" in CASES[asked]
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        seen = [entry.id for entry in told(memory).get_all() if entry.trust in ("sensor", "document")]
        assert all(word.encode() in raw() for word in (*SAID.values(), "favorite", "descale"))
        before = {entry.id: entry.text for entry in memory.get_all()}
        door = AsyncLifelongMemory(memory) if is_async else memory
        receipt = door.forget(user=asked)
        if is_async:
            receipt = asyncio.run(receipt)
        for speaker, word in SAID.items():
            assert (word.encode() in raw()) == (speaker not in CASES[asked])
        assert (b"favorite" in raw()) == (not is_own)
        left = [entry.id for entry in memory.get_all()]
        assert [id for id in left if id in seen] == seen
        assert {one.id: one.text for one in receipt.removed} == {i: before[i] for i in before if i not in left}
        assert receipt["notes.notes"] == sum(one.module == "notes" for one in receipt.removed) > 0
        spoken_of = [one.text for one in receipt.similar]
        assert spoken_of == (["Bob never eats sugar."] if asked == "BOB" else [])
    with LifelongMemory.open(tmp_path, Scope(user="ann"), read_only=True) as again:
        assert [entry.id for entry in again.get_all()] == left


def test_the_user_of_a_scope_without_a_name():
    memory = LifelongMemory()
    memory.tell("I like tea.")
    memory.tell("I like coffee.", speaker="Bob")
    assert [one.text for one in memory.forget(user="User").removed if one.module == "notes"] == ["I like tea."]
    assert [entry.text for entry in memory.get_all()] == ["I like coffee."]


@pytest.mark.parametrize(
    ("selector", "named"),
    [
        ({"user": "Carl"}, "user: expected one of ann, ANN, Bob, bob, Zoë Müller, 老王, got 'Carl'"),
        ({"episode": 7}, "episode: expected 0 to 0, got 7"),
        ({"episode": -2}, "episode: expected 0 to 0, got -2"),
        ({"everything": False}, "everything: expected True"),
        ({"everything": True, "user": "ann"}, "expected one of user, object and episode"),
    ],
)
def test_what_is_not_known_is_an_error_and_changes_nothing(tmp_path, selector, named):
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        state, last = told(memory).state(), memory.store.last_event
        with pytest.raises(InvalidInputError) as caught:
            memory.forget(**selector)
        assert named in str(caught.value)
        assert (memory.state(), memory.store.last_event) == (state, last)
    with pytest.raises(InvalidInputError, match="expected the number of a task, of which there is none yet"):
        LifelongMemory().forget(episode=0)


def test_everything_leaves_nothing(tmp_path):
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        told(memory)
        assert len(memory.forget(everything=True).removed) > 10
        assert memory.get_all() == []
        raw = b"".join(path.read_bytes() for path in tmp_path.iterdir()).decode("utf-8", "replace")
        assert not any(word in raw for word in (*SAID.values(), "mug", "favorite", "descale", "kitchen"))


LIKE = {  # what rules do not decide: asked -> told
    "кошка": "Я люблю кошку.",
    "Katze": "Unsere Katzen schlafen.",
    "قطة": "أحب القطة",
    "ev": None,
    "kedi": "Kedimin adı Pamuk.",
    "고양이": "길고양이를 봤어요",
    "차": "오늘은 차갑다",
    "cafe": "The Café is shut.",
    "car": "The carpet is red.",
    "blue mug": "The mug is blue.",
    "José": "JOSE called.",
    "ね": "ねこが好き",
    "talo": "Olin talossa.",
}


@pytest.mark.parametrize("asked", LIKE)
def test_what_rules_do_not_decide_is_reported_with_ids(tmp_path, asked):
    with LifelongMemory.open(tmp_path, fsync="never") as memory:
        memory.tell("Tea.")
        note = memory.tell(text).notes[0] if (text := LIKE[asked]) else None
        receipt = memory.forget(object=asked)
        assert receipt.removed == ()
        assert [one.id for one in receipt.similar] == ([note.id] if note else [])
        answer = json.loads(call(memory, "forget", {"object": asked}))
        assert answer.get("removed") == {}
        assert answer.get("looks_like_it", []) == ([{"id": note.id, "text": text}] if note else [])
        for one in receipt.similar:
            memory.delete(one.id)
        raw = b"".join(path.read_bytes() for path in tmp_path.iterdir()).decode("utf-8", "replace")
        assert "Tea." in raw
        assert not text or text not in raw


def test_a_receipt_is_read_as_counts_and_as_lines():
    memory = told(LifelongMemory(Scope(user="ann")))
    receipt = memory.forget(object="mug")
    assert receipt["spatial.facts"] == 1
    assert {one.module for one in receipt.removed} >= {"spatial", "notes", "profile"}
    assert "removed notes:" in receipt.render()
    assert memory.forget(object="mug").render() == "nothing was removed"
    assert json.loads(json.dumps(receipt)) == dict(receipt)
    (gone,) = memory.forget(object="manual").removed
    assert gone.text == 'a document says: "The manual says: descale monthly."'


def test_a_user_is_also_the_role_of_a_chats_user(tmp_path):
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        for speaker, word in {"user": "sesame", "Human": "walnut", "assistant": "plum", "Bob": "pecan"}.items():
            memory.tell(f"I had a {word}.", speaker=speaker)
            memory.tell(f"The {word} is on the shelf.", speaker=speaker)
        memory.forget(user="Ann")
        left = memory.export() + memory.retrieve("What is on the shelf?").render()
        raw = b"".join(path.read_bytes() for path in tmp_path.iterdir()).decode(errors="ignore")
    for word, is_left in {"sesame": False, "walnut": False, "plum": True, "pecan": True}.items():
        assert (word in left, word in raw) == (is_left, is_left), word


def test_an_episode_stays_in_which_a_forgotten_thing_was_only_seen(tmp_path):
    def lived(memory):
        return [(one.goal, [step.action for step in one.steps]) for one, _ in memory.episodic.trajectories.records]

    def play(memory, number, extra):
        memory.begin_task(f"task {number}", "put a mug in shelf.", "You see a desk 1, and a shelf 1.", place="kitchen")
        memory.observe("go to desk 1", f"You arrive at desk 1. On the desk 1, you see a mug 1{extra}.")
        memory.observe("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
        memory.observe("move mug 1 to shelf 1", "You move the mug 1 to the shelf 1.")
        memory.end_task(True)

    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        for number, extra in enumerate(("", ", and a spatula 1", ", and a spatula 2")):
            play(memory, number, extra)
        memory.begin_task("task 3", "put a spatula in shelf.", "You see a desk 1.", place="kitchen")
        memory.observe("look", "Nothing happens.")
        memory.end_task(False)
        mugs = lived(memory)[0]
        memory.forget(object="spatula")
        assert lived(memory) == [mugs, mugs, mugs]
        said = [step.observation for one, _ in memory.episodic.trajectories.records for step in one.steps]
        assert sum("you see a mug 1." in text for text in said) == 1
        assert [one.text for one in memory.pool("put a mug in shelf.", k=2, kinds=("experience",))]
    assert b"spatula" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    with LifelongMemory.open(tmp_path, Scope(user="ann"), fsync="never") as memory:
        assert lived(memory) == [mugs, mugs, mugs]

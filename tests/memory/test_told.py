"""Nothing that is told is lost: sentences and texts that no rule was made for, negations, threads, models that fail."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LexicalEmbedder, LifelongMemory, Scope

KITCHEN = "You stand in a kitchen with a red kettle on the stove and a cat on the windowsill."


def kitchen(memory: LifelongMemory) -> LifelongMemory:
    memory.begin_task("tea", "make tea for Ann", KITCHEN)
    memory.observe("walk_to(stove)", "Reached the stove. Steam rises from the kettle.")
    return memory


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I am vegetarian", "Is the user vegetarian?"),
        ("My sister gave me the blue mug", "Who gave me the blue mug?"),
        ("I always take my pill after breakfast", "When should the pill be taken?"),
        ("Bob's train leaves at noon", "When does the train of Bob leave?"),
        ("Der Schlüssel liegt unter der Matte", "Wo ist der SCHLÜSSEL?"),
    ],
)
def test_every_sentence_is_kept_and_found(said, asked):
    memory = LifelongMemory()
    for other in ("I like my toast dark.", "The plants need water on Mondays."):
        memory.tell(other)
    receipt = memory.tell(said)
    assert [written.text for written in receipt.notes] == [said]
    assert said in memory.retrieve(asked).items[0].text
    assert memory.get(receipt.notes[0].id).text == said


def test_texts_of_another_world_are_kept_and_found():
    memory = kitchen(LifelongMemory())
    receipt = memory.observe("look", "A note on the door says: back at noon.")
    assert [written.text for written in receipt.notes] == ["A note on the door says: back at noon."]
    assert "red kettle" in memory.retrieve("where is the kettle").render()
    assert "back at noon" in memory.retrieve("what does the note on the door say?").items[0].text


def test_a_model_reads_the_lines_that_no_rule_reads():
    asked = []

    def chat(messages):
        asked.append(messages[-1]["content"])
        return '[["kettle", "on", "stove"]]' if "kettle" in asked[-1] else "[]"

    memory = LifelongMemory(chat=chat, parallel=False)
    memory.begin_task("t", "make tea", "You see nothing new.")
    memory.observe("look", "On the desk 1, you see a mug 1.\nA kettle hums on the stove.")
    assert "A kettle hums on the stove." in asked[-1]
    assert "mug" not in asked[-1]
    assert (memory.spatial.inside("desk 1"), memory.spatial.inside("stove")) == (["mug 1"], ["kettle"])
    memory.close()


def test_an_end_is_an_end():
    memory = LifelongMemory()
    liked = memory.tell("I like oat milk in my coffee.")
    memory.tell("My sister likes oat milk.")
    receipt = memory.tell("I don't like oat milk anymore, I prefer soy.")
    assert receipt.ended == ()  # the milk in the coffee was not denied
    found = memory.retrieve("do I like oat milk?").items
    assert "soy" in found[0].text
    assert all("(earlier)" in item.text for item in found if "in my coffee" in item.text)
    assert not any("(earlier)" in item.text for item in found if item.text.startswith("My sister"))
    assert {row.id for row in memory.tell("I don't like oat milk in my coffee.").ended} >= {liked.notes[0].id}
    assert memory.history(liked.notes[0].id)[-1].ended is not None


def test_one_speaker_changes_nothing_of_another():
    memory = LifelongMemory(Scope(user="Ann"))
    memory.tell("I need insulin at 7.", speaker="ann")
    memory.tell("My favorite color is green.")
    before = memory.profile.state()
    for said in ("I don't need insulin at 7.", "My favorite color is blue."):
        receipt = memory.tell(said, speaker="Ben")
        assert [(row.module, row.text) for row in receipt.stored] == [("notes", f"Ben: {said}")]
        assert not receipt.merged
        assert not receipt.ended
    memory.update(receipt.notes[0].id, "My favorite color is red.")
    assert memory.profile.state() == before
    assert {entry.text for entry in memory.get_all("profile")} >= {"My favorite color: color (green)"}
    assert all(entry.ended is None for entry in memory.get_all())
    assert memory.tell("I don't need insulin at 7.", speaker="Ann").ended


def test_a_named_speaker_is_not_the_user_without_a_name():
    memory = LifelongMemory()
    empty = memory.profile.state()
    memory.tell("My favorite color is green.", speaker="Ann")
    assert memory.profile.state() == empty
    assert "green" in memory.retrieve("what is the favorite color of Ann?").items[0].text
    memory.tell("My favorite color is blue.")
    assert memory.profile.state() != empty


def test_values_that_differ_stay_with_their_times():
    memory = LifelongMemory()
    told = [memory.tell(f"I need medicine {name} at 8") for name in "AB"]
    assert not any(receipt.merged or receipt.ended for receipt in told)
    text = memory.retrieve("which medicine do I need at 8?").render()
    assert "medicine A" in text
    assert "medicine B" in text
    times = [memory.get(receipt.notes[0].id).recorded for receipt in told]
    assert times[0] < times[1]


def test_four_thousand_items_are_four_thousand():
    memory = LifelongMemory()
    for number in range(4000):
        memory.tell(f"I like item {number}")
    assert len(memory.get_all(module="notes")) == 4000
    assert len(memory.get_all(module="profile")) == 4000
    assert memory.retrieve("item 1234").items[0].text.endswith("I like item 1234")


def test_the_same_again_is_a_reference_and_no_copy():
    memory = LifelongMemory()
    first, again = memory.tell("I am vegetarian."), memory.tell("I am vegetarian.")
    assert [written.id for written in again.merged] == [first.notes[0].id]
    assert len(memory.get(first.notes[0].id).sources) == 2
    assert [item.text for item in memory.retrieve("vegetarian").items] == ["I am vegetarian."]


def test_an_answer_is_found_by_its_question():
    memory = LifelongMemory()
    for text in ("Rex is a nice one.", "Which breed is your dog?", "A nice one is Rex.", "I made soup."):
        memory.tell(text, when="8 May")
    scores = {
        item.data["said"]: item.score for item in memory.retrieve("breed of the dog").items if "said" in item.data
    }
    assert scores["A nice one is Rex."] > scores["Rex is a nice one."] > 0


def test_who_asks_when_gets_what_tells_a_time():
    memory = LifelongMemory()
    texts = ["We painted the fence with Tom.", "We painted the fence last Friday."]
    for text in texts:
        memory.tell(text)
    asked = ("Who painted the fence?", "When did we paint the fence?")
    assert [memory.retrieve(one, k=1).items[0].text for one in asked] == texts


def test_recent_steps_do_not_head_every_answer():
    memory = kitchen(LifelongMemory())
    memory.tell("Peanuts make me sick.")
    assert "Peanuts" in memory.retrieve("peanuts").items[0].text
    assert memory.retrieve("zebra").items == ()
    assert any(item.module == "temporal" for item in memory.retrieve().items)  # what the task is about
    assert memory.retrieve("steam").items[0].text.find("Steam") >= 0


FAILURES = (
    "Grasp failed",
    "Error: no path to table",
    "I could not reach the cup.",
    "The gripper was unable to close.",
    "Navigation aborted after 30 s",
    "Timed out waiting for the arm",
    "The door is locked and cannot be opened.",
    "You can't do that.",
    "Object not found",
    "pick(mug) -> failure (code 3)",
    "The action was not successful.",
    "Failed to plan: target unreachable",
    "Nothing happens.",
    "Invalid action",
)
NO_FAILURES = (
    "Grasped the mug",
    "Reached the stove without errors.",
    "The attempt did not fail.",
    "0 errors, 3 objects seen",
    "You are not carrying anything.",
    "There's nothing special about mug 1.",
    "You arrive at desk 1. On the desk 1, you see nothing.",
    "The fridge 1 is closed.",
    "A book titled Trial and Error lies here.",
    "error: none",
)


@pytest.mark.parametrize("answer", FAILURES + NO_FAILURES)
def test_an_outcome_is_read(answer):
    memory = LifelongMemory()
    memory.begin_task("t", "bring the mug", "A hall.")
    receipt = memory.observe("pick(mug)", answer)
    assert receipt.outcome == ("failure" if answer in FAILURES else "unknown")
    assert ("without effect" in _folded(memory)) == (answer in FAILURES)


def _folded(memory: LifelongMemory) -> str:
    for number in range(3):
        memory.observe(f"wave({number})", "The robot waves.")
    return memory.temporal.render()


def test_an_outcome_that_the_world_knows_counts():
    memory = LifelongMemory()
    memory.begin_task("t", "bring the mug", "A hall.")
    assert memory.observe("pick(mug)", "The arm is at rest.", outcome="failure").outcome == "failure"
    assert memory.observe("pick(cup)", "Grasp failed? No: it holds.", outcome="success").outcome == "success"
    memory.end_task(False)
    lessons = [entry.text for entry in memory.get_all(module="semantic")]
    assert [text for text in lessons if "no effect" in text] == ["'pick(mug)' had no effect (once)"]


def test_threads_lose_nothing():
    memory = LifelongMemory()
    memory.begin_task("t", "tidy up", KITCHEN)
    errors = []

    def work(worker: int) -> None:
        try:
            for number in range(50):
                memory.observe(f"move {worker} {number}", f"Object w{worker}n{number} now stands on shelf {number}.")
                memory.retrieve("object on shelf")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert errors == []
    assert memory.step == 400
    assert len(memory._running_episode().steps) == 400
    texts = " ".join(entry.text for entry in memory.get_all(module="spatial"))
    assert sum(f"w{worker}n{number} " in texts for worker in range(8) for number in range(50)) == 400


class ClientTimeout(Exception):
    """As a caller's own client raises it: of no family that this package knows."""


def test_any_failure_of_a_model_is_counted_and_survived():
    def chat(messages):
        raise ClientTimeout("read timed out")

    memory = LifelongMemory(chat=chat)
    memory.tell("I am vegetarian.")
    kitchen(memory)
    for number in range(4):
        memory.observe("look", f"Text {number} that no rule knows.")
    memory.end_task(True)
    memory.close()
    assert memory.writer.failed == memory.writer.calls > 5
    assert "ClientTimeout" in memory.writer.last_error
    assert "vegetarian" in memory.retrieve("vegetarian").render()


class Embedder:
    """The lexical one behind a client that is down at first, and now and then answers with something else."""

    name = LexicalEmbedder().name

    def __init__(self, down: int):
        self.calls, self.down = 0, down

    def embed(self, texts):
        self.calls += 1
        if self.calls <= self.down:
            raise ClientTimeout("read timed out")
        if self.calls % 7 == 0:
            return np.full((len(texts), 3), np.nan)
        return LexicalEmbedder().embed(texts)


@pytest.mark.parametrize("down", [0, 3, 1000])
def test_any_failure_of_an_embedder_is_counted_and_survived(down, tmp_path):
    said = [f"The {colour} box holds letters from Bob." for colour in ("brown", "blue", "green", "grey")]
    with LifelongMemory.open(tmp_path, embedder=Embedder(down)) as memory:
        for text in said:
            memory.tell(text)
        kitchen(memory).end_task(True)
        assert all(text in memory.retrieve(text, k=4).render() for text in said)
        assert memory.embedder.failed >= min(down, 1)
        assert ("ClientTimeout" in memory.embedder.last_error) == (down == 1000)
        expected = memory.state()
    with LifelongMemory.open(tmp_path, embedder=LexicalEmbedder()) as again:  # one that answers: as if it never failed
        assert again.state() == expected
        other = LifelongMemory(embedder=LexicalEmbedder())
        for text in said:
            other.tell(text)
        found, whole = (one.retrieve("green letters", k=1).items[0] for one in (again, other))
        assert (found.text, found.score) == (whole.text, pytest.approx(whole.score))


def test_a_fork_in_the_middle_of_a_change_is_refused_in_the_child():
    """Another thread holds the memory half changed while this process forks: the child must not read it."""
    memory = LifelongMemory()
    memory.tell("I am vegetarian.")
    inside, leave = threading.Event(), threading.Event()

    def change() -> None:
        with memory._locks.applying:
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=change)
    thread.start()
    assert inside.wait(20)
    child = os.fork()
    if child == 0:
        try:
            memory.retrieve("vegetarian")
            os._exit(1)
        except InvalidInputError as error:
            os._exit(0 if "forked" in str(error) else 2)
        finally:
            os._exit(3)
    leave.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert memory.retrieve("vegetarian").items


def test_readers_do_not_wait_for_a_model():
    asked, answer = threading.Event(), threading.Event()

    def chat(messages):
        asked.set()
        answer.wait(20)
        return "[]"

    memory = LifelongMemory(chat=chat)
    thread = threading.Thread(target=memory.tell, args=("I am vegetarian.",))
    thread.start()
    assert asked.wait(20)
    assert memory.retrieve("vegetarian").items == ()
    answer.set()
    thread.join()
    assert memory.retrieve("vegetarian").items
    memory.close()


def test_a_sentence_of_a_long_text_is_found_like_a_short_one():
    filler = [
        f"On day {day} we talked about the garden, the weather, the neighbours and the new shelf." for day in range(60)
    ]
    story = " ".join([*filler[:30], "The boiler code is four four one seven.", *filler[30:]])
    memory = LifelongMemory()
    for number in range(20):
        memory.tell(f"The boiler in flat {number} is warm.")
        memory.tell(f"A dress code holds at party {number}.")
    note = memory.tell(story).notes[0].id
    for one in (memory, memory.fork()):
        assert one.retrieve("boiler code", k=1).items[0].id == note
    memory.update(note, "The long talk was about nothing.")
    assert memory.retrieve("boiler code", k=1).items[0].id != note
    memory.delete(note)
    assert note not in {item.id for item in memory.retrieve("boiler code").items}

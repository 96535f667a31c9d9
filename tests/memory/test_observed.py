"""What a detector gives: facts with confidence, poses, times, images, outcomes; kept, found and forgotten."""

from __future__ import annotations

import hashlib
import json
import math
import random

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import Image, LifelongMemory, Outcome


def kitchen(memory: LifelongMemory) -> LifelongMemory:
    memory.begin_task("tidy", "tidy up", "", place="kitchen")
    return memory


def files_of(folder) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_facts_need_no_text():
    memory = kitchen(LifelongMemory())
    receipt = memory.observe("look", facts=[("mug", "on", "table", 0.9), ("cup", "in", "sink")])
    assert [written.text for written in receipt.stored] == ["mug is on table (confidence 0.90)", "cup is in sink"]
    assert (receipt.outcome, memory.notes.notes) == ("unknown", {})
    moved = memory.observe("look", facts=[("mug", "in", "sink", 0.8)])
    assert [written.text for written in moved.ended] == ["mug is on table (confidence 0.90)"]
    assert sorted(memory.spatial.inside("sink")) == ["cup", "mug"]
    assert "mug is in sink" in memory.retrieve("where is the mug?").items[0].text
    assert memory.sightings("mug")[0].confidence == 0.8
    gone = memory.observe("look", facts=[("mug", "not in", "sink", 0.9)])
    assert [written.text for written in gone.ended] == ["mug is in sink (confidence 0.80)"]
    assert memory.spatial.inside("sink") == ["cup"]
    memory.observe("look", facts=[("cup", "in", "sink", 0.25)])  # it was told without a doubt before
    assert memory.sightings("cup")[0].confidence is None
    memory.observe("look", facts=[("cup", "in", "bin", 0.25), ("cup", "in", "bag", 0.75)])
    assert memory.sightings("cup")[0].confidence == 0.75
    memory.observe("look", facts=[("cup", "in", "sink")])
    assert memory.sightings("cup")[0].confidence is None
    memory.end_task(True)
    assert memory.semantic.places_of("cup") == [("sink", 1)]


def test_an_outcome_with_a_message():
    memory = kitchen(LifelongMemory())
    receipt = memory.observe("pick(mug)", outcome=Outcome("failure", "The fingers slid off."))
    assert receipt.outcome == "failure"
    assert [written.text for written in receipt.notes] == ["The fingers slid off."]
    assert memory.observe("pick(mug)", outcome=Outcome("unknown", "Grasp failed")).outcome == "failure"
    forked = memory.fork()
    forked.observe("look", "A mug.", images=[b"1"], outcome=Outcome("success", "", [b"2"]))
    assert len(forked.get_all("views")) == 1
    assert forked.get_all("views")[0].text.count("image ") == 2
    assert memory.observe("pick(mug)", "Grasp failed", facts=[("mug", "on", "table")]).outcome == "failure"
    memory.end_task(False)
    assert "'pick(mug)' had no effect (3 times)" in [entry.text for entry in memory.get_all("semantic")]
    kitchen(memory)
    assert memory.observe("pick(mug)", facts=[("gripper", "is", "stuck")]).outcome == "unknown"


def test_queries_by_pose_time_and_class_against_a_plain_list():
    rng = random.Random(5)
    memory = kitchen(LifelongMemory())
    last: dict[str, tuple[int, tuple[float, ...] | None, float | None, str]] = {}
    for step in range(300):
        pose = None if rng.random() < 0.2 else tuple(round(rng.uniform(-3, 3), 3) for _ in range(3))
        clock = None if rng.random() < 0.2 else 1000.0 + step / 3
        names = [f"{rng.choice(('mug', 'cup', 'pan'))} {rng.randrange(20)}" for _ in range(rng.randrange(3))]
        shelf = f"shelf {rng.randrange(9)}"
        memory.observe("look", facts=[(name, "on", shelf, 0.5) for name in names], pose=pose, time=clock)
        last.update({name: (step + 1, pose, clock, shelf) for name in names})
    for _ in range(60):
        kind = rng.choice((None, "mug", "cup"))
        near = None if rng.random() < 0.3 else tuple(rng.uniform(-3, 3) for _ in range(3))
        after = None if rng.random() < 0.3 else 1000.0 + rng.uniform(0, 100)
        within_m = rng.uniform(0.2, 4)
        expected = {
            (name, shelf, step)
            for name, (step, pose, clock, shelf) in last.items()
            if kind in (None, name.split()[0])
            and (near is None or (pose is not None and math.dist(pose, near) <= within_m))
            and (after is None or (clock is not None and clock > after))
        }
        found = memory.sightings(kind, near=near, within_m=within_m, after=after)
        assert {(one.name, one.receptacle, one.step) for one in found} == expected
        assert [one.seen for one in found] == sorted((one.seen for one in found), reverse=True)
        for one in found:
            pose = last[one.name][1]
            assert (() if one.view is None else one.view.pose) == (pose or ())
        assert memory.sightings(kind, near=near, within_m=within_m, after=after, k=2) == found[:2]


def test_images_are_kept_by_hash(tmp_path):
    picture = tmp_path / "frame.png"
    picture.write_bytes(b"pixels of a mug" * 9)
    array = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    folder = tmp_path / "memory"
    with LifelongMemory.open(folder) as memory:
        kitchen(memory)
        memory.observe("look", images=[picture, Image(array, labels={"camera": "head"})])
        memory.observe("look", facts=[("mug", "on", "table")], images=[Image(b"secret pixels", keep=True)])
        first, second = memory.get_all("views")
        assert first.images[0]["hash"] == hashlib.sha256(picture.read_bytes()).hexdigest()
        assert first.images[1]["shape"] == [2, 4, 3]
        assert "camera head" in first.text
        assert (b"pixels of a mug" in files_of(folder), b"c2VjcmV0IHBpeGVscw" in files_of(folder)) == (False, True)
        assert memory.forget(object="mug")["views.images"] == 1
        assert b"c2VjcmV0IHBpeGVscw" not in files_of(folder)
        assert len(memory.get(first.id).images) == 2
        assert memory.get(second.id).images == ()


def test_a_killed_memory_holds_what_was_observed(tmp_path):
    """The folder is read while the writer has not closed it, as after a kill; then from a snapshot."""
    with LifelongMemory.open(tmp_path) as memory:
        kitchen(memory)
        pose = (1.5, 0.25, 0.0, 0.0, 0.0, 0.6, 0.8)
        memory.observe("look", facts=[("mug", "on", "table", 0.9)], pose=pose, time=17.5, images=[b"png"])
        expected = memory.sightings("mug", near=(1, 0), after=17)
        assert (expected[0].view.pose, expected[0].view.data["clock"]) == (pose, 17.5)
        for _ in range(2):
            with LifelongMemory.open(tmp_path, read_only=True) as again:
                assert again.sightings("mug", near=(1, 0), after=17) == expected
                assert again.state() == memory.state()
            memory.store.snapshot()
        forked = memory.fork()
        forked.observe("look", facts=[("mug", "in", "sink", 0.7)], pose=(9, 9))
        assert memory.sightings("mug") == expected
        assert forked.sightings("mug")[0].view.pose == (9, 9, 0)
        assert memory.forget(episode=0)["views.views"] == 1
        assert (memory.get_all("views"), memory.sightings(place="kitchen")) == ([], [])


def test_what_an_event_of_a_step_says():
    events = []
    memory = LifelongMemory(record=lambda event: (events.append(json.dumps(event)), memory.module.apply(event)))
    kitchen(memory)
    memory.observe("look", "Nothing here.", facts=[("mug", "on", "table", 0.9)], pose=(1, 2), time=3.0)
    event = json.loads(events[-1])
    assert event["observation"] == "Nothing here.\nmug is on table."
    assert event["events"]["spatial"]["facts"] == [["mug", "on", "table", 0.9]]
    assert {name: event["events"]["views"][name] for name in ("pose", "clock")} == {"pose": [1, 2, 0], "clock": 3.0}


@pytest.mark.parametrize(
    "wrong",
    [
        {"facts": [("mug", "on")]},
        {"facts": ["mug on table"]},
        {"facts": [("mug", "on", "table", 1.5)]},
        {"facts": [("mug", "", "table")]},
        {"facts": [("m" * 3000, "on", "table")]},
        {"pose": (1,)},
        {"pose": (1, math.nan, 0)},
        {"time": "noon"},
        {"images": ["no/such/file.png"]},
        {"images": [Image(b"x" * (1 << 23), keep=True)]},
        {"outcome": "won"},
        {"outcome": Outcome("failure", 3)},
    ],
)
def test_a_wrong_observation_changes_nothing(wrong):
    memory = kitchen(LifelongMemory())
    before = memory.state()
    with pytest.raises(InvalidInputError):
        memory.observe("look", **wrong)
    assert memory.state() == before


def test_a_denial_of_what_was_not_known_is_a_note():
    memory = kitchen(LifelongMemory())
    for text, facts in (("There is no milk in the fridge.", ()), ("", [("butter", "not in", "pantry")])):
        receipt = memory.observe("look", text, facts=facts)
        said = text or "butter is not in pantry."
        assert [note.text for note in receipt.notes] == [said]
        again = memory.observe("look", text, facts=facts)
        assert ([one.text for one in again.merged], again.stored) == ([said], ())
        found = memory.retrieve(said, where={"module": "notes"}).items
        assert found[0].text == said
    memory.observe("look", "The milk is in the fridge.")
    count = len(memory.notes)
    ended = memory.observe("look", "There is no milk in the fridge.")
    assert ([one.text for one in ended.ended], ended.notes) == (["milk is in fridge"], ())
    mixed = memory.observe("look", "There is no tea in the sink.\nThe cup is in the sink.")
    assert [note.text for note in mixed.notes] == ["There is no tea in the sink."]
    assert len(memory.notes) == count + 1


@pytest.mark.parametrize(
    "refusal",
    ["You can't open the cupboard, it is locked.", "You don't have the key.", "You cannot carry a second cup."],
)
def test_a_refusal_that_names_something_is_a_note(refusal):
    memory = kitchen(LifelongMemory())
    receipt = memory.observe("open", refusal)
    assert (receipt.outcome, [note.text for note in receipt.notes]) == ("failure", [refusal])
    assert memory.retrieve(refusal, where={"module": "notes"}).items[0].text == refusal
    for bare in ("Nothing happens.", "You can't do that.", "You can't go that way."):
        receipt = memory.observe("open", bare)
        assert (receipt.outcome, receipt.stored, receipt.merged) == ("failure", (), ())

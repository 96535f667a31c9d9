"""The pool of a lifelong memory: what it has, forms, budgets, what is forgotten, and files."""

from __future__ import annotations

from played import played

from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.lifelong import replay
from embodied_mem.memory.pool import Reading
from embodied_mem.memory.recollection import count_tokens
from embodied_mem.worlds.alfworld.generator import generate

GOAL = "put a clean mug in cabinet."


def lived(folder=None) -> LifelongMemory:
    memory = LifelongMemory() if folder is None else LifelongMemory.open(folder)
    for seed, game in enumerate(generate(num_games=6, seed=5, num_scenes=4, prove=False)):
        replay(memory, played(game, seed))
    memory.tell("We keep the clean mug in the blue cabinet.")
    return memory


def texts(memory: LifelongMemory, **more) -> list[str]:
    return [record.text for record in memory.pool(GOAL, "", 30, **more)]


def test_each_record_has_kind_source_and_age():
    memory = lived()
    records = memory.pool(GOAL, "", 60)
    assert {"experience", "told", "rule"} <= {record.kind for record in records}
    assert [record.score for record in records] == sorted((record.score for record in records), reverse=True)
    for record in records:
        assert record.trust in ("user", "sensor")
        assert record.sources
        assert record.data["age"] >= 1
    assert memory.pool(GOAL, "", 60) == records


def test_what_changes_is_retrieved_again_and_a_budget_holds():
    memory = lived()
    before = texts(memory)
    memory.tell("The clean mug in the cabinet is broken.")
    assert set(texts(memory)) - set(before) >= {"told 1 task ago: The clean mug in the cabinet is broken."}
    for form in ("brief", "rationale", "trajectory"):
        cut = texts(memory, budget_tokens=120, form=form, kinds=("experience", "failure"))
        assert cut
        assert sum(map(count_tokens, cut)) <= 120
    raw = texts(memory, form="trajectory", kinds=("experience",))
    assert any("\n> " in text for text in raw)


def test_a_forgotten_episode_is_in_no_pool_and_a_kept_one_is_after_reopening(tmp_path):
    with lived(tmp_path) as memory:
        found = texts(memory, kinds=("experience", "failure"))
        state = memory.state()
    with LifelongMemory.open(tmp_path) as memory:
        assert texts(memory, kinds=("experience", "failure")) == found
        other = LifelongMemory()
        other.restore(state)
        assert texts(other, kinds=("experience", "failure")) == found
        record = memory.pool(GOAL, "", 30, kinds=("experience", "failure"))[0]
        fork = memory.fork()
        memory.forget(episode=record.episode)
        assert record.text in texts(fork, kinds=("experience", "failure"))
        left = memory.pool(GOAL, "", 30, kinds=("experience", "failure"))
        assert len(left) == len(found) - 1
        assert record.episode not in {one.episode for one in left}
        memory.forget(everything=True)
        assert texts(memory) == []


def test_lines_of_trajectories_say_their_age_if_asked_to():
    memory = lived()
    plain, with_ages = (memory.pool(GOAL, "", 30, kinds=("experience",), with_ages=value) for value in (False, True))
    assert [record.id for record in plain] == [record.id for record in with_ages]
    for before, after in zip(plain, with_ages):
        age = before.data["age"]
        since = "1 task ago" if age == 1 else f"{age} tasks ago"
        assert after.text == before.text.replace(":", f" {since}:", 1)


def test_a_summary_tells_goal_and_outcome_once_for_all_tries():
    memory = lived()
    for number in (6, 7):
        memory.begin_task(f"task {number}", "bring the lantern.", "You are on the stairs.")
        memory.observe("lift lantern", "It is heavy: you hold it.")
        memory.observe("walk", "You are in the hall.")
        memory.end_task(True)
    [record, *others] = memory.pool("bring the lantern.", "", 30, form="summary", kinds=("experience",), with_ages=True)
    assert record.text == "bring the lantern 1 task ago: won in 2 steps; 2 times"
    assert record.data["actions"] == memory.get(record.id).data["actions"]
    assert record.id not in {one.id for one in others}
    pool = memory.pool_of("bring the lantern.", "", Reading(1, form="summary", kinds=("experience", "place")))
    json = pool.as_json()
    assert [one["text"] for one in json["given"]] == [one.text for one in pool.records]
    assert {one["reason"] for one in json["left_out"]} == {"1 records fit better"}


def test_a_focused_pool_names_what_is_to_be_done_and_says_what_else_was_found():
    memory, about = lived(), "blue cabinet"
    whole = memory.pool(GOAL, "", 30, about=about)
    focused = memory.pool(GOAL, "", 30, about=about, focused=True)
    assert focused == [record for record in whole if {"blue", "cabinet"} <= set(record.text.strip(".").split())]
    assert 0 < len(focused) < len(whole)


def test_a_pool_stands_newest_first_if_asked_to_and_holds_the_same_records():
    with LifelongMemory() as memory:
        for number, place in enumerate(["bowl", "drawer", "bowl"]):
            memory.begin_task(f"task {number}", "find the keys.", "You are in a room.", facts=[("keys", "in", place)])
            memory.tell(("Find the keys!", "The keys hung there.", "Of keys and tea.")[number], speaker="Ann")
            memory.end_task(True)
        best, aged = (memory.pool("find the keys.", k=12, by_age=by_age) for by_age in (False, True))
        ages = [record.data["age"] for record in aged if record.kind != "rule"]
        assert ages == sorted(ages)
        assert len(set(ages)) == 3
        assert ages != [record.data["age"] for record in best if record.kind != "rule"]
        assert sorted(record.text for record in aged) == sorted(record.text for record in best)
        kinds = [record.kind == "rule" for record in aged]
        assert kinds == sorted(kinds)


def test_by_age_what_a_document_says_comes_last_and_takes_no_room():
    with LifelongMemory() as memory:
        for number in range(6):
            memory.begin_task(f"task {number}", "find the keys.", "You are in a room.", facts=[("keys", "in", "bowl")])
            memory.tell(f"The keys lie in drawer {number}.", trust="document")
            if number == 0:
                memory.tell("The keys hang in the hall.")
            memory.end_task(True)
        few, many = (memory.pool("find the keys.", k=k, by_age=True) for k in (4, 12))
        assert any("hang in the hall" in record.text for record in few)
        are_quoted = [record.trust == "document" for record in many]
        assert are_quoted == sorted(are_quoted)
        assert are_quoted[-1]


def test_a_profile_repeats_no_note_that_the_pool_has():
    with LifelongMemory() as memory:
        memory.begin_task("task 0", "put a mug in drawer.", "You are in a kitchen.")
        memory.tell("Hands off the mug in cabinet 1, because it belongs to my brother.")
        memory.end_task(True)
        memory.begin_task("task 1", "put a mug in drawer.", "You are in a kitchen.")
        pool = memory.pool_of(None, "", Reading(k=12), "mug")
        assert [record.module for record in pool.records if "brother" in record.text] == ["notes"]
        assert not [one for one in pool.left_out if one.record.module == "profile"]
        memory.tell("I like my mug on the desk.")
        memory.end_task(True)
        memory.begin_task("task 2", "take the mug. I like my mug on the shelf.", "You are in a kitchen.")
        memory.end_task(True)
        memory.begin_task("task 3", "put a mug in drawer.", "You are in a kitchen.")
        pool = memory.pool_of(None, "", Reading(k=12, kinds=("told",)), "mug")
        assert [record.module for record in pool.records if "shelf" in record.text] == ["profile"]  # no note says it


def test_a_profile_is_read_where_no_notes_are_kept():
    with LifelongMemory(modules=("profile", "episodic")) as memory:
        memory.begin_task("task 0", "make tea.", "You are in a kitchen.")
        memory.tell("I like green tea.")
        memory.end_task(True)
        pool = memory.pool_of(None, "", Reading(k=12), "green tea")
        assert any("green tea" in record.text for record in pool.records if record.module == "profile")


def test_lines_of_told_things_say_when_they_were_last_verified_if_asked_to():
    with LifelongMemory() as memory:
        memory.begin_task("task 0", "tidy up.", "You are in a room.", place="hall")
        memory.tell("The keys are in the blue bowl.", speaker="Ann")
        memory.tell("I like tea.", speaker="Ann")
        memory.tell("The pen is never in the grey cup.", speaker="Bob")
        memory.end_task(True)
        seen = [("keys", "in", "blue bowl"), ("pen", "in", "grey cup")]
        for number, facts in ((1, ()), (2, seen), (3, ()), (4, ())):
            memory.begin_task(f"task {number}", "tidy up.", "You are in a room.", place="hall", facts=facts)
            memory.end_task(True)
        lines = texts(memory, about="the keys, tea, pen", kinds=("told",), with_verified=True)
        plain = texts(memory, about="the keys, tea, pen", kinds=("told",))
        told = {line.partition(": ")[0] for line in lines if "bowl" in line}
        assert told == {"told Ann 5 tasks ago, last verified 3 tasks ago"}
        assert any(line.startswith("told Ann 5 tasks ago: ") for line in lines if "tea" in line)
        assert [line for line in lines if "never" in line] == [
            "told Bob 5 tasks ago: Bob: The pen is never in the grey cup."
        ]
        assert not any("verified" in line for line in plain)
        assert len(plain) == len(lines)
        memory.begin_task("task 5", "tidy up.", "You are in a room.", place="hall")
        memory.tell("I like tea.", speaker="Ann")
        memory.end_task(True)
        [line] = [
            line for line in texts(memory, about="tea", kinds=("told",), with_verified=True) if "I like tea" in line
        ]
        assert line.startswith("told Ann 6 tasks ago, last verified 1 task ago: ")

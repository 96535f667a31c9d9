"""The recorded runs of MEMENTO, replayed: final success, score after each step, answers, observation lines."""

from __future__ import annotations

import collections
import re

import memento_runs
import pytest

from embodied_mem.worlds.memento.data import load_tasks
from embodied_mem.worlds.memento.env import Env

# Which message comes needs no geometry, save for these: reach, free space, time and ways.
_TAIL = re.compile(r"\. (Use the appropriate tool|This may not be the correct node).*", re.DOTALL)
_GEOMETRY = (
    "Not close enough",
    "occluded or too far",
    "Skill took too long",
    "Could not find a suitable nav target",
    "No valid placements found for entity",
    "Successful execution!",
)
# Runs whose recorded final success the replay misses, by cause. They are few enough to name.
_MISSES = {
    "on one piece, but too far apart or on another board": {
        ("gpt-4o", "992"),
        ("llama-3.1-70b-instruct", "1273"),
        ("qwen-2.5-7b-instruct", "961"),
        ("qwen-2.5-7b-instruct", "1083"),
        ("qwen-2.5-7b-instruct", "1257"),
    },
    "too far from the couch that it should stand next to": {
        ("claude-3.5-sonnet", "1250"),
        ("llama-3.1-8b-instruct", "1230"),
    },
    "carried over or through a goal, which counted early": {
        ("claude-3.5-sonnet", "1225"),
        ("qwen-2.5-7b-instruct", "1263"),
    },
    "slid to the floor": {("claude-3.5-sonnet", "1231")},
    "put on a chest of drawers, which counted as inside it": {("llama-3.1-8b-instruct", "1042")},
}


@pytest.fixture(scope="module")
def tasks(memento_data, memento_recordings):
    places = memento_runs.text_places(memento_recordings)
    return {task.name: task for task in load_tasks("acquisition", memento_data, places)}


@pytest.fixture(scope="module")
def gold(memento_recordings):
    return memento_runs.gold_runs(memento_recordings)


@pytest.fixture(scope="module")
def models(memento_data, memento_recordings):
    return memento_runs.model_runs(memento_data, memento_recordings)


def replay(tasks, run):
    """Play a run with its answers, poses and discoveries as recorded; yield (turn, env before, env after)."""
    env = Env(tasks[run.episode_id], seed=0)
    if run.start is not None:
        env.place_agent(run.start[0], run.start[1])
    seen: list[str] = []
    for turn in run.turns:
        new = memento_runs.revealed(turn.objects, seen)
        seen += new
        recorded = {"response": turn.response or "", "revealed": new}
        if turn.position is not None:
            recorded |= {"room": turn.room or "", "position": turn.position}
        before = env.copy()
        env.step(turn.action, recorded)
        yield turn, before, env.copy()
    if not env.ended:
        env.step("Done[]")
    yield None, env, env


def test_gold_scores_after_each_step(tasks, gold):
    """1,956 of 2,016 steps and every final score; 60 differ because a carried object hovers over its goal."""
    steps = equal = 0
    carried = collections.Counter()
    for run in gold:
        for turn, _, after in replay(tasks, run):
            if turn is None:
                assert after.progress == pytest.approx(run.percent_complete, abs=1e-3), run.episode_id
                assert after.won == run.success
                continue
            steps += 1
            same = after.progress == pytest.approx(turn.score, abs=1e-3)
            equal += same
            if not same:
                carried[bool(after.state()["holding"])] += 1
    assert (len(gold), steps) == (144, 2016)
    assert equal == 1956
    assert carried == {True: 60}


def test_final_scores_of_all_runs(tasks, gold, models):
    missed = set()
    percent_equal = 0
    for run in gold + models:
        *_, (_, _, env) = replay(tasks, run)
        percent_equal += env.progress == pytest.approx(run.percent_complete, abs=1e-3)
        if env.won != run.success:
            missed.add((run.model, run.episode_id))
    assert len(gold + models) == 1008
    assert missed == set().union(*_MISSES.values())
    assert 1 - len(missed) / 1008 >= 0.985
    assert percent_equal == 995


def test_answers_are_predicted_where_geometry_does_not_decide(tasks, gold, models):
    """What the world would have answered, against what was answered, message by message."""
    counts = collections.Counter()
    for run in gold + models:
        for turn, before, _ in replay(tasks, run):
            if turn is None or turn.response is None or turn.action.startswith(("Find", "Done")):
                continue
            before.step(turn.action)
            got, want = _TAIL.sub("", before.response), _TAIL.sub("", turn.response)
            decided_by_geometry = any(m in want for m in _GEOMETRY) and any(m in got for m in _GEOMETRY)
            assert got == want or decided_by_geometry, (run.model, run.episode_id, turn.action, want, got)
            counts[turn.action.partition("[")[0], got == want] += 1
    assert counts["Navigate", False] <= 5
    for skill, share in (("Explore", 0.99), ("Pick", 0.92), ("Place", 0.93), ("DescribeObjectTool", 1.0)):
        right, wrong = counts[skill, True], counts[skill, False]
        assert right / (right + wrong) >= share, (skill, right, wrong)


def test_observation_lines_are_the_recorded_ones(tasks, gold, models):
    """80,584 of 80,758 lines word for word; the others are placed objects that slid to the floor."""
    lines = equal = 0
    odd = []
    for run in gold + models:
        for turn, _, after in replay(tasks, run):
            if turn is None or turn.objects is None:
                continue
            want = turn.objects.split("\n")
            got = after.observation.partition("\nObjects: ")[2].split("\n")
            assert len(want) == len(got)
            lines += len(want)
            equal += sum(a == b for a, b in zip(want, got))
            odd += [a for a, b in zip(want, got) if a != b and ": floor_" not in a]
    assert lines > 80_000
    assert equal / lines >= 0.997
    assert len(odd) <= 0.0005 * lines, odd[:5]


def test_the_world_decides_and_gold_actions_still_succeed(tasks, gold):
    """Closed loop, five seeds: with what was seen as recorded, all but a few of the recorded successes recur.

    The exceptions pick or place from a room's point, of which some are within reach and some are not: the rule is
    right in 84 % of recorded picks and 86 % of placements from such stands. With discovery decided here as well,
    plans fail that name an object which the recorded run saw in passing and this one did not.
    """
    won = recurred = 0
    failing = collections.Counter()
    alone = 0
    for run in gold:
        for seed in range(5):
            told, untold = Env(tasks[run.episode_id], seed), Env(tasks[run.episode_id], seed)
            seen: list[str] = []
            for turn in run.turns:
                new = memento_runs.revealed(turn.objects, seen)
                seen += new
                told.step(turn.action, {"revealed": new})
                untold.step(turn.action)
            assert run.success or not told.won, run.episode_id
            won += run.success
            recurred += told.won
            alone += untold.won
            if run.success and not told.won:
                failing[run.episode_id] += 1
    assert won == 680
    assert recurred / won >= 0.95
    assert set(failing) <= {"967", "978", "1034", "1038", "1229", "1238", "1262"}
    assert alone / won >= 0.88


def test_simulator_steps_are_about_those_recorded(tasks, gold):
    """Total cost of the reference plans within a tenth."""
    spent = recorded = 0
    for run in gold:
        env = Env(tasks[run.episode_id], seed=1)
        for turn in run.turns:
            env.step(turn.action)
        spent += env.sim_steps
        recorded += run.turns[-1].sim_steps
    assert 0.9 < spent / recorded < 1.1

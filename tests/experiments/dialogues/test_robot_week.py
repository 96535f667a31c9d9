"""A robot's week: the same for a seed, questions of every kind, and a judge that takes right answers alone."""

from __future__ import annotations

import collections
import json

import pytest

from embodied_mem.evaluation.evaluate import main
from experiments.dialogues import robot_week
from experiments.dialogues.week import FORMS, KINDS, Event, Question, make_week

NEVER = ("desk 2", "bed")


def test_a_week_is_the_same_for_a_seed_and_has_200_questions():
    week = make_week(0)
    assert week == make_week(0) != make_week(1)
    kinds = collections.Counter(event.kind for event in week if isinstance(event, Question))
    assert kinds.total() == 200
    assert set(kinds) == set(KINDS)
    events = [event for event in week if isinstance(event, Event)]
    assert sum(event.room != "" for event in events) == 7 * 2 * 6
    assert len({event.speaker.lower() for event in events} - {""}) == 4
    assert min(len(forms) for kind, forms in FORMS.items() if "?" not in kind) >= 12


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        (
            Question(0, "place", "", ("desk 1",), never=NEVER, thing="red mug"),
            ["Red_Mug is on desk 1. cup is on bed.", "I took the red mug. It is on desk 1."],
            ["red mug is on desk 2.", "cup is on desk 1. red mug is on bed.", "red mug: on desk 1, on bed", ""],
        ),
        (
            Question(0, "place_unknown", "", some=frozenset({"took"}), never=NEVER, thing="red mug"),
            ["Someone took the red mug.", "red mug is on desk 2 (no longer, since time 9)"],
            ["red mug is on desk 2", "Someone took the cup.", "Someone took the red mug. (earlier)"],
        ),
        (Question(0, "correction", "", ("6:30",)), ["Not 7:00, wake me at 6:30."], ["Wake me at 16:30.", "7:00"]),
        (Question(0, "last_seen", "", ("9", "8:10"), thing="cup"), ["cup: seen at 8:10"], ["cup: 8:15", "mug: 8:10"]),
        (Question(0, "unknown", ""), [], ["anything"]),
    ],
)
def test_the_judge(question, right, wrong):
    assert [question.is_answered(text) for text in right + wrong] == [True] * len(right) + [False] * len(wrong)


def test_the_command_scores_every_kind(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(robot_week.SEEDS, "dev", (0,))
    main(["--config=robot_week", "--part", "dev", "--result", str(tmp_path / "r.json"), "--json"])
    kinds = json.loads(capsys.readouterr().out.splitlines()[-1])["kinds"]
    assert list(kinds) == [*KINDS, "all"]
    assert kinds["all"]["ours"]["questions"] == kinds["all"]["bm25"]["questions"] == 200
    assert set(kinds["place"]) == {"ours", "sightings", "bm25"}
    assert kinds["place"]["sightings"]["first"] > 0.7  # the truth is reachable from what is seen
    assert json.loads((tmp_path / "r.json").read_text())["kinds"] == kinds

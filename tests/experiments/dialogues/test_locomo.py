"""LoCoMo's protocol on dialogues written here: what is read, measures against their formulas, every turn kept."""

from __future__ import annotations

import importlib.util
import json
import math

import pytest

from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.evaluation.evaluate import main
from experiments.dialogues.benchmark import BEAM, LOCOMO, DialoguesConfig, ndcg_at, recall_at
from experiments.dialogues.dialogues import read_locomo

SAID = [
    [("Ann", "Hello Bob!"), ("Bob", "Where did you go?"), ("Ann", "To the lighthouse, by bike."), ("Bob", "Nice!")],
    [("Bob", "I adopted a beagle named Rex."), ("Ann", "Nice!"), ("Bob", "My beagle chews shoes."), ("Ann", "Nice!")],
]
ASKED = [
    ("Which dog does Bob have?", ["D2:1", "D2:3"], 1),
    ("Where did Ann go by bike?", ["D1:3"], 4),
    ("What chews the shoes of Bob?", ["D2:3; D2:1"], 4),
    ("Who is Carla?", [], 5),
    ("When was it?", ["D9:9"], 2),
]


@pytest.fixture
def data(tmp_path):
    conversation = {"speaker_a": "Ann", "speaker_b": "Bob", "session_3_date_time": "never"}
    for number, turns in enumerate(SAID, 1):
        conversation[f"session_{number}_date_time"] = f"{number} May 2023"
        conversation[f"session_{number}"] = [
            {"speaker": who, "text": text, "dia_id": f"D{number}:{i}"} for i, (who, text) in enumerate(turns, 1)
        ]
    conversation["session_1"][3]["blip_caption"] = "a red bike"
    qa = [{"question": text, "evidence": evidence, "category": kind} for text, evidence, kind in ASKED]
    path = tmp_path / "dialogues.json"
    path.write_text(json.dumps([{"sample_id": "conv-0", "conversation": conversation, "qa": qa}]))
    return path


def test_dialogues_are_read(data):
    (dialogue,) = read_locomo(data)
    assert [turn.id for turn in dialogue.turns] == [f"D{s}:{i}" for s in (1, 2) for i in (1, 2, 3, 4)]
    assert dialogue.turns[3][1:] == ("Bob", "1 May 2023", "Nice! [shows a picture: a red bike]")
    assert [(asked.category, set(asked.evidence)) for asked in dialogue.questions] == [
        ("multi-hop", {"D2:1", "D2:3"}),
        ("single-hop", {"D1:3"}),
        ("single-hop", {"D2:1", "D2:3"}),
    ]
    for text in ("{}", "[]", "[1]", "x", '[{"sample_id": "x", "qa": []}]'):
        data.write_text(text)
        with pytest.raises(GameFileError, match="expected LoCoMo"):
            read_locomo(data)
    with pytest.raises(DataNotFoundError):
        read_locomo(data.parent / "none")


def test_measures():
    """b is second and d is not found: recall 0 of 2 at 1, 1 of 2 at 3; a gain of 1/log2(3) of 1 + 1/log2(3)."""
    assert [recall_at("abc", {"b", "d"}, k) for k in (1, 3)] == [0, 0.5]
    assert ndcg_at("abc", {"b", "d"}, 3) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))
    assert ndcg_at("ab", {"a", "b"}, 2) == recall_at("ab", {"a", "b"}, 2) == 1


def test_the_command_line_ends_with_recall(data, tmp_path, capsys):
    contenders = ["--contenders", "ours", "bm25", "embedder", "fusion"]
    report = main(["--config=locomo", "--data", str(data), *contenders, "--result", str(tmp_path / "r.json"), "--json"])
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert list(line["recall"]) == ["ours", "ours_minilm", "bm25", "embedder", "fusion", "minilm", "mem0", "langmem"]
    assert line["recall"]["minilm"] is line["recall"]["mem0"] is line["recall"]["langmem"] is None
    assert line["recall"]["ours"] == {"1": 0.6667, "5": 1.0, "10": 1.0, "20": 1.0}
    assert all(set(row) == {"1", "5", "10", "20"} for row in line["recall"].values() if row)
    assert report["costs"]["ours"]["turns_kept"] == report["turns"] == 8  # one said three times, too
    assert json.loads((tmp_path / "r.json").read_text())["costs"] == line["costs"]
    assert "8 of 8 turns are kept" in LOCOMO.table(report)


@pytest.mark.parametrize("name", ["mem0", "langmem"])
def test_a_baseline_answers_or_is_left_out(data, name, capsys):
    """Eight turns, so that the first ten have all that is wanted."""
    report = LOCOMO.evaluate(DialoguesConfig(str(data), ("embedder", name)))
    recall = LOCOMO.line(report)["recall"]
    if importlib.util.find_spec(name) is None:
        assert recall[name] is None
        assert 'pip install -e ".[baselines]"' in capsys.readouterr().out
    else:
        assert recall[name]["10"] == recall["embedder"]["10"] == 1


def test_it_needs_its_data(monkeypatch, tmp_path):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    for benchmark, name in ((LOCOMO, "locomo"), (BEAM, "beam")):
        with pytest.raises(
            DataNotFoundError, match=rf"expected its dialogues in \$EMBODIED_MEM_DATA/{name}, or --data"
        ):
            benchmark.evaluate(DialoguesConfig())

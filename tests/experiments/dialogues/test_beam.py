"""BEAM's files as published, with a dialogue written here: what is read, recall, differences to BM25."""

from __future__ import annotations

import json
import tarfile

import pytest

from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.evaluation.benchmark import EpisodeResult, episodes_data
from embodied_mem.evaluation.evaluate import main
from experiments.dialogues.benchmark import BEAM, against
from experiments.dialogues.dialogues import read_beam

SAID = [
    [
        ("user", "My sister Nora keeps bees on the roof.", "May-02-2023"),
        ("assistant", "How many hives are there?", None),
    ],
    [("user", "Four hives. I paint them green.", None), ("assistant", "Green is a good colour.", None)],
    [("user", "The violin lesson is on Tuesday.", "June-11-2023"), ("assistant", "I will note it.", None)],
    [("user", "The violin lesson is on Friday now.", None), ("assistant", "Noted, Friday.", None)],
]
ASKED = {
    "abstention": [{"question": "Who repairs the car?"}],
    "event_ordering": [{"question": "What did I say of hives, in order?", "source_chat_ids": [0, [2, 3]]}],
    "knowledge_update": [
        {"question": "When is the violin lesson?", "source_chat_ids": {"original_info": [4], "updated_info": [6, 99]}},
        {"question": "When is the exam?", "source_chat_ids": {"original_info": [98], "updated_info": [99]}},
    ],
}


@pytest.fixture
def data(tmp_path):
    """The folder `chats/100K`: dialogue 2 is cut to its first batch, 10 has no question with evidence."""
    root = tmp_path / "chats" / "100K"
    for number in (1, 2, 10):
        messages = iter(
            [
                {"role": who, "id": i, "time_anchor": when, "content": text}
                for i, (who, text, when) in enumerate(m for turn in SAID for m in turn)
            ]
        )
        turns = [list(pair) for pair in zip(messages, messages)]
        batches = [{"batch_number": n, "turns": turns[2 * n : 2 * n + 2], "time_anchor": None} for n in (0, 1)]
        (root / f"{number}/probing_questions").mkdir(parents=True)
        (root / f"{number}/chat.json").write_text(json.dumps(batches))
        asked = {"abstention": ASKED["abstention"]} if number == 10 else ASKED
        (root / f"{number}/probing_questions/probing_questions.json").write_text(json.dumps(asked))
        if number == 2:
            (root / "2/chat_trunecated.json").write_text(json.dumps(batches[:1]))
    return root


def test_dialogues_are_read(data):
    first, cut, unasked = dialogues = read_beam(data)
    assert [dialogue.name for dialogue in dialogues] == ["100K/1", "100K/2", "100K/10"]
    assert [turn.id for turn in first.turns] == list("01234567")
    assert first.turns[0][1:] == ("user", "May-02-2023", "My sister Nora keeps bees on the roof.")
    assert [turn.when for turn in first.turns] == ["May-02-2023", "", "", "", "June-11-2023", "", "", ""]
    asked = [(question.category, set(question.evidence)) for question in first.questions]
    assert asked == [("event ordering", {"0", "2", "3"}), ("knowledge update", {"4", "6"})]
    assert len(cut.turns) == 4
    assert [question.category for question in cut.questions] == ["event ordering"]
    assert unasked.questions == ()


def test_an_archive_is_read_as_its_folder_is(data, tmp_path):
    packed = tmp_path / "packed"
    packed.mkdir()
    with tarfile.open(packed / "beam.tar.xz", "w:xz") as archive:
        archive.add(data, "chats/100K")
    assert read_beam(packed) == read_beam(packed / "beam.tar.xz") == read_beam(data.parent.parent) == read_beam(data)


def test_other_files_are_refused(data, tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "none.tar.xz", tmp_path / "empty"):
        with pytest.raises(DataNotFoundError):
            read_beam(path)
    (tmp_path / "bad.tar").write_text("no archive")
    with pytest.raises(GameFileError, match="expected an archive"):
        read_beam(tmp_path / "bad.tar")
    for text in ("{}", "[1]", "x", '[{"turns": [[{"id": 1}]]}]'):
        (data / "1/chat.json").write_text(text)
        with pytest.raises(GameFileError, match=r"100K/1: expected chat.json with batches"):
            read_beam(data)


def test_the_command_line_ends_with_recall(data, tmp_path, capsys, monkeypatch):
    """Of hives one of three is found, as the only one with the word; of the lesson both. At 1: 1/3, 1/2 and 1/3."""
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed/beam").symlink_to(data)
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path / "installed"))
    result = tmp_path / "r.json"
    report = main(["--config=beam", "--contenders", "ours", "bm25", "--result", str(result), "--json"])
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert line["recall"]["bm25"] == {"1": 0.3889, "5": 0.5555, "10": 0.5555, "20": 0.5555}
    assert all(found >= 0.5555 for depth, found in line["recall"]["ours"].items() if depth != "1")
    assert line["recall"]["mem0"] is None
    assert line["minus_bm25"]["bm25"] is None
    assert set(line["minus_bm25"]["ours"]) == {"recall_1", "recall_5", "recall_10", "recall_20", "ndcg"}
    assert report["costs"]["ours"]["turns_kept"] == report["turns"] == 8 + 4 + 8
    assert json.loads(result.read_text())["world"] == "beam"
    assert "| knowledge update | 1 | bm25 | 50.0 | 100.0 |" in BEAM.table(report)


def test_differences_count_dialogues():
    """+1 in the mean of a's three questions, -0.5 in b's only one: 0.25, between the two."""
    found = {("a", 0): (1, 0), ("a", 1): (1, 0), ("a", 2): (1, 0), ("b", 0): (0, 0.5)}
    rows = [
        EpisodeResult(name, f"{group}/{n}", False, 0, 0, "kind", group=group, more={"recall_10": shares[side]})
        for (group, n), shares in found.items()
        for side, name in enumerate(("ours", "bm25"))
    ]
    report = episodes_data("beam", rows)
    assert against(report) == {
        ("ours", ""): {"recall_10": (0.25, -0.5, 1)},
        ("ours", "kind"): {"recall_10": (0.25, -0.5, 1)},
    }
    assert against(episodes_data("beam", [row for row in rows if row.agent == "ours"])) == {}

"""A robot that only sees, in a drawn home, against an OpenAI-compatible server that knows the pictures."""

from __future__ import annotations

import json
import pathlib

import pytest

from embodied_mem.language import OpenAIChatModel
from embodied_mem.memory import LifelongMemory, Scope
from embodied_mem.viewer.terminal import memory_data
from experiments.analyses.camera_robot import DrawnHome, SceneServer, main, play

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _local(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def played(folder, **options):
    home = DrawnHome()
    server = SceneServer(home)
    try:
        return play(OpenAIChatModel(server.url, "drawn-home"), home, folder, **options)
    finally:
        server.close()


def test_it_ends_with_the_facts_and_the_answers_of_the_committed_result(tmp_path):
    main(["--result", str(tmp_path / "now.json")])
    kept = json.loads((ROOT / "experiments/results/camera_robot.json").read_text())
    now = json.loads((tmp_path / "now.json").read_text())
    measured = ("facts", "facts_right", "wrong", "missing", "rows", "steps", "ended", "views", "unusable")
    assert {name: now[name] for name in measured} == {name: kept[name] for name in measured}
    assert (now["wrong"], now["missing"], now["sighted_right"]) == ([], [], now["questions"])


def test_without_the_perceiver_nothing_is_known(tmp_path):
    blind = played(tmp_path, is_blind=True)
    assert (blind["facts"], blind["sighted_right"]) == (0, 0)


def test_without_the_word_of_the_model_open_relations_stay(tmp_path, monkeypatch):
    view = SceneServer.view
    monkeypatch.setattr(SceneServer, "view", lambda self, question: view(self, question).replace('"ended"', '"over"'))
    wrong = [tuple(fact) for fact in played(tmp_path)["wrong"]]
    assert ("agent", "next to", "counter") in wrong


def test_its_pictures_are_in_the_records_and_in_the_page(tmp_path):
    played(tmp_path)
    with LifelongMemory.open(tmp_path, Scope(robot="camera"), read_only=True) as memory:
        banana = memory.sightings("banana")[0]
        assert (banana.relation, banana.receptacle) == ("in", "oven")
        data = memory_data(memory)
    pictures = [url for row in data["entries"] for url in row.get("pictures", ())]
    assert len(set(pictures)) >= 6
    assert all(url.startswith("data:image/png;base64,") for url in pictures)

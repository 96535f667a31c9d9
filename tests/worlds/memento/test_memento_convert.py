"""MEMENTO's episodes and PARTNR's tables become the folder that the world reads; what no file says is said."""

from __future__ import annotations

import csv
import json

import pytest

from embodied_mem import cli
from embodied_mem.envs.data_files import Originals
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.worlds.memento.conversion.convert import convert
from embodied_mem.worlds.memento.data import STAGES, load_captions, load_tasks


def _tables(folder, captions):
    """As PARTNR's metadata (category by handle) and a table of captions."""
    folder.mkdir(parents=True)
    with open(folder / "object_categories_filtered.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "clean_category", "notes"])
        rows.writerows([template, entry["category"].replace("_", " "), ""] for template, entry in captions.items())
    with open(folder / "captions.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["handle", "caption"])
        rows.writerows([template, entry.get("caption") or ""] for template, entry in captions.items())


def test_the_folder_at_hand_is_made_of_its_originals(memento_data, tmp_path, capsys):
    captions = json.loads((memento_data / "captions.json").read_text())
    _tables(tmp_path / "metadata", captions)
    target = tmp_path / "made"
    sources = [str(memento_data / "episodes"), str(tmp_path / "metadata")]
    assert cli.main(["data", "memento", "--from", *sources, "--to", str(target)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "memory_acquisition_stage: 144 episodes" in said
    assert "Not in public files: scenes.json" in said
    (target / "scenes.json").write_bytes((memento_data / "scenes.json").read_bytes())
    theirs = {row[0]: row for row in load_captions(memento_data)}
    for row in load_captions(target):
        assert row == theirs[row[0]]
    for stage in STAGES:
        for mine, other in zip(load_tasks(stage, target), load_tasks(stage, memento_data), strict=True):
            assert (mine.name, mine.task) == (other.name, other.task)
    said = " ".join(convert(Originals([*sources, memento_data]), tmp_path / "made"))
    assert "8 houses of" in said


def test_what_is_missing_or_malformed_is_named(memento_data, tmp_path):
    source, target = tmp_path / "source", tmp_path / "made"
    source.mkdir()
    target.mkdir()
    with pytest.raises(DataNotFoundError, match=r"no episodes in .*: expected memory_acquisition_stage\.json\.gz"):
        convert(Originals([source]), target)
    path = source / "memory_acquisition_stage.json"
    episode = {"scene_id": "1", "name_to_receptacle": {"cup_a_:0000": "table|0"}}
    path.write_text(json.dumps({"episodes": [episode]}))
    with pytest.raises(DataNotFoundError, match=r"no category for 1 of 1 objects, e\.g\. cup_a: expected tables"):
        convert(Originals([source]), target)
    path.write_text(json.dumps({"episodes": [episode, {"scene_id": "1"}]}))
    with pytest.raises(GameFileError, match=r"stage\.json: episodes\[1\]: KeyError"):
        convert(Originals([source]), target)

"""Files made from the originals equal those at hand; what is no original is refused with its place."""

from __future__ import annotations

import gzip
import json
import pickle

import pytest
from eb_habitat_home import episode, official_pickle

from embodied_mem import cli
from embodied_mem.envs.data_files import Originals, read_object
from embodied_mem.errors import DataNotFoundError, GameFileError
from embodied_mem.worlds.eb_habitat.conversion.convert import asset_categories, convert
from embodied_mem.worlds.eb_habitat.data import load_records, load_tasks

SETS = """---
category_groups:
  "all_cats":
    included:
      - "ball"

object_sets:
  # Must be a 1-1 mapping.
  - name: "CLUTTER_OBJECTS"
    excluded_substrings: []
    included_substrings:
      - "013_apple"
  - name: "toy airplane"
    excluded_substrings:
      - "072-x"
    included_substrings:
      - "072-a_toy_airplane"
      #- "072-b_toy_airplane"
  # - name: "fork"
  #   included_substrings:
  #     - "030_fork"
  - name: "apple"
    included_substrings:
      - "013_apple"

receptacle_sets:
  - name: "all_receps"
    included_substrings:
      - "receptacle_aabb"
"""


def _sets(categories):
    rows = "".join(
        f'  - name: "{kind}"\n    included_substrings:\n      - "{asset}"\n' for asset, kind in categories.items()
    )
    return f"object_sets:\n{rows}"


def test_categories_are_read_from_the_sets_of_objects(tmp_path):
    (tmp_path / "dataset.yaml").write_text(SETS)
    assert asset_categories(tmp_path / "dataset.yaml") == {"072-a_toy_airplane": "toy airplane", "013_apple": "apple"}
    (tmp_path / "dataset.yaml").write_text(SETS.replace('"072-a_toy_airplane"', '"013_apple"'))
    with pytest.raises(GameFileError, match=r"dataset.yaml:24: '013_apple' is in the sets 'toy airplane' and 'apple'"):
        asset_categories(tmp_path / "dataset.yaml")
    with pytest.raises(DataNotFoundError, match=r"no episodes in .*: expected base\.pickle"):
        convert(Originals([tmp_path]), tmp_path)


@pytest.mark.parametrize("subset", ["base", "train_validation"])
def test_converted_pickles_equal_the_files_at_hand(eb_habitat_data, tmp_path, subset):
    categories = read_object(eb_habitat_data / "domain.json.xz")["asset_to_category"]
    source, target = tmp_path / "repository/datasets", tmp_path / "made"
    source.mkdir(parents=True)
    target.mkdir()
    (source / f"{subset}.pickle").write_bytes(official_pickle(load_records(subset, eb_habitat_data), categories))
    (source / "dataset.yaml").write_text(_sets(categories))
    said = convert(Originals([tmp_path / "repository"]), target)
    assert said[0].startswith(f"{subset}: ")
    assert any(line.startswith("not in these folders: ") for line in said)
    assert read_object(target / "domain.json")["asset_to_category"] == categories
    for mine, theirs in zip(load_tasks(subset, target), load_tasks(subset, eb_habitat_data), strict=True):
        assert (mine.name, mine.task, mine.goal) == (theirs.name, theirs.task, theirs.goal)


def test_boxes_equal_the_files_at_hand_to_a_millimetre(eb_habitat_data, tmp_path):
    """The boxes at hand were made of unrounded places, so their last digit differs."""
    categories = read_object(eb_habitat_data / "domain.json.xz")["asset_to_category"]
    for subset in ("base", "common_sense", "long_horizon", "train_validation"):
        (tmp_path / f"{subset}.pickle").write_bytes(official_pickle(load_records(subset, eb_habitat_data), categories))
    (tmp_path / "dataset.yaml").write_text(_sets(categories))
    (tmp_path / "made").mkdir()
    convert(Originals([tmp_path]), tmp_path / "made")
    mine, theirs = (
        read_object(path)["scenes"] for path in (tmp_path / "made/scenes.json", eb_habitat_data / "scenes.json.xz")
    )
    assert mine.keys() == theirs.keys()
    for scene, entry in theirs.items():
        boxes = mine[scene]["receptacle_boxes_from_objects"]
        assert boxes.keys() == entry["receptacle_boxes_from_objects"].keys()
        for name, box in entry["receptacle_boxes_from_objects"].items():
            assert boxes[name]["n"] == box["n"]
            for corner in ("min", "max", "centre"):
                assert boxes[name][corner] == pytest.approx(box[corner], abs=0.0011)


def test_episodes_as_json_give_what_the_pickle_gives(tmp_path, capsys):
    """The dataset class of the original writes both; habitat-lab's own episodes are refused."""
    assets = {"013_apple": "apple", "065-a_cups": "cup"}
    source = episode() | {"subgoals": [["holding(013_apple_:0000)"]], "source_episode_id": "0", "start_preds": []}
    source["scene_id"] = "scenes/flat.scene_instance.json"
    handles = ("013_apple_:0000", "065-a_cups_:0000", "065-a_cups_:0001")
    for place, handle in zip(source["objects"], handles, strict=True):
        place["handle"] = handle
    content = pickle.loads(official_pickle([source], assets))
    names, entry = content["idx_to_name"], content["all_eps"][0]
    entry["rigid_objs"] = [[names[n], content["all_transforms"][t].tolist()] for n, t in entry["rigid_objs"]]
    entry["name_to_receptacle"] = {names[k]: names[v] for k, v in entry["name_to_receptacle"]}
    entry["ao_states"] = {names[k]: {"2": 0.0} for k in entry["ao_states"]}
    entry["markers"] = [{"name": names[marker[0]], "type": "x", "params": {}} for marker in entry["markers"]]
    for folder in ("pickle", "json", "made_pickle"):
        (tmp_path / folder).mkdir()
    for folder in ("pickle", "json"):
        (tmp_path / folder / "dataset.yaml").write_text(_sets(assets))
    (tmp_path / "pickle/base.pickle").write_bytes(official_pickle([source], assets))
    (tmp_path / "json/base.json.gz").write_bytes(gzip.compress(json.dumps({"episodes": [entry]}).encode()))
    convert(Originals([tmp_path / "pickle"]), tmp_path / "made_pickle")
    assert cli.main(["data", "eb_habitat", "--from", str(tmp_path / "json"), "--to", str(tmp_path / "made_json")]) == 0
    assert "base: 1 episodes" in capsys.readouterr().out
    assert load_records("base", tmp_path / "made_json") == load_records("base", tmp_path / "made_pickle")
    del entry["goal_preds"]
    (tmp_path / "json/base.json.gz").write_bytes(gzip.compress(json.dumps({"episodes": [entry]}).encode()))
    with pytest.raises(GameFileError, match=r"base.json.gz: episodes\[0\]: expected an episode of Language Rearr"):
        convert(Originals([tmp_path / "json"]), tmp_path / "made_json")

"""Generated episodes and variants: official structure, solvable, different words; no data needed but a small house."""

import json

import memento_house
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.memento import generator as generator
from embodied_mem.worlds.memento.data import load_records, load_tasks, related_ids, tasks_of


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return memento_house.write_household(tmp_path_factory.mktemp("house"))


@pytest.fixture(scope="module")
def stages(root):
    return generator.generate(root, 18, seed=4)


def test_the_same_seed_gives_the_same_episodes_and_another_one_others(root, stages):
    assert generator.generate(root, 18, seed=4) == stages
    assert generator.generate(root, 18, seed=5) != stages


def test_pairs_share_house_and_goal_and_name_each_other(stages):
    for first, second in zip(stages["acquisition"], stages["single"]):
        assert related_ids(second) == (first["episode_id"],)
        assert related_ids(first) == (second["episode_id"],)
        for key in ("scene_id", "rigid_objs", "name_to_receptacle", "evaluation_propositions"):
            assert first[key] == second[key]
        assert first["instruction"] != second["instruction"]
        assert first["metadata"]["memory"] in first["instruction"]
        assert first["metadata"]["memory"] not in second["instruction"]


def test_kinds_and_subtypes_are_the_benchmarks(stages):
    found = {(r["metadata"]["episode_type"], r["metadata"]["subtype"]) for r in stages["acquisition"]}
    semantics = {("object_semantics", name) for name in ("history", "preference", "ownership", "group")}
    assert found <= semantics | {("user_pattern", "preference"), ("user_pattern", "routine")}
    assert len({kind for kind, _ in found}) == 2


def test_targets_of_object_semantics_have_distractors_that_look_different(stages):
    record = next(r for r in stages["acquisition"] if r["metadata"]["episode_type"] == "object_semantics")
    targets = {target["id"] for target in record["metadata"]["target_objects"]}
    categories = {target["category"] for target in record["metadata"]["target_objects"]}
    others = {handle.rpartition("_:")[0] for handle in record["name_to_receptacle"]} - targets
    assert {name[:-1].lower() for name in others} & categories


def test_every_episode_is_won_by_its_plan_and_not_by_doing_nothing(root, stages):
    for records in stages.values():
        for task in tasks_of(records, root):
            plan = generator.solution(task)
            assert plan is not None
            assert len(plan) <= 40
            env = generator.Env(task, 0)
            env.step("Done[]")
            assert not env.won


def test_the_written_folder_reads_back(root, stages, tmp_path):
    generator.write(stages, root, tmp_path)
    for stage, records in stages.items():
        assert load_records(stage, tmp_path) == json.loads(json.dumps(records))
        assert [task.name for task in load_tasks(stage, tmp_path)] == [r["episode_id"] for r in records]


def test_the_command_writes_and_refuses_its_own_source(root, tmp_path, capsys):
    houses = tmp_path / "houses"  # without any episode
    houses.mkdir()
    for name in ("scenes.json", "captions.json"):
        (houses / name).write_bytes((root / name).read_bytes())
    generator.main(["--data", str(houses), "--out", str(tmp_path / "new"), "--num_episodes", "3"])
    assert "3 acquisition, 3 single, 0 joint" in capsys.readouterr().out
    with pytest.raises(InvalidInputError, match="another folder than the data's"):
        generator.main(["--data", str(root), "--out", str(root)])
    with pytest.raises(InvalidInputError, match="num_episodes: expected >= 1"):
        generator.generate(root, 0)

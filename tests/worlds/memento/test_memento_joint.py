"""Joint entries: the official ones are what `joint_record` makes of their parts; triples; refusals."""

import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.memento.data import load_captions, load_records, related_ids, tasks_of
from embodied_mem.worlds.memento.joint_tasks import joint_record, triples, unclear

COMPARED = (
    "instruction",
    "rigid_objs",
    "name_to_receptacle",
    "evaluation_propositions",
    "evaluation_proposition_dependencies",
    "evaluation_constraints",
)


@pytest.fixture(scope="module")
def singles(memento_data):
    return {related_ids(record)[0]: record for record in load_records("single", memento_data)}


def test_the_official_joint_entries_are_reproduced(memento_data, singles):
    records = load_records("joint", memento_data)
    assert len(records) == 24
    for record in records:
        parts = [singles[number] for number in related_ids(record)]
        kinds = {part["metadata"]["episode_type"] for part in parts}
        word = "After that" if len(kinds) > 1 else "Then" if kinds == {"object_semantics"} else "Additionally"
        made = joint_record(parts, record["episode_id"], [word])
        assert {key: made[key] for key in COMPARED} == {key: record[key] for key in COMPARED}


def test_triples_load_and_depend_on_three_memories_each(memento_data, singles):
    categories = {template: category for template, category, _ in load_captions(memento_data)}
    records = triples(list(singles.values()), categories, per_scene=2, seed=1)
    assert len(records) == 16
    assert records == triples(list(singles.values()), categories, per_scene=2, seed=1)
    for record, task in zip(records, tasks_of(records, memento_data)):
        assert task.task == record["instruction"]
        assert len(set(related_ids(record))) == 3
        parts = [singles[number] for number in related_ids(record)]
        assert not unclear(parts, categories)
        assert all(part["instruction"][1:].strip() in record["instruction"] for part in parts)
        assert len(record["evaluation_propositions"]) == sum(len(part["evaluation_propositions"]) for part in parts)


def test_parts_of_two_houses_or_with_one_object_are_refused(singles):
    first, *others = singles.values()
    stranger = next(record for record in others if record["scene_id"] != first["scene_id"])
    with pytest.raises(InvalidInputError, match="got 2 of 2 scenes"):
        joint_record([first, stranger], "1")
    with pytest.raises(InvalidInputError, match="in two of them"):
        joint_record([first, first], "1")
    with pytest.raises(InvalidInputError, match="got 1 of 1"):
        joint_record([first], "1")
    own = first["name_to_receptacle"].keys()
    of_house = [record for record in others if record["scene_id"] == first["scene_id"]]
    other = next(record for record in of_house if not own & record["name_to_receptacle"].keys())
    strange = {**other, "evaluation_constraints": [{"type": "NewConstraint", "args": {"limit": 3}}]}
    with pytest.raises(InvalidInputError, match="got NewConstraint with limit"):
        joint_record([first, strange], "1")


def test_a_pattern_is_unclear_when_another_part_brings_an_object_of_its_category():
    def part(kind, handle):
        args = {"object_handles": [handle], "receptacle_handles": ["bed"]}
        goal = [{"function_name": "is_on_top", "args": args}]
        return {
            "metadata": {"episode_type": kind},
            "name_to_receptacle": {handle: "x|y"},
            "evaluation_propositions": goal,
        }

    categories = {"A": "cup", "B": "cup", "C": "vase"}
    assert unclear([part("user_pattern", "A_:0000"), part("object_semantics", "B_:0000")], categories)
    assert not unclear([part("user_pattern", "A_:0000"), part("object_semantics", "C_:0000")], categories)
    assert not unclear([part("object_semantics", "A_:0000"), part("object_semantics", "B_:0000")], categories)

"""Variants of generated instructions: other words or another place, and the goal that goes with it."""

import memento_house
import pytest

from embodied_mem.worlds.memento import generator as generator
from embodied_mem.worlds.memento.data import load_scenes
from experiments.solvers.memento.variants import elsewhere, indirect


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return memento_house.write_household(tmp_path_factory.mktemp("house"))


@pytest.fixture(scope="module")
def stages(root):
    return generator.generate(root, 18, seed=4)


def test_an_indirect_instruction_says_it_otherwise_and_keeps_the_goal():
    record = {"instruction": "Could you set up my tea break?", "metadata": {}, "evaluation_propositions": [1]}
    changed = indirect(record)
    assert changed["instruction"] == "Could you get things ready the usual way? It is time for my tea break."
    assert changed["evaluation_propositions"] == [1]
    assert indirect({"instruction": "Bring the red cup."}) is None


def test_elsewhere_names_a_new_place_and_its_goal_is_that_place(root, stages):
    scene = load_scenes(root)["small"]
    pairs = [(r, elsewhere(r, scene)) for r in stages["single"]]
    changed = [(old, new) for old, new in pairs if new is not None]
    assert changed
    assert all(old["metadata"]["episode_type"] == "user_pattern" for old, _ in changed)
    for old, new in changed:
        assert new["instruction"].rstrip("?.").endswith("this time")
        before, after = (
            {handle for p in r["evaluation_propositions"] for handle in p["args"].get("receptacle_handles", [])}
            for r in (old, new)
        )
        assert after
        assert not before & after
        piece = next(p for p in scene["furniture"] if p["sim_handle"] in after)
        assert piece["type"].replace("_", " ") in new["instruction"]

"""EB-Habitat's training side as a world of a run: nothing of it is scored, its words are read, its tasks can be won."""

from __future__ import annotations

import dataclasses

import pytest

from embodied_mem.training.tasks import make_tasks, teach_bank
from embodied_mem.worlds.eb_habitat import data as eb_habitat_data
from experiments.configs import load
from experiments.solvers.eb_habitat.generator import PER_LAYOUT, episodes_of, training_records
from experiments.solvers.eb_habitat.instruction import understand
from experiments.solvers.eb_habitat.text_adapter import goal_sentence, training_sides
from experiments.solvers.errands import Errands, Move, render_errands


@pytest.fixture
def config(eb_habitat_data, monkeypatch):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(eb_habitat_data.parent))
    small = load("eb_habitat")
    world = dataclasses.replace(small.world, num_train=36, num_valid=2)
    return dataclasses.replace(small, world=world, evaluation=dataclasses.replace(small.evaluation, batch_size=2))


def layouts(tasks) -> set[str]:
    return {task.name.partition("+")[0] for task in tasks}


def test_no_layout_is_on_two_sides_and_none_is_scored(config):
    train, held_out = training_sides()
    assert (len(train), len(held_out)) == (737, 63)  # as docs/training.md has it
    assert (len(layouts(train)), len(layouts(held_out))) == (82, 7)
    assert not layouts(train) & layouts(held_out)
    records = {record["id"]: record for record in eb_habitat_data.load_records("train_validation")}

    def placed(record) -> frozenset:
        return frozenset((thing["handle"], *thing["pos"]) for thing in record["objects"])

    used = {(records[name]["scene"], placed(records[name])) for name in layouts([*train, *held_out])}
    for subset in ("base", "common_sense", "long_horizon"):
        assert not used & {(r["scene"], placed(r)) for r in eb_habitat_data.load_records(subset)}
    assert not any(task.satisfied_at_start for task in (*train, *held_out))


def test_what_was_made_is_understood(config):
    """Instruction and goal come from one draw, so the sentence must say what the goal's leaves do."""
    names = {
        "Tbl1": "blacktable", "Tbl2": "browntable", "TvStnd1": "tvstand", "sink": "sink",
        "counter_right": "rightcounter", "counter_left": "leftcounter", "Sofa": "sofa", "Chr1": "chair",
        "refrigerator": "fridge", "drawer_left": "leftdrawer", "drawer_right": "rightdrawer",
    }  # fmt: skip
    made = [e for e in episodes_of(training_records(), PER_LAYOUT) if "+" in e["id"]]
    for made_episode in made:
        goal = made_episode["goal"]
        moves = []
        for variable, leaf in zip(goal["vars"], goal["args"]):
            place = next(spoken for part, spoken in names.items() if part in leaf["args"][1])
            thing = variable["category"].replace(" ", "")
            moves.append(Move(thing, place, all=goal["quantifier"] == "FORALL"))
        said = goal_sentence(understand(made_episode["instruction"]))
        without_source = [part.partition(" from ")[0] for part in said.rstrip(".").split(", then ")]
        assert ", then ".join(without_source) + "." == render_errands(Errands(tuple(moves)))
    assert len({e["goal"]["quantifier"] for e in made}) == 2


def test_the_teacher_wins_and_tasks_of_one_layout_are_one_home(config):
    tasks = make_tasks(config)
    assert (tasks.num_train, tasks.num_valid, tasks.valid.max_steps) == (36, 2, 30)
    bank = teach_bank(config, tasks=tasks)
    assert len(bank) == 36
    texts, info = tasks.train.reset(options={"task_indices": [*range(36), *[0] * 28]})
    assert len(set(info["task_id"][:36])) == len(layouts(training_sides()[0][:36]))
    own = info["task_id"][0]
    found = bank.retrieve(info["goal"][0], k=36, context=texts[0], exclude_task_ids=(own,))
    assert found
    assert own not in {experience.episode.task_id for experience in found}

"""Every expert plan, as actions of EB-ALFRED, reaches its goal; and the lists of actions are as long as the paper's."""

from __future__ import annotations

import json

import pytest

from embodied_mem.worlds.eb_alfred import env as eb_alfred
from embodied_mem.worlds.eb_alfred.expert import expert_actions


def _trials(root):
    catalog = eb_alfred.load_catalog(root)
    for trial in catalog.trials:
        path = sorted((root / "json_2.1.0" / trial / "pp").glob("ann_*.json"))[0]
        content = path.read_bytes()
        yield eb_alfred.Task.from_text(content, str(path), catalog, trial, trial, "Do it."), json.loads(content)


@pytest.mark.parametrize("reach", ["group", "geometry"])
def test_the_experts_plans_reach_every_goal(eb_alfred_data, reach):
    lost, longest, count = [], 0, 0
    for task, annotation in _trials(eb_alfred_data):
        count += 1
        env = eb_alfred.Env(task, reach=reach, max_invalid=1)
        before = env.progress
        for action in expert_actions(task, annotation):
            env.step(action)  # changes nothing once the goal holds: some plans go on to close a cabinet
        longest = max(longest, env.num_steps)
        if not env.won or env.num_invalid or before == 1 or task.satisfied_at_start:
            lost.append((task.trial, env.feedback, env.progress))
    assert lost == []
    assert count >= 313
    assert longest <= eb_alfred.MAX_STEPS


@pytest.mark.parametrize(
    ("subset", "fewest", "most"), [("base", 171, 298), ("common_sense", 172, 301), ("long_horizon", 198, 303)]
)
def test_the_lists_of_actions_are_as_long_as_in_the_original(eb_alfred_data, subset, fewest, most):
    tasks = eb_alfred.load_tasks(subset, eb_alfred_data)
    counts = [len(task.actions) for task in tasks]
    assert len(tasks) == 50
    assert (min(counts), max(counts)) == (fewest, most)
    for task in tasks:
        assert len({*task.actions}) == len(task.actions)
        assert task.actions[0] == "find a Cart"
        assert task.actions[80] == "pick up the KeyChain"
        assert task.actions[133:137] == (
            "put down the object in hand",
            "drop the object in hand",
            "open the Safe",
            "close the Safe",
        )
        assert task.actions[149] == "turn on the Microwave"
        assert task.actions[157] == "slice the Potato"

"""Clauses of EB-ALFRED's instructions: conditions, what is forbidden, looks; one branch alone is played."""

from __future__ import annotations

import pytest

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.rollout import rollout
from experiments.solvers.eb_alfred.instruction import Goal, understand
from tests.worlds.eb_alfred.eb_alfred_scene import told

A, B = ("Apple", "CounterTop"), ("Mug", "Sink")


def short(goal: Goal | None) -> object:
    """Return the likeliest reading of a goal, or a tuple of the condition and two such."""
    if goal is None:
        return None
    if goal.condition is not None:
        state = goal.condition
        what = "open" if state.is_door else state.things[0] if state.things else "anything"
        return what, "".join(state.places[:1]), state.holds, short(goal.then), short(goal.otherwise)
    return goal.objects[0], goal.places[0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "If the fridge is open, put an apple on the counter, otherwise put a mug in the sink.",
            ("open", "Fridge", True, A, B),
        ),
        ("Put an apple on the counter if the fridge is closed.", ("open", "Fridge", False, A, None)),
        (
            "If there is a plate in the cabinet, put an apple on the counter. If not, put a mug in the sink.",
            ("Plate", "Cabinet", True, A, B),
        ),
        (
            "If there's no plate on the counter, put an apple on it, else put a mug in the sink.",
            ("Plate", "CounterTop", False, A, B),
        ),
        (
            "If you find an apple in the fridge, place it on the counter; otherwise put a mug in the sink.",
            ("Apple", "Fridge", True, A, B),
        ),
        (
            "Check whether the sink is empty. If it is, put a mug in it, if not, put an apple on the counter.",
            ("anything", "Sink", False, B, A),
        ),
        ("Put a mug in the sink unless the microwave is open.", ("open", "Microwave", False, B, None)),
        ("Put an apple on the counter, but don't put it in the fridge.", A),
        ("Do not put the apple in the fridge; put it on the counter.", A),
        ("Put an apple on the counter without opening the microwave.", A),
        ("Leave the mug where it is and put an apple on the counter.", A),
        ("Put an apple rather than a mug on the counter.", A),
        ("Place the mug in the sink instead of the fridge.", B),
        ("Bring a fruit, but not a tomato, to the counter.", A),
        ("Put a crunchy sweet fruit on the counter.", A),
        ("Put something round and sweet on the counter.", A),
        ("Put a round red vegetable on the counter.", ("Tomato", "CounterTop")),
        ("Put the green leafy vegetable on the counter.", ("Lettuce", "CounterTop")),
        ("Put a sharp metal utensil in the sink.", ("Knife", "Sink")),
        ("Put a clean red mug in the sink.", B),
        ("Don't forget to put an apple on the counter.", A),
    ],
)
def test_a_clause_is_understood(text, wanted):
    assert short(understand(text)) == wanted


def test_what_is_forbidden_is_not_done_to_a_thing():
    assert understand("Put an apple on the counter, but don't heat it.").change == ""
    assert not understand("Put an apple in the sink without slicing it.").sliced
    assert understand("Put both mugs in the sink.").count == 2
    assert understand("Put all of the books on the desk.").count == 2


CONDITIONS = {
    "the fridge is closed": True,
    "the fridge is open": False,
    "there is a plate in the cabinet": True,
    "there is no mug on the counter": False,
    "the phone is on the counter": True,
    "you find an apple in the microwave": False,
    "the microwave is empty": True,
    "there is a spoon": True,
    "there is a toilet paper in the fridge": False,
}
FORMS = [
    "If {c}, put a phone in the trash, otherwise put a mug in the sink.",
    "If {c} put a phone in the trash. Otherwise put a mug in the sink.",
    "Put a phone in the trash if {c}; if not, put a mug in the sink.",
    "Unless {c}, put a mug in the sink; otherwise put a phone in the trash.",
    "Check if {c}. If so, throw a phone in the trash. If not, put a mug in the sink.",
]


def actions_of(text: str, **goal: str) -> tuple[bool, list[str]]:
    """Return whether a task of the kitchen is won by an agent that ends it itself, and what it did."""
    task = told(text, "pick_and_place_simple", **goal)
    world = envs.make("eb_alfred", tasks=[task], num_envs=1, ends_when_won=False)
    agent = PlannerCriticAgent.for_world("eb_alfred", PlannerCriticConfig(retries=False, long_term=False))
    [found] = rollout(world, [agent], [[0]], lists_actions=True)
    return found.won, found.record.actions


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("form", FORMS)
def test_the_right_branch_alone_is_carried_out(form, condition):
    phone = {"object_target": "CellPhone", "parent_target": "GarbageCan"}
    mug = {"object_target": "Mug", "parent_target": "SinkBasin"}
    won, actions = actions_of(form.format(c=condition), **(phone if CONDITIONS[condition] else mug))
    assert won, actions
    assert sum(action.startswith("pick up") for action in actions) == 1

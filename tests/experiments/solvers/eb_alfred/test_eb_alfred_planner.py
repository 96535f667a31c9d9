"""EB-ALFRED's planner-critic: what instructions ask for, what views tell memory, tasks won in a kitchen of our own."""

from __future__ import annotations

import pytest

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import ABLATIONS, PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.rollout import rollout
from experiments.solvers.eb_alfred.agent import home_of, sentences
from experiments.solvers.eb_alfred.instruction import understand
from tests.worlds.eb_alfred.eb_alfred_scene import TASKS, kitchen_task, told


def agent(config: PlannerCriticConfig | None = None, memory=None) -> PlannerCriticAgent:
    """Return an agent for EB-ALFRED."""
    return PlannerCriticAgent.for_world("eb_alfred", config, memory)


def outcome(task, config: PlannerCriticConfig | None = None, player: PlannerCriticAgent | None = None):
    """Return how one task ends."""
    world = envs.make("eb_alfred", tasks=[task], num_envs=1)
    [found] = rollout(world, [player or agent(config)], [[0]], lists_actions=True)
    return found


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("Put a book from the shelf on the bed.", {"objects": "Book", "places": "Bed"}),
        ("Move the book on the shelf to the bed.", {"objects": "Book", "places": "Bed"}),
        ("Put two mugs in the sink.", {"objects": "Mug", "places": "Sink", "count": 2}),
        ("Look at a vase under the lamp.", {"objects": "Vase", "lamps": "DeskLamp", "places": ""}),
        ("Put a bowl with a fork in it on the desk.", {"objects": "Fork", "carriers": "Bowl", "places": "Desk"}),
        ("Put a rinsed cloth in the tub.", {"objects": "Cloth", "places": "Bathtub", "change": "clean"}),
        ("Microwaved egg goes in the fridge.", {"objects": "Egg", "places": "Fridge", "change": "heat"}),
        ("Place a chilled tomato slice on the table next to the sink.", {"change": "cool", "sliced": True}),
        ("Place a chilled tomato slice on the table next to the sink.", {"places": "DiningTable"}),
        ("Cut a potato with a knife, put a piece in the bin.", {"objects": "Potato", "sliced": True, "count": 1}),
        ("Throw away the empty roll.", {"objects": "ToiletPaper", "places": "GarbageCan"}),
        ("Put toilet paper in the drawer.", {"objects": "ToiletPaper", "places": "Drawer"}),
        ("Put something that unclogs a drain under the sink.", {"objects": "Plunger", "places": "Cabinet"}),
    ],
)
def test_an_instruction_is_understood(text, slots):
    goal = understand(text)
    for name, wanted in slots.items():
        found = getattr(goal, name)
        assert (found[0] if found else "") == wanted if isinstance(found, tuple) else found == wanted, (name, goal)


def test_what_names_no_thing_is_not_understood():
    assert understand("Get ready for the day.") is None


def test_views_become_sentences():
    text = (
        "Last action is invalid. Mug is not visible because it is in Cabinet_2. Go there to pick the object instead.\n"
        "In view: Cabinet_2 (closed); Fridge (open) with Egg, Bowl with Fork; CounterTop; DeskLamp (off); Apple.\n"
        "In hand: Pan with Knife."
    )
    assert sentences(text).split("\n") == [
        "The Cabinet_2 is closed.",
        "The Fridge is open. In it, you see a Egg, a Bowl, a Fork.",
        "On the CounterTop, you see nothing.",
        "Looking quickly around you, you see a Cabinet_2, a Fridge, a CounterTop, a DeskLamp, a Apple.",
        "You are carrying: a Pan.",
        "This is a normal Bowl. In it, you see a Fork.",
        "This is a normal Pan. In it, you see a Knife.",
        "This is a normal Cabinet_2. In it, you see a Mug.",
    ]


def test_a_home_is_known_by_its_fixed_places():
    one = ["find a Mug", "find a Cabinet_2", "find a Mug_2", "open the Cabinet_2"]
    assert home_of(one) == home_of([*one, "find a Mug_3"]) != home_of([*one, "find a Cabinet_3"])


@pytest.mark.parametrize("name", TASKS)
def test_every_kind_of_task_is_won(name):
    found = outcome(kitchen_task(name))
    assert found.won, found.record.actions
    assert found.record.steps <= 20


def test_the_critic_sees_that_a_thing_is_hidden():
    full, blind = (outcome(kitchen_task("hidden"), ABLATIONS[name]) for name in ("full", "no_critic"))
    assert full.won
    assert full.record.objections[0][1] == "Plate is not in view"
    assert blind.record.steps > full.record.steps
    assert blind.record.vetoes == 0


def test_without_spatial_memory_the_last_answers_are_left():
    found = outcome(kitchen_task("place"), PlannerCriticConfig(spatial=False, long_term=False))
    assert found.won


def test_another_reading_is_tried_when_the_first_one_does_not_end_the_task():
    # Beside something: the counter is tried first, then other places; the task wants the fridge, which nobody says.
    task = told(
        "Put the phone near the soap.", "pick_and_place_simple", object_target="CellPhone", parent_target="Fridge"
    )
    found = outcome(task)
    assert not found.won
    assert "find a CounterTop" in found.record.actions


def test_without_retries_the_first_reading_is_carried_out_and_the_agent_ends_the_task():
    task = told(
        "Put the phone near the soap.", "pick_and_place_simple", object_target="CellPhone", parent_target="Fridge"
    )
    first = outcome(task, PlannerCriticConfig(retries=False))
    actions = first.record.actions
    assert (first.won, first.cut, actions[-1]) == (False, False, "put down the object in hand")
    assert actions == outcome(task).record.actions[: len(actions)]


@pytest.mark.parametrize("name", TASKS)
def test_an_agent_that_is_not_told_of_the_end_stops_with_the_goal_reached(name):
    world = envs.make("eb_alfred", tasks=[kitchen_task(name)], num_envs=1, ends_when_won=False)
    [found] = rollout(world, [agent(PlannerCriticConfig(retries=False))], [[0]], lists_actions=True)
    assert found.won, found.record.actions
    assert found.record.actions == outcome(kitchen_task(name)).record.actions
    [late] = rollout(world, [agent()], [[0]], lists_actions=True)
    assert late.cut  # who retries goes on for ever


def test_what_is_not_understood_is_ended_at_once():
    task = told("Hum a song.", "pick_and_place_simple", object_target="CellPhone", parent_target="Fridge")
    found = outcome(task, PlannerCriticConfig(retries=False))
    assert (found.won, found.actions) == (False, ())


def test_a_remembered_home_decides_between_kinds():
    player = agent()
    outcome(kitchen_task("hidden"), player=player)
    assert {"plate", "cabinet"} <= player.memory.spatial.kinds(player.memory.place)
    again = outcome(told("Put a dish in the trash.", "pick_and_place_simple", object_target="Plate"), player=player)
    assert again.won
    first = outcome(told("Put a dish in the trash.", "pick_and_place_simple", object_target="Plate"))
    assert again.record.steps <= first.record.steps


def test_what_the_home_was_never_seen_to_hold_does_not_outweigh_the_words():
    # The home is known from one task with an apple; it says nothing of plates, which the words name first.
    player = agent()
    outcome(kitchen_task("place"), player=player)
    task = told("Put a plate in the trash.", "pick_and_place_simple", object_target="Plate")
    kinds = player.memory.spatial.kinds(player.memory.place)
    assert {"mug"} == kinds & {"mug", "plate"}
    player.reset("Put a plate in the trash.", "", {"admissible_commands": task.actions})
    assert str(player.plan.why).startswith("Reading(object='Plate'")

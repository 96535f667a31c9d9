"""Clauses of EB-Habitat's instructions: conditions, what is forbidden, counts, looks; one branch alone is played."""

from __future__ import annotations

import itertools
import json

import pytest

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.rollout import rollout
from embodied_mem.worlds.eb_habitat.data import Scenes, read_tasks
from experiments.solvers.eb_habitat.instruction import Goal, understand
from tests.experiments.solvers.eb_habitat.eb_habitat_layout import BLACK, BROWN, LAYOUT, LEFT_DRAWER, RIGHT, TV
from tests.worlds.eb_habitat.eb_habitat_home import PARTS, SINK, SOFA, TABLE, episode, placed, quantified

COUCH, FRIDGE, BASIN, LEFT = "sofa", "refrigerator", "sink in the kitchen", "left counter in the kitchen"
A, B = [("apple", COUCH)], [("pear", BASIN)]


def short(goal: Goal) -> object:
    """Return a goal as a list of what is done, or a tuple of the condition and two such."""
    if goal.condition is not None and goal.then is not None and goal.otherwise is not None:
        state = goal.condition
        what = "open" if state.is_door else state.things[0] if state.things else "anything"
        return what, "".join(state.places[:1]), state.holds, short(goal.then), short(goal.otherwise)
    found: list[object] = []
    for move in goal.moves:
        more = [("all",)] if move.all else [(move.count,)] if move.count > 1 else []
        more += [("from", move.source)] if move.source else []
        more += [("avoid", *move.avoid)] if move.avoid else []
        found.append((move.kinds[0], "".join(move.places[:1]), *itertools.chain(*more)))
    found += [(verb, place) for verb in ("go", "close", "open") if (place := getattr(goal, verb))]
    return found + [("spare", *goal.shunned)] * bool(goal.shunned)


CLAUSES = [
    (
        "If the fridge is open, move an apple to the sofa, otherwise move a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "If the fridge is open move an apple to the sofa otherwise move a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "If the refrigerator door is closed, then put an apple on the couch. Otherwise, put a pear in the sink.",
        ("open", FRIDGE, False, A, B),
    ),
    ("Move an apple to the sofa if the fridge is open; else move a pear to the sink.", ("open", FRIDGE, True, A, B)),
    (
        "Move an apple to the sofa if the fridge is open, or else bring a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "When the fridge is open, bring an apple to the sofa; when it is closed, bring a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "If the fridge is open, bring an apple to the sofa. If it's closed, bring a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "If the fridge is open, bring an apple to the sofa. If it is not, bring a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "If the fridge is open, bring an apple to the sofa, but if the fridge is shut, bring a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "Check whether the fridge is open. If so, bring an apple to the sofa. If not, bring a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "See if the fridge is open; if it is, take an apple to the sofa, if not, take a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "Is the fridge open? If yes, take an apple to the sofa. Otherwise take a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "Should the fridge be open, place an apple on the sofa; otherwise, place a pear in the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "Unless the fridge is closed, place an apple on the sofa. Otherwise place a pear in the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "Place a pear in the sink unless the fridge is open, in which case place an apple on the sofa.",
        ("open", FRIDGE, False, B, A),
    ),
    (
        "Provided that the fridge isn't closed, deliver an apple to the sofa, else deliver a pear to the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    ("Put a pear in the sink. If the fridge is open, put an apple on the sofa instead.", ("open", FRIDGE, True, A, B)),
    ("Put an apple on the sofa, but only if the fridge is open.", ("open", FRIDGE, True, A, [])),
    ("Put an apple on the sofa unless the fridge is open.", ("open", FRIDGE, False, A, [])),
    ("If the fridge is open, close it.", ("open", FRIDGE, True, [("close", FRIDGE)], [])),
    (
        "If the fridge is open, close it; otherwise put an apple on the sofa.",
        ("open", FRIDGE, True, [("close", FRIDGE)], A),
    ),
    (
        "If the fridge is open, put an apple in it, otherwise put it on the sofa.",
        ("open", FRIDGE, True, [("apple", FRIDGE)], A),
    ),
    (
        "Put an apple in the fridge if it is open, otherwise on the sofa.",
        ("open", FRIDGE, True, [("apple", FRIDGE)], A),
    ),
    (
        "If the fridge is already open, grab an apple and place it inside, otherwise place the apple on the sofa.",
        ("open", FRIDGE, True, [("apple", FRIDGE)], A),
    ),
    (
        "If there is a ball on the sofa, move an apple to the sofa, otherwise move a pear to the sink.",
        ("ball", COUCH, True, A, B),
    ),
    (
        "If there's no ball on the sofa, move an apple to the sofa, otherwise move a pear to the sink.",
        ("ball", COUCH, False, A, B),
    ),
    (
        "If you find an apple on the TV stand, bring it to the sofa; if there isn't one, bring a pear to the sink.",
        ("apple", TV, True, A, B),
    ),
    (
        "If an apple is on the TV stand, bring it to the sofa. If there is none, bring a pear to the sink.",
        ("apple", TV, True, A, B),
    ),
    (
        "If the TV stand has an apple on it, carry it to the sofa, otherwise go to the sink.",
        ("apple", TV, True, A, [("go", BASIN)]),
    ),
    (
        "In case the sofa holds a ball, move an apple there. Otherwise move a pear to the sink.",
        ("ball", COUCH, True, A, B),
    ),
    ("If the sofa is empty, move an apple to it, otherwise move a pear to the sink.", ("anything", COUCH, False, A, B)),
    (
        "If there is nothing on the sofa, move an apple there, else move a pear to the sink.",
        ("anything", COUCH, False, A, B),
    ),
    (
        "If something is on the sofa, move a pear to the sink, else move an apple to the sofa.",
        ("anything", COUCH, True, B, A),
    ),
    ("If the ball is not on the sofa, move an apple to the sofa.", ("ball", COUCH, False, A, [])),
    (
        "If you see a ball, take it to the sink; otherwise take an apple to the sofa.",
        ("ball", "", True, [("ball", BASIN)], A),
    ),
    (
        "If the left drawer is open, close it, and if it is closed, open it.",
        ("open", LEFT_DRAWER, True, [("close", LEFT_DRAWER)], [("open", LEFT_DRAWER)]),
    ),
    ("If the fridge is open, do nothing. Otherwise bring an apple to the sofa.", ("open", FRIDGE, True, [], A)),
    (
        "I don't know if the fridge is open. If it is, put an apple on the sofa, and if not, put a pear in the sink.",
        ("open", FRIDGE, True, A, B),
    ),
    (
        "If the table to the left of the sofa has a ball, move an apple to the sofa, otherwise a pear to the sink.",
        ("ball", BLACK, True, A, B),
    ),
    ("If you are hungry, bring an apple to the sofa.", A),
    ("If you are in the mood for it, bring an apple to the sofa, otherwise bring a pear to the sink.", A),
    ("Bring an apple to the sofa when you have time.", A),
    ("Put an apple on the sofa, but don't put it in the sink.", A),
    ("Don't put the apple in the sink; put it on the sofa.", A),
    ("Do not put an apple in the sink but on the sofa.", A),
    ("Put an apple on the sofa without opening the fridge.", [("apple", COUCH), ("spare", FRIDGE)]),
    ("Leave the pear where it is and put an apple on the sofa.", A),
    ("Put an apple on the sofa and leave the pear alone.", A),
    ("Bring an apple, not a pear, to the sofa.", A),
    ("Bring an apple rather than a pear to the sofa.", A),
    ("Bring an apple to the sofa instead of the sink.", A),
    ("Instead of a pear, bring an apple to the sofa.", A),
    ("Bring an apple to the sofa. The pear should stay where it is.", A),
    ("Take an apple to the sofa; never mind the pear.", A),
    ("Take an apple, but not the one in the sink, to the sofa.", [("apple", COUCH, "avoid", BASIN)]),
    ("Put an apple on a table, but not on the black one.", [("apple", BROWN)]),
    ("Put an apple on any table except the brown one.", [("apple", BLACK)]),
    ("Put an apple on a counter other than the right counter.", [("apple", LEFT)]),
    ("Avoid the sink: put an apple on the sofa.", A),
    ("Make sure not to move the pear. Bring an apple to the sofa.", A),
    ("Don't forget to bring an apple to the sofa.", A),
    ("I don't want a pear, I want an apple on the sofa.", A),
    ("There is a pear in the sink. Bring an apple to the sofa.", A),
    ("I love pears. The pear is on the TV stand. Bring an apple to the sofa.", A),
    ("The lemon on the sofa is mine. Move a pear to the sink.", B),
    ("Put both cups on the sofa.", [("cup", COUCH, 2)]),
    ("Put two cups on the sofa.", [("cup", COUCH, 2)]),
    ("Put all of the cups on the sofa.", [("cup", COUCH, "all")]),
    ("Move every cup to the sofa.", [("cup", COUCH, "all")]),
    ("Move each of the cups to the sofa.", [("cup", COUCH, "all")]),
    ("Place both a cup and an apple on the sofa.", [("cup", COUCH), ("apple", COUCH)]),
    ("Place an apple and a cup, both of them, on the sofa.", [("apple", COUCH), ("cup", COUCH)]),
    ("Move one of the cups to the sofa.", [("cup", COUCH)]),
    ("Place three balls on the sofa.", [("ball", COUCH, 3)]),
    ("Put a cup on each table.", [("cup", BLACK), ("cup", BROWN)]),
    ("Put a cup on each of the two tables.", [("cup", BLACK), ("cup", BROWN)]),
    ("Put a cup on the sofa and another one in the sink.", [("cup", COUCH), ("cup", BASIN)]),
    ("Bring the scissors to the sofa.", [("scissors", COUCH)]),
    ("Move the cups to the sofa.", [("cup", COUCH, "all")]),
    ("Bring something round and sweet to the sofa.", [("peach", COUCH)]),
    ("Bring a round, orange fruit to the sofa.", [("orange", COUCH)]),
    ("Bring a yellow curved fruit to the sofa.", [("banana", COUCH)]),
    ("Bring a small red fruit to the sofa.", [("strawberry", COUCH)]),
    ("Bring a clean red cup to the sofa.", [("cup", COUCH)]),
    ("Bring something that is yellow and sour to the sofa.", [("lemon", COUCH)]),
    ("Bring the object which is purple and juicy to the sofa.", [("plum", COUCH)]),
    ("Bring a metal tool and a small red fruit to the sofa.", [("hammer", COUCH), ("strawberry", COUCH)]),
    ("Bring a sharp metal utensil to the sofa.", [("knife", COUCH)]),
    ("Bring a soft and squishy object from the sink to the sofa.", [("sponge", COUCH, "from", BASIN)]),
    ("Put an apple in the fridge and close it.", [("apple", FRIDGE), ("close", FRIDGE)]),
    ("Put an apple on the sofa, then go to the sink.", [("apple", COUCH), ("go", BASIN)]),
]

SIDES = [
    ("Put the cup on the counter that has the sink on its right.", LEFT),
    ("Put the cup on the counter that has the sink on its left.", RIGHT),
    ("Put the cup on the counter with the sink to its left.", RIGHT),
    ("Put the cup on the counter whose left side touches the sink.", RIGHT),
    ("Put the cup on the counter whose right neighbour is the sink.", LEFT),
    ("Put the cup on the counter that the sink is to the right of.", LEFT),
    ("Put the cup on the counter which the sink is left of.", RIGHT),
    ("Put the cup on the counter where the sink is on the left.", RIGHT),
    ("Put the cup on the counter where the sink is on the left side.", RIGHT),
    ("Put the cup on the counter having the sink at its right.", LEFT),
    ("Put the cup on the counter from which the sink is to the left.", RIGHT),
    ("Put the cup on the counter to the left of which is the sink.", RIGHT),
    ("Put the cup on the counter, to whose right is the sink.", LEFT),
    ("Put the cup on the counter that lies to the sink's left.", LEFT),
    ("Place the cup on the left of the sink.", LEFT),
    ("Place the cup left of the sink.", LEFT),
    ("Place the cup on the surface to the sink's right.", RIGHT),
    ("Put the cup on the counter; the one with the sink on its right hand side.", LEFT),
    ("Put the cup on the counter, the sink being on its right.", LEFT),
    ("Put the cup on the table that has the sofa on the right.", BLACK),
    ("Put the cup on the table which has the sofa to the right of it.", BLACK),
    ("Put the cup on the table with the sofa right of it.", BLACK),
    ("Put the cup on the table with the TV stand standing to its left.", BROWN),
    ("Put the cup on the table the TV stand is to the left of.", BROWN),
    ("Put the cup on the table to the right of the TV stand.", BROWN),
    ("Put the cup on the table that is right of the TV stand.", BROWN),
    ("Put the cup on the table that you find when you look to the right of the TV stand.", BROWN),
    ("Carry the cup to the receptacle that has the sink on its left and the fridge on its right.", RIGHT),
    ("Carry the cup to the receptacle with the left counter on its left and the right counter on its right.", BASIN),
    ("Move the cup to the place between the two counters.", BASIN),
    ("Put the cup on the counter which is flanked by the sink and the fridge.", RIGHT),
    ("Put the cup on the piece of furniture that the black table is to the left of.", COUCH),
    ("Put the cup on the furniture that has the black table on its left.", COUCH),
    ("Move the cup to the place whose left neighbor is the right counter.", FRIDGE),
    ("Put the cup on the counter to the left side of the sink.", LEFT),
    ("Put the cup on the counter at the left of the sink.", LEFT),
    ("Put the cup on the left-hand neighbour of the sink.", LEFT),
    ("Put the cup on the counter, left of the sink.", LEFT),
    ("Put the cup on the counter (left of the sink).", LEFT),
    ("If you stand in front of the sink, the counter to its right is where the cup goes.", RIGHT),
    ("Put the cup on the counter with the fridge beside it.", RIGHT),
    ("Put the cup on the table with the sofa beside it.", BLACK),
    ("Put the cup on the table that has a sofa next to it.", BLACK),
    ("Put the cup on the table that has the TV stand next to it.", BROWN),
    ("Put the cup on the table that neighbours the sofa.", BLACK),
    ("Put the cup on the table the sofa is next to.", BLACK),
    ("Put the cup on the table near which the sofa stands.", BLACK),
    ("Put the cup on the table that the sofa is closest to.", BLACK),
    ("Put the cup on whichever table is closest to the sofa.", BLACK),
    ("Put the cup on whichever counter is nearer to the fridge.", RIGHT),
    ("Put the cup on the counter that is not beside the fridge.", LEFT),
    ("Put the cup on the table on the sofa's left.", BLACK),
    ("Take a cup to the object right of the black table.", COUCH),
    ("Take a cup to the black table's right neighbour.", COUCH),
    ("Move a cup from the table left of the sofa to the counter right of the sink.", RIGHT),
    ("Move a cup from the counter that has the sink on its right to the table that has the sofa on its right.", BLACK),
    ("Locate the receptacle to the right of the sink and put a cup there.", RIGHT),
    ("Find the table to the left of the sofa and leave a cup on it.", BLACK),
    ("There is a table to the left of the sofa; put a cup on it.", BLACK),
    ("The counter to the right of the sink needs a cup.", RIGHT),
    ("Looking at the sink, put the cup on the counter to the right.", RIGHT),
    ("Facing the sink, place the cup on the counter on your right.", RIGHT),
    ("Put the cup to the left of the sofa.", BLACK),
    ("Put the cup on what stands immediately left of the sofa.", BLACK),
    ("Put the cup on the sofa's left-hand table.", BLACK),
    ("Put the cup on the item to the sofa's left.", BLACK),
    ("Place the cup on the receptacle located on the right of the TV stand.", BROWN),
    ("Place a cup on the receptacle at the right-hand side of the TV stand.", BROWN),
    ("Put the cup on the receptacle that is to the left of the right counter.", BASIN),
    ("Put the cup in the receptacle right of the left counter.", BASIN),
    ("Put the cup into the receptacle to the right of the right counter.", FRIDGE),
]


@pytest.mark.parametrize(("text", "wanted"), CLAUSES)
def test_a_clause_is_understood(text, wanted):
    assert short(understand(text, LAYOUT)) == wanted


@pytest.mark.parametrize(("text", "place"), SIDES)
def test_a_place_is_found_from_either_side(text, place):
    goal = understand(text, LAYOUT)
    assert [move.places[0] for move in goal.moves] == [place]


CONDITIONS = {
    "the fridge is open": {"initial_articulated": dict.fromkeys(PARTS, "closed") | {PARTS[0]: "open"}},
    "the left drawer isn't closed": {"initial_articulated": dict.fromkeys(PARTS, "closed") | {PARTS[1]: "open"}},
    "there is a lemon on the black table": {"lemon_0": TABLE},
    "the sofa holds a lemon": {"lemon_0": SOFA},
    "you can see a lemon somewhere": {"lemon_0": SINK},
    "the sink is not empty": {"lemon_0": SINK},
}
"""Condition -> what makes it true in a home where it is not."""
FORMS = [
    "If {c}, move an apple to the sofa, otherwise move a cup to the TV stand.",
    "If {c} then bring an apple to the couch. If not, bring a cup to the TV stand.",
    "Place an apple on the sofa if {c}; else place a cup on the TV stand.",
    "Unless {c}, put a cup on the TV stand; otherwise put an apple on the sofa.",
    "Move a cup to the TV stand. If {c}, move an apple to the sofa instead.",
    "Check whether {c}. If so, take an apple to the sofa. Otherwise, take a cup to the TV stand.",
]
STAND = "receptacle_aabb_TvStnd1_Top1_frl_apartment_tvstand"


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("form", FORMS)
def test_the_right_branch_alone_is_carried_out(form, condition, holds):
    apple, cup = (
        quantified("EXISTS", {"X": "apple"}, placed("X", SOFA)),
        quantified("EXISTS", {"X": "cup"}, placed("X", STAND)),
    )
    done, left = (apple, cup) if holds else (cup, apple)
    goal = {"op": "AND", "args": [done, {"op": "NAND", "args": [left]}]}
    changes = CONDITIONS[condition] if holds else {}
    objects = {"apple_0": TABLE, "cup_0": TABLE} | {k: v for k, v in changes.items() if k == "lemon_0"}
    rest = {k: v for k, v in changes.items() if k != "lemon_0"}
    content = {"episodes": [episode(goal, objects, instruction=form.format(c=condition), **rest)]}
    tasks = list(read_tasks(json.dumps(content).encode(), "home.json", Scenes()))
    world = envs.make("eb_habitat", tasks=tasks, num_envs=1, ends_when_won=False)
    config = PlannerCriticConfig(retries=False, long_term=False)
    [found] = rollout(world, [PlannerCriticAgent.for_world("eb_habitat", config)], [[0]])
    assert found.won, found.record.actions


@pytest.mark.parametrize(
    "text", ["Bring me a cup.", "Fetch both cups.", "Bring two cups to the sofa.", "Put an apple on each table."]
)
@pytest.mark.parametrize("retries", [True, False])
def test_a_thing_is_not_moved_forever(text, retries):
    nowhere = quantified("FORALL", {"X": "cup"}, placed("X", STAND))
    tasks = list(
        read_tasks(json.dumps({"episodes": [episode(nowhere, instruction=text)]}).encode(), "home.json", Scenes())
    )
    world = envs.make("eb_habitat", tasks=tasks, num_envs=1, ends_when_won=False)
    agent = PlannerCriticAgent.for_world("eb_habitat", PlannerCriticConfig(retries=retries, long_term=False))
    [found] = rollout(world, [agent], [[0]])
    assert sum(action.startswith("pick up") for action in found.record.actions) <= (6 if retries else 2)

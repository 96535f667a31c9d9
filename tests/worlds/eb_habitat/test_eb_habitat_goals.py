"""Goal trees against a brute-force evaluation in Python: random trees, random places, in and out of the hand."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from eb_habitat_home import FRIDGE, PARTS, SINK, SOFA, TABLE, episode

from embodied_mem.worlds.eb_habitat.data import ACTIONS, Scenes, read_tasks
from embodied_mem.worlds.eb_habitat.env import Env

OBJECTS = ("apple_0", "cup_0", "cup_1", "cup_2", "lemon_0", "lemon_1")
NUM_TREES = 150
WHERE = (TABLE, SOFA, SINK)
DRAWERS = PARTS[1:]


def truth(node, state, bound=()):
    """The rule as it is stated: expand a quantified node over assignments of different objects, then look."""
    bound = dict(bound)
    if "pred" in node:
        name, words = node["pred"], [bound.get(word, word) for word in node["args"]]
        if name == "not_holding":
            return state["holding"] is None
        if name == "holding":
            return state["holding"] == words[0]
        if name == "on_top":
            return state["objects"][words[0]]["receptacle"] == words[1]
        if name == "in":
            return words[1] == "fridge_push_point" and state["objects"][words[0]]["receptacle"] == FRIDGE
        if name == "robot_at":
            return words[0] in state["near"]
        return state["open"][words[0]] == name.startswith("opened")
    if "quantifier" in node:
        pools = [[o for o in OBJECTS if o.startswith(var["category"])] for var in node["vars"]]
        plain = {key: node[key] for key in ("op", "args")}
        values = [
            truth(plain, state, (bound | dict(zip((var["name"] for var in node["vars"]), chosen))).items())
            for chosen in itertools.product(*pools)
            if len(set(chosen)) == len(chosen)
        ]
        return any(values) if node["quantifier"] == "EXISTS" else all(values)
    values = [truth(arg, state, bound.items()) for arg in node["args"]]
    return {"AND": all(values), "OR": any(values), "NAND": not all(values), "NOR": not any(values)}[node["op"]]


def random_literal(rng, names):
    thing = rng.choice((*names, *names, *OBJECTS))
    name, words = rng.choice(
        (
            ("not_holding", []),
            ("holding", [thing]),
            ("on_top", [thing, rng.choice((*WHERE, FRIDGE))]),
            ("in", [thing, rng.choice(PARTS)]),
            ("robot_at", [rng.choice((*WHERE, *PARTS))]),
            (rng.choice(("opened_fridge", "closed_fridge")), [PARTS[0]]),
            (rng.choice(("opened_cab", "closed_cab")), [rng.choice(DRAWERS)]),
        )
    )
    return {"pred": name, "args": words}


def random_goal(rng, names=(), depth=3):
    kind = rng.randrange(3) if depth else 0
    if kind == 0:
        return random_literal(rng, names)
    node = {"op": rng.choice(("AND", "OR", "NAND", "NOR"))}
    if kind == 2:
        chosen = rng.choice((["apple"], ["cup"], ["lemon"], ["cup", "cup"], ["lemon", "apple"], ["cup", "cup", "cup"]))
        new = [f"V{len(names) + k}" for k in range(len(chosen))]
        node["quantifier"] = rng.choice(("EXISTS", "FORALL"))
        node["vars"] = [{"name": name, "category": category} for name, category in zip(new, chosen)]
        names = (*names, *new)
    node["args"] = [random_goal(rng, names, depth - 1) for _ in range(rng.randint(1, 3))]
    return node


@pytest.mark.parametrize("seed", range(4))
def test_goal_trees_equal_brute_force(seed):
    rng = random.Random(seed)
    met = 0  # trees that became true at some time
    for _ in range(NUM_TREES):
        goal = random_goal(rng)
        places = dict(zip(OBJECTS, rng.choices(WHERE, k=len(OBJECTS))))
        articulated = dict.fromkeys(PARTS, "closed") | {PARTS[0]: rng.choice(("open", "closed"))}
        source = episode(goal, places, initial_articulated=articulated)
        task = read_tasks(json.dumps({"episodes": [source]}).encode(), "random", Scenes())[0]
        env = Env(task, max_invalid=100)
        assert env.won == task.satisfied_at_start == truth(goal, env.state()), goal
        for _ in range(15):
            if env.ended:
                break
            env.step(rng.choice(ACTIONS))
            assert env.won == truth(goal, env.state()), goal
        met += env.won
    assert NUM_TREES / 5 < met < NUM_TREES * 4 / 5


def test_different_variables_are_different_objects():
    """One cup on the sofa is not two; EXISTS over NAND means some object is not there, not none is there."""

    def won(goal, **places):
        objects = {"cup_0": SINK, "cup_1": SINK} | places
        task = read_tasks(json.dumps({"episodes": [episode(goal, objects)]}).encode(), "two", Scenes())[0]
        return task.satisfied_at_start

    def on_sofa(*names):
        return [{"pred": "on_top", "args": [name, SOFA]} for name in names]

    def goal(quantifier, op, *names):
        variables = [{"name": name, "category": "cup"} for name in names]
        return {"op": op, "quantifier": quantifier, "vars": variables, "args": on_sofa(*names)}

    assert not won(goal("EXISTS", "AND", "X", "Y"), cup_0=SOFA)
    assert won(goal("EXISTS", "AND", "X", "Y"), cup_0=SOFA, cup_1=SOFA)
    assert won(goal("EXISTS", "NAND", "X"), cup_0=SOFA)
    assert not won(goal("FORALL", "NAND", "X"), cup_0=SOFA)
    assert not won(goal("FORALL", "AND", "X"), cup_0=SOFA)

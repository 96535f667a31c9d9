"""Goal trees against a brute-force evaluation in Python: random trees, random places, in and out of the hand."""

from __future__ import annotations

import itertools
import json

import hypothesis.strategies as st
from eb_habitat_home import EMPTY_HAND, FRIDGE, PARTS, SINK, SOFA, TABLE, episode
from hypothesis import given, settings

from embodied_mem.envs.eb_habitat import Env
from embodied_mem.envs.eb_habitat_data import ACTIONS, Scenes, read_tasks

OBJECTS = ("apple_0", "cup_0", "cup_1", "cup_2", "lemon_0", "lemon_1")
CATEGORIES = ("apple", "cup", "lemon")
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


@st.composite
def goals(draw, names=(), depth=3):
    kind = draw(st.integers(0, 2)) if depth else 0
    thing = st.sampled_from((*names, *OBJECTS))
    if kind == 0:
        return draw(
            st.one_of(
                st.just(EMPTY_HAND),
                st.builds(lambda o: {"pred": "holding", "args": [o]}, thing),
                st.builds(lambda o, r: {"pred": "on_top", "args": [o, r]}, thing, st.sampled_from((*WHERE, FRIDGE))),
                st.builds(lambda o, p: {"pred": "in", "args": [o, p]}, thing, st.sampled_from(PARTS)),
                st.builds(lambda r: {"pred": "robot_at", "args": [r]}, st.sampled_from((*WHERE, *PARTS))),
                st.sampled_from([{"pred": f"{x}_fridge", "args": [PARTS[0]]} for x in ("opened", "closed")]),
                st.builds(lambda p: {"pred": "opened_cab", "args": [p]}, st.sampled_from(DRAWERS)),
            )
        )
    node = {"op": draw(st.sampled_from(("AND", "OR", "NAND", "NOR")))}
    if kind == 2:
        node["quantifier"] = draw(st.sampled_from(("EXISTS", "FORALL")))
        chosen = draw(st.lists(st.sampled_from(("apple", "cup", "cup", "lemon")), min_size=1, max_size=2))
        if chosen.count("apple") > 1:
            chosen = ["apple"]
        new = [f"V{len(names) + k}" for k in range(len(chosen))]
        node["vars"] = [{"name": name, "category": category} for name, category in zip(new, chosen)]
        names = (*names, *new)
    node["args"] = draw(st.lists(goals(names, depth - 1), min_size=1, max_size=3))
    return node


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    goal=goals(),
    places=st.lists(st.sampled_from(WHERE), min_size=len(OBJECTS), max_size=len(OBJECTS)),
    actions=st.lists(st.sampled_from(ACTIONS), max_size=25),
    fridge=st.sampled_from(("open", "closed")),
)
def test_goal_trees_equal_brute_force(goal, places, actions, fridge):
    articulated = dict.fromkeys(PARTS, "closed") | {PARTS[0]: fridge}
    source = episode({"op": "AND", "args": [goal]}, dict(zip(OBJECTS, places)), initial_articulated=articulated)
    task = read_tasks(json.dumps({"episodes": [source]}).encode(), "random", Scenes())[0]
    env = Env(task)
    assert env.won == task.satisfied_at_start == truth(goal, env.state())
    for action in actions:
        if env.ended:
            break
        env.step(action)
        assert env.won == truth(goal, env.state())


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

"""Our ALFWorld and the original, command by command: text, admissible commands and their order, score, won, done.

The sample takes three games of each task type, 40 commands each.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import random

import pytest

from embodied_mem.worlds.alfworld import env as alfworld
from experiments.analyses import alfworld_original

pytestmark = [pytest.mark.slow, pytest.mark.parity]

GAMES_PER_TYPE = 3
NUM_COMMANDS = 40
OLD_GRAMMAR_SHA256 = "9033ef2f998dae1884e325af584c9e56033e3c065357edef47ab499964911584"


def _games(alfworld_data: pathlib.Path, task_type: str, count: int) -> list[pathlib.Path]:
    games = sorted(alfworld_data.glob(f"*/{task_type}-*/*/{alfworld.GAME_FILE}"))
    return random.Random(f"parity {task_type}").sample(games, count)


@pytest.mark.parametrize("task_type", alfworld.TASK_TYPES)
def test_whole_games_agree(alfworld_data, task_type):
    with alfworld_original.memoised():
        for i, path in enumerate(_games(alfworld_data, task_type, GAMES_PER_TYPE)):
            share = (0.3, 0.0, 0.8)[i % 3]
            differences = alfworld_original.compare_game(path, NUM_COMMANDS, seed=i, expert_share=share)
            assert not differences, differences[0]


@pytest.mark.parametrize("task_type", alfworld.TASK_TYPES)
def test_whole_games_agree_in_the_wording_of_0_3(alfworld_data, task_type):
    with alfworld_original.memoised():
        for i, path in enumerate(_games(alfworld_data, task_type, 1)):
            differences = alfworld_original.compare_game(
                path, NUM_COMMANDS, seed=100 + i, grammar="0.3", expert_share=0.6
            )
            assert not differences, differences[0]


def _go_and_open(env: alfworld.Env, place: str) -> list[str]:
    commands = [f"go to {place}"] if f"go to {place}" in env.admissible_commands else []
    for command in [*commands, f"open {place}"]:
        env.step(command)
    receptacle = env.state()["receptacles"][place]
    return [*commands, *([f"open {place}"] if receptacle["openable"] else [])]


def _kitchen_script(path: pathlib.Path, treatments: tuple[str, ...]) -> list[str] | None:
    """Return commands that take, treat and examine a food through all its states; None where the kitchen cannot."""
    game = alfworld.Game.load(str(path))
    env = alfworld.Env(game)
    state = env.state()
    foods = [
        name
        for name, thing in state["objects"].items()
        if all(thing[flag] for flag in ("sliceable", "cleanable", "heatable", "coolable", "pickupable", "receptacles"))
    ]
    knives = [
        name for name, thing in state["objects"].items() if thing["type"].endswith("knifetype") and thing["receptacles"]
    ]
    tools = {"clean": "sinkbasintype", "heat": "microwavetype", "cool": "fridgetype"}
    if not foods or not knives:
        return None
    food, knife = foods[0], knives[0]
    script = []

    def do(command: str) -> None:
        assert env.step(command) != "Nothing happens.", command
        script.append(command)

    for treatment in treatments:
        if treatment == "slice":
            script += _go_and_open(env, state["objects"][knife]["receptacles"][0])
            do(f"take {knife} from {state['objects'][knife]['receptacles'][0]}")
            script += _go_and_open(env, state["objects"][food]["receptacles"][0])
            if f"slice {food} with {knife}" not in env.admissible_commands:
                return None
            do(f"slice {food} with {knife}")
            spare = next(name for name in game.receptacles if game.accepts(name, knife))
            script += _go_and_open(env, spare)
            do(f"move {knife} to {spare}")
            continue
        if food not in env.state()["holding"]:
            script += _go_and_open(env, state["objects"][food]["receptacles"][0])
            do(f"take {food} from {state['objects'][food]['receptacles'][0]}")
            do(f"examine {food}")
        place = next(name for name, thing in state["receptacles"].items() if thing["type"] == tools[treatment])
        script += _go_and_open(env, place)
        do(f"{treatment} {food} with {place}")
        do(f"examine {food}")
        do("inventory")
    return script


@pytest.mark.parametrize(
    "treatments",
    [
        ("slice", "clean", "heat", "cool"),
        ("slice", "heat", "cool", "clean"),
        ("clean", "cool", "heat"),
        ("heat", "cool"),
    ],
    ids="-".join,
)
def test_every_state_of_a_food_is_told_alike(alfworld_data, treatments):
    files = sorted(alfworld_data.glob("valid_seen/pick_[hc]*/*/game.tw-pddl"))
    path, script = next((path, script) for path in files if (script := _kitchen_script(path, treatments)))
    with alfworld_original.memoised():
        differences = alfworld_original.compare_game(path, len(script) + 8, seed=1, script=script)
    assert not differences, differences[0]


def test_memoising_changes_no_answer(alfworld_data):
    """The untouched original answers the same, on one whole game won by its walkthrough with detours."""
    path = _games(alfworld_data, "look_at_obj_in_light", 1)[0]
    differences = alfworld_original.compare_game(path, 25, seed=7, expert_share=0.7)
    assert not differences, differences[0]


def test_the_old_wording_is_that_of_release_0_3(alfworld_data):
    """The rewritten grammar is, byte by byte, the one that alfworld 0.3.2 and 0.3.5 ship (alfred.twl2)."""
    data = json.loads(next(alfworld_data.glob("valid_seen/*/*/game.tw-pddl")).read_text())
    grammar = alfworld_original.in_wording_of_0_3(data)["grammar"]
    task = grammar.split("Your task is to: ")[1].split('"')[0]
    grammar = grammar.replace(f"Your task is to: {task}", "Your task is to: UNKNOWN GOAL.")
    assert hashlib.sha256(grammar.strip().encode()).hexdigest() == OLD_GRAMMAR_SHA256


def test_the_package_grammar_and_domain_agree_too(alfworld_data, tmp_path):
    """A game written with the domain and grammar of the installed package (as a generator does) plays the same."""
    import alfworld as package

    data_folder = pathlib.Path(package.__file__).parent / "data"
    source = _games(alfworld_data, "pick_clean_then_place_in_recep", 1)[0]
    data = json.loads(source.read_text())
    task = data["grammar"].split("Your task is to: ")[1].split('"')[0]
    data["pddl_domain"] = (data_folder / "alfred.pddl").read_text()
    data["grammar"] = (data_folder / "alfred.twl2").read_text().replace("UNKNOWN GOAL.", task)
    path = tmp_path / "generated.tw-pddl"
    path.write_text(json.dumps(data))
    with alfworld_original.memoised():
        differences = alfworld_original.compare_game(path, NUM_COMMANDS, seed=3, expert_share=0.5)
    assert not differences, differences[0]
    assert alfworld_original.start_original(path).reset().feedback.endswith(f"Your task is to: {task}")

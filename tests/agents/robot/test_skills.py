"""Skills: their commands read back as what they were made of, whatever the world's wording."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embodied_mem.agents.planner_critic.agent import PlannerCriticConfig
from embodied_mem.agents.robot.skills import TASK_COMPLETE, Skill, checked_skills, read_command
from embodied_mem.errors import InvalidInputError
from embodied_mem.registry import load, names
from embodied_mem.worlds.alfworld.generator import generate

WORDS = st.sampled_from(["mug 1", "TV stand", "left drawer of the kitchen counter", "desk 12", "Cup_2"])


@pytest.mark.parametrize("world", names("skills"))
@given(data=st.data())
def test_a_command_reads_back(world, data):
    skills = load(world, "skills")(PlannerCriticConfig())
    skill = data.draw(st.sampled_from(checked_skills(skills)))
    arguments = {name: data.draw(WORDS) for name in skill.arguments}
    assert read_command(skills, skill.command(arguments)) == (skill.name, arguments)


def test_every_command_that_a_game_takes_is_one_of_its_skills():
    """But `help`, which does nothing."""
    for grammar in ("0.4", "0.3"):
        skills = load("alfworld", "skills")(PlannerCriticConfig(grammar=grammar))
        envs = load("alfworld", "env")
        games = [game.load() for game in generate(8, seed=1)]
        world = envs(tasks=games, num_envs=8, max_steps=40, grammar=grammar)
        _, info = world.reset()
        seen = set()
        for step in range(40):
            for row in info["admissible_commands"]:
                for command in row:
                    call = read_command(skills, command)
                    assert call is not None or command == "help", command
                    seen.add(call.skill if call else "")
            chosen = [row[(7 * step + i) % len(row)] for i, row in enumerate(info["admissible_commands"])]
            _, _, _, _, info = world.step(chosen)
        assert {"go_to", "open", "close", "take", "put", "examine", "inventory", "look"} <= seen


def test_without_a_wording_it_is_a_call():
    skill = Skill("put_down_to", ("thing", "place"), "Puts it there.", ("holding {thing}",))
    assert skill.command({"place": "oven", "thing": "banana"}) == "put_down_to(banana, oven)"
    assert skill.read("put_down_to(banana, oven)") == {"thing": "banana", "place": "oven"}
    assert skill.render() == "put_down_to(thing, place): Puts it there. Needs: holding thing."
    assert TASK_COMPLETE.command({}) == "task_complete()"


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: Skill("take", "thing"), "skill take: expected a tuple of arguments, got 'thing'"),
        (lambda: Skill("pick up"), "skill 'pick up': expected words as names, got 'pick up'"),
        (lambda: Skill("go", ("place", "place")), "arguments with names of their own"),
        (lambda: Skill("go", ("why",)), "none of them `skill` or `why`, got why"),
        (
            lambda: Skill("go", ("place",), wording="go there"),
            r"expected the arguments ['place'] in 'go there', got []",
        ),
        (lambda: Skill("go", (), "", ("at {place}",)), r"expected the arguments [] in 'at {place}', got ['place']"),
        (lambda: Skill("go", ("place",)).command({"to": "desk"}), "skill go: expected place, got to"),
        (lambda: checked_skills([]), "skills: expected at least one"),
        (lambda: checked_skills([Skill("go"), Skill("go")]), "each with a name of its own, got ['go', 'go']"),
    ],
)
def test_what_is_wrong_is_said(make, expected):
    with pytest.raises(InvalidInputError, match=re.escape(expected)):
        make()

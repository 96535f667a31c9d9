"""Agents of other papers by rules, on examples worked out by hand and through games."""

import dataclasses
import functools

import pytest
from chat_answers import Server, reply
from told_chat import ToldChat

from embodied_mem import envs
from embodied_mem.agents.rollout import rollout
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation import task_sequence
from embodied_mem.language import OpenAIChatModel
from embodied_mem.registry import load, names
from embodied_mem.worlds.alfworld.experts import ObservingExpert
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan
from experiments.baselines.cradle import SUMMARY_WORDS, Cradle
from experiments.baselines.memharness import NOTHING, MemHarness
from experiments.baselines.reflexion import Reflexion
from experiments.baselines.verl_agent import VerlAgent
from experiments.baselines.voyager import Voyager, fitted, opening, rooms_places

GOAL = "put some mug on shelf."
SHELF = "You arrive at shelf 1. On the shelf 1, you see a pen 1."
DESK = "You arrive at desk 1. On the desk 1, you see a mug 3, and a mug 2."


@functools.cache
def games():
    return tuple(game.load() for game in generate(6, seed=3, num_scenes=2, prove=False))


def world(max_steps=50, num_envs=1):
    return envs.make("alfworld", tasks=list(games()), num_envs=num_envs, seed=0, max_steps=max_steps)


def player():
    return ObservingExpert()


def test_reflexion_by_rules_wins_in_a_later_trial_what_it_lost_by_searching():
    long = max(rollout(world(), [Reflexion(player=player())], [list(range(6))]), key=lambda one: len(one.actions))
    agent = Reflexion(player=player())
    trials = [*rollout(world(len(long.actions) - 1), [agent], [[long.task] * 4])]
    assert long.won
    assert [one.won for one in sorted(trials, key=lambda one: one.position)] == [False, True, True, True]
    assert [len(said) for said in agent.reflections.values()] == [1]  # none on a trial that was won


def test_a_step_of_a_skill_gets_the_names_of_this_room():
    names = {}
    assert fitted("open desk 1", DESK, names) is None  # it shows what is in it already
    assert fitted("take mug 1 from desk 1", DESK, names) == "take mug 3 from desk 1"
    assert fitted("take mug 7 from desk 1", DESK, names) == "take mug 2 from desk 1"  # another one than the first
    assert fitted("heat mug 1 with microwave 1", "", names) == "heat mug 3 with microwave 1"
    assert fitted("move mug 7 to shelf 1", "", names) == "move mug 2 to shelf 1"
    assert fitted("take mug 1 from shelf 1", SHELF, {}) == ""  # the critic ends the try
    shut = "You arrive at fridge 1. The fridge 1 is closed."
    assert opening("move mug 3 to fridge 1", shut) == ["open fridge 1"]
    assert opening("cool mug 3 with fridge 1", shut) == opening("move mug 3 to shelf 1", shut) == []
    assert rooms_places("desk 2; bed 1") == {"desk 1", "desk 2", "bed 1"}


def test_voyager_learns_a_skill_once_and_carries_it_out():
    agent = Voyager(player())
    first, second, third = (rollout(world(), [agent], [[0]])[0] for _ in range(3))
    assert first.won
    assert agent.skills[0].steps[-1] == first.actions[-1]
    assert agent.skills[0].places <= rooms_places(agent._room)
    assert second.won
    assert second.actions == agent.skills[0].steps == third.actions  # the macro alone, without what was a detour
    assert len(agent.skills) == 1
    assert (agent.record.plans, agent.record.vetoes) == (1, 0)


def test_voyager_does_without_a_skill_that_does_not_fit():
    """The thing is not where the skill has it: the critic ends the try, and the player does the task."""
    agent = Voyager(player())
    rollout(world(), [agent], [[0]])
    [skill] = agent.skills.values()
    place = next(one for one in sorted(skill.places) if f"from {one}" not in " ".join(skill.steps))
    moved = tuple(step.replace(skill.steps[0].removeprefix("go to "), place) for step in skill.steps)
    agent.skills[0] = type(skill)(skill.description, skill.thing, skill.goal, moved)
    played = rollout(world(), [agent], [[0]])[0]
    assert played.won
    assert agent.record.vetoes == 1


def test_voyager_plays_short_goals_first():
    goals = ["put a hot egg in fridge.", "put a pen in desk.", "put some egg on desk."]
    assert Voyager.curriculum(goals) == [1, 2, 0]
    played = task_sequence.play(
        ["voyager"], lambda count: world(num_envs=count), lambda name: Voyager(player()), num_tasks=6, runs=1, lives=1
    )
    [outcomes] = played["voyager"]
    assert [one.task for one in outcomes] == [0, 1, 2, 3, 4, 5]  # told in order of the tasks
    assert sorted(one.position for one in outcomes) == [0, 1, 2, 3, 4, 5]
    assert [one.position for one in outcomes] != [0, 1, 2, 3, 4, 5]


def test_cradle_keeps_five_steps_a_summary_and_where_things_were():
    agent = Cradle(player())
    first = max(rollout(world(), [agent], [list(range(6))]), key=lambda one: len(one.actions))
    assert len(agent.recent) == 5
    assert len(agent.skills) >= 1
    again = rollout(world(), [agent], [[first.task]])[0]
    assert again.won
    assert len(again.actions) <= len(first.actions)
    known = [commands for part, commands in agent.skills if part == agent.part()]
    assert again.actions[: len(known[0])] == known[0]
    assert len(agent.summary.split()) <= SUMMARY_WORDS


def test_cradle_does_not_try_what_it_has_just_seen_to_be_empty():
    agent = Cradle(player())
    agent._goal, agent._room = GOAL, "desk 1; shelf 1"
    agent.recent.append(("go to shelf 1", SHELF))
    assert "no mug in shelf 1" in agent._told()
    assert "mug in desk 1" in agent._gathered(DESK)
    assert agent._gathered("Nothing happens.") == ""


@pytest.mark.parametrize("name", names("agents"))
def test_every_agent_plays(name):
    [played] = rollout(world(max_steps=3), [load("agents", name)(player=player())], [[1]])
    assert 1 <= len(played.actions) <= 3


def test_verl_agent_wins_by_a_served_model_that_is_told_what_is_possible():
    known = world()
    known.reset(options={"task_indices": [0]})
    way = shortest_plan(WorldState.from_env(known.env(0)))

    def thought(body):
        (message,) = body["messages"]
        step = message["content"].count("Now, at step") and int(
            message["content"].partition("at step ")[2].split(",")[0]
        )
        command = way[max(step, 1) - 1]
        assert f"'{command}'" in message["content"]  # possible now, not at the start alone
        return reply(f"<think>It is step {step}.</think>\n<action>{command}</action>")

    server = Server(thought)
    try:
        (played,) = rollout(world(), [VerlAgent(OpenAIChatModel(server.url, "told"))], [[0]])
    finally:
        server.close()
    assert played.won
    assert played.actions == tuple(way)
    texts = [body["messages"][0]["content"] for _, _, body in server.requests]
    assert "[Observation 2: " in texts[3]
    assert "[Observation 1: " not in texts[3]  # two steps


def test_a_reply_without_tags_is_no_command():
    (played,) = rollout(world(max_steps=1), [VerlAgent(ToldChat("look"))], [[0]])
    assert (played.actions, played.answers) == (("",), ("Nothing happens.",))


def test_memharness_asks_adapts_rejects_and_writes():
    look = "<think>I look.</think><action>look</action>"
    first = {"situation": "A mug is to be found.", "memory": "Look on desks first."}
    second = {"situation": "A plate is hot.", "memory": "Take it to the sink."}
    chat = ToldChat(
        look, {"memories": [first, second]},  # a first episode, without memories to ask
        "<memory_retrieve>where are  mugs</memory_retrieve>", "Go to the desk.", "<EMPTY>", look,
        {"memories": [first]},  # known
        "<memory_retrieve>plates</memory_retrieve>", "<EMPTY>", "<EMPTY>", look, "no JSON", "none again",
    )  # fmt: skip
    agent = MemHarness(chat)
    rollout(world(max_steps=1), [agent], [[0]])
    assert "<memory_retrieve>" not in chat.asked[0]
    assert [one.memory for one in agent.memories.values()] == ["Look on desks first.", "Take it to the sink."]
    (played,) = rollout(world(max_steps=1), [agent], [[1]])
    asked, adapted, _, acted = chat.asked[2:6]
    assert "<memory_retrieve> and </memory_retrieve>" in asked
    assert "Memory: Look on desks first." in adapted
    assert games()[0].task.partition("Your task is to: ")[2].strip(" .") in adapted  # the state it was learned in
    assert acted.endswith("<memory>\nGo to the desk.\n</memory>")
    assert played.actions == ("look",)
    assert len(agent.memories) == 2
    rollout(world(max_steps=1), [agent], [[2]])
    assert chat.asked[-3].endswith(f"<memory>\n{NOTHING}\n</memory>")
    assert not chat.answers
    assert len(agent.memories) == 2


def test_memharness_by_rules_wins_in_a_later_run_what_it_lost_by_searching():
    long = max(rollout(world(), [MemHarness(player=player())], [[*range(6)]]), key=lambda one: len(one.actions))
    agent = MemHarness(player=player())
    trials = rollout(world(len(long.actions) - 1), [agent], [[long.task] * 3])
    assert [one.won for one in sorted(trials, key=lambda one: one.position)] == [False, True, True]
    agent.memories = {key: dataclasses.replace(one, state="Another room.") for key, one in agent.memories.items()}
    (trial,) = rollout(world(len(long.actions) - 1), [agent], [[long.task]])
    assert not trial.won  # what was learned elsewhere is rejected


def test_each_needs_a_model_or_a_player():
    for kind in (Reflexion, VerlAgent, MemHarness):
        with pytest.raises(InvalidInputError, match=f"{kind.__name__}: .* both or neither"):
            kind()

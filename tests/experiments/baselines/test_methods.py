"""Memory methods of other papers on examples worked out by hand, and all of them through a game."""

import functools
import re
import types

import numpy as np
import pytest
from told_chat import ToldChat

from embodied_mem import envs
from embodied_mem.agents.deliveries import MethodDelivery, make_delivery
from embodied_mem.agents.method import make_method, row_name
from embodied_mem.agents.rollout import play, rollout
from embodied_mem.compiler.view import render_experiences, start_view
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.controls import settings_of
from embodied_mem.memory import Experiences
from embodied_mem.memory.bank import BankView
from embodied_mem.registry import names
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.generator import generate
from experiments.baselines.g_memory import first_neighbour_clusters
from experiments.baselines.method import clauses_of, facts_of, lines_for, tagged
from experiments.baselines.reflexion import Reflexion

KITCHEN = "You are in the middle of a room. Looking quickly around you, you see a fridge 1, and a shelf 2."
METHODS = names("methods")
HALL = "You are in the middle of a room. Looking quickly around you, you see a desk 1, and a shelf 1."


def found(thing, place, room=KITCHEN, won=True, number=0):
    """An episode in which a thing was taken from a place and put on shelf 1."""
    steps = (
        Step(room, f"go to {place}"),
        Step(f"You arrive at {place}. On the {place}, you see a {thing} 1.", f"take {thing} 1 from {place}"),
        Step(f"You pick up the {thing} 1 from the {place}.", "go to shelf 1"),
        Step("You arrive at shelf 1. On the shelf 1, you see nothing.", f"move {thing} 1 to shelf 1"),
    )
    last = f"You move the {thing} 1 to the shelf 1."
    return Episode(f"{thing}-{place}-{number}", f"put some {thing} on shelf.", steps, won, last)


def test_rules_say_what_was_where():
    assert clauses_of(found("mug", "fridge 1")) == ["mug was in fridge 1", "mug placed in shelf 1"]
    assert facts_of(found("mug", "desk 1", HALL))[0] == "mug was in desk 1 (room: desk 1; shelf 1)"
    known = [tagged("mug was in fridge 1", "fridge 1; shelf 2"), tagged("mug was in desk 1", "desk 1; shelf 1"), "a\nb"]
    assert lines_for(known, KITCHEN) == ["here: mug was in fridge 1", "elsewhere: mug was in desk 1", "a b"]


def test_mem0_1_by_rule_keeps_the_newest_place_of_a_room():
    method = make_method("mem0_1")
    for place, room in (("fridge 1", KITCHEN), ("fridge 1", KITCHEN), ("shelf 2", KITCHEN), ("desk 1", HALL)):
        method.observe(found("mug", place, room))
    places = [text for text in method.texts() if " was in " in text]
    assert places == ["mug was in shelf 2 (room: fridge 1; shelf 2)", "mug was in desk 1 (room: desk 1; shelf 1)"]
    assert "here: mug was in desk 1" in method.recall("put some mug on shelf.", HALL)


def test_a_mem_links_notes_and_changes_neighbours():
    about = {"keywords": ["mug"], "context": "a mug", "tags": ["kitchen"]}
    evolved = {"links": ["0", "9"], "tags": ["cups"], "neighbours": [{"id": "0", "context": "mugs", "tags": ["cups"]}]}
    chat = ToldChat(about, about, evolved, {"keywords": ["mug"]})
    method = make_method("a_mem", chat)
    method.observe(found("mug", "fridge 1"))
    method.observe(found("mug", "desk 1", HALL))
    first, second = method.notes.values()
    assert (first.context, first.tags, first.links) == ("mugs", ["cups"], [])
    assert (second.tags, second.links, method.evolutions) == (["cups"], [0], 1)
    assert len(method.recall("put some mug on shelf.", HALL)) == 2


def test_a_mem_searches_neighbours_by_what_they_said_until_the_index_is_rebuilt():
    about = {"keywords": ["mug"], "context": "a mug", "tags": ["kitchen"]}
    evolved = {"links": ["0"], "tags": [], "neighbours": [{"id": "0", "context": "zebra", "tags": ["zebra"]}]}
    for every, expected in ((100, "a mug"), (1, "zebra")):
        method = make_method("a_mem", ToldChat(about, about, evolved))
        method.REBUILD_EVERY = every
        method.observe(found("mug", "fridge 1"))
        method.observe(found("mug", "desk 1", HALL))
        assert expected in method.entries.index._texts[0]


def test_g_memory_gives_two_successes_and_one_failure():
    method = make_method("g_memory")
    for number, won in enumerate([True, True, True, False, False]):
        method.observe(found("mug", f"shelf {number + 1}", won=won, number=number))
    lines = [line for line in method.recall("put some mug on shelf.", KITCHEN) if line.startswith("here: ")]
    assert [line.split(";")[0] for line in lines] == [f"here: mug was in shelf {n}" for n in (1, 2, 4)]
    assert all(method.edges(n) == [m for m in range(5) if m != n] for n in range(5))  # equal tasks have similarity 1


def test_g_memory_revises_at_every_fifth_episode_and_gives_credit():
    method = make_method("g_memory")
    for number in range(4):
        method.observe(found("mug", "fridge 1", number=number))
    assert [*method.insights.texts.values()] == []
    method.observe(found("mug", "fridge 1", number=4))
    assert [*method.insights.texts.values()] == ["mug was in fridge", "mug placed in shelf"]
    method.observe(found("mug", "fridge 1", number=5))
    method.observe(found("mug", "fridge 1", number=6))
    assert [*method.credit.values()] == [2, 2]
    method.observe(found("mug", "fridge 1", number=7, won=False))
    assert [*method.credit.values()] == [0, 0]
    method.observe(found("mug", "fridge 1", number=8, won=False))
    assert [*method.insights.texts.values()] == []


def test_first_neighbours_make_clusters():
    """0 and 1 are each other's nearest, 2 has 1 as its nearest; 3 and 4 stand apart."""
    angles = np.array([0.0, 0.1, 0.25, 2.0, 2.1])
    assert first_neighbour_clusters(np.stack([np.cos(angles), np.sin(angles)], 1)) == [[0, 1, 2], [3, 4]]


@functools.cache
def games():
    return tuple(game.load() for game in generate(2, seed=0, num_scenes=4, prove=False))


class Looker:
    tokenizer = types.SimpleNamespace(encode=str.split)

    def __init__(self):
        self.prompts = []

    def act(self, prompts, keys, soft):
        self.prompts += prompts
        count = len(prompts)
        return types.SimpleNamespace(
            actions=["look"] * count, tokens_in=[1] * count, tokens_out=[1] * count, prefill_s=0.0, decode_s=0.0
        )


@pytest.mark.parametrize("name", [*METHODS, "mem0_2_steps"])
def test_every_method_plays_some_steps(name):
    world = envs.make("alfworld", tasks=list(games()), num_envs=2, seed=0, max_steps=3)
    executor, bank = Looker(), Experiences()
    bank.add_many([found("mug", f"shelf {n}", room, number=n) for n in range(1, 9) for room in (KITCHEN, HALL)])
    delivery = make_delivery(name, episodes=BankView(bank).episodes(), executor=executor, numbered=True)
    played = play(world, executor, delivery, bank, tasks=[0, 1], seeds=[0, 0], top_k=2)
    assert len(played) == 2
    assert all("memory:\n1 " in prompt for prompt in executor.prompts)
    assert len(executor.prompts) == 6
    for one in played:
        most = len(render_experiences(one.experiences).split())
        assert most >= 9
        assert all(len(given.memory.split()) <= most for given in one.delivered)


def delivered(delivery, *views):
    delivery.begin(views)
    return delivery.deliver(views, None)


def seen_in(room, task_id="", experiences=()):
    return start_view("put some mug on shelf.", room, experiences, task_id)


def test_a_method_fills_as_many_tokens_as_the_experiences_do_and_cuts_no_line():
    bank = Experiences()
    bank.add_many([found("mug", "fridge 1"), found("mug", "shelf 2", number=1)])
    experiences = bank.retrieve("put some mug on shelf.", 2, KITCHEN)
    most = len(render_experiences(experiences).split())
    delivery = MethodDelivery("mem0_2", [], Looker())
    lines = ["word " * (most - 3), "word " * 4, "two words"]
    delivery.method.recall = lambda task, observation, newest="": lines
    [given] = delivered(delivery, seen_in(KITCHEN, experiences=experiences))
    assert given.memory == f"{lines[0]}\n{lines[2]}"
    assert len(given.memory.split()) == most - 1
    assert delivered(delivery, seen_in(KITCHEN))[0].memory == "nothing"  # nothing was retrieved


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_not_observed_the_task_that_is_played(name):
    episodes = [found("mug", "fridge 1", number=n) for n in range(3)] + [found("pan", "shelf 2")]
    delivery = MethodDelivery(name, episodes, Looker(), task_key=lambda task: task.partition("-")[0])
    views = [seen_in(KITCHEN, task) for task in ("mug-else", "pan-else", "soap-else")]
    delivery.begin(views)
    without_mug, without_pan, whole = (view.state[0] for view in views)
    assert whole is delivery.method
    assert not any("mug" in text for text in without_mug.texts())
    assert any("pan" in text for text in without_mug.texts())
    assert not any("pan" in text for text in without_pan.texts())
    assert {"mug", "pan"} <= {word for text in whole.texts() for word in text.split()}


@pytest.mark.parametrize("name", METHODS)
def test_a_bank_changes_what_a_method_observes(name):
    """A stale bank tells of other places; an empty one of none, and then every method says what `static` says."""
    bank, room = Experiences(), f"{KITCHEN[:-1]}, and a desk 1."
    bank.add_many([found("mug", "fridge 1", room), found("pan", "fridge 1", room), found("cup", "fridge 1", room)])
    texts, told = {}, {}
    for setting in ("committed", "stale", "empty"):
        view = BankView(bank, (setting,))
        delivery = MethodDelivery(f"{name}_steps", view.episodes(), Looker())
        seen = seen_in(room, experiences=view.retrieve("put some mug on shelf.", 3, room))
        texts[setting], told[setting] = " ".join(delivery.method.texts()), delivered(delivery, seen)[0].memory
    assert "fridge 1" in told["committed"]
    assert "fridge 1" not in texts["stale"].replace("room: desk 1; fridge 1", "")
    assert re.search("(desk 1|shelf 2)", told["stale"])
    assert texts["empty"] == ""
    assert told["empty"] == render_experiences(()) == "nothing"


def test_calls_and_growth_are_counted():
    """A-Mem asks once per episode, a second time where there are neighbours, and once per question."""
    episodes = [found("mug", f"shelf {n % 9}", number=n) for n in range(120)]
    delivery = MethodDelivery("a_mem", episodes, Looker())
    assert [(row["episodes"], row["calls"], row["texts"]) for row in delivery.observed] == [
        (100, 199, 100), (120, 239, 120),
    ]  # fmt: skip
    # Sent are at least two transcripts of an episode, in bytes / 4; a count of calls or characters would be off by far.
    assert 119 * 2 * 60 < delivery.observed[1]["tokens_sent"] < 119 * 2 * 2000
    assert 0 < delivery.observed[1]["tokens_received"] < delivery.observed[1]["tokens_sent"]
    view = seen_in(KITCHEN)
    [given] = delivered(delivery, view)
    assert given.calls == 1
    assert given.tokens > 10
    [again] = delivery.deliver([view], None)
    assert (again.calls, again.tokens) == (0, 0)  # what is recalled once is paid for once


def test_what_was_seen_last_is_asked_for_at_every_step_only():
    asked = []
    for name in ("langmem", "langmem_steps"):
        delivery, view = MethodDelivery(name, [found("mug", "fridge 1")], Looker()), seen_in(KITCHEN)
        delivery.method.recall = lambda task, observation, newest="": asked.append((observation, newest)) or []
        delivered(delivery, view)
        view.turns.append(("look", "You see a pan 1."))
        delivery.deliver([view], None)
    assert asked == [(KITCHEN, ""), (KITCHEN, ""), (KITCHEN, "You see a pan 1.")]
    method = make_method("langmem")
    method.TASK_WEIGHT = 1
    assert method.question("put some mug on shelf.", KITCHEN, "You see a pan 1.").endswith(
        "shelf You see a pan 1. (room: fridge 1; shelf 2)"
    )
    method.TASK_WEIGHT = 0
    assert "room" not in method.question("put some mug on shelf.", KITCHEN)


def test_rows_of_rules_are_not_named_as_the_original():
    assert [row.name for row in settings_of(("static", "a_mem"), ("committed", "empty"))] == [
        "static", "static bank=empty", "a_mem (rule extraction)", "a_mem (rule extraction) bank=empty",
    ]  # fmt: skip
    assert row_name("a_mem", ToldChat()) == "a_mem"
    with pytest.raises(InvalidInputError, match="mem0_2"):
        make_method("mem0_3")
    with pytest.raises(InvalidInputError, match="irrelevant"):
        BankView(Experiences(), ("irrelevant",)).episodes()


def test_reflexion_ends_a_trial_that_repeats_itself_and_reads_three_reflections():
    chat = ToldChat(*[text for trial in "abcde" for text in ("look", "look", f"reflection {trial}")])
    agent = Reflexion(chat)
    world = envs.make("alfworld", tasks=list(games()), num_envs=1, seed=0, max_steps=20)
    played = list(rollout(world, [agent], [[0] * 5]))
    assert [len(one.actions) for one in played] == [2] * 5  # the third command is not asked for
    assert [*agent.reflections.values()] == [["reflection c", "reflection d", "reflection e"]]
    assert "Plans from past trials:" not in chat.asked[0]
    assert chat.asked[12].startswith("Plans from past trials:\nreflection b\nreflection c\nreflection d\n")

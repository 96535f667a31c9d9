"""The planner-critic agent: plans on memory alone, recovers by criticism, never replans for ever, learns over tasks."""

from __future__ import annotations

import ast
import dataclasses
import functools
import pathlib
import threading

import pytest
from text_room import TextRoom, play

from embodied_mem import envs
from embodied_mem.agents.planner_critic import agent as planner_critic
from embodied_mem.agents.planner_critic.agent import ABLATIONS, PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import Plan, PlanStep
from embodied_mem.agents.planner_critic.situation_text import describe
from embodied_mem.agents.rollout import rollout
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.lifelong import LifelongMemory
from embodied_mem.worlds.alfworld.agent.planner import SymbolicCritic, SymbolicPlanner
from embodied_mem.worlds.alfworld.agent.rules import AlfworldBeliefs
from embodied_mem.worlds.alfworld.env import Env
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan
from embodied_mem.worlds.alfworld.wording.text import TASK_TYPES, parse_goal

agent_of = functools.partial(PlannerCriticAgent.for_world, "alfworld")
PLACES = {"desk 1": ["pen 1"], "drawer 1": [], "bed 1": ["mug 1"], "shelf 1": [], "shelf 2": ["book 1"]}


def room(**changes) -> TextRoom:
    return TextRoom({**PLACES, **changes}, closed=("drawer 1",))


@pytest.fixture(scope="module")
def games():
    """Two games of each type, each in a room of its own."""
    found: dict[str, list] = {task_type: [] for task_type in TASK_TYPES}
    for generated in generate(120, seed=3, num_scenes=40, split="valid"):
        game = generated.load()
        kind = found[parse_goal(game.task).task_type]
        if len(kind) < 2:
            kind.append(game)
    assert all(len(kind) == 2 for kind in found.values())
    return [game for kind in found.values() for game in kind]


def rollouts_of(games, config, count=1, max_steps=100, runs=1):
    """Outcomes per run of fresh agents."""
    world = envs.make("alfworld", tasks=games, num_envs=count, seed=0, max_steps=max_steps, grammar=config.grammar)
    agents = [agent_of(config) for _ in range(count)]
    shares = [list(range(first, len(games), count)) for first in range(count)]
    return [rollout(world, agents, shares) for _ in range(runs)]


@pytest.mark.parametrize("grammar", ["0.4", "0.3"])
def test_all_kinds_of_tasks_are_won_and_learned_from(games, grammar):
    """The shortest plan from the full state bounds the steps from below; the second run is nearer to it."""
    first, second = rollouts_of(games, PlannerCriticConfig(grammar=grammar), runs=2)
    assert all(outcome.won for outcome in first + second)
    for run in (first, second):
        for game, outcome in zip(games, run):
            shortest = len(shortest_plan(WorldState.from_env(Env(game, grammar)), grammar))
            assert outcome.record.steps >= shortest
    assert sum(o.record.steps for o in second) < sum(o.record.steps for o in first)
    assert max(o.record.replans for o in second) <= max(o.record.replans for o in first)


def test_a_plan_has_several_steps_and_rests_on_the_same_task_won_before():
    agent = agent_of()
    play(agent, room())
    assert agent.record.plans > 1  # it had to search
    turns = play(agent, room())
    assert [action for action, _ in turns] == [
        "go to bed 1", "take mug 1 from bed 1", "go to shelf 1", "move mug 1 to shelf 1",
    ]  # fmt: skip
    assert (agent.record.plans, agent.record.vetoes, agent.record.criticised) == (1, 0, 3)
    assert agent.plan.why == "the task was won with mug 1 from bed 1 before"
    assert len(agent.plan.steps) == 4


def test_a_thing_moved_between_tasks_is_noticed_by_the_critic():
    agent = agent_of()
    play(agent, room())
    moved = {"bed 1": [], "drawer 1": ["mug 1"]}
    turns = play(agent, room(**moved))
    assert turns[-1][0] == "move mug 1 to shelf 1"
    assert agent.record.objections[0] == (1, "mug 1 is not at bed 1")
    assert "take mug 1 from bed 1" not in [action for action, _ in turns]
    # Without the critic the outdated plan is carried out to its end: nothing in the hand, four times in vain.
    blind = agent_of(ABLATIONS["no_critic"])
    play(blind, room())
    in_vain = play(blind, room(**moved))
    assert [answer for _, answer in in_vain[:4]].count("Nothing happens.") == 2
    assert len(in_vain) > len(turns)


def test_a_thing_moved_under_its_nose_is_looked_for_again():
    """Seen on the bed, gone when taken: the graph still has it there, so that only the refusal tells."""
    done = []

    def meddle(world, action):
        if action.startswith("take mug 1 from bed 1") and not done:
            done.append(action)
            world.move("mug 1", "drawer 1")

    agent = agent_of()
    turns = play(agent, room(), meddle=meddle)
    assert done
    assert ("take mug 1 from bed 1", "Nothing happens.") in turns
    assert turns[-1] == ("move mug 1 to shelf 1", "You move the mug 1 to the shelf 1.")
    assert [action for action, _ in turns].count("take mug 1 from bed 1") == 1


class Never:
    """A critic who always objects."""

    needs_retrieval = False

    def review(self, step, situation):
        return "no"


def test_a_critic_who_always_objects_cannot_stop_it():
    """RoboMemory 3.3: the first step is not criticised, so that each replanning is followed by an action."""
    agent = agent_of(critic=Never())
    turns = play(agent, room())
    assert turns[-1][0] == "move mug 1 to shelf 1"
    record = agent.record
    assert record.plans == record.steps == len(turns)
    assert record.vetoes == record.criticised == record.steps - 1


class Script:
    """Plans from a list, and remembers what it was shown."""

    def __init__(self, *plans):
        self.plans, self.seen = list(plans), []

    def plan(self, situation):
        self.seen.append(situation)
        return Plan(tuple(PlanStep(command) for command in self.plans.pop(0)))


def test_an_objection_reaches_the_planner_and_a_finished_plan_is_followed_by_another():
    class Once:
        needs_retrieval = True

        def review(self, step, situation):
            assert situation.pool is not None
            return "rather not" if step.command == "go to shelf 2" else ""

    planner = Script(["go to desk 1", "go to bed 1", "go to shelf 2"], ["go to shelf 1"], ["look"])
    agent = agent_of(planner=planner, critic=Once())
    play(agent, room(), max_steps=4)
    assert agent.record.actions == ["go to desk 1", "go to bed 1", "go to shelf 1", "look"]
    assert [situation.objection for situation in planner.seen[:3]] == ["", "rather not", ""]
    assert planner.seen[1].beliefs.things == {"mug 1": "bed 1"}  # the latest information
    assert planner.seen[1].summaries[-1].startswith("go to bed 1: You arrive at bed 1.")


def test_an_empty_plan_is_refused():
    with pytest.raises(InvalidInputError, match="at least one step"):
        agent_of(planner=Script([])).begin("t", "put a mug in shelf.", room().text())


def test_ablations_take_away_what_they_say(games):
    full = agent_of(ABLATIONS["full"]).memory
    assert None not in (full.spatial, full.temporal, full.episodic, full.semantic)
    assert agent_of(ABLATIONS["no_spatial"]).memory.spatial is None
    without = agent_of(ABLATIONS["no_long_term"])
    assert (without.memory.episodic, without.memory.semantic) == (None, None)
    runs = {name: rollouts_of(games, config, runs=2) for name, config in ABLATIONS.items()}
    actions = {name: [[o.record.actions for o in run] for run in both] for name, both in runs.items()}
    # Nothing outlives a task without long-term memory; with it, something does.
    assert actions["no_long_term"][0] == actions["no_long_term"][1]
    assert actions["full"][0] != actions["full"][1]
    assert all(o.record.criticised == o.record.vetoes == 0 for run in runs["no_critic"] for o in run)
    assert sum(o.record.vetoes for o in runs["full"][0]) > 0
    steps = {name: sum(o.record.steps for o in both[0]) for name, both in runs.items()}
    assert steps["full"] < min(steps["no_critic"], steps["no_long_term"])


def test_without_spatial_memory_only_the_last_steps_are_known():
    """Six places later the buffer of three entries has folded away what lay where."""
    agents = {name: agent_of(ABLATIONS[name], planner=Script(*[["look"]] * 12)) for name in ABLATIONS}
    known = {}
    for name, agent in agents.items():
        agent.begin("t", "put a pen in bed.", room().text())
        agent._working.action = "go to desk 1"
        agent.act("You arrive at desk 1. On the desk 1, you see a pen 1.")
        for number in range(1, 7):
            agent._working.action = f"go to shelf {number}"
            agent.act(f"You arrive at shelf {number}. On the shelf {number}, you see nothing.")
        known[name] = agent._look(False).beliefs.things
    assert known["full"] == known["no_long_term"] == {"pen 1": "desk 1"}
    assert known["no_spatial"] == {}


def test_the_same_again_and_rollouts_do_not_mix(games):
    config = ABLATIONS["full"]
    together = rollouts_of(games, config, count=4)[0]
    assert [o.record.actions for o in together] == [o.record.actions for o in rollouts_of(games, config, count=4)[0]]
    for number in range(4):
        alone = rollouts_of(games[number::4], config)[0]
        assert [o.record.actions for o in alone] == [o.record.actions for o in together if o.row == number]


def test_worlds_that_differ_in_what_was_not_seen_get_the_same_actions():
    """Until the first answer that differs, the hidden place of the mug cannot matter."""
    layouts = [room(), room(**{"bed 1": [], "drawer 1": ["mug 1"]}), room(**{"bed 1": [], "shelf 2": ["mug 1"]})]
    runs = [play(agent_of(), layout) for layout in layouts]
    for one in runs:
        for other in runs:
            for (action, answer), (action_2, answer_2) in zip(one, other):
                assert action == action_2
                if answer != answer_2:
                    break


def test_agents_get_texts_and_nothing_of_the_simulator(games):
    told = []

    class Spy(PlannerCriticAgent):
        def reset(self, goal, observation, info):
            told.extend((goal, observation, *info, *info.values()))
            super().reset(goal, observation, info)

        def act(self, observation, info):
            told.extend((observation, *info, *info.values()))
            return super().act(observation, info)

        def end(self, won, observation):
            assert isinstance(won, bool)
            super().end(won, observation)

    world = envs.make("alfworld", tasks=games[:1], num_envs=1, max_steps=20)
    rollout(world, [Spy.for_world("alfworld")], [[0]])
    assert len(told) > 4
    assert {type(value) for value in told} == {str}
    assert told[2] == "task_id"
    assert "admissible_commands" not in told
    folder = pathlib.Path(planner_critic.__file__).parent
    world = folder.parents[1] / "worlds" / "alfworld" / "agent"
    for path in (*folder.glob("*.py"), world / "rules.py", world / "planner.py", world / "search_prior.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert "envs" not in node.module, path
                assert node.module.split(".")[-1] not in ("env", "experts", "shortest_plan", "generator"), path


def test_summary_and_query_are_made_side_by_side():
    """Each waits for the other; one after the other they would wait for ever."""
    barrier = threading.Barrier(2, timeout=10)

    class Both:
        def summarise(self, goal, action, observation, images):
            barrier.wait()
            return f"did {action}"

        def query(self, goal, action, observation, images):
            barrier.wait()
            return "where are mugs"

    agent = agent_of(preprocessor=Both())
    agent.begin("t", "put a mug in shelf.", room().text())
    agent.act("You arrive at desk 1. On the desk 1, you see a pen 1.")
    assert agent._query == "where are mugs"
    assert agent._working.summaries[-1].startswith("did go to")


@pytest.mark.parametrize(
    ("need", "objection"),
    [
        (("at", "bed 1"), "the agent is at desk 1, not at bed 1"),
        (("open", "drawer 1"), "drawer 1 is closed"),
        (("shut", "safe 1"), "safe 1 is open"),
        (("there", "mug 1", "desk 1"), "mug 1 is not at desk 1"),
        (("holding", "mug 1"), "mug 1 is not in the hand"),
        (("empty hand",), "pen 1 is in the hand"),
        (("sought", "cup"), "cup 1 was seen at bed 1"),
        (("unsearched", "desk 1"), "desk 1 was searched"),
        (("unmarked", "cup 1", "hot"), "cup 1 is hot already"),
        (("marked", "cup 1", "clean"), "cup 1 is not clean"),
    ],
)
def test_what_the_critic_objects_to(need, objection):
    beliefs = AlfworldBeliefs(
        ("desk 1", "bed 1", "drawer 1", "safe 1"), at="desk 1", held="pen 1", things={"cup 1": "bed 1"},
        searched={"desk 1"}, closed={"drawer 1"}, opened={"safe 1"}, marks={"cup 1": {"hot"}},
    )  # fmt: skip
    situation = Situation("", "", beliefs, None, LifelongMemory())
    assert SymbolicCritic().review(PlanStep("x", (need,)), situation) == objection
    opposite = dataclasses.replace(
        beliefs, at="bed 1", held="mug 1" if need[0] == "holding" else "", things={"mug 1": "desk 1"}, searched=set(),
        closed={"safe 1"}, opened={"drawer 1"}, marks={"cup 1": {"clean"}},
    )  # fmt: skip
    assert SymbolicCritic().review(PlanStep("x", (need,)), dataclasses.replace(situation, beliefs=opposite)) == ""


def test_wrong_settings_are_refused():
    with pytest.raises(InvalidInputError, match="max_plan_steps"):
        PlannerCriticConfig(max_plan_steps=0)
    with pytest.raises(InvalidInputError, match="grammar"):
        SymbolicPlanner("0.5")
    situation = Situation("", "", AlfworldBeliefs(()), None, LifelongMemory())
    with pytest.raises(InvalidInputError, match="a need that the critic knows"):
        SymbolicCritic().review(PlanStep("x", (("luck",),)), situation)
    world = envs.make("alfworld", tasks=[next(iter(generate(1, seed=0))).load()], num_envs=1)
    with pytest.raises(InvalidInputError, match="one agent and one list of tasks per env"):
        rollout(world, [], [])


def test_what_long_tasks_tell_a_model_begins_with_the_steps_before_the_last_ones():
    planner = Script(*[["go to desk 1"], ["go to bed 1"]] * 6)
    play(agent_of(planner=planner), room(), max_steps=12)
    assert "steps 1-" not in describe(planner.seen[3])
    assert "Earlier steps:\nsteps 1-" in describe(planner.seen[-1])

"""The chat planner, critic and preprocessor with scripted models: what they are told, what becomes of bad answers."""

from __future__ import annotations

import json

import pytest
from text_room import TextRoom, play

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.planner_critic.chat import (
    MAX_UNUSABLE_PLANS,
    ChatCritic,
    ChatPlanner,
    ChatPreprocessor,
    chat_parts,
    plan_schema,
)
from embodied_mem.agents.planner_critic.situation_text import describe_names
from embodied_mem.agents.robot.skills import TASK_COMPLETE, Skill, read_command
from embodied_mem.errors import InvalidInputError
from embodied_mem.language import ChatError, ChatReply, RecordedChatModel, Usage
from embodied_mem.language.chat import UsageMeter
from embodied_mem.language.json_answers import read_json
from embodied_mem.registry import load
from embodied_mem.worlds.alfworld.agent.skills import skills_of

PLACES = {"desk 1": ["pen 1"], "bed 1": ["mug 1"], "shelf 1": []}
COMMANDS = ["go to desk 1", "go to bed 1", "take mug 1 from bed 1", "go to shelf 1", "move mug 1 to shelf 1"]


class Clerk:
    """Answers by the instruction: the same plan from where the summaries left off, yes, a line."""

    name = "clerk"

    def __init__(self):
        self.meter, self.asked = UsageMeter(), []

    def complete(self, messages, *, max_tokens=512, temperature=0.0, response_format=None, on_text=None):
        system, told = messages[0]["content"], messages[1]["content"]
        self.asked.append((system, told))
        if system.startswith("You are the planner"):
            done = told.count("did ") + ("Its answer:" in told)
            calls = [read_command(SKILLS, command) for command in COMMANDS[done : done + 2]]
            steps = [{"skill": skill, **arguments, "why": "it is next"} for skill, arguments in calls]
            progress = {"reasoning": "I think", "done": f"{done} steps", "left": "the rest"}
            return ChatReply(json.dumps({**progress, "steps": steps}), Usage(10, 5))
        if system.startswith("You are the critic"):
            return ChatReply(json.dumps({"ok": True, "reason": ""}), Usage(10, 5))
        return ChatReply("did it" if "short sentence" in system else "mug", Usage(10, 5))


SKILLS = skills_of(PlannerCriticConfig())


def agent_of(model) -> PlannerCriticAgent:
    return PlannerCriticAgent.for_world("alfworld", **chat_parts(model, SKILLS, max_steps=3))


class Lister:
    def plan(self, situation):
        return ["look"]


@pytest.mark.parametrize(
    ("planner", "message"),
    [
        (lambda situation: ["look"], r"planner: expected an object with plan\(\.\.\.\), got <function"),
        (Lister(), r"planner: expected plan\(\) to return Plan\(.*, got \['look'\]; wrap its steps"),
    ],
)
def test_a_planner_of_another_shape_is_named(planner, message):
    with pytest.raises(InvalidInputError, match=message):
        play(PlannerCriticAgent.for_world("alfworld", planner=planner), TextRoom(PLACES))


def test_a_task_is_won_by_a_model_and_repeats_from_its_recording(tmp_path):
    clerk = Clerk()
    agent = agent_of(RecordedChatModel(clerk, tmp_path / "calls.jsonl"))
    turns = play(agent, TextRoom(PLACES))
    assert [action for action, _ in turns] == COMMANDS
    assert (agent.record.plans, agent.record.criticised) == (3, 2)
    replay = agent_of(RecordedChatModel(None, tmp_path / "calls.jsonl", name="clerk"))
    assert play(replay, TextRoom(PLACES)) == turns
    assert replay.memory.state() == agent.memory.state()


def test_the_model_is_told_what_is_known():
    clerk = Clerk()
    agent = agent_of(clerk)
    play(agent, TextRoom(PLACES))
    first = len(clerk.asked)
    play(agent, TextRoom(PLACES))
    system, told = next(asked for asked in clerk.asked[first:] if asked[0].startswith("You are the planner"))
    assert "at most 3" in system
    for skill in SKILLS:
        assert skill.render() in system
    assert "put(thing, place): Puts what is held in or on a place. Needs: being at place; place is open" in system
    for line in ("Task: put a mug in shelf.", "you see a desk 1, a bed 1, a shelf 1.", "Remembered:", "won in 5 steps"):
        assert line in told
    told = next(told for system, told in reversed(clerk.asked) if system.startswith("You are the critic"))
    assert "Next step: go to shelf 1 (why: it is next)" in told  # the last step of a plan of two
    assert "You hold mug 1." in told


class Broken:
    """Never gives a usable answer."""

    name = "broken"

    def __init__(self, answer="nonsense", kind=None):
        self.meter, self.answer, self.kind = UsageMeter(), answer, kind

    def complete(self, messages, **settings):
        if self.kind:
            raise ChatError("no", self.kind)
        return ChatReply(self.answer)


@pytest.mark.parametrize(
    "model", [Broken(), Broken('{"steps": []}'), Broken(kind="late")], ids=["text", "none", "late"]
)
def test_unusable_answers_do_no_harm_and_are_counted(model):
    agent = agent_of(model)
    turns = play(agent, TextRoom(PLACES), max_steps=4)
    assert [action for action, _ in turns] == ["look"] * 4
    assert agent._planner.unusable == agent._planner.answers == agent.record.plans == 4
    situation = agent._look(True)
    assert agent._critic.review(agent.plan.steps[0], situation) == ""
    assert agent._critic.unusable == 1
    if model.kind:
        assert agent._preprocessor.unusable == agent._preprocessor.answers == 8
        assert agent._working.summaries[-1] == "look: Nothing happens."


@pytest.mark.parametrize("model", [Broken(), Broken(kind="late")], ids=["text", "late"])
def test_a_model_without_a_usable_plan_ends_the_run(model):
    """Not the first few times: one usable plan and the count begins again."""
    planner = ChatPlanner(Clerk(), SKILLS)
    agent = PlannerCriticAgent.for_world("alfworld", planner=planner)
    agent.begin("t", "put a mug in shelf.", TextRoom(PLACES).text())
    situation = agent._look(True)
    for _ in range(2):
        planner._model = model
        for _ in range(MAX_UNUSABLE_PLANS - 1):
            assert [step.command for step in planner.plan(situation).steps] == ["look"]
        planner._model = Clerk()
        assert planner.plan(situation).steps[0].command != "look"
    with pytest.raises(ChatError, match=r"got 5 in a row that are not; the last: .*(nonsense|no)") as caught:
        play(agent_of(model), TextRoom(PLACES), max_steps=9)
    assert caught.value.kind == (model.kind or "malformed")


def test_an_objection_without_a_reason_is_one():
    critic = ChatCritic(Broken('{"ok": false, "reason": " "}'))
    agent = agent_of(Clerk())
    agent.begin("t", "put a mug in shelf.", TextRoom(PLACES).text())
    assert critic.review(agent.plan.steps[0], agent._look(True)) == "the critic objects"


def test_a_used_up_budget_ends_the_run():
    with pytest.raises(ChatError, match="no"):
        agent_of(Broken(kind="budget")).begin("t", "put a mug in shelf.", TextRoom(PLACES).text())


class Says:
    """Gives these answers in turn, the last one for ever, and remembers what it was asked."""

    name = "says"

    def __init__(self, *answers):
        self.meter, self.answers, self.asked = UsageMeter(), list(answers), []

    def complete(self, messages, **settings):
        self.asked.append(messages)
        return ChatReply(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


def plan_of(*steps, done="nothing", left="all"):
    steps = [{"skill": skill, **arguments} for skill, arguments in steps]
    return json.dumps({"reasoning": "so it is", "done": done, "left": left, "steps": steps})


GO, TAKE = ("go_to", {"place": "bed 1"}), ("take", {"thing": "mug 1", "place": "bed 1"})


def told(model) -> list[str]:
    """The user's messages to the planner."""
    return [asked[1]["content"] for asked in model.asked]


def test_the_newest_answer_is_told_word_by_word_and_everything_once():
    planner = Says(plan_of(GO, done="nothing yet", left="find a mug"), plan_of(TAKE))
    agent = PlannerCriticAgent.for_world("alfworld", planner=ChatPlanner(planner, SKILLS, max_steps=2))
    agent.begin("t", "put a mug in shelf.", f"{TextRoom(PLACES).text()}\n\nYour task is to: put a mug in shelf.")
    agent.act("You arrive at bed 1.\nOn the bed 1, you see a mug 1.")
    first, second = told(planner)
    assert "Your task is to" not in first
    assert "Remembered" not in first  # memory knows what the first view says
    assert "Last step: go to bed 1\nIts answer: You arrive at bed 1.\nOn the bed 1, you see a mug 1.\n" in second
    assert "Progress: done: nothing yet; left: find a mug" in second
    assert second.count("mug 1") == 1
    assert "Earlier steps" not in second


def test_a_command_that_was_refused_twice_is_named_and_asked_for_again():
    planner = Says(*[plan_of(TAKE)] * 3, plan_of(GO))
    agent = PlannerCriticAgent.for_world("alfworld", planner=ChatPlanner(planner, SKILLS))
    agent.begin("t", "put a mug in shelf.", TextRoom(PLACES).text())
    assert agent.act("Nothing happens.") == "take mug 1 from bed 1"
    assert agent.act("Nothing happens.") == "go to bed 1"
    *_, once, third, repaired = planner.asked
    assert "was refused" not in once[1]["content"]
    assert "'take mug 1 from bed 1' was refused twice." in third[1]["content"]
    refusal = "'take mug 1 from bed 1' was refused twice: Nothing happens. Plan again, with another first step."
    assert [message["content"] for message in repaired[2:]] == [plan_of(TAKE), refusal]
    agent.act("You arrive at bed 1. On the bed 1, you see a mug 1.")
    assert "'take mug 1 from bed 1' was refused twice: Nothing happens." in told(planner)[-1]
    planner.answers = [plan_of(TAKE)]
    agent.act("You are there.")
    agent.act("You pick up the mug 1 from the bed 1.")
    assert "was refused" not in told(planner)[-1]  # it worked


LISTED = ("find a Mug", "find a Mug_2", "find a Fridge", "open the Fridge", "pick up the Mug")


def listed(*answers):
    """An agent with EB-ALFRED's skills and a list of actions."""
    planner = Says(*answers)
    skills = load("eb_alfred", "skills")(PlannerCriticConfig())
    return planner, PlannerCriticAgent(planner=ChatPlanner(planner, skills), critic=ChatCritic(Clerk()))


def test_names_are_listed_by_the_skills_that_take_them():
    planner, agent = listed(plan_of(("find", {"thing": "mug 2"})))
    assert agent.begin("t", "Find a mug.", "In view: nothing.", LISTED) == "find a Mug_2"
    assert told(planner)[0].endswith("take them:\nfind, pick_up: Mug\nfind: Mug_2\nfind, open: Fridge")
    assert describe_names({"A": ("x",), "A_2": ("x",), "A_3": ("x",), "B_2": ("x",)}) == "x: A (_2, _3), B_2"


def test_a_number_that_the_world_does_not_take_is_left_out_and_an_unknown_action_asked_for_again():
    planner, agent = listed(plan_of(("pick_up", {"thing": "the mug 2."})), plan_of(("find", {"thing": "Sofa"})))
    assert agent.begin("t", "Find a mug.", "", LISTED) == "pick up the Mug"
    planner.answers.append(plan_of(("find", {"thing": "Mug"})))
    assert agent.act("Done.") == "find a Mug"
    assert "There is no action 'find a Sofa'. Plan again" in planner.asked[-1][-1]["content"]


@pytest.mark.parametrize(
    ("skill", "name", "command"),
    [
        ("pick_up", "Mug", "pick up the Mug"),
        ("pick_up", "the the mug_3", "pick up the Mug"),
        ("pick_up", "Mug on the table.", "pick up the Mug"),
        ("find", "mug 2", "find a Mug_2"),
        ("find", "Mug_9", "find a Mug_9"),  # another mug is not the first one
        ("find", "Muggy", "find a Muggy"),
    ],
)
def test_names_are_spelled_as_the_world_does(skill, name, command):
    _, agent = listed(plan_of((skill, {"thing": name})))
    assert agent.begin("t", "Find a mug.", "", LISTED) == command


def test_without_a_usable_plan_an_admissible_step_is_done():
    _, agent = listed("nonsense")
    assert agent.begin("t", "Find a mug.", "", LISTED) == "find a Mug"
    assert [agent.act("No.") for _ in range(3)] == ["find a Mug_2", "find a Mug", "find a Mug_2"]
    planner = ChatPlanner(Broken(), (Skill("grasp", ("thing",), "", ("it is near",)), TASK_COMPLETE))
    with pytest.raises(ChatError, match="or a skill that can be done without one, got grasp, task_complete"):
        PlannerCriticAgent(planner=planner, critic=ChatCritic(Clerk())).begin("t", "Find a mug.", "")


def test_the_critic_is_told_skills_and_the_rest_of_the_plan():
    critic = Says('{"reason": "the bed is empty", "ok": false}')
    parts = chat_parts(Clerk(), SKILLS) | {"critic": ChatCritic(critic, SKILLS)}
    agent = PlannerCriticAgent.for_world(
        "alfworld", **parts | {"planner": ChatPlanner(Says(plan_of(GO, TAKE, GO)), SKILLS)}
    )
    agent.begin("t", "put a mug in shelf.", TextRoom(PLACES).text())
    agent.act("You arrive at bed 1. On the bed 1, you see nothing.")
    [(system, user)] = [[message["content"] for message in asked] for asked in critic.asked]
    assert "take(thing, place): Takes one thing. Needs: being at place" in system
    assert user.endswith("Next step: take mug 1 from bed 1\n\nThen: go to bed 1")
    assert agent.record.objections == [(1, "the bed is empty")]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("Summary: It took the mug.", "It took the mug."),
        ("**Query:** where mugs are", "where mugs are"),
        ('Search query: "where are mugs"', "where are mugs"),
        ("Here is the summary:\n\nIt took the mug.", "It took the mug."),
        ("It took the mug: the summary is short.", "It took the mug: the summary is short."),
        ("Answer the door.", "Answer the door."),
    ],
)
def test_labels_of_small_models_are_left_out(said, line):
    lines = ChatPreprocessor(Says(said))
    assert lines.summarise("a goal", "look", "A room.") == line
    assert lines.query("a goal", "look", "A room.") == f"a goal {line}"


@pytest.mark.parametrize("world", ["alfworld", "eb_alfred", "eb_habitat"])
def test_worked_examples_are_plans_of_their_world(world):
    config = PlannerCriticConfig()
    skills, examples = (load(world, part)(config) for part in ("skills", "examples"))
    plans = [line for line in examples.splitlines() if line.startswith("{")]
    assert len(plans) == examples.count("Example: ") == 2
    assert examples.startswith("In this world:\n- ")
    for text in plans:
        value, wrong = read_json(text, plan_schema(skills, 8))
        assert wrong == ""
        assert list(value) == ["reasoning", "done", "left", "steps"]
    assert examples in ChatPlanner(Clerk(), skills, examples=examples)._instruction

"""The chat planner, critic and preprocessor with scripted models: what they are told, what becomes of bad answers."""

from __future__ import annotations

import json

import pytest
from text_room import TextRoom, play

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.planner_critic.chat import MAX_UNUSABLE_PLANS, ChatCritic, ChatPlanner, chat_parts
from embodied_mem.agents.robot.skills import read_command
from embodied_mem.language import ChatError, ChatReply, RecordedChatModel, Usage
from embodied_mem.language.chat import UsageMeter
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
            done = told.count("did ")
            calls = [read_command(SKILLS, command) for command in COMMANDS[done : done + 2]]
            steps = [{"skill": skill, **arguments, "why": "it is next"} for skill, arguments in calls]
            return ChatReply(json.dumps({"steps": steps}), Usage(10, 5))
        if system.startswith("You are the critic"):
            return ChatReply(json.dumps({"ok": True, "reason": ""}), Usage(10, 5))
        return ChatReply("did it" if "short sentence" in system else "mug", Usage(10, 5))


SKILLS = skills_of(PlannerCriticConfig())


def agent_of(model) -> PlannerCriticAgent:
    return PlannerCriticAgent.for_world("alfworld", **chat_parts(model, SKILLS, max_steps=3))


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

"""Fills in docs/prompts.md: every prompt as a model is sent it, so that no page shows one that is no longer sent.

    python experiments/analyses/prompt_page.py             # rewrite the page
    python experiments/analyses/prompt_page.py --check     # exit with 1 if it is not up to date

A prompt stands between `<!-- prompt: NAME -->` and `<!-- end -->`. Those of planner, critic and preprocessor come from
tasks that the agent by rules plays in a generated home, those of the teacher from its first step there, those of
memory from two told tasks.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.planner_critic.chat import ChatCritic, ChatPlanner, ChatPreprocessor
from embodied_mem.agents.planner_critic.interfaces import Critic, Planner, Situation
from embodied_mem.agents.planner_critic.plan import Plan, PlanStep
from embodied_mem.agents.robot.judge import OutcomeJudge
from embodied_mem.agents.robot.perceiver import filled_prompt
from embodied_mem.agents.rollout import rollout
from embodied_mem.language.chat import ChatModel, ChatReply, Message, UsageMeter
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.memory.conflicts import ChatResolver, Conflict
from embodied_mem.memory.knowledge import USER_PATTERN, Knowledge, ask_changes, ask_references, ask_words
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.teachers.chat_teacher import ChatTeacher
from embodied_mem.worlds.alfworld.agent.planner import SymbolicCritic, SymbolicPlanner
from embodied_mem.worlds.alfworld.agent.skills import examples_of, skills_of
from embodied_mem.worlds.alfworld.generator import generated_home
from embodied_mem.worlds.alfworld.tasks import AlfworldTasks
from embodied_mem.worlds.memento.agent.react import ReActAgent

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from experiments.solvers.memento.chat_retrieval import ChatRetrieval

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "prompts.md"
FACTS = [("banana", "on", "counter"), ("agent", "next to", "banana"), ("oven", "is", "closed")]
HOUSE = """Task: Put my favourite cup on the bed.

Furniture:
bedroom_1: floor_bedroom_1, bed_2
kitchen_1: floor_kitchen_1, table_4, cabinet_5

Objects:
No objects found yet"""
_NUM_TASKS, _SEED = 3, 1
_SPACE = re.compile(r"<!-- prompt: (\w+) -->\n(?:(?!<!--).)*<!-- end -->", re.DOTALL)


class Silent:
    """A chat model for prompts that nobody is to answer."""

    name = "nobody"

    def __init__(self) -> None:
        self.meter = UsageMeter()

    def complete(self, messages: Sequence[Message], **settings: Any) -> ChatReply:
        return ChatReply("Done[]")


class Watch:
    """Planner and critic by rules; beside, the messages that a chat model would be sent."""

    needs_retrieval = True

    def __init__(self, planner: Planner, critic: Critic, model: ChatModel):
        config = PlannerCriticConfig()
        skills = skills_of(config)
        self._planner, self._critic = planner, critic
        self._chat_planner = ChatPlanner(model, skills, examples=examples_of(config))
        self._chat_critic = ChatCritic(model, skills)
        self.plans: list[list[Message]] = []
        self.reviews: list[list[Message]] = []
        self.turn = ("", "", "")

    def plan(self, situation: Situation) -> Plan:
        self.plans.append(self._chat_planner.messages(situation))
        return self._planner.plan(situation)

    def review(self, step: PlanStep, situation: Situation) -> str:
        self.reviews.append(self._chat_critic.messages(step, situation))
        self.turn = situation.goal, situation.action, situation.observation
        return self._critic.review(step, situation)


def texts(messages: Sequence[Message]) -> tuple[str, str]:
    """Return instruction and question of two messages."""
    system, user = (str(message["content"]) for message in messages)
    return system, user


@functools.cache
def filled() -> dict[str, str]:
    """Return every prompt of the page by name."""
    model = Silent()
    watch = Watch(SymbolicPlanner(), SymbolicCritic(), model)
    agent = PlannerCriticAgent.for_world("alfworld", planner=watch, critic=watch)
    home = generated_home(_NUM_TASKS, _SEED)
    rollout(envs.make("alfworld", num_envs=1, **home), [agent], [list(range(_NUM_TASKS))])
    pairs = {"perceiver": filled_prompt("a hand at a counter", "pick(banana)", FACTS)}
    pairs |= {"planner": texts(watch.plans[-1]), "critic": texts(watch.reviews[-1])}
    lines = ChatPreprocessor(model)
    pairs |= {name: texts(lines.messages(name, watch.turn)) for name in ("summarise", "query")}
    reply = ReActAgent(model)
    reply.begin("Put my favourite cup on the bed.", HOUSE)
    pairs["react"] = texts(reply.messages())
    teacher = ChatTeacher(_Nothing(), AlfworldTasks(WorldConfig(num_train=1, num_valid=1), 0).commands())
    observations, info = envs.make("alfworld", num_envs=1, **home).reset(options={})
    teacher.begin(info["goal"][0], observations[0], ())
    pairs["teacher"] = texts(teacher.messages())
    pairs |= {"judge": judge_prompt()} | retrieval_prompts() | memory_prompts()
    return {f"{name}_{part}": text for name, both in pairs.items() for part, text in zip(("system", "user"), both)}


def judge_prompt() -> tuple[str, str]:
    """Return the prompt of who judges an action by pictures."""
    requests: list[Sequence[Message]] = []
    frame = np.zeros((8, 8, 3), np.uint8)
    OutcomeJudge(lambda messages: requests.append(messages) or "").judge("pick up the banana", [frame], [frame])
    system, user = requests[0]
    return str(system["content"]), str(user["content"][0]["text"])


def retrieval_prompts() -> dict[str, tuple[str, str]]:
    """Return the prompts of MEMENTO's retrieval by a model."""
    requests: list[tuple[str, str]] = []
    model = ChatRetrieval(ChatWriter(lambda messages: requests.append(texts(messages)) or ""))
    model.scores("Bring me my favourite cup.", ["Put the red cup on the table. It was a gift from my sister."])
    model.sentences("Bring me my favourite cup.")
    return dict(zip(("rerank", "expand"), requests))


MEMORY = (
    "facts", "step", "steps", "task", "task_update", "lessons", "lessons_update", "conflicts", "knowledge",
    "knowledge_update", "references", "descriptions",
)  # fmt: skip
"""Prompts of memory's writer, as their files are named."""
_ANSWERS = {
    "summary": "Mugs stand on the desk.", "lessons": ["Mugs are found on desks."], "same": None, "delete": [],
    "changes": [], "references": [],
}  # fmt: skip
_STEPS = (
    ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 1."),
    ("take mug 1 from desk 1", "You pick up the mug 1 from the desk 1."),
    ("go to shelf 1", "The robot rolled over to the shelf, where somebody had left a pink notebook under a lamp."),
    ("move mug 1 to shelf 1", "You move the mug 1 to the shelf 1."),
)


def memory_prompts() -> dict[str, tuple[str, str]]:
    """Return the prompts of memory's writer, each as it is asked first."""
    starts = {prompt("embodied_mem.memory", name).partition("{")[0]: name for name in MEMORY}
    prompts: dict[str, tuple[str, str]] = {}

    def chat(messages: Sequence[Message]) -> str:
        system, user = texts(messages)
        [name] = [name for start, name in starts.items() if system.startswith(start)]
        prompts.setdefault(f"memory_{name}", (system, user))
        return json.dumps({key: value for key, value in _ANSWERS.items() if f'"{key}"' in system})

    memory = LifelongMemory(chat=chat)
    for goal in ("put a mug in shelf", "put a clean mug in shelf"):
        memory.begin_task(goal, goal, "You see a desk 1 and a shelf 1.")
        for action, answer in _STEPS:
            memory.observe(action, answer)
        memory.end_task(True)
    writer = ChatWriter(chat)
    words, pattern = "For my night drink I want the jug on the desk.", "a jug on the desk"
    entries = [{"id": "profile:3", "subtype": USER_PATTERN, "alias": "night drink", "description": "a cup on the desk"}]
    ask_changes(writer, words, [Knowledge(USER_PATTERN, "night drink", pattern)], entries)
    ask_references(writer, "Could you set up my night drink?")
    ask_words(writer, "Could you set up my night drink?", entries)
    ChatResolver(writer)(
        ["mug 1 on desk 1 (since 2)"],
        [Conflict("mug 1 on desk 1 (since 2)", "mug 1 on shelf 1 (since 9)", "a thing is in one place")],
    )
    return prompts


class _Nothing(Silent):
    """A teacher's model that teaches nothing."""

    def complete(self, messages: Sequence[Message], **settings: Any) -> ChatReply:
        return ChatReply('{"output": "noaction", "action": "look", "reference": ""}')


def fill(page: str) -> str:
    """Return a page with its prompts as they are today."""
    return _SPACE.sub(
        lambda found: f"<!-- prompt: {found[1]} -->\n```text\n{filled()[found[1]]}\n```\n<!-- end -->", page
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page is out of date")
    options = parser.parse_args(arguments)
    old = PAGE.read_text(encoding="utf-8")
    new = fill(old)
    if options.check:
        return int(new != old)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

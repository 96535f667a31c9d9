"""Chat agents are scored by one command per world: with a server, then by its recording alone, with cost and budget."""

from __future__ import annotations

import dataclasses
import gzip
import json
import pathlib
import re
import shlex

import pytest
from chat_answers import Server, reply

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.language import ChatError
from experiments.evaluate import main

RESULT = pathlib.Path(__file__).parents[2] / "experiments/results/alfworld_smollm2_agents.json"
NAMES = "Names, by the skills that take them:\n"


@pytest.fixture(autouse=True)
def _local(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def text_of(message):
    """The text of a message with or without pictures."""
    content = message["content"]
    return content if isinstance(content, str) else content[0]["text"]


def acting(body):
    """Takes the first skill with the first names that it was told, or answers in a word."""
    asked = text_of(body["messages"][-1])
    if "response_format" not in body:
        return reply("Thought: nothing is left.\nDone[]" if "Done[]" in str(body["messages"]) else "a mug", 200, 5)
    schema = body["response_format"]["json_schema"]
    if schema["name"] == "verdict":
        return reply(json.dumps({"ok": True, "reason": ""}), 300, 9)
    first = schema["schema"]["properties"]["steps"]["items"]["anyOf"][0]["properties"]
    names = re.findall(r"(?<=: )[^,(\n]+", asked.partition(NAMES)[2]) or ["desk 1", "shelf 1"]
    arguments = [key for key in first if key not in ("skill", "why")]
    steps = [
        {"skill": first["skill"]["enum"][0], **dict.fromkeys(arguments, name.strip()), "why": "x"} for name in names[:2]
    ]
    return reply(json.dumps({"reasoning": "x", "done": "", "left": "all", "steps": steps}), 400, 30)


WRITTEN = {"summary": "the robot looked", "lessons": ["Desks are clean."], "same": None, "delete": [], "changes": []}


def writing(body):
    """Answers a planner, and writes what a memory asks for; a conflict ends the old fact."""
    system, asked = (message["content"] for message in body["messages"][-2:])
    if "Two facts of each conflict" in system:
        return reply(json.dumps({"ends": ["old"] * asked.count("; rule: ")}), 70, 7)
    if "list the facts it states" in system:
        return reply("[]", 50, 1)
    wanted = body.get("response_format", {}).get("json_schema", {"name": "", "schema": {}})
    if wanted["name"] == "answer":
        return reply(json.dumps({name: WRITTEN[name] for name in wanted["schema"]["properties"]}), 60, 6)
    return acting(body)


def played(report):
    """The episodes without their times."""
    return [
        dataclasses.replace(one, milliseconds=0, more={k: v for k, v in one.more.items() if not k.endswith("_ms")})
        for one in episodes_of(report)
    ]


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
    assert {"eb_alfred": "KeyChain", "eb_habitat": "rubriks cube"}[world] in user.partition(NAMES)[2]
    assert ("Example: wash a thing" in system) == (world == "eb_alfred")
    assert {"eb_alfred": "At first: In view: ", "eb_habitat": "At first: You are in an apartment."}[world] in user


def test_memento(memento_data, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(memento_data.parent))
    few = ["--num_tasks", "1", "--embedder", "lexical", "--max_steps", "3", "--triples_per_scene", "1"]
    report, _ = score(["--config=memento", "--agents", "react", *few], tmp_path, capsys)
    assert {episode.agent for episode in episodes_of(report)} == {"react"}
    assert "retrieval" not in report


def score_written(arguments, path):
    """The report where a model writes the memory, after the recordings gave the same in one thread."""
    server = Server(writing)
    record = ["--model", "tiny", "--memory_model", "small", "--record", str(path / "calls.jsonl")]
    try:
        report = main([*arguments, *record, "--server", server.url, "--parallel", "3"])
    finally:
        server.close()
    assert played(main([*arguments, *record])) == played(report)
    use = [report["usage"], report["memory_model"]["usage"]]
    assert [sum(body["model"] == name for _, _, body in server.requests) for name in ("tiny", "small")] == [
        one["calls"] for one in use
    ]
    tokens = sum(one["prompt_tokens"] + one["completion_tokens"] for one in use)
    assert sum(episode.tokens for episode in episodes_of(report)) == tokens
    return report, [body for _, _, body in server.requests]


def test_a_model_writes_the_memory_of_lives_side_by_side(tmp_path, capsys):
    agents = ["chat_planner_critic", "chat_no_long_term", "chat_no_spatial"]
    few = ["--tasks", "generated", "--num_tasks", "4", "--max_steps", "4", "--lives", "2"]
    report, requests = score_written(["--agents", *agents, *few], tmp_path)
    systems = "\n".join(body["messages"][0]["content"] for body in requests)
    for part in ("Summarise these steps", "List what is worth knowing", "Two facts of each conflict"):
        assert part in systems
    rows = {(one.agent, one.task, one.run): one.more for one in episodes_of(report)}
    assert len(rows) == 3 * 4 * 2
    assert all(more["memory_calls"] > 0 for (agent, *_), more in rows.items() if agent != "chat_no_long_term")
    lessons = {agent: sum(more["memory_calls"] for (one, *_), more in rows.items() if one == agent) for agent in agents}
    assert lessons["chat_planner_critic"] > max(lessons["chat_no_long_term"], lessons["chat_no_spatial"])
    means = [more["memory_calls"] for (agent, *_), more in rows.items() if agent == "chat_planner_critic"]
    assert f"| chat_planner_critic | memory | {sum(means) / len(means):.1f} |" in capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--repeat", "2", "--max_steps", "3"]])
def test_a_model_writes_the_memory_of_a_world_with_other_words(more, eb_alfred_data, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(eb_alfred_data.parent))
    few = ["--subsets", "base", "--training_tasks", "2", "--num_tasks", "2", *more]
    arguments = ["--config=eb_alfred", "--agents", "chat_planner_critic", "chat_no_memory", *few]
    _, requests = score_written(arguments, tmp_path)
    assert len({body["seed"] for body in requests}) == 4  # of two agents on two tasks
    assert "| chat_no_memory | planner |" in capsys.readouterr().out


def looking(body):
    """Answers a planner, and sees a green pot on the stove."""
    if "the eyes of a household robot" not in body["messages"][0]["content"]:
        return acting(body)
    seen = {
        "summary": "A pot is here.",
        "facts": [["green pot", "on", "stove", 0.9]],
        "outcome": "success",
        "ended": [],
    }
    return reply(json.dumps(seen), 90, 20)


@pytest.mark.parametrize("world", ["alfworld", "eb_alfred", "eb_habitat"])
def test_a_model_looks_and_memory_knows_what_it_saw_alone(world, request, monkeypatch, tmp_path, capsys):
    few = ["--tasks", "generated", "--num_tasks", "2", "--max_steps", "3", "--repeat", "1", "--sees", "--lives", "2"]
    if world != "alfworld":
        monkeypatch.setenv("EMBODIED_MEM_DATA", str(request.getfixturevalue(f"{world}_data").parent))
        few = ["--subsets", "base", "--training_tasks", "2", "--num_tasks", "1"]
    arguments = [f"--config={world}", "--agents", "chat_planner_critic", *few, "--model", "tiny"]
    arguments += ["--perceiver_model", "eye", "--record", str(tmp_path / "calls.jsonl")]
    server = Server(looking)
    try:
        report = main([*arguments, "--server", server.url])
    finally:
        server.close()
    assert played(main(arguments)) == played(report)
    bodies = [body for _, _, body in server.requests]
    looks = [body["messages"][-1]["content"] for body in bodies if body["model"] == "eye"]
    assert len(looks) == report["perceiver_model"]["usage"]["calls"]
    told = [text_of({"content": parts}) for parts in looks]
    assert all("Caption: " in text for text in told)
    assert sum(isinstance(parts, list) and "image_url" in parts[1] for parts in looks) == len(looks) * (
        world == "alfworld"
    )
    assert '["green pot", "on", "stove"]' in told[-1]  # it is told what memory has
    episodes = episodes_of(report)
    assert all(one.more["perceiver_calls"] >= one.steps > 0 for one in episodes)
    assert "| chat_planner_critic | perceiver |" in capsys.readouterr().out
    plans = [str(body["messages"][-1]["content"]) for body in bodies if "'steps'" in str(body.get("response_format"))]
    assert all("green pot" in text for text in plans)


def test_a_budget_ends_the_command(tmp_path):
    server = Server(acting)
    few = ["--tasks", "generated", "--num_tasks", "2", "--max_steps", "4", "--server", server.url, "--model", "tiny"]
    try:
        with pytest.raises(ChatError, match="the budget of 500 tokens is used up"):
            main(["--agents", "chat_planner_critic", *few, "--max_total_tokens", "500"])
    finally:
        server.close()


@pytest.mark.parametrize("agent", ["verl_agent", "memharness"])
def test_agents_that_think_in_tags_get_the_prompts_of_the_command(agent, tmp_path):
    prompts = tmp_path / "prompts.txt"
    first, later = "Start: {current_observation}", "Step {current_step}: {action_history} {current_observation}"
    prompts.write_text(f"{first}\n---\n{later}\n")
    server = Server(lambda body: reply("<think>So.</think><action>look</action>"))
    few = ["--tasks", "generated", "--num_tasks", "1", "--max_steps", "4", "--repeat", "1", "--model", "tiny"]
    try:
        report = main(
            ["--agents", agent, *few, "--server", server.url, "--prompt_file", str(prompts), "--history", "1",
             "--reply_tokens", "64"]
        )  # fmt: skip
    finally:
        server.close()
    bodies = [body for _, _, body in server.requests if len(body["messages"]) == 1]
    texts = [body["messages"][0]["content"] for body in bodies]
    assert texts[0].startswith("Start: ")
    assert texts[3].startswith("Step 4: [Observation 3: ")
    assert {body["max_tokens"] for body in bodies} == {64}
    assert report["prompts"]["history"] == 1


def test_recorded_calls_give_the_committed_rows_again(alfworld_data, tmp_path, monkeypatch):
    """Fails when prompts change: then docs/baselines.md tells of agents that are no more; record them anew."""
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(alfworld_data.parents[1]))
    monkeypatch.chdir(tmp_path)
    result, calls = json.loads(RESULT.read_text()), tmp_path / "calls.jsonl"
    calls.write_bytes(gzip.decompress(RESULT.with_suffix(".calls.jsonl.gz").read_bytes()))
    command = shlex.split(result["command"])[2:]
    command = command[: command.index("--record")]
    again = main([*command, "--record", str(calls)])
    assert again["usage"]["replayed"] == again["usage"]["calls"] == result["usage"]["calls"]
    for agent, (row,) in result["agents"].items():
        assert [again["agents"][agent][0][name] for name in ("success", "steps")] == [row["success"], row["steps"]]


def test_what_is_missing_is_said():
    with pytest.raises(
        InvalidInputError, match="--agents chat_planner_critic: expected --model, and --server or --record"
    ):
        main(["--agents", "chat_planner_critic", "--tasks", "generated", "--num_tasks", "1"])
    with pytest.raises(InvalidInputError, match=r"--prices: expected two numbers"):
        main(["--agents=chat_planner_critic", "--record", "x", "--model", "x", "--prices", "1", "--tasks", "generated"])
    with pytest.raises(InvalidInputError, match=r"agents: expected one of planner, react, human, got none"):
        main(["--config=memento", "--agents"])


def test_a_real_model_plays_and_is_replayed(short_chat_server, tmp_path):
    """Two layers of SmolLM2 by llama.cpp, whatever they score; they also write the memory."""
    few = ["--tasks", "generated", "--num_tasks", "1", "--max_steps", "1", "--repeat", "1", "--model", "smollm2"]
    record = ["--agents", "chat_planner_critic", *few, "--record", str(tmp_path / "calls.jsonl")]
    record += ["--memory_model", "smollm2"]
    report = main([*record, "--server", f"{short_chat_server}/v1"])
    assert report["usage"]["calls"] >= 3
    assert report["memory_model"]["usage"]["calls"] >= 1
    assert played(main(record)) == played(report)

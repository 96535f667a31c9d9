"""A model plays MEMENTO's tables, sums up its memories and keeps the user's profile; its recording gives all again."""

from __future__ import annotations

import dataclasses
import json

import memento_house
import pytest
from chat_answers import Server, reply

from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.language import ChatError
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.worlds.memento import generator
from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep
from experiments.evaluate import main
from experiments.solvers.memento.variants import summarised, written


@pytest.fixture(autouse=True)
def _local(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    folder = memento_house.write_household(tmp_path_factory.mktemp("house"))
    generator.write(generator.generate(folder, 4, seed=2), folder, folder)
    few = ["--num_tasks", "2", "--embedder", "lexical", "--max_steps", "3", "--triples_per_scene", "1", "--model", "m"]
    return ["--config=memento", "--data", str(folder), "--agents", "react", *few]


TEA = {"subtype": "user_pattern", "alias": "tea time"}
TOLD = TEA | {"description": "A cup on a table.", "objects": [], "patterns": []}


def answers(body):
    """Explores, then says Done; writes one thing for each question of the memory."""
    system, asked = body["messages"][0]["content"], body["messages"][-1]["content"]
    if "Sum it up" in system:
        return reply(json.dumps({"summary": "The cup went\nto table_2."}))
    if "list what it tells" in system:
        return reply(json.dumps({"knowledge": [TOLD]}))
    if "say for each new one" in system:
        changes = [{"new": 0, "do": "update", "id": json.loads(asked)["known"][0]["id"]}]
        return reply(json.dumps({"changes": changes}))
    if "refers to" in system:
        return reply(json.dumps({"references": [TEA]}))
    if "plain words" in system:
        known = [one["id"] for one in json.loads(asked)["known"]]
        texts = [{"id": one, "text": "For tea a cup stands on table_2."} for one in known]
        return reply(json.dumps({"descriptions": texts}))
    room = asked.partition("Furniture:\n")[2].partition(":")[0] if len(body["messages"]) == 2 else ""
    return reply(f"Thought: so.\n{f'Explore[{room}]' if room else 'Done[]'}\nAssigned!")


def reported(report):
    """What was played, without times."""
    tables = {name: report[name] for name in ("stages", "formats", "top_k", "profile") if name in report}
    return tables, [dataclasses.replace(one, milliseconds=0) for one in episodes_of(report)]


def test_tables_summaries_and_profile_by_a_model_side_by_side(arguments, tmp_path):
    record = ["--record", str(tmp_path / "calls.jsonl"), "--profile", "--tables", "formats", "top_k", "profile"]
    server = Server(answers)
    try:
        report = main([*arguments, *record, "--server", server.url, "--parallel", "4"])
    finally:
        server.close()
    assert {"formats", "top_k", "profile"} <= report.keys()
    assert report["protocol"]["profile"]
    assert reported(main([*arguments, *record])) == reported(report)
    prompts = [body["messages"][1]["content"] for _, _, body in server.requests]
    assert any("What is known of the user:\n- For tea a cup stands on table_2." in text for text in prompts)
    assert any("The cup went to table_2." in text for text in prompts)
    sums = [text for _, _, body in server.requests for text in [body["messages"][0]["content"]] if "Sum it up" in text]
    assert 0 < len(sums) <= report["stages"]["acquisition"]["episodes"]  # each memory once
    assert report["usage"]["calls"] == len(server.requests)


def test_the_main_table_alone_is_the_default_and_has_no_profile(arguments, tmp_path):
    server = Server(answers)
    try:
        report = main([*arguments, "--server", server.url])
    finally:
        server.close()
    assert "formats" not in report
    assert all("What is known of the user" not in str(body["messages"]) for _, _, body in server.requests)


def test_a_budget_that_is_used_up_by_the_profile_ends_the_command(arguments):
    def costly(body):
        status, data, headers = answers(body)
        is_act = "Assigned!" in data["choices"][0]["message"]["content"]
        return status, data | {"usage": {"prompt_tokens": 1 if is_act else 10_000, "completion_tokens": 1}}, headers

    server = Server(costly)
    try:
        with pytest.raises(ChatError, match="the budget of 9000 tokens is used up"):
            main([*arguments, "--server", server.url, "--profile", "--max_total_tokens", "9000"])
    finally:
        server.close()


def test_a_summary_that_cannot_be_used_is_made_by_rules():
    trace = Trace("1", "s", "Bring the mug.", (TraceStep("Why.", "Pick[mug_0]", "Result: Successful execution!"),))
    said = iter(['{"summary": "Took mug_0."}', "no idea"])
    show = written(ChatWriter(lambda messages: next(said)))
    assert show(trace).note == show(trace).note == "Took mug_0."
    other = dataclasses.replace(trace, episode_id="2")
    assert show(other) == summarised(other)


def test_a_real_model_plays_with_its_own_profile_and_is_replayed(chat_server, arguments, tmp_path):
    """SmolLM2 by llama.cpp, whatever it says; what it says differs between processors."""
    calls = tmp_path / "calls.jsonl"
    few = [*arguments, "--num_tasks", "1", "--max_steps", "1", "--k", "1", "--profile", "--record", str(calls)]
    report = main([*few, "--server", f"{chat_server}/v1"])
    systems = [json.loads(line)["request"]["messages"][0]["content"] for line in calls.read_text().splitlines()]
    for asked in ("a robot in a house", "list what it tells", "refers to"):
        assert any(asked in system for system in systems)
    assert reported(main(few)) == reported(report)

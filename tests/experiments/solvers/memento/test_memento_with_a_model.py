"""A model plays MEMENTO's tables, sums up its memories and keeps the user's profile; its recording gives all again."""

from __future__ import annotations

import dataclasses
import io
import json

import memento_house
import pytest
from chat_answers import Server, reply
from small_encoder import write_encoder

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.worlds.memento import generator
from embodied_mem.worlds.memento.data import load_records, related_ids
from embodied_mem.worlds.memento.traces.trace import Trace, TraceStep
from experiments.evaluate import main
from experiments.solvers.memento.chat_retrieval import ChatRetrieval
from experiments.solvers.memento.retrieval import TraceMemory
from experiments.solvers.memento.variants import summarised, written


@pytest.fixture(autouse=True)
def _local(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder"))


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


def retrieved(arguments, strategy, said, record):
    """The report with a strategy by the model, and what it was asked; its recording gives the same."""

    def answered(body):
        found = said(body["messages"][0]["content"], body["messages"][-1]["content"])
        return reply(json.dumps(found)) if found else answers(body)

    server = Server(answered)
    more = ["--num_tasks", "6", "--max_steps", "1", "--strategy", strategy, "--tables", "realistic"]
    try:
        report = main([*arguments, *more, "--record", str(record), "--server", server.url, "--parallel", "4"])
    finally:
        server.close()
    again = main([*arguments, *more, "--record", str(record)])
    assert (again["line"], again["realistic"]) == (report["line"], report["realistic"])
    return report, [body["messages"] for _, _, body in server.requests]


@pytest.mark.parametrize("best", [10, 0])
def test_a_model_reranks(arguments, best, tmp_path):
    """Rated best, the needed memories are found; rated worst, they are not."""
    folder = arguments[arguments.index("--data") + 1]
    told = {str(record["episode_id"]): record["instruction"] for record in load_records("acquisition", folder)}
    singles = load_records("single", folder)[:6]
    needed = {(record["instruction"], told[number]) for record in singles for number in related_ids(record)}

    def said(system, asked):
        pair = tuple(line.partition(": ")[2] for line in asked.split("\n\n"))
        return {"score": best if pair in needed else 5} if "Rate from 0 to 10" in system else None

    report, requests = retrieved(arguments, "reranker", said, tmp_path / "calls.jsonl")
    assert report["line"]["missing_at_3"] == (0 if best else 100)
    rated = [messages[-1]["content"] for messages in requests if "Rate from 0 to 10" in messages[0]["content"]]
    assert len(rated) == len(set(rated)) > len(needed)


def test_a_model_expands_queries(arguments, tmp_path):
    """Its sentences are what is searched for; without usable ones, rules write them."""
    folder = arguments[arguments.index("--data") + 1]
    singles = load_records("single", folder)[:6]
    told = {str(record["episode_id"]): record["instruction"] for record in load_records("acquisition", folder)}
    words = {record["instruction"]: told[related_ids(record)[0]] for record in singles}

    def said(system, asked):
        is_query = "may have said earlier" in system
        return {"sentences": [words.get(asked.partition(": ")[2], "")] * 2} if is_query else None

    report, requests = retrieved(arguments, "query_expansion", said, tmp_path / "calls.jsonl")
    assert report["line"]["missing_at_3"] == 0
    assert sum("may have said earlier" in messages[0]["content"] for messages in requests) >= len(singles)
    useless = ChatRetrieval(ChatWriter(lambda messages: "no idea"))
    traces = [Trace(str(number), "s", text) for number, text in enumerate(told.values())]
    memories = TraceMemory(traces), TraceMemory(traces, model=useless)
    for strategy in ("query_expansion", "reranker"):
        scores = [memory.scores(singles[0]["instruction"], "s", strategy) for memory in memories]
        assert (scores[0] == scores[1]).all() == (strategy == "query_expansion")
    assert useless.writer.malformed == 1 + min(len(traces), 10)
    order = memories[1].retrieve(singles[0]["instruction"], "s", 3, "reranker")
    assert order == memories[0].retrieve(singles[0]["instruction"], "s", 3, "similarity")


def test_the_papers_settings(arguments, encoder_folder, tmp_path):
    server = Server(answers)
    more = ["--preset", "paper", "--embedder", str(encoder_folder), "--max_steps", "1", "--server", server.url]
    try:
        report = main([*arguments, *more])
    finally:
        server.close()
    config = report["config"]
    assert (config["strategy"], config["k"]) == ("similarity", 5)
    assert report["embedder"].startswith("minilm-12-")
    assert {(*body["stop"], body["temperature"]) for _, _, body in server.requests} == {("Assigned!", 0)}
    with pytest.raises(InvalidInputError, match="preset: expected --embedder with the folder of all-mpnet-base-v2"):
        main([*arguments, "--preset", "paper"])
    with pytest.raises(InvalidInputError, match="embedder: expected one of auto, minilm, lexical or a folder"):
        main([*arguments, "--embedder", "nowhere"])


def test_a_person_is_shown_the_memories(arguments, monkeypatch, capsys):
    """Of the planner's runs; the end of the input ends each task."""
    at = arguments.index("--agents")
    monkeypatch.setattr("sys.stdin", io.StringIO("Wait[]\n"))
    report = main(
        [*arguments[:at], "--agents", "human", *arguments[at + 2 : -2], "--num_tasks", "1", "--max_steps", "30"]
    )
    shown = capsys.readouterr().out
    folder = arguments[arguments.index("--data") + 1]
    told = {str(record["episode_id"]): record["instruction"] for record in load_records("acquisition", folder)}
    first = load_records("single", folder)[0]
    before, _, after = shown.partition(first["instruction"])
    assert "--- memory 1 of " in before
    assert all(told[number] in before for number in related_ids(first))
    assert "Result: " in after
    cycles = {one.subset: one.steps for one in episodes_of(report) if one.agent == "human"}
    assert cycles["single"] == 2
    assert report["stages"]["acquisition"]["sr"] == 1


def test_a_summary_that_cannot_be_used_is_made_by_rules():
    trace = Trace("1", "s", "Bring the mug.", (TraceStep("Why.", "Pick[mug_0]", "Result: Successful execution!"),))
    said = iter(['{"summary": "Took mug_0."}', "no idea"])
    show = written(ChatWriter(lambda messages: next(said)))
    assert show(trace).note == show(trace).note == "Took mug_0."
    other = dataclasses.replace(trace, episode_id="2")
    assert show(other) == summarised(other)

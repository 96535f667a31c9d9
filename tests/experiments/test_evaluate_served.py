"""An executor behind a server: what it is told, deliveries scored by one command, and the recording played again."""

from __future__ import annotations

import dataclasses
import gzip
import json
import pathlib
import shutil
import threading

import numpy as np
import pytest
from chat_answers import Server, reply

from embodied_mem.agents.rollout import row_keys
from embodied_mem.compiler.executor_format import command_in
from embodied_mem.compiler.output_grammar import render_output
from embodied_mem.compiler.served_executor import ServedExecutor
from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.evaluation.benchmark import episodes_of
from embodied_mem.evaluation.command import Models
from embodied_mem.language import ChatError, ChatReply, OpenAIChatModel, RecordedChatModel, Usage
from embodied_mem.language.chat import UsageMeter
from embodied_mem.language.images import png, said_parts
from embodied_mem.memory import Experiences
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.tasks import bank_of, sources_of
from embodied_mem.worlds.alfworld.env import find_games
from experiments.evaluate import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unoptimised")]


@pytest.fixture(autouse=True)
def _local(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """What the teacher wins of generated games, in the homes of those that are scored."""
    [source] = sources_of(WorldConfig(num_train=32, num_valid=1), 0)
    path = tmp_path_factory.mktemp("bank") / "bank.jsonl.gz"
    bank_of(source.envs(source.sides()[0], num_envs=32), 32, lambda _: source.teacher(), seed=0).save(path)
    return str(path)


class Echo:
    """Counts: each answer is the number of the call, after a wait that turns the order around."""

    name = "echo"

    def __init__(self):
        self.meter, self.lock, self.asked = UsageMeter(), threading.Lock(), []
        self.running = self.most = self.calls = 0

    def complete(self, messages, *, max_tokens=512, temperature=0.0, **settings):
        with self.lock:
            self.calls, self.running = self.calls + 1, self.running + 1
            self.most, number = max(self.most, self.running), self.calls
            self.asked.append((messages, max_tokens, temperature))
        threading.Event().wait(0.02)
        with self.lock:
            self.running -= 1
        return ChatReply(f"> `go to desk {number}`.\nlook", Usage(10 + number, number))


def test_a_model_is_told_the_world_and_the_prompt_and_its_first_line_is_the_command(tmp_path):
    model, prompts = Echo(), ["task: a\n>", "task: b\n>", "task: a\n>", "task: a\n>"]
    path = tmp_path / "calls.jsonl"
    recorded = RecordedChatModel(model, path)
    turn = ServedExecutor(recorded, "the world", temperature=0.5, max_parallel=4).act(prompts, None)
    assert sorted(turn.actions) == [f"go to desk {n}" for n in (1, 2, 3, 4)]
    assert [tokens - 10 for tokens in turn.tokens_in] == turn.tokens_out
    assert model.most == 2  # equal prompts wait for each other, so that the recording knows whose answer is whose
    assert turn.tokens_out[0] < turn.tokens_out[2] < turn.tokens_out[3]
    messages, max_tokens, temperature = model.asked[0]
    assert messages[0] == {"role": "system", "content": "the world"}
    assert messages[1]["content"] in ("task: a\nnext command:", "task: b\nnext command:")
    assert (max_tokens, temperature) == (24, 0.5)
    again = ServedExecutor(RecordedChatModel(None, path, name="echo"), "the world", temperature=0.5)
    assert dataclasses.replace(again.act(prompts, None), decode_s=0) == dataclasses.replace(turn, decode_s=0)
    with pytest.raises(ChatError, match="not recorded"):
        again.act(prompts[:1], None)
    with pytest.raises(InvalidInputError, match="soft: expected none"):
        again.act(prompts[:1], None, [object()])


def test_choices_are_an_enumeration_and_the_quoted_answer_is_the_command():
    class Chooser(Echo):
        def complete(self, messages, *, response_format=None, **settings):
            self.asked.append(response_format)
            chosen = response_format["json_schema"]["schema"]["enum"][-1]
            return ChatReply(f'"{chosen}" \n', Usage(10, 5))

    model = Chooser()
    turn = ServedExecutor(model, "the world").act(["a\n>", "b\n>"], None, None, [["look", "go to desk 1"], ["wait"]])
    assert turn.actions == ["go to desk 1", "wait"]
    schemas = [asked["json_schema"]["schema"] for asked in model.asked]
    assert {"type": "string", "enum": ["wait"]} in schemas


def test_pictures_are_sent_to_a_model_that_sees_and_make_another_request(tmp_path):
    pictures = [png(np.full((4, 4, 3), shade, np.uint8)) for shade in (0, 90, 200)]
    rows = [pictures[:1], pictures[1:], pictures[:1], ()]
    server, path = Server(lambda body: reply(f"look {len(body['messages'][-1]['content'])}")), tmp_path / "calls.jsonl"
    try:
        chat = RecordedChatModel(OpenAIChatModel(server.url, "eye"), path)
        seen = ServedExecutor(chat, "the world", sees=True).act(["a\n>"] * 4, None, pictures=rows)
        sent = [said_parts(body["messages"][-1]["content"], "sent") for _, _, body in server.requests]
        blind = ServedExecutor(OpenAIChatModel(server.url, "eye"), "the world").act(["a\n>"], None, pictures=rows[:1])
        assert server.requests[-1][2]["messages"][-1]["content"] == "a\nnext command:"
    finally:
        server.close()
    assert sorted(map(len, sent)) == [1, 2, 2, 3]
    assert all(["a\nnext command:", *row] in sent for row in rows)  # the very bytes, behind the text
    assert seen.actions[:3] == ["look 2", "look 3", "look 2"]
    assert blind.actions == seen.actions[3:] == [f"look {len('a next command:')}"]
    assert "base64" not in path.read_text()
    again = ServedExecutor(RecordedChatModel(None, path, name="eye"), "the world", sees=True)
    assert again.act(["a\n>"] * 2, None, pictures=[rows[1], rows[0]]).actions == ["look 3", "look 2"]
    with pytest.raises(ChatError, match="not recorded"):
        again.act(["a\n>"], None, pictures=[pictures[2:]])
    with pytest.raises(InvalidInputError, match="expected the bytes of a PNG or JPEG file"):
        again.act(["a\n>"], None, pictures=[[b"GIF89a"]])


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ("go to desk 1", "go to desk 1"), ("\n\n > take  mug 1 from desk 1.\nbecause", "take mug 1 from desk 1"),
        ('"look"', "look"), ("```\nlook\n```", "look"), (" \n", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_command_in_an_answer(answer, command):
    assert command_in(answer) == command


def obeys(body):
    """Gives its hint as command, and looks where there is none."""
    lines = body["messages"][-1]["content"].split("\n")
    return reply(next((line[6:] for line in lines if line.startswith("hint: ")), "look"), 100, 5)


def played(report):
    return [
        dataclasses.replace(
            episode, milliseconds=0, more={name: n for name, n in episode.more.items() if not name.endswith("_ms")}
        )
        for episode in episodes_of(report)
    ]


def test_one_command_scores_deliveries_and_its_recording_gives_them_again(bank, tmp_path, capsys):
    """Who does what the hint says is as good as carrying out guidance by rule, if the hint says the command."""
    few = ["--tasks", "generated", "--num_tasks", "4", "--max_steps", "12", "--seeds", "0", "--temperature", "0"]
    few += ["--bank_file", bank, "--model", "tiny", "--out", str(tmp_path / "out"), "--prices", "1", "2"]
    few += ["--record", str(tmp_path / "calls.jsonl")]
    all_of_them = ["--deliveries", "none", "static", "compiled_text", "guidance_only", "teacher"]
    all_of_them += ["--guidance", "place", "command", "short", "subgoal"]
    server = Server(obeys)
    try:
        report = main([*few, *all_of_them, "--server", server.url])
    finally:
        server.close()
    rows = report["deliveries"]
    levels = ("", " guidance=command", " guidance=short", " guidance=subgoal")
    told = [f"{name}{level}" for name in ("compiled_text", "guidance_only", "teacher") for level in levels]
    assert list(rows) == ["none", "static", *told]
    by = {name: [(e.task, e.won, e.progress, e.steps) for e in episodes_of(report) if e.agent == name] for name in rows}
    for level in levels[1:3]:
        assert by[f"compiled_text{level}"] == by[f"guidance_only{level}"]
    assert by["guidance_only guidance=command"] == by["guidance_only"]  # the rules know what to do at a place
    assert rows["guidance_only"]["success"] > rows["none"]["success"] == 0
    for level in levels[2:]:  # a command without its place is none, and without any place nobody goes anywhere
        assert rows[f"guidance_only{level}"]["success"] == 0
    assert rows["guidance_only guidance=short"]["refused"] > 0
    assert rows["guidance_only guidance=subgoal"]["refused"] == 0
    place, command = rows["compiled_text"], rows["compiled_text guidance=command"]
    assert place["refused"] > 0.9 * place["guided"] > 0  # a place is no command
    assert command["refused"] < 0.1 * command["guided"]
    assert rows["none"]["refused"] == 0  # it looks
    assert rows["none"]["executor_tokens_per_step"] == 105
    told = [(b["messages"][0]["content"], b["messages"][-1]["content"], b["stop"]) for _, _, b in server.requests]
    assert all("move THING to PLACE" in system and stop == ["\n"] for system, _, stop in told)
    assert sum("memory:" in user for _, user, _ in told) == 48  # static, which wins nothing
    hints = {line for _, user, _ in told for line in user.split("\n") if line.startswith("hint: ")}
    assert any(line.startswith("hint: go to ") for line in hints)
    assert any(line.startswith("hint: take ") and " from " not in line for line in hints)
    assert any(line.startswith("hint: find ") and " in " in line for line in hints)
    assert any(line.startswith("hint: find ") and " in " not in line for line in hints)
    assert report["usage"]["calls"] == len(server.requests)
    assert "Chat model tiny" in capsys.readouterr().out
    again = main([*few, "--deliveries", "none", "compiled_text", "--guidance", "place", "command"])
    some = ("none", "compiled_text", "compiled_text guidance=command")
    assert played(again) == [episode for episode in played(report) if episode.agent in some]
    assert again["usage"]["replayed"] == again["usage"]["calls"] == sum(episode.steps for episode in played(again))


def test_a_served_compiler_is_as_good_as_the_model_behind_the_server(bank, tmp_path, capsys):
    """Behind it is the trained compiler, so that the row is that of its guidance without soft tokens."""
    _, compiler = Models("alfworld_judging").load().acting(temperature=0.0, batch_buckets=(1,))
    lock, keys = threading.Lock(), row_keys([0], [0])

    def compiled(body):
        system, user = (message["content"] for message in body["messages"])
        assert "do: GUIDANCE" in system
        with lock:
            [one] = compiler.compile([user], keys, soft=False)
        return reply(f"<think>What do I know?</think>\n```\n{render_output(one.output)}\n```", 300, 20)

    few = ["--tasks", "generated", "--num_tasks", "4", "--max_steps", "12", "--seeds", "0", "--temperature", "0"]
    few += ["--bank_file", bank, "--out", str(tmp_path / "out"), "--compiler_model", "clever"]
    few += ["--record", str(tmp_path / "calls.jsonl"), "--trace", str(tmp_path / "trace.jsonl")]
    names, server = ["compiled_text", "compiled_chat", "lifelong_compiled_chat"], Server(compiled)
    try:
        report = main([*few, "--deliveries", *names, "--server", server.url])
    finally:
        server.close()
    by = {
        name: [(e.task, e.won, e.progress, e.steps) for e in episodes_of(report) if e.agent == name] for name in names
    }
    assert by["compiled_chat"] == by["compiled_text"] == by["lifelong_compiled_chat"]
    text, chat = report["deliveries"]["compiled_text"], report["deliveries"]["compiled_chat"]
    same = ("guided", "cited", "noaction", "hallucinations_per_100_steps", "refused")
    assert {name: chat[name] for name in same} == {name: text[name] for name in same}
    assert chat["guided"] > 0
    assert chat["parse_rate"] == text["parse_rate"] == 1
    assert chat["compiler_tokens_per_step"] == 320
    assert report["compiler_model"]["usage"]["calls"] == len(server.requests)
    assert "Chat model clever" in capsys.readouterr().out
    again = main([*few, "--deliveries", "compiled_chat"])
    assert played(again) == [episode for episode in played(report) if episode.agent == "compiled_chat"]
    assert again["compiler_model"]["usage"]["replayed"] == again["compiler_model"]["usage"]["calls"]


def test_a_real_model_compiles_and_acts(short_chat_server, bank, tmp_path):
    """Two layers of SmolLM2 by llama.cpp compile for themselves as executor, whatever they score."""
    few = ["--tasks", "generated", "--num_tasks", "1", "--max_steps", "2", "--seeds", "0", "--temperature", "0"]
    few += ["--deliveries", "compiled_chat", "--compiler_model", "smollm2", "--bank_file", bank, "--model", "smollm2"]
    few += ["--record", str(tmp_path / "calls.jsonl"), "--out", str(tmp_path / "out")]
    report = main([*few, "--server", f"{short_chat_server}/v1"])
    assert report["compiler_model"]["usage"]["calls"] == report["usage"]["calls"] == 2
    assert played(main(few)) == played(report)


def test_replies_in_tags_are_scored_with_memory_in_the_prompt_and_given_again(bank, tmp_path):
    few = ["--tasks", "generated", "--num_tasks", "2", "--max_steps", "4", "--seeds", "0", "--temperature", "0"]
    few += ["--bank_file", bank, "--model", "tiny", "--out", str(tmp_path / "out"), "--format", "think_action"]
    few += ["--record", str(tmp_path / "calls.jsonl"), "--deliveries", "none", "static", "--history", "1"]
    server = Server(lambda body: reply("<think>I look.</think><action>Look</action>"))
    try:
        report = main([*few, "--server", server.url])
    finally:
        server.close()
    assert {episode.steps for episode in episodes_of(report)} == {4}
    assert report["deliveries"]["none"]["refused"] == 0  # `look` is a command, the whole reply is none
    texts = [body["messages"] for _, _, body in server.requests]
    assert all(len(messages) == 1 and messages[0]["role"] == "user" for messages in texts)
    later = [messages[0]["content"] for messages in texts if "Now, at step 4" in messages[0]["content"]]
    assert all("[Observation 3: " in text and "[Observation 2: " not in text for text in later)
    assert sum("What you remember:" in text for text in later) == len(later) / 2 == 2
    assert played(main(few)) == played(report)


def test_a_bank_is_made_only_where_a_delivery_reads_it(tmp_path, monkeypatch):
    """The weights' training games are not installed here."""
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(tmp_path))
    few = ["--tasks", "generated", "--num_tasks", "1", "--max_steps", "2", "--seeds", "0", "--model", "tiny"]
    few += ["--out", str(tmp_path / "out"), "--format", "think_action"]
    server = Server(lambda body: reply("<action>look</action>"))
    try:
        few += ["--server", server.url]
        report = main([*few, "--deliveries", "none"])
        with pytest.raises(DataNotFoundError, match="memory bank is made of the training games"):
            main([*few, "--deliveries", "none", "static"])
    finally:
        server.close()
    assert report["bank"] is report["protocol"]["bank"] is None
    assert [episode.steps for episode in played(report)] == [2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--deliveries", "none", "compiled", "--record", "x"], "with --model, got compiled"),
        (["--record", "x"], "with --model, got none"),
        (["--deliveries", "none"], "--deliveries with --model: expected --model, and --server or --record"),
        (
            ["--deliveries", "compiled_chat", "--record", "x"],
            "--compiler_model: expected it with --deliveries compiled_chat",
        ),
        (
            ["--deliveries", "compiled_chat", "--record", "x", "--compiler_model", "x", "--hint_tokens", "3"],
            "'compiled_chat': expected all tokens of its hints",
        ),
        (["--deliveries", "none", "--record", "x", "--sees"], "--sees: expected weights of a world with pictures"),
        (
            ["--deliveries", "none", "--record", "x", "--spread"],
            "--spread: expected deliveries, --num_tasks and a split",
        ),
        (["--deliveries", "teacher", "--guidance", "all", "--record", "x"], "guidance: expected one of subgoal, place"),
    ],
)
def test_what_cannot_be_played_is_said(given, message, bank):
    few = ["--tasks", "generated", "--num_tasks", "1", "--bank_file", bank, "--model", "tiny"]
    with pytest.raises(InvalidInputError, match=message):
        main([*few, *given])


def walks(body):
    """Goes to the places of the room one after the other."""
    text = body["messages"][-1]["content"][0]["text"]
    [room] = [line[6:].split("; ") for line in text.split("\n") if line.startswith("room: ")]
    return reply(f"go to {room[text.count('> go')]}")


def test_a_model_that_sees_is_shown_the_newest_picture_of_each_episode(bank, tmp_path):
    """Weights of a world whose texts are drawn; these have never seen a picture, which nobody asks."""
    weights, server = tmp_path / "weights", Server(walks)
    shutil.copytree(EXPERIMENTS / "weights/alfworld_judging", weights)
    config = json.loads((weights / "config.json").read_text())
    config["world"]["drawn"] = True
    (weights / "config.json").write_text(json.dumps(config))
    few = ["--tasks", "generated", "--num_tasks", "2", "--max_steps", "3", "--seeds", "0", "--deliveries", "none"]
    few += ["--weights", str(weights), "--bank_file", bank, "--model", "tiny", "--sees", "--batch_size", "1"]
    few += ["--record", str(tmp_path / "calls.jsonl"), "--out", str(tmp_path / "out")]
    try:
        report = main([*few, "--server", server.url])
    finally:
        server.close()
    assert report["sees"]
    sent = [said_parts(body["messages"][-1]["content"], "sent") for _, _, body in server.requests]
    assert [len(parts) for parts in sent] == [2] * 6  # the text, and one picture: no earlier one
    assert len({picture for _, picture in sent}) == 6  # each step's own, as the robot goes on
    assert played(main(few)) == played(report)


EXPERIMENTS = pathlib.Path(__file__).parents[2] / "experiments"
RESULT = EXPERIMENTS / "results/alfworld_qwen15.json"


def test_the_recording_of_a_published_model_gives_its_result_again(alfworld_data, bank, tmp_path, monkeypatch):
    """Two games of the committed row without memory, whose prompts depend on no weights and no bank.

    Fails when prompts change: then the row in docs/results/executors.md is of an agent that is no more; record it anew.
    """
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(alfworld_data.parents[1]))
    result, calls = json.loads(RESULT.read_text()), tmp_path / "calls.jsonl"
    calls.write_bytes(gzip.decompress(RESULT.with_suffix(".calls.jsonl.gz").read_bytes()))
    few = ["--tasks", "valid_seen", "--num_tasks", "2", "--max_steps", "30", "--seeds", "0", "--temperature", "0"]
    few += ["--deliveries", "none", "--bank_file", bank, "--model", "qwen2.5-coder-1.5b-instruct"]
    few += ["--spread"] * result["spread"]
    again = main([*few, "--record", str(calls), "--out", str(tmp_path / "out")])
    first = [episode for episode in played(result) if episode.agent == "none"][:2]
    counted = set(first[0].more)  # a later version counts more
    assert [dataclasses.replace(one, more={name: one.more[name] for name in counted}) for one in played(again)] == first
    assert again["usage"]["replayed"] == again["usage"]["calls"] == sum(episode.steps for episode in first) > 0


def test_games_are_spread_over_the_kinds_of_a_split(alfworld_data, bank, tmp_path, monkeypatch):
    """A recording of less goes on with more, since the first games stay the first."""
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(alfworld_data.parents[1]))
    server = Server(reply("look"))
    few = ["--tasks", "valid_seen", "--max_steps", "1", "--seeds", "0", "--temperature", "0", "--deliveries", "none"]
    few += ["--bank_file", bank, "--model", "tiny", "--out", str(tmp_path / "out"), "--server", server.url, "--spread"]
    try:
        played = [[one.task for one in episodes_of(main([*few, "--num_tasks", count]))] for count in ("6", "8")]
    finally:
        server.close()
    kinds = [task.partition("-")[0] for task in played[1]]
    assert len(set(kinds[:6])) == 6
    assert kinds[6:] == kinds[:2]
    assert played[1][:6] == played[0]
    split = [game.parents[1].name + "/" + game.parents[0].name for game in find_games("valid_seen")]
    found = [next(i for i, name in enumerate(split) if name in task) for task in played[1]]
    assert found[:6] == sorted(found[:6])
    assert found[6] == found[0] + 1


def remembers(body):
    """Keeps the same fact of every episode, and looks."""
    if "Answer with JSON only" not in body["messages"][0]["content"]:
        return reply("look", 100, 5)
    record = {"id": "", "kind": "semantic", "content": "mug was in desk 1"}
    return reply(json.dumps({"records": [record]}), 50, 7)


def test_a_model_answers_what_a_memory_method_asks_and_is_played_again(bank, tmp_path):
    few = ["--tasks", "generated", "--num_tasks", "2", "--max_steps", "3", "--seeds", "0", "--temperature", "0"]
    few += ["--deliveries", "none", "langmem", "--bank_file", bank, "--model", "tiny", "--memory_model", "small"]
    few += ["--out", str(tmp_path / "out"), "--record", str(tmp_path / "calls.jsonl")]
    server = Server(remembers)
    try:
        report = main([*few, "--server", server.url])
    finally:
        server.close()
    row = report["deliveries"]["langmem"]  # and not "(rule extraction)"
    episodes = len(Experiences.load(bank))
    assert row["observed"][-1]["episodes"] == row["observed"][-1]["calls"] == episodes
    assert row["observed"][-1]["tokens_sent"] == 50 * episodes
    assert row["observed"][-1]["tokens_received"] == 7 * episodes
    assert report["memory_model"]["chat_model"] == "small"
    assert report["memory_model"]["usage"]["calls"] == episodes
    assert report["usage"]["prompt_tokens"] == 100 * 2 * 2 * 3  # the executor's: rows, tasks, steps
    assert row["executor_tokens_per_step"] == 105
    again = main(few)
    assert played(again) == played(report)
    assert again["memory_model"]["usage"]["replayed"] == episodes


def test_a_served_compiler_is_scored_in_a_world_with_other_words(eb_habitat_data, tmp_path, monkeypatch):
    monkeypatch.setenv("EMBODIED_MEM_DATA", str(eb_habitat_data.parent))
    server = Server(reply("experience\ndo: find apple in table 1", 90, 9))
    few = ["--config=eb_habitat", "--agents", "--deliveries", "compiled_chat", "--subsets", "base", "--num_tasks", "1"]
    few += ["--training_tasks", "2", "--seeds", "0", "--compiler_model", "tiny"]
    few += ["--weights", "experiments/weights/eb_habitat", "--record", str(tmp_path / "calls.jsonl")]
    try:
        report = main([*few, "--server", server.url])
    finally:
        server.close()
    row = report["subsets"]["base"]["compiled_chat"]
    assert row["noaction"] == 0
    assert row["tasks"] == 1
    assert report["compiler_model"]["usage"]["calls"] == len(server.requests) == episodes_of(report)[0].more["outputs"]
    assert played(main(few)) == played(report)

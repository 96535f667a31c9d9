"""`evaluate.py --backend` has a simulator play what is scored: a chat agent with a perceiver, on stand-ins."""

from __future__ import annotations

import dataclasses
import json

import pytest
from chat_answers import Server, reply

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import episodes_of
from experiments.evaluate import main

STEPS = {
    "eb_alfred": [{"skill": "find", "thing": "Apple"}, {"skill": "pick_up", "thing": "Apple"}],
    "eb_habitat": [{"skill": "navigate", "place": "sofa"}],
}


def answers(world):
    def answered(body):
        system = body["messages"][0]["content"]
        if "the eyes of a household robot" in system:
            seen = {
                "summary": "An apple is here.",
                "facts": [["apple", "on", "table", 0.9]],
                "outcome": "success",
                "ended": [],
            }
            return reply(json.dumps(seen))
        if "You are the planner" in system:
            return reply(json.dumps({"reasoning": "", "done": "", "left": "", "steps": STEPS[world]}))
        return reply(json.dumps({"ok": True, "reason": ""}) if "You are the critic" in system else "an apple")

    return answered


@pytest.mark.parametrize("world", ["eb_alfred", "eb_habitat"])
def test_a_simulator_plays_what_is_scored(world, checkouts, monkeypatch, tmp_path):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = str(getattr(checkouts, world))
    arguments = [f"--config={world}", "--backend", "embodiedbench", "--folder", folder, "--resolution", "300"]
    arguments += ["--subsets", "base", "--num_tasks", "2", "--agents", "chat_planner_critic", "--parallel", "2"]
    arguments += ["--model", "tiny", "--perceiver_model", "eye", "--record", str(tmp_path / "calls.jsonl")]
    server = Server(answers(world))
    try:
        report = main([*arguments, "--server", server.url])
    finally:
        server.close()
    assert played(main(arguments)) == played(report)
    episodes = episodes_of(report)
    assert [(one.subset, one.task) for one in episodes] == [("base", "base/0"), ("base", "base/1")]
    assert [one.won for one in episodes] == [world == "eb_alfred"] * 2
    assert "symbolic" not in report["note"]
    looks = [body["messages"][-1]["content"] for *_, body in server.requests if body["model"] == "eye"]
    assert all([part["type"] for part in parts] == ["text", "image_url"] for parts in looks)
    plans = [str(body["messages"]) for *_, body in server.requests if "You are the planner" in str(body["messages"][0])]
    assert all("apple" in text for text in plans)
    assert ("Apple_2" in plans[0]) == (world == "eb_alfred")  # the program's own list of actions


def played(report):
    """The episodes without their times."""
    return [
        dataclasses.replace(one, milliseconds=0, more={k: v for k, v in one.more.items() if not k.endswith("_ms")})
        for one in episodes_of(report)
    ]


@pytest.mark.parametrize("wrong", [["--agents", "full"], ["--agents", "chat_planner_critic", "--revisit", "3"]])
def test_who_cannot_play_there_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="--backend: expected chat agents alone"):
        main(["--config=eb_alfred", "--backend", "embodiedbench", *wrong])
    chat = ["--agents", "chat_planner_critic", "--model", "m", "--server", "http://127.0.0.1:9"]
    with pytest.raises(InvalidInputError, match="backend: expected None or 'embodiedbench'"):
        main(["--config=eb_alfred", "--backend", "thor", *chat])

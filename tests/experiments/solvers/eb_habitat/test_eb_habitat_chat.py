"""A chat planner, critic and preprocessor in a world with other words than ALFWorld's, replayed without a model."""

from __future__ import annotations

import gzip
import json

import pytest

from embodied_mem.language import ChatError, RecordedChatModel
from tests.experiments.solvers.eb_habitat import chat_life


@pytest.fixture
def calls(tmp_path):
    path = tmp_path / "calls.jsonl"
    path.write_bytes(gzip.decompress(chat_life.RECORDING.read_bytes()))
    return path


def test_the_life_that_a_real_model_lived_is_lived_again(calls):
    """What SmolLM2-135M said is of no use to the robot; every prompt, plan, verdict and summary is the recorded one."""
    lines = calls.read_text().splitlines()
    model = RecordedChatModel(None, calls, name=chat_life.NAME)
    first, second = chat_life.live(model)
    assert model.meter.calls == model.meter.replayed == len(lines) == 60
    assert len(calls.read_text().splitlines()) == len(lines)
    assert (first.record.plans, first.record.criticised, second.record.plans, second.record.criticised) == (5, 5, 6, 4)
    assert first.actions == ("pick up the pick",) * 4 + ("pick up the table",) * 2 + ("pick up the pick",) * 4
    assert set(first.answers) == {"Last action is invalid. There is no such action."}
    requests = [json.loads(line)["request"] for line in lines]
    plans = [r["messages"] for r in requests if "skill" in json.dumps(r["response_format"])]
    assert len(plans) == 11
    for system, user in plans:
        assert "navigate(place):" in system["content"]
        assert "cup" in user["content"].partition("Names: ")[2]


def test_another_prompt_is_not_in_the_recording(calls, monkeypatch):
    monkeypatch.setattr(chat_life, "episode", lambda **changes: {**EPISODE(**changes), "instruction": "Bring a cup."})
    with pytest.raises(ChatError, match="was not recorded"):
        chat_life.live(RecordedChatModel(None, calls, name=chat_life.NAME))


EPISODE = chat_life.episode

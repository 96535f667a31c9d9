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
    """Every prompt, plan, verdict and summary is the recorded one; what SmolLM2-135M plans is possible, if no use."""
    lines = calls.read_text().splitlines()
    model = RecordedChatModel(None, calls, name=chat_life.NAME)
    first, second = chat_life.live(model)
    assert model.meter.calls == model.meter.replayed == len(lines) == 18
    assert len(calls.read_text().splitlines()) == len(lines)
    assert (first.record.plans, first.record.criticised, second.record.plans, second.record.criticised) == (2, 1, 2, 1)
    assert first.actions == ("navigate to the table 2",) * 3
    assert second.actions == ("navigate to the table 2",) * 3
    assert all(answer.startswith("Last action executed") for answer in (*first.answers, *second.answers))
    requests = [json.loads(line)["request"] for line in lines]
    plans = [r["messages"] for r in requests if "skill" in json.dumps(r["response_format"])]
    assert len(plans) == 4
    for system, user in plans:
        assert "navigate(place):" in system["content"]
        assert "cup" in user["content"].partition("Names, by the skills that take them:\n")[2]


def test_another_prompt_is_not_in_the_recording(calls, monkeypatch):
    monkeypatch.setattr(chat_life, "episode", lambda **changes: {**EPISODE(**changes), "instruction": "Bring a cup."})
    with pytest.raises(ChatError, match="was not recorded"):
        chat_life.live(RecordedChatModel(None, calls, name=chat_life.NAME))


EPISODE = chat_life.episode

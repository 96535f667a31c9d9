"""Recorded answers that were changed are refused; those of older versions replay."""

from __future__ import annotations

import json
import random

import pytest

from embodied_mem.errors import EmbodiedMemError, InvalidInputError
from embodied_mem.language import ChatReply, RecordedChatModel, Usage
from embodied_mem.language.chat import UsageMeter

QUESTION = [{"role": "user", "content": "Where?"}]

# A call as versions before checksums wrote it.
OLD = (
    '{"completion_tokens": 2, "finish_reason": "stop", "key": '
    '"19c0b06980a5e7d890ddb505e957452052a72e2cc7a647539b7f6c9e52c2b428", "n": 0, "pieces": ["in ", "bed 1"], '
    '"prompt_tokens": 1, "request": {"max_tokens": 512, "messages": [{"content": "Where?", "role": "user"}], '
    '"model": "m", "response_format": null, "temperature": 0.0}, "text": "in bed 1"}\n'
)


class Model:
    """Counts its answers."""

    name = "m"

    def __init__(self):
        self.meter, self.count = UsageMeter(), 0

    def complete(self, messages, **settings):
        self.count += 1
        return ChatReply(f"in bed {self.count}", Usage(1, 2), "stop", ("in ", f"bed {self.count}"))


@pytest.fixture
def path(tmp_path):
    model = RecordedChatModel(Model(), tmp_path / "calls.jsonl")
    for _ in range(2):
        model.complete(QUESTION)
    return tmp_path / "calls.jsonl"


def replayed(path) -> list[ChatReply]:
    model = RecordedChatModel(None, path, name="m")
    return [model.complete(QUESTION) for _ in range(2)]


def test_no_flipped_bit_gives_another_answer(path):
    """Each is an error when the file is opened or the call is missing; or the replay is the same."""
    data, draw, refused = path.read_bytes(), random.Random(7), 0
    expected = replayed(path)
    for _ in range(400):
        at = draw.randrange(len(data))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :])
        try:
            assert replayed(path) == expected
        except EmbodiedMemError:
            refused += 1
    assert refused > 370


@pytest.mark.parametrize("lines", [[0], [1], [0, 1]])
def test_a_line_without_its_checksum_is_refused(path, lines):
    """Only a file that has none at all is one of an older version, and that one holds its own key."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for number in lines:
        del entries[number]["checksum"]
    path.write_text("".join(json.dumps(entry, sort_keys=True) + "\n" for entry in entries))
    if len(lines) == 2:
        assert [reply.text for reply in replayed(path)] == ["in bed 1", "in bed 2"]
    else:
        with pytest.raises(InvalidInputError, match="line 2: expected a recorded call"):
            replayed(path)


def test_a_recording_of_an_older_version_replays_and_goes_on_as_it_is(tmp_path):
    path = tmp_path / "old.jsonl"
    path.write_text(OLD)
    inner = Model()
    model = RecordedChatModel(inner, path)
    assert model.complete(QUESTION) == ChatReply("in bed 1", Usage(1, 2), "stop", ("in ", "bed 1"))
    inner.count = 4
    assert model.complete(QUESTION).text == "in bed 5"
    assert path.read_text().startswith(OLD)
    assert "checksum" not in path.read_text()
    assert [reply.text for reply in replayed(path)] == ["in bed 1", "in bed 5"]


@pytest.mark.parametrize(
    "changed",
    [
        {"text": 3},
        {"n": "0"},
        {"pieces": [1, 2]},
        {"pieces": 5},
        {"prompt_tokens": 10**400},
        {"prompt_tokens": -1},
        {"finish_reason": []},
        {"checksu": "0"},
    ],
    ids=str,
)
def test_a_wrong_value_in_an_old_recording_is_named(tmp_path, changed):
    path = tmp_path / "old.jsonl"
    path.write_text(json.dumps({**json.loads(OLD), **changed}) + "\n")
    with pytest.raises(InvalidInputError, match="line 1: expected a recorded call, got .*" + next(iter(changed))[:6]):
        RecordedChatModel(None, path, name="m")


@pytest.mark.parametrize("line", ["[" * 200_000, '{"request": ' * 50_000, "[" * 500 + "]" * 500])
def test_a_deep_line_is_an_error(tmp_path, line):
    path = tmp_path / "deep.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InvalidInputError, match="line 1: expected a recorded call"):
        RecordedChatModel(None, path, name="m")


@pytest.mark.parametrize("content", [b"bytes", {1, 2}, json.loads("[" * 300 + "]" * 300)], ids=["bytes", "set", "deep"])
def test_what_could_not_be_read_again_is_not_asked(tmp_path, content):
    inner = Model()
    with pytest.raises(InvalidInputError, match="request: expected JSON data"):
        RecordedChatModel(inner, tmp_path / "calls.jsonl").complete([{"role": "user", "content": content}])
    assert inner.count == 0

"""Recorded answers that were changed are refused."""

from __future__ import annotations

import json
import random

import pytest

from embodied_mem.errors import EmbodiedMemError, InvalidInputError
from embodied_mem.language import ChatReply, RecordedChatModel, Usage
from embodied_mem.language.chat import UsageMeter

QUESTION = [{"role": "user", "content": "Where?"}]


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


@pytest.mark.parametrize("number", [0, 1])
def test_a_line_without_its_checksum_is_refused(path, number):
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    del entries[number]["checksum"]
    path.write_text("".join(json.dumps(entry, sort_keys=True) + "\n" for entry in entries))
    with pytest.raises(InvalidInputError, match=f"line {number + 1}: expected a recorded call"):
        replayed(path)


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

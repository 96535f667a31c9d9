"""Recordings: the same calls get the same answers from the file; damage is refused."""

from __future__ import annotations

import json
import os
import random
import threading
import time

import pytest

from embodied_mem.errors import EmbodiedMemError, InvalidInputError
from embodied_mem.language import ChatError, ChatReply, RecordedChatModel, Usage
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


class Counter:
    """A model that never gives the same answer twice."""

    name = "counter"

    def __init__(self, fail_at: int = -1):
        self.meter = UsageMeter()
        self.count = 0
        self.fail_at = fail_at

    def complete(self, messages, *, max_tokens=512, temperature=0.0, response_format=None, on_text=None):
        self.count += 1
        count = self.count
        if count == self.fail_at:
            raise ChatError("failed")
        if on_text is None:
            return ChatReply(f"{messages[0]['content']} {count}", Usage(1, 2))
        pieces = (f"{messages[0]['content']}", f" {count}", " \u00e9\u2028")
        for piece in pieces:
            on_text(piece)
        return ChatReply("".join(pieces), Usage(1, 2), "stop", pieces)


def ask(model, *questions):
    return [model.complete([{"role": "user", "content": question}]).text for question in questions]


def without_checksums(data: bytes) -> bytes:
    """The lines of a recording without what follows from them."""
    lines = map(json.loads, data.splitlines())
    return b"".join(
        json.dumps({key: entry[key] for key in entry if key != "checksum"}, sort_keys=True).encode() + b"\n"
        for entry in lines
    )


def test_the_same_calls_get_the_same_answers_from_the_file(tmp_path):
    path = tmp_path / "folder" / "calls.jsonl"
    first = ask(RecordedChatModel(Counter(), path), "a", "b", "a", "a")
    assert first == ["a 1", "b 2", "a 3", "a 4"]
    data = path.read_bytes()
    replay = RecordedChatModel(None, path, name="counter")
    assert ask(replay, "a", "b", "a", "a") == first
    assert ask(RecordedChatModel(None, path, name="counter"), "b", "a", "a", "a") == ["b 2", "a 1", "a 3", "a 4"]
    assert path.read_bytes() == data
    assert (replay.meter.calls, replay.meter.replayed, replay.meter.prompt_tokens) == (4, 4, 4)
    with pytest.raises(ChatError, match="not recorded"):
        ask(replay, "a")
    for other in ({"temperature": 1.0}, {"max_tokens": 9}, {"response_format": {"type": "json_object"}}):
        with pytest.raises(ChatError, match="not recorded"):
            RecordedChatModel(None, path, name="counter").complete([{"role": "user", "content": "a"}], **other)
    with pytest.raises(ChatError, match="not recorded"):
        ask(RecordedChatModel(None, path, name="another"), "a")
    with pytest.raises(InvalidInputError, match="name"):
        RecordedChatModel(None, path)
    inner = Counter()
    assert ask(RecordedChatModel(inner, path), "a", "c", "b") == ["a 1", "c 1", "b 2"]
    assert inner.count == 1


def test_an_answer_is_on_disk_before_it_is_given(tmp_path, monkeypatch):
    path = tmp_path / "calls.jsonl"
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    ask(RecordedChatModel(Counter(), path), "a", "b")
    assert sizes == [len(path.read_bytes().split(b"\n")[0]) + 1, path.stat().st_size]


def test_a_streamed_answer_is_replayed_piece_by_piece(tmp_path):
    path = tmp_path / "calls.jsonl"
    heard: list[list[str]] = [[], [], []]
    first = RecordedChatModel(Counter(), path).complete(QUESTION, on_text=heard[0].append)
    again = RecordedChatModel(None, path, name="counter").complete(QUESTION, on_text=heard[1].append)
    assert again == first
    assert again.pieces == tuple(heard[0]) == tuple(heard[1])
    assert len(heard[0]) == 3
    # Whether somebody listens is no part of the request; an answer that was not streamed comes as one piece.
    assert RecordedChatModel(None, path, name="counter").complete(QUESTION) == first
    whole = RecordedChatModel(Counter(), tmp_path / "whole.jsonl")
    text = whole.complete(QUESTION).text
    RecordedChatModel(None, tmp_path / "whole.jsonl", name="counter").complete(QUESTION, on_text=heard[2].append)
    assert heard[2] == [text]


def test_a_failed_call_among_threads_leaves_no_gap(tmp_path):
    """The first call fails while a second, equal one is under way: its number goes to the third."""
    path, second_is_running, first_has_failed = tmp_path / "calls.jsonl", threading.Event(), threading.Event()

    class Model(Counter):
        def complete(self, messages, **settings):
            self.count += 1
            if self.count == 1:
                assert second_is_running.wait(5)
                raise ChatError("failed")
            second_is_running.set()
            assert first_has_failed.wait(5)
            return ChatReply(f"answer {self.count}", Usage(1, 1))

    model = RecordedChatModel(Model(), path)

    def first():
        with pytest.raises(ChatError):
            model.complete(QUESTION)
        first_has_failed.set()

    threads = [threading.Thread(target=first), threading.Thread(target=model.complete, args=(QUESTION,))]
    threads[0].start()
    while model._model.count == 0:
        time.sleep(0.001)
    threads[1].start()
    for thread in threads:
        thread.join()
    model.complete(QUESTION)
    replay = RecordedChatModel(None, path, name="counter")
    assert [replay.complete(QUESTION).text for _ in range(2)] == ["answer 3", "answer 2"]


def test_a_torn_last_line_is_dropped_and_other_damage_is_an_error(tmp_path):
    path = tmp_path / "calls.jsonl"
    ask(RecordedChatModel(Counter(), path), "a", "b")
    data = path.read_bytes()
    start = data.index(b"\n") + 1
    for size in range(start, len(data)):
        path.write_bytes(data[:size])
        inner = Counter()
        assert ask(RecordedChatModel(inner, path), "a", "b") == ["a 1", "b 1"]
        assert inner.count == 1
        assert without_checksums(path.read_bytes()) == without_checksums(data).replace(b'"b 2"', b'"b 1"')
    for damaged in (data[start + 1 :], data.replace(b'"a"', b'"z"', 1), b"\n" + data):
        path.write_bytes(damaged)
        with pytest.raises(InvalidInputError, match=r"line 1: expected a recorded call"):
            RecordedChatModel(Counter(), path)


def test_a_second_writer_is_noticed(tmp_path):
    path = tmp_path / "calls.jsonl"
    first, second = (RecordedChatModel(Counter(), path) for _ in range(2))
    ask(first, "a")
    with pytest.raises(ChatError, match="another process"):
        ask(second, "b")


def test_threads_share_one_recording(tmp_path):
    model = RecordedChatModel(Counter(), tmp_path / "calls.jsonl")
    threads = [threading.Thread(target=ask, args=(model, *"abcd")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    replay = RecordedChatModel(None, tmp_path / "calls.jsonl", name="counter")
    answers = ask(replay, *"abcdabcdabcdabcd")
    assert len(set(answers)) == 16

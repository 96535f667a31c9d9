"""The chat client against a server on loopback: what is sent, what is retried, what is recorded."""

from __future__ import annotations

import json
import os
import threading
import time

import numpy as np
import pytest
from chat_answers import Server, reply

from embodied_mem.errors import InvalidInputError
from embodied_mem.language import (
    ChatError,
    ChatReply,
    OpenAIChatModel,
    Prices,
    RecordedChatModel,
    ServerEmbedder,
    Usage,
)
from embodied_mem.language.chat import UsageMeter

QUESTION = [{"role": "user", "content": "Where is the apple?"}]


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    servers = []

    def start(*answers) -> Server:
        servers.append(Server(*answers))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def test_a_stop_word_ends_free_text_alone(serve):
    server = serve(reply(), reply())
    model = OpenAIChatModel(server.url, "tiny", extra_body={"stop": ["\n"], "seed": 7})
    model.complete(QUESTION)
    model.complete(QUESTION, response_format={"type": "json_object"})
    (_, _, free), (_, _, formed) = server.requests
    assert (free["stop"], free["seed"]) == (["\n"], 7)
    assert ("stop" in formed, formed["seed"], formed["response_format"]) == (False, 7, {"type": "json_object"})


def test_request_and_reply(serve):
    server = serve(reply())
    model = OpenAIChatModel(server.url + "/", "tiny", api_key="secret", extra_body={"seed": 7})
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}
    answer = model.complete(QUESTION, max_tokens=9, temperature=0.5, response_format=schema)
    assert answer == ChatReply("in fridge 1", Usage(11, 4))
    ((path, headers, body),) = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer secret"
    assert body == {
        "model": "tiny",
        "messages": QUESTION,
        "max_tokens": 9,
        "temperature": 0.5,
        "response_format": schema,
        "seed": 7,
    }
    model.complete(QUESTION)
    assert "response_format" not in server.requests[1][2]
    assert (model.meter.calls, model.meter.prompt_tokens, model.meter.completion_tokens) == (2, 22, 8)
    assert model.meter.seconds_s > 0


def test_busy_server_is_asked_again_with_growing_waits(serve):
    busy = (503, b"busy", {})
    server = serve(busy, (429, b"slow down", {"Retry-After": "7"}), ("drop", b"", {}), busy, reply())
    waits: list[float] = []
    model = OpenAIChatModel(server.url, "tiny", backoff_s=0.5, sleep=waits.append)
    assert model.complete(QUESTION).text == "in fridge 1"
    assert waits == [0.5, 7.0, 2.0, 4.0]
    assert (len(server.requests), model.meter.retries, model.meter.calls) == (5, 4, 1)
    assert all(body == server.requests[0][2] for _, _, body in server.requests)


def test_giving_up_names_server_answer_and_tries(serve):
    server = serve((500, b"out of memory", {}))
    model = OpenAIChatModel(server.url, "tiny", max_retries=2, sleep=lambda s: None)
    with pytest.raises(ChatError, match=r"127\.0\.0\.1.*500: out of memory.*3 times"):
        model.complete(QUESTION)
    assert len(server.requests) == 3
    assert model.meter.calls == 0


def test_a_timeout_is_retried(serve):
    server = serve(("slow", b"{}", {}), reply())
    model = OpenAIChatModel(server.url, "tiny", timeout_s=0.2, sleep=lambda s: None)
    assert model.complete(QUESTION).text == "in fridge 1"
    assert model.meter.retries == 1


def test_a_refused_connection_is_an_error_of_ours():
    model = OpenAIChatModel("http://127.0.0.1:9/v1", "tiny", max_retries=1, sleep=lambda s: None)
    with pytest.raises(ChatError, match="2 times"):
        model.complete(QUESTION)


def test_a_refusal_is_not_retried_and_keys_stay_secret(serve):
    server = serve((401, b"wrong key", {}))
    model = OpenAIChatModel(server.url, "tiny", api_key="secret")
    with pytest.raises(ChatError, match="401: wrong key") as caught:
        model.complete(QUESTION)
    assert "secret" not in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body",
    [b"<html>", [], {}, {"choices": []}, {"choices": [{"message": None}]}, {"choices": [{"message": {"content": 3}}]}],
)
def test_another_answer_is_a_clear_error(serve, body):
    model = OpenAIChatModel(serve((200, body, {})).url, "tiny", sleep=lambda s: None)
    with pytest.raises(ChatError, match="expected"):
        model.complete(QUESTION)


def test_an_empty_answer_without_usage_is_an_answer(serve):
    model = OpenAIChatModel(serve((200, {"choices": [{"message": {"content": None}}]}, {})).url, "tiny")
    assert model.complete(QUESTION) == ChatReply("", Usage(0, 0))


def test_a_budget_stops_before_the_next_call(serve):
    server = serve(reply())
    model = OpenAIChatModel(server.url, "tiny", max_total_tokens=30)
    model.complete(QUESTION)
    model.complete(QUESTION)
    with pytest.raises(ChatError, match="budget of 30 tokens"):
        model.complete(QUESTION)
    assert len(server.requests) == 2


def test_a_budget_in_money_stops_before_the_next_call(serve):
    server = serve(reply())  # 11 + 4 tokens: 11 * 2 + 4 * 10 = 62 millionths
    prices = {"tiny": (2.0, 10.0), "other": Prices(1, 1)}
    model = OpenAIChatModel(server.url, "tiny", prices=prices, max_cost=63e-6)
    model.complete(QUESTION)
    model.complete(QUESTION)
    assert model.meter.cost == pytest.approx(124e-6)
    with pytest.raises(ChatError, match=r"budget of 6\.3e-05 .* 0\.000124 spent") as caught:
        model.complete(QUESTION)
    assert caught.value.kind == "budget"
    assert len(server.requests) == 2
    with pytest.raises(InvalidInputError, match=r"entry for 'small', got entries for \['other', 'tiny'\]"):
        OpenAIChatModel(server.url, "small", prices=prices)
    with pytest.raises(InvalidInputError, match="pass prices"):
        OpenAIChatModel(server.url, "tiny", max_cost=1.0)
    with pytest.raises(InvalidInputError, match=r"prices\.prompt"):
        Prices(-1, 0)


def test_a_budget_holds_for_threads(serve):
    """20 calls of 15 tokens at once under a budget of 100: calls that are running are counted with their limit."""

    def slow(body):
        time.sleep(0.05)
        return reply()

    server = serve(slow)
    model = OpenAIChatModel(server.url, "tiny", max_total_tokens=100)
    refused = []

    def one():
        try:
            model.complete(QUESTION, max_tokens=10)
        except ChatError as error:
            refused.append(error.kind)

    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = model.meter.prompt_tokens + model.meter.completion_tokens
    assert len(server.requests) + len(refused) == 20
    assert set(refused) == {"budget"}
    assert spent == 15 * len(server.requests)
    assert spent < 100 + 10 * 15  # without the reserve: 300


def test_a_server_that_does_not_count_is_counted_by_bytes(serve):
    server = serve((200, {"choices": [{"message": {"content": "in fridge \u00e9"}}]}, {}))
    model = OpenAIChatModel(server.url, "tiny", max_total_tokens=10)
    model.complete(QUESTION)  # 19 and 12 bytes
    assert (model.meter.prompt_tokens, model.meter.completion_tokens, model.meter.estimated) == (5, 3, 1)
    model.complete(QUESTION)
    with pytest.raises(ChatError, match="budget"):
        model.complete(QUESTION)


def test_a_meter_adds_up_over_threads():
    meter = UsageMeter(prices=Prices(1, 1))

    def work():
        for _ in range(2000):
            meter.count(Usage(1, 2))
            meter.add(retries=1, seconds_s=0.5)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (meter.calls, meter.retries, meter.completion_tokens, meter.seconds_s) == (8000, 8000, 16000, 4000.0)
    assert meter.to_json()["cost"] == pytest.approx(0.024)
    assert "_lock" not in meter.to_json()


def test_wrong_settings_are_refused():
    with pytest.raises(InvalidInputError, match="base_url"):
        OpenAIChatModel("localhost:8000", "tiny")
    with pytest.raises(InvalidInputError, match="timeout_s"):
        OpenAIChatModel("http://localhost", "tiny", timeout_s=0)
    with pytest.raises(InvalidInputError, match="name"):
        RecordedChatModel(None, "calls.jsonl")


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
    inner = Counter()
    assert ask(RecordedChatModel(inner, path), "a", "c", "b") == ["a 1", "c 1", "b 2"]
    assert inner.count == 1


def test_an_answer_is_on_disk_before_it_is_given(tmp_path, monkeypatch):
    path = tmp_path / "calls.jsonl"
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    ask(RecordedChatModel(Counter(), path), "a", "b")
    assert sizes == [len(path.read_bytes().split(b"\n")[0]) + 1, path.stat().st_size]


def test_a_failed_call_is_not_recorded_and_can_be_repeated(tmp_path):
    model = RecordedChatModel(Counter(fail_at=1), tmp_path / "calls.jsonl")
    with pytest.raises(ChatError, match="failed"):
        ask(model, "a")
    assert ask(model, "a") == ["a 2"]
    assert ask(RecordedChatModel(None, tmp_path / "calls.jsonl", name="counter"), "a") == ["a 2"]


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


def test_server_embedder_sorts_normalises_and_batches(serve):
    def answer(body):
        texts = body["input"]
        data = [{"index": i, "embedding": [float(len(text)), 3.0]} for i, text in enumerate(texts)]
        return 200, {"data": data[::-1], "usage": {"prompt_tokens": len(texts)}}, {}

    server = serve(answer)
    embedder = ServerEmbedder(server.url, "small", batch_size=2)
    vectors = embedder.embed(["aaaa", "", "aaaa"])
    np.testing.assert_allclose(vectors, [[0.8, 0.6], [0, 1], [0.8, 0.6]], atol=1e-6)
    assert vectors.dtype == np.float32
    assert [len(body["input"]) for _, _, body in server.requests] == [2, 1]
    assert embedder.meter.prompt_tokens == 3
    assert embedder.embed([]).shape == (0, 0)


@pytest.mark.parametrize("data", [None, [], [{"index": 0}], [{"index": 0, "embedding": [float("nan")]}]])
def test_wrong_embeddings_are_an_error(serve, data):
    with pytest.raises(ChatError, match="expected"):
        ServerEmbedder(serve((200, {"data": data}, {})).url, "small").embed(["a"])

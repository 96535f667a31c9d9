"""The chat client against a server on loopback: what is sent, what is retried, what is recorded."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from chat_answers import reply

from embodied_mem.errors import InvalidInputError
from embodied_mem.language import ChatError, ChatReply, OpenAIChatModel, Prices, ServerEmbedder, Usage
from embodied_mem.language.chat import UsageMeter

QUESTION = [{"role": "user", "content": "Where is the apple?"}]


def test_a_stop_word_ends_free_text_alone(play):
    server, model = play(reply(), reply(), extra_body={"stop": ["\n"], "seed": 7})
    model.complete(QUESTION)
    model.complete(QUESTION, response_format={"type": "json_object"})
    (_, _, free), (_, _, formed) = server.requests
    assert (free["stop"], free["seed"]) == (["\n"], 7)
    assert ("stop" in formed, formed["seed"], formed["response_format"]) == (False, 7, {"type": "json_object"})


def test_request_and_reply(play):
    server, model = play(reply(), api_key="secret", extra_body={"seed": 7})
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


def test_busy_server_is_asked_again_with_growing_waits(play):
    busy = (503, b"busy", {})
    waits: list[float] = []
    answers = busy, (429, b"slow down", {"Retry-After": "7"}), ("drop", b"", {}), busy, reply()
    server, model = play(*answers, backoff_s=0.5, sleep=waits.append)
    assert model.complete(QUESTION).text == "in fridge 1"
    assert waits == [0.5, 7.0, 2.0, 4.0]
    assert (len(server.requests), model.meter.retries, model.meter.calls) == (5, 4, 1)
    assert all(body == server.requests[0][2] for _, _, body in server.requests)


def test_giving_up_names_server_answer_and_tries(play):
    server, model = play((500, b"out of memory", {}), max_retries=2, sleep=lambda s: None)
    with pytest.raises(ChatError, match=r"127\.0\.0\.1.*500: out of memory.*3 times"):
        model.complete(QUESTION)
    assert len(server.requests) == 3
    assert model.meter.calls == 0


def test_a_refused_connection_is_an_error_of_ours():
    model = OpenAIChatModel("http://127.0.0.1:9/v1", "tiny", max_retries=1, sleep=lambda s: None)
    with pytest.raises(ChatError, match="2 times"):
        model.complete(QUESTION)


def test_a_budget_in_money_stops_before_the_next_call(play):
    prices = {"tiny": (2.0, 10.0), "other": Prices(1, 1)}
    server, model = play(reply(), prices=prices, max_cost=63e-6)  # 11 + 4 tokens: 62 millionths
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


def test_a_budget_holds_for_threads(play):
    """20 calls of 15 tokens at once under a budget of 100: calls that are running are counted with their limit."""

    def slow(body):
        time.sleep(0.05)
        return reply()

    server, model = play(slow, max_total_tokens=100)
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


def test_a_server_that_does_not_count_is_counted_by_bytes(play):
    _, model = play((200, {"choices": [{"message": {"content": "in fridge \u00e9"}}]}, {}), max_total_tokens=10)
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


def test_server_embedder_sorts_normalises_and_batches(play):
    def answer(body):
        texts = body["input"]
        data = [{"index": i, "embedding": [float(len(text)), 3.0]} for i, text in enumerate(texts)]
        return 200, {"data": data[::-1], "usage": {"prompt_tokens": len(texts)}}, {}

    server, _ = play(answer)
    embedder = ServerEmbedder(server.url, "small", batch_size=2)
    vectors = embedder.embed(["aaaa", "", "aaaa"])
    np.testing.assert_allclose(vectors, [[0.8, 0.6], [0, 1], [0.8, 0.6]], atol=1e-6)
    assert vectors.dtype == np.float32
    assert [len(body["input"]) for _, _, body in server.requests] == [2, 1]
    assert embedder.meter.prompt_tokens == 3
    assert embedder.embed([]).shape == (0, 0)


@pytest.mark.parametrize("data", [None, [], [{"index": 0}], [{"index": 0, "embedding": [float("nan")]}]])
def test_wrong_embeddings_are_an_error(play, data):
    with pytest.raises(ChatError, match="expected"):
        ServerEmbedder(play((200, {"data": data}, {}))[0].url, "small").embed(["a"])

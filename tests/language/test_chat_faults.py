"""Servers that misbehave, each on a real socket: streams, endless, late, cut off, empty, malformed, wrongly encoded.

Every test first proves that its fault landed: by what the server managed to send, or by the meter's count.
"""

from __future__ import annotations

import time

import pytest
from raw_server import COUNTS, DONE, GOOD, QUESTION, event, good, good_stream, response, sends, stream, whole

from embodied_mem.language import ChatError, ChatReply, OpenAIChatModel, Usage


def test_a_stream_is_put_together(serve):
    server, model = serve(good_stream)
    heard: list[str] = []
    answer = model.complete(QUESTION, on_text=heard.append)
    assert answer == ChatReply("in fridge 1", Usage(9, 3), "stop", ("in ", "fridge 1"))
    assert heard == ["in ", "fridge 1"]
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    assert (model.meter.calls, model.meter.prompt_tokens, model.meter.estimated) == (1, 9, 0)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_stream_may_be_cut_anywhere(serve, size):
    """Comments, other fields, data over several lines, all line ends, packets that split lines and characters."""
    data = b': hello\r\n\r\nevent: x\ndata: {"choices":\ndata: [{"delta": {"content": "caf\xc3\xa9 "}}]}\n\n'
    data += b'id: 3\r\ndata:{"choices": [{"delta": {"content": "\\ud83d"}}]}\r\n\r\n'
    data += event("\ude00!") + b"data: [DONE]"
    parts = [data[i : i + size] for i in range(0, len(data), size)]
    _, model = serve(sends(response(b"", kind="text/event-stream"), *parts), stream=True)
    answer = model.complete(QUESTION)
    assert answer.text == "café \U0001f600!"
    assert answer.pieces == ("café ", "\U0001f600!")
    assert (model.meter.estimated, model.meter.wrong_encoding) == (1, 0)


def test_half_a_character_becomes_a_replacement_and_is_counted(serve):
    _, model = serve(stream(event("a\ud83d"), DONE), stream=True)
    assert model.complete(QUESTION).text == "a\ufffd"
    bad = whole("\ude00b")
    _, other = serve(sends(response(bad, len(bad))))
    assert other.complete(QUESTION).text == "\ufffdb"
    assert (model.meter.wrong_encoding, other.meter.wrong_encoding) == (1, 1)


def test_an_endless_answer_is_cut_by_its_size(serve):
    def endless(connection):
        connection.sendall(response(b"["))
        while True:
            connection.sendall(b"0," * 5000)

    server, model = serve(endless, max_answer_bytes=100_000)
    with pytest.raises(ChatError, match="at most 100000 bytes") as caught:
        model.complete(QUESTION)
    assert caught.value.kind == "too_long"
    assert server.gone.wait(5)  # the connection was given up, not drained
    assert (len(server.bodies), model.meter.too_long, model.meter.failed, model.meter.calls) == (1, 1, 1, 0)


@pytest.mark.parametrize("part", [event("word "), b"x" * 1000, b": ping\n\n"], ids=["events", "one line", "comments"])
def test_an_endless_stream_is_cut_by_its_size(serve, part):
    def endless(connection):
        connection.sendall(response(b"", kind="text/event-stream"))
        while True:
            connection.sendall(part)

    server, model = serve(endless, max_answer_bytes=50_000, stream=True)
    with pytest.raises(ChatError, match="at most 50000 bytes") as caught:
        model.complete(QUESTION)
    assert caught.value.kind == "too_long"
    assert server.gone.wait(5)
    assert model.meter.too_long == 1


@pytest.mark.parametrize(
    ("head", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (response(b"", 10_000), b" "),
        (response(b""), b" "),
        (response(b"", kind="text/event-stream"), b": ping\n\n"),
    ],
    ids=["in the header", "in the answer", "in an answer without length", "in a stream"],
)
def test_a_server_that_drips_meets_the_deadline(serve, head, drop):
    """No silence is longer than 30 ms, so that a socket's timeout never strikes; the deadline does."""
    sent = []

    def drip(connection):
        connection.sendall(head)
        for _ in range(200):
            connection.sendall(drop)
            sent.append(drop)
            time.sleep(0.03)

    server, model = serve(drip, deadline_s=1.0, timeout_s=0.9, stream=b"event" in head)
    start = time.monotonic()
    with pytest.raises(ChatError, match=r"none within the 1 s|a part of an answer") as caught:
        model.complete(QUESTION)
    assert caught.value.kind == "late"
    assert time.monotonic() - start < 4  # without the deadline: 6 s
    assert len(sent) > 2
    assert (model.meter.late, model.meter.failed, len(server.bodies)) == (1, 1, 1)


def test_the_deadline_counts_all_tries_and_waits(serve):
    waits: list[float] = []

    def wait(seconds):
        waits.append(seconds)
        time.sleep(seconds)

    busy = sends(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
    _, model = serve(busy, deadline_s=0.8, backoff_s=0.1, sleep=wait)
    with pytest.raises(ChatError, match=r"status 503.*limit is 0\.8 s") as caught:
        model.complete(QUESTION)
    assert caught.value.kind == "late"
    assert 1 <= len(waits) <= 3  # 0.1 + 0.2 + 0.4, and no wait that would end after the deadline
    assert sum(waits) < 0.8
    assert (model.meter.late, model.meter.retries) == (1, len(waits))


def test_silence_is_tried_again(serve):
    _, model = serve(lambda connection: time.sleep(0.6), stream(event("half")), good_stream, stream=True, timeout_s=0.2)
    assert model.complete(QUESTION).text == "in fridge 1"
    assert (model.meter.late, model.meter.truncated, model.meter.retries) == (1, 1, 2)


@pytest.mark.parametrize(("timeout_s", "tries"), [(None, 1), (0.2, 2)])
def test_a_slow_server_on_this_machine_is_asked_once(serve, monkeypatch, timeout_s, tries):
    monkeypatch.setattr("embodied_mem.language.http_json._SILENCE_S", 0.2)
    server, model = serve(lambda connection: (time.sleep(0.6), good(connection)), good, timeout_s=timeout_s)
    assert model.complete(QUESTION).text == "in fridge 1"
    assert (len(server.bodies), model.meter.late) == (tries, tries - 1)


@pytest.mark.parametrize(
    ("url", "silence_s"),
    [
        ("http://localhost:8000/v1", 600), ("http://127.0.0.2:8000/v1", 600), ("http://[::1]:8000/v1", 600),
        ("https://api.example.com/v1", 60), ("http://192.168.0.7:8000/v1", 60), ("http://localhost.example.com/v1", 60),
    ],
)  # fmt: skip
def test_silence_is_limited_by_where_a_server_is(url, silence_s):
    assert OpenAIChatModel(url, "tiny")._http._timeout_s == silence_s


@pytest.mark.parametrize("size", [0, 1, 20, len(GOOD) - 1])
def test_a_truncated_answer_is_tried_again(serve, size):
    server, model = serve(sends(response(GOOD[:size], len(GOOD))), good)
    assert model.complete(QUESTION).text == "in fridge 1"
    assert (model.meter.truncated, model.meter.retries, len(server.bodies)) == (1, 1, 2)


def test_a_truncated_stream_is_tried_again_unless_pieces_were_given(serve):
    cut = stream(event("in "), event("fri"))
    _, model = serve(cut, good_stream, stream=True)
    assert model.complete(QUESTION).pieces == ("in ", "fridge 1")  # nothing of the first try
    assert (model.meter.truncated, model.meter.retries) == (1, 1)
    server, model = serve(cut, good_stream)
    heard: list[str] = []
    with pytest.raises(ChatError, match=r"without \[DONE\] after 2 events") as caught:
        model.complete(QUESTION, on_text=heard.append)
    assert (caught.value.kind, heard, len(server.bodies)) == ("truncated", ["in ", "fri"], 1)
    _, model = serve(stream(), good_stream)  # nothing given yet: again
    assert model.complete(QUESTION, on_text=heard.append).text == "in fridge 1"
    assert (model.meter.empty, model.meter.retries) == (1, 1)


@pytest.mark.parametrize("script", [sends(response(b"", 0)), sends(response(b" \n")), stream()])
def test_an_empty_answer_is_tried_again(serve, script):
    _, model = serve(script, good, max_retries=1)
    assert model.complete(QUESTION).text == "in fridge 1"
    assert (model.meter.empty, model.meter.retries) == (1, 1)


def test_an_empty_text_is_an_answer_and_counted(serve):
    _, model = serve(stream(event(finish="stop"), COUNTS, DONE), stream=True)
    assert model.complete(QUESTION) == ChatReply("", Usage(9, 3), "stop")
    assert (model.meter.empty, model.meter.calls) == (1, 1)


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b'{"choices": [{"message": {"content": "caf\xe9"}}]}', "wrong_encoding", "expected UTF-8"),
        ("\ufeff{".encode("utf-16"), "wrong_encoding", "expected UTF-8"),
        (b"<html>", "malformed", "expected a JSON object"),
        (b"[" * 100_000, "malformed", "expected a JSON object"),
        (b"[]", "malformed", "expected a JSON object"),
        (b"{}", "malformed", "expected choices"),
        (b'{"choices": [{"message": null}]}', "malformed", "expected choices"),
        (b'{"choices": [{"message": {"content": 3}}]}', "malformed", "expected a text"),
        (whole("x").replace(b"7", b'"many"'), "malformed", "numbers of tokens"),
        (whole("x").replace(b"7", b"-7"), "malformed", "numbers of tokens >= 0"),
    ],
    ids=lambda value: value.decode("latin-1")[:20] if isinstance(value, bytes) else None,
)
def test_a_wrong_answer_is_an_error_at_once_and_counted(serve, body, kind, message):
    server, model = serve(sends(response(body, len(body))))
    with pytest.raises(ChatError, match=message) as caught:
        model.complete(QUESTION)
    counts = model.meter.to_json()
    assert (caught.value.kind, counts[kind], counts["failed"], counts["calls"]) == (kind, 1, 1, 0)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"data: {nonsense\n\n", "malformed"),
        (b'data: {"error": {"message": "out of memory"}}\n\n', "malformed"),
        (b'data: {"choices": [{"delta": {"content": ["x"]}}]}\n\n', "malformed"),
        (b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n', "wrong_encoding"),
    ],
)
def test_a_wrong_event_is_an_error_and_counted(serve, data, kind):
    _, model = serve(stream(event("in "), data, DONE), stream=True)
    with pytest.raises(ChatError, match="expected") as caught:
        model.complete(QUESTION)
    assert (caught.value.kind, model.meter.to_json()[kind]) == (kind, 1)


def test_a_listeners_error_is_its_own(serve):
    """An error of the caller's callback must not look like a broken connection, which would be tried again."""
    server, model = serve(good_stream)

    def listen(piece):
        raise BrokenPipeError("my own pipe")

    with pytest.raises(BrokenPipeError, match="my own pipe"):
        model.complete(QUESTION, on_text=listen)
    assert (len(server.bodies), model.meter.retries) == (1, 0)


def test_a_refusal_without_its_promised_text_is_still_told(serve):
    _, model = serve(sends(b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n"), stream=True)
    with pytest.raises(ChatError, match="status 400"):
        model.complete(QUESTION)

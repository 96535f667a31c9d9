"""What may not come out of a call, whatever server, proxy or setting is wrong: the key, a raw error, no end.

Each fault is on a real socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse

import pytest
from raw_server import DONE, GOOD, QUESTION, event, good, good_stream, response, sends, stream, whole

from embodied_mem.errors import InvalidInputError
from embodied_mem.language import ChatError, OpenAIChatModel, RecordedChatModel, ServerEmbedder

SECRET = "sk-+SECRET/0123456789abcdef"


def told(error: BaseException) -> str:
    """All that a log could show of an error: its causes and contexts, suppressed or not."""
    chain, link = [], error
    while link is not None:
        chain.append(f"{link!r} {link} {vars(link)}")
        link = link.__cause__ or link.__context__
    return "\n".join(["".join(traceback.format_exception(error)), *chain])


def status(code: int, body: bytes, header: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d No\r\nContent-Length: %d\r\n%s\r\n%s" % (code, len(body), header, body)


@pytest.mark.parametrize(
    ("script", "stars"),
    [
        (sends(status(401, f"wrong key {SECRET}".encode())), True),
        (sends(status(401, b"x" * 290 + SECRET.encode() * 500)), True),
        (sends(status(401, json.dumps({"key": urllib.parse.quote(SECRET, safe="")}).encode())), True),
        (sends(status(503, SECRET.encode())), True),
        (sends(status(302, b"", f"Location: http://x/{SECRET}\r\n".encode())), True),
        (sends(b"HTTP/1.1 %s\r\n\r\n" % SECRET.encode()), True),
        (sends(response(SECRET.encode(), len(SECRET))), True),
        (sends(response(b"\xff" + SECRET.encode(), len(SECRET) + 1)), False),
        (sends(response(json.dumps([SECRET]).encode())), True),
        (sends(response(json.dumps({"error": SECRET}).encode())), True),
        (sends(response(whole("x").replace(b"7", json.dumps(SECRET).encode()))), True),
        (stream(event("in ") + b"data: " + SECRET.encode() + b"\n\n"), True),
        (stream(b"data: \xff" + SECRET.encode() + b"\n\n"), False),
        (sends(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + SECRET.encode() + b"\r\n"), False),
    ],
)
def test_the_key_is_in_no_error(serve, script, stars):
    _, model = serve(script, api_key=SECRET, max_retries=1)
    messages = ""
    for options in ({}, {"on_text": lambda piece: None}):
        with pytest.raises(ChatError) as caught:
            model.complete(QUESTION, **options)
        assert "SECRET" not in told(caught.value)
        messages += str(caught.value)
    assert not stars or "***" in messages


def test_the_key_is_in_no_answer_and_no_recording(serve, tmp_path):
    data = whole(f"your key is {SECRET}")
    _, model = serve(sends(response(data, len(data))), stream(event(f"it is {SECRET}"), DONE), api_key=SECRET)
    recorded = RecordedChatModel(model, tmp_path / "calls.jsonl")
    heard: list[str] = []
    answers = [recorded.complete(QUESTION).text, recorded.complete(QUESTION, on_text=heard.append).text]
    assert answers == ["your key is " + "*" * len(SECRET), "it is " + "*" * len(SECRET)]
    assert "SECRET" not in (tmp_path / "calls.jsonl").read_text() + "".join(heard)


@pytest.mark.parametrize("key", ["sk-SECRET\n", "sk-SECRET\r\nX: y", "sk SECRET", "sk-SECRETé", b"sk-SECRET", 5])
def test_a_key_that_cannot_be_sent_is_refused_unseen(key):
    with pytest.raises(InvalidInputError, match="api_key: expected printable ASCII") as caught:
        OpenAIChatModel("http://127.0.0.1:9/v1", "tiny", api_key=key)
    assert "SECRET" not in told(caught.value)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://[::1/v1", "http://", "http:///v1", "http://h:0/v1", "http://h:99999/v1", "http://h:x/v1", "ftp://h/v1",
        "file:///etc/passwd", "http://h/v1?key=1", "http://h/\x00", "http://user:SECRET@h/v1", "http://u:SECRET@[h", "",
        None, b"http://h", "http://" + "a" * 70000,
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_asked_is_refused(base_url):
    with pytest.raises(InvalidInputError, match="base_url: expected") as caught:
        OpenAIChatModel(base_url, "tiny")
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"timeout_s": float("nan")}, {"deadline_s": "9"}, {"deadline_s": 10**400}, {"timeout_s": 0},
        {"backoff_s": -1}, {"max_retries": 1.5}, {"max_answer_bytes": None},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_limits_are_refused(options):
    with pytest.raises(InvalidInputError, match=f"{next(iter(options))}: expected"):
        OpenAIChatModel("http://127.0.0.1:9/v1", "tiny", **options)


def test_endless_limits_and_many_tries_are_limits_too(serve):
    busy = sends(status(503, b""))
    _, model = serve(busy, deadline_s=float("inf"), timeout_s=1e300, max_retries=1100, backoff_s=1e-9)
    model._http._max_retries, model._http._backoff_s = 20, 1e300  # the wait itself is replaced
    with pytest.raises(ChatError, match="tried 21 times"):
        model.complete(QUESTION)


@pytest.mark.parametrize("number", [10**400, 1 << 60, float("inf")], ids=["10**400", "2**60", "inf"])
def test_a_huge_count_of_tokens_is_malformed(serve, number):
    body = json.dumps({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": number}}).encode()
    _, model = serve(sends(response(body, len(body))), prices={"tiny": (1.0, 1.0)})
    with pytest.raises(ChatError, match="numbers of tokens") as caught:
        model.complete(QUESTION)
    assert (caught.value.kind, model.meter.malformed, model.meter.cost) == ("malformed", 1, 0.0)
    _, embedder = serve(sends(response(b'{"data": [{"index": 0, "embedding": [1]}], "usage": 7}')))
    with pytest.raises(ChatError, match=r"expected data\[i\]"):
        ServerEmbedder(embedder._http.base_url, "tiny").embed(["x"])


@pytest.mark.parametrize("size", [b"zz\r\n", b"-5\r\n", b"ffffffffffffffffffff\r\n", b"\r\n", b"5\r\nabcdefgh"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_wrong_chunk_size_is_a_broken_answer(serve, size, streamed):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
    _, model = serve(sends(head + size), good_stream if streamed else good, stream=streamed, timeout_s=5)
    assert model.complete(QUESTION).text == "in fridge 1"
    assert (model.meter.truncated, model.meter.retries) == (1, 1)


@pytest.mark.parametrize("target", ["ftp://127.0.0.1:%d/x", "file:///etc/passwd", "http://[::1", "\x00", "/v1/other"])
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirection_is_told_and_not_followed(serve, target, code):
    other, _ = serve(good)
    target = target.replace("%d", str(other.listener.getsockname()[1]))
    server, model = serve(sends(status(code, b"", f"Location: {target}\r\n".encode())), deadline_s=2.0)
    with pytest.raises(ChatError, match=rf"status {code}, a redirection to|[Ii]llegal header|location header"):
        model.complete(QUESTION)
    assert (other.bodies, len({json.dumps(body) for body in server.bodies})) == ([], 1)


@pytest.mark.parametrize("where", ["in the proxy's header", "in the handshake", "in the handshake behind the proxy"])
def test_what_drips_before_the_request_meets_the_deadline(monkeypatch, where):
    sent = []

    def drip(connection):
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            if where == "in the proxy's header":
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            elif where == "in the handshake behind the proxy":
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                connection.recv(65536)
            if "handshake" in where:
                connection.sendall(b"\x16\x03\x03\x40\x00")
            for _ in range(200):
                connection.sendall(b"x")
                sent.append(1)
                time.sleep(0.03)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: drip(listener.accept()[0]), daemon=True).start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        for name in ("no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("https_proxy", f"http://{address}" if "proxy" in where else "")
        url = "https://model.invalid/v1" if "proxy" in where else f"https://{address}/v1"
        model = OpenAIChatModel(url, "tiny", timeout_s=2.0, deadline_s=0.5, max_retries=0)
        start = time.monotonic()
        with pytest.raises(ChatError, match=r"none within the 0\.5 s") as caught:
            model.complete(QUESTION)
    assert (caught.value.kind, time.monotonic() - start < 4, len(sent) > 2) == ("late", True, True)


def test_a_name_that_nobody_resolves_meets_the_deadline(monkeypatch):
    asked = threading.Event()

    def resolve(*_, **__):
        asked.set()
        time.sleep(1.5)
        raise OSError("nobody")

    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    model = OpenAIChatModel("http://model.invalid/v1", "tiny", deadline_s=0.3, max_retries=0)
    start = time.monotonic()
    with pytest.raises(ChatError, match=r"none within the 0\.3 s"):
        model.complete(QUESTION)
    assert asked.is_set()
    assert time.monotonic() - start < 1.4


def test_a_bad_proxy_is_told_without_its_password(monkeypatch):
    monkeypatch.setenv("https_proxy", "gopher://user:SECRET@h:1")
    with pytest.raises(InvalidInputError, match="proxy: expected http://") as caught:
        OpenAIChatModel("http://127.0.0.1:9/v1", "tiny")
    assert "SECRET" not in str(caught.value)


def test_a_forked_child_and_its_parent_both_ask(serve):
    server, model = serve(good)
    assert model.complete(QUESTION).text == "in fridge 1"
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if model.complete(QUESTION).text == "in fridge 1" else 1)
        finally:
            os._exit(2)
    for _ in range(200):
        ended, code = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert (ended, code) == (child, 0)
    assert model.complete(QUESTION).text == "in fridge 1"
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    "text",
    [
        "\n", "\r", "data:\n", "data", "data: {", ":", "id: 1\n\n", "event: a\n", "data: \\\n\n", "a" * 99 + "\n",
        "data: [\n",
    ],
)  # fmt: skip
def test_a_megabyte_of_events_takes_no_time(serve, text):
    data = text.encode() * (1_000_000 // len(text))
    _, model = serve(sends(response(data, kind="text/event-stream")), stream=True, max_retries=0)
    start = time.thread_time()
    with pytest.raises(ChatError):
        model.complete(QUESTION)
    assert time.thread_time() - start < 10
    assert model.meter.late == 0  # the deadline is 20 s


def test_without_httpx_the_rest_works_and_the_client_says_what_to_install():
    code = (
        "import sys; sys.modules['httpx'] = None\n"
        "import embodied_mem.agents.planner_critic.chat, embodied_mem.language as language\n"
        "from embodied_mem.errors import MissingDependencyError\n"
        "assert not {'httpx', 'anyio'} & {name for name in sys.modules if sys.modules[name]}\n"
        "language.RecordedChatModel(None, 'nowhere.jsonl', 'm')\n"
        "for kind in (language.OpenAIChatModel, language.ServerEmbedder):\n"
        "    try: kind('http://127.0.0.1:9/v1', 'm')\n"
        "    except MissingDependencyError as error: print(error)\n"
    )
    root = pathlib.Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert done.stdout.splitlines() == ["httpx is missing: pip install 'embodied_mem[chat]'"] * 2, done.stderr


def test_a_connection_is_kept(serve):
    def twice(connection):
        for _ in range(2):
            connection.sendall(response(GOOD, len(GOOD), connection="keep-alive"))
            while b"}" not in connection.recv(65536):
                pass

    server, model = serve(twice, sends(status(400, b"a second connection")))
    assert [model.complete(QUESTION).text for _ in range(2)] == ["in fridge 1"] * 2
    assert len(server.bodies) == 1  # of connections

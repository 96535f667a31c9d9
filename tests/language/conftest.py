"""Fixtures of the chat client's tests."""

from __future__ import annotations

import pytest
from chat_answers import Server
from raw_server import RawServer

from embodied_mem.language import OpenAIChatModel


@pytest.fixture
def serve(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    servers = []

    def start(*scripts, **options):
        servers.append(RawServer(*scripts))
        options = {"sleep": lambda s: None, "timeout_s": 3.0, "deadline_s": 20.0, **options}
        return servers[-1], OpenAIChatModel(servers[-1].url, "tiny", **options)

    yield start
    for server in servers:
        server.listener.close()


@pytest.fixture
def play(monkeypatch):
    """Starts a server with these answers; (server, model)."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    servers = []

    def start(*answers, **options):
        servers.append(Server(*answers))
        options = {"sleep": lambda s: None, **options}
        return servers[-1], OpenAIChatModel(servers[-1].url, "tiny", **options)

    yield start
    for server in servers:
        server.close()

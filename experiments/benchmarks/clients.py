"""Many MCP clients over HTTP against one served memory, on both engines: times by tool, limits, a stop under load.

`python experiments/bench.py --suite clients --clients 200` starts `serve.mcp` over a folder, then over a PostgreSQL
server of its own. Each client is a user. It waits `--pause-s` seconds on average, calls a tool, waits for the answer:

- `tools`: for each tool its calls and milliseconds (p50, p99), as the client sees them; the clients' own time is in.
- `events_per_s`: answered calls that change a memory; `calls_per_s`: all. `first_call_ms_p99`: of all users at once,
  which opens their memories, before.
- `server_mb`: most memory of the serving process; `user_kb`: what it grew by for each open memory.
- `refused`: calls of one user beyond `MAX_CALLS`, each with the error that names it. `errors`: any other answer that
  is an error; `hung`: no answer within two minutes.
- `stop_s`: from SIGTERM, under load, to the end of the process. `lost`: what was answered and is not in the folder or
  on the server then, or was forgotten and is.
- PostgreSQL alone: `row_bytes` of an event, `wal_bytes` of an event with its share of forgets and openings.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from typing import Any

import numpy as np

from embodied_mem.errors import EmbodiedMemError, InvalidInputError
from embodied_mem.memory import LifelongMemory, Scope

PATIENCE_S = 120
TOOLS = {"remember": 0.5, "recall": 0.4, "forget": 0.05, "explain": 0.05}
BURST = 128
"""Calls of one user at a time; the server takes `serve.mcp.MAX_CALLS`."""

_POSITION = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
_EVENTS = """
SELECT sum(last), (SELECT avg(pg_column_size(one)) FROM embodied_mem.events one) FROM (
  SELECT max(seq) AS last FROM (SELECT scope, seq FROM embodied_mem.events UNION ALL
  SELECT scope, seq FROM embodied_mem.states) AS rows GROUP BY scope) AS scopes"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this suite."""
    parser.add_argument("--clients", type=int, default=200, help="clients: users (default 200)")
    parser.add_argument("--load-s", type=float, default=60, help="clients: of the load on each engine (default 60)")
    parser.add_argument("--pause-s", type=float, default=2, help="clients: mean seconds between calls (default 2)")


def bench_clients(args: argparse.Namespace) -> dict[str, Any]:
    """Return the measurements of both engines, PostgreSQL's where it is installed."""
    from attacks.cluster import Cluster, programs

    if args.clients < 1 or args.load_s <= 0:
        raise InvalidInputError(f"--clients, --load-s: expected > 0, got {args.clients}, {args.load_s:g}")
    load = args.clients, args.load_s, args.pause_s, args.seed
    with tempfile.TemporaryDirectory() as folder:
        result: dict[str, Any] = {"embedded": measure(folder, *load)}
    if programs() is not None:
        with Cluster() as cluster:
            LifelongMemory.open(cluster.url, Scope(user="first")).close()  # makes the schema
            before = _row(cluster.url, _POSITION)[0]
            result["postgresql"] = measure(cluster.url, *load)
            events, row_bytes = _row(cluster.url, _EVENTS)
            log = _row(cluster.url, _POSITION)[0] - before
            result["postgresql"] |= {
                "row_bytes": round(float(row_bytes), 1), "wal_bytes": round(float(log / events), 1)
            }  # fmt: skip
    return {"clients": args.clients, "seconds": args.load_s, "pause": args.pause_s, **result}


def _row(url: str, query: str) -> tuple:
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchone()


def measure(place: str, clients: int, seconds: float, pause: float, seed: int) -> dict[str, Any]:
    """Stop a served memory under load; look for what it answered."""
    tokens = {f"the secret of user {number:06d}": f"user{number}" for number in range(clients)}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokens.json"
        path.write_text(json.dumps(tokens))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "embodied_mem.serve.mcp", place, "--weights", ""]
        server = subprocess.Popen([*command, "--tokens", str(path), "--port", str(port)], env=dict(os.environ))
        try:
            load = _Load(f"http://127.0.0.1:{port}", tokens, server, random.Random(seed))
            asyncio.run(load.run(seconds, pause))
        finally:
            server.kill()
            server.wait()
    return load.report() | {"lost": load.losses(place)}


class _Load:
    """Clients of one server, and what they were answered."""

    def __init__(self, url: str, tokens: dict[str, str], server: subprocess.Popen, rng: random.Random):
        self._url, self._tokens, self._server, self._rng = url, tokens, server, rng
        self._texts: dict[str, dict[str, str]] = defaultdict(dict)  # user -> word -> "kept", "gone" or "unknown"
        self._times: dict[str, list[float]] = defaultdict(list)
        self._first: list[float] = []
        self._counts = {"refused": 0, "hung": 0}
        self._errors: list[str] = []
        self._is_stopping = False
        self._stop_s = 0.0

    async def run(self, seconds: float, pause: float) -> None:
        """Call for a time, then burst, then stop the server under load."""
        import httpx

        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx.AsyncClient(timeout=PATIENCE_S, limits=limits, trust_env=False) as self._http:
            await self._until_healthy()
            self._memory_before = self._megabytes()
            await asyncio.gather(*(self._live(token, 0.0, 0.0) for token in self._tokens))  # opens all
            self._first, self._times = self._times["remember"], defaultdict(list)
            began = time.monotonic()
            await asyncio.gather(*(self._live(token, pause, began + seconds) for token in self._tokens))
            self._took, self._load_s = dict(self._times), time.monotonic() - began
            token = next(iter(self._tokens))
            await asyncio.gather(*(self._is_done(token, "recall", {"query": "tea"}) for _ in range(BURST)))
            metrics = (await self._http.get(f"{self._url}/metrics")).text
            self._open = int(re.search(r"open_memories (\d+)", metrics)[1])  # type: ignore[index]
            self._megabytes_most = self._megabytes()
            lives = [asyncio.create_task(self._live(token, 0.0, began + 1e6)) for token in self._tokens]
            await asyncio.sleep(min(seconds, 2.0))
            self._is_stopping = True
            began = time.monotonic()
            self._server.send_signal(signal.SIGTERM)
            await asyncio.to_thread(self._server.wait, PATIENCE_S)
            self._stop_s = time.monotonic() - began
            await asyncio.wait_for(asyncio.gather(*lives), PATIENCE_S)

    async def _until_healthy(self) -> None:
        import httpx

        until = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await self._http.get(f"{self._url}/health")).status_code == 200:
                    return
            assert self._server.poll() is None, "the server ended; its reason stands above"
            assert time.monotonic() < until, "the server does not answer"
            await asyncio.sleep(0.1)

    async def _live(self, token: str, pause: float, end: float) -> None:
        """Call tools until the end, or until the server has gone."""
        words = self._texts[self._tokens[token]]
        if pause:
            await asyncio.sleep(self._rng.random() * pause)
        while not words or time.monotonic() < end:
            (tool,) = self._rng.choices(list(TOOLS), list(TOOLS.values()))
            words_left = [word for word, state in words.items() if state == "kept"]
            if not words_left:
                tool = "remember"
            word = f"word{len(words):05d}x" if tool == "remember" else self._rng.choice(words_left)
            arguments = {
                "remember": {"text": f"The number of box {len(words)} is {word}.", "source": "user"},
                "recall": {"query": f"What is {word}?"},
                "forget": {"object": word},
                "explain": {},
            }[tool]
            if tool in ("remember", "forget"):
                words[word] = "unknown"
            if not await self._is_done(token, tool, arguments):
                return
            if tool in ("remember", "forget"):
                words[word] = "kept" if tool == "remember" else "gone"
            if pause:
                await asyncio.sleep(self._rng.expovariate(1 / pause))

    async def _is_done(self, token: str, tool: str, arguments: dict[str, Any]) -> bool:
        """Return whether a tool has answered, not with an error."""
        import httpx

        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        began = time.perf_counter()
        try:
            answer = await self._http.post(f"{self._url}/mcp", json=request, headers=headers)
            result = answer.json()["result"]
            text, is_error = result["content"][0]["text"], result["isError"]
        except httpx.TimeoutException:
            self._counts["hung"] += 1
            return False
        except (httpx.TransportError, KeyError, ValueError) as error:
            if not self._is_stopping:
                self._errors.append(f"{tool}: {type(error).__name__}: {error}")
            return False
        if is_error and "calls at a time" in text:
            self._counts["refused"] += 1
        elif is_error:
            self._errors.append(f"{tool}: {text}")
        else:
            took = 1e3 * (time.perf_counter() - began)
            self._times[tool].append(took)
        return not is_error

    def _megabytes(self) -> float:
        status = pathlib.Path(f"/proc/{self._server.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def report(self) -> dict[str, Any]:
        """Return the measurements of the load."""
        tools = {
            tool: {"calls": len(took), **{f"p{q}_ms": round(float(np.percentile(took, q)), 1) for q in (50, 99)}}
            for tool, took in sorted(self._took.items())
        }
        calls = {tool: row["calls"] for tool, row in tools.items()}
        events = sum(calls.get(tool, 0) for tool in ("remember", "forget"))
        growth_mb = self._megabytes_most - self._memory_before
        return {
            "tools": tools,
            "events_per_s": round(events / self._load_s, 1),
            "calls_per_s": round(sum(calls.values()) / self._load_s, 1),
            "first_call_ms_p99": round(float(np.percentile(self._first, 99)), 1),
            "server_mb": round(self._megabytes_most, 1),
            "user_kb": round(1024 * growth_mb / max(self._open, 1), 1),
            **self._counts,
            "errors": self._errors[:20],
            "stop_s": round(self._stop_s, 2),
        }

    def losses(self, place: str) -> list[str]:
        """Name what was answered and is not so."""
        problems = []
        for user, words in self._texts.items():
            where = place if "://" in place else pathlib.Path(place) / user
            try:
                with LifelongMemory.open(where, Scope(user=user)) as memory:
                    texts = " ".join(entry.text for entry in memory.get_all())
            except EmbodiedMemError as error:
                problems.append(f"{user}: {error}")
                continue
            problems += [
                f"{user}: {word} is {state}" for word, state in words.items()
                if state == ("gone" if word in texts else "kept")
            ]  # fmt: skip
        return problems

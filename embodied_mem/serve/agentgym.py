"""Worlds behind the HTTP routes of AgentGym's environment servers, which its clients and EvoMemBench's call.

    embodied-mem serve agentgym alfworld --port 36001 --options '{"tasks": "train", "max_steps": 30}'

| route | takes | gives |
|---|---|---|
| `GET /` | | a line of text |
| `POST /create` | | `id` |
| `POST /reset` | `id`, `game` (index of a task), `world_type` | `id`, `observation`, `available_actions`, `task_type` |
| `POST /step` | `id`, `action` | `observation`, `reward`, `available_actions`, `done` |
| `GET /observation`, `/available_actions`, `/detail` | `?id=` | the last answer, or a part of it |
| `POST /close` | `id` | `closed` |

An error is `{"error": ...}` with status 200, as its clients expect. `env_id` may stand for `id`, `task_id` for `game`.
Envs are played in threads; calls of one env wait for each other. Only the standard library is needed.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from embodied_mem.envs.single_env import TextEnv
from embodied_mem.errors import EmbodiedMemError, InvalidInputError
from embodied_mem.evaluation.command import run
from embodied_mem.serve.world_options import world_parser

MAX_BODY = 1 << 20
WORLD_TYPES = ("Text", "Embody", "Hybrid")

Answer = dict[str, Any]


class _Env:
    """One env with its last answer; `lock` is held by the call that plays it."""

    def __init__(self, env: TextEnv):
        self.env, self.lock, self.detail = env, threading.Lock(), Answer()


class Worlds:
    """Envs of one world by number.

    Args:
        world: its name.
        options: of the world's class, such as `tasks` and `max_steps`.
        max_envs: envs at a time; one more closes the one that was not used for longest.
    """

    def __init__(self, world: str, options: Mapping[str, Any] | None = None, max_envs: int = 1024):
        self.world, self._max_envs, self._options = world, max_envs, dict(options or {})
        self._envs: dict[int, _Env] = {}
        self._count, self._lock = 0, threading.Lock()
        TextEnv(world, **self._options).close()  # refuses unknown worlds and options before a client waits

    def create(self, request: Answer) -> Answer:
        """Make an env."""
        env = TextEnv(self.world, **self._options)
        with self._lock:
            number, self._count = self._count, self._count + 1
            self._envs[number] = _Env(env)
            first = next(iter(self._envs)) if len(self._envs) > self._max_envs else None
        if first is not None:
            self.close({"id": first})
        return {"id": number}

    def reset(self, request: Answer) -> Answer:
        """Start a task by its index."""
        slot = self._of(request)
        kind = request.get("world_type", "Text")
        if kind not in WORLD_TYPES:
            raise InvalidInputError(f"world_type: expected one of {', '.join(WORLD_TYPES)}, got {kind!r}")
        game = _number(request, "game", "task_id")
        with slot.lock:
            text, info = slot.env.reset(options={"task_indices": [game]})
            if self.world == "alfworld":
                text = "\n".join(text.split("\n\n")[1:])  # AgentGym leaves ALFWorld's banner out
            answer = {"observation": text, "available_actions": list(info.get("admissible_commands") or ())}
            slot.detail = {**answer, "world_type": kind, "game": game, "done": False, "reward": 0, "deleted": False}
        return {"id": _number(request, "id", "env_id"), **answer, "task_type": info["task_id"]}

    def step(self, request: Answer) -> Answer:
        """Play an action."""
        slot, action = self._of(request), request.get("action")
        if not isinstance(action, str):
            raise InvalidInputError(f"action: expected a string, got {type(action).__name__}")
        with slot.lock:
            if slot.detail.get("done", True):
                raise InvalidInputError("step: the episode is over or never began; reset this env")
            text, _, terminated, truncated, info = slot.env.step(action)
            if text.startswith("You arrive at loc "):  # ALFWorld 0.3; AgentGym leaves it out, too
                text = text.partition(". ")[2]
            answer = {
                "observation": text,
                "reward": float(info["won"]),
                "available_actions": list(info.get("admissible_commands") or ()),
                "done": terminated or truncated,
            }
            slot.detail = {**slot.detail, **answer}
        return answer

    def observation(self, request: Answer) -> Any:
        """Repeat the last text."""
        return self.detail(request)["observation"]

    def available_actions(self, request: Answer) -> Any:
        """Repeat the commands that are possible now."""
        return self.detail(request)["available_actions"]

    def detail(self, request: Answer) -> Answer:
        """Repeat all that is known of the episode."""
        if not (detail := self._of(request).detail):
            raise InvalidInputError("id: the env was never reset")
        return detail

    def close(self, request: Answer) -> Answer:
        """Close an env."""
        self._of(request)
        with self._lock:
            slot = self._envs.pop(_number(request, "id", "env_id"), None)
        if slot:
            with slot.lock:
                slot.env.close()
        return {"closed": slot is not None}

    def close_all(self) -> None:
        """Close every env."""
        for number in list(self._envs):
            self.close({"id": number})

    def _of(self, request: Answer) -> _Env:
        number = _number(request, "id", "env_id")
        with self._lock:
            if slot := self._envs.pop(number, None):
                self._envs[number] = slot  # the one that was used last stands last
                return slot
        state = "was closed" if 0 <= number < self._count else "was never created"
        raise InvalidInputError(f"id: env {number} {state}")


def _number(request: Answer, *names: str) -> int:
    value = next((request[name] for name in names if name in request), None)
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInputError(f"{names[0]}: expected a whole number, got {value!r}")
    return value


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 300  # seconds that a connection may say nothing
    disable_nagle_algorithm = True  # head and body are two writes; a client that stays would wait 40 ms for the second
    worlds: Worlds

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/":
            self._answer(f"This is environment {self.worlds.world}.")
        else:
            self._route(url.path, ("observation", "available_actions", "detail"), dict(parse_qsl(url.query)))

    def do_POST(self) -> None:
        try:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 <= length <= MAX_BODY:
                raise ValueError(f"expected at most {MAX_BODY} bytes, got {length}")
            request = json.loads(self.rfile.read(length) or b"{}")
            if not isinstance(request, dict):
                raise ValueError(f"expected a JSON object, got {type(request).__name__}")
        except (ValueError, RecursionError) as error:
            self.close_connection = True
            self._answer({"error": f"body: {error}"})
            return
        self._route(urlsplit(self.path).path, ("create", "reset", "step", "close"), request)

    def _route(self, path: str, routes: tuple[str, ...], request: Answer) -> None:
        if path.strip("/") not in routes:
            self._answer({"error": f"no route {path}; there are {', '.join(routes)}"}, status=404)
            return
        try:
            self._answer(getattr(self.worlds, path.strip("/"))(request))
        except Exception as error:  # whatever it is, a client waits for an answer
            is_ours = isinstance(error, EmbodiedMemError)
            self._answer({"error": str(error) if is_ours else f"{type(error).__name__}: {error}"})

    def _answer(self, answer: Any, status: int = 200) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *request: Any) -> None:
        """Stay silent."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def make_server(worlds: Worlds, host: str = "127.0.0.1", port: int = 36001) -> ThreadingHTTPServer:
    """Make the server of a world's envs.

    `serve_forever()` runs it, `shutdown()` ends it. Port 0 takes a free one.
    """
    return _Server((host, port), type("Handler", (_Handler,), {"worlds": worlds}))


def main(arguments: Sequence[str] | None = None, prog: str = "python -m embodied_mem.serve.agentgym") -> int:
    """Serve until interrupted."""
    parser = world_parser(prog, __doc__, 36001)
    parser.add_argument("--max_envs", type=int, default=1024, help="envs at a time (default 1024)")
    args = parser.parse_args(arguments)
    if args.max_envs < 1:
        parser.error("--max_envs: expected at least 1")
    worlds = Worlds(args.world, args.options, args.max_envs)
    try:
        server = make_server(worlds, args.host, args.port)
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"--host, --port: cannot serve at {args.host}:{args.port}: {error}") from error
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"{args.world} at http://{args.host}:{server.server_address[1]}; Ctrl-C ends it", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 130
    finally:
        server.server_close()
        worlds.close_all()
    return 0


if __name__ == "__main__":
    run(lambda: sys.exit(main()))

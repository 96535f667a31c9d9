"""Episodes on the hosts of a Ray cluster: one process a host, each with a vector environment of its own.

    python experiments/evaluate.py --config=alfworld --deliveries none compiled --ray auto
    python experiments/train.py --config=alfworld --ray auto                 # the teacher's episodes

Every host runs the same program. Batches of episodes are cut as on one host, and a host plays those that it claims
from a board, so results are those of one process. A host that is lost or fails gives its batches back; another one
plays them from their seeds. The program that was started shows the progress and keeps what the others play. Weights and
data lie under the same paths on all hosts. Needs `pip install 'embodied_mem[ray]'`.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from embodied_mem.errors import InvalidInputError, MissingDependencyError
from embodied_mem.parallel import resume
from embodied_mem.parallel.resume import Key
from embodied_mem.registry import registered, take

PROBE_S = 5.0
_WATCH_S = 0.5
STARTER = ""
"""Name of the process that was started: it plays only what no host is left to play."""


class SharedRows:
    """The state of a `Board`, in a process of its own; all methods take the caller's name first."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[Key, list[Any]]] = {}
        self._claims: dict[tuple[str, Key], str] = {}  # the first episode of a batch -> who plays it
        self._players: set[str] = set()

    def begin(self, player: str) -> None:
        """Count a player in."""
        self._players.add(player)

    def end(self, player: str) -> None:
        """Count a player out; what it claimed is free."""
        self._players.discard(player)
        self._claims = {batch: who for batch, who in self._claims.items() if who != player}

    def claim(self, player: str, head: str, batches: Sequence[Sequence[Key]]) -> int | None:
        """Give a batch, as `Board.claim`."""
        rows = self._rows.setdefault(head, {})
        missing = [i for i, batch in enumerate(batches) if not all(key in rows for key in batch)]
        if not missing:
            return None
        if player == STARTER and self._players:
            return -1
        for i in missing:
            if self._claims.setdefault((head, batches[i][0]), player) == player:
                return i
        return -1

    def put(self, player: str, head: str, rows: Sequence[tuple[Key, list[Any]]]) -> None:
        """Keep outcomes; the first of an episode counts."""
        for key, outcome in rows:
            self._rows.setdefault(head, {}).setdefault(key, outcome)

    def rows(self, player: str, head: str, since: int) -> list[tuple[Key, list[Any]]]:
        """Give outcomes, as `Board.rows`."""
        return [*self._rows.get(head, {}).items()][since:]


class _RayBoard:
    """A `Board` that asks an actor."""

    def __init__(self, actor: Any, player: str) -> None:
        self._actor, self._player = actor, player

    def __getattr__(self, name: str) -> Callable[..., Any]:
        import ray

        return lambda *arguments: ray.get(getattr(self._actor, name).remote(self._player, *arguments))


def _play(program: Callable[[pathlib.Path], Any], entries: Any, actor: Any, player: str) -> None:
    """Run the program on a host; its file is dropped."""
    take(entries)
    resume.board = _RayBoard(actor, player)
    with tempfile.TemporaryDirectory() as folder:
        program(pathlib.Path(folder) / "result")


def _probe(address: str) -> None:
    """Connect to HOST:PORT or ray://HOST:PORT; raise OSError or ValueError if nobody listens."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if colon:
        socket.create_connection((host.strip("[]"), int(port)), PROBE_S).close()


@contextlib.contextmanager
def hosts(address: str, program: Callable[[pathlib.Path], Any]) -> Iterator[None]:
    """Let all hosts of a cluster play what the block plays.

    Args:
        address: of the cluster, as `ray.init` takes it: "auto", "HOST:PORT"; "local" starts one here.
        program: does the same in another process, with a file for its result.

    Raises:
        MissingDependencyError: Ray is not installed.
        InvalidInputError: no cluster answers.
    """
    try:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
    except ImportError as error:
        raise MissingDependencyError(f"{error.name} is missing: pip install 'embodied_mem[ray]'") from error
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        _probe(address)  # Ray would try for minutes
        ray.init(address=address, runtime_env={"env_vars": paths}, log_to_driver=False, configure_logging=False)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"--ray: expected a cluster at {address!r}, got {error}; start one with `ray start --head`, or give local"
        ) from error
    here = On(ray.get_runtime_context().get_node_id(), soft=False)
    actor = ray.remote(SharedRows).options(num_cpus=0, scheduling_strategy=here).remote()
    play = ray.remote(_play)
    running = {}
    for node in (node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")):
        name, cores = node["NodeID"], node["Resources"]["CPU"]
        ray.get(actor.begin.remote(name))
        options = play.options(num_cpus=cores, max_retries=0, scheduling_strategy=On(name, soft=False))
        running[options.remote(program, registered(), actor, name)] = name

    over = threading.Event()

    def watch() -> None:
        while running and not over.is_set():
            for task in ray.wait([*running], num_returns=1, timeout=_WATCH_S)[0]:
                name = running.pop(task)
                try:
                    ray.get(task)
                except Exception as error:
                    (*_, reason) = f"{type(error).__name__}: {error}".strip().splitlines()
                    print(f"lost: host {name[:8]} ({reason}); others play its episodes", file=sys.stderr)
                ray.get(actor.end.remote(name))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    resume.board = _RayBoard(actor, STARTER)
    try:
        yield
    finally:
        resume.board = None
        over.set()
        watcher.join()  # a thread that waits in Ray while it shuts down is a segmentation fault
        ray.shutdown()

"""Forks of a process that holds a store, an index, a graph or environments with threads: each child ends.

It may use what it inherited or be refused with an error; it must not hang, and must not harm its parent.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from embodied_mem.errors import EmbodiedMemError
from embodied_mem.memory import KnowledgeGraph, LifelongMemory, Triple, VectorIndex

from . import Counts

PATIENCE_S = 10.0


def fork(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Children that end, use, delete or close what they inherited."""
    makers: dict[str, Callable[[], tuple[Any, Callable[[], object]]]] = {
        "memory": lambda: _memory(folder, rng),
        "index": _index,
        "graph": _graph,
        "environments": _envs,
    }
    name = rng.choice(sorted(makers))
    held, use = makers[name]()
    acts = ["exit", "use", "delete", "return"]
    for act in acts:
        child = os.fork()
        if child == 0:
            code = 0
            try:
                if act == "use":
                    _try(use)
                elif act == "delete":
                    del held, use
                    gc.collect()
                elif act == "return":  # as a program that comes to its end
                    _try(use)
                    _try(getattr(held, "close", lambda: None))
                    sys.exit(0)
                elif act == "exit":
                    sys.exit(0)
            except SystemExit:
                _end()
            except BaseException as error:
                os.write(2, f"{name}, {act}: {error!r}\n".encode())
                code = 1
            os._exit(code)
        code = _wait(child, f"{name}: the child that should {act}")
        assert code == 0, f"{name}: the child that should {act} ended with {code}"
        use()  # the parent goes on
    if hasattr(held, "close"):
        held.close()
    return Counts(len(acts), len(acts))


def _end() -> None:
    """End as an interpreter does; that finds what is still held."""
    import atexit

    atexit._run_exitfuncs()
    gc.collect()


def _try(call: Callable[[], object]) -> None:
    with contextlib.suppress(EmbodiedMemError):
        call()


def _wait(child: int, who: str) -> int:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        dead, status = os.waitpid(child, os.WNOHANG)
        if dead:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError(f"{who} hangs")


def _memory(folder: pathlib.Path, rng: random.Random) -> tuple[Any, Callable[[], object]]:
    memory = LifelongMemory.open(folder / "m", fsync=rng.choice(["always", "interval", "never"]))
    return memory, lambda: memory.tell("I like tea.")


def _index() -> tuple[Any, Callable[[], object]]:
    index = VectorIndex(32, kind="hnsw")
    rows = np.random.default_rng(0).normal(size=(2000, 32))
    index.add(np.arange(2000), rows)
    return index, lambda: index.search(rows[:400], 5)


def _graph() -> tuple[Any, Callable[[], object]]:
    graph = KnowledgeGraph()
    graph.update([Triple(f"thing {i}", "in", f"place {i % 5}", valid_at=i) for i in range(50)])
    return graph, lambda: graph.update([Triple("thing 1", "in", "place 2", valid_at=99)])


def _envs() -> tuple[Any, Callable[[], object]]:
    from embodied_mem.worlds.alfworld.env import AlfworldVectorEnv, Game

    problem = (pathlib.Path(__file__).parent / "seeds" / "kitchen.pddl").read_text()
    game = Game.from_problem(problem, "cool some apple and put it in countertop.", "kitchen")
    envs = AlfworldVectorEnv([game], num_envs=6, num_threads=3)
    envs.reset()
    return envs, lambda: envs.step(["look"] * 6)

"""Beginnings of native tasks: taken from the original once, then kept in a folder of the user.

    tasks = Beginnings()
    task = tasks.task("find-plant", 12)

A process of the original is started where a beginning is missing, and kept for the next one.
"""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path

from embodied_mem.worlds.scienceworld.capture import NATIVE_GAMES, capture
from embodied_mem.worlds.scienceworld.engine import Task, read_task
from embodied_mem.worlds.scienceworld.jvm import Simulator

_FORM = 2
"""Grows with what `capture` takes, since beginnings of an earlier form lack it."""


def beginnings_folder() -> Path:
    """Return where beginnings are kept: in EMBODIED_MEM_CACHE or ~/.cache/embodied_mem."""
    return Path(os.environ.get("EMBODIED_MEM_CACHE") or Path.home() / ".cache/embodied_mem") / "scienceworld"


def is_native(game: str, simplifications: str = "") -> bool:
    """Tell whether a task is played natively."""
    return game in NATIVE_GAMES and not simplifications


class Beginnings:
    """The beginnings that were asked for. Several threads may ask."""

    def __init__(self) -> None:
        self._folder = beginnings_folder()
        self._tasks: dict[tuple[str, int], Task] = {}
        self._simulator: Simulator | None = None
        self._lock = threading.Lock()

    def task(self, game: str, variation: int) -> Task:
        """Return a native task.

        Raises:
            InvalidInputError: there is no such variation.
            MissingDependencyError, SimulatorError: it has to be taken from the original, which cannot be started.
        """
        with self._lock:
            key = game, variation
            if key not in self._tasks:
                self._tasks[key] = read_task(self._read(game, variation), f"{game}/{variation}")
            return self._tasks[key]

    def _read(self, game: str, variation: int) -> bytes:
        file = self._folder / f"{game}_{variation}.{_FORM}.json.gz"
        if file.exists():
            return gzip.decompress(file.read_bytes())
        if self._simulator is None or self._simulator.closed:
            self._simulator = Simulator()
        text = json.dumps(capture(self._simulator, game, variation)).encode()
        self._folder.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(gzip.compress(text))
        part.replace(file)
        return text

    def close(self) -> None:
        """End the original's process, if one runs."""
        with self._lock:
            if self._simulator is not None:
                self._simulator.close()

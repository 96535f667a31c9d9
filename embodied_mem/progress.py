"""Progress of long work: a bar with rate and time left on a terminal, a plain line now and then elsewhere.

with Progress("compiler SFT", total=1000, start=200, unit="step") as progress:
    for ...:
        progress.update(loss=loss)
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import TextIO


class Progress:
    """Reports on `total` units of work, of which `start` were done before.

    Args:
        title: what is being done.
        total: units in all.
        start: units done earlier (a resumed run); they do not count for the rate.
        unit: name of one unit, e.g. "step".
        interval_s: seconds between plain lines.
        file: where to; a bar if it is a terminal and the package `tqdm` is installed.
        clock: seconds, monotonic.
        silent: say nothing, for the other processes of a run.
    """

    def __init__(
        self,
        title: str,
        total: int,
        *,
        start: int = 0,
        unit: str = "step",
        interval_s: float = 30.0,
        file: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        silent: bool = False,
    ) -> None:
        self._title, self._total, self._start, self._unit = title, total, start, unit
        self._interval_s, self._clock = interval_s, clock
        self._file, self._silent = sys.stderr if file is None else file, silent
        self._done, self._reported = start, -1
        self._notes: dict[str, float | str] = {}
        self._began = self._last_line = clock()
        self._bar = None
        if self._file.isatty() and not silent:
            with contextlib.suppress(ImportError):  # without it there are plain lines
                import tqdm

                self._bar = tqdm.tqdm(
                    desc=title, total=total, initial=start, unit=unit, file=self._file, dynamic_ncols=True
                )

    def update(self, count: int = 1, **notes: float | str) -> None:
        """Counts `count` more units as done; `notes` are shown beside them (latest value of each name)."""
        self._done += count
        self._notes.update(notes)
        if self._bar is not None:
            self._bar.set_postfix({name: _short(value) for name, value in self._notes.items()}, refresh=False)
            self._bar.update(count)
        elif self._clock() - self._last_line >= self._interval_s:
            self._print()

    def close(self) -> None:
        """Reports the final count."""
        if self._bar is not None:
            self._bar.close()
        elif self._reported != self._done:
            self._print()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _print(self) -> None:
        self._last_line, self._reported = self._clock(), self._done
        if self._silent:
            return
        parts = [f"{self._title}: {self._done}/{self._total} {self._unit}s"]
        elapsed_s, done = self._last_line - self._began, self._done - self._start
        if done > 0 and elapsed_s > 0:
            rate = done / elapsed_s
            parts.append(f"{rate:.3g}/s" if rate >= 1 else f"{1 / rate:.3g} s each")
            parts.append(f"{_duration((self._total - self._done) / rate)} left")
        parts += [f"{name} {_short(value)}" for name, value in self._notes.items()]
        print(", ".join(parts), file=self._file, flush=True)


def _duration(seconds: float) -> str:
    """Returns h:mm:ss or m:ss."""
    minutes, seconds = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{float(value):.4g}"

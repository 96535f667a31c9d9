"""Progress of long work: a bar with rate and time left on a terminal, a plain line now and then elsewhere.

with Stages({"executor": 800, "compiler": 1400}) as stages:      # expected cost, in any unit
    stages.begin("compiler")
    with Progress("compiler SFT", total=1000, start=200, unit="step") as progress:
        for ...:
            progress.update(loss=loss)                           # "stage 2/2, compiler SFT: 300/1000 steps, ..."
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

_stages: contextvars.ContextVar[Stages | None] = contextvars.ContextVar("stages", default=None)
_EARLY = 0.01
"""No time left is told before this share of the work is done: the first units compile."""
_RESUMED = 0.2
"""A stage that took less than this share of what others lead to expect was there already."""


class Stages:
    """The stages of long work: which one it is in, and about how long all of it still takes.

    Args:
        costs: expected cost of each stage in order, in any unit; only their ratios matter.
        clock: seconds, monotonic.
    """

    def __init__(self, costs: Mapping[str, float], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._costs, self._names, self._clock = dict(costs), list(costs), clock
        self._at, self._began = -1, clock()
        self._spent: list[tuple[float, float]] = []  # (seconds, cost) of the stages behind

    def __enter__(self) -> Stages:
        self._token = _stages.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _stages.reset(self._token)

    def begin(self, name: str) -> None:
        """The stage before is over, this one begins."""
        if self._at >= 0:
            self._spent.append((self._clock() - self._began, self._costs[self._names[self._at]]))
        self._at, self._began = self._names.index(name), self._clock()

    def __str__(self) -> str:
        return f"stage {self._at + 1}/{len(self._names)}" if self._at >= 0 else ""

    def left_s(self, here_s: float) -> float | None:
        """Seconds that all of it still takes, if what is being done takes `here_s` more; None where nothing tells."""
        name = self._names[self._at]
        here = self._clock() - self._began + here_s, self._costs[name]
        paces = sorted(seconds / cost for seconds, cost in (*self._spent, here) if cost > 0)
        if not paces:
            return None
        worked = [one for one in (*self._spent, here) if one[1] > 0 and one[0] > _RESUMED * paces[-1] * one[1]]
        pace = sum(seconds for seconds, _ in worked) / sum(cost for _, cost in worked)
        rest = max(here_s, pace * here[1] - (self._clock() - self._began))
        return rest + pace * sum(self._costs[later] for later in self._names[self._at + 1 :])


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
        self._stages = _stages.get()
        title = f"{self._stages}, {title}" if self._stages is not None and str(self._stages) else title
        self._title, self._total, self._start, self._unit = title, total, start, unit
        self._interval_s, self._clock = interval_s, clock
        self._file, self._silent = sys.stderr if file is None else file, silent
        self._done, self._reported = start, -1
        self._notes: dict[str, float | str] = {}
        self._last_line = clock()
        self._marks = collections.deque([(self._last_line, start)], maxlen=2)  # (time, done) at the latest two lines
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
            shown = {name: _short(value) for name, value in self._notes.items()}
            if whole := self._left_in_all():
                shown["in all"] = whole
            self._bar.set_postfix(shown, refresh=False)
            self._bar.update(count)
            if self._clock() - self._marks[-1][0] >= self._interval_s:
                self._marks.append((self._clock(), self._done))
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
        if seconds := self._each_s():
            parts.append(f"{1 / seconds:.3g}/s" if seconds <= 1 else f"{seconds:.3g} s each")
            if self._told():
                parts.append(f"{_duration((self._total - self._done) * seconds)} left")
            if whole := self._left_in_all():
                parts.append(f"about {whole} in all")
        parts += [f"{name} {_short(value)}" for name, value in self._notes.items()]
        print(", ".join(parts), file=self._file, flush=True)
        self._marks.append((self._last_line, self._done))

    def _each_s(self) -> float:
        """Seconds of a unit since the line before the last one, 0 where nothing tells."""
        began, done = self._marks[0]
        return (self._clock() - began) / (self._done - done) if self._done > done else 0.0

    def _told(self) -> bool:
        return self._done - self._start >= _EARLY * self._total

    def _left_in_all(self) -> str:
        """The time left of all stages, "" where there is but this work."""
        each_s = self._each_s()
        if self._stages is None or not str(self._stages) or not each_s or not self._told():
            return ""
        left = self._stages.left_s((self._total - self._done) * each_s)
        return "" if left is None else _duration(left)


def _duration(seconds: float) -> str:
    """Returns h:mm:ss or m:ss."""
    minutes, seconds = divmod(round(max(seconds, 0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{float(value):.4g}"

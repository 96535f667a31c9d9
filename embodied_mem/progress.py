"""Progress of long work: a bar with rate and time left on a terminal, a plain line now and then elsewhere.

with Stages({"executor": 800, "compiler": 1400}) as stages:      # expected cost, in any unit
    stages.begin("compiler")
    with Progress("compiler SFT", total=1000, start=200, unit="step") as progress:
        for ...:
            progress.update(loss=loss)                           # "stage 2/2, compiler SFT: 300/1000 steps, ..."
for game in counted(games, "teacher", "game"): ...
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TextIO, TypeVar

Item = TypeVar("Item")

_stages: contextvars.ContextVar[Stages | None] = contextvars.ContextVar("stages", default=None)
_FIRST_UNITS = 10
"""No time left is told before so many units of a stage: the first ones compile."""
_MANY_BLOCKS, _RECENT_BLOCKS = 40, 400
"""Least blocks at which slow ones count, too; most blocks that are looked at."""
_RESUMED = 0.2
"""A stage that took less than this share of what others lead to expect was there already."""


class Stages:
    """The stages of long work: which one it is in, and about how long all of it still takes.

    Args:
        costs: expected cost of each stage in order, in any unit; only their ratios matter.
        clock: seconds, monotonic.

    Attributes:
        seconds: by finished stage.
    """

    def __init__(self, costs: Mapping[str, float], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._costs, self._names, self._clock = dict(costs), list(costs), clock
        self._at, self._began = -1, clock()
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> Stages:
        self._token = _stages.set(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _stages.reset(self._token)

    def begin(self, name: str) -> None:
        """End the stage before and begin this one."""
        self.end()
        self._at, self._began = self._names.index(name), self._clock()

    def end(self) -> None:
        """Count the time of the stage that is over."""
        if self._at >= 0:
            self.seconds[self._names[self._at]] = self._clock() - self._began

    def __str__(self) -> str:
        return f"stage {self._at + 1}/{len(self._names)}" if self._at >= 0 else ""

    def left_s(self, here_s: float) -> float | None:
        """Returns the seconds left of all stages.

        Args:
            here_s: seconds that the work of this stage still takes.
        """
        name = self._names[self._at]
        here = self._clock() - self._began + here_s, self._costs[name]
        spent = [here, *((seconds, self._costs[stage]) for stage, seconds in self.seconds.items())]
        paces = [seconds / cost for seconds, cost in spent if cost > 0]
        if not paces:
            return None
        worked = [one for one in spent if one[1] > 0 and one[0] > _RESUMED * max(paces) * one[1]]
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
        interval_s: float = 10.0,
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
        self._began = self._last_line = self._last_unit = clock()
        self._blocks: collections.deque[tuple[float, int]] = collections.deque(maxlen=_RECENT_BLOCKS)
        self._bar = None
        if self._file.isatty() and not silent:
            with contextlib.suppress(ImportError):  # without it there are plain lines
                import tqdm

                self._bar = tqdm.tqdm(
                    desc=title, total=total, initial=start, unit=unit, file=self._file, dynamic_ncols=True,
                    bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}, {rate_fmt}{postfix}]",
                )  # fmt: skip

    def update(self, count: int = 1, **notes: float | str) -> None:
        """Count `count` more units as done.

        `notes` are shown beside them (latest value of each name).
        """
        now = self._clock()
        self._done += count
        self._count_block(now, count)
        self._notes.update(notes)
        if self._bar is not None:
            if now - self._last_line >= 1:
                self._last_line = now
                left = dict(zip(("left", "all stages left"), self._times_left()))
                shown = {name: _short(value) for name, value in self._notes.items()}
                self._bar.set_postfix(left | shown, refresh=False)
            self._bar.update(count)
        elif now - self._last_line >= self._interval_s:
            self._print()

    def _count_block(self, now: float, count: int) -> None:
        """Keep how long the newest units took.

        Units that come at once, as a batch does, are one block.
        """
        gap, mean = now - self._last_unit, (now - self._began) / max(self._done - self._start, 1)
        self._last_unit = now
        if self._blocks and (gap <= 0.02 * mean or not self._blocks[-1][1]):  # one without units waits for some
            seconds, units = self._blocks.pop()
            self._blocks.append((seconds + gap, units + count))
        else:
            self._blocks.append((gap, count))

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
            left = [f"{time} left" for time in self._times_left()]
            parts += [left[0], *(f"all stages {time}" for time in left[1:])]
        parts += [f"{name} {_short(value)}" for name, value in self._notes.items()]
        print(", ".join(parts), file=self._file, flush=True)

    def _each_s(self) -> float:
        """Return the seconds of a unit; 0 if too few are done.

        It is the mean over the latest half. The newest block may be incomplete and is left out; of few blocks, so are
        those above four times their median, which compile.
        """
        blocks, units = list(self._blocks)[:-1], self._done - self._start
        recent: list[tuple[float, int]] = []
        if units < _FIRST_UNITS or len(blocks) < 2:
            return 0.0
        while blocks and 2 * sum(count for _, count in recent) < units:
            recent.append(blocks.pop())
        if len(recent) < _MANY_BLOCKS:
            median = sorted(seconds / count for seconds, count in recent)[(len(recent) - 1) // 2]
            recent = [(seconds, count) for seconds, count in recent if seconds <= 4 * median * count] or recent
        return sum(seconds for seconds, _ in recent) / sum(count for _, count in recent)

    def _times_left(self) -> list[str]:
        """Return the time left of this work and all stages, where known."""
        if not (each_s := self._each_s()):
            return []
        here_s = (self._total - self._done) * each_s
        in_stages = self._stages is not None and str(self._stages)
        whole = self._stages.left_s(here_s) if self._stages is not None and in_stages else None
        return [duration(seconds) for seconds in (here_s, whole) if seconds is not None]


def counted(items: Sequence[Item], title: str, unit: str) -> Iterator[Item]:
    """Yield items and report how many are done."""
    with Progress(title, len(items), unit=unit) as progress:
        for item in items:
            yield item
            progress.update()


def duration(seconds: float) -> str:
    """Return a time as a person says it.

    Examples are "45 s", "12 min", "3 h 5 min".
    """
    seconds = max(seconds, 0)
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{float(value):.4g}"

"""Views: from where, when on the caller's clock and with which images something was seen.

    views = ViewMemory()
    views.see({"pose": [1.2, 0.4, 0.0], "clock": 1732.5}, episode=0, step=1, time=1)
    views.near((1.0, 0.4), within_m=0.5)              # times of the memory, ascending
    views.at(1).pose                                  # (1.2, 0.4, 0.0)

What was seen stands in the graph, with the same time: `LifelongMemory.sightings` puts both together. Numbers are kept
to a millionth of a metre, a second and a part of a quaternion. Of images, what `images.image_record` keeps.
"""

from __future__ import annotations

import bisect
import datetime
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from ..errors import InvalidInputError
from .arguments import checked_mapping, checked_real, checked_rows, checked_text, shown
from .events import ImageRow, ViewEvent, check
from .graph import Scope
from .images import image_text
from .paged_rows import PagedRows
from .record import Record, RecordMemory, Source, whole_number
from .stored_modules import Selector

_EVENT = "view event"
_MICRO = 1e6
_MOST = 9e12
"""Largest number, whose millionths fit into 64 bits."""

_CENTURY_S, _LAST_S = 946_684_800, 4_102_444_800  # the first seconds of 2000 and of 2100

_NONE = -(2**63)
_TIME, _EPISODE, _STEP, _CLOCK, _X, _Y, _Z = range(7)
_WIDTH = 11  # and a quaternion
_EMPTY = (_NONE,) * _WIDTH


def checked_pose(value: Any) -> list[float]:
    """Return x, y, z and perhaps a quaternion; z defaults to 0."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    numbers = [_checked_size("pose", one) for one in checked_rows("pose", value)]
    if len(numbers) not in (2, 3, 7):
        raise InvalidInputError(
            f"pose: expected x, y or x, y, z in metres, or x, y, z and a quaternion x, y, z, w; got {shown(numbers)}"
        )
    return [*numbers, 0.0] if len(numbers) == 2 else numbers


def checked_clock(value: Any) -> float:
    """Seconds on the caller's clock."""
    return _checked_size("time", value)


def clock_text(seconds: float) -> str:
    """Write a time of the caller's clock."""
    if seconds < _CENTURY_S or seconds > _LAST_S:
        return f"at {seconds:.0f} s"
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M")


def _checked_size(name: str, value: Any) -> float:
    number = checked_real(name, value)
    if abs(number) > _MOST:
        raise InvalidInputError(f"{name}: expected -{_MOST:.0e} to {_MOST:.0e}, got {shown(value)}")
    return number


class ViewMemory(RecordMemory):
    """The views of one scope, one for each observation that has a pose, a time or images."""

    format_name = "embodied_mem.views"
    module = "views"

    def __init__(self, scope: Scope | None = None, *, record: Callable[[dict[str, Any]], None] | None = None):
        """Make an empty memory. Args as for `RecordedModule`."""
        super().__init__(scope, record)
        self._clear()

    def _clear(self) -> None:
        self._rows = PagedRows(_WIDTH)
        self._pictures: dict[int, str] = {}  # number -> JSON of images, and of what is said of them
        self.changed: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self.numbers())

    # Changing.

    def see(self, view: Mapping[str, Any], *, episode: int, step: int, time: int) -> None:
        """Take note of a view."""
        self._record(self.propose(view, episode=episode, step=step, time=time))

    def propose(self, view: Mapping[str, Any], *, episode: int, step: int, time: int) -> dict[str, Any]:
        """Return the event that `see` records; nothing changes.

        Args:
            view: some of "pose" (`checked_pose`), "clock" (seconds), "images" (`image_record`), and "shows", texts
                about what is in them.
            episode, step, time: when.
        """
        return {**checked_mapping("view", view), "op": "see", "episode": episode, "step": step, "time": time}

    def check(self, event: Mapping[str, Any]) -> None:
        check(ViewEvent, _EVENT, event)
        if "pose" in event and len(checked_pose(event["pose"])) != len(event["pose"]):
            raise InvalidInputError(f"{_EVENT}: expected x, y, z of a pose, got {shown(event['pose'])}")
        if "clock" in event:
            checked_clock(event["clock"])

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """Apply a checked event. Raises InvalidInputError if older than the last."""
        number = len(self._rows)
        if number and self._rows.get(number - 1, _TIME) > event["time"]:
            raise InvalidInputError(f"{_EVENT}: expected a time from the last one on, got {event['time']}")
        clock = round(event["clock"] * _MICRO) if "clock" in event else _NONE
        row = [event["time"], event["episode"], event["step"], clock]
        row += [round(value * _MICRO) for value in event.get("pose", ())]
        self._rows.lengthen(number + 1, _EMPTY)
        self._rows.put(number, row)
        if event.get("images"):
            shown_there = {"images": event["images"], "shows": event.get("shows", [])}
            self._pictures[number] = json.dumps(shown_there, ensure_ascii=False)
        self.changed = [("add", number)]

    # Reading.

    def numbers(self) -> list[int]:
        """Return the numbers of the views that were not forgotten."""
        found: list[int] = np.flatnonzero(self._rows.column(_EPISODE) != _NONE).tolist()
        return found

    def record(self, number: int) -> Record:
        """Make a view's record with its "clock". Raises InvalidInputError without one."""
        if not self.has(number):
            raise InvalidInputError(f"view: expected the number of one, got {shown(number)}")
        time, episode, step, clock, *numbers = self._rows[number]
        images = tuple(json.loads(self._pictures[number])["images"]) if number in self._pictures else ()
        pose = tuple(value / _MICRO for value in numbers if value != _NONE)
        data = {} if clock == _NONE else {"clock": clock / _MICRO}
        said = [f"from ({', '.join(f'{value:.2f}' for value in pose[:3])}) m"] if pose else []
        said += [f"at {seconds:.2f} s" for seconds in data.values()]
        text = f"step {step} was seen {', '.join([*said, *map(image_text, images)])}"
        return Record(
            f"views:{number}", "views", "view", text, recorded=time, valid_from=time, pose=pose, images=images,
            data=data, sources=(Source(episode, step, time),),
        )  # fmt: skip

    def number_like(self, text: str) -> int | None:
        number = whole_number(text)
        return number if number is not None and self.has(number) else None

    def at(self, time: int) -> Record | None:
        """Return the view at a memory time; None without one."""
        number = bisect.bisect_left(range(len(self._rows)), time, key=lambda row: self._rows.get(row, _TIME))
        return self.record(number) if self.has(number) and self._rows.get(number, _TIME) == time else None

    def has(self, number: int) -> bool:
        """Return whether there is a view of this number."""
        return 0 <= number < len(self._rows) and self._rows.get(number, _EPISODE) != _NONE

    def near(self, pose: Sequence[float] | None, within_m: float, after: float | None = None) -> np.ndarray:
        """Return ascending int64[n] times of views near a pose after `clock`.

        Args:
            pose: x, y, z in metres; None for anywhere.
            within_m: how near.
            after: seconds; None for any time.
        """
        found = [np.zeros(0, np.int64)]
        for _, page in self._rows.pages():
            fits = page[_EPISODE] != _NONE
            if after is not None:
                fits &= page[_CLOCK] > max(math.floor(after * _MICRO), _NONE + 1)
            if pose is not None:
                with np.errstate(over="ignore"):
                    apart = page[_X : _Z + 1] / _MICRO - np.array(pose[:3])[:, None]
                fits &= (page[_X] != _NONE) & ((apart**2).sum(0) <= within_m**2)
            found.append(page[_TIME][fits])
        return np.concatenate(found)

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        return {"pictures": [[number, text] for number, text in self._pictures.items()]}, self._rows.to_bytes()

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        (data,) = parts
        rows = PagedRows.from_bytes(data, _WIDTH)
        pictures = {int(number): checked_text("state: images", text) for number, text in state["pictures"]}
        for number, text in pictures.items():
            if not 0 <= number < len(rows):
                raise InvalidInputError(f"state: expected a view {number}, got {len(rows)} of them; it is damaged")
            for record in json.loads(text)["images"]:
                check(ImageRow, "state: image", record)
        self._clear()
        self._rows, self._pictures = rows, pictures

    def fork(self) -> Self:
        other = super().fork()
        other._rows, other._pictures = self._rows.fork(), dict(self._pictures)
        return other

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove an episode's views, an object's images, or all."""
        views, images = len(self), len(self._pictures)
        if selector.everything:
            self._clear()
        for number in self.numbers():
            if selector.is_entry("views", number) or self._rows.get(number, _EPISODE) == selector.episode:
                self._rows.put(number, [self._rows.get(number, _TIME), *_EMPTY[1:]])  # the order of times stays
                self._pictures.pop(number, None)
        if selector.object is not None:
            self._pictures = {n: text for n, text in self._pictures.items() if not _names(selector, json.loads(text))}
        return {"views": views - len(self), "images": images - len(self._pictures)}


def _names(selector: Selector, picture: Mapping[str, Any]) -> bool:
    said = [*picture["shows"], *map(image_text, picture["images"])]
    return any(map(selector.in_text, said))

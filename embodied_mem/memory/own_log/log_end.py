"""Records how far a log went, to detect a log that was cut between two events or lost its last file.

    end = LogEnd.read(folder)
    end.missing(log.acknowledged)           # "expected events up to 17, got 12: ..."; "" if nothing is missing
    end.write(log.acknowledged)             # when the store is opened and closed

The number is a lower bound: events that are recorded after it was written only add to the log. So a writer that was
killed leaves no false alarm, and nothing is written while events are recorded; what such a writer recorded since it
opened the store is not covered. Format: docs/formats.md.
"""

from __future__ import annotations

import pathlib
import re

from ...atomic_file import write_text
from ...native import part

END_NAME = "LAST"
_LINE = re.compile(r"([0-9]{1,20}) ([0-9a-f]{8})\n")


class LogEnd:
    """The file `LAST` of a store's folder.

    Attributes:
        path: of the file.
        sequence: number of the last event that the log must hold; 0 without a file.
    """

    def __init__(self, path: pathlib.Path, sequence: int, problem: str = ""):
        self.path, self.sequence, self._problem = path, sequence, problem

    @classmethod
    def read(cls, folder: pathlib.Path) -> LogEnd:
        """What the folder says; a damaged file says nothing but that it is damaged."""
        path = folder / END_NAME
        try:
            text = path.read_text("ascii", "replace")
        except FileNotFoundError:
            return cls(path, 0)
        except OSError as error:
            return cls(path, 0, f"cannot be read: {error}")
        found = _LINE.fullmatch(text)
        if not found or int(found[2], 16) != _checksum(found[1]):
            return cls(path, 0, f"expected the number of the last event and its checksum, got {text[:40]!r}")
        return cls(path, int(found[1]))

    def missing(self, acknowledged: int) -> str:
        """What is wrong with a log that ends with this event; "" for nothing."""
        if self._problem or acknowledged >= self.sequence:
            return self._problem
        return (
            f"expected events up to {self.sequence}, the last one when the store was opened or closed, got a log that "
            f"ends with {acknowledged}: a file was cut or is gone; restore it from a copy"
        )

    def write(self, acknowledged: int) -> None:
        """Record that the log holds this event. If the disk refuses, the older number stays."""
        if acknowledged == self.sequence and not self._problem:
            return
        number = str(acknowledged)
        try:
            write_text(self.path, f"{number} {_checksum(number):08x}\n")
        except OSError:
            return
        self.sequence, self._problem = acknowledged, ""


def _checksum(number: str) -> int:
    return int(part("storage").crc32c(number.encode()))

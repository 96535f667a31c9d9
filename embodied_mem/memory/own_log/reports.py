"""Reports of a store: what opening found, and what forgetting removed.

store.report.damage, store.report.set_aside
store.forget(episode=17).files_removed
"""

from __future__ import annotations

import dataclasses

from .module import Selector


@dataclasses.dataclass(frozen=True)
class Damage:
    """Something that was not whole when the store was opened. `cut`: taken off; a read-only store only ignores it.

    Events that are missing, because a file was cut between two of them or is gone, are damage of no bytes.
    """

    file: str
    offset: int
    num_bytes: int
    reason: str
    cut: bool


@dataclasses.dataclass(frozen=True)
class SetAside:
    """An event that was passed over because it cannot be applied. It stays in the log until a snapshot takes its place.

    Attributes:
        sequence: its number.
        module: that it was for; "" for one to forget something, or if it cannot be read.
        reason: why.
    """

    sequence: int
    module: str
    reason: str


@dataclasses.dataclass(frozen=True)
class OpenReport:
    """What opening found.

    Attributes:
        snapshot: number of the last event in the snapshot that was restored; 0 if none.
        num_events: after it, all that the log has.
        num_rejected: of these, events that their module refused, as it did when they were recorded.
        damage: torn or damaged ends of the log, and events that are missing at its end.
        problems: snapshots that were not whole, so that an older one was taken.
        forget_pending: a `forget` was not finished; a store that is opened for writing has finished it now or, where
            the disk refused, will with the next change.
    """

    snapshot: int
    num_events: int
    num_rejected: int
    damage: tuple[Damage, ...]
    problems: tuple[str, ...]
    forget_pending: bool
    set_aside: tuple[SetAside, ...] = ()


@dataclasses.dataclass(frozen=True)
class Receipt:
    """What `forget` did.

    Attributes:
        selector: what was forgotten.
        sequence: number of the event.
        removed: counts per module.
        files_removed: names of the files that are gone.
        file_written: name of the one that took their place.
        named_in_scope: fields of the store's scope that still name it. The scope is in the header of every file; to be
            rid of the name, remove the folder.
    """

    selector: Selector
    sequence: int
    removed: dict[str, dict[str, int]]
    files_removed: tuple[str, ...]
    file_written: str
    named_in_scope: tuple[str, ...] = ()

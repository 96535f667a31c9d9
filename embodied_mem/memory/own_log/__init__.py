"""Memory in a folder: events on the disk, snapshots, forgetting."""

from .module import (
    MemoryModule,
    RecordedModule,
    Selector,
    check_scope,
    read_state,
    restoring,
    write_state,
)
from .reports import Damage, OpenReport, Receipt, SetAside
from .snapshot_files import VECTORS_NAME, folder_scope
from .store import MemoryStore

__all__ = [
    "VECTORS_NAME",
    "Damage",
    "MemoryModule",
    "MemoryStore",
    "OpenReport",
    "Receipt",
    "RecordedModule",
    "Selector",
    "SetAside",
    "check_scope",
    "folder_scope",
    "read_state",
    "restoring",
    "write_state",
]

"""A memory for a whole life: every module behind one object, one event log, one answer."""

from .memory import LifelongMemory
from .parts import MODULES

__all__ = ["MODULES", "LifelongMemory"]

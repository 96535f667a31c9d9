"""Readers turn what a world says into what memory keeps: `reading.Reader` says what one is.

The default reads household sentences; `plain` reads nothing, so that texts stay texts.
"""

from .household import HOUSEHOLD
from .plain import PLAIN
from .reading import Event, Reader, Reading

DEFAULT = HOUSEHOLD

__all__ = ["DEFAULT", "HOUSEHOLD", "PLAIN", "Event", "Reader", "Reading"]

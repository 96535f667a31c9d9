"""Readers turn what a world says into what memory keeps: `reading.Reader` says what one is.

    class MyReader(Reader):                            # a world gives one; `read` is enough
        name = "my world"
        def read(self, text): ...                      # -> Reading(facts=(("mug", "on", "table"),))

    LifelongMemory(reader=FirstOf("my world", MyReader(), ENGLISH))

`EVERYDAY` reads household sentences, as ALFWorld's, plain English and reports; `PLAIN` reads nothing: texts stay texts.
"""

from .english import ENGLISH
from .household import HOUSEHOLD
from .reading import PLAIN, Event, FirstOf, Reader, Reading
from .telling import TELLING

DEFAULT = HOUSEHOLD
"""Reader of a module alone, and of worlds without one."""

EVERYDAY = FirstOf(HOUSEHOLD.name, HOUSEHOLD, ENGLISH, TELLING)
"""Reader of `LifelongMemory`; it has the name that memories of the household reader keep."""

__all__ = [
    "DEFAULT",
    "ENGLISH",
    "EVERYDAY",
    "HOUSEHOLD",
    "PLAIN",
    "Event",
    "FirstOf",
    "Reader",
    "Reading",
]

"""Reads plain captions of pictures: a few forms, each certain; anything else stays text.

caption_facts("a banana on the kitchen counter, the oven is closed")      # ("banana", "on", "kitchen counter"), ...
"""

from __future__ import annotations

from embodied_mem.memory.readers import ENGLISH, Reader

Fact = tuple[str, str, str]


def caption_facts(caption: str, reader: Reader = ENGLISH) -> tuple[Fact, ...]:
    """Return the facts that a caption states for certain."""
    return reader.read(caption).facts

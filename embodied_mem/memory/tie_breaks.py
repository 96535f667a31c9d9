"""An order without meaning: how to choose among equals without learning from the order in which they are listed.

    sorted(names, key=lambda name: drawn(instruction, name))

A data set lists things in the order in which it was made: in MEMENTO's episodes what is asked for stands first, and
`cup_0` is nearly always the right cup. Whoever takes the first of equals is told the answer. A hash of what is asked
and of the name draws one instead: the same in every process, another one for another instruction.
"""

from __future__ import annotations

import hashlib


def drawn(asked: str, name: str) -> int:
    """A number in [0, 2**48) that says nothing about either text; equal texts give equal numbers."""
    return int.from_bytes(hashlib.blake2b(f"{asked}\0{name}".encode(), digest_size=6).digest(), "big")

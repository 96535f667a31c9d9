"""Random damage to files: bytes overwritten, cut, doubled and inserted."""

from __future__ import annotations

import random
from collections.abc import Sequence


def mutated(
    content: bytes, rng: random.Random, words: Sequence[bytes] = (b"{", b'"', b"\xff"), longest: int = 60
) -> bytes:
    """Return a copy with one to three changes of at most `longest` bytes; some insert one of `words`, once or often."""
    text = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at, length = rng.randrange(len(text) or 1), rng.randint(1, longest)
        match rng.randrange(5):
            case 0:
                text[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del text[at : at + length]
            case 2:
                text[at:at] = rng.choice(words) * rng.choice((1, 1, 2, 40))
            case 3:
                start = rng.randrange(len(text) or 1)
                text[at:at] = text[start : start + length]
            case 4 if chr(text[at : at + 1][0] if text else 0).isalnum():
                text[at] = rng.choice(b"0123456789abc")
    return bytes(text)

"""Rewordings of what an instruction asks for: other lead-ins, other endings, the same request.

    templates("own")[37]                             # "Would you mind {request_ing}?"; {request_to}: "to move ..."
    reworded(record, "I need you to {request_lower}.")["instruction"]       # "I need you to move my lamp to the stand."

Two hundred templates stand in two files, a hundred each. Both were written without a look at the code that reads
instructions: `own` by its author beforehand, `blind` by somebody who never saw it. None is taken from the benchmark.
"""

from __future__ import annotations

import copy
import functools
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .lexicon import alternatives
from .requests import gerund

HALVES = ("own", "blind")
_LEAD_IN = re.compile(
    r"\A(?:(?:can|could|would|will) (?:you|we)\s+|please\s+|help me (?:to )?(?!by\b)|first,\s+)+", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")
_NEXT_VERB = re.compile(rf"(,? and (?:then )?)((?:{alternatives('verbs')})\b)(?=\s+(?:the|my|them|it|both|a)\b)")


@functools.cache
def templates(half: str) -> tuple[str, ...]:
    """The templates of one of `HALVES`."""
    lines = Path(__file__).with_name(f"rewordings_{half}.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line.strip() and not line.startswith("#"))


def reworded(record: Mapping[str, Any], template: str) -> dict[str, Any]:
    """The entry with the lead-in of its first sentence replaced by a template; its other sentences follow it."""
    first, *rest = _SENTENCE.split(record["instruction"].strip())
    request = _LEAD_IN.sub("", first).rstrip("?.! ")
    lower = request[0].lower() + request[1:]
    early = re.match(r"(?:first\s+)?", lower)
    start = early.end() if early else 0
    verb, _, after = lower[start:].partition(" ")
    after = _NEXT_VERB.sub(lambda match: match[1] + gerund(match[2]), after)
    slot = re.search(r"\{request\w*\}[^.?!]*[.?!]*", template)
    end = slot.end() if slot else len(template)
    filled = [
        part.format(
            request=request[0].upper() + request[1:],
            request_lower=lower,
            request_to=f"to {lower}",
            request_ing=f"{lower[:start]}{gerund(verb)} {after}",
        )
        for part in (template[:end], template[end:])
    ]
    text = " ".join(part for part in (filled[0], *rest, filled[1].strip()) if part)
    return {**copy.deepcopy(dict(record)), "instruction": text}


def bare(record: Mapping[str, Any]) -> dict[str, Any]:
    """The entry in small letters without punctuation, as heard or typed in haste."""
    text = re.sub(r"(?<!\w)['\"]|['\"](?!\w)|[.,;:?!()]", "", record["instruction"].lower())
    return {**copy.deepcopy(dict(record)), "instruction": " ".join(text.split())}


def drawn(records: Sequence[Mapping[str, Any]], half: str, draw: int, seed: int = 0) -> list[dict[str, Any]]:
    """The entries, each with the `draw`-th of its own random order of the templates."""
    known = templates(half)
    return [
        reworded(record, random.Random(f"{seed}/{record['episode_id']}").sample(known, draw + 1)[draw])
        for record in records
    ]

"""A compiler's guidance for a running task, its sources, and what was withheld.

guide = compiler.guide(memory, observation)
print(guide)                     # do, because, from, withheld
guide.text, guide.sources, guide.withheld, guide.soft
"""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from embodied_mem.compiler.brief_state import BriefState
from embodied_mem.compiler.output_grammar import CompilerOutput
from embodied_mem.memory import Record
from embodied_mem.memory.pool import KINDS, LeftOut, Pool, Reading

_NUMBER = re.compile(r"memory (\d+)")
_PLACE = re.compile(r" in (.+)")


@dataclasses.dataclass(frozen=True)
class Guide:
    """One step's guidance.

    Attributes:
        text: what to do; empty where memory has nothing to add.
        why: the compiler's reason.
        sources: the records that it comes from, with their episodes.
        withheld: records that were found and not shown to the compiler, each with the reason.
        records: what the compiler has read.
        state: the Brief State after the step.
        soft: float32[N, D] for an executor of the same weights; None for none.
    """

    text: str
    why: str
    sources: tuple[Record, ...]
    withheld: tuple[LeftOut, ...]
    records: tuple[Record, ...]
    state: BriefState
    soft: np.ndarray | None = None

    def __str__(self) -> str:
        lines = [f"do: {self.text or 'nothing that memory could add'}"]
        lines += [f"why: {self.why}"] if self.why else []
        lines += [f"from {_source(record)}: {record.text}" for record in self.sources]
        lines += [f"withheld {_source(one.record)}: {one.reason}: {one.record.text}" for one in self.withheld]
        return "\n".join(lines)


def _source(record: Record) -> str:
    where = "before any task" if record.episode in (None, -1) else f"task {record.episode}"
    return f"{record.id} ({where}, {record.trust})"


def sources_of(output: CompilerOutput, records: tuple[Record, ...]) -> tuple[Record, ...]:
    """Find the records that guidance names by number, or by its place."""
    if not output.guidance or not output.reason:
        return ()
    if match := _NUMBER.fullmatch(output.reason):
        number = int(match[1])
        return tuple(one for one in records if getattr(one.data.get("experience"), "number", 0) == number)
    place = _PLACE.search(output.guidance)
    return tuple(one for one in records if place and place[1] in one.text)


def withheld_from(pool: Pool, whole: Pool, reading: Reading) -> tuple[LeftOut, ...]:
    """List what is left out of a pool or not read."""
    kinds = ", ".join(reading.kinds)
    others = (one for one in whole.records if one.kind not in reading.kinds)
    return pool.left_out + tuple(LeftOut(one, f"these weights read {kinds} only") for one in others)


ALL = Reading(k=32, kinds=KINDS)
"""Everything that a memory could show of a step."""

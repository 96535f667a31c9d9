"""Markdown tables and their cells, for reports and for the pages made of them.

markdown(["agent", "success"], [["full", rate(0.5, (0.2, 0.8))]])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], *more: str) -> str:
    """Make a Markdown table.

    Lines in `more` stand below it, after an empty one.
    """
    lines = ["|" + "".join(f" {cell} |" if cell else " |" for cell in cells) for cells in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join([*lines, "", *more] if more else lines)


def percent(share: float) -> str:
    """Make a share as "75.0 %"."""
    return f"{100 * share:.1f} %"


def between(interval: Sequence[float], word: str = "to") -> str:
    """Return an interval of shares in percent, "30.1 to 95.4"."""
    low, high = interval
    return f"{100 * low:.1f} {word} {100 * high:.1f}"


def rate(share: float, interval: Sequence[float], digits: int = 1) -> str:
    """Make a share with its interval, "75.0 % [30.1, 95.4]"."""
    low, high = (f"{100 * end:.{digits}f}" for end in interval)
    return f"{100 * share:.{digits}f} % [{low}, {high}]"


def difference(values: Sequence[float] | None, scale: float = 100, digits: int = 1) -> str:
    """Format (mean, low, high) as "+5.0 [-1.0, +9.0]"; "-" without values."""
    if not values:
        return "-"
    mean, low, high = (f"{scale * value:+.{digits}f}" for value in values)
    return f"{mean} [{low}, {high}]"


def executor_cells(row: Mapping[str, Any]) -> list[str]:
    """Return the executor's tokens and time, reading and writing apart.

    They are "-" in results from before.
    """
    names = "executor_tokens_in", "executor_tokens_out", "executor_prefill_ms", "executor_decode_ms"
    values = [row.get(f"{name}_per_step") for name in names]
    if None in values:
        return ["-"] * 2
    tokens_in, tokens_out, prefill, decode = values
    return [f"{tokens_in:.0f} + {tokens_out:.1f}", f"{prefill:.2f} + {decode:.2f}"]

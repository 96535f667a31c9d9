"""Scores what a memory finds of long dialogues: the turns that answer LoCoMo's questions, without any model call.

    --data locomo10.json

Each contender is told the dialogues turn by turn, as a user would, with speaker and date. Then it is asked the
questions of categories 1 to 4 and names ten turns, best first. recall@k is the mean over questions of the share of a
question's evidence turns among the first k; NDCG@10 counts where they stand; microseconds are of the processor. The
data are for evaluation only (CC BY-NC 4.0) and are not part of this package. The weights of the memory's relevance were
chosen on conversations 26, 41, 43, 47 and 49. mem0 and langmem come with the extra `baselines`; without it they are
left out, and null in the closing line.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied_mem.errors import InternalError, InvalidInputError, MissingDependencyError
from embodied_mem.evaluation.benchmark import EpisodeResult, Published, episodes_data, episodes_of, option
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.tables import markdown

from .contenders import CONTENDERS, Ours
from .dialogues import CATEGORIES, Dialogue, read_dialogues

if TYPE_CHECKING:
    from embodied_mem.evaluation.command import Models

DEPTHS = (1, 5, 10)


@dataclasses.dataclass(frozen=True)
class LocomoConfig:
    """What is scored."""

    data: str = option("", "LoCoMo's file of dialogues, packed or not")
    contenders: tuple[str, ...] = option(tuple(CONTENDERS), "who is told and asked", choices=CONTENDERS)


class Locomo:
    """A `Benchmark`."""

    description = __doc__ or ""
    config = LocomoConfig()
    published: Sequence[Published] = ()

    def evaluate(
        self, config: LocomoConfig, *, models: Models | None = None, result: pathlib.Path | None = None
    ) -> dict[str, Any]:
        """As `Benchmark.evaluate`. Raises InvalidInputError without a file of data."""
        if not config.data:
            raise InvalidInputError("data: expected LoCoMo's file of dialogues, got none; pass --data FILE")
        dialogues = read_dialogues(pathlib.Path(config.data))
        episodes: list[EpisodeResult] = []
        costs = {}
        for name in config.contenders:
            try:
                rows, costs[name] = _scored(name, dialogues)
            except MissingDependencyError as error:
                print(f"{name}: left out; {error}")
                continue
            episodes += rows
        report = {
            **manifest(),
            **episodes_data("locomo", episodes, dialogues=[dialogue.name for dialogue in dialogues]),
            "costs": costs,
            "turns": sum(len(dialogue.turns) for dialogue in dialogues),
        }
        if result is not None:
            write_result(result, report)
        return report

    def table(self, report: Mapping[str, Any]) -> str:
        """As `Benchmark.table`: all questions, then each category."""
        head = ("", "questions", "contender", *(f"recall@{k}" for k in DEPTHS), "NDCG@10")
        found = _means(report)
        names = dict.fromkeys(name for name, _ in found)
        rows = [
            (subset or "all", str(found[name, subset]["questions"]), name, *_cells(found[name, subset]))
            for subset in ("", *CATEGORIES.values())
            for name in names
            if (name, subset) in found
        ]
        costs = [
            (name, f"{cost['bytes_per_turn']:.0f}", f"{cost['us_per_turn']:.0f}", f"{cost['us_per_query']:.0f}")
            for name, cost in report["costs"].items()
        ]
        kept = report["costs"].get("ours", {}).get("turns_kept")
        more = f"{kept} of {report['turns']} turns are kept word by word." if kept is not None else ""
        cost_head = ("contender", "bytes a turn", "us a turn", "us a query")
        return markdown(head, rows) + "\n\n" + markdown(cost_head, costs, *([more] if more else []))

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """As `Benchmark.line`: `recall` and `ndcg` by contender; None for one that is absent."""
        means = {name: row for (name, subset), row in _means(report).items() if not subset}
        absent = dict.fromkeys(CONTENDERS)
        return {
            "recall": {**absent, **{name: {str(k): row[f"recall_{k}"] for k in DEPTHS} for name, row in means.items()}},
            "ndcg": {**absent, **{name: row["ndcg"] for name, row in means.items()}},
            "costs": report["costs"],
            "turns": report["turns"],
        }


def recall_at(found: Sequence[str], wanted: Collection[str], k: int) -> float:
    """The share of the wanted among the first `k` found."""
    return len(set(found[:k]).intersection(wanted)) / len(wanted)


def ndcg_at(found: Sequence[str], wanted: Collection[str], k: int) -> float:
    """Sum of 1 / log2(1 + rank) over the wanted among the first `k`, divided by the most that it can be."""
    gain = sum(1 / math.log2(1 + rank) for rank, one in enumerate(found[:k], 1) if one in wanted)
    return gain / sum(1 / math.log2(1 + rank) for rank in range(1, min(len(wanted), k) + 1))


def _scored(name: str, dialogues: Sequence[Dialogue]) -> tuple[list[EpisodeResult], dict[str, float]]:
    """One row for each question, and what telling and asking cost."""
    rows, tell_s, ask_s, num_bytes, kept = [], 0.0, 0.0, 0, 0
    for dialogue in dialogues:
        contender = CONTENDERS[name]()
        start = time.thread_time()
        for turn in dialogue.turns:
            contender.tell(turn)
        tell_s += time.thread_time() - start
        num_bytes += contender.num_bytes()
        kept += contender.kept() if isinstance(contender, Ours) else 0
        for number, question in enumerate(dialogue.questions):
            start = time.thread_time()
            found = contender.ask(question.text, max(DEPTHS))
            asked_s = time.thread_time() - start
            ask_s += asked_s
            more = {f"recall_{k}": recall_at(found, question.evidence, k) for k in DEPTHS}
            more["ndcg"] = ndcg_at(found, question.evidence, max(DEPTHS))
            more = {measure: round(value, 4) for measure, value in more.items()}
            best = more[f"recall_{max(DEPTHS)}"]
            row = EpisodeResult(name, f"{dialogue.name}/{number}", best == 1, best, 0, question.category, more=more)
            rows.append(dataclasses.replace(row, group=dialogue.name, milliseconds=round(1e3 * asked_s, 3)))
    turns, questions = sum(len(d.turns) for d in dialogues), max(len(rows), 1)
    costs = {
        "bytes_per_turn": round(num_bytes / turns, 1),
        "us_per_turn": round(1e6 * tell_s / turns, 1),
        "us_per_query": round(1e6 * ask_s / questions, 1),
    }
    if name == "ours" and kept != turns:
        raise InternalError(f"ours: expected {turns} turns to be kept, got {kept}")
    return rows, costs | ({"turns_kept": kept} if name == "ours" else {})


def _means(report: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """(contender, category or "" for all) -> means over questions."""
    rows: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for episode in episodes_of(report):
        for subset in ("", episode.subset):
            rows.setdefault((episode.agent, subset), []).append(episode.more)
    return {
        key: {"questions": len(more), **{name: round(float(np.mean([m[name] for m in more])), 4) for name in more[0]}}
        for key, more in rows.items()
    }


def _cells(row: Mapping[str, float]) -> list[str]:
    return [f"{100 * row[name]:.1f}" for name in (*(f"recall_{k}" for k in DEPTHS), "ndcg")]


BENCHMARK = Locomo()

"""Scores what a memory knows of a robot's week in one home: places, corrections, people, times, and what is unknown.

    --part report

A week has 40 things that people move, detections with errors, the sentences of three people and a visitor, and 200
questions. An answer is right if the first record, or one of the first three, has the words of the truth and no others'.
`ours` is `retrieve`, `sightings` the same memory's map, `bm25` BM25 over the same texts, a detection being a sentence.
Nothing was told that answers a question of the kind `unknown`: right is to return nothing, or a score below one half
where scores are in [0, 1]. Weeks of a part share their templates, so intervals over questions are somewhat too short.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied_mem.evaluation.benchmark import EpisodeResult, Published, episodes_data, option
from embodied_mem.evaluation.intervals import wilson
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.tables import markdown, rate
from embodied_mem.memory import LifelongMemory, Scope
from embodied_mem.memory.embedders import CachedEmbedder, Embedder

from .contenders import Bm25, minilm
from .dialogues import Turn
from .week import KINDS, Event, Question, date_of, make_week, people

if TYPE_CHECKING:
    from embodied_mem.evaluation.command import Models

SEEDS = {"dev": tuple(range(5)), "report": tuple(range(100, 105))}
"""Part -> seeds of its weeks; those of `report` are not looked at singly."""
DEPTH = 3


@dataclasses.dataclass(frozen=True)
class WeekConfig:
    """Options of scoring."""

    part: str = option("report", "which weeks", choices=tuple(SEEDS))
    encoder: bool = option(False, "`ours` has MiniLM, from its package")
    misses: bool = option(False, "print what was answers first where it is wrong; of `dev` only")


class RobotWeek:
    """Scores of memories that live through a generated week of a robot, then answer questions about it."""

    description = __doc__ or ""
    config = WeekConfig()
    published: Sequence[Published] = ()

    def evaluate(
        self, config: WeekConfig, *, models: Models | None = None, result: pathlib.Path | None = None
    ) -> dict[str, Any]:
        """Play the weeks, as `Benchmark.evaluate`."""
        embedder = CachedEmbedder(minilm()) if config.encoder else None
        should_print = config.misses and config.part == "dev"
        rows = [row for seed in SEEDS[config.part] for row in play(seed, should_print, embedder)]
        options = {"part": config.part, "encoder": config.encoder}
        report = {**manifest(), **episodes_data("robot_week", rows, **options), "kinds": _kinds(rows)}
        report["scores"] = _scores(row for row in rows if row.agent == "ours")
        if result is not None:
            write_result(result, report)
        return report

    def table(self, report: Mapping[str, Any]) -> str:
        """Show each kind of question, as `Benchmark.table`."""
        head = ("", "questions", "contender", "first, %", "in the first three, %")
        rows = []
        for kind, contenders in report["kinds"].items():
            for name, row in contenders.items():
                count = row["questions"]
                cells = [rate(row[rank], wilson(row[rank], count)).replace(" %", "") for rank in ("first", "three")]
                rows.append((kind, str(count), name, *cells))
        scores = report["scores"]
        more = (
            f"Scores of `ours`: {100 * scores['sure']:.1f} % of the right first answers have one half or more; area "
            f"under the curve, these against `unknown`: {scores['auc']:.2f}; Brier score {scores['brier']:.3f}."
        )
        return markdown(head, rows, more)

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Give shares by kind and contender, as `Benchmark.line`."""
        return {"kinds": report["kinds"], "scores": report["scores"]}


def play(seed: int, should_print: bool = False, embedder: Embedder | None = None) -> list[EpisodeResult]:
    """Tell and ask one week; a row for each question and contender."""
    rows: list[EpisodeResult] = []
    texts: list[str] = []
    user = people(seed)[0]
    memory, bm25 = LifelongMemory(Scope(user=user, environment="home"), embedder=embedder), Bm25()
    for number, event in enumerate(make_week(seed)):
        if isinstance(event, Question):
            answers = {"ours": [(item.text, item.score) for item in memory.retrieve(event.text, k=DEPTH).items]}
            if event.thing:
                answers["sightings"] = [(text, 1.0) for text in _sightings(memory, event)]
            answers["bm25"] = [(texts[int(turn)], 1.0) for turn in bm25.ask(event.text, DEPTH)]
            now = [_judgement(event, f"{seed}/{number}", seed, name, those) for name, those in answers.items()]
            rows += now
            for row in now if should_print else ():
                if not row.won:
                    print(
                        event.kind, row.agent, event.text, event.must or set(event.some), answers[row.agent], sep=" | "
                    )
            continue
        when = take(memory, event)
        for text in event.texts:
            turn = Turn(str(len(texts)), event.room or event.speaker or user, when, text)
            bm25.tell(turn)
            texts.append(f"[{when}] {turn.said}")
    return rows


def take(memory: LifelongMemory, event: Event) -> str:
    """Tell or show an event; returns its date."""
    when = date_of(event.clock)
    if not event.room:
        memory.tell(event.texts[0], speaker=event.speaker, when=when)
        return when
    if memory.running:
        memory.end_task(won=True)
    memory.begin_task(f"round {when}", f"look around the {event.room}", "", place=event.room)
    text = "" if event.facts else " ".join(event.texts)
    memory.observe("look", text, facts=event.facts, time=event.clock)
    return when


def _sightings(memory: LifelongMemory, question: Question) -> list[str]:
    """Say where the map of a memory has a thing."""
    sights = memory.sightings(question.thing, k=DEPTH)
    clocks = [one.view.data["clock"] if one.view else 0 for one in sights]
    return [
        f"{one.name} is {one.relation} {one.receptacle}, {clock:.0f}"
        for one, clock in zip(sights, clocks)
        if one.current or question.kind == "last_seen"
    ]


def _judgement(question: Question, task: str, seed: int, name: str, answers: list[tuple[str, float]]) -> EpisodeResult:
    right = [question.is_answered(text) for text, _ in answers]
    if question.kind == "unknown":
        right = [all(score < 0.5 for _, score in answers)]
    elif question.kind == "place_unknown" and name == "sightings":
        right = [not answers]
    more = {"score": round(answers[0][1], 4) if answers else 0}
    return EpisodeResult(name, task, right[:1] == [True], float(any(right)), 0, question.kind, seed, more=more)


def _kinds(rows: Sequence[EpisodeResult]) -> dict[str, dict[str, dict[str, Any]]]:
    """Kind, or "all" -> contender -> its numbers."""
    kinds: dict[str, dict[str, dict[str, Any]]] = {}
    for kind in (*KINDS, "all"):
        for name in ("ours", "sightings", "bm25"):
            of = [row for row in rows if row.agent == name and kind in (row.subset, "all")]
            if of and (kind, name) != ("all", "sightings"):
                first, three = (float(np.mean([getattr(row, field) for row in of])) for field in ("won", "progress"))
                kinds.setdefault(kind, {})[name] = {"questions": len(of), "first": first, "three": three}
    return kinds


def _scores(rows: Iterable[EpisodeResult]) -> dict[str, float]:
    """Compare scores of right first answers with those of `unknown`."""
    scores = [(row.more["score"], row.won and row.subset != "unknown", row.subset == "unknown") for row in rows]
    right, unknown = (np.array([row[0] for row in scores if row[which]]) for which in (1, 2))
    above = (right[:, None] > unknown).mean() + (right[:, None] == unknown).mean() / 2
    brier = np.mean([(score - is_right) ** 2 for score, is_right, _ in scores])
    return {"sure": float((right >= 0.5).mean()), "auc": float(above), "brier": float(brier)}


BENCHMARK = RobotWeek()

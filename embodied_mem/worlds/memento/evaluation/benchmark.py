"""MEMENTO's two stages with the built-in agent: `python experiments/evaluate.py --config=memento`.

    --data DIR         another folder of the same format
    --result FILE      also write everything as JSON, and the tables beside it as Markdown
    --tables NAME ...  other tables besides the main one; none for the main one alone

The agent plays the acquisition episodes; its traces are its memory. It then plays the utilisation stages (single,
joint, and 3-joint tasks drawn anew) with k memories of the same house. The last line is one line of JSON. Scores in
the four houses that are not in `memento_data.DEVELOPMENT_SCENES` are also given apart; docs/memento.md says what was
seen of those. Where the data folder has the published scores of single episodes, the paper's models are shown on the
very same episodes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
import time
from collections.abc import Sequence
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from embodied_mem.agents.household_planner import MemoryPlanner
from embodied_mem.envs import memento_variants as variants
from embodied_mem.envs.memento_data import (
    find_episodes,
    load_captions,
    load_records,
    load_scenes,
    related_ids,
    tasks_of,
)
from embodied_mem.envs.memento_joint import triples
from embodied_mem.errors import DataNotFoundError, EmbodiedMemError, InvalidInputError, MissingDependencyError
from embodied_mem.evaluation import memento_tables as tables
from embodied_mem.evaluation.memento import (
    Given,
    Recall,
    Run,
    build_profiles,
    grouped,
    kind_of,
    missing_rates,
    play_stage,
    recall,
    subtype_of,
    summary,
)
from embodied_mem.evaluation.memento_published import beside, published_scores
from embodied_mem.evaluation.report import manifest
from embodied_mem.memory.kept_vectors import KeptVectors
from embodied_mem.memory.lexical import LexicalEmbedder
from embodied_mem.memory.trace_formats import DAMAGES, SHOWN, damaged
from embodied_mem.memory.trace_retrieval import STRATEGIES, TraceMemory, clauses_of, expansions_of
from experiments.configs.memento import MementoConfig, config

STAGES = ("single", "joint", "joint3")
TOP_K = (1, 3, 5, 7, 10, 20)
LONG = 80
"""Actions of the table `limits`."""


def embedder_of(name: str) -> KeptVectors:
    """The embedder called so; `auto` takes the model where it is installed, else the lexical one."""
    if name != "lexical":
        try:
            from embodied_mem.models.minilm import MiniLM

            return KeptVectors(MiniLM.load())
        except (DataNotFoundError, MissingDependencyError, ImportError) as error:
            if name == "minilm":
                raise error if isinstance(error, EmbodiedMemError) else MissingDependencyError(str(error)) from error
    return KeptVectors(LexicalEmbedder())


class Evaluation:
    """The stages' episodes, the agent's memory, and what was measured so far."""

    def __init__(self, options: MementoConfig):
        self.options = options
        self.root = find_episodes("acquisition", options.data or None)[1]
        self.embedder = embedder_of(options.embedder)
        self.records = {stage: load_records(stage, self.root) for stage in ("acquisition", "single", "joint")}
        self._check()
        self._played: dict[tuple, list[Run]] = {}
        categories = {template: category for template, category, _ in load_captions(self.root)}
        self.records["joint3"] = triples(
            self.records["single"], categories, per_scene=options.triples_per_scene, seed=options.seed
        )
        asked = [record["instruction"] for stage in STAGES for record in self.records[stage]]
        clauses = [clause for instruction in asked for clause in clauses_of(instruction)]
        self.embedder.embed([*asked, *clauses, *(text for clause in clauses for text in expansions_of(clause))])
        self.kinds = {str(r["episode_id"]): r["metadata"]["episode_type"] for r in self.records["acquisition"]}
        runs = self.play(self.records["acquisition"], lambda record: Given())
        self.acquired = {run.episode_id: run for run in runs}
        self.memory = self.memory_of([run.trace for run in runs])

    def _check(self) -> None:
        """Raises InvalidInputError for a stage without episodes, or one that needs an episode that is not there."""
        known = {str(record["episode_id"]) for record in self.records["acquisition"]}
        for stage in ("acquisition", "single"):
            if not self.records[stage]:
                raise InvalidInputError(f"{self.root}: stage {stage}: expected at least one episode, got none")
        for stage in ("single", "joint"):
            for record in self.records[stage]:
                if lost := set(related_ids(record)) - known:
                    raise InvalidInputError(
                        f"{self.root}: {stage} episode {record['episode_id']}: expected acquisition episode "
                        f"{min(lost)}, which it needs, among the {len(known)} at hand"
                    )

    def play(self, records: Sequence[dict], given, max_steps: int = 0) -> list[Run]:
        """The runs of these entries by a new agent each; `max_steps` 0 for the configuration's.

        Where the same was asked before (a table whose row is the main table's), the runs are those.
        """
        if not records:
            return []
        limit = max_steps or self.options.max_steps
        gifts = {str(record["episode_id"]): given(record) for record in records}
        asked = tuple((number, record["instruction"]) for number, record in zip(gifts, records))
        key = (asked, tuple(gifts.values()), limit)
        if key not in self._played:
            self._played[key] = play_stage(
                tasks_of(records, self.root),
                records,
                lambda: MemoryPlanner(self.embedder, max_actions=limit),
                lambda record: gifts[str(record["episode_id"])],
                seed=self.options.seed,
                max_steps=limit,
            )
        return self._played[key]

    def memory_of(self, traces) -> TraceMemory:
        """Episodic memory of these traces."""
        return TraceMemory(traces, self.embedder)

    def use(
        self,
        records: Sequence[dict],
        how: Recall | None = None,
        memory: TraceMemory | None = None,
        max_steps: int = 0,
        **more,
    ) -> list[Run]:
        """The runs of a utilisation stage."""
        options = self.options
        how = how or Recall(options.strategy, options.k, guaranteed=True, seed=options.seed)
        return self.play(records, recall(self.memory if memory is None else memory, how, **more), max_steps)

    def row(self, runs: Sequence[Run]) -> dict[str, Any]:
        """The metrics of runs: all, development and held-out houses."""
        if not runs:
            return {}
        acquisition = runs[0].episode_id in self.acquired
        acquired = None if acquisition else self.acquired
        row = summary(runs, acquired)
        for name, held_out in (("development", False), ("held_out", True)):
            if part := [run for run in runs if run.held_out == held_out]:
                row[name] = summary(part, acquired)
        return row

    def main_table(self) -> dict[str, Any]:
        """The four stages, each by type and subtype of knowledge, and beside published scores of the same episodes."""
        result: dict[str, Any] = {}
        stages = {"acquisition": list(self.acquired.values())}
        stages |= {stage: self.use(self.records[stage]) for stage in STAGES}
        published = published_scores(self.root)
        for stage, runs in stages.items():
            if not runs:
                continue
            acquired = None if stage == "acquisition" else self.acquired
            key = (lambda run: self.kinds[run.episode_id]) if stage == "acquisition" else (
                lambda run: kind_of(run.record, self.kinds)
            )  # fmt: skip
            result[stage] = self.row(runs) | {
                "by_type": grouped(runs, acquired, key),
                "by_subtype": grouped(runs, acquired, lambda run: subtype_of(run.record)),
                "failed": [run.episode_id for run in runs if not run.won and not run.held_out],
            }
            for name, part in (("published", runs), ("published_held_out", [run for run in runs if run.held_out])):
                rows = {model: beside(part, scores) for model, scores in published.get(stage, {}).items()}
                if any(rows.values()):
                    result[stage][name] = {model: row for model, row in rows.items() if row}
        return result

    def realistic(self) -> dict[str, Any]:
        """The stages with what retrieval finds and nothing else."""
        how = Recall(self.options.strategy, self.options.k, guaranteed=False)
        return {stage: self.row(self.use(self.records[stage], how)) for stage in STAGES if self.records[stage]}

    def retrieval(self) -> dict[str, Any]:
        """Missing rates of each strategy, and the single stage played with it."""
        result: dict[str, Any] = {}
        for strategy in STRATEGIES:
            result[strategy] = {}
            for k in (3, 5):
                row = {
                    stage: missing_rates(self.memory, self.records[stage], strategy, k)
                    for stage in STAGES if self.records[stage]
                }  # fmt: skip
                row["played"] = self.row(self.use(self.records["single"], Recall(strategy, k, guaranteed=False)))
                result[strategy][str(k)] = row
        return result

    def limits(self) -> dict[str, Any]:
        """The longer stages with more actions than the paper's 40."""
        return {
            f"{stage}, {LONG} actions": self.row(self.use(self.records[stage], max_steps=LONG))
            for stage in ("joint", "joint3") if self.records[stage]
        }  # fmt: skip

    def top_k(self) -> dict[str, Any]:
        """The single stage with more and fewer memories, the needed one among them."""
        return {
            str(k): self.row(self.use(self.records["single"], Recall(self.options.strategy, k))) for k in TOP_K
        }  # fmt: skip

    def formats(self) -> dict[str, Any]:
        """The single and joint stage by format of memory."""
        result = {}
        gold = tables.gold_traces(self.root)
        for name, shown in SHOWN.items():
            result[name] = {s: self.row(self.use(self.records[s], shown=shown)) for s in ("single", "joint")}
        if set(gold) >= set(self.acquired):
            memory = self.memory_of([gold[number] for number in self.acquired])
            result["gold"] = {s: self.row(self.use(self.records[s], memory=memory)) for s in ("single", "joint")}
        return result

    def damage(self) -> dict[str, Any]:
        """The single stage with damaged memories; the baseline is the main table's."""
        traces = [run.trace for run in self.acquired.values()]
        result = {}
        for how in DAMAGES:
            memory = self.memory_of(damaged(traces, how, self.options.seed))
            result[how] = self.row(self.use(self.records["single"], memory=memory))
        return result

    def profile(self) -> dict[str, Any]:
        """User profile on and off: with the memories, alone, and neither."""
        profiles = build_profiles(self.records["acquisition"], self.embedder)
        empty = self.memory_of([])
        none = Recall(self.options.strategy, self.options.k, guaranteed=False)
        result: dict[str, Any] = {}
        for stage in ("single", "joint"):
            records = self.records[stage]
            result[stage] = {
                "memories and profile": self.row(self.use(records, profiles=profiles)),
                "memories": self.row(self.use(records)),
                "profile": self.row(self.use(records, none, empty, profiles=profiles)),
                "neither": self.row(self.use(records, none, empty)),
            }
        return result

    def variants(self) -> dict[str, Any]:
        """Indirect instructions and other places, each beside the original instructions of the same tasks."""
        scenes = load_scenes(self.root)
        result: dict[str, Any] = {}
        for name, change in (
            ("indirect", variants.indirect),
            ("elsewhere", lambda record: variants.elsewhere(record, scenes[record["scene_id"]], self.options.seed)),
        ):
            pairs = [(record, changed) for record in self.records["single"] if (changed := change(record)) is not None]
            if pairs:
                originals, changed = [a for a, _ in pairs], [b for _, b in pairs]
                result[name] = {"original": self.row(self.use(originals)), "changed": self.row(self.use(changed))}
        return result


def arguments_of(arguments: list[str] | None) -> tuple[MementoConfig, str]:
    """The configuration and the result file of a command line."""
    default = config()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="memento", choices=["memento"])
    parser.add_argument("--result", default="", help="JSON file; the tables go beside it as .md")
    for field in dataclasses.fields(MementoConfig):
        value = getattr(default, field.name)
        if field.name == "tables":
            parser.add_argument("--tables", nargs="*", default=list(value), choices=list(value))
        else:
            parser.add_argument(f"--{field.name}", type=type(value), default=value)
    options = parser.parse_args(arguments)
    chosen = {field.name: getattr(options, field.name) for field in dataclasses.fields(MementoConfig)}
    return MementoConfig(**{**chosen, "tables": tuple(options.tables)}), options.result


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Play, print the tables and one JSON line; return what the result file holds."""
    options, result_file = arguments_of(arguments)
    if result_file and not pathlib.Path(result_file).parent.is_dir():
        raise InvalidInputError(f"--result: expected a file in a folder that exists, got {result_file}")
    started = time.perf_counter()
    evaluation = Evaluation(options)
    print(f"Embedder: {evaluation.embedder.name}", end="\n\n", flush=True)
    report: dict[str, Any] = {"stages": evaluation.main_table()}
    for table in (tables.stage_table, tables.published_table):
        print(table(report["stages"]), end="\n\n", flush=True)
    for name in options.tables:
        report[name] = getattr(evaluation, name)()
        print(tables.TABLES[name](report), end="\n\n", flush=True)
    memory, singles = evaluation.memory, evaluation.records["single"]
    line: dict[str, float] = {}
    for stage, row in report["stages"].items():
        line |= {f"{stage}_sr": round(100 * row["sr"], 2), f"{stage}_pc": round(100 * row["pc"], 2)}
    for k in (3, 5):
        line[f"missing_at_{k}"] = round(100 * missing_rates(memory, singles, options.strategy, k)["all"], 2)
    report["line"] = line
    report |= manifest(
        config=dataclasses.asdict(options), embedder=evaluation.embedder.name,
        seconds=round(time.perf_counter() - started, 1),
    )  # fmt: skip
    if result_file:
        path = pathlib.Path(result_file)
        path.write_text(json.dumps(report, indent=1) + "\n")
        path.with_suffix(".md").write_text(tables.markdown(report))
    print(json.dumps(line))
    return report


if __name__ == "__main__":
    from experiments.command import run

    run(main)

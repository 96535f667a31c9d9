"""Scores the built-in agent on MEMENTO's two stages.

    --data DIR         another folder of the same format
    --tables NAME ...  other tables besides the main one; none for the main one alone
    --agents react --server http://localhost:8000/v1 --model NAME --record calls.jsonl     # a chat model acts
    --agents react --tables top_k formats damage --profile --parallel 16 --server ...

    --agents react --preset paper --embedder FOLDER --server ...      # the paper's settings; FOLDER: all-mpnet-base-v2
    --agents human --num_tasks 2                  # you act at the terminal, with the memories of the planner's runs

With react, the model also writes the summaries of `formats` and the user's profile, and it is what the strategies
`reranker` and `query_expansion` ask. --preset paper: memories by similarity (unless --strategy names another), k = 5,
at most 40 actions, temperature 0, the stop word `Assigned!`.

The agent plays the acquisition episodes; its traces are its memory. It then plays the utilisation stages (single,
joint, and 3-joint tasks drawn anew) with k memories of the same house. With --result the tables go beside the report as
Markdown. Scores in the four houses that are not in `data.DEVELOPMENT_SCENES` are also given apart;
docs/worlds/memento.md says what was seen of those. Where the data folder has the published scores of single episodes,
the paper's models are shown on the very same episodes.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from embodied_mem.agents.trace import open_trace
from embodied_mem.atomic_file import write_text
from embodied_mem.errors import DataNotFoundError, EmbodiedMemError, InvalidInputError, MissingDependencyError
from embodied_mem.evaluation.benchmark import (
    EpisodeResult,
    Published,
    check_least,
    chosen_by,
    episodes_data,
    option,
    trace_option,
)
from embodied_mem.evaluation.chat_options import ChatOptions, chat_model, usage_of
from embodied_mem.evaluation.command import Models
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.language.seats import Seats
from embodied_mem.memory.chat_writer import ChatWriter
from embodied_mem.memory.embedders import CachedEmbedder, LexicalEmbedder
from embodied_mem.memory.profile import UserProfile
from embodied_mem.progress import Progress
from embodied_mem.worlds.memento.agent.react import HouseholdAgent, ReActAgent
from embodied_mem.worlds.memento.data import (
    find_episodes,
    load_captions,
    load_records,
    load_scenes,
    related_ids,
    tasks_of,
)
from embodied_mem.worlds.memento.joint_tasks import triples
from embodied_mem.worlds.memento.traces.trace import Trace

from . import protocol, tables, variants
from .chat_retrieval import ChatRetrieval
from .human import HumanAgent
from .planner import MemoryPlanner
from .retrieval import STRATEGIES, TraceMemory, clauses_of, expansions_of
from .variants import DAMAGES, SHOWN, damaged, mixed_up

DESCRIPTION = __doc__
STAGES = ("single", "joint", "joint3")
TOP_K = (1, 3, 5, 7, 10, 20)
LONG = 80
"""Actions of the table `limits`."""


AGENTS = ("planner", "react", "human")
EMBEDDERS = ("auto", "minilm", "lexical")
TABLES = (
    "realistic", "limits", "retrieval", "top_k", "formats", "damage", "profile", "variants", "rewordings",
    "captions", "joined", "encoders",
)  # fmt: skip
BY_AGENT = "default"
PRESETS = ("", "paper")
STOP = "Assigned!"
"""End of a model's answer, at which the paper cuts it off."""
NOISES = (0.0, 0.25, 0.5)
JOINED_K = (1, 3, 5, 10)


@dataclasses.dataclass(frozen=True)
class MementoConfig(ChatOptions):
    """Options of play."""

    data: str = option("", "folder with scenes.json, variants.json, episodes/; default: $EMBODIED_MEM_DATA/memento")
    preset: str = option("", "paper: its settings, see above", choices=PRESETS)
    embedder: str = option(
        "auto", "minilm, lexical, a folder of another sentence encoder, or auto: minilm where its weights are installed"
    )
    encoder: str = option("", "folder of another sentence encoder, BERT's or MPNet's, for the table encoders")
    strategy: str = option("hybrid", "how memories are found in the main table")
    k: int = option(5, "memories given")
    max_steps: int = option(40, "actions of a run")
    triples_per_scene: int = option(5, "3-joint tasks drawn per house")
    draws: int = option(2, "rewordings drawn for each single task from each list of them")
    seed: int = option(0, "of the world's chance and of every draw")
    num_tasks: int = option(0, "of each utilisation stage, the first so many; 0 takes all")
    agents: tuple[str, ...] = option(
        ("planner",), "who plays: the planner, a chat model (react), or a person", choices=AGENTS
    )
    tables: tuple[str, ...] = option(
        (BY_AGENT,),
        "tables besides the main one; none for the main one alone; default: all for the planner",
        choices=(BY_AGENT, *TABLES),
    )
    profile: bool = option(False, "of the main table: agents also get the user's profile")
    parallel: int = option(1, "of react: episodes that ask the model side by side")
    trace: pathlib.Path | None = trace_option("the main table's episodes")

    def __post_init__(self) -> None:
        if self.embedder not in EMBEDDERS and not pathlib.Path(self.embedder).is_dir():
            raise InvalidInputError(
                f"embedder: expected one of {', '.join(EMBEDDERS)} or a folder, got {self.embedder!r}"
            )
        if self.strategy not in STRATEGIES:
            raise InvalidInputError(f"strategy: expected one of {', '.join(STRATEGIES)}, got {self.strategy!r}")
        if self.preset and self.embedder in ("auto", "lexical"):
            raise InvalidInputError(
                f"preset: expected --embedder with the folder of all-mpnet-base-v2 or of another sentence encoder, or "
                f"minilm, got {self.embedder}"
            )
        if self.preset and self.strategy == "hybrid":  # the default, which is ours
            object.__setattr__(self, "strategy", "similarity")
        check_least(self, parallel=1, k=1, max_steps=1, num_tasks=0, triples_per_scene=0, draws=1, seed=0)
        if len(self.agents) != 1 or self.agents[0] not in AGENTS:
            raise InvalidInputError(
                f"agents: expected one of {', '.join(AGENTS)}, got {', '.join(self.agents) or 'none'}"
            )
        if unknown := [name for name in self.tables if name not in (BY_AGENT, *TABLES)]:
            raise InvalidInputError(f"tables: expected some of {', '.join(TABLES)}, got {unknown[0]!r}")

    @property
    def other_tables(self) -> tuple[str, ...]:
        """The tables besides the main one."""
        if BY_AGENT not in self.tables:
            return self.tables
        return TABLES if self.agents == ("planner",) else ()


def embedder_of(name: str) -> CachedEmbedder:
    """Return a named embedder; `auto`: the installed model, else lexical."""
    if name not in EMBEDDERS:
        return encoder_of(name)
    if name != "lexical":
        try:
            from embodied_mem.models.sentence_encoders import SentenceEncoder

            return CachedEmbedder(SentenceEncoder.load())
        except (DataNotFoundError, MissingDependencyError, ImportError) as error:
            if name == "minilm":
                raise error if isinstance(error, EmbodiedMemError) else MissingDependencyError(str(error)) from error
    return CachedEmbedder(LexicalEmbedder())


def encoder_of(folder: str) -> CachedEmbedder:
    """Return the sentence encoder in a folder."""
    from embodied_mem.models.sentence_encoders import SentenceEncoder

    return CachedEmbedder(SentenceEncoder.load(folder))


class Evaluation:
    """The stages' episodes, the agent's memory, and what was measured so far."""

    def __init__(self, options: MementoConfig, trace: TextIO | None = None):
        self.options, self._trace = options, trace
        self.root = find_episodes("acquisition", options.data or None)[1]
        self.embedder = embedder_of(options.embedder)
        self.records = {stage: load_records(stage, self.root) for stage in ("acquisition", "single", "joint")}
        self._check()
        stop = {"stop": [STOP]} if options.preset else {}
        self.model = chat_model(options, "--agents react", stop) if options.agents == ("react",) else None
        self.seats = Seats(self.model, memory=self.model) if self.model else None
        self.writer = ChatWriter(self.seats.memory) if self.seats and self.seats.memory else None
        self._asking = ChatRetrieval(self.writer, options.parallel) if self.writer else None
        self._played: dict[tuple[Any, ...], list[protocol.Run]] = {}
        categories = {template: category for template, category, _ in load_captions(self.root)}
        self.records["joint3"] = triples(
            self.records["single"], categories, per_scene=options.triples_per_scene, seed=options.seed
        )
        if options.num_tasks:
            self._take_first(options.num_tasks)
        asked = [record["instruction"] for stage in STAGES for record in self.records[stage]]
        clauses = [clause for instruction in asked for clause in clauses_of(instruction)]
        self.embedder.embed([*asked, *clauses, *(text for clause in clauses for text in expansions_of(clause))])
        self.kinds = {str(r["episode_id"]): r["metadata"]["episode_type"] for r in self.records["acquisition"]}
        runs = self.play(self.records["acquisition"], lambda record: protocol.Given(), stage="acquisition")
        self.acquired = {run.episode_id: run for run in runs}
        self.memory = self.memory_of([run.trace for run in runs])

    def _take_first(self, count: int) -> None:
        """Limit each utilisation stage's entries, with the acquisition episodes they need."""
        for stage in STAGES:
            self.records[stage] = self.records[stage][:count]
        needed = {number for stage in STAGES for record in self.records[stage] for number in related_ids(record)}
        self.records["acquisition"] = [r for r in self.records["acquisition"] if str(r["episode_id"]) in needed]

    def _agent(self, limit: int, stage: str) -> HouseholdAgent:
        if self.options.agents == ("human",) and stage != "acquisition":
            return HumanAgent()
        return MemoryPlanner(self.embedder, max_actions=limit) if self.model is None else ReActAgent(self.model)

    def _check(self) -> None:
        """Raise InvalidInputError for an empty stage or a missing needed episode."""
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

    def play(
        self,
        records: Sequence[protocol.Record],
        given: Callable[[protocol.Record], protocol.Given],
        max_steps: int = 0,
        told: Callable[[protocol.Record], list[variants.Row]] | None = None,
        stage: str = "",
    ) -> list[protocol.Run]:
        """Return the runs of these entries, by a new agent each.

        `max_steps` is 0 for the configuration's, `told` gives other captions of an entry's objects than the file's,
        `stage` writes the runs into the trace under its name. Where the same was asked before (a table whose row is the
        main table's), the runs are those.
        """
        if not records:
            return []
        limit = max_steps or self.options.max_steps
        gifts = {str(record["episode_id"]): given(record) for record in records}
        asked = tuple((number, record["instruction"]) for number, record in zip(gifts, records))
        said = tuple(tuple(told(record)) for record in records) if told else ()
        key = (asked, tuple(gifts.values()), limit, said)
        if key not in self._played:
            alone = [task for record, rows in zip(records, said) for task in tasks_of([record], self.root, rows)]
            self._played[key] = protocol.play_stage(
                alone or tasks_of(records, self.root),
                records,
                lambda: self._agent(limit, stage),
                lambda record: gifts[str(record["episode_id"])],
                seed=self.options.seed,
                max_steps=limit,
                trace=self._trace if stage else None,
                name=stage,
                parallel=self.options.parallel,
                num_envs=1 if self.options.agents == ("human",) else protocol.NUM_ENVS,
            )
            if self.seats is not None:
                self.seats.counts()  # says that a budget was used up, which a profile survives
        return self._played[key]

    @functools.cached_property
    def profiles(self) -> dict[str, UserProfile]:
        """The user's profile of each house; by the model where one acts."""
        return protocol.build_profiles(self.records["acquisition"], self.embedder, self.writer)

    def memory_of(self, traces: Iterable[Trace]) -> TraceMemory:
        """Episodic memory of these traces."""
        return TraceMemory(traces, self.embedder, model=self._asking)

    def use(
        self,
        records: Sequence[protocol.Record],
        how: protocol.Recall | None = None,
        memory: TraceMemory | None = None,
        max_steps: int = 0,
        told: Callable[[protocol.Record], list[variants.Row]] | None = None,
        stage: str = "",
        **more: Any,
    ) -> list[protocol.Run]:
        """Return the runs of a utilisation stage; `stage` as for `play`."""
        options = self.options
        how = how or protocol.Recall(options.strategy, options.k, guaranteed=True, seed=options.seed)
        given = protocol.recall(self.memory if memory is None else memory, how, **more)
        return self.play(records, given, max_steps, told, stage)

    def row(self, runs: Sequence[protocol.Run]) -> dict[str, Any]:
        """Return the metrics of runs: all, development and held-out houses."""
        if not runs:
            return {}
        acquisition = runs[0].episode_id in self.acquired
        acquired = None if acquisition else self.acquired
        row = protocol.summary(runs, acquired)
        for name, held_out in (("development", False), ("held_out", True)):
            if part := [run for run in runs if run.held_out == held_out]:
                row[name] = protocol.summary(part, acquired)
        return row

    def stages(self) -> dict[str, list[protocol.Run]]:
        """Return the runs of the main table, by stage."""
        return {"acquisition": list(self.acquired.values())} | {
            stage: self.use(self.records[stage], stage=stage, profiles=self.profiles if self.options.profile else None)
            for stage in STAGES
        }

    def main_table(self) -> dict[str, Any]:
        """Play the four stages by knowledge type, beside published scores."""
        result: dict[str, Any] = {}
        published = protocol.published_scores(self.root)
        for stage, runs in self.stages().items():
            if not runs:
                continue
            acquired = None if stage == "acquisition" else self.acquired
            result[stage] = self.row(runs) | {
                "by_type": protocol.grouped(runs, acquired, self._kind),
                "by_subtype": protocol.grouped(runs, acquired, lambda run: protocol.subtype_of(run.record)),
                "failed": [run.episode_id for run in runs if not run.won and not run.held_out],
            }
            for name, part in (("published", runs), ("published_held_out", [run for run in runs if run.held_out])):
                rows = {model: protocol.beside(part, scores) for model, scores in published.get(stage, {}).items()}
                if any(rows.values()):
                    result[stage][name] = {model: row for model, row in rows.items() if row}
        return result

    def _kind(self, run: protocol.Run) -> str:
        """Kind of knowledge that a run tells, or needs."""
        return self.kinds.get(run.episode_id) or protocol.kind_of(run.record, self.kinds)

    def realistic(self) -> dict[str, Any]:
        """Return the stages with what retrieval finds and nothing else."""
        how = protocol.Recall(self.options.strategy, self.options.k, guaranteed=False)
        return {stage: self.row(self.use(self.records[stage], how)) for stage in STAGES if self.records[stage]}

    def retrieval(self) -> dict[str, Any]:
        """Missing rates of each strategy, and the single stage played with it."""

        def row(strategy: str, k: int) -> dict[str, Any]:
            stages = [stage for stage in STAGES if self.records[stage]]
            rates = {stage: protocol.missing_rates(self.memory, self.records[stage], strategy, k) for stage in stages}
            return rates | {
                "played": self.row(self.use(self.records["single"], protocol.Recall(strategy, k, guaranteed=False)))
            }

        return {strategy: {str(k): row(strategy, k) for k in (3, 5)} for strategy in STRATEGIES}

    def limits(self) -> dict[str, Any]:
        """Return the longer stages with more actions than the paper's 40."""
        return {
            f"{stage}, {LONG} actions": self.row(self.use(self.records[stage], max_steps=LONG))
            for stage in ("joint", "joint3") if self.records[stage]
        }  # fmt: skip

    def top_k(self) -> dict[str, Any]:
        """Return the single stage with more and fewer memories."""
        singles, strategy = self.records["single"], self.options.strategy
        return {str(k): self.row(self.use(singles, protocol.Recall(strategy, k))) for k in TOP_K}

    def formats(self) -> dict[str, Any]:
        """Return the single and joint stage by format of memory."""

        def rows(**how: Any) -> dict[str, Any]:
            return {stage: self.row(self.use(self.records[stage], **how)) for stage in ("single", "joint")}

        by_model = {"summarised": variants.written(self.writer)} if self.writer else {}
        result = {name: rows(shown=shown) for name, shown in (SHOWN | by_model).items()}
        gold = tables.gold_traces(self.root)
        if set(gold) >= set(self.acquired):
            result["gold"] = rows(memory=self.memory_of([gold[number] for number in self.acquired]))
        return result

    def damage(self) -> dict[str, Any]:
        """Return the single stage with damaged memories, beside the main table's."""
        traces = [run.trace for run in self.acquired.values()]
        memories = {how: self.memory_of(damaged(traces, how, self.options.seed)) for how in DAMAGES}
        return {how: self.row(self.use(self.records["single"], memory=memory)) for how, memory in memories.items()}

    def profile(self) -> dict[str, Any]:
        """User profile on and off: with the memories, alone, and neither."""
        profiles = self.profiles
        empty = self.memory_of([])
        none = protocol.Recall(self.options.strategy, self.options.k, guaranteed=False)
        return {
            stage: {
                "memories and profile": self.row(self.use(self.records[stage], profiles=profiles)),
                "memories": self.row(self.use(self.records[stage])),
                "profile": self.row(self.use(self.records[stage], none, empty, profiles=profiles)),
                "neither": self.row(self.use(self.records[stage], none, empty)),
            }
            for stage in ("single", "joint")
        }

    def variants(self) -> dict[str, Any]:
        """Play indirect instructions and other places beside the same tasks' originals."""
        scenes = load_scenes(self.root)
        result: dict[str, Any] = {}
        changes: dict[str, Callable[[protocol.Record], protocol.Record | None]] = {
            "indirect": variants.indirect,
            "elsewhere": lambda record: variants.elsewhere(record, scenes[record["scene_id"]], self.options.seed),
        }
        for name, change in changes.items():
            pairs = [(record, other) for record in self.records["single"] if (other := change(record)) is not None]
            if pairs:
                originals, changed = zip(*pairs)
                result[name] = {"original": self.row(self.use(originals)), "changed": self.row(self.use(changed))}
        return result

    def rewordings(self) -> dict[str, Any]:
        """Return the single stage with other lead-ins, endings, or small letters."""
        singles = self.records["single"]
        result = {
            "original": self.row(self.use(singles)),
            "bare": self.row(self.use(list(map(variants.bare, singles)))),
        }
        for half in variants.HALVES:
            draws = (variants.drawn(singles, half, draw, self.options.seed) for draw in range(self.options.draws))
            result[half] = self.row([run for records in draws for run in self.use(records)])
        return result

    def captions(self) -> dict[str, Any]:
        """Play the single object tasks with reworded captions, and controls."""
        rows, seed = load_captions(self.root), self.options.seed
        asked = [r for r in self.records["single"] if r["metadata"]["episode_type"] != "user_pattern"]
        result = {
            "verbatim": self.row(self.use(asked)),
            "none now": self.row(self.use(asked, told=lambda record: variants.untold(record, rows))),
            "another's now": self.row(self.use(asked, told=lambda record: variants.swapped(record, rows))),
        }
        for name in variants.LISTS:
            memory, now = [], []
            for number in range(seed, seed + self.options.draws):
                memory += self.use(asked, shown=functools.partial(variants.in_memory, name=name, seed=number))
                now += self.use(asked, told=functools.partial(variants.now, rows=rows, name=name, seed=number))
            result |= {f"memory, {name}": self.row(memory), f"now, {name}": self.row(now)}
        return result

    def joined(self) -> dict[str, Any]:
        """Play tasks with all houses' memories joined, by k, noise and strategy."""
        traces = [dataclasses.replace(run.trace, scene_id=protocol.ALL_HOUSES) for run in self.acquired.values()]
        result: dict[str, Any] = {}
        for noise in NOISES:
            memory = self.memory_of(mixed_up(traces, noise, self.options.seed))
            for strategy in ("hybrid", "similarity") if not noise else ("hybrid",):
                for k in JOINED_K:
                    how = protocol.Recall(strategy, k, guaranteed=False, all_houses=True)
                    result[f"{strategy}, noise {noise:g}, k {k}"] = {
                        stage: self.row(self.use(self.records[stage], how, memory)) for stage in ("single", "joint")
                    }
        return result

    def encoders(self) -> dict[str, Any]:
        """Measure strategies' missing rates by encoder, within a house and among all."""
        traces = [run.trace for run in self.acquired.values()]
        everywhere = [dataclasses.replace(trace, scene_id=protocol.ALL_HOUSES) for trace in traces]
        result: dict[str, Any] = {}
        for embedder in [self.embedder, *([encoder_of(self.options.encoder)] if self.options.encoder else [])]:
            for where, memory in (
                ("house", TraceMemory(traces, embedder)), ("all houses", TraceMemory(everywhere, embedder))
            ):  # fmt: skip
                for strategy in STRATEGIES:
                    for k in (3, 5):
                        result[f"{embedder.name}, {strategy}, {where}, k {k}"] = {
                            stage: protocol.missing_rates(
                                memory, self.records[stage], strategy, k, all_houses=where != "house"
                            )
                            for stage in STAGES if self.records[stage]
                        }  # fmt: skip
        return result


class MementoBenchmark:
    """A `Benchmark`; what the paper reports stands in its own tables."""

    description = DESCRIPTION
    config = MementoConfig()
    published: tuple[Published, ...] = ()

    def evaluate(
        self, config: MementoConfig, *, models: Models | None = None, result: pathlib.Path | None = None
    ) -> dict[str, Any]:
        started = time.perf_counter()
        others = config.other_tables
        with Progress("tables", 1 + len(others), unit="table") as progress, open_trace(config.trace) as trace:
            evaluation = Evaluation(config, trace)
            report: dict[str, Any] = {"stages": evaluation.main_table()}
            progress.update()
            for name in others:
                report[name] = getattr(evaluation, name)()
                progress.update()
        memory, singles = evaluation.memory, evaluation.records["single"]
        line: dict[str, float] = {}
        for stage, row in report["stages"].items():
            line |= {f"{stage}_sr": round(100 * row["sr"], 2), f"{stage}_pc": round(100 * row["pc"], 2)}
        for k in (3, 5):
            line[f"missing_at_{k}"] = round(100 * protocol.missing_rates(memory, singles, config.strategy, k)["all"], 2)
        report["line"] = line
        report |= manifest(
            config=chosen_by(config), embedder=evaluation.embedder.name, **usage_of(evaluation.model),
            seconds=round(time.perf_counter() - started, 1),
        )  # fmt: skip
        episodes = [episode_of(stage, run, config) for stage, runs in evaluation.stages().items() for run in runs]
        same = {key: getattr(config, key) for key in ("k", "max_steps", "triples_per_scene", "seed")}
        same |= {"profile": True} if config.profile else {}
        report |= episodes_data("memento", episodes, **same)
        if result:
            write_result(result, report)
            write_text(result.with_suffix(".md"), tables.page(report))
        return report

    def table(self, report: Mapping[str, Any]) -> str:
        parts = [f"Embedder: {report['embedder']}", tables.stage_table(report["stages"])]
        parts.append(tables.published_table(report["stages"]))
        parts += [table(report) for name, table in tables.TABLES.items() if name in report]
        return "\n\n".join(parts)

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        return dict(report["line"])


BENCHMARK = MementoBenchmark()


def episode_of(stage: str, run: protocol.Run, config: MementoConfig) -> EpisodeResult:
    """Return the result of a run of the main table."""
    more = {"sim_steps": run.sim_steps, "missing": int(run.missing)}
    agent = config.strategy if config.agents == ("planner",) else config.agents[0]
    return EpisodeResult(
        agent, run.episode_id, run.won, run.progress, run.cycles, subset=stage, seed=config.seed, more=more
    )

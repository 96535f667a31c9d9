"""Scores players by rules on generated lives: 200 tasks in one home, with people who tell, move and take back things.

    --homes 6 --rows oracle none bank lifelong "without notes"
    --weights DIR --deliveries none static compiled lifelong_static lifelong_compiled

`oracle` knows today's places and what each instruction means, `none` has no memory, `bank` reads all past episodes, and
`lifelong` a `LifelongMemory` that is told and shown everything through its public methods. All four are carried out by
the same rules. `pool of K` reads so many records of `memory.pool` and nothing else. Rows `without X` lack a module,
rows `X alone` have one. Other rows are conditions of the memory: `poisoned` (a document tells something false each
day), `contradicted` (a guest says the contrary of each sentence), `irrelevant` (100 tasks in another home before), and
`stale` with its own `none`, `bank` and `oracle`: half of the own places change after half the tasks, with nobody saying
so. Tasks of a life depend on each other, so intervals are over homes.

`teacher: pool` is the teacher that compilers learn from: it reads the pool that they read, of a memory that a
demonstrator has lived who knew the truth of all days before; `committed` past episodes alone, `empty` nothing.

With `--deliveries`, trained models play the first 20 and the last 100 days. Each begins with the demonstrator's memory;
`oracle` is by rules. `--conditions "without notes" poisoned ...` plays the lifelong deliveries under these conditions,
too: the same models, the same days, another memory. With `--more_weights`, the models of other training seeds play,
too, and a row is the mean.
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embodied_mem.agents.deliveries import LIFELONG, delivery_names
from embodied_mem.agents.task_pools import SETTINGS
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import EpisodeResult, Published, check_least, option
from embodied_mem.evaluation.command import Models
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.tables import markdown, rate
from embodied_mem.parallel.resume import Finished
from embodied_mem.progress import Progress
from embodied_mem.worlds.alfworld.generator import Generator
from experiments.configs._life import MIX, PARTS, SEED, STALE

from .lives import CUES, Life, LifeMix, homes_of, make_life
from .player import MODULES, Condition, Outcome, play_life


def _without(*names: str) -> tuple[str, ...]:
    return tuple(one for one in MODULES if one not in names)


CONDITIONS = {
    condition.name: condition
    for condition in (
        Condition("oracle", "oracle"),
        Condition("none", "none"),
        Condition("bank", "bank"),
        Condition("lifelong", modules=MODULES),
        *(Condition(f"pool of {k}", modules=MODULES, pool=k) for k in (8, 32)),
        *(Condition(f"without {name}", modules=_without(name)) for name in MODULES),
        Condition("without notes, profile", modules=_without("notes", "profile")),
        Condition("without episodic, semantic", modules=_without("episodic", "semantic")),
        *(Condition(f"{name} alone", modules=(name,)) for name in MODULES),
        Condition("poisoned", modules=MODULES, hears="poisoned"),
        Condition("contradicted", modules=MODULES, hears="contradicted"),
        Condition("irrelevant", modules=MODULES, other=True),
        *(Condition(f"teacher: {setting}", f"teacher {setting}") for setting in SETTINGS),
        Condition("stale: oracle", "oracle", is_stale=True),
        Condition("stale: none", "none", is_stale=True),
        Condition("stale: bank", "bank", is_stale=True),
        Condition("stale: lifelong", modules=MODULES, is_stale=True),
    )
}
FIRST, LAST = 20, 100
"""Tasks at the beginning and at the end of a life that the table shows."""


@dataclasses.dataclass(frozen=True)
class LifeConfig:
    """Options of play; each field says so itself."""

    part: str = option("report", "which homes held out; rules were chosen on dev", choices=tuple(PARTS))
    homes: int = option(6, "homes held out, a life each")
    rows: tuple[str, ...] = option(tuple(CONDITIONS), "players and conditions", choices=tuple(CONDITIONS))
    num_tasks: int = option(MIX.num_tasks, "tasks of a life")
    weights: str = option("", "folder of trained models, for --deliveries")
    more_weights: tuple[str, ...] = option((), "folders of other training seeds; rows are means")
    deliveries: tuple[str, ...] = option(
        (), "how trained models get memory, in place of --rows", choices=delivery_names
    )
    conditions: tuple[str, ...] = option((), "of the memory, for lifelong --deliveries, beside the whole one")

    def __post_init__(self) -> None:
        check_least(self, homes=1, num_tasks=2)
        known = [name for name, one in CONDITIONS.items() if one.kind == "lifelong" and not one.pool]
        if unknown := set(self.conditions) - set(known):
            raise InvalidInputError(f"--conditions: expected some of {', '.join(known)}, got {sorted(unknown)}")
        for name in ("conditions", "more_weights"):
            if getattr(self, name) and not self.deliveries:
                raise InvalidInputError(f"--{name}: expected --deliveries with it, e.g. --deliveries lifelong_compiled")


class LifeBenchmark:
    """Scores of rules and of trained models that live 200 days in homes where each memory is needed."""

    description = __doc__ or ""
    config = LifeConfig()
    published: Sequence[Published] = ()

    def evaluate(
        self, config: LifeConfig, *, models: Models | None = None, result: pathlib.Path | None = None
    ) -> dict[str, Any]:
        """Play the lives, as `Benchmark.evaluate`."""
        if config.deliveries:
            return _play_deliveries(config, models or Models(config.weights), result)
        if unknown := set(config.rows) - set(CONDITIONS):
            raise InvalidInputError(f"--rows: expected some of {', '.join(CONDITIONS)}, got {sorted(unknown)}")
        mixes = {stale: dataclasses.replace(mix, num_tasks=config.num_tasks) for stale, mix in
                 ((False, MIX), (True, STALE))}  # fmt: skip
        conditions = [CONDITIONS[name] for name in config.rows]
        lives = {
            stale: held_out_lives(mix, config.homes + 1, config.part)
            for stale, mix in mixes.items() if stale in {condition.is_stale for condition in conditions}
        }  # fmt: skip
        shares = {cue: float(np.mean([life.shares()[cue] for life in next(iter(lives.values()))[:-1]])) for cue in CUES}
        rows: dict[str, Any] = {}
        report = {
            **manifest(),
            "world": "life",
            "part": config.part,
            "homes": config.homes,
            "num_tasks": config.num_tasks,
            "mix": dataclasses.asdict(MIX),
            "shares": shares,
            "rows": rows,
        }
        with Progress("lives", len(conditions) * config.homes, unit="row") as progress:
            for condition in conditions:
                own = lives[condition.is_stale]
                results = []
                for life, other in itertools.pairwise(own):
                    if setting := condition.kind.removeprefix("teacher ") * condition.kind.startswith("teacher "):
                        from .tasks import play_by_teacher  # needs what training needs

                        results.append(play_by_teacher(life, setting))
                    else:
                        results.append(play_life(life, condition, before=other))
                    progress.update(1)
                rows[condition.name] = _row(own, _wins(results))
                rows[condition.name]["recalled_after_forgetting"] = sum(
                    outcome.num_recalled for life in results for outcome in life
                )
                if result is not None:
                    write_result(result, report)  # after each row, since a row takes minutes
        return report

    def table(self, report: Mapping[str, Any]) -> str:
        """Show success at both ends, and by cue, as `Benchmark.table`."""
        head = ("", f"first {FIRST}, %", f"last {LAST}, %", *CUES)
        rows = []
        for name, row in report["rows"].items():
            ends = [rate(row[end]["success"], row[end]["interval"]).replace(" %", "") for end in ("first", "last")]
            cues = ["-" if row["cues"][cue] is None else f"{100 * row['cues'][cue]:.0f}" for cue in CUES]
            rows.append((name, *ends, *cues))
        shares = ", ".join(f"{cue} {100 * share:.0f}" for cue, share in report["shares"].items())
        more = f"Columns of cues: success in the last {LAST} tasks. Shares of the tasks in percent: {shares}."
        if weights := report.get("weights", ()):
            more += f"\n\nMeans of {len(weights)} training seeds; the last {LAST} by seed: "
            more += "; ".join(
                f"{name} {', '.join(f'{100 * one:.1f}' for one in row['seeds'])}"
                for name, row in report["rows"].items() if "seeds" in row
            ) + "."  # fmt: skip
        for pair, (difference, low, high) in report.get("differences", {}).items():
            more += f"\n\n{pair}: {100 * difference:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}]."
        return markdown(head, rows, more)

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Give success by row, as `Benchmark.line`."""
        return {name: {end: row[end]["success"] for end in ("first", "last")} for name, row in report["rows"].items()}


def held_out_lives(mix: LifeMix, count: int, part: str) -> list[Life]:
    """Make the lives of the first so many homes of a part."""
    generator = Generator(SEED, habit=1.0, own_habits=True)
    return [make_life(generator, home, mix, part) for home in homes_of(generator, count, PARTS[part])]


PAIRS = (("lifelong_compiled", "none"), ("lifelong_compiled", "compiled"), ("compiled", "none"))
"""Deliveries whose difference is shown, over the same days."""


def _play_deliveries(config: LifeConfig, models: Models, result: pathlib.Path | None) -> dict[str, Any]:
    from embodied_mem.evaluation.score import Score, score

    from .tasks import DEMONSTRATOR, LifeEnvs, lives_of, pools_of

    folders = [models.folder, *config.more_weights]
    bundles = [replace(models, folder=folder).load() for folder in folders]
    trained, part = bundles[0].config, config.part
    facts: dict[str, Any] = manifest(
        world="life", part=part, homes=config.homes, num_tasks=config.num_tasks, mix=dataclasses.asdict(MIX),
        fingerprint=trained.fingerprint(), config=dataclasses.asdict(trained),
    )  # fmt: skip
    belongs_to = {name: facts[name] for name in ("commit", "part", "homes", "num_tasks")}
    rows: dict[str, Any] = {}
    won: dict[str, np.ndarray] = {}
    own_files: list[pathlib.Path] = []
    for condition in (DEMONSTRATOR, *(CONDITIONS[name] for name in config.conditions)):
        is_whole = condition is DEMONSTRATOR
        *lives, other = [
            replace(life, days=life.days[: config.num_tasks])
            for life in lives_of(config.homes + 1, part, condition.is_stale)
        ]
        scored = [replace(life, days=(*life.days[:FIRST], *life.days[FIRST:][-LAST:])) for life in lives]
        days = [day for life in scored for day in life.days]
        if is_whole:
            facts["shares"] = {cue: float(np.mean([life.shares()[cue] for life in lives])) for cue in CUES}
        if is_whole or condition.is_stale:
            oracle = [
                [one for day, one in zip(life.days, play_life(life, CONDITIONS["oracle"])) if day in days_of.days]
                for life, days_of in zip(lives, scored)
            ]
            rows[_name("oracle", condition)] = _row(scored, _wins(oracle))
        names = [
            name for name in config.deliveries
            if is_whole or condition.is_stale or (name.startswith(LIFELONG) and name != "lifelong_teacher")
        ]  # fmt: skip
        envs = LifeEnvs(days, min(trained.evaluation.batch_size, len(days)), trained.seed, trained.world.max_steps)
        pools = pools_of(lives, days, trained.memory.reading, condition, [*lives[1:], other])
        of_seeds = []
        for number, bundle in enumerate(bundles):
            suffix = f".{condition.name.replace(' ', '_')}.{number}.jsonl"
            own_file = None if result is None else pathlib.Path(f"{result}{suffix}")
            own_files += [own_file] if own_file is not None else []
            belongs = belongs_to | {"condition": condition.name, "fingerprint": bundle.config.fingerprint()}
            of_seeds.append(
                score(
                    bundle, envs, len(days), pools, deliveries=names, seeds=(0,),
                    temperature=trained.evaluation.temperature, finished=Finished(own_file, belongs, EpisodeResult),
                )
            )  # fmt: skip
        for name in names:
            one = Score(name, [row for scores in of_seeds for row in scores[name].episodes], len(bundles))
            wins = one.won.reshape(len(lives), -1, len(bundles))
            rows[_name(name, condition)] = _row(scored, wins.mean(2)) | one.to_json()
            if len(bundles) > 1:
                rows[_name(name, condition)]["seeds"] = wins[:, -LAST:].mean((0, 1)).tolist()
            won[_name(name, condition)] = one.won
    pairs = [
        (_name("lifelong_compiled", CONDITIONS[one]), other)
        for one in config.conditions
        for other in ("lifelong_compiled", _name("none", CONDITIONS[one]))
    ]
    differences = {
        f"{name} against {other}": paired_difference(won[name], won[other])
        for name, other in (*PAIRS, *pairs)
        if {name, other} <= won.keys()
    }
    report = {**facts, "rows": rows, "differences": differences}
    if len(folders) > 1:
        report["weights"] = folders
    if result is not None:
        write_result(result, report)
        for own_file in own_files:
            own_file.unlink()
    return report


def _name(delivery: str, condition: Condition) -> str:
    """Return the name of a row."""
    return delivery if condition.name == "demonstrator" else f"{delivery} {condition.name.replace(': lifelong', '')}"


def _wins(results: Sequence[Sequence[Outcome]]) -> np.ndarray:
    """Return float[homes, tasks]."""
    return np.array([[outcome.is_won for outcome in life] for life in results], float)


def _row(lives: Sequence[Life], wins: np.ndarray) -> dict[str, Any]:
    last = [(day.cue, win) for life, row in zip(lives, wins[:, -LAST:]) for day, win in zip(life.days[-LAST:], row)]
    of_cue = {cue: [win for other, win in last if other == cue] for cue in CUES}
    return {
        "first": _rate(wins[:, :FIRST]),
        "last": _rate(wins[:, -LAST:]),
        "cues": {cue: float(np.mean(some)) if some else None for cue, some in of_cue.items()},
        "windows": [float(wins[:, i : i + FIRST].mean()) for i in range(0, wins.shape[1], FIRST)],
        "homes": wins.mean(1).tolist(),
    }


def _rate(wins: np.ndarray) -> dict[str, Any]:
    """Success of float[homes, tasks], with a bootstrap interval over homes."""
    homes = wins.mean(1)
    draws = np.random.default_rng(0).integers(len(homes), size=(10_000, len(homes)))
    return {"success": float(wins.mean()), "interval": np.quantile(homes[draws].mean(1), (0.025, 0.975)).tolist()}


BENCHMARK = LifeBenchmark()

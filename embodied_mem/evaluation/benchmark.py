"""The interface of a benchmark and the result of one episode: all that the command line knows of scoring.

    benchmark = load("eb_alfred", "benchmark")                       # named by the world's card
    report = benchmark.evaluate(dataclasses.replace(benchmark.config, num_tasks=10))
    print(benchmark.table(report))
    episodes_of(report)[0].won

A report is JSON data. Whatever else is in it, `world` names the world, `protocol` what has to be equal for two reports
to be compared, and `episodes` holds every scored episode as one row.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.command import output_file

if TYPE_CHECKING:
    from embodied_mem.evaluation.command import Models

Cell = tuple[float | None, float | None]


@dataclasses.dataclass(frozen=True)
class Published:
    """One row that a paper reports.

    Attributes:
        name: paper and agent.
        rows: subset -> (success, progress) in percent; None for what is not reported.
    """

    name: str
    rows: Mapping[str, Cell]


def embodiedbench_row(name: str, base: Cell, common: Cell, long: Cell) -> Published:
    """Make a row on EmbodiedBench's three subsets."""
    return Published(name, {"base": base, "common_sense": common, "long_horizon": long})


@dataclasses.dataclass(frozen=True)
class EpisodeResult:
    """The outcome of one episode.

    Attributes:
        agent: name of the agent or delivery.
        task: name of the task.
        won: whether the goal was reached.
        progress: share of the goal's conditions that held, in [0, 1].
        steps: played.
        subset: of the benchmark, or its stage; empty where it has none.
        seed: of the play.
        run: which time the agent plays the task without clearing memory, from 1.
        group: what counts as one independent task in an interval; empty for the task itself.
        tokens: read and written by models.
        milliseconds: of memory and decisions, without the world's.
        more: what only this world or protocol counts, by name.
    """

    agent: str
    task: str
    won: bool
    progress: float
    steps: int
    subset: str = ""
    seed: int = 0
    run: int = 1
    group: str = ""
    tokens: float = 0
    milliseconds: float = 0
    more: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        """Yield the fields in order, so that `EpisodeResult(*result)` is the same again."""
        return (getattr(self, field.name) for field in dataclasses.fields(self))

    def count(self, name: str) -> float:
        """Return the value of a field or of a name in `more`.

        It is 0 where nothing was counted.
        """
        return float(self.more.get(name, getattr(self, name, 0)))


FIELDS = tuple(field.name for field in dataclasses.fields(EpisodeResult) if field.name != "more")


def episodes_data(world: str, episodes: Sequence[EpisodeResult], **protocol: Any) -> dict[str, Any]:
    """Return what a report holds of its episodes.

    That is the world, the protocol, and rows under one head of columns.
    """
    more = list(dict.fromkeys(name for episode in episodes for name in episode.more))
    rows = [
        [getattr(episode, name) for name in FIELDS] + [episode.more.get(name) for name in more] for episode in episodes
    ]
    return {"world": world, "protocol": protocol, "episodes": {"columns": [*FIELDS, *more], "rows": rows}}


def episodes_of(report: Mapping[str, Any]) -> list[EpisodeResult]:
    """Return the episodes of a report.

    Raises:
        InvalidInputError: it holds none, as those made before reports held episodes.
    """
    if not isinstance(report.get("episodes"), Mapping):
        raise InvalidInputError(
            "expected a report with `episodes`, got one without rows of single episodes; it was made before reports "
            "held them: make it anew with its command"
        )
    columns = report["episodes"]["columns"]
    found = []
    for row in report["episodes"]["rows"]:
        values = dict(zip(columns, row))
        known = {name: values.pop(name) for name in FIELDS if name in values}
        found.append(EpisodeResult(**known, more={name: v for name, v in values.items() if v is not None}))
    return found


def option(
    default: Any,
    help: str,
    *,
    choices: Iterable[str] | Callable[[], Iterable[str]] = (),
    kind: Callable[[str], Any] | None = None,
) -> Any:
    """Make a configuration field that is a command-line option, too.

    Args:
        default: its value; a tuple makes an option with any number of values, False one without a value.
        help: said by `--help`.
        choices: allowed values, or a function that lists those registered by then; empty for any.
        kind: makes a value of a word; None for the type of the default, of a tuple's first entry, or else text.
    """
    if kind is None:
        example = default[0] if isinstance(default, tuple) and default else default
        kind = str if example is None or isinstance(example, tuple) else type(example)
    return dataclasses.field(
        default=default,
        metadata={"help": help, "choices": choices if callable(choices) else tuple(choices), "kind": kind},
    )


def check_least(config: Any, **least: int) -> None:
    """Refuse a configuration with a field below its least value.

    Raises:
        InvalidInputError: the message names the option.
    """
    for name, value in least.items():
        if getattr(config, name) < value:
            raise InvalidInputError(f"--{name}: expected >= {value}, got {getattr(config, name)}")


def trace_option(what: str) -> Any:
    """Return the field `trace` of a benchmark's configuration; `what` is written."""
    return option(None, f"JSON lines for `embodied-mem view`: every step of {what}", kind=output_file)


def chosen_by(config: Any) -> dict[str, Any]:
    """Make a configuration as JSON data for a report, without `trace`.

    A trace says nothing of what is played.
    """
    return {name: value for name, value in dataclasses.asdict(config).items() if name != "trace"}


class Benchmark(Protocol):
    """The scoring of a world.

    Attributes:
        description: what `--help` says above the options.
        config: a frozen dataclass with the defaults; its fields made by `option` are options of the command line. A
            field `weights` names the folder of models.
        published: rows of papers, shown below the table.
    """

    description: str
    config: Any
    published: Sequence[Published]

    def evaluate(
        self, config: Any, *, models: Models | None = None, result: pathlib.Path | None = None
    ) -> dict[str, Any]:
        """Return the report of everything that `config` names, played.

        Args:
            config: what is played.
            models: how the models in `config.weights` are loaded; None as they were trained.
            result: file that the report is written to. Finished episodes are kept beside it until then, and a command
                that was stopped goes on.
        """
        ...

    def table(self, report: Mapping[str, Any]) -> str:
        """Return the report for people, as Markdown."""
        ...

    def line(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `--json` prints."""
        ...

"""Scores agents and deliveries of memory on the benchmark of a world, and compares two results.

    embodied-mem evaluate --config=alfworld                       # deliveries, by the weights in the repository
    embodied-mem evaluate --config=alfworld --agents full         # agents by rules: no weights, no extra
    embodied-mem evaluate --config=alfworld --help                # what a benchmark can be told
    python experiments/evaluate.py --config=eb_alfred --num_tasks 10   # or eb_habitat, memento, ...
    embodied-mem evaluate --compare A.json B.json                 # B against A, paired over the same episodes

In a clone, `python experiments/evaluate.py` knows more worlds, methods and agents. `--config` is a world with a
benchmark, alfworld if it is not given. With `--result FILE` the report is kept, with a row for each episode; what is
finished is kept beside it, so that a command that was stopped goes on when it is given again. The table comes last;
`--json` adds one JSON line.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import inspect
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import Benchmark
from embodied_mem.evaluation.chat_options import OTHER_MODELS, seat_table, usage_line
from embodied_mem.evaluation.command import (
    Models,
    add_json_option,
    add_model_options,
    models_of,
    output_file,
    print_result,
)
from embodied_mem.registry import hint, load, names, register


def main(arguments: Sequence[str] | None = None, prog: str | None = None) -> dict[str, Any]:
    """Play, print the table and return the report.

    `prog` is how the program is called.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if any(word.partition("=")[0] == "--compare" for word in given):
        return _compare(given, prog)
    benchmark, config, models, options = parse(given, prog)
    with _hosts(options.ray, given, config):
        report = benchmark.evaluate(config, models=models, result=options.result)
    costs = [usage_line(part) for part in (report, *(report.get(name, {}) for name in OTHER_MODELS))]
    for note in filter(None, (report.get("note"), *costs)):
        print(f"\n{note}")
    tables = filter(None, (benchmark.table(report), seat_table(report)))
    print_result("\n\n".join(tables), benchmark.line(report), options.json)
    return report


def parse(given: Sequence[str], prog: str | None = None) -> tuple[Benchmark, Any, Models, argparse.Namespace]:
    """Read (benchmark, its configuration, models, options) from a command line.

    Raises:
        InvalidInputError: the world has no benchmark, or the configuration is refused.
    """
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--config", default="alfworld")
    name = first.parse_known_args(given)[0].config
    known = names("benchmark")
    if name not in known:
        raise InvalidInputError(f"--config: expected one of {', '.join(known)}, got {name!r}{hint(name, 'benchmark')}")
    benchmark = load(name, "benchmark")
    added = _added_methods(given)
    parser = _Parser(
        prog=prog,
        description=f"{__doc__}\n--config={name}:\n\n{benchmark.description}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", default="alfworld", metavar="WORLD", help=f"one of {', '.join(known)}")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="two results; plays nothing")
    parser.add_argument("--force", action="store_true", help="with --compare: whatever the protocols are")
    parser.add_argument("--result", type=output_file, help="JSON file for the report")
    add_json_option(parser)
    parser.add_argument(
        "--ray", default="", metavar="ADDRESS", help="cluster whose hosts play the deliveries: auto, HOST:PORT, local"
    )
    _add_fields(parser, benchmark.config)
    if hasattr(benchmark.config, "weights"):
        add_model_options(parser)
        parser.add_argument(
            "--method", action="append", default=[], metavar="FILE.py:CLASS",
            help="plays a memory method of yours beside others, see docs/baselines.md; may be repeated",
        )  # fmt: skip
    options = parser.parse_args(given)
    chosen = {field.name: getattr(options, field.name) for field in _options_of(benchmark.config)}
    chosen = {key: tuple(value) if isinstance(value, list) else value for key, value in chosen.items()}
    if added and not chosen["deliveries"]:
        chosen["deliveries"] = ("none", "static", *added, "compiled")
    config = dataclasses.replace(benchmark.config, **chosen)
    if not hasattr(config, "weights"):
        return benchmark, config, Models(""), options
    return benchmark, config, models_of(options), options


def _hosts(address: str, given: Sequence[str], config: Any) -> contextlib.AbstractContextManager[None]:
    """Let a cluster play beside this process, if there is one."""
    if not address:
        return contextlib.nullcontext()
    if getattr(config, "agents", ()) or not hasattr(config, "deliveries"):
        raise InvalidInputError("--ray: expected --deliveries, which is what hosts play; agents by rules play here")
    from embodied_mem.parallel.on_ray import hosts

    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--ray", "--result"):
        own.add_argument(option)
    return hosts(address, functools.partial(_evaluate, own.parse_known_args(given)[1]))


def _evaluate(given: Sequence[str], result: pathlib.Path) -> None:
    benchmark, config, models, _ = parse(given)
    benchmark.evaluate(config, models=models, result=result)


class _Parser(argparse.ArgumentParser):
    """A parser that says of a refused name where it is."""

    def error(self, message: str) -> NoReturn:
        refused = message.partition("'")[2].partition("'")[0]
        super().error(message + hint(refused))


def _added_methods(given: Sequence[str]) -> list[str]:
    """Register the classes of `--method` and return their names.

    This comes before names of deliveries are checked.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--method", action="append", default=[])
    found = []
    for place in parser.parse_known_args(given)[0].method:
        file, _, name = place.rpartition(":")
        if not file.endswith(".py"):
            raise InvalidInputError(f"--method: expected FILE.py:CLASS, got {place!r}")
        register("methods", name, f"{pathlib.Path(file).absolute()}:{name}")
        cls = load("methods", name)
        if inspect.isabstract(cls) or not all(callable(getattr(cls, part, None)) for part in ("observe", "recall")):
            raise InvalidInputError(f"--method: expected a class with `observe` and `recall`, got {place!r}")
        found.append(name)
    return found


def _options_of(config: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(config) if "help" in field.metadata]


def _add_fields(parser: argparse.ArgumentParser, config: Any) -> None:
    for field in _options_of(config):
        value, about = getattr(config, field.name), field.metadata
        if about["kind"] is bool:
            parser.add_argument(f"--{field.name}", action="store_true", help=about["help"])
            continue
        more: dict[str, Any] = {"nargs": "*"} if isinstance(value, tuple) else {}
        if choices := about["choices"]:
            more["choices"] = tuple(choices() if callable(choices) else choices)
        shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
        text = f"{about['help']}; default: {shown}" if shown not in ("", None) else about["help"]
        parser.add_argument(f"--{field.name}", default=value, type=about["kind"], help=text.replace("%", "%%"), **more)


def _compare(given: Sequence[str], prog: str | None) -> dict[str, Any]:
    from embodied_mem.evaluation.compare import compare, read_report, table

    parser = argparse.ArgumentParser(
        prog=prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), required=True)
    parser.add_argument("--force", action="store_true", help="whatever the protocols are")
    parser.add_argument("--result", type=output_file, help="JSON file for the comparison")
    add_json_option(parser)
    options = parser.parse_args(given)
    first, second = (read_report(path) for path in options.compare)
    report = compare(first, second, force=options.force)
    if options.result:
        from embodied_mem.evaluation.report import write_result

        write_result(options.result, report)
    print(f"\nB against A: A is {options.compare[0]}, B is {options.compare[1]}")
    print_result(table(report), report, options.json)
    return report

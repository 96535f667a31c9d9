"""Attacks on regular expressions: texts on which a pattern that is not linear takes long, made from the pattern itself.

python tests/doubles/linear_patterns.py embodied_mem experiments    # prints what is slow as JSON
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib
import itertools
import json
import pathlib
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]

from embodied_mem.errors import MissingDependencyError

SEARCHES = {"search": "search", "match": "match", "fullmatch": "fullmatch"} | dict.fromkeys(
    ("sub", "subn", "split", "findall", "finditer"), "finditer"
)
USES = [f"re.{name}" for name in ("compile", *SEARCHES)]
SHORT, LONG = 1_000, 100_000
MOST = 120
"""Attacks on one pattern; of more, each second or third."""

BUDGET_S = 1.0
"""CPU time on `LONG` characters. A linear pattern needs 0.001 to 0.3 s, a quadratic one at least 2.5 s."""

_CHARACTERS = "a 1,-.'A\n\"_():/;[<\\&|{=x\t\u00a0"
_GENERAL = (
    "a",
    "a ",
    "a, ",
    "and ",
    "the a ",
    "my a ",
    "A",
    "Aa-",
    "1",
    ". ",
    "'",
    '"',
    "(",
    "[",
    "{",
    "<",
    " ",
    "\n",
    "a\n",
)
_LOOPS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


# ---------------------------------------------------------------------------------------------- attacks on one pattern


@dataclasses.dataclass
class _Outline:
    """One way through a pattern: a text that matches it in parts, and what repeats.

    Attributes:
        parts: text of each part.
        loops: (first part, part behind) of what repeats without bound.
        choices: other characters of a loop over single ones, by its first part.
    """

    parts: list[str] = dataclasses.field(default_factory=list)
    loops: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    choices: dict[int, str] = dataclasses.field(default_factory=dict)


def _inside(operation, value) -> list:
    """Give the lists of items inside of one item."""
    if operation is _constants.BRANCH:
        return value[1]
    if operation is _constants.GROUPREF_EXISTS:
        return [one for one in value[1:] if one]
    if operation in (_constants.SUBPATTERN, _constants.ASSERT, _constants.ASSERT_NOT, *_LOOPS):
        return [value[-1]]
    return [value] if operation is _constants.ATOMIC_GROUP else []


def _ways(items, above=()) -> Iterator[dict[int, int]]:
    """Give, for each alternative and each negative assertion anywhere, the choices that lead through it."""
    for operation, value in items:
        for number, inner in enumerate(_inside(operation, value)):
            chosen = above
            if operation in (_constants.BRANCH, _constants.ASSERT_NOT):
                chosen = (*above, (id(value), number))
                yield dict(chosen)
            yield from _ways(inner, chosen)


def _sets(items, tree) -> dict[int, re.Pattern]:
    """Give a pattern for each item that is one character, by the item's id."""
    found = {}
    for item in items:
        if item[0] in (_constants.IN, _constants.ANY, _constants.NOT_LITERAL):
            found[id(item)] = _compiler.compile(_parser.SubPattern(tree.state, [item]), tree.state.flags)
        for inner in _inside(*item):
            found |= _sets(inner, tree)
    return found


def _outline(items, chosen: dict[int, int], fitting: dict[int, str], outline: _Outline) -> _Outline:
    """Add to an outline the way through items on which each loop is taken once."""
    for item in items:
        operation, value = item
        begin = len(outline.parts)
        if operation is _constants.LITERAL:
            outline.parts.append(chr(value))
        elif id(item) in fitting:
            outline.choices[begin] = fitting[id(item)] or _first(*item)
            outline.parts.append(outline.choices[begin][0])
        elif operation is not _constants.ASSERT_NOT or id(value) in chosen:
            inner = _inside(operation, value)
            for one in inner[chosen.get(id(value), 0) :][:1]:
                _outline(one, chosen, fitting, outline)
        if operation in _LOOPS and value[1] >= 20 and len(outline.parts) > begin:
            outline.loops.append((begin, len(outline.parts)))
    return outline


def _first(operation, value) -> str:
    """Give the first character that an item names."""
    if operation is _constants.IN:
        return _first(*next(one for one in value if one[0] is not _constants.NEGATE))
    return chr(value[0] if operation is _constants.RANGE else value)


def attacks(pattern: re.Pattern) -> list[tuple[str, str, str]]:
    """Give (beginning, what is repeated, end) for texts that the pattern may take long to read."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = _parser.parse(text, pattern.flags if isinstance(pattern.pattern, str) else pattern.flags | re.ASCII)
    sets = _sets(tree, tree)
    alike = {tuple(one.match(character) is None for one in sets.values()): character for character in _CHARACTERS[::-1]}
    distinct = [character for character in _CHARACTERS if character in alike.values()]
    fitting = {item: "".join(filter(one.match, distinct)) for item, one in sets.items()}
    found = dict.fromkeys(("", pump) for pump in _GENERAL)
    for chosen in itertools.chain([{}], itertools.islice(_ways(tree), 60)):
        way = _outline(tree, chosen, fitting, _Outline())
        joined = ["".join(way.parts[:end]) for end in range(len(way.parts) + 1)]
        for begin, end in way.loops:
            alternatives = [*way.choices.get(begin, "")] if end == begin + 1 else []
            for pump in (*alternatives, joined[end][len(joined[begin]) :]):
                found |= dict.fromkeys(((joined[begin], pump), ("", joined[begin] + pump)))
            found |= dict.fromkeys((("", joined[begin]), ("", joined[end] + " ")))
        for (first, _), (second, end) in itertools.combinations(sorted(way.loops), 2):
            for behind in (second, end):
                found[joined[first], joined[behind][len(joined[first]) :]] = None
        found |= dict.fromkeys((("", joined[-1]), ("", joined[-1][:-1])))
    ends = ["\0"] if pattern.flags & re.DOTALL else ["\0", "\n\0"]
    tried = [(*begun, end) for begun in found if begun[1] for end in ends]
    return tried[:: -(-len(tried) // MOST)]


class _TooLong(Exception):
    """More than the budget."""


def _stop(*_) -> None:
    raise _TooLong


def seconds(
    pattern: re.Pattern,
    method: str,
    text: str,
    budget_s: float = BUDGET_S,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Measure the time of one method on a text, by default of the CPU; infinite above the budget."""
    whole: str | bytes = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    use: Callable = getattr(pattern, SEARCHES[method])
    before = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, budget_s)
    begin = clock()
    try:
        for _ in use(whole) if SEARCHES[method] == "finditer" else (use(whole),):
            pass
        return clock() - begin
    except _TooLong:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def text_of(attack: tuple[str, str, str], length: int) -> str:
    """Write an attack out to a length."""
    begin, pump, end = attack
    return begin + pump * max(1, length // len(pump)) + end


def slow_text(
    pattern: re.Pattern, method: str, budget_s: float = BUDGET_S, length: int = LONG
) -> tuple[str, str, str] | None:
    """Find an attack of a length on which a method takes more than the budget; None if there is none.

    Short texts are timed by the wall, since some kernels count CPU time in steps of 4 ms; the slowest again, since
    the machine may have been busy.
    """

    def short_s(attack) -> float:
        return seconds(pattern, method, text_of(attack, SHORT), budget_s, time.perf_counter)

    short = []
    for attack in attacks(pattern):
        short.append((short_s(attack), attack))
        if short[-1][0] > budget_s / 5:
            break
    slowest = [(min(once, short_s(attack), short_s(attack)), attack) for once, attack in sorted(short)[-16:]]
    for _, attack in sorted(slowest, reverse=True)[:4]:
        if all(seconds(pattern, method, text_of(attack, length), budget_s) > budget_s for _ in range(2)):
            return attack
    return None


# ---------------------------------------------------------------------------------------- patterns of Python's modules


@dataclasses.dataclass
class Found:
    """A pattern of a module, and the methods that it is used with."""

    pattern: re.Pattern
    module: str
    methods: set[str] = dataclasses.field(default_factory=set)


def _modules(folder: pathlib.Path) -> Iterator[tuple[str, ast.Module]]:
    """Give the name and tree of each module that imports `re`."""
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        names = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
        if "re" in names:
            parts = path.relative_to(folder.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), tree


def patterns_of(folders: list[pathlib.Path]) -> tuple[list[Found], list[str]]:
    """Find all patterns of the modules below folders, and the calls that make one nobody saw made."""
    found: dict[tuple, Found] = {}
    made: set[tuple[str, int]] = set()
    original = re.compile

    def add(pattern: re.Pattern, module: str) -> Found:
        return found.setdefault((pattern.pattern, pattern.flags), Found(pattern, module))

    def recording(pattern, flags=0):
        caller = sys._getframe(1)
        made.add((caller.f_globals.get("__name__", ""), caller.f_lineno))
        compiled = original(pattern, flags)
        if made_here(caller.f_globals.get("__name__", "")):
            add(compiled, caller.f_globals["__name__"])
        return compiled

    names = tuple(folder.name for folder in folders)

    def made_here(module: str) -> bool:
        return module.partition(".")[0] in names

    re.compile = recording
    sys.path[:0] = [str(folders[0].parent), *map(str, folders[1:])]  # where scripts find each other
    modules = []
    for name, tree in (one for folder in folders for one in _modules(folder)):
        with contextlib.suppress(MissingDependencyError):  # of an extra: seen where it is installed
            modules.append((importlib.import_module(name), tree))
    re.compile = original

    unseen, others = [], {}
    for module, tree in modules:
        loose = set()

        def value(node, module=module):
            try:
                return eval(compile(ast.Expression(node), "pattern", "eval"), dict(vars(module)))
            except Exception:  # a local name: any words stand for it
                if isinstance(node, ast.JoinedStr):
                    parts = [
                        value(part.value if isinstance(part, ast.FormattedValue) else part) for part in node.values
                    ]
                    return "".join(part if isinstance(part, str) else "ab c" for part in parts)
                return None

        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in [
                f"re.{name}" for name in ("compile", *SEARCHES)
            ]:
                flags = next((word.value for word in node.keywords if word.arg == "flags"), None)
                if flags is None and node.func.attr == "compile" and len(node.args) > 1:
                    flags = node.args[1]
                pattern = value(node.args[0]) if node.args else None
                if isinstance(pattern, str | bytes | re.Pattern):
                    one = add(original(pattern, value(flags) or 0 if flags else 0), module.__name__)
                    one.methods |= {node.func.attr} & SEARCHES.keys()
                elif not any((module.__name__, line) in made for line in range(node.lineno, node.end_lineno + 1)):
                    unseen.append(f"{module.__name__}: {ast.unparse(node.args[0])[:60]}")
            elif isinstance(node, ast.Attribute) and node.attr in SEARCHES and ast.unparse(node.value) != "re":
                target = value(node.value) if isinstance(node.value, ast.Name | ast.Attribute | ast.Subscript) else None
                if isinstance(target, re.Pattern):
                    add(target, module.__name__).methods.add(node.attr)
                elif target is None and node.attr != "split":
                    loose.add(node.attr)
        others[module.__name__] = loose
    for one in found.values():
        one.methods = one.methods or others.get(one.module) or {"search"}
    return list(found.values()), unseen


def main(folders: list[str]) -> None:
    """Print the patterns that are slow, those that nobody saw made, and how many there are."""
    found, unseen = patterns_of([pathlib.Path(folder).resolve() for folder in folders])
    slow = []
    for one in found:
        for method in sorted({SEARCHES[method]: method for method in one.methods}.values()):
            if (attack := slow_text(one.pattern, method)) is not None:
                slow.append(f"{one.module}: {method} {str(one.pattern.pattern)[:150]!r} on {attack!r}")
                print(slow[-1][:400], file=sys.stderr, flush=True)
    print(json.dumps({"patterns": len(found), "slow": slow, "unseen": unseen}))


if __name__ == "__main__":
    main(sys.argv[1:])

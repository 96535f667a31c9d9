"""A ratchet on names and docstrings: offenders against the house rules only become fewer.

`tests/prose_counts.json` has the number of offenders per rule. Record a lower one, or list the offenders of a rule:

    python tests/test_prose.py record
    python tests/test_prose.py participle embodied_mem/memory
"""

from __future__ import annotations

import ast
import collections
import functools
import json
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
COUNTS = ROOT / "tests/prose_counts.json"
MAX_SLACK = 100
"""Offenders that may go before the counts are recorded anew, so that side-by-side changes do not conflict."""
FOLDERS = ("embodied_mem", "embodied_mem_verifiers", "examples", "experiments")

NOMINAL = set(
    str.split(
        "a all an and any as at by each every for from her his how if in its no nothing of on one our several "
        "some that the their these this those to two what when where whether which who whose why with"
    )
)
"""First words that begin a noun phrase or a clause, not verb + object."""

FIELD_WORDS = set(
    str.split(
        "cached compiled embedded encoded expected hidden masked nested packed padded pooled quantized "
        "replicated sampled scaled sharded shuffled stacked supervised terminated trained truncated"
    )
)
"""Participles that the field uses as adjectives of arrays, weights, episodes; at most 30."""

IRREGULAR = set(
    str.split(
        "begun borne bought broken brought built caught chosen dealt done drawn driven eaten fallen felt "
        "forgotten fought found given gone grown heard held hidden kept known laid learnt lent lost made "
        "meant met paid said seen sent shown sold spent spoken stood sworn taken taught thought thrown told "
        "understood won worn woven written"
    )
)
NO_PARTICIPLE = set(
    str.split("bed embed exceed feed hundred indeed need proceed red seed shed sled speed succeed weed")
)
PREDICATE = re.compile(r"^_*(is|has|should)_|^__\w+__$")


@functools.cache
def is_participle(name: str) -> bool:
    """Tell a bare participle, such as `kept`, from a noun, such as `kept_facts`."""
    word = name.strip("_").lower()
    if word in FIELD_WORDS or word in NO_PARTICIPLE:
        return False
    return word in IRREGULAR or (word.endswith("ed") and word.isalpha())


def bound_name(node: ast.AST) -> str:
    """Return the name that a node binds, or an empty one."""
    kind = type(node)
    if kind is ast.Name:
        return node.id if type(node.ctx) is ast.Store else ""
    if kind is ast.Attribute:
        return node.attr if type(node.ctx) is ast.Store else ""
    return node.arg if kind is ast.arg else node.name if kind in _NAMED else ""


def nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every node of a tree; several times as fast as `ast.walk`."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field)
            if type(value) is list:
                stack += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and type(value) not in _LEAVES:
                stack.append(value)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAMED = (*_FUNCTIONS, ast.ClassDef)
_LEAVES = {ast.Load, ast.Store, ast.Constant}


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Recognise a function that reads as an attribute."""
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


def offences(tree: ast.AST) -> Iterator[tuple[str, int, str]]:
    """Yield (rule, line, text) of each offence in a module."""
    for node in nodes(tree):
        name = bound_name(node)
        if name and is_participle(name):
            yield "participle", node.lineno, name
        if type(node) not in _FUNCTIONS or is_property(node):
            continue
        line = node.lineno
        if isinstance(node.returns, ast.Name) and node.returns.id == "bool" and not PREDICATE.match(node.name):
            yield "predicate", line, node.name
        first = (ast.get_docstring(node) or "").split("\n")[0]
        words = re.findall(r"[\w`'.]+", first)
        if words and words[0].lower().strip("`") in NOMINAL:
            yield "nominal", line, first
        if len(first.split()) > 12:
            yield "long", line, first
        if {"which", "whose"} & {word.lower() for word in words}:
            yield "relative", line, first


def offenders(root: pathlib.Path) -> dict[str, list[str]]:
    """Find the offenders of each rule, as `file:line: text`."""
    found = collections.defaultdict(list, {rule: [] for rule in RULES})
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            for rule, line, text in offences(ast.parse(path.read_text(encoding="utf-8"))):
                found[rule].append(f"{path.relative_to(root)}:{line}: {text}")
    return found


RULES = ("nominal", "long", "relative", "participle", "predicate")


def test_offenders_only_become_fewer():
    counts = {rule: len(found) for rule, found in offenders(ROOT).items()}
    recorded = json.loads(COUNTS.read_text())
    more = {rule: (recorded[rule], count) for rule, count in counts.items() if count > recorded[rule]}
    assert not more, f"new offenders (recorded, now): {more}; list them: python tests/test_prose.py RULE [FOLDER]"
    slack = sum(recorded.values()) - sum(counts.values())
    assert slack <= MAX_SLACK, f"{slack} offenders fewer than recorded: run `python tests/test_prose.py record`"


def test_the_list_of_the_fields_words_is_short():
    assert len(FIELD_WORDS) <= 30


def test_each_rule_finds_its_offender(tmp_path):
    (tmp_path / "embodied_mem").mkdir()
    (tmp_path / "embodied_mem" / "module.py").write_text(
        'def told(kept_facts) -> bool:\n    """What a user said."""\n\n\n'
        'def add(x):\n    """Add a fact whose source is x."""\n\n\n'
        'def is_seen(x) -> bool:\n    """Compare x with one two three four five six seven eight nine ten."""\n'
        "    terminated = kept = 1\n\n\n"
        'class C:\n    @property\n    def size(self):\n        """The number of facts."""\n'
    )
    found = {rule: sorted({int(line.split(":")[1]) for line in lines}) for rule, lines in offenders(tmp_path).items()}
    assert found == {"nominal": [1], "long": [9], "relative": [5], "participle": [1, 11], "predicate": [1]}


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        COUNTS.write_text(json.dumps({rule: len(lines) for rule, lines in offenders(ROOT).items()}, indent=2) + "\n")
    else:
        rule, folder = (*sys.argv[1:], "")[:2]
        print(*[line for line in offenders(ROOT)[rule] if line.startswith(folder)], sep="\n")

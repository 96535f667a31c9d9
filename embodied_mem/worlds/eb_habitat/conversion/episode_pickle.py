"""The official episode pickles: read without running anything in them, and converted to the JSON form.

data = load_pickle(Path("base.pickle").read_bytes(), "base.pickle")
episodes = convert_episodes(data, load_categories(folder), "base", "base.pickle")

A pickle is a program. Here it may build plain values and arrays of numbers, and calls functions of this file only.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import math
import pickle
import pickletools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from embodied_mem.errors import GameFileError

_DTYPE = re.compile(r"[<>=|]?(?:[iu][1248]|f[248]|b1)\Z")
_LITERAL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*\Z")
_MAX_DEPTH = 64
_MAX_PARTS = 10_000
_MAX_OPCODES = 1 << 21  # as many as `MAX_JSON_VALUES`: each may make a value of 50 to 100 bytes
_REFUSED = frozenset(
    "PERSID BINPERSID INST OBJ NEWOBJ NEWOBJ_EX EXT1 EXT2 EXT4 NEXT_BUFFER READONLY_BUFFER".split()  # noqa: SIM905
)


def load_pickle(content: bytes, name: str) -> Any:
    """Read a pickle of plain containers, numbers, strings and numpy arrays.

    The containers are lists, tuples and dicts.

    Args:
        content: the file's bytes.
        name: of the file, for errors.

    Raises:
        GameFileError: it holds anything else, or is damaged; the message names the file and the reason.
    """
    try:
        end = 0
        for number, (opcode, _, position) in enumerate(pickletools.genops(content)):
            if opcode.name in _REFUSED:
                raise ValueError(f"opcode {opcode.name} is not admitted")
            if number == _MAX_OPCODES:
                raise ValueError(f"expected at most {_MAX_OPCODES} opcodes, got more than {_MAX_OPCODES}")
            end = position or 0
        if end + 1 != len(content):
            raise ValueError("bytes after the end of the pickle")
        return _Unpickler(io.BytesIO(content)).load()
    except Exception as error:  # whatever a damaged stream makes the interpreter of opcodes say
        reason = str(error) if type(error) is ValueError else f"damaged pickle: {type(error).__name__}: {error}"
        raise GameFileError(
            f"{name}: {reason}; an episode file holds plain containers and numpy arrays only"
        ) from error


def _dtype(code: Any, *_: object) -> np.dtype[Any]:
    if not isinstance(code, str) or not _DTYPE.match(code):
        kind = code[:20] if isinstance(code, str) else type(code).__name__
        raise ValueError(f"arrays of {kind} are not admitted, only of numbers")
    return np.dtype(code, copy=True)


def _array(raw: Any, dtype: Any, shape: Any = (), order: Any = "C") -> np.ndarray[Any, Any]:
    if not isinstance(dtype, np.dtype) or not isinstance(raw, bytes | bytearray) or not isinstance(shape, tuple):
        raise ValueError("an array without its type, shape or bytes")
    if not all(isinstance(n, int) and n >= 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(raw):
        raise ValueError(f"an array of shape {shape} and type {dtype} with {len(raw)} bytes")
    return np.frombuffer(bytes(raw), dtype).reshape(shape, order=order)


_ADMITTED: dict[str, Callable[..., Any]] = {
    "numpy.dtype": _dtype,
    "numpy.ndarray": lambda *_: np.zeros(0),
    "_codecs.encode": lambda text, encoding: text.encode("latin1"),
    "__builtin__.bytes": lambda: b"",  # how the oldest protocols write no bytes
}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED |= {
        f"{_core}.multiarray._reconstruct": lambda *_: np.zeros(0),
        f"{_core}.multiarray.scalar": lambda dtype, raw: _array(raw, dtype).item(),
        f"{_core}.numeric._frombuffer": _array,
    }


_Interpreter: Any = pickle._Unpickler  # in Python: what an opcode does can be replaced


class _Unpickler(_Interpreter):  # type: ignore[misc]
    """The interpreter with few names, plain keys, and state for arrays and their types only."""

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(_Interpreter.dispatch)

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        if f"{module}.{name}" not in _ADMITTED:
            raise ValueError(f"{module}.{name} is not admitted")
        return _ADMITTED[f"{module}.{name}"]

    def load_build(self) -> None:
        state, value = self.stack.pop(), self.stack[-1]
        if isinstance(value, np.ndarray):
            _, shape, dtype, is_fortran, raw = state
            _array(raw, dtype, shape)
            value.__setstate__((1, shape, dtype, bool(is_fortran), bytes(raw)))  # type: ignore[arg-type]
        elif isinstance(value, np.dtype) and state[1] in ("<", ">", "=", "|") and state[2:5] == (None, None, None):
            value.__setstate__((3, state[1], None, None, None, -1, -1, 0))  # type: ignore[attr-defined]
        else:
            raise ValueError(f"a state for {type(value).__name__} is not admitted")

    dispatch[pickle.BUILD[0]] = load_build


def _with_plain_keys(load: Callable[[Any], None], places: slice) -> Callable[[Any], None]:
    """Refuse tuples as keys: hashing tuples that share tuples takes exponential time."""

    def checked_load(interpreter: Any) -> None:
        for key in interpreter.stack[places]:
            if not isinstance(key, str | bytes | int | float | None):
                raise ValueError(f"a key of type {type(key).__name__}, expected a string or a number")
        load(interpreter)

    return checked_load


for _opcode, _places in (
    (pickle.SETITEM, slice(-2, -1)),
    (pickle.SETITEMS, slice(None, None, 2)),
    (pickle.DICT, slice(None, None, 2)),
    (pickle.ADDITEMS, slice(None)),
    (pickle.FROZENSET, slice(None)),
):
    _Unpickler.dispatch[_opcode[0]] = _with_plain_keys(_Unpickler.dispatch[_opcode[0]], _places)


def convert_episodes(data: Any, categories: Mapping[str, str], subset: str, name: str) -> list[dict[str, Any]]:
    """Return the episodes of an official pickle in the converted form.

    Objects get the handles that the original's loader gives them: asset and count among those of the asset so far.

    Args:
        data: what `load_pickle` returned.
        categories: category by asset.
        subset: the first half of the ids.
        name: of the file, for errors.

    Raises:
        GameFileError: an entry is missing or of another form; the message names the file, the entry and the reason.
    """
    where = "the pickle"
    try:
        names, transforms, episodes = data["idx_to_name"], data["all_transforms"], data["all_eps"]
        converted = []
        for i, episode in enumerate(episodes):
            where = f"all_eps[{i}]"
            converted.append(_episode(episode, names, transforms, categories, f"{subset}/{i:03d}", i))
            json.dumps(converted[-1])  # what JSON cannot hold is no part of an episode
        return converted
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}" if not isinstance(error, ValueError) else str(error)
        raise GameFileError(f"{name}: {where}: {reason}") from error


def _episode(
    episode: Mapping[str, Any],
    names: Mapping[int, str],
    transforms: np.ndarray[Any, Any],
    categories: Mapping[str, str],
    episode_id: str,
    index: int,
) -> dict[str, Any]:
    receptacles = {names[int(k)]: names[int(v)].rpartition("|")[2] for k, v in episode["name_to_receptacle"]}
    counts: dict[str, int] = {}
    objects: list[dict[str, Any]] = []
    for number, transform in episode["rigid_objs"]:
        asset = names[int(number)].split(".")[0]
        handle = f"{asset}_:{counts.get(asset, 0):04d}"
        counts[asset] = counts.get(asset, 0) + 1
        if asset not in categories:
            raise ValueError(f"no category is known for the asset {asset!r}")
        if handle not in receptacles:
            raise ValueError(f"the object {handle!r} has no receptacle")
        position = [round(float(x), 4) for x in np.asarray(transforms[int(transform)])[:3, 3]]
        entry = {"handle": handle, "category": categories[asset], "receptacle": receptacles[handle], "pos": position}
        objects.append(entry)
    if len(objects) != len(receptacles):
        raise ValueError(f"{len(receptacles)} objects have receptacles, {len(objects)} have places")
    objects.sort(key=lambda entry: entry["handle"])
    for asset, joints in episode["ao_states"].items():
        if any(float(joint) != 0.0 for joint in joints.values()):
            raise ValueError(f"{names[int(asset)]}: expected all joints closed, got {joints}")
    parts = {names[int(marker[0])]: "closed" for marker in episode["markers"]}
    for predicate, *arguments in map(_literal, episode["start_preds"] or []):
        if predicate not in ("opened_fridge", "opened_cab", "closed_fridge", "closed_cab") or len(arguments) != 1:
            raise ValueError(f"start_preds: expected doors and drawers, got {predicate}{tuple(arguments)}")
        parts[arguments[0]] = "open" if predicate.startswith("opened") else "closed"
    if not isinstance(episode["instruction"], str):
        raise ValueError(f"'instruction': expected a string, got {type(episode['instruction']).__name__}")
    goal = _goal(episode["goal_preds"], 0, itertools.count())
    scene = str(episode["scene_id"])
    return {
        "id": episode_id,
        "index": index,
        "scene": scene.rpartition("/")[2].split(".")[0],
        "scene_id": scene,
        "instruction": episode["instruction"],
        "initial_articulated": parts,
        "goal": goal,
        "subgoals_symbolic": symbolic_subgoals(episode["subgoals"], objects, goal),
        "objects": objects,
    }


def _literal(text: str) -> list[str]:
    match = _LITERAL.match(text)
    if match is None:
        raise ValueError(f"expected predicate(arguments), got {text!r}")
    arguments = match[2].strip()
    return [match[1], *(word.strip() for word in arguments.split(","))] if arguments else [match[1]]


def _goal(source: Any, depth: int, parts: Iterator[int]) -> dict[str, Any]:
    if depth > _MAX_DEPTH or next(parts) > _MAX_PARTS:
        raise ValueError(f"a goal nested deeper than {_MAX_DEPTH} or of more than {_MAX_PARTS} parts")
    if isinstance(source, str):
        predicate, *arguments = _literal(source)
        return {"pred": predicate, "args": arguments}
    node: dict[str, Any] = {"op": source["expr_type"]}
    if source.get("quantifier"):
        node["quantifier"] = source["quantifier"]
        node["vars"] = [{"name": entry["name"], "category": entry["expr_type"]} for entry in source["inputs"]]
    node["args"] = [_goal(part, depth + 1, parts) for part in source["sub_exprs"]]
    return node


def _goal_literals(goal: Mapping[str, Any]) -> Iterator[list[str]]:
    if "pred" in goal:
        yield [goal["pred"], *goal["args"]]
    for part in goal["args"] if "op" in goal else ():
        yield from _goal_literals(part)


def symbolic_subgoals(
    subgoals: list[list[str]], objects: list[dict[str, Any]], goal: Mapping[str, Any]
) -> list[list[list[str]]]:
    """Return, per recorded subgoal, what a symbolic state can decide.

    That is `holding`, `on_top` of objects not in hand, and states of doors. A subgoal that changes none of these is a
    walk, and gets `robot_at` of where it led: the place where the next subgoal picks, places, opens or closes; after
    the last one, the place that the goal names. A walk that cannot be told so adds nothing.

    Args:
        subgoals: the original strings.
        objects: converted, for where they start.
        goal: converted.

    Raises:
        ValueError: a string is no predicate, or nothing is left of a subgoal.
    """
    starts = {entry["handle"]: entry["receptacle"] for entry in objects}
    read = [_Subgoal.of([_literal(text) for text in subgoal]) for subgoal in subgoals]
    aims = [words[1] for words in _goal_literals(goal) if words[0] == "robot_at"]
    converted: list[list[list[str]]] = []
    for k, now in enumerate(read):
        before = (read[k - 1].held, read[k - 1].doors) if k > 0 else (None, [])
        target = None
        if (now.held, now.doors) == before:
            target = now.walks_to(read[k + 1], starts) if k + 1 < len(read) else next(iter(aims), None)
        kept = [*now.kept, *([["robot_at", target]] if target is not None else [])]
        if not kept:
            raise ValueError(f"subgoal {k}: nothing in it that a symbolic state can decide: {subgoals[k]}")
        converted.append(kept)
    return converted


@dataclasses.dataclass(frozen=True)
class _Subgoal:
    """A recorded subgoal: what is held, the states of doors, and the literals that a symbolic state can decide."""

    literals: list[list[str]]
    held: str | None
    doors: list[list[str]]
    kept: list[list[str]]

    @classmethod
    def of(cls, literals: list[list[str]]) -> _Subgoal:
        held = next((words[1] for words in literals if words[0] == "holding"), None)
        doors = sorted(words for words in literals if words[0].startswith(("opened_", "closed_")))
        kept = [words for words in literals if words[0] == "holding" or words in doors]
        return cls(
            literals, held, doors, kept + [words for words in literals if words[0] == "on_top" and words[1] != held]
        )

    def walks_to(self, following: _Subgoal, starts: dict[str, str]) -> str | None:
        """Return the place where the subgoal behind a walk acts."""
        if following.held not in (None, self.held):
            return (starts | {words[1]: words[2] for words in self.kept if words[0] == "on_top"})[following.held]
        if following.held != self.held:
            return next((words[2] for words in following.literals if words[:2] == ["on_top", self.held]), None)
        return next((words[1] for words in following.doors if words not in self.doors), None)

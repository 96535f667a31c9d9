"""The official episode pickles: read without running anything in them, and converted to the JSON form.

data = load_pickle(Path("base.pickle").read_bytes(), "base.pickle")
episodes = convert_episodes(data, load_categories(folder), "base", "base.pickle")

A pickle is a program. Here only opcodes that build plain values are admitted, and the few names that numpy arrays need
stand for functions of this file, so no code of the file's choice is ever called, numpy's own unpickling included.
Keys are plain: hashing tuples that share tuples takes time exponential in the size of the file.
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
from typing import Any, ClassVar, Literal

import numpy as np

from embodied_mem.errors import GameFileError

# fmt: off
_OPCODES = frozenset({
    "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT",
    "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
    "BYTEARRAY8", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "EMPTY_LIST", "APPEND", "APPENDS",
    "LIST", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS",
    "EMPTY_SET", "ADDITEMS", "FROZENSET", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET",
    "GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD",
})
# fmt: on
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_DTYPE = re.compile(r"[<>=|]?(?:[iu][1248]|f[248]|b1)\Z")
_LITERAL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*\Z")
_MAX_DEPTH = 64
_MAX_OPCODES = 1 << 21  # as many as `MAX_JSON_VALUES`: each may make a value of 50 to 100 bytes


def load_pickle(content: bytes, name: str) -> Any:
    """Return what a pickle of plain containers, numbers, strings and numpy arrays holds.

    Args:
        content: the file's bytes.
        name: of the file, for errors.

    Raises:
        GameFileError: it holds anything else, or is damaged; the message names the file, the byte and the reason.
    """
    positions = _checked_opcodes(content, name)
    try:
        return _plain(_Unpickler(content, positions, name).load(), {}, 0)
    except GameFileError:
        raise
    except Exception as error:  # whatever a damaged stream makes the interpreter of opcodes say
        raise GameFileError(f"{name}: damaged pickle: {type(error).__name__}: {error}") from error


def _checked_opcodes(content: bytes, name: str) -> list[int]:
    """Return where the pickle asks for names, in order; refuse opcodes that could do more than build plain values."""
    positions: list[int] = []
    end = 0
    operations = pickletools.genops(content)
    for count in itertools.count():
        if count > _MAX_OPCODES:
            raise GameFileError(f"{name}: more than {_MAX_OPCODES} opcodes; no file of episodes has as many")
        try:
            operation = next(operations, None)
        except Exception as error:
            raise GameFileError(f"{name}: not a pickle: {error}") from error
        if operation is None:
            break
        opcode, argument, end = operation[0], operation[1], operation[2] or 0
        if opcode.name not in _OPCODES:
            raise GameFileError(
                f"{name}: byte {end}: opcode {opcode.name} is not admitted; an episode file holds plain containers and "
                "numpy arrays only"
            )
        if opcode.name in _PUTS and not 0 <= int(argument or 0) <= len(content):
            raise GameFileError(f"{name}: byte {end}: memo number {argument} in a file of {len(content)} bytes")
        if opcode.name in ("GLOBAL", "STACK_GLOBAL"):
            positions.append(end)
    if end + 1 != len(content):
        raise GameFileError(f"{name}: byte {end + 1}: {len(content) - end - 1} bytes after the end of the pickle")
    return positions


class _Dtype:
    """Stands for a numpy dtype of numbers."""

    __slots__ = ("dtype",)

    def __init__(self, code: str):
        if not isinstance(code, str) or not _DTYPE.match(code):
            kind = code[:20] if isinstance(code, str) else type(code).__name__
            raise ValueError(f"arrays of {kind} are not admitted, only of numbers")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1]
        if order not in ("<", ">", "=", "|") or any(part is not None for part in state[2:5]):
            raise ValueError("unknown state of a dtype")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Stands for a numpy array while its pickle is read."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: np.ndarray[Any, Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, is_fortran, raw = state
        self.value = _array(raw, dtype, shape, "F" if is_fortran else "C")


def _array(raw: bytes, dtype: _Dtype, shape: tuple[int, ...], order: Literal["C", "F"]) -> np.ndarray[Any, Any]:
    if not isinstance(dtype, _Dtype) or not isinstance(raw, bytes | bytearray) or order not in ("C", "F"):
        raise ValueError("an array without its type, bytes or order")
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError("an array without a shape")
    if math.prod(shape) * dtype.dtype.itemsize != len(raw):
        raise ValueError(f"an array of shape {shape} and type {dtype.dtype} with {len(raw)} bytes")
    flat: np.ndarray[Any, Any] = np.frombuffer(bytes(raw), dtype.dtype)
    return flat.reshape(shape, order=order)


class _Call:
    """A function that a pickle may call, and no more."""

    __slots__ = ("_function",)

    def __init__(self, function: Any):
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __setstate__(self, state: object) -> None:
        raise ValueError("a state for a function")


def _latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise ValueError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


_MULTIARRAY = ("numpy.core.multiarray", "numpy._core.multiarray")
_NUMERIC = ("numpy.core.numeric", "numpy._core.numeric")
_ADMITTED = {
    ("numpy", "dtype"): lambda code, *_: _Dtype(code),
    ("numpy", "ndarray"): lambda *_: _Array(),
    ("_codecs", "encode"): _latin1,
    ("__builtin__", "bytes"): lambda: b"",  # how the oldest protocols write no bytes
    **{(module, "_reconstruct"): lambda *_: _Array() for module in _MULTIARRAY},
    **{(module, "scalar"): lambda dtype, raw: _array(raw, dtype, (), "C").item() for module in _MULTIARRAY},
    **{
        (module, "_frombuffer"): lambda raw, dtype, shape, order: _array(raw, dtype, shape, order)
        for module in _NUMERIC
    },
}


_Interpreter: Any = pickle._Unpickler  # in Python; of its parts only few are known to type checkers
_WHERE_KEYS_ARE = {
    pickle.SETITEM: slice(-2, -1),
    pickle.SETITEMS: slice(None, None, 2),
    pickle.DICT: slice(None, None, 2),
    pickle.ADDITEMS: slice(None),
    pickle.FROZENSET: slice(None),
}
"""Opcodes that make entries of dicts and sets -> where on the stack of the interpreter their keys are."""


def _with_plain_keys(opcode: bytes) -> Callable[[Any], None]:
    """What carries out an opcode if its keys are plain."""
    load = _Interpreter.dispatch[opcode[0]]

    def checked(interpreter: Any) -> None:
        for key in interpreter.stack[_WHERE_KEYS_ARE[opcode]]:
            if not isinstance(key, str | bytes | int | float | None):
                raise ValueError(f"a key of type {type(key).__name__}, expected a string or a number")
        load(interpreter)

    return checked


class _Unpickler(_Interpreter):  # type: ignore[misc]
    """The interpreter with plain keys and few names."""

    dispatch: ClassVar[dict[int, Any]] = _Interpreter.dispatch | {
        opcode[0]: _with_plain_keys(opcode) for opcode in _WHERE_KEYS_ARE
    }

    def __init__(self, content: bytes, positions: list[int], name: str):
        super().__init__(io.BytesIO(content))
        self._positions = iter(positions)
        self._name = name

    def find_class(self, module: str, name: str) -> _Call:
        position = next(self._positions, -1)
        function = _ADMITTED.get((module, name))
        if function is None:
            raise GameFileError(
                f"{self._name}: byte {position}: {module}.{name} is not admitted; an episode file holds plain "
                "containers and numpy arrays only"
            )
        return _Call(function)


def _plain(value: Any, done: dict[int, Any], depth: int) -> Any:
    """Return the value with arrays in place of their stand-ins; each container once, however often named."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"nested deeper than {_MAX_DEPTH}, or in itself")
    if isinstance(value, _Array):
        if value.value is None:
            raise ValueError("an array without content")
        return value.value
    if isinstance(value, _Dtype | _Call):
        raise TypeError("a part of an array outside of one")
    if not isinstance(value, dict | list | tuple | set | frozenset):
        return value
    if id(value) not in done:
        if isinstance(value, dict):
            plain: Any = {key: _plain(entry, done, depth + 1) for key, entry in value.items()}
        else:
            plain = type(value)(_plain(entry, done, depth + 1) for entry in value)
        done[id(value)] = (plain, value)  # the original is kept, so its id stays its own
    return done[id(value)][0]


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
    goal = _goal(episode["goal_preds"], 0)
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


def _goal(source: Any, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise ValueError(f"a goal nested deeper than {_MAX_DEPTH}")
    if isinstance(source, str):
        predicate, *arguments = _literal(source)
        return {"pred": predicate, "args": arguments}
    node: dict[str, Any] = {"op": source["expr_type"]}
    if source.get("quantifier"):
        node["quantifier"] = source["quantifier"]
        node["vars"] = [{"name": entry["name"], "category": entry["expr_type"]} for entry in source["inputs"]]
    node["args"] = [_goal(part, depth + 1) for part in source["sub_exprs"]]
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
        """Where the subgoal behind a walk picks, places, opens or closes."""
        if following.held not in (None, self.held):
            return (starts | {words[1]: words[2] for words in self.kept if words[0] == "on_top"})[following.held]
        if following.held != self.held:
            return next((words[2] for words in following.literals if words[:2] == ["on_top", self.held]), None)
        return next((words[1] for words in following.doors if words not in self.doors), None)

"""The work, bytes and messages of a compiled program, counted in its optimised text: the lines of a roofline.

    for row in roofline(compiled.as_text()):
        print(row.kind, row.flops, row.bytes, row.count)

Loops count as often as XLA knows that they run. Kinds are products (`dot`), collectives by name, and the rest by
instruction, of which `fusion` is element by element. FLOPs are those of products, wherever they stand. Bytes are
operands and results outside of fusions; of an operand that a fusion only slices, the slices, and of what it updates in
place, the update. The program is that of one device.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import re
from collections.abc import Iterator

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s16": 2, "u16": 2, "f64": 8, "s64": 8, "u64": 8}
_COLLECTIVES = ("all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter")
_FREE = ("bitcast", "constant", "get-tuple-element", "iota", "parameter", "partition-id", "replica-id", "tuple")
_INSTRUCTION = re.compile(r"\s*(?:ROOT )?%([\w.-]+) = (.*?) ([a-z][\w-]*)\((.*)")
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")


@dataclasses.dataclass
class Cost:
    """All instructions of one kind on one device: operations of products, bytes read and written, executions."""

    kind: str
    flops: float = 0.0
    bytes: float = 0.0
    count: float = 0.0


@dataclasses.dataclass(frozen=True)
class _Instruction:
    name: str
    shape: str
    kind: str
    operands: tuple[str, ...]
    rest: str

    def callee(self, role: str) -> str:
        """Return the name of the computation called as `role`, or nothing."""
        match = re.search(rf"{role}=%([\w.-]+)", self.rest)
        return match[1] if match else ""


def roofline(program: str) -> list[Cost]:
    """Returns the costs by kind, those with the most bytes first."""
    entry, bodies = "", dict[str, dict[str, _Instruction]]()
    for head, name, body in re.findall(r"^(ENTRY )?%([\w.-]+) \(.*?\{\n(.*?)^\}", program, re.M | re.S):
        entry = name if head else entry
        bodies[name] = {one.name: one for one in map(_instruction, body.splitlines()) if one is not None}
    costs = collections.defaultdict[str, Cost](lambda: Cost(""))
    for times, one, body in _runs(bodies, entry, 1):
        fusion = bodies.get(one.callee("calls"), {})
        kind = next((name for name in _COLLECTIVES if one.kind.startswith(name)), one.kind)
        flops = sum(_flops(inner, fusion) for inner in fusion.values()) + _flops(one, body)
        cost = costs["dot" if flops else kind]
        cost.flops += times * flops
        cost.bytes += times * _traffic(one, body, fusion)
        cost.count += times
    for kind, cost in costs.items():
        cost.kind = kind
    return sorted(costs.values(), key=lambda cost: -cost.bytes)


_VIEWS = ("parameter", "get-tuple-element", "bitcast", "tuple", "while")


def copies(program: str, sizes: set[int]) -> int:
    """Count the arrays of such sizes that the program's loops write.

    They are written to the device's memory. A TPU's product reads its weight into the chip's own memory, `S(1)` in a
    layout; that is no copy.
    """
    bodies: dict[str, list[str]] = {}
    for head, name, body in re.findall(r"^(ENTRY )?%([\w.-]+) \(.*?\{\n(.*?)^\}", program, re.M | re.S):
        bodies["" if head else name] = body.splitlines()
    inner = {
        name: [one for line in lines for one in re.findall(r"(?:body|to_apply)=%([\w.-]+)", line)]
        for name, lines in bodies.items()
    }  # what a fusion calls writes nothing but the fusion's result
    waiting, loops = [*inner[""]], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in loops:
            loops.add(name)
            waiting += inner[name]
    arrays = (
        re.match(r"\s*(?:ROOT )?%\S+ = \w+\[([\d,]*)\](\S*) ([\w-]+)\(", line)
        for name in loops for line in bodies[name]
    )  # fmt: skip
    return sum(
        math.prod(map(int, filter(None, array[1].split(",")))) in sizes
        for array in arrays
        if array and array[3] not in _VIEWS and "S(1)" not in array[2]
    )


def bound(costs: list[Cost], peak: float, bandwidth: float, links: float, scale: float = 1.0) -> float:
    """Returns the largest share of a chip's peak without overlap.

    Args:
        costs: of one device.
        peak: operations per second.
        bandwidth: bytes per second of its memory.
        links: bytes per second that it sends.
        scale: of bytes, where the program was compiled in another precision.
    """
    seconds = 0.0
    for cost in costs:
        speed = links if cost.kind in _COLLECTIVES else bandwidth
        seconds += max(cost.flops / peak, scale * cost.bytes / speed)
    return sum(cost.flops for cost in costs) / peak / seconds


def _instruction(line: str) -> _Instruction | None:
    match = _INSTRUCTION.match(line)
    if match is None:
        return None
    inside = match[4].split(")", 1)
    rest = inside[0] if match[3] == "parameter" else inside[-1]  # its number
    return _Instruction(match[1], match[2], match[3], tuple(re.findall(r"%([\w.-]+)", inside[0])), rest)


def _runs(
    bodies: dict[str, dict[str, _Instruction]], name: str, times: float
) -> Iterator[tuple[float, _Instruction, dict[str, _Instruction]]]:
    """Yield (times, instruction, computation), loops and calls included."""
    for one in bodies[name].values():
        if one.kind == "while":
            trips = re.search(r'"known_trip_count":\{"n":"(\d+)"', one.rest)
            yield from _runs(bodies, one.callee("body"), times * (int(trips[1]) if trips else 1))
        elif one.kind in ("call", "async-start") and one.callee("to_apply"):
            yield from _runs(bodies, one.callee("to_apply"), times)
        elif one.kind == "conditional":
            branches = re.findall(r"%([\w.-]+)", one.rest.partition("computations={")[2].partition("}")[0])
            for branch in branches[:1]:  # one of them runs
                yield from _runs(bodies, branch, times)
        elif one.kind not in _FREE and not one.kind.endswith("-done"):
            yield times, one, bodies[name]


def _sizes(shape: str) -> list[int]:
    return [int(size) for size in _ARRAY.search(shape)[2].split(",") if size]  # type: ignore[index]  # it is an array


def _num_bytes(shape: str) -> int:
    return sum(
        _BYTES.get(kind, 4) * math.prod(int(size) for size in sizes.split(",") if size)
        for kind, sizes in _ARRAY.findall(shape)
    )


def _flops(one: _Instruction, body: dict[str, _Instruction]) -> float:
    if one.kind != "dot":
        return 0.0
    left = _sizes(body[one.operands[0]].shape)
    axes = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", one.rest)
    depth = math.prod(left[int(axis)] for axis in axes[1].split(",") if axis) if axes else 1
    return 2.0 * math.prod(_sizes(one.shape)) * depth


def _traffic(one: _Instruction, body: dict[str, _Instruction], fusion: dict[str, _Instruction]) -> int:
    if one.kind == "dynamic-slice":
        return 2 * _num_bytes(one.shape)
    if one.kind == "dynamic-update-slice":
        return 2 * _num_bytes(body[one.operands[1]].shape)
    results = _num_bytes(one.shape)
    read = [_num_bytes(body[name].shape) for name in one.operands if name in body]
    parameters = [inner for inner in fusion.values() if inner.kind == "parameter"]
    for i, parameter in enumerate(sorted(parameters, key=lambda inner: int(inner.rest))[: len(read)]):
        users = [inner for inner in fusion.values() if parameter.name in inner.operands]
        if users and all(user.kind == "dynamic-slice" for user in users):
            read[i] = sum(_num_bytes(user.shape) for user in users)
        elif users and all(u.kind == "dynamic-update-slice" and u.operands[0] == parameter.name for u in users):
            updates = sum(_num_bytes(fusion[user.operands[1]].shape) for user in users)
            read[i], results = 0, results - _num_bytes(parameter.shape) + updates
    return results + sum(read)

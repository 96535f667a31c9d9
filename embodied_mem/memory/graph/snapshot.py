"""A read-only version of a knowledge graph, unaffected by later writes.

with graph.snapshot() as now:
    near = now.khop([now.find("apple 1")], hops=2)
    [now.fact(i) for i in near.facts]
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from ...errors import InvalidInputError
from ...native import part
from ..arguments import checked_number, native_call, shown
from .records import Fact, Node, Subgraph

Direction = Literal["out", "in", "both"]

_native = part("memory")
MAX_HOPS: int = _native.MAX_HOPS
_NO_EMBEDDING = _native.NO_EMBEDDING
_STILL_VALID = _native.STILL_VALID


class Snapshot:
    """One version of a graph. Use it in a `with` block: what later batches replace is kept until it is closed."""

    def __init__(self, native: Any):
        self._native = native

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the version; reading raises InvalidInputError from now on."""
        self._native.close()

    @property
    def version(self) -> int:
        """Number of the last batch in it."""
        return int(self._native.version)

    @property
    def num_nodes(self) -> int:
        return int(self._native.num_nodes)

    @property
    def num_facts(self) -> int:
        """Facts that are or were true; ids are below it."""
        return int(self._native.num_facts)

    @property
    def num_current_facts(self) -> int:
        return int(self._native.num_current_facts)

    @property
    def num_forgotten_nodes(self) -> int:
        """Ids below `num_nodes` that nothing is behind any more."""
        return int(self._native.num_forgotten_nodes)

    @property
    def num_erased_facts(self) -> int:
        """Ids below `num_facts` that nothing is behind any more."""
        return int(self._native.num_erased_facts)

    @native_call
    def has_node(self, node: int) -> bool:
        """Return whether something is behind the id, that is, whether the node was not forgotten."""
        return bool(self._native.has_node(checked_id(node, "node")))

    def node_ids(self) -> list[int]:
        """Return the ids of the nodes that were not forgotten."""
        return [node for node in range(self.num_nodes) if self._native.has_node(node)]

    @native_call
    def has_fact(self, fact: int) -> bool:
        """Return whether something is behind the id, that is, whether the fact was not erased."""
        return bool(self._native.has_fact(checked_id(fact, "fact")))

    @property
    def relations(self) -> list[str]:
        return [word for word in self._native.relations if word]

    @native_call
    def find(self, name: str) -> int | None:
        """Return the id of the node of exactly this name, or None."""
        found: int | None = self._native.find_node(name)
        return found

    @native_call
    def find_all(self, names: Sequence[str]) -> list[int | None]:
        """Return `find` of each of several names."""
        found: list[int | None] = self._native.find_nodes(names)
        return found

    @native_call
    def find_fact(self, subject: int, relation: str, object: int) -> int | None:
        """Return the id of the current fact that says so, or None."""
        found: int | None = self._native.find_fact(subject, self._native.find_relation(relation), object)
        return found

    @native_call
    def node(self, node: int) -> Node:
        """Return all about a node. Raises InvalidInputError for an unknown id."""
        name, type_, attributes, embedding = self._native.node(checked_id(node, "node"))
        return Node(node, name, type_, dict(attributes), None if embedding == _NO_EMBEDDING else embedding)

    @native_call
    def name(self, node: int) -> str:
        """Return the name of a node. Raises InvalidInputError for an unknown id."""
        return str(self._native.node(checked_id(node, "node"))[0])

    @native_call
    def names(self, nodes: Sequence[int]) -> list[str]:
        """Return `name` of each of several nodes; empty for one that was forgotten."""
        found: list[str] = self._native.names(nodes)
        return found

    @native_call
    def named_facts(self, facts: Sequence[int]) -> list[tuple[str, str, str, int, int]]:
        """Return (name, relation, name, subject, object) of each of several facts, past or current."""
        found: list[tuple[str, str, str, int, int]] = self._native.named_facts(facts)
        return found

    @native_call
    def are_current(self, facts: Sequence[int]) -> list[bool]:
        """Return whether each of several facts was not invalidated."""
        found: list[bool] = self._native.are_current(facts)
        return found

    @native_call
    def fact(self, fact: int) -> Fact:
        """Return all about a fact, past or current. Raises InvalidInputError for an unknown id."""
        subject, relation, object_, valid_at, invalid_at, sources = self._native.fact(checked_id(fact, "fact"))
        end = None if invalid_at == _STILL_VALID else invalid_at
        return Fact(int(fact), subject, relation, object_, valid_at, end, sources)

    @native_call
    def facts_of(self, node: int, direction: Direction = "both", as_of: int | None = None) -> np.ndarray:
        """Return uint32[E] ids of the facts at a node: out before in, each by id; current ones, or those at `as_of`."""
        return np.asarray(self._native.facts_of(checked_id(node, "node"), direction, as_of))

    @native_call
    def facts_of_all(
        self, nodes: Sequence[int], direction: Direction = "both", as_of: int | None = None
    ) -> list[list[int]]:
        """Return `facts_of` of each of several nodes, as lists."""
        found: list[list[int]] = self._native.facts_of_all(nodes, direction, as_of)
        return found

    @native_call
    def facts(self, as_of: int | None = None) -> np.ndarray:
        """Return uint32[E] ids of all facts that are true now or were true at `as_of`. Reads the whole graph."""
        return np.asarray(self._native.all_facts(as_of))

    @native_call
    def khop(
        self,
        sources: Iterable[int],
        hops: int = 2,
        direction: Direction = "both",
        relations: Iterable[str] | None = None,
        max_nodes: int | None = None,
        as_of: int | None = None,
    ) -> Subgraph:
        """Return what lies within `hops` facts of the sources, at a cost that depends on what is visited alone.

        Args:
            sources: node ids.
            hops: 0 to 64.
            direction: follow facts from subject to object ("out"), back ("in"), or both ways.
            relations: follow only these; None: all.
            max_nodes: stop when so many nodes are found; None: no limit.
            as_of: time of the state to look at; None: facts that were not invalidated.

        Raises:
            InvalidInputError: an unknown node, relation or direction, or a number out of range.
        """
        numbers = None if relations is None else tuple(map(self._native.find_relation, _words(relations)))
        if numbers == ():
            raise InvalidInputError("relations: expected at least one, or None for all, got an empty list")
        found: Subgraph = self._native.khop(sources, khop_options(hops, direction, max_nodes, numbers, as_of))
        return found


def checked_id(value: int, where: str) -> int:
    """The id as an int. Raises InvalidInputError for what cannot be one."""
    try:
        number = int(value)
    except (OverflowError, TypeError, ValueError):
        number = -1
    if not 0 <= number < 2**32:
        raise InvalidInputError(f"{where}: expected an id from 0 to {2**32 - 1}, got {shown(value)}")
    return number


def _words(words: Iterable[str]) -> list[str]:
    """The words. Raises InvalidInputError for a single text."""
    if isinstance(words, str):
        raise InvalidInputError(f"relations: expected a list of words, got the one str {words!r}")
    return list(words)


@functools.lru_cache(256)
def khop_options(
    hops: int, direction: str, max_nodes: int | None, relations: tuple[int, ...] | None = None, as_of: int | None = None
) -> Any:
    """The native options of an extraction, the last ones kept. Raises InvalidInputError for a number out of range."""
    if checked_number("hops", hops) < 0:
        raise InvalidInputError(f"hops: expected 0 to {MAX_HOPS}, got {hops}")
    if max_nodes is not None and checked_number("max_nodes", max_nodes) < 1:
        raise InvalidInputError(f"max_nodes: expected at least 1, got {max_nodes}")
    return _native.KHopOptions(hops, direction, None if relations is None else list(relations), max_nodes, as_of)

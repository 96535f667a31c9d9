"""Completions that are one of given token sequences: a trie per row, as arrays that a sampler walks on the device.

    choices = tries([[go_to_desk, look], [look]], rows=2)      # token ids of each, the end token included
    generate(..., choices=choices)

At a node only its children can be drawn, so whatever is written is one of the choices. With C the most children of a
node, a step compares C logits of each row, not V.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from embodied_mem.errors import InvalidInputError


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Choices:
    """Tries of B rows with N nodes; node 0 is the root.

    Attributes:
        tokens: int32[B, N, C], token of each child; -1 where there is none.
        nodes: int32[B, N, C], its node; 0 behind the last token of a choice.
    """

    tokens: jax.Array | np.ndarray
    nodes: jax.Array | np.ndarray


def tries(choices: Sequence[Sequence[Sequence[int]]], rows: int) -> Choices:
    """The tries of each row's choices; rows beyond them repeat the first.

    N and C are powers of two, from 128 and 16 on, so that few programs are compiled.

    Args:
        choices: per row token sequences, the token that ends a completion last.
        rows: B, at least as many as `choices`.

    Raises:
        InvalidInputError: a row has no choice, or one is empty or goes on behind the end of another.
    """
    found = [_trie(row, own) for row, own in enumerate(choices)]
    size = _power(128, max(len(trie) for trie in found))
    width = _power(16, max(len(children) for trie in found for children in trie))
    tokens = np.full((rows, size, width), -1, np.int32)
    nodes = np.zeros_like(tokens)
    for row, trie in enumerate(found):
        for node, children in enumerate(trie):
            tokens[row, node, : len(children)] = [*children]
            nodes[row, node, : len(children)] = [*children.values()]
    tokens[len(found) :], nodes[len(found) :] = tokens[0], nodes[0]
    return Choices(tokens, nodes)


def _trie(row: int, choices: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    """Nodes, each child token -> node."""
    if not choices:
        raise InvalidInputError(f"choices[{row}]: expected at least one, got none")
    trie: list[dict[int, int]] = [{}]
    for choice in choices:
        if not choice:
            raise InvalidInputError(f"choices[{row}]: expected tokens in each, got an empty one")
        node = 0
        for token in choice[:-1]:
            if token not in trie[node]:
                trie[node][token] = len(trie)
                trie.append({})
            node = trie[node][token]
            if node == 0:
                raise InvalidInputError(
                    f"choices[{row}]: expected none that goes on behind another's end, got {[*choice]}"
                )
        if trie[node].setdefault(choice[-1], 0):
            raise InvalidInputError(f"choices[{row}]: expected none that ends within another, got {choice}")
    return trie


def _power(least: int, count: int) -> int:
    return max(least, 1 << (count - 1).bit_length())


def children(choices: Choices, node: jax.Array) -> jax.Array:
    """int32[B, C], the tokens that may follow at int32[B] nodes."""
    return jnp.take_along_axis(jnp.asarray(choices.tokens), node[:, None, None], axis=1)[:, 0]


def descend(choices: Choices, node: jax.Array, child: jax.Array) -> jax.Array:
    """int32[B], the nodes of the children int32[B] that were drawn."""
    own = jnp.take_along_axis(jnp.asarray(choices.nodes), node[:, None, None], axis=1)[:, 0]
    return jnp.take_along_axis(own, child[:, None], axis=1)[:, 0]

"""The KV cache as a pytree, with two ways to reshape it: more room, and other rows and columns.

    hidden, cache = prefill(...)                                  # columns: the prompt's
    cache = grow(cache, capacity)                                 # room for more
    cache = take(cache, rows, columns, kept, last)                # what some prompts share with those that were read

A key is turned by its token's position before it is stored, and `valid` says which columns may be attended to, so a
token may stand in any column. That is what makes `take` enough for all of: going on from the last step's prompt, one
prompt for many trajectories, a row that leaves the batch, a batch of another size.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from embodied_mem.errors import InvalidInputError


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class KVCache:
    """Keys and values of what a batch has read, as a pytree; all rows share the column that is written next.

    Attributes:
        keys: per layer [B, kv heads, capacity, head_dim] (a tuple), or one stacked array if `config.scan_layers`.
        values: likewise.
        valid: bool[B, capacity], columns that may be attended to.
        next_position: int32[B], RoPE position of the next real token, i.e. the number of real tokens read.
        last: [B, K, D], the K embeddings read last, for `smear`; None without.
        index: int32[], the column that is written next. Writing past the capacity is the caller's error: columns
            are then overwritten at the end. `generate` sizes its caches so that this cannot happen.
    """

    keys: tuple[jax.Array, ...] | jax.Array
    values: tuple[jax.Array, ...] | jax.Array
    valid: jax.Array
    next_position: jax.Array
    last: jax.Array | None
    index: jax.Array

    @property
    def capacity(self) -> int:
        """Number of columns."""
        return self.valid.shape[1]


def grow(cache: KVCache, capacity: int) -> KVCache:
    """Returns the cache with empty columns added behind, up to `capacity`."""
    more = capacity - cache.capacity
    if more < 0:
        raise InvalidInputError(f"grow: expected capacity >= {cache.capacity} (the present one), got {capacity}")

    def pad(array: jax.Array) -> jax.Array:
        return jnp.pad(array, [(0, 0)] * (array.ndim - 2) + [(0, more), (0, 0)])

    keys, values = jax.tree.map(pad, (cache.keys, cache.values))
    return dataclasses.replace(cache, keys=keys, values=values, valid=jnp.pad(cache.valid, ((0, 0), (0, more))))


def take(cache: KVCache, rows: jax.Array, columns: jax.Array, kept: jax.Array, last: jax.Array | None) -> KVCache:
    """Returns a cache of P columns for B rows, picked from another.

    Column p of row b is column columns[b, p] of row rows[b].

    Args:
        cache: any number of rows and columns.
        rows: int32[B].
        columns: int32[B, P], in the order of their positions; those past `kept` are not attended to.
        kept: int32[B], at most P; the tokens taken are the first of each sequence, so this is the next position.
        last: [B, K, D], embeddings of the last K tokens taken, for `smear`; None without.
    """

    def pick(array: jax.Array) -> jax.Array:
        def pick_row(row: jax.Array, places: jax.Array) -> jax.Array:
            return jnp.moveaxis(array[..., row, :, places, :], 0, -2)

        return jax.vmap(pick_row, out_axes=array.ndim - 4)(rows, columns)

    num_columns = columns.shape[1]
    keys, values = jax.tree.map(pick, (cache.keys, cache.values))
    return KVCache(
        keys=keys,
        values=values,
        valid=jnp.arange(num_columns) < kept[:, None],
        next_position=kept,
        last=last,
        index=jnp.asarray(num_columns, jnp.int32),
    )


def repeat_rows(cache: KVCache, rows: jax.Array) -> KVCache:
    """Returns the cache of a batch with row rows[b] as row b.

    `rows` is int32[B].
    """
    keys, values = jax.tree.map(lambda array: jnp.take(array, rows, axis=array.ndim - 4), (cache.keys, cache.values))
    last = None if cache.last is None else cache.last[rows]
    return KVCache(keys, values, cache.valid[rows], cache.next_position[rows], last, cache.index)

"""Samples as padded token rows, and the order in which they are seen: a pure function of (seed, step).

    rows = [Row(prompt_ids, completion_ids, soft_ids)]
    batch = pad_rows(rows, pad_id, multiple=128)         # Batch of arrays
    for indices in batches(lengths, batch_size, seed=0, first_step=120, num_steps=1000): ...

Because the order depends on nothing else, a run that is killed and started again at step 120 reads what it would have
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import jax
import numpy as np

from embodied_mem.models.vision.pictures import stacked

A = TypeVar("A")


class Row(NamedTuple):
    """One training sequence.

    Attributes:
        prompt: token ids that are read.
        completion: token ids that are learned, the end token included.
        suffix: token ids read after the completion: the soft positions, or nothing.
        pictures: uint8[K, side, side, 3] for the placeholders in the prompt; None for none.
    """

    prompt: Sequence[int]
    completion: Sequence[int]
    suffix: Sequence[int] = ()
    pictures: np.ndarray | None = None

    @property
    def num_tokens(self) -> int:
        """Of all of it."""
        return len(self.prompt) + len(self.completion) + len(self.suffix)


class Batch(NamedTuple, Generic[A]):
    """Right-padded rows: arrays of numpy on the host, of jax within a step.

    Attributes:
        tokens: int32[B, L].
        mask: bool[B, L], real positions.
        targets: int32[B, L], the next token.
        learned: bool[B, L], positions whose target belongs to the completion.
        text: bool[B, L], positions of the completion itself.
        suffix: bool[B, L], positions of the suffix.
        pictures: uint8[B, K, side, side, 3], zeros for a row without; None where no row has any.
    """

    tokens: A
    mask: A
    targets: A
    learned: A
    text: A
    suffix: A
    pictures: A | None = None


HostBatch = Batch[np.ndarray]


def pad_rows(rows: Sequence[Row], pad_id: int, multiple: int = 64, length: int = 0) -> HostBatch:
    """`rows` as arrays whose length is the longest row's, rounded up to a multiple, or `length` if that is given."""
    sizes = [row.num_tokens for row in rows]
    width = max(length, -(-max(sizes) // multiple) * multiple)
    shape = (len(rows), width)
    tokens = np.full(shape, pad_id, np.int32)
    mask, learned, text, suffix = (np.zeros(shape, bool) for _ in range(4))
    for b, row in enumerate(rows):
        start, end = len(row.prompt), len(row.prompt) + len(row.completion)
        tokens[b, : sizes[b]] = [*row.prompt, *row.completion, *row.suffix]
        mask[b, : sizes[b]] = True
        learned[b, start - 1 : end - 1] = True
        text[b, start:end] = True
        suffix[b, end : sizes[b]] = True
    targets = np.full(shape, pad_id, np.int32)
    targets[:, :-1] = tokens[:, 1:]
    return Batch(tokens, mask, targets, learned, text, suffix, stacked([row.pictures for row in rows]))


def spots_of(batch: HostBatch, multiple: int) -> np.ndarray:
    """int32[B, M], the positions whose targets are learned; M is the most of a row, rounded up to a multiple.

    Rows with fewer repeat the last position, which never has a target.
    """
    counts = batch.learned.sum(1)
    width = min(-(-max(int(counts.max()), 1) // multiple) * multiple, batch.tokens.shape[1])
    spots = np.full((len(counts), width), batch.tokens.shape[1] - 1, np.int32)
    spots[np.arange(width) < counts[:, None]] = np.nonzero(batch.learned)[1]
    return spots


def fill_rows(batch: HostBatch, size: int) -> HostBatch:
    """`batch` with `size` rows: those that are missing repeat the first and have nothing to learn."""
    missing = size - len(batch.tokens)
    if missing == 0:
        return batch
    batch = jax.tree.map(lambda array: np.concatenate([array, np.repeat(array[:1], missing, 0)]), batch)
    return batch._replace(learned=batch.learned & (np.arange(size) < size - missing)[:, None])


def batches(
    lengths: Sequence[int], batch_size: int, *, seed: int, first_step: int, num_steps: int, window: int = 8
) -> Iterator[np.ndarray]:
    """Yields int64[batch_size] sample indices for the steps `first_step` to `num_steps` - 1.

    Every epoch is a new permutation, of which the rest that does not fill a batch is left out; other samples in every
    epoch. With fewer samples than a batch holds, some are repeated. Within a window of `window` batches samples are
    grouped by length, so that little is padded, and the batches are then shuffled again.
    """
    size = len(lengths)
    per_epoch = max(1, size // batch_size)
    order: list[np.ndarray] = []
    epoch = -1
    for step in range(first_step, num_steps):
        if step // per_epoch != epoch:
            epoch = step // per_epoch
            order = _epoch(np.asarray(lengths), batch_size, np.random.default_rng((seed, epoch)), window, per_epoch)
        yield order[step % per_epoch]


def first_seen(step: int, per_epoch: int, seed: int) -> int:
    """The step of the first epoch that has the batch of `step`; every later epoch is the first in another order."""
    epoch, place = divmod(step, per_epoch)
    return int(np.random.default_rng((seed, epoch)).permutation(per_epoch)[place]) if epoch else step


def _epoch(
    lengths: np.ndarray, batch_size: int, random: np.random.Generator, window: int, per_epoch: int
) -> list[np.ndarray]:
    size = len(lengths)
    permutation = random.permutation(size)
    if size < batch_size:
        permutation = np.resize(permutation, batch_size)
    groups: list[np.ndarray] = []
    for start in range(0, per_epoch * batch_size, window * batch_size):
        part = permutation[start : min(start + window * batch_size, per_epoch * batch_size)]
        part = part[np.argsort(lengths[part], kind="stable")]
        groups.extend(part.reshape(-1, batch_size))
    return [groups[i] for i in random.permutation(len(groups))]

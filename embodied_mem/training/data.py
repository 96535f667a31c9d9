"""Samples as padded token rows, and the order in which they are seen: a pure function of (seed, step).

    rows = [Row(prompt_ids, completion_ids, soft_ids)]
    batch = pad_rows(rows, pad_id, multiple=128)         # Batch of arrays
    batch = executor_batch(tokenizer, samples, "compiled_text", config, random)
    batch = compiler_batch(tokenizer, samples, config, 0.25, random, (compiler_reader, executor_reader))
    for indices in batches(lengths, batch_size, seed=0, first_step=120, num_steps=1000): ...

The order depends on nothing else, so a run that is killed and started again at step 120 reads the same batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import numpy as np

from embodied_mem.compiler.prompts import unmarked
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.vision.pictures import PictureReader, stacked
from embodied_mem.parallel.placement import Placement
from embodied_mem.training.config import Config, MemoryConfig
from embodied_mem.training.models import (
    executor_format,
    special_ids,
)
from embodied_mem.training.teachers.episodes import Sample

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
        """Tokens of prompt, completion and suffix."""
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
    """Pad rows to the longest one, rounded up, or to `length`."""
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
    """Return int32[B, M], positions of learned targets, M rounded up.

    Rows with fewer repeat the last position, which never has a target.
    """
    counts = batch.learned.sum(1)
    width = min(-(-max(int(counts.max()), 1) // multiple) * multiple, batch.tokens.shape[1])
    spots = np.full((len(counts), width), batch.tokens.shape[1] - 1, np.int32)
    spots[np.arange(width) < counts[:, None]] = np.nonzero(batch.learned)[1]
    return spots


def fill_rows(batch: HostBatch, size: int) -> HostBatch:
    """Fill a batch to `size` rows by unlearned copies of the first."""
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
    """Return the first epoch's step that has the batch of `step`.

    Every later epoch is the first in another order.
    """
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


class ExecutorBatch(NamedTuple, Generic[A]):
    """A batch of the executor's training.

    Attributes:
        rows: B rows of prompt and command.
        references: int32[B, N], the tokens that stand in the places of soft tokens, -1 past the end.
        spots: int32[B, M], positions of the commands' tokens, see `data.spots_of`.
        below: [B, L, D], what enters the layers with adapters (`make_below`); None where all layers are run.
    """

    rows: Batch[A]
    references: A
    spots: A
    below: A | None = None


class CompilerBatch(NamedTuple, Generic[A]):
    """A batch of the compiler's training.

    Attributes:
        compiler: B rows of prompt, output and soft positions.
        references: int32[B, N], -1 past the end; see `models.soft_mem.semantic_alignment`.
        guided: bool[B], rows whose output has guidance; only these have soft tokens.
        executor: A rows that the executor reads, some of the B.
        origin: int32[A], which of the B rows each of them is.
        spots: int32[B, M], positions of the outputs' tokens, see `data.spots_of`.
        executor_spots: int32[A, M'], those of the actions'.
        recalled: bool[B, K], which of the compiler's pictures are out of memory; None without pictures.
    """

    compiler: Batch[A]
    references: A
    guided: A
    executor: Batch[A]
    origin: A
    spots: A
    executor_spots: A
    recalled: A | None = None


OUTPUT_MULTIPLE, ACTION_MULTIPLE = 64, 16
"""The numbers of tokens of outputs and actions that are learned are rounded up to these, for few shapes."""


def reference_ids(tokenizer: Tokenizer, samples: Sequence[Sample], memory: MemoryConfig) -> np.ndarray:
    """Return int32[B, N], the references' first N tokens, then -1."""
    ids = np.full((len(samples), max(memory.num_soft, 1)), -1, np.int32)
    texts = [s.rest if memory.soft_reference == "rest" else s.reference for s in samples]
    for row, encoded in zip(ids, tokenizer.encode_batch([f" {text}" if text else "" for text in texts])):
        row[: len(encoded)] = encoded[: len(row)]
    return ids


def executor_batch(
    tokenizer: Tokenizer,
    samples: Sequence[Sample],
    kind: str,
    config: Config,
    random: np.random.Generator,
    multiple: int = 64,
    reader: PictureReader | None = None,
) -> HostBatch:
    """Make executor rows in one format; `suffix` marks soft tokens' placeholders.

    Where the run has hint budgets, each row gets so much of its guidance as a drawn one allows. Without soft tokens at
    least some of it is given, since the command depends on it.
    """
    num_soft = config.memory.num_soft if kind == "compiled" else 0
    budgets = [b for b in config.memory.hint_budgets if b or num_soft]

    def hint_of(sample: Sample) -> str:
        if not kind.startswith("compiled"):
            return ""
        return tokenizer.cut(sample.hint, budgets[random.integers(len(budgets))]) if budgets else sample.hint

    format, reader = executor_format(config, tokenizer), reader or PictureReader(None, tokenizer)
    prompts = format.prompts(
        [
            s.executor_text(memory=kind == "static", hint=hint_of(s), num_soft=num_soft, shown=config.memory.shown)
            for s in samples
        ],
        pictures=[reader.tokens(s.images) for s in samples],
    )
    commands = format.commands([(kind == "none" and s.plain_action) or s.action for s in samples])
    ids = special_ids(tokenizer)
    rows = [Row(p, command, (), reader.pixels(s.images)) for p, command, s in zip(prompts, commands, samples)]
    batch = pad_rows(rows, ids.pad, multiple)
    return batch._replace(suffix=(batch.tokens == ids.soft) & batch.mask)


def compiler_batch(
    tokenizer: Tokenizer,
    samples: Sequence[Sample],
    config: Config,
    action_share: float,
    random: np.random.Generator,
    readers: tuple[PictureReader, PictureReader],
    own_tokenizer: Tokenizer | None = None,
) -> CompilerBatch[np.ndarray]:
    """Return both models' texts; the executor's prefer samples with guidance.

    Args:
        tokenizer, samples, config: of the run.
        action_share: as of `SFTConfig`.
        random: draws which samples have no Brief State, and hint budgets.
        readers: of pictures, the compiler's and the executor's.
        own_tokenizer: of the executor, as of `Run`.
    """
    reads = own_tokenizer or tokenizer
    num_soft, reader = config.memory.num_soft, readers[0]
    bare = random.random(len(samples)) < config.data.no_brief
    texts = [s.no_brief_prompt if b else s.compiler_prompt for s, b in zip(samples, bare)]
    if not config.memory.compiler_marks:
        texts = [unmarked(text) for text in texts]
    shown = [(*s.remembered, *s.images) for s in samples]
    prompts = reader.prompts(tokenizer.encode_batch, texts, shown)
    outputs = tokenizer.encode_batch([s.output for s in samples])
    ids = special_ids(tokenizer)
    rows = [
        Row(p, [*o, ids.eos], [ids.soft] * num_soft, reader.pixels(images))
        for p, o, images in zip(prompts, outputs, shown)
    ]
    guided = np.asarray([bool(s.hint) for s in samples])
    count = math.ceil(action_share * len(samples))
    origin = np.argsort(~guided, kind="stable")[:count].astype(np.int32)
    compiling = pad_rows(rows, ids.pad)
    acting = executor_batch(reads, [samples[i] for i in origin], "compiled", config, random, 128, readers[1])
    references = reference_ids(reads, samples, config.memory)
    spots = spots_of(compiling, OUTPUT_MULTIPLE), spots_of(acting, ACTION_MULTIPLE)
    recalled = None
    if compiling.pictures is not None:
        kept = [min(len(images), reader.count) - len(s.images) for images, s in zip(shown, samples)]
        recalled = np.arange(reader.count) < np.asarray(kept)[:, None]
    return CompilerBatch(compiling, references, guided, acting, origin, *spots, recalled)


def fill_batch(batch: Iterable[HostBatch | np.ndarray | None], place: Placement) -> tuple[Any, ...]:
    """Fill a batch to a row count that the mesh can split.

    Nothing is learned from the further rows: those of `Batch`es are masked, those of arrays [B, ...] are zero.
    """
    parts: list[HostBatch | np.ndarray | None] = []
    for part in batch:
        if part is None:
            parts.append(None)
        elif isinstance(part, Batch):
            parts.append(fill_rows(part, place.rows(len(part.tokens))))
        else:
            missing = place.rows(len(part)) - len(part)
            parts.append(np.concatenate([part, np.zeros((missing, *part.shape[1:]), part.dtype)]))
    return tuple(parts)

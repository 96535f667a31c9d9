"""Samples as the rows that the models read in supervised training.

batch = executor_batch(tokenizer, samples, "compiled_text", config, random)
batch = compiler_batch(tokenizer, samples, config, 0.25, random, (compiler_reader, executor_reader))
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from embodied_mem.compiler.prompts import unmarked
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.vision.pictures import PictureReader
from embodied_mem.training.config import Config
from embodied_mem.training.objectives.batches import HostBatch, Row, pad_rows, spots_of
from embodied_mem.training.objectives.sft import CompilerBatch
from embodied_mem.training.sources.format import executor_format
from embodied_mem.training.sources.tokenizer import special_ids
from embodied_mem.training.teachers.episodes import Sample

OUTPUT_MULTIPLE, ACTION_MULTIPLE = 64, 16
"""The numbers of tokens of outputs and actions that are learned are rounded up to these, for few shapes."""


def reference_ids(tokenizer: Tokenizer, samples: Sequence[Sample], num_soft: int) -> np.ndarray:
    """int32[B, N]: the first N tokens of each reference, -1 past its end."""
    ids = np.full((len(samples), num_soft), -1, np.int32)
    for b, encoded in enumerate(tokenizer.encode_batch([f" {s.reference}" if s.reference else "" for s in samples])):
        ids[b, : len(encoded)] = encoded[:num_soft]
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
    """Executor rows in one format; `suffix` marks the placeholders of soft tokens, `reader` reads pictures.

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
) -> CompilerBatch[np.ndarray]:
    """What both models read; the executor reads a share of the samples, those with guidance first.

    Args:
        tokenizer, samples, config: of the run.
        action_share: as of `SFTConfig`.
        random: draws which samples have no Brief State, and hint budgets.
        readers: of pictures, the compiler's and the executor's.
    """
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
    acting = executor_batch(tokenizer, [samples[i] for i in origin], "compiled", config, random, 128, readers[1])
    references = reference_ids(tokenizer, samples, max(num_soft, 1))
    spots = spots_of(compiling, OUTPUT_MULTIPLE), spots_of(acting, ACTION_MULTIPLE)
    recalled = None
    if compiling.pictures is not None:
        kept = [min(len(images), reader.count) - len(s.images) for images, s in zip(shown, samples)]
        recalled = np.arange(reader.count) < np.asarray(kept)[:, None]
    return CompilerBatch(compiling, references, guided, acting, origin, *spots, recalled)

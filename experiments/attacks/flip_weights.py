"""Damage in files of weights: a Hugging Face folder, a bundle of a run, a checkpoint."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import pathlib
import random
import shutil
from typing import Any

import jax
import numpy as np

from embodied_mem.models.config import PRESETS, DecoderConfig

from . import Counts
from .flips import damaged, flip, made, refused

NANO = DecoderConfig(width=8, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=8, mlp_width=8)


@functools.cache
def _hf_folder() -> dict[str, bytes]:
    from flax import nnx

    from embodied_mem.models.decoder import Decoder
    from embodied_mem.models.formats.hf import save_hf

    decoder = Decoder(dataclasses.replace(NANO, vocab_size=40), rngs=nnx.Rngs(0))
    return made(lambda folder: save_hf(decoder, folder))


def flip_safetensors(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Return a published model's folder; the format has no checksums."""
    from embodied_mem.models.formats.hf import load_hf

    for name, data in _hf_folder().items():
        (folder / name).write_bytes(data)
    path = rng.choice(sorted(folder.iterdir()))
    return flip(rng, path, path.read_bytes(), lambda: load_hf(folder) and None, checksums=False, tries=10)


@functools.cache
def _bundle() -> dict[str, bytes]:
    from embodied_mem.language import train_bpe
    from embodied_mem.training import config as c
    from embodied_mem.training.bundle import save_bundle
    from embodied_mem.training.models import new_compiler, new_decoder

    PRESETS["nano"] = NANO
    config = c.Config(
        world=c.WorldConfig(num_train=4, num_valid=2),
        memory=c.MemoryConfig(num_soft=4),
        model=c.ModelConfig(compiler="nano", executor="nano", vocab_size=270),
        evaluation=c.EvalConfig(deliveries=("none", "compiled")),
    )
    tokenizer = train_bpe(["find mug in desk 1"], 270)
    executor = new_decoder(config, tokenizer, "executor", 7)
    compiler = new_compiler(config, tokenizer, executor)
    return made(lambda folder: save_bundle(folder, config, tokenizer, executor, compiler))


def flip_bundle(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Return the weights, the tokenizer and the configuration of a run."""
    from embodied_mem.training.bundle import load_bundle

    for name, data in _bundle().items():
        (folder / name).write_bytes(data)
    path = rng.choice(sorted(folder.iterdir()))
    return flip(rng, path, path.read_bytes(), lambda: load_bundle(folder) and None, checksums=False, tries=6)


def _arrays() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "w": rng.normal(size=(6, 5)).astype(np.float32),
        "n": np.int32(5),
        "order": np.arange(6, dtype=np.int32)[::-1].copy(),
    }


@functools.cache
def _checkpoint() -> dict[str, bytes]:
    from embodied_mem.parallel.checkpoints import Checkpoints

    def write(folder: pathlib.Path) -> None:
        checkpoints = Checkpoints(folder / "c", config={"seed": 3})
        checkpoints.save(3, jax.tree.map(jax.numpy.asarray, _arrays()), {"position": 4})
        checkpoints.wait()

    return made(write)


def flip_checkpoint(rng: random.Random, folder: pathlib.Path) -> Counts:
    """Flip bits in every file of a checkpoint.

    Its record has a sum of the bits of each array.
    """
    from embodied_mem.parallel.checkpoints import Checkpoints

    def read() -> str:
        step, arrays, metadata = Checkpoints(folder / "c", config={"seed": 3}).restore(like=_arrays())
        digest = hashlib.sha256()
        for name, value in sorted(arrays.items()):
            digest.update(name.encode() + np.asarray(value).tobytes())
        return json.dumps([int(step), metadata, digest.hexdigest()])

    def put() -> None:
        shutil.rmtree(folder / "c", ignore_errors=True)
        for name, data in _checkpoint().items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    put()
    expected = read()
    tries = 6
    for _ in range(tries):
        put()
        name = rng.choice(sorted(name for name, data in _checkpoint().items() if data))
        path = folder / name
        path.write_bytes(damaged(rng, path.read_bytes()))
        was_refused, found = refused(read)
        assert was_refused or found == expected, f"{name}: other content without a word"
    return Counts(tries, tries)

"""GRPO whose compiler and executor are sampled by a server: the same log-probs, soft tokens and commands as here."""

import dataclasses
import functools
import io
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from flax import nnx
from quick_programs import flags
from small_engine import Engine, tensor_of

from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.memory_compiler import MemoryCompiler
from embodied_mem.compiler.prompts import SOFT_TOKEN
from embodied_mem.errors import InternalError, InvalidInputError
from embodied_mem.language.chat import ChatError
from embodied_mem.language.completions import CompletionServer
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.models.config import PRESETS, DecoderConfig, LoraConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.torch_file import tensor_file
from embodied_mem.models.lora import LoraParam, add_lora, remove_lora
from embodied_mem.models.soft_mem import SoftMem, SoftMemConfig
from embodied_mem.training.bundle import load_bundle
from embodied_mem.training.config import Config, GRPOConfig, ModelConfig, WorldConfig
from embodied_mem.training.data import Row
from embodied_mem.training.grpo import PolicySample, make_grpo_scores, rescore, serve_adapters
from embodied_mem.training.loop import Run, read_metrics
from embodied_mem.training.models import CompilerModel
from tests.training.tiny_run import NANO

pytestmark = pytest.mark.usefixtures("unoptimised")

NUM_SOFT, WIDTH = 4, 8
WORLD = WorldConfig(num_train=4, num_valid=2)
PROMPTS = ["memory: mug in desk 1\n=", "memory:\n=", "memory: mug in desk 1, desk 2\n="]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@functools.cache
def tokenizer():
    return train_bpe(["find mug in desk 1"], 270)


def base(width=32):
    config = DecoderConfig(
        vocab_size=tokenizer().vocab_size, width=width, num_layers=1, num_heads=2, num_kv_heads=1, head_dim=16,
        mlp_width=32,
    )  # fmt: skip
    return Decoder(config, rngs=nnx.Rngs(0))


def adapted(seed):
    """A decoder whose adapters have been trained, so to speak."""
    decoder = add_lora(base(), LoraConfig(rank=2, dropout=0.0), rngs=nnx.Rngs(seed))
    adapters = nnx.state(decoder, LoraParam)
    random = np.random.default_rng(seed)
    nnx.update(decoder, jax.tree.map(lambda a: jnp.asarray(random.normal(0, 0.3, a.shape), a.dtype), adapters))
    return decoder


def run_with(engine, folder):
    rl = GRPOConfig(temperature=1.2, top_k=50, old_log_probs="trainer", server=engine.url)
    return Run(Config(WORLD, model=ModelConfig(lora=True), grpo=rl), tokenizer(), folder)


def played(run, model):
    """(compiled, samples) of one step of three episodes."""
    with serve_adapters(run, model.decoder) as server:
        compiler = MemoryCompiler(
            model.decoder, model.soft_mem, tokenizer(), max_tokens=6, temperature=1.2, top_k=50, server=server,
            length_buckets=(32, 64), batch_buckets=(4,),
        )  # fmt: skip
        records = compiler.compile(PROMPTS, jax.random.split(jax.random.key(3), 4))
    rows = [Row(r.prompt, r.tokens.tolist(), [tokenizer().soft_id] * NUM_SOFT) for r in records]
    return records, [
        PolicySample(row, r.log_probs, r.soft, r.soft_log_density, True, 1.0) for row, r in zip(rows, records)
    ]


def rescored(run, model, samples):
    graph, params = nnx.split(model)
    scores = make_grpo_scores(graph, run.config.grpo)
    return rescore(
        scores, params, nnx.State({}), samples, 4, tokenizer().pad_id, run.config.grpo, max_gap=1e-3
    )  # fmt: skip


def test_a_served_compilers_samples_have_the_trainers_log_probs_after_every_update(tmp_path):
    engine = Engine(base)
    run = run_with(engine, tmp_path)
    soft_mem = SoftMem(
        SoftMemConfig(NUM_SOFT, embedding_std=0.5), compiler_width=32, executor_width=WIDTH, rngs=nnx.Rngs(1)
    )
    texts = []
    for seed in (1, 2):
        model = CompilerModel(adapted(seed), soft_mem)
        records, samples = played(run, model)
        own, metrics = rescored(run, model, samples)
        assert metrics["sampler_gap"] < 1e-4
        for sample, again in zip(samples, own, strict=True):
            np.testing.assert_allclose(again.soft_log_density, sample.soft_log_density, atol=1e-4)
            assert np.isfinite(sample.soft).all()
            assert sample.soft.shape == (NUM_SOFT, WIDTH)
        assert [r.tokens.tolist() for r in played(run, model)[0]] == [r.tokens.tolist() for r in records]  # by seed
        texts.append([r.tokens.tolist() for r in records])
    assert texts[0] != texts[1]
    assert len(set(engine.loaded)) == 2, "a name for each version"
    assert not engine.models, "none is left"
    engine.close()


def test_adapters_that_the_server_did_not_take_are_seen(tmp_path):
    engine = Engine(base, ignores_adapters=True)
    run, model = run_with(engine, tmp_path), CompilerModel(adapted(1), None)
    records, _ = played(run, model)
    rows = [Row(r.prompt, r.tokens.tolist(), []) for r in records]
    samples = [
        PolicySample(row, r.log_probs, np.zeros((0, WIDTH)), np.zeros(0), False, 1.0) for row, r in zip(rows, records)
    ]
    with pytest.raises(InternalError, match="stale"):
        rescored(run, model, samples)
    with pytest.raises(ChatError, match="does not exist"):
        CompletionServer(engine.url, "other").complete([1, 2], max_tokens=2)
    engine.close()


def test_a_served_executor_reads_soft_tokens_as_one_here():
    engine = Engine(functools.partial(base, WIDTH), "executor")
    settings = {"max_action_tokens": 6, "length_buckets": (32, 64), "batch_buckets": (4,)}
    here = Executor(base(WIDTH), tokenizer(), **settings)
    served = Executor(base(WIDTH), tokenizer(), **settings, server=CompletionServer(engine.url, "executor"))
    prompts = [text + (f"\n{SOFT_TOKEN * NUM_SOFT}" if i else "") + "\n>" for i, text in enumerate(PROMPTS)]
    random = np.random.default_rng(0)
    turns = []
    for _ in range(2):
        soft = [None, *(3 * random.standard_normal((2, NUM_SOFT, WIDTH)).astype(np.float32))]
        own, theirs = (one.act(prompts, jax.random.split(jax.random.key(0), 4), soft) for one in (here, served))
        assert theirs.actions == own.actions
        assert theirs.tokens_out == own.tokens_out
        turns.append(own.actions)
    assert turns[0][0] == turns[1][0], "it has none"
    assert turns[0][1:] != turns[1][1:], "soft tokens matter"
    with pytest.raises(InvalidInputError, match="expected neither choices"):
        served.act(prompts[:1], jax.random.split(jax.random.key(0), 1), choices=[["look"]])
    engine.close()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_tensor_file_is_torchs(dtype):
    array = np.arange(15).reshape(3, 5).astype(dtype)
    if dtype == np.float32:
        np.testing.assert_array_equal(tensor_of(tensor_file(array)), array)
    torch = pytest.importorskip("torch", reason="pip install torch")
    read = torch.load(io.BytesIO(tensor_file(array)), weights_only=True)
    assert str(read.dtype) == f"torch.{array.dtype.name}"
    assert read.is_contiguous()
    np.testing.assert_array_equal(read.float().numpy(), array.astype(np.float32))


@pytest.mark.slow
def test_a_run_learns_from_served_rollouts(tmp_path, monkeypatch):
    """Its metrics are there, and the trainer found no log-prob that differs, or the run would have ended."""
    monkeypatch.setitem(PRESETS, "nano", NANO)
    compiler = Engine(lambda: remove_lora(bundle().model.decoder))
    executor = Engine(lambda: bundle().executor, "executor")

    def bundle():
        return load_bundle(tmp_path / "run" / "weights_before_grpo")

    command = [
        sys.executable, str(Path(__file__).with_name("tiny_run.py")), str(tmp_path / "run"), "--model.lora",
        "--grpo.server", compiler.url, "--grpo.executor-server", executor.url, "--grpo.old-log-probs", "trainer",
    ]  # fmt: skip
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags()}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    metrics = read_metrics(tmp_path / "run" / "grpo")
    assert [line["samples"] > 0 and line["sampler_gap"] < 1e-3 for line in metrics] == [True, True]
    assert len(set(compiler.loaded)) == 2
    assert not compiler.models
    assert len(executor.requests) >= sum(line["samples"] for line in metrics)
    compiler.close(), executor.close()


def test_what_a_server_needs_is_asked_for():
    with pytest.raises(InvalidInputError, match=r"grpo.old_log_probs: expected trainer with a server"):
        GRPOConfig(server="http://localhost:8000/v1")
    rl = GRPOConfig(server="http://localhost:8000/v1", old_log_probs="trainer")
    with pytest.raises(InvalidInputError, match=r"grpo.server: expected model.lora"):
        Config(WORLD, grpo=rl)
    config = Config(WORLD, model=ModelConfig(lora=True), grpo=rl)
    elsewhere = dataclasses.replace(config, grpo=dataclasses.replace(rl, server="http://other:1/v1"))
    here = dataclasses.replace(config, grpo=dataclasses.replace(rl, server=""))
    assert config.fingerprint() == elsewhere.fingerprint() != here.fingerprint()
    with pytest.raises(InvalidInputError, match="expected one of float32"):
        tensor_file(np.zeros(3))

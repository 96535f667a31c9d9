"""Bundles of weights come back bit for bit, a broken one is refused; configurations name the field that is wrong."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import load_file, save_file

from embodied_mem.errors import CheckpointError, InvalidInputError
from embodied_mem.language.tokenizers import train_bpe
from embodied_mem.models.config import PRESETS, DecoderConfig
from embodied_mem.training import config as c
from embodied_mem.training.bundle import flat_arrays, from_dict, load_bundle, save_bundle
from embodied_mem.training.models import new_compiler, new_decoder
from experiments import train
from experiments.configs import cli, load, names

pytestmark = pytest.mark.usefixtures("unoptimised")

PRESETS_OF_TESTS = {
    "wide": DecoderConfig(width=16, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=8, mlp_width=16),
    "slim": DecoderConfig(width=8, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=8, mlp_width=8),
}


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    """(folder, config, tokenizer, executor, model) just saved; two shapes, so that no weight fits by chance."""
    for name, value in PRESETS_OF_TESTS.items():
        monkeypatch.setitem(PRESETS, name, value)
    config = c.Config(
        world=c.WorldConfig(num_train=4, num_valid=2),
        memory=c.MemoryConfig(num_soft=4),
        model=c.ModelConfig(compiler="wide", executor="slim", vocab_size=270),
        evaluation=c.EvalConfig(deliveries=("none", "compiled"), seeds=(3, 4)),
        grpo=c.GRPOConfig(learning_rate=1 / 3),
    )
    tokenizer = train_bpe(["find mug in desk 1"], 270)
    executor = new_decoder(config, tokenizer, "executor", 7)
    model = new_compiler(config, tokenizer, executor)
    # Values that no fresh model has.
    for module in (executor, model):
        state = nnx.state(module, nnx.Param)
        nnx.update(module, jax.tree.map(lambda x: x * 1.7 + 0.01, state))
    save_bundle(tmp_path / "weights", config, tokenizer, executor, model)
    return tmp_path / "weights", config, tokenizer, executor, model


def test_round_trip_is_bit_equal(bundle):
    folder, config, tokenizer, executor, model = bundle
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "tokenizer.json", "weights.safetensors"]
    loaded = load_bundle(folder)
    assert loaded.config == config
    assert loaded.tokenizer.vocab_hash == tokenizer.vocab_hash
    for before, after in ((executor, loaded.executor), (model, loaded.model)):
        one, two = flat_arrays("x", before), flat_arrays("x", after)
        assert list(one) == list(two)
        assert all(np.array_equal(one[name], two[name]) and one[name].dtype == two[name].dtype for name in one)
    assert any("soft_mem" in name for name in flat_arrays("x", model))
    save_bundle(folder.parent / "again", loaded.config, loaded.tokenizer, loaded.executor, loaded.model)
    for path in folder.iterdir():
        assert path.read_bytes() == (folder.parent / "again" / path.name).read_bytes()


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "weights.safetensors"])
def test_missing_file(bundle, name):
    folder = bundle[0]
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} is missing"):
        load_bundle(folder)


def change(folder, edit):
    arrays = load_file(folder / "weights.safetensors")
    edit(arrays)
    save_file(arrays, folder / "weights.safetensors")


def test_weights_that_do_not_fit_are_named(bundle):
    folder = bundle[0]
    name = "compiler.decoder.embedding"
    change(folder, lambda arrays: arrays.update({name: arrays[name][:-1].copy()}))
    with pytest.raises(CheckpointError, match=r"compiler\.decoder\.embedding: expected shape .*, got shape"):
        load_bundle(folder)
    change(folder, lambda arrays: arrays.pop(name))
    with pytest.raises(CheckpointError, match=r"compiler\.decoder\.embedding: expected shape .*, got nothing"):
        load_bundle(folder)


def test_weights_left_over_are_named(bundle):
    """A bundle whose configuration says fewer soft tokens or parameters than its file holds is not what was saved."""
    folder = bundle[0]
    change(folder, lambda arrays: arrays.update({"compiler.decoder.extra": np.zeros(3, np.float32)}))
    with pytest.raises(CheckpointError, match=r"compiler\.decoder\.extra"):
        load_bundle(folder)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "JSON"),
        (json.dumps({"world": {"num_train": 1, "num_valid": 1}, "wrold": 3}), "wrold"),
        (json.dumps({"seed": 3}), "world"),
        (json.dumps({"world": {"num_train": 1, "num_valid": 1, "max_step": 3}}), "max_step"),
        (json.dumps({"world": 3}), "expected an object"),
        (
            json.dumps({"world": {"num_train": "1", "num_valid": 1}}),
            r"config\.json: world\.num_train: expected a whole",
        ),
    ],
    ids=["no JSON", "unknown", "missing", "nested", "no object", "another kind"],
)
def test_broken_config_file(bundle, text, words):
    folder = bundle[0]
    (folder / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=words):
        load_bundle(folder)


def test_every_config_round_trips_through_json():
    for name in names():
        config = load(name)
        assert from_dict(c.Config, json.loads(config.to_json())) == config


W = {"num_train": 8, "num_valid": 2}


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: c.WorldConfig(**W, max_steps=0), "world.max_steps"),
        (lambda: c.WorldConfig(**W, grammar="0.5"), "world.grammar"),
        (lambda: c.WorldConfig(num_valid=2), "world.num_train"),
        (lambda: c.WorldConfig(num_train=2), "world.num_valid"),
        (lambda: c.WorldConfig(**W, num_scenes=0), "world.num_scenes"),
        (lambda: c.WorldConfig(train="train", valid="valid_seen", num_valid=-1), "world.num_valid"),
        (lambda: c.MemoryConfig(top_k=0), "memory.top_k"),
        (lambda: c.MemoryConfig(num_soft=5), "memory.num_soft"),
        (lambda: c.MemoryConfig(projection="cubic"), "memory.projection"),
        (lambda: c.MemoryConfig(full_turns=-1), "memory.full_turns"),
        (lambda: c.ModelConfig(vocab_size=100), "model.vocab_size"),
        (lambda: c.ModelConfig(max_compiler_tokens=0), "model.max_compiler_tokens"),
        (lambda: c.DataConfig(passes=0), "data.passes"),
        (lambda: c.DataConfig(detour=1.0), "data.detour"),
        (lambda: c.DataConfig(no_brief=1.1), "data.no_brief"),
        (lambda: c.SFTConfig(steps=-1), "sft.steps"),
        (lambda: c.SFTConfig(batch_size=0), "sft.batch_size"),
        (lambda: c.SFTConfig(label_smoothing=1.0), "sft.label_smoothing"),
        (lambda: c.SFTConfig(checkpoint_every=0), "sft.checkpoint_every"),
        (lambda: c.GRPOConfig(group_size=1), "grpo.group_size"),
        (lambda: c.GRPOConfig(temperature=0), "grpo.temperature"),
        (lambda: c.GRPOConfig(clip_low=1.0), "grpo.clip_low"),
        (lambda: c.GRPOConfig(top_p=0), "grpo.top_p"),
        (lambda: c.GRPOConfig(microbatch=0), "grpo.microbatch"),
        (lambda: c.EvalConfig(deliveries=()), "evaluation.deliveries"),
        (lambda: c.EvalConfig(seeds=()), "evaluation.seeds"),
        (lambda: c.Config(world=c.WorldConfig(**W), grpo=c.GRPOConfig(num_tasks=9)), "grpo.num_tasks"),
        (lambda: c.WorldConfig(num_train="8", num_valid=2), "world.num_train"),
        (lambda: c.SFTConfig(steps=True), "sft.steps"),
        (lambda: c.GRPOConfig(learning_rate=float("nan")), "grpo.learning_rate"),
        (lambda: c.ModelConfig(weights=None), "model.weights"),
        (lambda: c.EvalConfig(seeds=("0",)), "evaluation.seeds"),
        (lambda: c.CorrectionConfig(sft=3), "correction.sft"),
        (lambda: c.MeshConfig(fsdp=1.5), "mesh.fsdp"),
        (lambda: c.Config(world=3), "world"),
        (lambda: c.Config(world=c.WorldConfig(**W), seed=-1), "seed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_validation_names_the_field_and_the_value(make, field):
    with pytest.raises(InvalidInputError) as raised:
        make()
    assert str(raised.value).startswith(f"{field}: expected ")
    assert ", got " in str(raised.value)


def test_fingerprint_changes_with_what_a_stage_depends_on():
    config = load("grpo_cpu")
    later = dataclasses.replace(config, grpo=dataclasses.replace(config.grpo, learning_rate=1e-3))
    assert later.fingerprint("compiler") == config.fingerprint("compiler")
    assert later.fingerprint("grpo") != config.fingerprint("grpo")
    other = dataclasses.replace(config, seed=99)
    assert len({x.fingerprint(s) for x in (config, other) for s in ("executor", "compiler", "grpo")}) == 6


def test_command_line_sets_any_field():
    options, config = cli(["--config", "grpo_cpu", "--grpo.steps", "3", "--seed", "5", "--run_dir", "x"], "")
    assert (config.grpo.steps, config.seed, options.run_dir, options.plan) == (3, 5, "x", False)
    assert dataclasses.replace(config, seed=load("grpo_cpu").seed, grpo=load("grpo_cpu").grpo) == load("grpo_cpu")


@pytest.mark.parametrize("argument", ["--grpo.step", "--sed", "--grpo.group-sizes"])
def test_unknown_field_on_the_command_line(argument, capsys):
    with pytest.raises(SystemExit) as raised:
        cli([argument, "3"], "")
    assert raised.value.code != 0
    said = capsys.readouterr()
    assert argument.lstrip("-") in (said.err + said.out).replace("\n", "")


def test_unknown_config_and_bad_value_on_the_command_line(capsys):
    with pytest.raises(InvalidInputError, match="grpo_cpu"):
        cli(["--config", "nonsense"], "")
    with pytest.raises((InvalidInputError, SystemExit)):
        cli(["--grpo.group-size", "1"], "")


def test_unknown_delivery_stops_a_run_before_it_starts(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        train.main(["--evaluation.deliveries", "none", "telepathy", "--run_dir", str(tmp_path / "run")])
    assert "telepathy" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()

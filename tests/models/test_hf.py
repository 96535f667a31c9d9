"""Hugging Face folders: round trips, published configs, and refusal of what would be read wrongly."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import load_file, save_file
from small_decoders import BASE, VARIANTS, build, read

from embodied_mem.errors import CheckpointError, EmbodiedMemError, InvalidInputError
from embodied_mem.models.config import LoraConfig, num_parameters, preset
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.hf import config_from_hf, config_to_hf, load_hf, save_hf
from embodied_mem.models.lora import add_lora

pytestmark = pytest.mark.usefixtures("unoptimised")

TOKENS = np.random.default_rng(0).integers(0, 40, (2, 9))

# Fields of the published config.json of each model that decide its shape.
QWEN_7B = {
    "model_type": "qwen2", "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944,
    "max_position_embeddings": 32768, "max_window_layers": 28, "num_attention_heads": 28, "num_hidden_layers": 28,
    "num_key_value_heads": 4, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "sliding_window": 131072,
    "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_sliding_window": False, "vocab_size": 152064,
}  # fmt: skip
LLAMA_1B = {
    "model_type": "llama", "attention_bias": False, "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048,
    "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": False, "num_attention_heads": 32,
    "num_hidden_layers": 16, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "tie_word_embeddings": True, "torch_dtype": "bfloat16", "vocab_size": 128256,
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name, config in VARIANTS.items() if not config.smear])
@pytest.mark.parametrize("shard_bytes", [1 << 30, 6000])
def test_round_trip(tmp_path, name, shard_bytes):
    decoder = build(VARIANTS[name])
    save_hf(decoder, tmp_path, max_shard_bytes=shard_bytes)
    assert (len(list(tmp_path.glob("*.safetensors"))) > 1) == (shard_bytes == 6000)
    other = load_hf(tmp_path, attention_block=0)
    assert other.config == decoder.config
    jax.tree.map(np.testing.assert_array_equal, nnx.state(other), nnx.state(decoder))
    np.testing.assert_array_equal(read(other, TOKENS), read(decoder, TOKENS))


def test_what_no_family_has_is_not_lost_in_silence(tmp_path):
    with pytest.raises(InvalidInputError, match="smear=0"):
        save_hf(build(VARIANTS["smear"]), tmp_path)


def test_names_and_orientation_are_the_published_ones(tmp_path):
    decoder = build(VARIANTS["qwen2"])
    save_hf(decoder, tmp_path)
    arrays = load_file(tmp_path / "model.safetensors")
    x = np.random.default_rng(0).standard_normal(24).astype(np.float32)
    for theirs, ours in (("q_proj", "query"), ("v_proj", "value")):
        prefix = f"model.layers.1.self_attn.{theirs}"
        # As torch.nn.Linear: W x + b, heads one after the other in the rows.
        heads = (arrays[f"{prefix}.weight"] @ x + arrays[f"{prefix}.bias"]).reshape(-1, 6)
        layers = decoder.layers.arrays()
        expected = np.einsum("d,dhe->he", x, layers[ours][1]) + layers[f"{ours}_bias"][1]
        np.testing.assert_allclose(heads, expected, rtol=1e-4, atol=1e-5)
    context = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)
    expected = np.einsum("he,hed->d", context, decoder.layers.output[...][1])
    got = arrays["model.layers.1.self_attn.o_proj.weight"] @ context.reshape(-1)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert arrays["model.layers.0.mlp.down_proj.weight"].shape == (24, 32)
    assert sum(a.size for a in arrays.values()) == num_parameters(decoder.config)


@pytest.mark.parametrize(("described", "name"), [(QWEN_7B, "qwen2.5-7b"), (LLAMA_1B, "llama-3.2-1b")])
def test_published_configs_are_the_presets(described, name):
    assert config_from_hf(described) == preset(name)


@pytest.mark.parametrize("name", ["smollm2-135m", "qwen2.5-0.5b", "qwen3-8b", "llama-3.2-1b"])
def test_config_round_trip(name):
    config = dataclasses.replace(preset(name), attention_block=512)
    assert config_from_hf(config_to_hf(config)) == config


def test_bfloat16_and_overrides(tmp_path):
    config = dataclasses.replace(BASE, param_dtype="bfloat16", dtype="bfloat16")
    decoder = Decoder(config, rngs=nnx.Rngs(0))
    save_hf(decoder, tmp_path)
    assert load_hf(tmp_path).embedding[...].dtype == jnp.bfloat16
    wide = load_hf(tmp_path, dtype="float32", param_dtype="float32", scan_layers=True)
    np.testing.assert_array_equal(wide.layers.query[...], decoder.layers.query[...].astype(jnp.float32))


def test_wrong_folders_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load_hf(tmp_path)
    save_hf(build(BASE), tmp_path)
    path = tmp_path / "model.safetensors"
    arrays = load_file(path)
    save_file({n: a for n, a in arrays.items() if "layers.1.mlp.up" not in n}, path)
    with pytest.raises(CheckpointError, match=r"model\.layers\.1\.mlp\.up_proj\.weight"):
        load_hf(tmp_path)
    save_file(arrays | {"model.layers.3.extra": np.zeros(1)}, path)
    with pytest.raises(CheckpointError, match=r"1 arrays have no place.*model\.layers\.3\.extra"):
        load_hf(tmp_path)
    save_file(arrays | {"model.norm.weight": np.zeros(3, np.float32)}, path)
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight: expected shape \(24,\), got \(3,\)"):
        load_hf(tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(CheckpointError, match=r"model\.safetensors: expected a safetensors file"):
        load_hf(tmp_path)
    with pytest.raises(InvalidInputError, match="merge_lora"):
        save_hf(add_lora(build(BASE), LoraConfig(rank=2), rngs=nnx.Rngs(0)), tmp_path)


def test_a_save_leaves_nothing_of_the_one_before(tmp_path):
    """Several files, one, several others: the folder is the newest model each time."""
    decoders = [build(BASE, seed) for seed in range(3)]
    for decoder, max_shard_bytes in zip(decoders, (9000, 1 << 30, 20_000)):
        for name in ("model-00001-of-00009.safetensors.partial", ".model.safetensors.0123456789abcdef.partial"):
            (tmp_path / name).write_bytes(b"of a save that was killed")
        save_hf(decoder, tmp_path, max_shard_bytes=max_shard_bytes)
        index = tmp_path / "model.safetensors.index.json"
        files = {path.name for path in tmp_path.iterdir()} - {index.name, "config.json"}
        if max_shard_bytes == 1 << 30:
            assert files == {"model.safetensors"}
            assert not index.exists()
        else:
            assert len(files) > 1
            assert files == set(json.loads(index.read_text())["weight_map"].values())
        jax.tree.map(np.testing.assert_array_equal, nnx.state(load_hf(tmp_path, attention_block=0)), nnx.state(decoder))
    save_file({"adapter": np.zeros(1)}, tmp_path / "adapter_model.safetensors")  # what else lies there stays
    save_hf(decoders[0], tmp_path)
    assert (tmp_path / "adapter_model.safetensors").exists()
    jax.tree.map(np.testing.assert_array_equal, nnx.state(load_hf(tmp_path)), nnx.state(decoders[0]))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("{", r"index\.json: expected JSON"),
        ("[" * 100_000, r"index\.json: expected JSON"),
        ("[]", "expected an object, got list"),
        ("{}", "weight_map: expected array names with their files, got None"),
        ('{"weight_map": {"a": 3}}', "weight_map: a: expected a file of this folder, got 3"),
        ('{"weight_map": {"a": "../other/model.safetensors"}}', r"expected a file of this folder, got '\.\./other"),
        ('{"weight_map": {"a": "model-00001-of-00002.safetensors"}}', "expected a safetensors file"),
    ],
)
def test_damaged_indices_are_refused(tmp_path, index, message):
    save_hf(build(BASE), tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(CheckpointError, match=message):
        load_hf(tmp_path)


def test_a_config_that_lies_is_refused_and_asks_for_no_memory(tmp_path):
    save_hf(build(BASE), tmp_path)
    path = tmp_path / "config.json"
    described = json.loads(path.read_text())
    refused = 0
    for key in [*described, "rope_parameters", "head_dim", "layer_types"]:
        for lie in (0, -1, 2**60, "x", 0.5, [], {}, ["x"], {"rope_type": "llama3"}, True, 10**400):
            path.write_text(json.dumps(described | {key: lie}))
            try:
                load_hf(tmp_path)
            except EmbodiedMemError:
                refused += 1
    assert refused > 11 * 11
    path.write_text(json.dumps(described | {"intermediate_size": 2**60}))
    with pytest.raises(CheckpointError, match=r"config\.json: expected the description of a decoder.*parameters"):
        load_hf(tmp_path)
    path.write_text(json.dumps(described | {"intermediate_size": 2**30}))  # believed, until the file is asked
    with pytest.raises(CheckpointError, match=r"down_proj\.weight: expected shape \(24, 1073741824\), got"):
        load_hf(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "mistral"},
        {"hidden_act": "gelu"},
        {"use_sliding_window": True},
        {"rope_scaling": {"type": "yarn", "factor": 4.0}},
        {"attention_bias": True},
    ],
)
def test_architectures_that_differ_are_refused(change):
    with pytest.raises(InvalidInputError, match=r"config\.json"):
        config_from_hf(json.loads(json.dumps(QWEN_7B | change)))
    with pytest.raises(InvalidInputError, match="hidden_size"):
        config_from_hf({k: v for k, v in QWEN_7B.items() if k != "hidden_size"})

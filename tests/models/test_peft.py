"""Adapters in PEFT's layout: names and orientation by hand, round trip, refusal of what would be read wrongly."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from safetensors.numpy import load_file, save_file
from small_decoders import VARIANTS, build
from small_seeing import save_seeing, seeing

from embodied_mem.errors import CheckpointError, InvalidInputError
from embodied_mem.models.config import LoraConfig
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.peft import load_peft, save_peft
from embodied_mem.models.lora import LoraParam, add_lora, add_tower_lora, merge_lora

pytestmark = pytest.mark.usefixtures("unoptimised")


def adapted():
    decoder = add_lora(build(VARIANTS["qwen2"]), LoraConfig(rank=2, alpha=8.0), rngs=nnx.Rngs(3))
    for name in ("query_lora_b", "value_lora_b"):
        variable = getattr(decoder.layers, name)
        variable[...] = jax.random.normal(jax.random.key(0), variable[...].shape)
    return decoder


def test_round_trip_names_and_orientation(tmp_path):
    decoder = adapted()
    save_peft(decoder, tmp_path, base="some/model")
    again = load_peft(build(VARIANTS["qwen2"]), tmp_path)
    assert again.lora == decoder.lora
    jax.tree.map(np.testing.assert_array_equal, nnx.state(again), nnx.state(decoder))

    described = json.loads((tmp_path / "adapter_config.json").read_text())
    assert described["target_modules"] == ["q_proj", "v_proj"]
    assert (described["r"], described["lora_alpha"], described["base_model_name_or_path"]) == (2, 8.0, "some/model")
    arrays = load_file(tmp_path / "adapter_model.safetensors")
    assert len(arrays) == 2 * 2 * 2
    prefix = "base_model.model.model.layers.1.self_attn.q_proj"
    a, b = arrays[f"{prefix}.lora_A.weight"], arrays[f"{prefix}.lora_B.weight"]
    assert (a.shape, b.shape) == ((2, 24), (24, 2))
    # As in PEFT: W + alpha / r B A, with W as torch has it, [out, in].
    before = np.asarray(decoder.layers.query[...][1]).reshape(24, 24)
    merged = np.asarray(merge_lora(decoder).layers.query[...][1]).reshape(24, 24)
    np.testing.assert_allclose(merged.T, before.T + 4.0 * b @ a, rtol=1e-5, atol=1e-5)


def test_adapters_of_a_vision_tower_stand_beside_the_decoder_s(tmp_path):
    lora = LoraConfig(rank=2, alpha=8.0, targets=("value",))
    decoder = add_lora(seeing(0), lora, rngs=nnx.Rngs(3))
    tower = add_tower_lora(decoder.vision, lora, rngs=nnx.Rngs(4))
    drawn = jax.random.normal(jax.random.key(0), tower.blocks.qkv_lora_b[...].shape)
    tower.blocks.qkv_lora_b[...] = drawn
    save_peft(decoder, tmp_path)
    arrays = load_file(tmp_path / "adapter_model.safetensors")
    assert {name: array.shape for name, array in arrays.items()} == {
        f"base_model.model.model.{module}.lora_{letter}.weight": shape
        for i in (0, 1)
        for module, letter, shape in [
            (f"visual.blocks.{i}.attn.qkv", "A", (2, 32)), (f"visual.blocks.{i}.attn.qkv", "B", (96, 2)),
            (f"language_model.layers.{i}.self_attn.v_proj", "A", (2, 48)),
            (f"language_model.layers.{i}.self_attn.v_proj", "B", (24, 2)),
        ]
    }  # fmt: skip
    again = load_peft(seeing(0), tmp_path)
    assert again.vision.lora == again.lora == lora
    jax.tree.map(np.testing.assert_array_equal, nnx.state(again), nnx.state(decoder))
    before = np.asarray(again.vision.blocks.qkv[...][1]).reshape(32, 96)
    merged = np.asarray(merge_lora(again).vision.blocks.qkv[...][1]).reshape(32, 96)
    a, b = (arrays[f"base_model.model.model.visual.blocks.1.attn.qkv.lora_{letter}.weight"] for letter in "AB")
    np.testing.assert_allclose(merged.T, before.T + 4.0 * b @ a, rtol=1e-5, atol=1e-5)
    assert again.vision.lora is None
    other = seeing(1)
    add_tower_lora(other.vision, lora, rngs=nnx.Rngs(4))
    with pytest.raises(InvalidInputError, match="merge_lora"):
        save_seeing(other, tmp_path / "whole")
    with pytest.raises(InvalidInputError, match="target_modules"):
        load_peft(build(VARIANTS["qwen2"]), tmp_path)  # which sees nothing
    decoder.vision.lora = LoraConfig(rank=2, alpha=4.0)
    with pytest.raises(InvalidInputError, match=r"with rank 2 and alpha 8\.0, as the decoder's, got 2 and 4\.0"):
        save_peft(decoder, tmp_path)


def test_a_decoder_whose_tower_was_left_out_is_still_part_of_a_model_that_sees(tmp_path):
    blind = Decoder(dataclasses.replace(seeing(0).config, vision=None), rngs=nnx.Rngs(0))
    save_peft(add_lora(blind, LoraConfig(rank=2, alpha=8.0), rngs=nnx.Rngs(3)), tmp_path)
    names = load_file(tmp_path / "adapter_model.safetensors")
    assert all(name.startswith("base_model.model.model.language_model.layers.") for name in names)
    again = load_peft(seeing(0), tmp_path)
    jax.tree.map(np.testing.assert_array_equal, nnx.state(again.layers, LoraParam), nnx.state(blind.layers, LoraParam))


def test_adapters_that_do_something_else_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="expected a decoder with adapters"):
        save_peft(build(VARIANTS["qwen2"]), tmp_path)
    with pytest.raises(CheckpointError, match=r"expected adapter_config\.json, found none"):
        load_peft(build(VARIANTS["qwen2"]), tmp_path)
    save_peft(adapted(), tmp_path)
    path = tmp_path / "adapter_config.json"
    described = json.loads(path.read_text())
    for change, message in [
        ({"use_dora": True}, "use_dora: expected nothing, got True"),
        ({"use_rslora": True}, "use_rslora"),
        ({"layers_to_transform": [0]}, "layers_to_transform"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights: expected True, got 'pissa'"),
        ({"bias": "all"}, "bias: expected 'none', got 'all'"),
        ({"peft_type": "LOHA"}, "peft_type"),
        ({"a_setting_of_the_future": 1}, "a_setting_of_the_future: expected nothing, got 1"),
        ({"rank_pattern": {"q_proj": 4}}, "rank_pattern"),
        ({"target_modules": ["q_proj", "gate_proj"]}, "target_modules: expected some of"),
        ({"target_modules": "all-linear"}, "target_modules"),
    ]:
        path.write_text(json.dumps(described | change))
        with pytest.raises(InvalidInputError, match=message):
            load_peft(build(VARIANTS["qwen2"]), tmp_path)
    # What PEFT 0.17 writes for plain LoRA is read.
    plain = {
        "alpha_pattern": {}, "auto_mapping": None, "corda_config": None, "eva_config": None, "exclude_modules": None,
        "init_lora_weights": True, "layer_replication": None, "layers_pattern": None, "loftq_config": {},
        "megatron_config": None, "megatron_core": "megatron.core", "modules_to_save": None, "qalora_group_size": 16,
        "rank_pattern": {}, "revision": None, "trainable_token_indices": None, "use_qalora": False, "use_rslora": False,
    }  # fmt: skip
    path.write_text(json.dumps(described | plain))
    load_peft(build(VARIANTS["qwen2"]), tmp_path)
    path.write_text("[]")
    with pytest.raises(CheckpointError, match="expected an object, got list"):
        load_peft(build(VARIANTS["qwen2"]), tmp_path)
    path.write_text(json.dumps(described | {"r": 3}))
    with pytest.raises(CheckpointError, match=r"lora_A\.weight: expected shape \(3, 24\), got shape \(2, 24\)"):
        load_peft(build(VARIANTS["qwen2"]), tmp_path)
    path.write_text(json.dumps(described))
    arrays = load_file(tmp_path / "adapter_model.safetensors")
    save_file(arrays | {"extra": np.zeros(1, np.float32)}, tmp_path / "adapter_model.safetensors")
    decoder = build(VARIANTS["qwen2"])
    with pytest.raises(CheckpointError, match="1 arrays have no place in the decoder"):
        load_peft(decoder, tmp_path)
    assert decoder.lora is None
    assert jnp.isfinite(decoder.embedding[...]).all()

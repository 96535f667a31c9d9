"""Configs: published sizes, field-naming errors, and shapes that agree with the module that is built."""

import dataclasses

import pytest
from flax import nnx

from embodied_mem.errors import InvalidInputError
from embodied_mem.models.config import (
    PRESETS,
    DecoderConfig,
    LoraConfig,
    logical_axes,
    num_parameters,
    parameter_shapes,
    preset,
)
from embodied_mem.models.decoder import Decoder

# Parameter totals as counted from the published checkpoints, tied heads counted once.
PUBLISHED = {
    "smollm2-135m": 134_515_008,
    "llama-3.2-1b": 1_235_814_400,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_parameter_count_is_the_published_one(name):
    assert num_parameters(preset(name)) == PUBLISHED[name]


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_shapes_and_axes_describe_the_module(name):
    config = preset(name)
    abstract = nnx.eval_shape(lambda: Decoder(config, rngs=nnx.Rngs(0)))
    built = {path: leaf.shape for path, leaf in nnx.to_flat_state(nnx.state(abstract, nnx.Param))}
    assert built == parameter_shapes(config)
    axes = logical_axes(config)
    assert {path: len(names) for path, names in axes.items()} == {path: len(shape) for path, shape in built.items()}


@pytest.mark.parametrize(
    ("field", "value"),
    [("num_kv_heads", 3), ("head_dim", 31), ("width", 0), ("dtype", "int8"), ("norm_eps", 0.0), ("rope_theta", 1.0)],
)
def test_error_names_the_field(field, value):
    with pytest.raises(InvalidInputError, match=rf"decoder\.{field}: expected .* got {value!r}"):
        dataclasses.replace(DecoderConfig(), **{field: value})


def test_unknown_names_list_the_known():
    with pytest.raises(InvalidInputError, match="tiny"):
        preset("tinny")
    with pytest.raises(InvalidInputError, match=r"decoder\.widht: .*width"):
        preset("tiny", widht=3)
    with pytest.raises(InvalidInputError, match=r"lora\.targets"):
        LoraConfig(targets=("down",))

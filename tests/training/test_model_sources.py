"""Which role starts from published weights, where they are looked for, and what is said when there are none."""

import dataclasses
import re

import pytest

from embodied_mem.errors import DataNotFoundError, InvalidInputError
from embodied_mem.training.config import (
    Config,
    CorrectionConfig,
    ModelConfig,
    SFTConfig,
    WorldConfig,
    is_published,
    masters_of,
    weights_of,
)
from embodied_mem.training.models import shape_of


def config(compiler="qwen2.5-7b", executor="micro", weights="somewhere", **fields) -> Config:
    model = ModelConfig(compiler=compiler, executor=executor, weights=str(weights), lora=True)
    return Config(world=WorldConfig(num_train=4, num_valid=1), model=model, **fields)


def test_a_role_is_published_by_its_preset_and_only_with_weights():
    assert [is_published(config(), role) for role in ("compiler", "executor")] == [True, False]
    assert [is_published(config("tiny", "qwen2.5-14b"), role) for role in ("compiler", "executor")] == [False, True]
    assert not is_published(config(weights=""), "compiler")
    with pytest.raises(InvalidInputError, match=r"model.weights: .* both models start from scratch \(tiny, micro\)"):
        is_published(config("tiny"), "compiler")


def test_weights_are_a_folder_or_file_per_role_or_one_file_for_all(tmp_path):
    assert weights_of(config(weights=tmp_path), "executor") is None
    with pytest.raises(DataNotFoundError, match=re.escape(f"of the compiler at one of {tmp_path / 'compiler'}, ")):
        weights_of(config(weights=tmp_path), "compiler")
    (tmp_path / "compiler.gguf").touch()
    assert weights_of(config(weights=tmp_path), "compiler") == tmp_path / "compiler.gguf"
    (tmp_path / "compiler").mkdir()
    assert weights_of(config(weights=tmp_path), "compiler") == tmp_path / "compiler"
    one = config(executor="qwen2.5-14b", weights=tmp_path / "compiler.gguf")
    assert weights_of(one, "compiler") == weights_of(one, "executor") == tmp_path / "compiler.gguf"
    with pytest.raises(DataNotFoundError, match=r"of the compiler at one of .*gone\.gguf, or an installed package"):
        weights_of(config(weights=tmp_path / "gone.gguf"), "compiler")


def test_an_installed_package_may_carry_them(tmp_path, monkeypatch):
    package = tmp_path / "some_model"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('not to be imported')")
    (package / "weights.gguf").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert weights_of(config(weights="some-model"), "compiler") == package / "weights.gguf"
    with pytest.raises(DataNotFoundError, match="package 'no-such-model'"):
        weights_of(config(weights="no-such-model"), "compiler")


def test_what_is_trained_whole_is_stored_in_float32():
    stored = {"compiler": {}, "executor": {"param_dtype": "float32"}}  # adapters; from scratch
    assert {role: masters_of(config(), role) for role in stored} == stored
    frozen = config(executor="qwen2.5-14b", executor_sft=SFTConfig(steps=0))
    assert masters_of(frozen, "executor") == {}
    assert masters_of(dataclasses.replace(frozen, executor_sft=SFTConfig(steps=1)), "executor") == stored["executor"]
    corrected = dataclasses.replace(frozen, executor_correction=CorrectionConfig(num_games=1))
    assert masters_of(corrected, "executor") == stored["executor"]


def test_a_plan_has_the_vocabulary_of_the_published_model():
    assert shape_of(config(), "executor").vocab_size == shape_of(config(), "compiler").vocab_size == 152_064
    assert shape_of(config(weights=""), "executor").vocab_size == ModelConfig().vocab_size

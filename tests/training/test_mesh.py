"""Training on 8 simulated devices: losses, gradients and rollouts of one device, parameters really split."""

from pathlib import Path

import jax
import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.parallel.mesh import MeshShape
from embodied_mem.parallel.placement import ONE_DEVICE, Placement, placement_of
from embodied_mem.training.data import Row, fill_rows, pad_rows

pytestmark = pytest.mark.slow

MESHES = ("all", "tensor")
STEPS = ("executor", "compiler", "grpo")


@pytest.fixture(scope="module")
def reports(on_eight_devices) -> dict:
    return on_eight_devices(Path(__file__).with_name("eight_devices_training.py"))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("mesh", MESHES)
def test_a_mesh_gives_the_loss_and_gradients_of_one_device(reports, mesh, step):
    one, other = reports["one"][step], reports[mesh][step]
    assert one["metrics"].keys() == other["metrics"].keys()
    for name, value in one["metrics"].items():
        assert other["metrics"][name] == pytest.approx(value, rel=2e-5, abs=2e-6), name
    largest = max(float(np.abs(np.asarray(g)).max()) for g in one["gradients"])
    assert largest > 1e-3
    for wanted, got in zip(one["gradients"], other["gradients"], strict=True):
        assert np.abs(np.asarray(wanted)).max() > 0  # every parameter takes part
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * largest)


@pytest.mark.parametrize("mesh", ["one", *MESHES])
def test_accumulated_gradients_are_those_of_the_whole_batch(reports, mesh):
    whole, parts = (reports[place][f"compiler {rows}"] for place, rows in (("one", 0), (mesh, 4)))
    for name, value in whole["metrics"].items():
        assert parts["metrics"][name] == pytest.approx(value, rel=2e-5, abs=2e-6), name
    for wanted, got in zip(whole["gradients"], parts["gradients"], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    assert reports[mesh]["loops"] > 0


@pytest.mark.parametrize("mesh", MESHES)
def test_a_mesh_gives_the_trainers_log_probs_of_one_device(reports, mesh):
    for wanted, got in zip(reports["one"]["rescored"], reports[mesh]["rescored"], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_the_compiler_step_has_all_five_terms(reports):
    metrics = reports["one"]["compiler"]["metrics"]
    weights = {"text": 1.0, "action": 1.0, "entropy": 0.1, "latent": 1.0, "orth": 0.1}  # eq. 9, SFTConfig's defaults
    assert metrics["loss"] == pytest.approx(sum(weight * metrics[name] for name, weight in weights.items()), rel=1e-5)
    assert all(metrics[name] != 0 for name in weights)


def layers_gathered(report: dict) -> list[list[int]]:
    """Of the gathered arrays those with an axis of the models' width, which are weights."""
    return [shape for shape in report["gathered"] if 32 in shape]


def test_no_weight_is_gathered_to_write_tokens_in_the_layout_for_sampling(reports):
    """The two models' programs have query, key, value, output, gate, up, down, and the embedding as table and head."""
    sampled = reports["sampled"]
    assert len(layers_gathered(sampled["0"])) >= 2 * 8
    assert not layers_gathered(sampled["1"])
    assert not layers_gathered(sampled["4"])


@pytest.mark.parametrize("mesh", ["all", "tensor", "fsdp", "resharded", "replicated"])
def test_a_mesh_samples_what_one_device_samples(reports, mesh):
    sampled = dict(zip(("fsdp", "replicated", "resharded"), reports["sampled"].values()))
    one, other = reports["one"]["rollout"], sampled.get(mesh) or reports[mesh]["rollout"]
    assert other["tokens"] == one["tokens"]
    assert other["actions"] == one["actions"]
    for name in ("log_probs", "soft"):
        for wanted, got in zip(one[name], other[name], strict=True):
            np.testing.assert_allclose(got, wanted, atol=2e-5)
    for (wanted, wanted_log_probs), (got, log_probs) in zip(one["following"], other["following"], strict=True):
        assert got == wanted
        np.testing.assert_allclose(log_probs, wanted_log_probs, atol=2e-5)


def test_parameters_and_optimizer_are_split(reports):
    whole = {step: reports["one"][step]["bytes"] for step in STEPS}
    for mesh, parts in (("all", 4), ("tensor", 8)):
        for one, split in zip(whole["executor"], reports[mesh]["executor"]["bytes"], strict=True):
            assert one / parts <= split < 1.2 * one / parts  # norms are split over fsdp alone
        assert reports[mesh]["compiler"]["frozen_bytes"] < 1.2 * reports["one"]["compiler"]["frozen_bytes"] / parts
        for step in ("compiler", "grpo"):  # adapters and Soft-Mem are split over fsdp, some over tensor too
            for one, split in zip(whole[step], reports[mesh][step]["bytes"], strict=True):
                assert split < 0.62 * one
        assert any("fsdp" in spec for spec in reports[mesh]["places"])
        assert any("tensor" in spec for spec in reports[mesh]["places"])


def test_one_device_changes_nothing():
    place = placement_of(MeshShape(-1, 1, 1).resolve(1)) if jax.device_count() == 1 else ONE_DEVICE
    tree = {"x": np.arange(3)}
    assert place is ONE_DEVICE
    assert place.batch(tree) is tree
    assert place.params(tree, {}) is tree
    assert (place.rows(3), place.shardings(tree, {})) == (3, None)
    assert place.scoped(max) is max


def test_a_mesh_of_the_wrong_size_or_a_batch_that_it_cannot_split_is_refused():
    with pytest.raises(InvalidInputError, match=r"mesh: data 3 x fsdp 7 x tensor 1 does not make \d+ devices"):
        placement_of(MeshShape(3, 7, 1))
    mesh = jax.sharding.AbstractMesh((2, 2, 1), ("data", "fsdp", "tensor"))
    place = Placement(mesh)
    assert (place.split, place.rows(5), place.rows(8)) == (4, 8, 8)
    with pytest.raises(InvalidInputError, match=r"divisible by data x fsdp = 4, got shape \(6, 2\)"):
        place.batch({"x": np.zeros((6, 2))})


def test_filled_rows_carry_no_loss():
    batch = pad_rows([Row([1, 2], [3]), Row([4], [5, 6], [7])], pad_id=0, multiple=4)
    assert fill_rows(batch, 2) is batch
    filled = fill_rows(batch, 4)
    np.testing.assert_array_equal(filled.tokens[2:], batch.tokens[[0, 0]])
    np.testing.assert_array_equal(filled.learned[:2], batch.learned)
    assert not filled.learned[2:].any()
    assert filled.mask[2:].any()

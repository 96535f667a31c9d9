"""Checkpoints onto 8 simulated devices: the numbers of one device, and never a whole parameter in host memory."""

from pathlib import Path

import numpy as np
import pytest

from embodied_mem.native import part

pytestmark = pytest.mark.slow

FAMILIES = ("llama", "qwen2", "qwen3")


@pytest.fixture(scope="module")
def report(on_eight_devices) -> dict:
    return on_eight_devices(Path(__file__).with_name("eight_devices_load.py"))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mesh", ["fsdp", "all", "tensor"])
def test_every_family_computes_the_same_on_every_mesh(report, family, mesh):
    assert report[family]["files"] > 2
    assert report[family][mesh]["same"]
    assert report[family][mesh]["difference"] < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_only_slices_are_read(report, family):
    total, largest, fsdp = (report[family][name] for name in ("total", "largest", "fsdp"))
    # Each byte is read once, in eighths of pieces of one layer's array.
    assert fsdp["read"] == total
    assert fsdp["part"] <= 65_536 < largest // 8
    assert fsdp["held"] == pytest.approx(total / 8, rel=0.01)
    # With copies (data=2) a part is read once and not once per device that holds it.
    assert report[family]["all"]["read"] == total


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 200), (64, 64), (65, 130)])
@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
def test_matrices_of_any_size_are_transposed_into_a_part_of_another(rows, columns, kind):
    source = np.arange(rows * (columns + 3), dtype=kind).reshape(rows, -1)[:, :columns]
    target = np.full((columns, rows + 2), 9, kind)
    part("models").transpose(source, target[:, 1:-1])
    assert (target[:, 1:-1] == source.T).all()
    assert (target[:, [0, -1]] == 9).all()
    with pytest.raises(ValueError, match="transpose: expected"):
        part("models").transpose(source, target)

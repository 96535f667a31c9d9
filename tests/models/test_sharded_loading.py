"""Checkpoints onto 8 simulated devices: the numbers of one device, and never a whole parameter in host memory."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FAMILIES = ("llama", "qwen2", "qwen3")


@pytest.fixture(scope="module")
def report(on_eight_devices) -> dict:
    return on_eight_devices(Path(__file__).with_name("eight_devices_load.py"))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("mesh", ["fsdp", "all", "tensor"])
def test_every_family_computes_the_same_on_every_mesh(report, family, mesh):
    assert report[family]["files"] > 2
    assert report[family][mesh]["difference"] < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_only_slices_are_read(report, family):
    total, largest, fsdp = (report[family][name] for name in ("total", "largest", "fsdp"))
    # Each byte is read once, in eighths of one layer's array (of a table: eighths of the table).
    assert fsdp["read"] == total
    assert fsdp["part"] <= largest // 8
    assert fsdp["held"] == pytest.approx(total / 8, rel=0.01)
    # Host memory holds one device's part of one stacked parameter. Of the eight, at most the last is still there when
    # the parameter is done. (A peak of memory would count the simulated devices, which are host memory too.)
    assert fsdp["put_together"] == largest // 8
    assert fsdp["alive"] <= fsdp["put_together"]
    # With copies (data=2) a part is read once and not once per device that holds it.
    assert report[family]["all"]["read"] == total

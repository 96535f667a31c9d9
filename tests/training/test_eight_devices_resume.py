"""Refilled rows, SIGTERM and a run folder in a bucket on 8 simulated devices: the numbers of a straight run."""

from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(on_eight_devices) -> dict:
    return on_eight_devices(Path(__file__).with_name("eight_devices_resume.py"))


def test_refilled_rows_on_a_mesh_play_the_episodes_of_one_device(report):
    one, refilled = report["one"], report["refilled"]
    assert one["resets"] == 1 < refilled["resets"]
    assert [len(actions) for actions in one["actions"]] == [1, 1, 3, 3, 3, 2, 2, 1]
    for name in ("actions", "tokens"):
        assert refilled[name] == one[name]
    for wanted, got in zip(one["log_probs"], refilled["log_probs"], strict=True):
        np.testing.assert_allclose(got, wanted, atol=2e-5)


def test_a_run_stopped_by_sigterm_goes_on_from_the_bucket_to_the_numbers_of_a_straight_one(report):
    assert report["status"] == 143
    assert report["found"] == 3
    straight, resumed = report["losses"]
    assert len(straight) == 5
    assert straight == resumed
    assert straight[-1] < straight[0]
    assert report["resumed"] == report["straight"]

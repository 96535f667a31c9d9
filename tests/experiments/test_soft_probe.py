"""The probe of soft tokens on rows whose information is known."""

import numpy as np
import pytest

from experiments.analyses.soft_probe import Rows, probe

pytest.importorskip("sklearn")
PLACES = [f"{kind} {number}" for kind in ("desk", "shelf") for number in (1, 2)]


def rows(count, seed, tells):
    """Soft tokens with noise, and in two of ten columns the kind, in two the number of the place, if they tell."""
    random = np.random.default_rng(seed)
    drawn = random.integers(4, size=count)
    soft = random.normal(size=(count, 10)).astype(np.float32)
    if tells:
        soft[np.arange(count), drawn // 2] += 6
        soft[np.arange(count), 2 + drawn % 2] += 6
    places = [PLACES[i] for i in drawn]
    return Rows(soft, places, [f"room {i % 10}" for i in range(count)], [True] * count, [True] * count)


def test_what_is_told_is_read_with_its_bits():
    found = probe(rows(400, 0, True), rows(200, 1, True), components=10)
    assert found["probe"]["place"]["accuracy"] > 0.95
    assert 1.5 < found["probe"]["bits"] <= found["entropy_bits"] <= 2
    assert found["shuffled"]["place"]["accuracy"] < 0.45
    assert found["shuffled"]["bits"] < 0.1
    assert found["majority"]["place"]["accuracy"] < 0.4
    assert -0.2 < found["majority"]["bits"] < 0.05


def test_nothing_is_read_where_nothing_is_told():
    found = probe(rows(400, 0, False), rows(200, 1, False), components=10)
    assert found["probe"]["place"]["accuracy"] < 0.4
    assert found["probe"]["bits"] < 0.05
    low, high = found["probe"]["bits_interval"]
    assert low <= found["probe"]["bits"] <= high


def test_a_place_that_no_training_row_has_costs_bits_and_no_error():
    training, held_out = rows(200, 0, True), rows(50, 1, True)
    held_out = held_out._replace(places=["fridge 1", *held_out.places[1:]])
    assert probe(training, held_out, components=4)["probe"]["bits"] > 0.5

"""The measure itself: without noise a memory knows the truth, without rules it does not; each noise is what it says."""

from __future__ import annotations

import random

import pytest

from experiments.analyses import noisy_triples
from experiments.analyses.noisy_triples import ARMS, COUNTS, Home, Noise, play


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(noisy_triples, "NUM_STEPS", 40)


@pytest.mark.parametrize("arm", ["ours", "looks", "names"])
def test_no_noise_no_fault(arm):
    make, looks = ARMS[arm]
    assert all(play(make, "none", 0.0, 0, looks)[count] == 0 for count in COUNTS)


def test_each_part_is_worth_something():
    def count(arm: str, kind: str, name: str) -> float:
        return sum(play(ARMS[arm][0], kind, 0.2, seed, ARMS[arm][1])[name] for seed in range(2))

    assert count("no conflicts", "none", "stale") > 0
    assert count("looks", "renamed", "duplicates") < count("ours", "renamed", "duplicates")
    assert count("ours", "renamed", "duplicates") < count("names", "renamed", "duplicates")


@pytest.mark.parametrize("kind", noisy_triples.NOISE[:-1])
def test_noise_at_its_rate(kind):
    home, noise, changed, total = Home(random.Random(1)), Noise(kind, 0.2, random.Random(2)), 0, 0
    for _ in range(400):
        seen = home.step()
        told = [fact for fact, _ in noise(seen)]
        total += len(seen)
        changed += len(set(seen) - set(told)) if kind != "duplicated" else len(told) - len(set(seen))
    assert changed / total == pytest.approx(0.2, abs=0.04)

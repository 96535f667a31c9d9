"""What `bench.py --suite models` computes from times and tokens, and what it says of a contender that fails."""

import sys

from experiments.benchmarks import model_contenders
from experiments.benchmarks.models import run_contender, summary


def test_rates_are_those_of_the_clock(monkeypatch):
    """A clock that the contender moves: 2 s for the first token of each row, then a quarter of a second a token."""
    now = [0.0]
    monkeypatch.setattr(model_contenders.time, "perf_counter", lambda: now[0])

    class Contender:
        def run(self, batch, new):
            now[0] += batch * (2 + (new - 1) / 4)

    settings = {"batches": [1, 8], "prompt": 16, "new": 4, "rounds": 3}
    rates = model_contenders.measure(Contender(), settings)
    assert rates == {"prefill": {"1": [8] * 3, "8": [8] * 3}, "decode": {"1": [4] * 3, "8": [4] * 3}}
    assert summary({"1": [3.0, 1.0, 2.04]}) == {"1": [2.0, 1.0, 3.0]}


def test_a_contender_that_fails_is_named_and_not_measured():
    assert run_contender("nobody", {}, sys.executable) == {"what": "not measured: KeyError: 'nobody'"}

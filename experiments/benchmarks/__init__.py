"""Suites of `experiments/bench.py`: each compares with named peers in the same run."""

"""What the agent does in generated episodes of the small house, to the letter; `runs.txt.gz` has it, one line per run.

`PYTHONPATH=.:tests/doubles python tests/experiments/solvers/memento/test_memento_runs.py` writes it anew.
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import memento_house

from embodied_mem.worlds.memento import generator
from experiments.solvers.memento.benchmark import Evaluation, MementoConfig

FILE = Path(__file__).with_name("runs.txt.gz")


def lines(folder: Path) -> list[str]:
    root = memento_house.write_household(folder)
    generator.write(generator.generate(root, 36, seed=5), root, root)
    evaluation = Evaluation(MementoConfig(data=str(root), embedder="lexical", triples_per_scene=6))
    evaluation.profile()
    evaluation.formats()
    evaluation.variants()
    runs = [run for runs in evaluation._played.values() for run in runs]
    return [
        f"{run.episode_id} {run.progress:.2f}: " + "; ".join(f"{s.thought} {s.action}".strip() for s in run.trace.steps)
        for run in runs
    ]


def test_the_agent_does_what_it_did(tmp_path):
    found, expected = lines(tmp_path), gzip.decompress(FILE.read_bytes()).decode().splitlines()
    for line, recorded in zip(found, expected):
        assert line == recorded
    assert len(found) == len(expected) > 300


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        FILE.write_bytes(gzip.compress("\n".join(lines(Path(scratch))).encode(), mtime=0))

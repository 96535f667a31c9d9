"""Scores agents and deliveries of memory on a world's benchmark: `python experiments/evaluate.py --help` tells how."""

from __future__ import annotations

from embodied_mem.evaluation.evaluate import main
from registered import register_all

register_all()

if __name__ == "__main__":
    from embodied_mem.evaluation.command import run

    run(main)

"""What MEMENTO's authors published of single episodes: their models' scores on exactly the episodes at hand.

    scores = published_scores(root)                 # {} where `<root>/results/per_episode.csv` is not installed
    beside(runs, scores["single"]["gpt-4o"])        # both sides on the episodes that both have

The paper's tables are means over 201, 201 and 36 episodes in 12 houses. Its repository has the score of every episode;
these are the figures to stand beside, as far as worlds go: theirs is habitat-sim, ours is not.

Known defects of the source: two of the 24 joint episodes at hand have no published score, the acquisition run of
qwen-2.5-7b-instruct is not the one whose traces are published, and llama-3.1-70b-instruct's single stage is another run
than the one in the paper's table.
"""

from __future__ import annotations

import csv
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from embodied_mem.errors import GameFileError
from embodied_mem.evaluation.intervals import paired_difference, wilson

from .protocol import Run

MODELS = ("gpt-4o", "claude-3.5-sonnet", "qwen-2.5-72b-instruct", "llama-3.1-70b-instruct", "qwen-2.5-7b-instruct")
"""Models shown, in the order of the paper's table 1; llama-3.1-8b-instruct is left out for want of one episode."""

_SETTINGS = {"acquisition": "acquisition", "single_utilization": "single", "joint_utilization": "joint"}

Scores = dict[str, tuple[float, float]]
"""(success, percent complete in [0, 1]) by episode id."""


def published_scores(root: str | os.PathLike[str]) -> dict[str, dict[str, Scores]]:
    """Scores of the paper's main table by stage, model and episode; empty where the data folder has no such file.

    Raises:
        GameFileError: the file has other columns or values than expected.
    """
    path = pathlib.Path(root) / "results" / "per_episode.csv"
    if not path.is_file():
        return {}
    scores: dict[str, dict[str, Scores]] = {}
    try:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                if row["experiment"] == "main_table" and row["setting"] in _SETTINGS and row["model"] in MODELS:
                    of_model = scores.setdefault(_SETTINGS[row["setting"]], {}).setdefault(row["model"], {})
                    of_model[row["episode_id"]] = (float(row["success"]), float(row["percent_complete"]))
    except (OSError, KeyError, ValueError) as error:
        raise GameFileError(
            f"{path}: expected experiment, setting, model, episode_id, success and percent_complete: {error!r}"
        ) from error
    return scores


def beside(runs: Sequence[Run], scores: Scores) -> dict[str, Any]:
    """Both sides on the episodes that both have, in [0, 1]; empty if there are none.

    `difference` is ours minus theirs in success, paired by episode, as [middle, low, high].
    """
    common = [run for run in runs if run.episode_id in scores]
    if not common:
        return {}
    ours = np.array([run.won for run in common], float)
    theirs = np.array([scores[run.episode_id][0] for run in common])
    return {
        "episodes": len(common),
        "sr": float(theirs.mean()),
        "sr_interval": list(wilson(float(theirs.mean()), len(common))),
        "pc": float(np.mean([scores[run.episode_id][1] for run in common])),
        "our_sr": float(ours.mean()),
        "our_pc": float(np.mean([run.progress for run in common])),
        "difference": list(paired_difference(ours, theirs)),
    }

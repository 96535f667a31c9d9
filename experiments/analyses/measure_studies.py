"""What the worlds of the study are worth before any training: the rule teacher with and without memory.

    python -m experiments.analyses.measure_studies                  # habits, procedures, change: two minutes
    python -m experiments.analyses.measure_studies --studies change --num_games 50 --out runs/change.json

Plays the held-out games of each configuration once per setting of the bank, the teacher's own commands carried out.
`none` is the teacher without memory, whom the executor without memory learns from. A world measures memory if
`committed` is at least 30 points above it. Writes one JSON file and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys

import numpy as np

from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.intervals import paired_difference, success_row
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.memory import MemoryBank
from embodied_mem.memory.bank_settings import BankView
from embodied_mem.training.config import Config
from embodied_mem.training.tasks import scoring_bank, sources_of
from embodied_mem.training.teachers.episodes import play_teacher

from ..configs import load

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDIES = ("habits", "procedures", "change")
BANKS = ("committed", "other_rooms", "empty", "irrelevant", "noisy:0.5", "stale")


def measure(config: Config, num_games: int) -> dict[str, dict]:
    """Rows by setting of the bank, `none` first."""
    [source] = sources_of(config.world, config.seed)
    bank, memory = scoring_bank(config), config.memory
    games = source.sides()[1][:num_games]
    envs = source.envs(games, min(len(games), 100), config.world.max_steps)

    def play(view: MemoryBank | BankView) -> np.ndarray:
        played = play_teacher(
            envs, range(len(games)), view, lambda _: source.teacher(), top_k=memory.top_k, detour=0, seed=config.seed
        )
        won = {episode.task_id for episode in played.episodes}
        return np.array([[game.name in won] for game in games])

    none = play(MemoryBank())
    rows = {"none": success_row(none)}
    for setting in BANKS:
        view = BankView(bank, (setting,), seed=config.seed, numbered=memory.numbered, newest_first=memory.newest_first)
        won = play(view)
        difference, low, high = paired_difference(won, none)
        rows[setting] = success_row(won) | {"difference_to_none": difference, "difference_interval": [low, high]}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="*", default=STUDIES, choices=STUDIES)
    parser.add_argument("--num_games", type=int, default=200)
    parser.add_argument("--out", type=output_file, default=ROOT / "experiments/results/studies_teacher.json")
    options = parser.parse_args()
    studies = {}
    for name in options.studies:
        config = load(name)
        rows = measure(config, options.num_games)
        studies[name] = {"world": dataclasses.asdict(config.world), "top_k": config.memory.top_k, "teacher": rows}
        print(f"{name:12}" + "".join(f"{setting} {100 * row['success']:.1f}  " for setting, row in rows.items()))
    facts = manifest(["python -m experiments.analyses.measure_studies", *sys.argv[1:]], num_games=options.num_games)
    write_result(options.out, {"studies": studies, **facts})
    print(json.dumps({name: {k: row["success"] for k, row in one["teacher"].items()} for name, one in studies.items()}))


if __name__ == "__main__":
    run(main)

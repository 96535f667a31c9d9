"""Players by rules on a short life: the oracle wins, memory helps, and what was to be forgotten is gone."""

import dataclasses
import json

import numpy as np
import pytest

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.evaluate import main
from experiments.configs._life import MIX
from experiments.life import benchmark
from experiments.life.benchmark import CONDITIONS, held_out_lives
from experiments.life.player import Player, is_theft, play_life
from experiments.registered import register_all

register_all()


@pytest.fixture(scope="module")
def life():
    return held_out_lives(dataclasses.replace(MIX, num_tasks=60), 1, "dev")[0]


@pytest.mark.parametrize(("option", "value"), [("conditions", "poisoned"), ("more_weights", "life")])
def test_options_of_deliveries_alone_are_refused(option, value):
    with pytest.raises(InvalidInputError, match=rf"^--{option}: expected --deliveries with it"):
        main(["--config=life", f"--{option}", value])


def test_rows_are_in_order(tmp_path, capsys):
    rows = ["oracle", "none", "bank", "lifelong"]
    main(
        [
            "--config=life",
            "--part",
            "dev",
            "--homes",
            "2",
            "--num_tasks",
            "60",
            "--rows",
            *rows,
            "--result",
            str(tmp_path / "r.json"),
        ]
    )
    report = json.loads((tmp_path / "r.json").read_text())
    oracle, none, bank, lifelong = (report["rows"][name]["last"]["success"] for name in rows)
    assert oracle == 1
    assert none + 0.1 < bank < lifelong - 0.1
    assert "| lifelong |" in capsys.readouterr().out


def test_what_the_user_asks_to_forget_is_found_no_more(life):
    player = Player(CONDITIONS["lifelong"])
    asked = 0
    for number, day in enumerate(life.days):
        before = [saying.forget for saying in day.sayings if saying.forget]
        had = any(player.memory.retrieve(kind).items for kind in before)
        outcome = player.play(day, f"task {number}", "home")
        assert outcome.num_recalled == 0
        asked += had
    assert asked


def test_who_takes_what_is_somebody_elses_has_lost(life):
    day = next(day for day in life.days if day.cue == "owned")
    kind, place = day.truth.forbidden
    taken = f"You pick up the {kind} 1 from the {place}."
    assert is_theft(day, f"take {kind} 1 from {place}", taken)
    assert not is_theft(day, f"take {kind} 1 from {place}", "Nothing happens.")
    assert not is_theft(day, f"take {kind} 1 from {day.truth.places[0]}", taken)


def test_a_life_without_notes_loses_what_was_told(life):
    rows = {name: play_life(life, CONDITIONS[name]) for name in ("lifelong", "without notes")}
    for cue in ("told", "meant"):
        full, less = (sum(one.is_won for day, one in zip(life.days, row) if day.cue == cue) for row in rows.values())
        assert less < full


def test_a_row_of_several_training_seeds_is_their_mean():
    [life] = held_out_lives(dataclasses.replace(MIX, num_tasks=4), 1, "dev")
    row = benchmark._row([life], np.array([[1.0, 0.5, 0.0, 0.5]]))
    assert row["last"]["success"] == row["homes"][0] == 0.5
    of_cue = {cue: [win for day, win in zip(life.days, (1.0, 0.5, 0.0, 0.5)) if day.cue == cue] for cue in row["cues"]}
    assert row["cues"] == {cue: np.mean(wins) if wins else None for cue, wins in of_cue.items()}

"""The budget study: what is compared with what, and the verdict."""

import numpy as np
import pytest

from experiments.analyses.soft_budget import comparisons, curves, verdict

BUDGETS = (4, 8)
SHARES = {
    "none": 0.1, "compiled_text hint_tokens=4": 0.3, "compiled_text hint_tokens=8": 0.4,
    "compiled_text hint_tokens=16": 0.5, "compiled_text hint_tokens=20": 0.55, "compiled_text hint_tokens=24": 0.55,
    "compiled_text": 0.55, "compiled soft=only": 0.5, "compiled soft=only+zero": 0.0,
    "compiled soft=only+swapped": 0.05, "compiled soft=only+noise": 0.3, "compiled hint_tokens=4": 0.5,
    "compiled hint_tokens=8": 0.7, "compiled": 0.6,
}  # fmt: skip


def played(**changed):
    """100 games with the first so many won, so that one row wins what a worse one wins."""
    rows = {}
    for number, (name, share) in enumerate((SHARES | changed).items()):
        won = (np.arange(100) < round(100 * share)).astype(float)[:, None]
        tokens = 100.0 + number
        rows[name] = {
            "success": share, "interval": [max(share - 0.1, 0), min(share + 0.1, 1)], "steps": 5.0,
            "executor_tokens_per_step": tokens, "won": won,
        }  # fmt: skip
    return rows


def test_text_gets_as_many_tokens_more_as_there_are_soft_ones():
    found = comparisons(played(), BUDGETS, 16)
    against = {(row["kind"], row["budget"]): row["against"] for row in found if row["kind"] != "control"}
    assert against == {
        ("same budget", 0): "none", ("equal tokens", 0): "compiled_text hint_tokens=16",
        ("same budget", 4): "compiled_text hint_tokens=4", ("equal tokens", 4): "compiled_text hint_tokens=20",
        ("same budget", 8): "compiled_text hint_tokens=8", ("equal tokens", 8): "compiled_text hint_tokens=24",
        ("same budget", None): "compiled_text", ("equal tokens", None): "compiled_text",
    }  # fmt: skip
    assert [row["difference"][0] for row in found if row["kind"] == "control"] == pytest.approx([0.4, 0.5, 0.45, 0.2])


@pytest.mark.parametrize(
    ("changed", "works", "adds"),
    [
        ({}, True, [8]),
        ({"compiled hint_tokens=8": 0.5}, False, []),  # at equal tokens it adds nothing
        ({"compiled soft=only+swapped": 0.4}, False, [8]),  # another row's soft tokens do as well
        ({"compiled soft=only+zero": 0.45}, False, [8]),
        ({"none": 0.45}, False, [8]),
    ],
)
def test_the_verdict_is_the_studys(changed, works, adds):
    compared = comparisons(played(**{"compiled": 0.55, **changed}), BUDGETS, 16)
    found = verdict(compared)
    assert (found["works"], found["adds_at_equal_tokens"]) == (works, adds)


def test_the_curves_have_every_point():
    rows = curves(played(), BUDGETS)
    assert [point["budget"] for point in rows["both"]] == [0, 4, 8, None]
    assert [point["row"] for point in rows["text_at_equal_tokens"]] == [
        f"compiled_text hint_tokens={count}" for count in (16, 20, 24)
    ]

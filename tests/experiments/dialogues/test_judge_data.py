"""What the judge of corrections learns from has the right labels."""

from __future__ import annotations

import random

from experiments.dialogues.corrections import natural_items
from experiments.package_data import correction_judge
from experiments.package_data.supersession import read


def test_a_statement_that_is_said_again_replaces_one_of_its_form():
    rows = [row for row in correction_judge.restatements("train", 300, 0) if any(row.targets)]
    assert len(rows) > 200
    for row in rows:
        assert sum(row.targets) == 1
        old, new = row.olds[row.targets.index(True)].lower().split(), row.new.lower().split()
        assert old != new
        assert old[0] == new[0] or old[-1] == new[-1] or len(set(old) & set(new)) > 1


def test_news_of_a_thing_leaves_what_was_said_of_others():
    lists, _ = read()
    things = [one for name in ("allergen", "food", "drink", "music", "thing") for one in lists[name]]
    rows = [row for row in correction_judge.of_other_things("train", 300, 0) if any(row.targets)]
    assert len(rows) > 50
    for row in rows:
        (at,) = [at for at, is_target in enumerate(row.targets) if is_target]
        named = [one for one in things if one.lower() in row.new.lower()]
        assert any(one.lower() in row.olds[at].lower() for one in named), row


def test_unrelated_statements_are_of_two_topics():
    items = natural_items("train")
    topics = {text: item.topic for item in items for _, text in item.turns}
    rows = correction_judge.unrelated_pairs(items, 500, random.Random(0))
    assert len(rows) == 500
    for (old, new), label in rows:
        assert label == 0
        old = old.partition(": ")[2]
        assert topics[old] != topics.get(new)

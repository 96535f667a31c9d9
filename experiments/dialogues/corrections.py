"""Corrections that people say: does the newer statement come first, and does nothing else end?

    python experiments/dialogues/corrections.py --result experiments/results/corrections.json

`corrections_blind.jsonl` has 350 items, written on 2026-11-27 by somebody who saw neither code, tests, docs nor data of
this project: 250 statements with a correction, 100 that only look so. They are a hold-out: report them, and neither
read single items nor fit anything to them. `SHA256` seals the file.

An item is told to an empty memory of the asker, in order; then the question is asked once.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import pathlib
from typing import Any

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.command import output_file
from embodied_mem.evaluation.intervals import success_row
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.tables import markdown
from embodied_mem.memory import LifelongMemory, Scope
from embodied_mem.progress import Progress

ITEMS = pathlib.Path(__file__).parent / "corrections_blind.jsonl"
SHA256 = "1e8e373711adc43023e40f56f90049ff368ab3c9ef9de5187acc6a01541ff03f"
NUM_CORRECTED = 250
"""Items up to this id hold a correction; the rest only look as if they did."""

MEASURES = ("first", "first_three", "old_first", "old_ended", "wrongly_ended")


def items() -> list[dict[str, Any]]:
    """Read the items of the sealed file; another one is refused."""
    content = ITEMS.read_bytes()
    if (digest := hashlib.sha256(content).hexdigest()) != SHA256:
        raise InvalidInputError(f"{ITEMS}: expected the sealed file, {SHA256}, got {digest}")
    return [json.loads(line) for line in content.splitlines()]


def score(item: dict[str, Any]) -> dict[str, float]:
    """Tell one item and ask its question; measures are in [0, 1]."""
    asker, statements = item["asker"], [row["text"] for row in item["said"]]
    memory = LifelongMemory(Scope(user=asker))
    for row in item["said"]:
        memory.tell(row["text"], speaker="" if row["speaker"] == asker else row["speaker"])
    answers = [record.text.lower() for record in memory.retrieve(item["question"], k=3).items]
    is_right = [all(word in text for word in item["first_must_contain"]) for text in answers]
    past_texts = {record.text for record in memory.get_all("notes") if record.ended is not None}
    old, still_true = statements[item["first_must_not_be"]], [statements[i] for i in item["still_true"]]
    return {
        "first": float(is_right[:1] == [True]),
        "first_three": float(any(is_right)),
        "old_first": float(bool(answers) and answers[0] == old.lower()),
        "old_ended": float(old in past_texts),
        "wrongly_ended": sum(text in past_texts for text in still_true) / max(1, len(still_true)),
    }


def table(data: dict[str, Any]) -> str:
    """Make the table of a result."""
    cells = (
        [name, str(row["num_items"]), *(f"{100 * row[measure]:.1f}" for measure in MEASURES)]
        for name, row in data["rows"].items()
    )
    return markdown(["items", "number", *(f"{measure.replace('_', ' ')}, %" for measure in MEASURES)], cells)


def main() -> None:
    """Score today's memory and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--result", type=output_file, help="JSON file to write")
    args = parser.parse_args()
    groups: dict[str, list[dict[str, float]]] = collections.defaultdict(list)
    blind = items()
    with Progress("corrections", len(blind), unit="item") as progress:
        for item in blind:
            row = score(item)
            groups["corrected" if item["id"] <= NUM_CORRECTED else "not corrected"].append(row)
            groups[item["kind"]].append(row)
            progress.update()
    rows = {
        name: {
            "num_items": len(scores),
            **success_row([row["first"] for row in scores]),
            **{measure: sum(row[measure] for row in scores) / len(scores) for measure in MEASURES},
        }
        for name, scores in groups.items()
    }
    cells = [
        [name, str(row["num_items"]), *(f"{100 * row[measure]:.1f}" for measure in MEASURES)]
        for name, row in rows.items()
    ]
    print(markdown(["items", "number", *(f"{measure}, %" for measure in MEASURES)], cells))
    if args.result:
        write_result(args.result, manifest(sha256=SHA256, rows=rows))


if __name__ == "__main__":
    main()

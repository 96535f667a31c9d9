r"""Counts the things that a perceiver's answers put where the captions say, before and after a change of its prompt.

    mkdir seats && tar -xf experiments/results/seats_qwen05.calls.tar.xz -C seats
    gunzip -k experiments/results/perceiver_prompts.calls.jsonl.gz
    python experiments/analyses/placed_things.py --before experiments/results/perceiver_prompts.calls.jsonl \
        --after seats/perceiver.jsonl --result experiments/results/perceiver_prompts.json

Both are recordings of `seats.py --seats perceiver`, four games; the agent's way depends on what was perceived. The
earlier prompt is that of commit 7537da59: its example has no caption, known facts come last, the first
caption names the goal.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
from collections.abc import Sequence
from typing import Any

from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.language.json_answers import close_json

_VIEW = re.compile(r"\b[OI]n the ([\w ]{1,60}), you see ([^.\n]{0,4000})\.")
_ARTICLE = re.compile(r"^(?:and )?an? ")


def count(recording: pathlib.Path) -> dict[str, int]:
    """Count captions, their things, and answers' facts."""
    counts = {"calls": 0, "captions": 0, "things": 0, "placed": 0, "facts": 0}
    for line in recording.read_text(encoding="utf-8").splitlines():
        call: dict[str, Any] = json.loads(line)
        counts["calls"] += 1
        if not (match := _VIEW.search(call["request"]["messages"][-1]["content"].partition("Caption: ")[2])):
            continue
        things = [_ARTICLE.sub("", thing.strip()) for thing in match[2].split(",")]
        answer = json.loads(close_json(call["text"]) or "{}")
        facts = {(fact[0], fact[2]) for fact in answer.get("facts", ())}
        counts["captions"] += 1
        counts["things"] += len(things)
        counts["placed"] += sum((thing, match[1]) in facts for thing in things)
        counts["facts"] += len(facts)
    return counts


def main(arguments: Sequence[str] | None = None) -> None:
    """Count in both recordings, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=pathlib.Path, required=True, help="answers to the earlier prompt")
    parser.add_argument("--after", type=pathlib.Path, required=True, help="answers to the present one")
    parser.add_argument("--result", type=output_file, help="JSON to write")
    options = parser.parse_args(arguments)
    report = {name: count(getattr(options, name)) for name in ("before", "after")}
    if options.result:
        write_result(options.result, report | manifest())
    print(json.dumps(report))


if __name__ == "__main__":
    run(main)

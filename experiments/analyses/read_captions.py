r"""Has ten captions read by a text model and by rules, and compares both with what the captions say.

    gunzip -k experiments/results/captions_qwen05.calls.jsonl.gz
    python experiments/analyses/read_captions.py --model qwen2.5-coder-0.5b \
        --record experiments/results/captions_qwen05.calls.jsonl --result experiments/results/captions_qwen05.json

With --server a model behind OpenAI's protocol is asked; without, the recording answers. The captions were written
before any answer was seen; two rules that drop malformed facts were written after five. An earlier prompt got 3 right
facts of 14, from nine answers (commit f78b738e).
A fact is right if the caption says it, with "near" and "next to" as one.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections.abc import Sequence

from embodied_mem.agents.robot.perceiver import Perceiver
from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.language import OpenAIChatModel, RecordedChatModel
from embodied_mem.memory.observation import Perception

CAPTIONS = (
    ("A banana on the kitchen counter, the oven is closed.",
     "banana on kitchen counter; oven is closed"),
    ("The image shows a kitchen with a stove, a sink and two chairs.",
     "stove in kitchen; sink in kitchen; chair in kitchen; chair 2 in kitchen"),
    ("A cat sleeps on the red sofa while a lamp glows beside it.",
     "cat on red sofa; lamp next to red sofa; lamp is on; cat on sofa; lamp next to sofa; sofa is red; cat is asleep"),
    ("Someone left a mug under the bed.",
     "mug under bed"),
    ("The fridge stands open and there is a carton of milk inside.",
     "fridge is open; milk in fridge; carton of milk in fridge; carton in fridge"),
    ("A robot arm holding a spoon above a bowl of soup.",
     "robot arm holds spoon; agent holds spoon; spoon above bowl of soup; soup in bowl; spoon above bowl"),
    ("Keys hang on a hook by the front door.",
     "keys on hook; hook next to front door; keys next to front door; hook next to door"),
    ("An empty desk with a closed laptop on it.",
     "laptop on desk; laptop is closed; closed laptop on desk"),
    ("Two towels are folded in the laundry basket next to the washing machine.",
     "towel in laundry basket; towel 2 in laundry basket; towels in laundry basket; laundry basket next to washing "
     "machine; towels is folded; towel is folded; towel 2 is folded"),
    ("A child has drawn a picture of a house with a tree in front of it.",
     ""),
)  # fmt: skip


def counts(views: Sequence[Perception]) -> dict[str, object]:
    """Count the facts of views of the captions, right and wrong ones."""
    rows = []
    for (caption, truth), view in zip(CAPTIONS, views):
        lines = [" ".join(fact[:3]) for fact in view.facts]
        right = [fact for fact in lines if fact in truth.split("; ")]
        rows.append({"caption": caption, "summary": view.summary, "facts": lines, "right": len(right)})
    total, num_right = (sum(len(row["facts"]) for row in rows), sum(row["right"] for row in rows))
    return {
        "facts": total, "right": num_right, "captions_with_a_right_fact": sum(row["right"] > 0 for row in rows),
        "captions_with_a_wrong_fact": sum(len(row["facts"]) > row["right"] for row in rows), "rows": rows,
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Ask, count, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="an OpenAI-compatible server; default: the recording alone")
    parser.add_argument("--model", required=True, help="as the server and the recording name it")
    parser.add_argument("--record", type=pathlib.Path, required=True, help="file of the answers")
    parser.add_argument("--result", type=output_file, help="JSON to write")
    options = parser.parse_args(arguments)
    model = OpenAIChatModel(options.server, options.model, timeout_s=300, deadline_s=400) if options.server else None
    eyes = Perceiver(RecordedChatModel(model, options.record, options.model), max_tokens=220)
    assert eyes.writer is not None
    views = []
    for caption, _ in CAPTIONS:
        fallbacks = eyes.writer.fallbacks
        view = eyes.perceive((), caption, "look")
        views.append(view if eyes.writer.fallbacks == fallbacks else Perception())
    report = {
        "model": {**counts(views), "unusable": eyes.writer.fallbacks},
        "rules": counts([Perceiver().perceive((), caption) for caption, _ in CAPTIONS]),
    }
    if options.result:
        write_result(options.result, {**report, **manifest(asked=options.model)})
    print(
        json.dumps({name: {key: value for key, value in row.items() if key != "rows"} for name, row in report.items()})
    )


if __name__ == "__main__":
    run(main)

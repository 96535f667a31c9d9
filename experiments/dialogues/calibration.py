"""How likely does a record answer? Learns the weights of `Record.probability` and draws how true it is.

    python experiments/dialogues/calibration.py --result experiments/results/calibration.json --figure calibration.png
    python experiments/dialogues/calibration.py --fit              # prints bias and weights for `memory/answers.py`

Learned on weeks of the part `dev` and on generated dialogues: statements of `corrections.txt` and
`corrections_natural.txt` and conversations among each other, with their questions. In weeks every third answer is never
told, in dialogues two of five answers are left out or told by another person. Held out are the weeks of the part
`report`, with and without their answers, LoCoMo with its adversarial questions (category 5), which nothing answers, and
BEAM with `abstention`. No weight comes from these; but all three were seen when five features of twenty, and what the
sources weigh, were chosen.

A row has Brier scores of the first record and of the first five, and of the best constant, the share of right ones that
the row itself has. Points of the figure are tenths of the first records.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import pathlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from embodied_mem.atomic_file import replacing
from embodied_mem.envs.data_files import installed
from embodied_mem.evaluation.command import output_file
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.tables import markdown
from embodied_mem.memory import LifelongMemory, Record, Scope
from embodied_mem.memory.answers import features

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from experiments.dialogues.contenders import Ours
from experiments.dialogues.corrections import HALVES, NATURAL_NAMES, chats, natural_items
from experiments.dialogues.dialogues import read_beam, read_locomo
from experiments.dialogues.robot_week import SEEDS, take
from experiments.dialogues.week import Event, Question, make_week, people, without_answers
from experiments.package_data.supersession import PARTS, fill_topic, read

DEPTHS = (1, 5)
NUM_DIALOGUES, MOST_TURNS = 100, 500
_WEIGHT_OF_NONE, _OF_WEEKS = 0.35, 1.0
"""Weight of a dialogue's unanswered question, and of all weeks beside all dialogues."""
_RIDGE = 5.0


class Hit(NamedTuple):
    """A record that was found for a question.

    Attributes:
        group: the dialogue or week.
        rank: from 0.
        is_right: whether it answers.
        probability: as the memory says.
        features: of `answers`.
        weight: in learning.
    """

    group: str
    rank: int
    is_right: bool
    probability: float
    features: tuple[float, ...]
    weight: float = 1.0


def ask(
    memory: LifelongMemory, question: str, is_right: Callable[[Record], bool], group: str, weight: float = 1.0
) -> Iterator[Hit]:
    """Ask a question and judge the first records."""
    items = memory.retrieve(question, k=8).items
    assert memory.notes is not None
    its = features(items, question, memory.notes)
    for rank, item in enumerate(items[: max(DEPTHS)]):
        if item.id in its and item.probability is not None:
            yield Hit(group, rank, is_right(item), item.probability, its[item.id], weight)


def week(seed: int, should_lack: bool) -> Iterator[Hit]:
    """Play a week, one whole or without a third of its answers."""
    events = make_week(seed)
    memory = LifelongMemory(Scope(user=people(seed)[0], environment="home"))
    for event in without_answers(events, random.Random(seed)) if should_lack else events:
        if isinstance(event, Event):
            take(memory, event)
        else:
            yield from ask(memory, event.text, functools.partial(_is_answer, event), f"week {seed}")


def _is_answer(question: Question, item: Record) -> bool:
    return question.kind != "unknown" and question.is_answered(item.text)


def dialogue(seed: int) -> Iterator[Hit]:
    """Make a dialogue of statements among each other and ask for some."""
    rng, memory = random.Random(f"calibration {seed}"), LifelongMemory(Scope(user="Ann"))
    least = math.exp(rng.uniform(math.log(2), math.log(MOST_TURNS)))
    lists, topics = read()
    its: list[Any] = [*(one for part in dict.fromkeys(PARTS) for one in topics[part]), *natural_items(HALVES[0])]
    its += [*natural_items(HALVES[1]), *chats()]
    rng.shuffle(its)
    others = rng.sample(NATURAL_NAMES, 3)
    blocks: list[list[tuple[str, str]]] = []
    questions: list[tuple[str, str]] = []  # and what answers it; "" for nothing
    for it in its:
        if sum(map(len, blocks)) >= least:
            break
        if isinstance(it, list):
            blocks.append(it)
            continue
        turns, right, wrong, question = (
            fill_topic(it, lists, rng)
            if not hasattr(it, "turns")
            else (list(it.turns), it.right, it.wrong, it.question)
        )
        answer, draw = turns[right][1], rng.random()
        if draw < 0.2:
            turns = [turn for at, turn in enumerate(turns) if at not in (right, wrong)]
        elif draw < 0.4:
            turns = [(others[0] if at in (right, wrong) else who, text) for at, (who, text) in enumerate(turns)]
        blocks.append(turns)
        questions.append((question, answer if draw >= 0.4 else ""))
    is_dated = rng.random() < 0.5
    for at, (who, text) in enumerate(_mix(blocks, rng)):
        memory.tell(text, speaker=who, when=f"2024-03-{1 + at % 25:02}" if is_dated else "")
    texts = {note.id: note.text for note in memory.get_all("notes")}
    for question, answer in rng.sample(questions, min(len(questions), 40)):
        ids = {id for id, text in texts.items() if text == answer}
        is_right = functools.partial(_is_from, ids)
        yield from ask(memory, question, is_right, f"dialogue {seed}", 1.0 if answer else _WEIGHT_OF_NONE)


def _mix(blocks: list[list[tuple[str, str]]], rng: random.Random) -> list[tuple[str, str]]:
    """Mix blocks turn by turn, or leave them whole."""
    if rng.random() < 0.5:
        return [turn for block in blocks for turn in block]
    pairs = [(key, turn) for block in blocks for key, turn in zip(sorted(rng.random() for _ in block), block)]
    return [turn for _, turn in sorted(pairs)]


def _is_from(ids: set[str], item: Record) -> bool:
    return not ids.isdisjoint({item.id, *(f"notes:{note}" for note in item.data.get("notes", ()))})


def public_rows(world: str) -> Iterator[Hit]:
    """Play LoCoMo or BEAM; without data there is nothing."""
    read_world = {"locomo": read_locomo, "beam": read_beam}[world]
    for its in read_world(path, is_whole=True) if (path := installed(world)) else ():
        contender = Ours()
        for turn in its.turns:
            contender.tell(turn)
        for question in its.questions:
            is_right = functools.partial(_is_evidence, contender, question.evidence)
            yield from ask(contender.memory, question.text, is_right, its.name)


def _is_evidence(contender: Ours, evidence: frozenset[str], item: Record) -> bool:
    return not evidence.isdisjoint(contender.turns_of(item))


def fit(sources: Iterable[tuple[float, list[Hit]]]) -> np.ndarray:
    """Learn float64[1 + F], bias and weights, by Newton's method.

    Args:
        sources: the weight of each and its records.
    """
    rows = [(share * row.weight / sum(one.weight for one in its), row) for share, its in sources for row in its]
    x = np.array([(1.0, *row.features) for _, row in rows])
    y, weights = np.array([row.is_right for _, row in rows], float), np.array([weight for weight, _ in rows])
    weights *= len(rows) / weights.sum()
    ridge, beta = _RIDGE * np.diag([0.0] + [1.0] * (x.shape[1] - 1)), np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        curvature = (x * (weights * p * (1 - p))[:, None]).T @ x + ridge
        beta -= np.linalg.solve(curvature, x.T @ (weights * (p - y)) + ridge @ beta)
    return beta


def score(rows: list[Hit]) -> dict[str, Any]:
    """Compare probabilities with what is right."""
    report: dict[str, Any] = {}
    for depth in DEPTHS:
        its = [row for row in rows if row.rank < depth]
        p, right = (np.array([getattr(row, name) for row in its], float) for name in ("probability", "is_right"))
        losses, constant = (p - right) ** 2, (right.mean() - right) ** 2
        groups = {row.group: [row.group == one.group for one in its] for row in its}
        by_group = [[float(loss[its].mean()) for its in groups.values()] for loss in (losses, constant)]
        tenths = np.minimum((10 * p).astype(int), 9)
        report[f"first_{depth}"] = {
            "num_records": len(its), "right": float(right.mean()), "probability": float(p.mean()),
            "brier": float(losses.mean()), "constant": float(constant.mean()),
            "difference": paired_difference(*by_group),
            "tenths": [
                [int((of := tenths == tenth).sum()), float(p[of].mean()), float(right[of].mean())]
                for tenth in sorted(set(tenths.tolist()))
            ],
        }  # fmt: skip
    return report


def table(data: dict[str, Any]) -> str:
    """Make the table of a result."""
    head = ("", "records", "right, %", "probability, mean %", "Brier score", "best constant", "difference")
    cells = [
        [
            f"{name}, {depth.replace('_', ' ')}", str(row["num_records"]), f"{100 * row['right']:.1f}",
            f"{100 * row['probability']:.1f}", f"{row['brier']:.3f}", f"{row['constant']:.3f}",
            "{:.3f} [{:.3f}, {:.3f}]".format(*row["difference"]),
        ]
        for name, depths in data["rows"].items() for depth, row in depths.items()
    ]  # fmt: skip
    return markdown(head, cells)


def draw(data: dict[str, Any], path: pathlib.Path) -> None:
    """Draw the reliability of first records."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(4.5, 4), layout="constrained")
    axis.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    for name, depths in data["rows"].items():
        counts, p, right = zip(*depths["first_1"]["tenths"])
        (line,) = axis.plot(p, right, label=f"{name}, {sum(counts)} questions")
        axis.scatter(p, right, s=[3 + count / 3 for count in counts], color=line.get_color())
    axis.set(xlabel="probability of the first record", ylabel="share of right ones", xlim=(0, 1), ylim=(0, 1))
    axis.legend()
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=110, format="png")


def main() -> None:
    """Learn, or score today's memory and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--result", type=output_file, help="JSON file to write")
    parser.add_argument("--figure", type=output_file, help="picture to write; needs the extra `pictures`")
    parser.add_argument("--fit", action="store_true", help="learn the weights instead")
    args = parser.parse_args()
    part = "dev" if args.fit else "report"
    weeks = [row for seed in SEEDS[part] for should_lack in (False, True) for row in week(seed, should_lack)]
    if args.fit:
        dialogues = [row for seed in range(NUM_DIALOGUES) for row in dialogue(seed)]
        print(json.dumps(fit([(1.0, dialogues), (_OF_WEEKS, weeks)]).round(2).tolist()))
        return
    rows = {"weeks": weeks, **{world: [*public_rows(world)] for world in ("locomo", "beam")}}
    data = manifest(rows={name: score(its) for name, its in rows.items() if its})
    print(table(data))
    if args.figure:
        draw(data, args.figure)
    if args.result:
        write_result(args.result, data)


if __name__ == "__main__":
    main()

"""Corrections that people say: does the newer statement come first, and does nothing else end?

    python experiments/dialogues/corrections.py --result experiments/results/corrections.json
    python experiments/dialogues/corrections.py --natural dev

`corrections_blind.jsonl` has 350 items, written on 2026-11-27 by somebody who saw neither code, tests, docs nor data of
this project: 250 statements with a correction, 100 that only look so. They are a hold-out: report them, and neither
read single items nor fit anything to them. `SHA256` seals the file.

An item is told to an empty memory of the asker, in order; then the question is asked once.

`corrections_natural.txt` is for development: 309 corrections and 143 statements that only look so, written by hand with
sight of neither the blind items nor the wordings of generators. A line has topic and form, statements in order, and a
question; "+" is before what answers it, "-" before what must not come first, "Nora>" before what another says. Items
of the half `train` teach `supersession`, `dev` chooses. Each is played among statements of other topics.

`corrections_written.txt` was written by a language model: 1939 corrections and 1703 statements that only look so, of
425 topics. A line has a topic, "-" before an old statement, "+" before each that replaces it ("~": said directly after
it), "=" before each that does not, and a question. Topics of the part `held` teach nothing.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import pathlib
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.command import output_file
from embodied_mem.evaluation.intervals import success_row
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.tables import markdown
from embodied_mem.memory import LifelongMemory, Scope
from embodied_mem.memory.embedders import CachedEmbedder, Embedder
from embodied_mem.memory.words import content_words
from embodied_mem.progress import Progress

ITEMS = pathlib.Path(__file__).parent / "corrections_blind.jsonl"
SHA256 = "1e8e373711adc43023e40f56f90049ff368ab3c9ef9de5187acc6a01541ff03f"
NUM_CORRECTED = 250
"""Items up to this id hold a correction; the rest only look as if they did."""

NATURAL = pathlib.Path(__file__).parent / "corrections_natural.txt"
HALVES = ("train", "dev")
_NAMES = "Nora Tobias Ben Ines Carla Emil Leyla Ruth Kofi Sven Priya Rosa Hugo Dana Olga Luis Aiko Femi"
NATURAL_NAMES = _NAMES.split()
_CHAT = "chat"
MORE_ITEMS = NATURAL.with_name("corrections_written.txt")
WRITTEN_PARTS = ("train", "held")
_HELD_OF = 7

MEASURES = ("first", "first_three", "old_first", "old_ended", "wrongly_ended")


def items() -> list[dict[str, Any]]:
    """Read the items of the sealed file; another one is refused."""
    content = ITEMS.read_bytes()
    if (digest := hashlib.sha256(content).hexdigest()) != SHA256:
        raise InvalidInputError(f"{ITEMS}: expected the sealed file, {SHA256}, got {digest}")
    return [json.loads(line) for line in content.splitlines()]


class Natural(NamedTuple):
    """An item of `corrections_natural.txt` or `corrections_written.txt`.

    Attributes:
        topic, form: of the correction; a form of what is none begins with "c:".
        turns: (speaker, text) in order; "" is the asker.
        right, wrong: positions of what answers the question and of what must not come first.
        question: of the asker.
    """

    topic: str
    form: str
    turns: list[tuple[str, str]]
    right: int
    wrong: int
    question: str

    @property
    def is_correction(self) -> bool:
        """True if the right statement replaces the wrong one."""
        return not self.form.startswith("c:")

    def among(self, others: Sequence[Natural], rng: random.Random, most: int = 4, is_near: bool = False) -> Natural:
        """Put statements of other topics around.

        None is between an old statement and one that only points to it.

        Args:
            others: items to take them from.
            rng: draws them.
            most: at most so many.
            is_near: whether those of this topic without a common word are among them.
        """
        words = {word for _, text in self.turns for word in content_words(text)}
        fillers = [
            one.turns[0] for one in rng.sample(others, most)
            if one.topic != self.topic or (is_near and words.isdisjoint(content_words(one.turns[0][1])))
        ]  # fmt: skip
        turns, marks = list(self.turns), {"right": self.right, "wrong": self.wrong}
        for filler in fillers[: rng.randrange(most + 1)]:
            last = min(marks.values()) if self.form in ("ell", "pro") else len(turns)
            at = rng.randrange(last + 1)
            turns.insert(at, filler)
            marks = {name: mark + (at <= mark) for name, mark in marks.items()}
        return self._replace(turns=turns, **marks)

    def as_blind(self) -> dict[str, Any]:
        """Return the item in the form of the sealed file."""
        return {
            "asker": "user", "is_whole": True, "question": self.question, "first_must_not_be": self.wrong,
            "said": [{"speaker": speaker or "user", "text": text} for speaker, text in self.turns],
            "first_must_contain": [self.turns[self.right][1].lower().rstrip(".! ")],
            "still_true": [i for i in range(len(self.turns)) if i != self.wrong or not self.is_correction],
        }  # fmt: skip


def natural_items(half: str) -> list[Natural]:
    """Read the items of a half; one thing is in one half."""
    its = []
    for kind, *statements, question in _rows(NATURAL):
        topic, _, form = kind.partition("/")
        if topic == _CHAT:
            continue
        marks = [one[0] for one in statements]
        first = statements[min(marks.index("+"), marks.index("-"))]
        thing = max(content_words(first.rpartition(">")[2]), key=len)
        if HALVES[hashlib.sha256(thing.encode()).digest()[0] % 2] != half:
            continue
        turns = [_turn(one) for one in statements]
        its.append(Natural(topic, form, turns, marks.index("+"), marks.index("-"), question))
    return its


def written_items(part: str) -> list[Natural]:
    """Read the written items of a part; a topic is in one."""
    its = []
    for topic, old, *news, question in _rows(MORE_ITEMS):
        is_held = hashlib.sha256(topic.encode()).digest()[0] % _HELD_OF == 0
        if topic == _CHAT or WRITTEN_PARTS[is_held] != part:
            continue
        for new in news:
            right, form = (0, "c:written") if new[0] == "=" else (1, "ell" if new[0] == "~" else "written")
            its.append(Natural(topic, form, [_turn(old), _turn(new)], right, 1 - right, question))
    return its


def chats(path: pathlib.Path = NATURAL) -> list[list[tuple[str, str]]]:
    """Read (speaker, text) of conversations without a correction."""
    return [[_turn(one) for one in texts] for kind, *texts in _rows(path) if kind.startswith(_CHAT)]


def _rows(path: pathlib.Path) -> list[list[str]]:
    return [line.split(" | ") for line in path.read_text(encoding="utf-8").splitlines()]


def _turn(statement: str) -> tuple[str, str]:
    who, _, text = statement.lstrip("+-=~").partition("> ")
    return (who, text) if text else ("", who)


def score(item: dict[str, Any], embedder: Embedder | None = None) -> dict[str, float]:
    """Tell one item and ask its question; measures are in [0, 1]."""
    asker, statements = item["asker"], [row["text"] for row in item["said"]]
    memory = LifelongMemory(Scope(user=asker), embedder=embedder)
    for row in item["said"]:
        memory.tell(row["text"], speaker="" if row["speaker"] == asker else row["speaker"])
    items = memory.retrieve(item["question"], k=3).items
    text_at = {note.recorded: note.text for note in memory.get_all("notes")} if item.get("is_whole") else {}
    answers = [
        f"{one.text} {text_at.get(one.recorded, '') if one.module != 'notes' else ''}".strip().lower() for one in items
    ]
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
    parser.add_argument("--result", type=output_file, help="JSON file to write, of the blind items")
    parser.add_argument("--natural", choices=HALVES, help="this half of the items for development instead")
    parser.add_argument("--written", choices=WRITTEN_PARTS, help="this part of the written items instead")
    parser.add_argument("--encoder", action="store_true", help="the memory has MiniLM, from its package")
    args = parser.parse_args()
    embedder = None
    if args.encoder:
        from embodied_mem.models.sentence_encoders import SentenceEncoder

        embedder = CachedEmbedder(SentenceEncoder.load())
    groups: dict[str, list[dict[str, float]]] = collections.defaultdict(list)
    own = natural_items(args.natural) if args.natural else written_items(args.written) if args.written else []
    its = [*_among(own)] if own else [*_blind()]
    with Progress("corrections", len(its), unit="item") as progress:
        for item, names in its:
            row = score(item, embedder)
            for name in names:
                groups[name].append(row)
            progress.update()
    rows = {
        name: {
            "num_items": len(scores),
            **success_row([row["first"] for row in scores]),
            **{measure: sum(row[measure] for row in scores) / len(scores) for measure in MEASURES},
        }
        for name, scores in groups.items()
    }
    print(table({"rows": rows}))
    if args.result and not own:
        write_result(args.result, manifest(sha256=SHA256, rows=rows))


def _blind() -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Give sealed items and the groups that each is in."""
    for item in items():
        yield item, ("corrected" if item["id"] <= NUM_CORRECTED else "not corrected", item["kind"])


def _among(its: Sequence[Natural]) -> Iterator[tuple[dict[str, Any], tuple[str, ...]]]:
    """Give items among other statements, and their groups."""
    for item in sorted(its, key=lambda item: not item.is_correction):
        name = "corrected" if item.is_correction else "not corrected"
        yield item.among(its, random.Random(item.question)).as_blind(), (name, item.form)


if __name__ == "__main__":
    main()

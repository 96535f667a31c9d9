"""Makes the weights of `embodied_mem/memory/supersession.py` from generated statements, and scores them.

    python experiments/package_data/supersession.py            # trees of the training topics; accuracies by part
    python experiments/package_data/supersession.py --score    # accuracies of the weights that are there

`experiments/dialogues/corrections.txt` has the topics: older statements, newer ones that correct them, newer ones that
do not. Topics and values are in one part each: `dev` chose number and depth of the trees, which are then made of
`train` and `dev`; `held` is reported. A scene is a topic among statements of other topics by several people. To these
come the items of `corrections_natural.txt`, with other people and, in part, said in fewer words, and its conversations,
in which nothing replaces anything; with `--written train` also those of `corrections_written.txt`.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from embodied_mem.atomic_file import replacing
from embodied_mem.memory import supersession
from embodied_mem.memory.supersession import chances, features, statement
from embodied_mem.memory.words import content_words
from experiments.dialogues.corrections import (
    HALVES,
    MORE_ITEMS,
    NATURAL_NAMES,
    WRITTEN_PARTS,
    Natural,
    chats,
    natural_items,
    written_items,
)

TOPICS = pathlib.Path(__file__).parents[1] / "dialogues" / "corrections.txt"
PARTS = ("train", "train", "train", "dev", "held")
FIELD = re.compile(r"\{(\w+?)(2?)\}")
_MAX_FILLERS = 9


class Topic(NamedTuple):
    """Statements about one thing.

    Attributes:
        section: of the file; statements of other sections have nothing to do with these.
        old: older statements.
        new: statements that correct them.
        other: statements that do not.
        question: about it.
    """

    section: str
    old: list[str]
    new: list[str]
    other: list[str]
    question: str


class Scene(NamedTuple):
    """Statements in order; the last one is judged.

    Attributes:
        turns: (speaker, text); the speaker of the last one is "".
        targets: positions that the last one corrects.
        is_elliptic: whether the last one shares no word with meaning with what it is about.
        topic: what the last one is of.
        question: about the topic.
    """

    turns: list[tuple[str, str]]
    targets: list[int]
    is_elliptic: bool
    topic: Topic
    question: str


def read() -> tuple[dict[str, list[str]], dict[str, list[Topic]]]:
    """Read lists of values, and the topics of each part."""
    lists: dict[str, list[str]] = {}
    topics: dict[str, list[Topic]] = {part: [] for part in PARTS}
    section, count, forms = "", 0, list[str]()
    for line in TOPICS.read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            name, _, values = line[1:].partition(" = ")
            lists[name] = values.split(" | ")
        elif line.startswith("#"):
            section = line
        elif line.startswith("&"):
            forms = line[2:].split(" | ")
        elif line:
            old, _, rest = line.partition(" => ")
            rest, _, question = rest.rpartition(" ? ")
            new, _, other = rest.partition("! ")
            new = new.strip()
            fields = [field for field in FIELD.findall(old.split(" | ")[0]) if field[1] == ""]
            if fields and f"{{{fields[-1][0]}2}}" in new:
                own = {"old": f"{{{fields[-1][0]}}}", "new": f"{{{fields[-1][0]}2}}"}
                mine = [form for i, form in enumerate(forms) if PARTS[i % len(PARTS)] == PARTS[count % len(PARTS)]]
                new += " | ".join(["", *(form.format(**own) for form in random.Random(count).sample(mine, 3))])
            rows = [[one.strip() for one in part.split(" | ") if one.strip()] for part in (old, new, other)]
            topics[PARTS[count % len(PARTS)]].append(Topic(section, *rows, question))
            count += 1
    return lists, topics


def scenes(part: str, count: int, seed: int) -> Iterator[Scene]:
    """Make scenes of a part."""
    rng, (lists, topics) = random.Random(f"{part} {seed}"), read()
    values = {
        name: [v for i, v in enumerate(its) if PARTS[i % len(PARTS)] == part or len(its) < 10]
        for name, its in lists.items()
    }
    mine = topics[part]
    for _ in range(count):
        yield _scene(rng, values, mine, rng.choice(mine))


TALK = (
    "Good morning.",
    "Hi there.",
    "By the way:",
    "Listen,",
    "Oh,",
    "Hey robot,",
    "Just so you know,",
    "One more thing.",
)
AFTER = ("Thanks!", "Please remember that.", "Okay?", "Sorry.", "That's all.", "See you later.")
_THIRD = {"I'm": "is", "I": "", "I'll": "will", "I've": "has", "I'd": "would", "My": "'s"}
_ASKS = ("Is it true that", "Do you think that")
_VERBS = {"have": "has", "do": "does", "don't": "doesn't", "was": "was", "am": "is", "can": "can", "can't": "can't"}


def _of_another(text: str, who: str) -> str | None:
    """Retell the speaker's text as about another; None for hard texts."""
    first, _, rest = text.partition(" ")
    verb, _, more = rest.partition(" ")
    if first not in _THIRD or not more or " my " in rest or " I " in rest or " me " in rest:
        return None
    if first == "My":
        return f"{who}'s {rest}"
    if first != "I":
        return f"{who} {_THIRD[first]} {rest}"
    if verb in _VERBS:
        return f"{who} {_VERBS[verb]} {more}"
    return f"{who} {verb}{'' if verb.endswith('ed') else 'es' if verb.endswith(('s', 'sh', 'ch')) else 's'} {more}"


class Fields:
    """Draws values for fields, each value once in a scene."""

    def __init__(self, rng: random.Random, values: dict[str, list[str]]):
        self._rng, self._values = rng, values
        self._gone: dict[str, set[str]] = {}

    def fill(self, text: str, mine: dict[str, str]) -> str:
        """Fill the fields of a form; `mine` keeps what was drawn."""

        def value(match: re.Match[str]) -> str:
            name, key = match[1], match[0]
            if key not in mine:
                gone = self._gone.setdefault(name, set())
                mine[key] = self._rng.choice([v for v in self._values[name] if v not in gone] or self._values[name])
                gone.add(mine[key])
            return mine[key]

        text = FIELD.sub(value, text)
        return text[0].upper() + text[1:]

    def dress(self, text: str) -> str:
        """Add talk to a sentence now and then, or write it carelessly."""
        draw = self._rng.random()
        if draw < 0.08:
            before = self._rng.choice(TALK)
            return f"{before} {text if before[-1] == '.' or text[0] == 'I' else text[0].lower() + text[1:]}"
        if draw < 0.14:
            return f"{text} {self._rng.choice(AFTER)}"
        return text.lower().rstrip(".") if draw < 0.2 else text


def fill_topic(
    topic: Topic, lists: dict[str, list[str]], rng: random.Random
) -> tuple[list[tuple[str, str]], int, int, str]:
    """Fill a topic: turns, positions of answer and old statement, question."""
    fields, draws = Fields(rng, lists), dict[str, str]()
    turns = [("", fields.fill(rng.choice(topic.old), draws))]
    turns += [("", fields.fill(one, {})) for one in rng.sample(topic.other, min(len(topic.other), rng.randrange(3)))]
    if topic.new and rng.random() < 0.25:
        turns.append(("", fields.fill(rng.choice(topic.new), draws)))
        return turns, len(turns) - 1, 0, fields.fill(topic.question, draws)
    return turns, 0, 0, fields.fill(topic.question, draws)


def _scene(rng: random.Random, values: dict[str, list[str]], topics: list[Topic], topic: Topic) -> Scene:
    fields, draws = Fields(rng, values), dict[str, str]()
    fill = fields.fill
    old, kind = fill(rng.choice(topic.old), draws), rng.random()
    who = rng.choice([rng.choice(values["name"]), f"My {rng.choice(values['kin'])}"])
    middle = []
    others = [*topic.other, *([topic.question] if rng.random() < 0.2 else [])]
    if topic.new and rng.random() < 0.1:
        questions = [
            f"{_ASKS[one[0] == 'I']} {one[0].lower() + one[1:]}" for one in (*topic.new, *topic.old) if one[-1] == "."
        ]
        others += [f"{rng.choice(questions).replace(' i ', ' I ')[:-1]}?"] if questions else []
    if topic.new and kind < 0.56:
        last = fill(rng.choice(topic.new), draws)
        if rng.random() < 0.15:
            middle = [last]
            draws = {name: value for name, value in draws.items() if not name.endswith("2}")}
            last = fill(rng.choice(topic.new), draws)
    else:
        last = fill(rng.choice(others or topic.old), draws)
        draw = rng.random()
        if topic.new and old.startswith("I ") and draw < 0.1:
            last = fill(f"Do {rng.choice([*topic.new, old])}", draws).rstrip(".") + "?"
        elif topic.new and draw < 0.4:  # the same of another person, in place of either
            turns = fill(rng.choice(topic.new), draws)
            if rng.random() < 0.5 and (variant := _of_another(turns, who)) is not None:
                last = variant
            elif (variant := _of_another(old, who)) is not None:
                old, last = variant, turns
    is_new = bool(topic.new) and kind < 0.56
    is_elliptic = set(content_words(old)).isdisjoint(content_words(last))
    more = [fill(rng.choice(others), draws)] if others and rng.random() < 0.15 else []
    if topic.other and rng.random() < 0.1:  # a list of alike statements
        form = rng.choice(topic.other)
        more += [fill(form, dict(draws) if "2}" not in form else {}) for _ in range(rng.randrange(2, 7))]
    fillers = []
    for other in rng.sample(topics, min(len(topics), rng.randrange(_MAX_FILLERS))):
        if other is not topic and (other.section != topic.section or rng.random() < 0.3):
            forms = other.old + other.other + ([*other.new, other.question] if rng.random() < 0.3 else [])
            fillers.append(("" if rng.random() < 0.75 else rng.choice(values["name"]), fill(rng.choice(forms), {})))
    dress = fields.dress
    if fillers and rng.random() < 0.08:
        own = dress(f"{old} {fillers.pop()[1]}" if rng.random() < 0.5 else f"{fillers.pop()[1]} {old}")
    else:
        own = dress(old)
    between = rng.choice((0, 0, 0, 0, 1, 1, 2)) if is_elliptic else rng.randrange(len(fillers) + 1)
    after = [(speaker, text, False) for speaker, text in fillers[len(fillers) - between :] if between]
    for text, is_it in [*((text, True) for text in middle), *((text, False) for text in more)]:
        after.insert(rng.randrange(len(after) + 1), ("", dress(text), is_it))
    before = [(speaker, text, False) for speaker, text in fillers[: len(fillers) - between]]
    order = [*before, ("", own, True), *after]
    targets = [i for i, (*_, is_it) in enumerate(order) if is_it and is_new]
    turns = [(speaker, text) for speaker, text, _ in order]
    return Scene([*turns, ("", dress(last))], targets, is_elliptic, topic, fill(topic.question, draws))


class Pairs(NamedTuple):
    """A statement, the speaker's earlier ones, their distances, and which of them it replaces."""

    new: str
    olds: list[str]
    distances: list[int]
    targets: list[bool]

    def features(self) -> np.ndarray:
        """Make features of all pairs."""
        return features(statement(self.new), [statement(old) for old in self.olds], self.distances)


def pairs_at(turns: list[tuple[str, str]], at: int, targets: Collection[tuple[int, int]] = ()) -> Pairs:
    """Pair a statement with the speaker's earlier ones."""
    its = [i for i in range(at) if turns[i][0] == turns[at][0]]
    olds, distances = [turns[i][1] for i in its], [at - i for i in its]
    return Pairs(turns[at][1], olds, distances, [(at, i) in targets for i in its])


def scene_pairs(part: str, count: int, seed: int) -> Iterator[tuple[Scene, Pairs]]:
    """Make scenes of a part, and the pairs of their last statements."""
    for scene in scenes(part, count, seed):
        at = len(scene.turns) - 1
        yield scene, pairs_at(scene.turns, at, {(at, i) for i in scene.targets})


def table(rows: Sequence[Pairs]) -> tuple[np.ndarray, np.ndarray]:
    """Make features and labels of pairs."""
    rows = [row for row in rows if row.olds]
    return np.concatenate([row.features() for row in rows]), np.array([y for row in rows for y in row.targets])


_FRAGMENTS = (
    "{0}.", "{0}, please.", "{0}, actually.", "No, {1}.", "{0} instead.", "Make it {1}.", "Sorry, {1}.",
    "Not that, {1}.", "{0} is better.", "{0}, I mean.", "I meant {1}.", "It should be {1}.", "Let's say {1}.",
    "{0} will do.",
)  # fmt: skip
_GUESSES = (
    "Maybe {0}.", "What if {0}?", "I wonder whether {0}.", "{1} says {0}.", "{1} thinks that {0}.", "If {0}, tell me.",
    "{1} heard that {0}.", "Would it be better if {0}?", "I dreamt that {0}.", "{1} would like it if {0}.",
    "Perhaps {0} one day.", "{1} asked whether {0}.",
)  # fmt: skip
_WITH_CUE = ("Actually, {1}.", "{0} now.", "Sorry, {1}.", "{0}, not what I said before.", "Correction: {1}.", "{0}.")
_VALUES = [
    sorted(its) for its in (supersession._NUMBERS - {"half", "quarter", "dozen", "hundred"}, supersession._COLORS)
]
_VALUES.append(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])
_NATURAL_REPEATS, _WRITTEN_REPEATS, _MAX_COMPANY = 15, 4, 6


def item_pairs(its: Sequence[Natural], repeats: int, seed: int = 0) -> list[Pairs]:
    """Make pairs of items, each several times."""
    rng = random.Random(seed)
    things = sorted({thing for item in its if (thing := _thing(item))})
    rows = list[Pairs]()
    for item in its:
        for _ in range(repeats):
            one = _with_names(_variant(item, things, rng), rng).among(its, rng, most=_MAX_COMPANY, is_near=True)
            last = max(one.right, one.wrong)
            targets = {(last, min(one.right, one.wrong))} if one.is_correction else set()
            ats = [at for at in range(1, len(one.turns)) if at == last or rng.random() < 0.4]
            rows += [pairs_at(one.turns, at, targets) for at in ats]
    return rows


def chat_pairs(its: Sequence[Sequence[tuple[str, str]]], repeats: int = 5) -> list[Pairs]:
    """Make pairs of conversations, begun anywhere."""
    rng, rows = random.Random(0), list[Pairs]()
    for chat in its:
        for _ in range(repeats):
            first = rng.randrange(len(chat))
            turns = [*chat[first:], *chat[:first]]
            rows += [pairs_at(turns, at) for at in range(1, len(turns))]
    return rows


def _with_names(item: Natural, rng: random.Random) -> Natural:
    """Give the people of an item other names."""
    names = dict(zip(NATURAL_NAMES, rng.sample(NATURAL_NAMES, len(NATURAL_NAMES))))
    pattern = re.compile(rf"\b(?:{'|'.join(NATURAL_NAMES)})\b")
    turns = [(names.get(who, who), pattern.sub(lambda name: names[name[0]], text)) for who, text in item.turns]
    return item._replace(turns=turns)


def _guess(item: Natural, rng: random.Random) -> Natural:
    """Make a guess or report of a correction, or of another person."""
    turns, (who, new) = list(item.turns), item.turns[item.right]
    other, text = rng.choice(NATURAL_NAMES), None
    if rng.random() < 0.5:
        text = _of_another(new, other)
    if text is None:
        low = new if new.split()[0] in ("I", "I'm", "I've") else new[0].lower() + new[1:]
        text = rng.choice(_GUESSES).format(low.rstrip(".!"), other)
    turns[item.right] = who, text
    return item._replace(turns=turns, form="c:guess", right=item.wrong, wrong=item.right)


def _variant(item: Natural, things: list[str], rng: random.Random) -> Natural:
    """Leave an item as it is, or make a similar one.

    It is said in fewer words, of another thing, or what is new is only thought, or so of another person or thing.
    """
    if not item.is_correction or item.form in ("ell", "pro") or (draw := rng.random()) < 0.4:
        return item
    if draw < 0.55:
        return _guess(item, rng)
    thing = _thing(item)
    if draw < 0.8 and thing:
        pattern, other = re.compile(rf"\b{thing}", re.IGNORECASE), rng.choice([one for one in things if one != thing])
        turns = list(item.turns)
        turns[item.right] = turns[item.right][0], pattern.sub(other, turns[item.right][1])
        if draw < 0.7:
            return item._replace(turns=turns, form="c:other", right=item.wrong, wrong=item.right)
        turns[item.wrong] = turns[item.wrong][0], pattern.sub(other, turns[item.wrong][1])
        return item._replace(turns=turns)
    return _in_fewer_words(item, rng)


def _thing(item: Natural) -> str:
    """Return the longest word of both statements; empty for none."""
    olds, news = (
        {word for word in re.findall(r"[a-z]{4,}", item.turns[at][1].lower())} for at in (item.wrong, item.right)
    )
    common = [word for word in olds & news if supersession._topics([word]) and word.title() not in NATURAL_NAMES]
    return max(sorted(common), key=len, default="")


def _in_fewer_words(item: Natural, rng: random.Random) -> Natural:
    """Say only what is new, or change only a value."""
    who, old = item.turns[item.wrong]
    olds, news = old.rstrip(".!").split(), item.turns[item.right][1].rstrip(".!").split()
    same = next((i for i, (a, b) in enumerate(zip(olds, news)) if a != b), min(len(olds), len(news)))
    turns, form = list(item.turns), item.form
    places = [(i, its) for i, word in enumerate(olds) for its in _VALUES if word.lower().rstrip("s,") in its]
    if same >= 3 and len(news) > same and rng.random() < 0.5:
        rest, forms, form = " ".join(news[same:]), _FRAGMENTS, "ell"
    elif places:
        at, its = rng.choice(places)
        value = rng.choice([one for one in its if one != olds[at].lower()])
        value = value.title() if olds[at][0].isupper() else value
        if rng.random() < 0.6:
            rest, forms, form = " ".join([value, *olds[at + 1 : at + 1 + rng.randrange(2)]]), _FRAGMENTS, "ell"
        else:
            rest, forms = " ".join([*olds[:at], value, *olds[at + 1 :]]), _WITH_CUE
    else:
        return item
    low = rest if rest.split()[0] in ("I", "I'm", "I've") else rest[0].lower() + rest[1:]
    turns[item.right] = who, rng.choice(forms).format(rest[0].upper() + rest[1:], low)
    if form == "ell":
        turns = [one for at, one in enumerate(turns) if not item.wrong < at < item.right]
    return item._replace(turns=turns, form=form, right=item.wrong + 1 if form == "ell" else item.right)


def score(part: str, count: int, seed: int, should_print: bool = False) -> dict[str, float]:
    """Judge scenes: right is to name what is corrected and nothing else."""
    rows: dict[str, list[bool]] = {}
    for scene, row in scene_pairs(part, count, seed):
        olds = [statement(old) for old in row.olds]
        chance = chances(statement(row.new), olds, row.distances)
        its = [i for i, (who, _) in enumerate(scene.turns[:-1]) if not who]
        matches = [i for i, p in zip(its, chance) if p >= supersession.FIRST]
        kind = "corrected" if scene.targets else "not corrected"
        is_right = matches == scene.targets
        rows.setdefault(kind, []).append(is_right)
        rows.setdefault("of these, old one named" if scene.targets else "of these, other topic named", []).append(
            set(scene.targets) <= set(matches) if scene.targets else bool(matches)
        )
        if scene.targets:
            rows.setdefault("of these, another named", []).append(not set(matches) <= set(scene.targets))
        if should_print and not is_right:
            print(
                scene.turns[-1][1],
                "|",
                *(
                    f"[{scene.turns[i][1]}] {p:.2f}{'*' if i in scene.targets else ''}"
                    for i, p in zip(its, chance)
                    if p > 0.3 or i in scene.targets
                ),
            )
    return {name: float(np.mean(its)) for name, its in rows.items()} | {"count": count}


def fit(num_trees: int, depth: int, rate: float, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Fit boosted trees and return them as full trees of one depth."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=num_trees, max_depth=depth, learning_rate=rate, min_samples_leaf=150, l2_regularization=5.0,
        max_features=0.3, early_stopping=False, random_state=0,
    ).fit(x, y)  # fmt: skip
    feature = np.zeros((num_trees, 2**depth - 1), int)
    limit = np.full((num_trees, 2**depth - 1), 1e9)
    leaf = np.zeros((num_trees, 2**depth))

    def put(nodes: Any, at: int, tree: int, place: int, level: int) -> None:
        node = nodes[at]
        if level == depth:
            leaf[tree, place - (2**depth - 1)] = node["value"]
        elif node["is_leaf"]:
            put(nodes, at, tree, 2 * place + 1, level + 1)
        else:
            feature[tree, place], limit[tree, place] = node["feature_idx"], node["num_threshold"]
            put(nodes, node["left"], tree, 2 * place + 1, level + 1)
            put(nodes, node["right"], tree, 2 * place + 2, level + 1)

    for tree, (predictor,) in enumerate(model._predictors):
        put(predictor.nodes, 0, tree, 0, 0)
    return {
        "bias": float(model._baseline_prediction.ravel()[0]), "depth": depth, "feature": feature.tolist(),
        "limit": [[float(f"{v:.5g}") for v in row] for row in limit],
        "leaf": [[round(v, 4) for v in row] for row in leaf],
    }  # fmt: skip


def main() -> None:
    """Fit or score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--misses", action="store_true", help="print what is wrong in `dev`")
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=HALVES, help="of the natural items")
    parser.add_argument(
        "--written",
        nargs="*",
        choices=WRITTEN_PARTS,
        default=[],
        help="parts of the written items, which the shipped trees did not learn",
    )
    parser.add_argument("--scenes", type=int, default=10000)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--rate", type=float, default=0.06)
    args = parser.parse_args()
    if not args.score:
        rows = [row for part, share in (("train", 1), ("dev", 0.33))
                for _, row in scene_pairs(part, int(share * args.scenes), 0)]  # fmt: skip
        for half in args.halves:
            rows += item_pairs(natural_items(half), _NATURAL_REPEATS)
        for part in args.written:
            rows += item_pairs(written_items(part), _WRITTEN_REPEATS)
        rows += chat_pairs([*chats(), *(chats(MORE_ITEMS) if args.written else [])])
        weights = fit(args.trees, args.depth, args.rate, *table(rows))
        with replacing(supersession.WEIGHTS) as temporary:
            temporary.write_text(json.dumps(weights, separators=(",", ":")) + "\n")
    for part in ("train", "dev", "held"):
        print(part, score(part, 1000, 1, args.misses and part == "dev"))


if __name__ == "__main__":
    main()

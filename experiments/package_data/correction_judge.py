"""Makes the weights of `embodied_mem/models/correction_judge.py`: low-rank updates of MiniLM that judge corrections.

    python experiments/package_data/correction_judge.py                        # the weights that ship
    python experiments/package_data/correction_judge.py --halves train --written train --out judge.safetensors

The second learns without the natural items' half `dev` and without the written part `held`, and scores both: how many
corrections are found at a limit that marks a given share of the statements that only look like corrections.

Data are those of `supersession.py`: scenes, natural items with variants, written items, conversations. To these come
statements said again with another value, statements of the same form about other things, and unrelated ones. An epoch
draws all of them anew. A pair is a statement with what it replaces, or with one of up to two that it does not.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import save_file

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from embodied_mem.atomic_file import replacing
from embodied_mem.memory.words import content_words
from embodied_mem.models.correction_judge import (
    WEIGHTS,
    CorrectionJudge,
    logits,
    pair_arrays,
    pair_text,
    with_adapter,
)
from embodied_mem.models.sentence_encoders import SentenceEncoder
from embodied_mem.progress import Progress
from experiments.dialogues.corrections import (
    HALVES,
    MORE_ITEMS,
    WRITTEN_PARTS,
    Natural,
    chats,
    natural_items,
    written_items,
)
from experiments.package_data.supersession import (
    AFTER,
    FIELD,
    TALK,
    Fields,
    Pairs,
    chat_pairs,
    item_pairs,
    pairs_at,
    read,
    scene_pairs,
)

_NUM_SCENES, _NUM_RESTATEMENTS, _NUM_OTHER_THINGS, _NUM_UNRELATED = 2500, 1500, 2500, 5000
_REPEATS, _MAX_OTHERS, _SMOOTHING = 5, 2, 0.02
_MANY = re.compile(
    r"""\b(?:I|We|They|you)[ ](?:(?:really|just|also)[ ])?(?:like|love|hate|want|eat|drink|own|have|can|can't|prefer
    |need|bought|enjoy|know|play|speak|collect|am|use|take|add)\b
    | ^(?:I'm|Add|Buy|There|Never|Don't|Please|Keep|No|Pack|Put)[ ] | favou?rite | and[ ]I[ ] | allerg | says
    | \{name\}[ ](?:likes|loves|has|is[ ](?:tall|single|here)|can|hates|owns)""",
    re.VERBOSE,
)
"""Forms of which two with different values are both true."""
_KINDS, _SLOT = ("allergen", "food", "drink", "music", "thing"), re.compile("breakfast|morning|pizza|only|as |usual")
_HARMS = (0.05, 0.1, 0.2)

Row = tuple[tuple[str, str], float]
"""((older, newer), whether the newer replaces the older)."""


def epochs(halves: Sequence[str], parts: Sequence[str], seed: int) -> Iterator[list[Row]]:
    """Yield the rows of an epoch, in random order."""
    rng, epoch = random.Random(seed), 0
    natural = [item for half in halves for item in natural_items(half)]
    more = [item for part in parts for item in written_items(part)]
    talks = [*chats(), *chats(MORE_ITEMS)]
    while True:
        rows = item_pairs(natural, _REPEATS, epoch) + item_pairs(more, 1, epoch) + chat_pairs(talks, 1)
        for part in ("train", "dev")[: len(halves)]:
            rows += [row for _, row in scene_pairs(part, _NUM_SCENES, 100 + epoch)]
            rows += [*restatements(part, _NUM_RESTATEMENTS, epoch), *of_other_things(part, _NUM_OTHER_THINGS, epoch)]
        pairs = [one for row in rows for one in _rows_of(row, rng)]
        pairs += unrelated_pairs([*natural, *more], _NUM_UNRELATED, rng)
        rng.shuffle(pairs)
        yield pairs
        epoch += 1


def restatements(part: str, count: int, seed: int) -> Iterator[Pairs]:
    """Yield statements said again with another value, among others."""
    rng, (lists, topics) = random.Random(f"{part} {seed}"), read()
    forms = [
        (topic, form, fields[-1][0])
        for topic in topics[part] for form in topic.old
        if (fields := [field for field in FIELD.findall(form) if not field[1]]) and not _MANY.search(form)
        and any(f"{{{fields[-1][0]}2}}" in one for one in topic.new)
    ]  # fmt: skip
    for _ in range(count):
        (topic, form, field), (other, another, _) = rng.sample(forms, 2)
        fields, values = Fields(rng, lists), dict[str, str]()
        old, new = (fields.fill(one, values) for one in (form, form.replace(f"{{{field}}}", f"{{{field}2}}")))
        more = [fields.fill(rng.choice([another, *other.old, *other.other, *topic.other]), {}) for _ in range(3)]
        at = rng.randrange(4)
        olds, distances = [*more[:at], old, *more[at:]], [4, 3, 2, 1]
        if rng.random() < 0.2 and topic.other:
            yield Pairs(fields.fill(rng.choice(topic.other), values), olds, distances, [False] * 4)
        else:
            yield Pairs(new, olds, distances, [one == at for one in range(4)])


def of_other_things(part: str, count: int, seed: int) -> Iterator[Pairs]:
    """Yield news of a thing among statements about other things.

    Their form is the same, and they stay true.
    """
    rng, (lists, topics) = random.Random(f"{part} {seed}"), read()
    forms = [
        (topic, form, f"{{{fields[0]}}}")
        for topic in topics[part] for form in topic.old
        if _MANY.search(form) and not _SLOT.search(form)
        and (fields := [name for name, mark in FIELD.findall(form) if not mark and name in _KINDS])
    ]  # fmt: skip
    for _ in range(count):
        topic, form, field = rng.choice(forms)
        fields, its, news = Fields(rng, lists), dict[str, str](), [one for one in topic.new if field in one]
        own = fields.fill(rng.choice(topic.old), its)
        others = [fields.fill(rng.choice([form, *topic.old, *news]), {}) for _ in range(3)]
        is_new = bool(news) and rng.random() < 0.6
        new = fields.fill(rng.choice(news if is_new else [form, *topic.old]), its if is_new else {})
        at = rng.randrange(4)
        yield Pairs(new, [*others[:at], own, *others[at:]], [4, 3, 2, 1], [is_new and one == at for one in range(4)])


def unrelated_pairs(items: Sequence[Natural], count: int, rng: random.Random) -> list[Row]:
    """Pair statements of different topics, half of them with a common word."""
    texts = [(item.topic, text) for item in items for who, text in item.turns if not who]
    texts += [("", talk) for talk in (*TALK, *AFTER)] * (len(texts) // 200)
    with_word: dict[str, list[tuple[str, str]]] = {}
    for topic, text in texts:
        for word in content_words(text):
            with_word.setdefault(word, []).append((topic, text))
    rows: list[Row] = []
    while len(rows) < count:
        topic, old = rng.choice(texts)
        words = content_words(old)
        other, new = rng.choice(with_word[rng.choice(words)] if words and rng.random() < 0.5 else texts)
        if topic and topic != other:
            rows.append(((pair_text(old, rng.randrange(1, 9)), new), 0.0))
    return rows


def _rows_of(row: Pairs, rng: random.Random) -> list[Row]:
    right, others = ([at for at, its in enumerate(row.targets) if its == one] for one in (True, False))
    ats = right + rng.sample(others, min(len(others), _MAX_OTHERS if right else 1))
    return [((pair_text(row.olds[at], row.distances[at]), row.new), float(row.targets[at])) for at in ats]


def batches(rows: Iterator[list[Row]], size: int, seed: int) -> Iterator[list[Row]]:
    """Yield batches; pairs of like length run together."""
    rng, pool, chunk = random.Random(seed), list[Row](), 4 * size
    while True:
        while len(pool) < chunk:
            pool += next(rows)
        its, pool = sorted(pool[:chunk], key=lambda row: len(row[0][0]) + len(row[0][1])), pool[chunk:]
        groups = [its[at : at + size] for at in range(0, chunk, size)]
        rng.shuffle(groups)
        yield from groups


def train(encoder: SentenceEncoder, args: argparse.Namespace) -> dict[str, np.ndarray]:
    """Train and return the adapter."""
    params, settings, rng = encoder.params, encoder.settings, np.random.default_rng(args.seed)
    width = params["embeddings.LayerNorm.weight"].shape[0]
    adapter = {"head.weight": jnp.asarray(rng.normal(0, 0.02, 2 * width), jnp.float32), "head.bias": jnp.zeros(())}
    for name, matrix in params.items():
        if name.startswith("encoder.layer.") and matrix.ndim == 2:
            out, into = matrix.shape
            adapter[f"{name}.a"] = jnp.asarray(rng.normal(0, into**-0.5, (args.rank, into)), jnp.float32)
            adapter[f"{name}.b"] = jnp.zeros((out, args.rank))
        elif matrix.ndim == 1 or "token_type" in name:
            adapter[name] = matrix
    rate = optax.warmup_cosine_decay_schedule(0, args.rate, 100, args.steps, 0.02 * args.rate)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=0.01))

    def loss(adapter: Mapping[str, jax.Array], arrays: Any, y: jax.Array) -> jax.Array:
        z = logits(with_adapter(params, adapter), adapter, *arrays, **settings)
        return optax.sigmoid_binary_cross_entropy(z, y * (1 - 2 * _SMOOTHING) + _SMOOTHING).mean()

    @jax.jit
    def step(adapter: Any, state: Any, arrays: Any, y: jax.Array) -> Any:
        value, gradient = jax.value_and_grad(loss)(adapter, arrays, y)
        updates, state = optimizer.update(gradient, state, adapter)
        return optax.apply_updates(adapter, updates), state, value

    state, mean = optimizer.init(adapter), 0.0
    stream = batches(epochs(args.halves, args.written, args.seed), args.batch, args.seed)
    with Progress("judge", args.steps, unit="step") as progress:
        for number in range(1, args.steps + 1):
            rows = next(stream)
            arrays = pair_arrays(encoder.tokenizer, [pair for pair, _ in rows], len(rows))
            adapter, state, value = step(adapter, state, arrays, np.array([y for _, y in rows], np.float32))
            mean = 0.98 * mean + 0.02 * float(value)
            progress.update(loss=mean / (1 - 0.98**number))
    return {name: np.asarray(value, np.float16) for name, value in adapter.items()}


def score(judge: CorrectionJudge, items: Sequence[Natural]) -> dict[str, float]:
    """Give the shares of corrections and of others above limits."""
    scores, others = [], []
    for item in items:
        one = item.among(items, random.Random(item.question + item.turns[-1][1]))
        last = max(one.right, one.wrong)
        row = pairs_at(one.turns, last, {(last, min(one.right, one.wrong))} if item.is_correction else ())
        if row.olds:
            chances = np.array(judge.chances(row.new, row.olds, row.distances))
            if not item.is_correction:
                others.append(chances.max())
            elif any(row.targets):
                scores.append(chances[row.targets].max())
    limits = {f"{100 * harm:.0f} % of others marked": float(np.quantile(others, 1 - harm)) for harm in _HARMS}
    return {name: round(float(np.mean(np.array(scores) > limit)), 3) for name, limit in limits.items()} | {
        "at 0.5": round(float(np.mean(np.array(scores) > 0.5)), 3),
        "of others at 0.5": round(float(np.mean(np.array(others) > 0.5)), 3),
    }


def main() -> None:
    """Train and score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=WEIGHTS)
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=HALVES, help="of the natural items")
    parser.add_argument("--written", nargs="+", choices=WRITTEN_PARTS, default=WRITTEN_PARTS, help="written items")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    encoder = SentenceEncoder.load()
    adapter = train(encoder, args)
    with replacing(args.out) as temporary:
        save_file(adapter, temporary, {"encoder": encoder.name})
    judge = CorrectionJudge.of(encoder.name, encoder.params, encoder.tokenizer, encoder.settings, args.out)
    assert judge is not None
    for half in sorted(set(HALVES) - set(args.halves)):
        print(f"natural {half}", score(judge, natural_items(half)))
    for part in sorted(set(WRITTEN_PARTS) - set(args.written)):
        print(f"written {part}", score(judge, written_items(part)))


if __name__ == "__main__":
    main()

"""The content of soft tokens: a linear probe reads the place of the goal's object from those of the first step.

    python experiments/analyses/soft_probe.py --weights experiments/weights/habits \\
        --result experiments/results/soft_probe.json               # needs the extra `pictures`

The means of the soft tokens of the first step are read for training games, and for held-out games: in homes that no
training game is of, where the weights' world has such. The place is where the rule teacher finds the object, kind and
number. A multinomial logistic regression on the `--components` main directions learns from the training games; how much
it is regularised, and how much it relies on how frequent places are, is chosen on a fifth of their rooms. Scored on the
held-out games:

- accuracy for the place, its kind and its number, against always saying the place that is most frequent in training,
  and against the same probe trained on soft tokens of other rows (`shuffled`);
- bits: entropy of the place on the held-out games minus cross-entropy of the probe there, a lower bound of the mutual
  information; with a 95 % bootstrap interval over games. The entropy is that of a few games, so too small; how much is
  seen by the bits of `majority`, who says how frequent places are in training and would have none;
- `guidance`: how often the compiler's own text names the place, and `teacher`: how often the teacher's does, from the
  same experiences. Soft tokens cannot hold more of the place than memory does.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from embodied_mem.errors import MissingDependencyError
from embodied_mem.evaluation.command import add_model_options, models_of, output_file
from embodied_mem.evaluation.intervals import wilson

REGULARISATION = (0.01, 0.1, 1.0)
PRIOR = (0.02, 0.1, 0.3, 0.6, 1.0)
"""Shares that the probe may leave to how frequent places are in training, so that bits are finite and it need not be
surer than it is right."""

BATCH = 64


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Compiles, fits, scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--weights", default="experiments/weights/habits", help="folder with config.json and weights")
    add("--num_train", type=int, default=1600, help="training games that the probe learns from")
    add("--num_tasks", type=int, default=0, help="held-out games; default: the weights' own")
    add("--components", type=int, default=128, help="main directions of the soft tokens that the probe reads")
    add("--result", type=output_file, default=pathlib.Path("runs/soft_probe.json"), help="JSON file")
    add_model_options(parser)
    options = parser.parse_args(arguments)
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("the probe needs scikit-learn; pip install 'embodied_mem[pictures]'") from error
    from embodied_mem.evaluation.report import manifest, write_result
    from embodied_mem.models.host import keep_freed_memory, set_gpu_flags

    set_gpu_flags()
    keep_freed_memory()
    bundle = models_of(options).load()
    training, held_out = rows_of_world(bundle, options.num_train, options.num_tasks)
    report = {
        **probe(training, held_out, components=options.components),
        "guidance": accuracy(held_out.guided), "teacher": accuracy(held_out.taught),
        "train_games": len(training.places), "held_out_games": len(held_out.places),
        "train_rooms": len(set(training.rooms)), "held_out_rooms": len(set(held_out.rooms)),
        **manifest(fingerprint=bundle.config.fingerprint(), components=options.components),
    }  # fmt: skip
    write_result(options.result, report)
    print(json.dumps(report))
    return report


class Rows(NamedTuple):
    """First steps of games.

    Attributes:
        soft: float32[B, N * D], means of the soft tokens.
        places: where the goal's object is, "cabinet 4".
        rooms: a name of each game's room.
        guided: whether the compiler's text names that place.
        taught: whether the teacher's does.
    """

    soft: np.ndarray
    places: list[str]
    rooms: list[str]
    guided: list[bool]
    taught: list[bool]


def rows_of_world(bundle: Any, num_train: int, num_tasks: int) -> tuple[Rows, Rows]:
    """Return (training rows, held-out rows) of the world of these weights.

    Each has the memory that models have there.
    """
    from embodied_mem.memory import Experiences
    from embodied_mem.training.tasks import TEACHER_STEPS, bank_of, scoring_bank, sources_of, teach_bank

    config = bundle.config
    [source] = sources_of(config.world, config.seed)
    _, compiler = bundle.acting(temperature=0.0, batch_buckets=(BATCH,))
    train, valid = source.sides()

    def solved(games: Sequence[Any]) -> Experiences:
        envs = source.envs(games, min(BATCH, len(games)), TEACHER_STEPS)
        return bank_of(envs, len(games), lambda i: source.demonstrator(games[i]), seed=config.seed)

    # Spread over all training games, which stand room by room.
    chosen, scored = train[:: max(1, len(train) // num_train)][:num_train], valid[: num_tasks or None]
    return (
        first_steps(source, compiler, config, chosen, teach_bank(config), solved(chosen)),
        first_steps(source, compiler, config, scored, scoring_bank(config), solved(scored)),
    )


def first_steps(source: Any, compiler: Any, config: Any, games: Sequence[Any], bank: Any, solved: Any) -> Rows:
    """Make the rows of these games from the memory in `bank`.

    They have compiler outputs; `solved` tells where things are.
    """
    import jax

    from embodied_mem.agents.rollout import Lockstep
    from embodied_mem.compiler.view import compile_prompt
    from embodied_mem.memory.bank import BankView, relevant_events

    truth = {
        episode.task_id: next((place for _, kind, _, place in relevant_events(episode) if kind == "take"), "")
        for episode, _ in solved.records
    }
    envs = source.envs(games, min(BATCH, len(games)))
    view = BankView(bank, numbered=config.memory.numbered, newest_first=config.memory.newest_first)
    soft: list[np.ndarray] = []
    rows = Rows(np.zeros((0, 0)), [], [], [], [])
    for first in range(0, len(games), BATCH):
        tasks = range(first, min(first + BATCH, len(games)))
        played = Lockstep(envs, tasks, view, config.memory.top_k).rows
        known = [row for row in played if truth.get(row.task_id)]
        if not known:
            continue
        keys = jax.random.split(jax.random.key(0), len(known))
        for row, record in zip(known, compiler.compile([compile_prompt(row.view) for row in known], keys)):
            place = truth[row.task_id]
            lesson = source.teacher().begin(row.view.goal, row.observation, row.view.experiences)
            soft.append(np.asarray(record.soft, np.float32).ravel())
            rows.places.append(place)
            rows.rooms.append(row.view.reader.room(row.observation))
            rows.guided.append(record.output.guidance.endswith(f" in {place}"))
            rows.taught.append(lesson.output.guidance.endswith(f" in {place}"))
    return rows._replace(soft=np.stack(soft))


def probe(training: Rows, held_out: Rows, *, components: int, seed: int = 0) -> dict[str, Any]:
    """Score a linear probe and two that cannot know on held-out rows.

    Those two are the most frequent place, and shuffled rows.
    """
    from sklearn.decomposition import PCA
    from sklearn.preprocessing import StandardScaler

    random = np.random.default_rng(seed)
    scaler = StandardScaler().fit(training.soft)
    pca = PCA(min(components, *training.soft.shape), random_state=seed).fit(scaler.transform(training.soft))
    near, far = (pca.transform(scaler.transform(rows.soft)) for rows in (training, held_out))
    spread = near.std()
    near, far = near / spread, far / spread
    labels = np.asarray(training.places)
    rooms = sorted(set(training.rooms))
    left_out = set(random.permutation(rooms)[: max(1, len(rooms) // 5)].tolist())
    choosing = np.asarray([room in left_out for room in training.rooms])
    every = sorted({*training.places, *held_out.places})

    def fitted(inputs: np.ndarray) -> _Probe:
        """Chosen on the rooms that were left out, then learned from all."""

        def loss(choice: tuple[float, float]) -> float:
            strength, prior = choice
            if strength not in tried:
                tried[strength] = _Probe(inputs[~choosing], labels[~choosing], strength, every)
            return float(tried[strength].bits(inputs[choosing], labels[choosing], prior).mean())

        tried: dict[float, _Probe] = {}
        strength, prior = min(itertools.product(REGULARISATION, PRIOR), key=loss)
        return _Probe(inputs, labels, strength, every, prior)

    truth = np.asarray(held_out.places)
    counts = {place: int((labels == place).sum()) for place in every}
    entropy = _entropy(truth)
    rows = {"probe": fitted(near), "shuffled": fitted(near[random.permutation(len(near))])}
    result: dict[str, Any] = {"entropy_bits": entropy, "places": len(every)}
    for name, one in rows.items():
        bits = entropy - one.bits(far, truth)
        means = bits[random.integers(len(bits), size=(2000, len(bits)))].mean(1)
        result[name] = scored(one.said(far), truth) | {
            "bits": float(bits.mean()), "bits_interval": np.quantile(means, (0.025, 0.975)).tolist(),
            "regularisation": one.strength, "prior": one.prior,
        }  # fmt: skip
    blind = float((entropy - rows["probe"].bits(far, truth, 1.0)).mean())
    most = max(counts, key=lambda place: counts[place])
    result["majority"] = scored(np.full(len(truth), most), truth) | {"bits": blind}
    return result


class _Probe:
    """A multinomial logistic regression, mixed with how frequent places are in training.

    Places of `every` that it has not seen count as seen once.
    """

    def __init__(
        self, inputs: np.ndarray, targets: np.ndarray, strength: float, every: Sequence[str], prior: float = 1.0
    ):
        from sklearn.linear_model import LogisticRegression

        self.strength, self.prior = strength, prior
        self._model = LogisticRegression(C=strength, max_iter=300).fit(inputs, targets)
        counts = {place: 1 + int((targets == place).sum()) for place in every}
        self._frequent = {place: count / sum(counts.values()) for place, count in counts.items()}

    def said(self, inputs: np.ndarray) -> np.ndarray:
        """Return the likeliest place of each row."""
        return np.asarray(self._model.predict(inputs))

    def bits(self, inputs: np.ndarray, targets: np.ndarray, prior: float | None = None) -> np.ndarray:
        """-log2 of the probability of each row's place."""
        share = self.prior if prior is None else prior
        column = {place: number for number, place in enumerate(self._model.classes_)}
        table = self._model.predict_proba(inputs)
        given = np.asarray([table[row, column[t]] if t in column else 0.0 for row, t in enumerate(targets)])
        return -np.log2((1 - share) * given + share * np.asarray([self._frequent[t] for t in targets]))


def scored(said: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """Accuracies of places, their kinds, their numbers."""
    parts = [[str(place).rpartition(" ") for place in places] for places in (said, truth)]
    return {
        what: accuracy([a[part] == b[part] for a, b in zip(*parts)] if part is not None else list(said == truth))
        for what, part in (("place", None), ("kind", 0), ("number", 2))
    }


def accuracy(right: Sequence[bool]) -> dict[str, Any]:
    """Return a share with its interval."""
    share = float(np.mean(right))
    return {"accuracy": share, "interval": list(wilson(share, len(right)))}


def _entropy(labels: np.ndarray) -> float:
    """Return the entropy of the labels' frequencies, in bits.

    It is too small by about (places - 1) / (2 ln 2 rows), so bounds made of it hold.
    """
    _, counts = np.unique(labels, return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


if __name__ == "__main__":
    from embodied_mem.evaluation.command import run

    run(main)

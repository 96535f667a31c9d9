"""The worth of a part of training, by compilers trained beside a finished run's: GRPO and its controls, and ablations.

    python experiments/analyses/arms.py --run runs/habits-... --arms grpo shuffled sft --seeds 0 1 2 \\
        --grpo.steps 40 --out experiments/results/grpo_habits.json
    python experiments/analyses/arms.py --run runs/habits-... --arms no_bank --out experiments/results/no_bank.json
    python experiments/analyses/arms.py --run runs/habits-... --arms ablations --out runs/ablations.json

Arms, trained once per seed, all but `own_none` with the run's executor as it is; `ablations` is all from `no_brief` on:

    grpo      the run's compiler after GRPO
    shuffled  the same with rewards dealt out among all episodes of a batch: no signal, all else equal
    sft       the run's compiler after another round of correction, on its own episodes and as many of the teacher's,
              with as many tokens as the forward and backward passes of GRPO under this seed had
    no_bank   a new compiler, trained as the run's was but with an empty bank; scored with an empty one and the run's
    again     a new compiler, trained as the run's was: under another seed it says what chance alone changes
    own_none  a new executor, trained as the run's was but on prompts without memory alone; scored without any
    commands  the run's compiler, trained on to say the next command, for executors that never read guidance; it has no
              soft tokens, and what it says is carried out by rule
    no_brief  a new compiler that reads goal and action history in place of the Brief State (Table 3 of the paper)
    no_marks  one whose prompt does not mark which memories are used up, nor list where nobody has looked
    soft_N    one with N soft tokens, 0, 4, 8 or 32 (Tables 3 and 4); the executor learned to read with the run's number
    linear    one whose soft tokens are a linear projection and no Gaussian (Table 4)

`--run` is the folder of a run or of weights; of a run with GRPO, the compiler before it is taken. Fields of `grpo` and
`evaluation` can be set as in `train.py`; all else is the run's. Every arm is scored on the same tasks and seeds of play
as `none` and as `before`, the run's own compiler. `--homes 1000` scores in homes that are neither trained in nor those
of the published table: settings are chosen there. Intervals are paired, over tasks, each with its mean over all seeds.

Arms lie in `runs/arms-<fingerprint>/<arm>-<seed>/` with checkpoints. A command that was stopped goes on when it is
given again; one with more arms or seeds trains these alone. Ends with one JSON line.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
import math
import pathlib
import sys
import time
from collections.abc import Sequence

import numpy as np
import tyro

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import EpisodeResult
from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.controls import Setting
from embodied_mem.evaluation.intervals import paired_difference
from embodied_mem.evaluation.report import commit, manifest, write_result
from embodied_mem.evaluation.score import Score, score
from embodied_mem.evaluation.tables import percent
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.parallel.resume import Finished
from embodied_mem.training import loop, sft
from embodied_mem.training.bundle import Bundle, load_bundle, save_bundle
from embodied_mem.training.config import Config
from embodied_mem.training.grpo import train_grpo
from embodied_mem.training.loop import read_metrics
from embodied_mem.training.models import CompilerModel
from embodied_mem.training.run_folder import claim_run
from embodied_mem.training.tasks import follower_of, make_tasks, scoring_bank, sources_of, teach_bank
from embodied_mem.training.teachers.episodes import Sample
from embodied_mem.training.teachers.games import Games

ABLATIONS: dict[str, dict[str, dict[str, object]]] = {
    "no_brief": {"data": {"no_brief": 1.0}},
    "no_marks": {"memory": {"compiler_marks": False}},
    **{f"soft_{count}": {"memory": {"num_soft": count}} for count in (0, 4, 8, 32)},
    "linear": {"memory": {"projection": "linear"}},
}
CONTROLS: dict[str, dict[str, dict[str, object]]] = {
    "no_bank": {"data": {"banks": ("empty",)}},
    "again": {},
    "own_none": {"data": {"without_memory": True}},
    "commands": {"data": {"commands": True}, "memory": {"num_soft": 0}},
}
"""Arm -> part of the configuration -> what differs from the run's, in both."""

FURTHER = ("grpo", "shuffled", "sft")
ARMS = (*FURTHER, *CONTROLS, *ABLATIONS)
CURVES = ("won", "equal_share", "text_entropy", "soft_entropy", "text_kl_to_start", "soft_kl_to_start", "grad_norm")
"""Metrics of GRPO that the result keeps, a value per step."""

MEASURED = 500
"""Teacher's samples whose length is taken for that of all."""


class Study:
    """The arms of one run.

    Args:
        bundle: executor and compiler that all arms begin with; its configuration has the settings of GRPO.
        folder: of all arms.
        bank_file: the run's bank; played anew, into `folder`, where there is none.
        homes: seed of the homes that are scored; None: the run's held-out ones.
    """

    def __init__(self, bundle: Bundle, folder: pathlib.Path, bank_file: pathlib.Path, homes: int | None = None):
        self.bundle, self._folder = bundle, folder
        config = bundle.config
        self._seed = config.seed
        self.tasks = make_tasks(config)
        path = bank_file if bank_file.exists() else folder / "bank.jsonl.gz"
        folder.mkdir(parents=True, exist_ok=True)
        self._bank = teach_bank(config, path, self.tasks)
        scored = config if homes is None else dataclasses.replace(config, seed=homes)
        self.scored = self.tasks if homes is None else make_tasks(scored)
        self.scored_with = scoring_bank(scored, "" if config.world.homes else path, self.tasks)
        self._started, self._trained = time.perf_counter(), 0

    def folder(self, arm: str, seed: int) -> pathlib.Path:
        """Return the folder of an arm."""
        return self._folder / f"{arm}-{seed}"

    @functools.cached_property
    def _samples(self) -> list[Sample]:
        return self._games(self.bundle.config).lessons().samples

    def _games(self, config: Config) -> Games:
        taught = config.data.commands and make_tasks(dataclasses.replace(config, seed=self._seed))
        return Games(config, taught or self.tasks, self._bank)

    def train(self, arm: str, seed: int) -> Bundle:
        """Return the models of an arm, trained on from where they are.

        Of a finished arm its weights are enough.
        """
        base, steps, weights = self.bundle.config, 0, self.folder(arm, seed) / "weights"
        if (weights / "weights.safetensors").is_file():
            finished = load_bundle(weights)
            config = dataclasses.replace(finished.config, evaluation=base.evaluation)
            return dataclasses.replace(finished, config=config)
        if arm == "sft":
            steps = steps_of(self.tokens("grpo", seed), self._samples, self.bundle.tokenizer, base)
        config = config_of(arm, seed, base, steps)
        folder, games = self.folder(arm, seed), self._games(config)
        claim_run(folder, config)
        training = loop.Run(config, self.bundle.tokenizer, folder, self.bundle.own_tokenizer)
        executor, model = self.bundle.executor, self.bundle.model
        if arm in ("grpo", "shuffled"):
            model = train_grpo(training, model, executor, games)
        elif arm == "own_none":
            executor = sft.train_executor(training, self._samples)
            if config.executor_correction.num_games:
                executor = sft.correct_executor(training, self._samples, executor, games)
        elif arm == "sft":
            model = sft.correct_compiler(training, self._samples, executor, model, games)
        else:
            samples = games.lessons().samples if arm in ("no_bank", "commands") else self._samples
            start = CompilerModel(model.decoder, None) if arm == "commands" else None
            model = sft.train_compiler(training, samples, executor, start)
            if config.correction.num_games:
                model = sft.correct_compiler(training, samples, executor, model, games)
        # Under the run's seed, which its tasks depend on.
        kept = dataclasses.replace(config, seed=self._seed)
        bundle = dataclasses.replace(self.bundle, config=kept, executor=executor, model=model)
        save_bundle(weights, bundle.config, bundle.tokenizer, executor, model, bundle.own_tokenizer)
        return bundle

    def tokens(self, arm: str, seed: int) -> int:
        """Count the tokens of the compiler's forward and backward passes in training.

        The training is that of this arm.
        """
        stage = self.folder(arm, seed)
        return int(
            sum(line["tokens"] for name in ("compiler", "correction", "grpo") for line in read_metrics(stage / name))
        )

    def score(self, bundle: Bundle, rows: list[Setting], finished: Finished[EpisodeResult]) -> dict[str, Score]:
        """Scores of `rows` under these models."""
        ev = bundle.config.evaluation
        num_tasks = len(range(self.scored.num_valid)[: ev.num_tasks or None])
        return score(
            bundle, self.scored.valid, num_tasks, self.scored_with, deliveries=rows, seeds=ev.seeds,
            temperature=ev.temperature, label=rows[0].name, finished=finished,
        )  # fmt: skip


def config_of(arm: str, seed: int, base: Config, sft_steps: int) -> Config:
    """Return the configuration that trains an arm of a run of `base`."""
    config = dataclasses.replace(base, seed=seed)
    if arm == "grpo":
        return config
    if arm == "shuffled":
        return dataclasses.replace(config, grpo=dataclasses.replace(config.grpo, rewards="shuffled"))
    config = dataclasses.replace(config, grpo=dataclasses.replace(config.grpo, steps=0))
    if arm in CONTROLS or arm in ABLATIONS:
        changed = (CONTROLS | ABLATIONS)[arm].items()
        config = dataclasses.replace(
            config, **{part: dataclasses.replace(getattr(config, part), **fields) for part, fields in changed}
        )
        return trained_on(config) if arm == "commands" else config
    sft = dataclasses.replace(config.correction.sft, steps=sft_steps)
    return dataclasses.replace(config, correction=dataclasses.replace(config.correction, rounds=1, sft=sft))


def trained_on(config: Config) -> Config:
    """Configure a third of the compiler's steps, at the correction's rate.

    They continue what is trained.
    """
    rate, steps = config.correction.sft.learning_rate, config.compiler_sft.steps // 3
    return dataclasses.replace(
        config, compiler_sft=dataclasses.replace(config.compiler_sft, steps=steps, learning_rate=rate)
    )


def steps_of(tokens: int, samples: Sequence[Sample], tokenizer: Tokenizer, config: Config) -> int:
    """Return the correction steps for the compiler to read `tokens` tokens.

    Its rows are taken to be as long as those of `samples`.
    """
    drawn = np.random.default_rng(0).permutation(len(samples))[:MEASURED]
    texts = [text for i in drawn for text in (samples[i].compiler_prompt, samples[i].output)]
    row = sum(map(len, tokenizer.encode_batch(texts))) / len(drawn) + 1 + config.memory.num_soft
    return math.ceil(tokens / (row * config.correction.sft.batch_size))


def rows_of(arm: str, seed: int) -> list[Setting]:
    """Return how an arm is scored; the first row is the arm's."""
    name = f"{arm} {seed}"
    if arm == "no_bank":
        return [Setting("compiled", bank="empty", name=name), Setting("compiled", name=f"{name} bank=committed")]
    played = {"no_brief": "compiled_no_brief", "own_none": "none", "commands": "guidance_only"}.get(arm, "compiled")
    return [Setting(played, name=name)]


def summary(scores: dict[str, Score], arms: list[str], seeds: list[int]) -> dict[str, dict]:
    """Return success per seed and paired differences, by arm.

    The differences are to `none`, `before` and every other arm.
    """

    def won(name: str) -> np.ndarray:
        """Return bool[tasks, seeds of training x seeds of play].

        What is not an arm is the same for all seeds of training.
        """
        return np.concatenate([scores[f"{name} {s}" if name in arms else name].won for s in seeds], 1)

    result = {}
    for arm in arms:
        others = ["none", "before", *(other for other in arms if other != arm)]
        per_seed = [scores[f"{arm} {seed}"].success for seed in seeds]
        result[arm] = {
            "success": float(won(arm).mean()),
            "success_per_seed": per_seed,
            "spread_of_seeds": float(np.std(per_seed, ddof=1)) if len(seeds) > 1 else None,
            "difference_to": {other: list(paired_difference(won(arm), won(other))) for other in others},
        }
    return result


def read_run(folder: pathlib.Path) -> tuple[Bundle, str]:
    """Return (models of a run before GRPO, SHA-256 of their weights).

    `folder` is the run's or that of the weights.
    """
    names = [folder / "weights_before_grpo", folder / "weights", folder]
    weights = next((name for name in names if (name / "weights.safetensors").is_file()), folder)
    bundle = load_bundle(weights)
    if bundle.config.grpo.steps:
        raise InvalidInputError(f"--run: {weights}: expected a compiler before GRPO, got one after it")
    return bundle, hashlib.sha256((weights / "weights.safetensors").read_bytes()).hexdigest()


def parse(arguments: list[str]) -> tuple[argparse.Namespace, Bundle, str]:
    """Return (options, models, SHA-256 of their weights).

    The models have the settings of the command line.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=pathlib.Path, required=True, help="folder of a finished run, or of weights")
    parser.add_argument("--arms", nargs="+", choices=(*ARMS, "ablations"), default=FURTHER)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="of training")
    parser.add_argument("--homes", type=int, help="score in other homes, drawn with this seed, to choose settings by")
    parser.add_argument("--out", type=output_file, required=True, help="JSON file of the result")
    options, rest = parser.parse_known_args(arguments)
    if "ablations" in options.arms:
        options.arms = [*options.arms, *ABLATIONS]
    options.arms = [arm for arm in ARMS if arm in options.arms]
    bundle, digest = read_run(options.run)
    config = tyro.cli(Config, args=rest, default=bundle.config, prog="arms.py")
    if config.parts("correction") != bundle.config.parts("correction"):
        raise InvalidInputError("arms: expected settings of grpo and evaluation only; all else is the run's")
    if "sft" in options.arms and "grpo" not in options.arms:
        raise InvalidInputError("--arms sft: expected grpo too, whose tokens it is given")
    if "sft" in options.arms and not config.correction.num_games:
        raise InvalidInputError("--arms sft: expected a run with a correction, of which this arm is another round")
    if options.homes is not None and not (config.world.homes and options.homes != config.seed):
        raise InvalidInputError(f"--homes: expected a run with held-out homes and a seed other than {config.seed}")
    if "commands" in options.arms and follower_of(sources_of(config.world, config.seed)) is None:
        raise InvalidInputError("--arms commands: expected one world whose guidance can be carried out by rule")
    if {"grpo", "shuffled"} & set(options.arms) and not config.grpo.steps:
        raise InvalidInputError("--grpo.steps: expected the updates of grpo and shuffled, got none")
    return options, dataclasses.replace(bundle, config=config), digest


def main(arguments: list[str] | None = None) -> dict:
    """Train and score what is not finished; return the report.

    One JSON line is printed.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options, bundle, digest = parse(given)
    config, started = bundle.config, time.perf_counter()
    fingerprint = hashlib.sha256(json.dumps([digest, config.parts()]).encode()).hexdigest()[:12]
    folder = pathlib.Path("runs") / f"arms-{fingerprint}"
    claim_run(folder, config)
    study = Study(bundle, folder, options.run / "bank.jsonl.gz", options.homes)
    belongs_to = {"evaluation": dataclasses.asdict(config.evaluation), "commit": commit(), "homes": options.homes}
    finished = Finished(folder / "episodes.jsonl", belongs_to, EpisodeResult)
    scores = study.score(bundle, [Setting("none"), Setting("compiled", name="before")], finished)
    pairs = [(arm, seed) for seed in options.seeds for arm in options.arms]
    begun = time.perf_counter()
    for number, (arm, seed) in enumerate(pairs):
        scores |= study.score(study.train(arm, seed), rows_of(arm, seed), finished)
        spent = time.perf_counter() - begun
        left = spent / (number + 1) * (len(pairs) - number - 1)
        success = percent(scores[f"{arm} {seed}"].success)
        print(
            f"[{spent:6.0f} s] arm {number + 1} of {len(pairs)}: {arm} {seed} {success}, {left:.0f} s left", flush=True
        )
    curves = {
        f"{arm} {seed}": {
            name: [round(line[name], 4) if line.get(name) is not None else None for line in lines] for name in CURVES
        }
        for arm, seed in pairs
        if (lines := read_metrics(study.folder(arm, seed) / "grpo"))
    }
    report = {
        "arms": summary(scores, options.arms, options.seeds),
        "rows": {name: one.to_json(scores["none"]) for name, one in scores.items()},
        "num_tasks": len(scores["none"].won),
        "seeds": options.seeds,
        "tokens": {f"{arm} {seed}": study.tokens(arm, seed) for arm, seed in pairs},
        "curves": curves,
        **manifest(
            ["python experiments/analyses/arms.py", *given], weights_sha256=digest, fingerprint=fingerprint,
            config=json.loads(config.to_json()), seconds=round(time.perf_counter() - started, 1),
        ),
    }  # fmt: skip
    write_result(options.out, report)
    print(json.dumps({"arms": report["arms"], "seconds": report["seconds"]}))
    return report


if __name__ == "__main__":
    run(main)

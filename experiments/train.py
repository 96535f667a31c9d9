"""Trains a memory compiler and shows whether it helps: samples, executor, compiler, GRPO, table.

    python experiments/train.py --config=grpo_cpu
    python experiments/train.py --config=grpo_cpu --grpo.steps 30 --seed 1     # any field of the configuration
    python experiments/train.py --config=grpo_tpu --plan                 # what goes on which device, no weights needed
    python experiments/train.py --config=alfworld --ray auto             # a Ray cluster plays the teacher's episodes

Everything lands in `runs/<config>-<fingerprint>/`. A run that was stopped, in whatever way, goes on when the same
command is given again, to the same numbers.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embodied_mem.evaluation.score import Score
    from embodied_mem.progress import Stages
    from embodied_mem.training.config import Config
    from embodied_mem.training.tasks import TrainingTasks


class Clock:
    """Says how far a run is, with its seconds so far; in one of several processes nothing."""

    def __init__(self, silent: bool, stages: Stages):
        self._silent, self._stages, self._started = silent, stages, time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.perf_counter() - self._started

    def __call__(self, text: str) -> None:
        if not self._silent:
            print(f"[{self.seconds:6.0f} s] {text}", flush=True)

    def begin(self, stage: str) -> None:
        """Begin the next stage."""
        self._stages.begin(stage)
        self(f"{self._stages}: {stage}")


def main(arguments: list[str] | None = None) -> dict | None:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    #
    # ---- Configuration -----------------------------------------------------------------------------------------------
    #
    from configs import cli
    from registered import register_all

    register_all()
    options, config = cli(arguments, __doc__)
    if options.plan:
        from experiments.plan.device_plan import print_plan

        return print_plan(config, options.compile, options.topology, options.json)
    from embodied_mem import registry
    from embodied_mem.errors import InvalidInputError
    from embodied_mem.models.host import keep_freed_memory, keep_programs, set_gpu_flags
    from embodied_mem.parallel.mesh import initialize_distributed
    from embodied_mem.parallel.object_store import is_copy, local_copy, push

    set_gpu_flags()
    has_others = initialize_distributed()
    run_dir = local_copy(options.run_dir or f"runs/{options.config}-{config.fingerprint()}").absolute()
    if has_others and is_copy(run_dir):
        raise InvalidInputError(f"--run_dir: expected a folder that all processes see, got {options.run_dir}; mount it")
    prepare(config, run_dir, options.unchecked)
    keep_freed_memory()
    keep_programs()
    from embodied_mem.progress import Stages
    from embodied_mem.training.costs import costs
    from embodied_mem.training.tasks import make_tasks

    tasks = None if config.world.name in registry.names("samples") else make_tasks(config)
    with Stages(costs(config, tasks)) as stages:
        report = train(arguments, options, config, run_dir, tasks, stages)
    push(run_dir)
    return report


def prepare(config: Config, run_dir: pathlib.Path, unchecked: bool) -> None:
    """List what a run needs.

    It ends with status 2 where something is missing; with `unchecked` it goes on.
    """
    from preflight import preflight, table

    started, rows, shown = time.perf_counter(), [], 0
    for part in preflight(config, run_dir):
        rows += part
        if any(row.mend or row.note for row in rows):
            print(table(rows[shown:]), file=sys.stderr, flush=True)
            shown = len(rows)
    from embodied_mem.parallel.processes import is_first

    missing = sum(bool(row.mend) for row in rows)
    if not shown and is_first():
        print(f"preflight: {len(rows)} things are there ({time.perf_counter() - started:.1f} s)", flush=True)
    if missing and not unchecked:
        print(f"error: {missing} of {len(rows)} things are missing; --unchecked goes on", file=sys.stderr, flush=True)
        import jax

        if jax.process_count() > 1:
            os._exit(2)  # a normal end waits for the other processes
        sys.exit(2)


def train(
    arguments: list[str],
    options: argparse.Namespace,
    config: Config,
    run_dir: pathlib.Path,
    tasks: TrainingTasks | None,
    stages: Stages,
) -> dict | None:
    """Train what is not trained yet, and score it.

    Returns the report, or None in other processes than the first.
    """
    import jax

    from embodied_mem import registry
    from embodied_mem.compiler.served_executor import ServedExecutor
    from embodied_mem.evaluation.benchmark import EpisodeResult
    from embodied_mem.evaluation.chat_options import ChatOptions, chat_model, usage_of
    from embodied_mem.evaluation.command import print_result
    from embodied_mem.evaluation.intervals import paired_difference
    from embodied_mem.evaluation.report import manifest, table, write_report
    from embodied_mem.evaluation.score import check_executor, score
    from embodied_mem.parallel.processes import first_alone, is_first
    from embodied_mem.parallel.resume import Finished
    from embodied_mem.training import loop, models, sft
    from embodied_mem.training.bundle import OWN_TOKENIZER, Bundle, save_bundle
    from embodied_mem.training.config import STAGES, is_published, is_taught
    from embodied_mem.training.grpo import train_grpo
    from embodied_mem.training.loop import read_metrics
    from embodied_mem.training.models import make_own_tokenizer, make_tokenizer
    from embodied_mem.training.run_folder import claim_run
    from embodied_mem.training.tasks import scoring_bank, teach_bank
    from embodied_mem.training.teachers.chat_teacher import TeacherStatistics, taught_by
    from embodied_mem.training.teachers.dagger import acts_on_guidance
    from embodied_mem.training.teachers.episodes import read_samples, write_samples
    from embodied_mem.training.teachers.games import Games, lessons_on_ray

    with first_alone("claim"):
        claim_run(run_dir, config, is_first())
    say = Clock(not is_first(), stages)
    where = f"{jax.device_count()} x {jax.devices()[0].platform}, {jax.process_count()} processes"
    say(f"{options.config}, fingerprint {config.fingerprint()}, {where}")
    chat, driver, taught = None, None, TeacherStatistics()
    #
    # ---- Samples: recorded, or played by the teacher with the train games' successes in mind -------------------------
    #
    say.begin("samples")
    if tasks is None:
        with first_alone("recordings"):
            samples = registry.load(config.world.name, "samples")(config, run_dir, say)
    else:
        at_server = ChatOptions(server=options.teacher_server, model=config.data.teacher, record=options.teacher_record)
        if config.data.teacher != "rules":
            chat = chat_model(at_server, "--teacher chat")
            tasks = taught_by(chat, tasks, taught)
        if config.data.executor:
            record = f"{at_server.record}.executor" if at_server.record else ""
            at_server = dataclasses.replace(at_server, model=config.data.executor, record=record)
            driver = chat_model(at_server, "--teacher_executor", extra_body={"stop": ["\n"]})
            act = acts_on_guidance(ServedExecutor(driver, models.instruction_of(config.world)), config)
            tasks = dataclasses.replace(tasks, act=act)
        sides = config.world.train, config.world.valid
        say(f"games: {tasks.num_train} train ({sides[0]}), {tasks.num_valid} validation ({sides[1]})")
        if config.evaluation.tasks:
            say(f"and {tasks.num_test} for the table ({config.evaluation.tasks}), of which nothing is used before it")
        lessons_file = run_dir / "lessons.jsonl.gz"  # where a cluster played them
        with first_alone("bank"):
            if options.ray and is_first() and not lessons_file.exists():
                write_samples(lessons_file, lessons_on_ray(options.ray, config, run_dir / "bank.jsonl.gz").samples)
            bank = teach_bank(config, run_dir / "bank.jsonl.gz", tasks)
        say(f"memory bank: {len(bank)} successful episodes")
        scored_with = scoring_bank(config, "" if config.world.homes else run_dir / "bank.jsonl.gz", tasks)
        games = Games(config, tasks, bank)
        if lessons_file.exists():
            samples = read_samples(lessons_file)
        else:
            lessons = games.lessons()
            samples = lessons.samples
            say(f"teacher: {lessons.num_lost} games not won in time, by {config.data.executor or 'its own commands'}")
        if chat:
            say(f"{chat.name}: {taught.answers} answers, {taught.unreadable} unreadable, {taught.malformed} malformed")
    guided = sum(bool(s.hint) for s in samples) / len(samples)
    say(f"samples: {len(samples)} steps, {100 * guided:.0f} % with guidance")
    #
    # ---- Tokenizer ---------------------------------------------------------------------------------------------------
    #
    with first_alone("tokenizer"):
        tokenizer = make_tokenizer(config, run_dir / "tokenizer.json", samples)
        own = make_own_tokenizer(config, run_dir / OWN_TOKENIZER)
    #
    # ---- Executor, compiler, GRPO ------------------------------------------------------------------------------------
    #
    run = loop.Run(config, tokenizer, run_dir, own)
    say.begin("executor")
    executor = sft.train_executor(run, samples)
    say("executor trained on the teacher's commands")
    if tasks and not options.unchecked and is_published(config, "executor") and not is_taught(config):
        acting = models.make_executor(config, executor, run.executor_tokenizer)
        row = check_executor(config, acting, tasks.rollout, tasks.num_train, bank)
        refused = 100 * row.per_step("refused")
        say(f"executor without memory: {100 * row.success:.0f} % success, {refused:.0f} % of commands refused")
    if config.executor_correction.num_games:
        say.begin("correction of the executor")
        executor = sft.correct_executor(run, samples, executor, games)
        say("executor corrected on its own episodes; it is frozen from here on")
    say.begin("compiler")
    model = sft.train_compiler(run, samples, executor)
    say("compiler trained on the teacher's outputs")
    if tasks is None:
        save_bundle(run_dir / "weights", config, tokenizer, executor, model, own)
        command = f"python experiments/evaluate.py --config={config.world.name} --agents --deliveries"
        scored = " ".join(config.evaluation.deliveries)
        report = {"samples": len(samples), "seconds": round(say.seconds, 1)}
        how = f"Score the weights:\n  {command} {scored} --weights {run_dir / 'weights'}"
        print_result(how, report, options.json and is_first())
        return report
    if config.correction.num_games:
        say.begin("correction of the compiler")
        model = sft.correct_compiler(run, samples, executor, model, games)
        say("compiler corrected on its own episodes")
    ev = config.evaluation
    valid = tasks.valid, len(range(tasks.num_valid)[: ev.num_tasks or None]), scored_with
    test = tasks.test, len(range(tasks.num_test)[: ev.num_tasks or None]), scored_with

    def score_once(one: Bundle, tasks: tuple, name: str, stage: str = "grpo") -> dict[str, Score]:
        """Score the bundle; episodes that the run has played before are read."""
        belongs_to = {"fingerprint": config.fingerprint(stage), "evaluation": dataclasses.asdict(ev)}
        path = run_dir / "scores" / f"{name.lower().replace(' ', '_')}.jsonl"
        with first_alone(name):
            episodes = Finished(path, belongs_to, EpisodeResult, write=is_first())
        deliveries = ev.deliveries if name == "evaluation" else ("compiled",)
        settings = {"seeds": ev.seeds, "temperature": ev.temperature, "label": name, "finished": episodes}
        return score(one, *tasks, deliveries=deliveries, **settings)

    before = {}
    if config.grpo.steps:
        say.begin("GRPO")
        bundle = Bundle(
            dataclasses.replace(config, grpo=dataclasses.replace(config.grpo, steps=0)), tokenizer, executor, model, own
        )
        save_bundle(run_dir / "weights_before_grpo", bundle.config, tokenizer, executor, model, own)
        scored = score_once(bundle, valid, "before GRPO", "correction")
        before = {"compiled_before_grpo": scored["compiled"].to_json()}
        say(f"compiled before GRPO: {100 * scored['compiled'].success:.1f} % success")
    model = train_grpo(run, model, executor, games)
    if config.grpo.steps:
        say("compiler trained by GRPO")
    bundle = Bundle(config, tokenizer, executor, model, own)
    save_bundle(run_dir / "weights", config, tokenizer, executor, model, own)
    #
    # ---- Table -------------------------------------------------------------------------------------------------------
    #
    say.begin("table")
    scores = after = score_once(bundle, test, "evaluation")
    if before and ev.tasks:  # the gain of GRPO is of the validation tasks, which were scored before it
        after = score_once(bundle, valid, "after GRPO")
        before["compiled_after_grpo"] = after["compiled"].to_json()
    stages.end()
    if not is_first():
        return None
    if before and "compiled" in after:
        before["gain_of_grpo"] = paired_difference(after["compiled"].won, scored["compiled"].won)
    facts = manifest(
        ["python experiments/train.py", *arguments],
        config=json.loads(config.to_json()), fingerprint=config.fingerprint(), seconds=say.seconds,
        stage_seconds={name: round(seconds, 1) for name, seconds in stages.seconds.items()},
        **before, **({"teacher": dataclasses.asdict(taught) | usage_of(chat)} if chat else {}),
        **({"teacher_executor": usage_of(driver)} if driver else {}),
    )  # fmt: skip
    curves = {name: read_metrics(run_dir / name) for name in STAGES}
    report = write_report(run_dir / "report", scores, facts, curves)
    say(f"report: {run_dir / 'report'}")
    line = {"deliveries": report["deliveries"], "seconds": round(facts["seconds"], 1)}
    print_result(table(scores), line, options.json)
    return report


if __name__ == "__main__":
    from embodied_mem.evaluation.command import run

    run(main, resumes=True)

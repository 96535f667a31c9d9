"""Trains a memory compiler and shows whether it helps: games, bank, executor, compiler, GRPO, table.

    python experiments/train.py --config=grpo_cpu
    python experiments/train.py --config=grpo_cpu --grpo.steps 30 --seed 1     # any field of the configuration
    python experiments/train.py --config=grpo_tpu --plan                 # what goes on which device, no weights needed

Everything lands in `runs/<config>-<fingerprint>/`. A run that was stopped, in whatever way, goes on when the same
command is given again, to the same numbers.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))


def main(arguments: list[str] | None = None) -> dict | None:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    #
    # ---- Configuration -----------------------------------------------------------------------------------------------
    #
    from experiments.configs import cli

    options, config = cli(arguments, __doc__)
    if options.plan:
        from experiments.planning import print_plan

        return print_plan(config, compiled=options.compile)
    if config.world.name == "scienceworld":
        from experiments.train_scienceworld import train

        return train(options, config)

    from embodied_mem.agents.deliveries import check_names
    from embodied_mem.models.host import keep_freed_memory

    check_names(config.evaluation.deliveries)
    keep_freed_memory()
    import jax

    from embodied_mem.evaluation.report import manifest, table, write_report
    from embodied_mem.parallel.mesh import initialize_distributed
    from embodied_mem.parallel.processes import first_alone, is_first
    from embodied_mem.training import stages
    from embodied_mem.training.bank import teach_bank
    from embodied_mem.training.config import STAGES
    from embodied_mem.training.correction import own_commands, own_episodes
    from embodied_mem.training.metrics import read_metrics
    from embodied_mem.training.progress import Progress
    from embodied_mem.training.runs import claim_run
    from embodied_mem.training.teacher_data import play_teacher
    from embodied_mem.training.vocabulary import make_tokenizer
    from embodied_mem.training.weights import save_bundle
    from embodied_mem.training.worlds import make_worlds
    from experiments.scoring import score

    initialize_distributed()
    run_dir = pathlib.Path(options.run_dir or f"runs/{options.config}-{config.fingerprint()}")
    with first_alone("claim"):
        claim_run(run_dir, config)
    started = time.perf_counter()

    def say(text: str) -> None:
        if is_first():
            print(f"[{time.perf_counter() - started:6.0f} s] {text}", flush=True)

    where = f"{jax.device_count()} x {jax.devices()[0].platform}, {jax.process_count()} processes"
    say(f"{options.config}, fingerprint {config.fingerprint()}, {where}")
    #
    # ---- Games -------------------------------------------------------------------------------------------------------
    #
    worlds = make_worlds(config)
    say(f"games: {worlds.num_train} train ({config.world.train}), {worlds.num_valid} validation ({config.world.valid})")
    #
    # ---- Memory bank: the train games' successes ---------------------------------------------------------------------
    #
    with first_alone("bank"):
        bank = teach_bank(config, run_dir / "bank.jsonl.gz", worlds)
    say(f"memory bank: {len(bank)} successful episodes")
    #
    # ---- Teacher data ------------------------------------------------------------------------------------------------
    #
    teacher, train_tasks, samples, lost = worlds.make_teacher, range(worlds.num_train), [], 0
    games = worlds.num_train * config.data.passes
    with Progress("teacher", games, unit="game", silent=not is_first()) as progress:
        for number in range(config.data.passes):
            data = play_teacher(
                worlds.train, train_tasks, bank, teacher, top_k=config.memory.top_k, detour=config.data.detour,
                imagined=config.data.imagined, seed=config.seed + 1 + number, on_done=progress.update,
            )  # fmt: skip
            samples += data.samples
            lost += data.num_lost
    guided = sum(bool(s.hint) for s in samples) / len(samples)
    say(f"teacher: {len(samples)} steps, {100 * guided:.0f} % with guidance, {lost} games not won in time")
    #
    # ---- Tokenizer ---------------------------------------------------------------------------------------------------
    #
    with first_alone("tokenizer"):
        tokenizer = make_tokenizer(config, run_dir / "tokenizer.json", samples)

    #
    # ---- Executor, compiler, GRPO ------------------------------------------------------------------------------------
    #
    def executor_own_of(number: int, current):
        acting = stages.make_executor(config, current, tokenizer, placement=stages.placement(config))
        folder = run_dir / "executor_correction"
        return own_commands(config, acting, bank, worlds.train, worlds.num_train, teacher, number, folder)

    executor = stages.train_executor(config, tokenizer, samples, run_dir)
    say("executor trained on the teacher's commands")
    if config.executor_correction.num_games:
        executor = stages.correct_executor(config, tokenizer, samples, run_dir, executor, executor_own_of)
        say("executor corrected on its own episodes; it is frozen from here on")
    model = stages.train_compiler(config, tokenizer, samples, executor, run_dir)
    say("compiler trained on the teacher's outputs")
    if config.correction.num_games:

        def own_of(number: int, current):
            acting = (
                stages.make_compiler(config, current, tokenizer, placement=stages.placement(config)),
                stages.make_executor(config, executor, tokenizer, placement=stages.placement(config)),
            )
            return own_episodes(
                config, *acting, bank, worlds.train, worlds.num_train, teacher, number, run_dir / "correction"
            )

        model = stages.correct_compiler(config, tokenizer, samples, executor, run_dir, model, own_of)
        say("compiler corrected on its own episodes")
    ev = config.evaluation
    valid = worlds.valid, len(range(worlds.num_valid)[: ev.num_tasks or None])
    settings = {"seeds": ev.seeds, "temperature": ev.temperature}
    before = {}
    if config.grpo.steps:
        scored = score(
            config, *valid, tokenizer, executor, model, bank,
            deliveries=("compiled",), label="before GRPO", **settings,
        )  # fmt: skip
        before = {"compiled_before_grpo": scored["compiled"].to_json()}
        say(f"compiled before GRPO: {100 * scored['compiled'].success:.1f} % success")
    model = stages.train_grpo(config, tokenizer, model, executor, bank, worlds.rollout, train_tasks, run_dir)
    if config.grpo.steps:
        say("compiler trained by GRPO")
    save_bundle(run_dir / "weights", config, tokenizer, executor, model)
    #
    # ---- Table -------------------------------------------------------------------------------------------------------
    #
    scores = score(config, *valid, tokenizer, executor, model, bank, deliveries=ev.deliveries, **settings)
    if not is_first():
        return None
    facts = manifest(
        ["python experiments/train.py", *arguments],
        config=json.loads(config.to_json()), fingerprint=config.fingerprint(), seconds=time.perf_counter() - started,
        **before,
    )  # fmt: skip
    curves = {name: read_metrics(run_dir / name) for name in STAGES}
    report = write_report(run_dir / "report", scores, facts, curves)
    print(f"\n{table(scores)}\n\nreport: {run_dir / 'report'}\n")
    print(json.dumps({"deliveries": report["deliveries"], "seconds": round(facts["seconds"], 1)}))
    return report


if __name__ == "__main__":
    from experiments.command import run

    run(main)

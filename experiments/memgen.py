"""Trains MemGen's weaver and trigger for the executor of trained weights, on the training games of these weights.

    python experiments/memgen.py --weights RUN/weights
    python experiments/evaluate.py --config=alfworld --weights RUN/weights --deliveries none memgen

writes `memgen.safetensors` beside the weights, where `evaluate.py` finds it. The executor and everything else in the
folder stay as they are. Ends with one JSON line: the executor's loss on the teacher's commands in games that the
weaver was not trained on, without and with its soft tokens, and the trigger's batches of episodes.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from typing import Any

from registered import register_all

register_all()

HELD_OUT = 512
"""Samples of the last games, on which the weaver is not trained; at most a quarter."""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    from experiments.baselines.memgen_config import MemGenConfig

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, help="folder that train.py wrote")
    parser.add_argument("--num_games", type=int, default=0, help="training games; default: the weights' own")
    for field in dataclasses.fields(MemGenConfig):
        parser.add_argument(f"--{field.name}", type=type(field.default), default=field.default)
    given = vars(parser.parse_args(arguments))
    folder, num_games = given.pop("weights"), given.pop("num_games")
    settings, started = MemGenConfig(**given), time.perf_counter()

    from flax import nnx

    from embodied_mem.evaluation.command import weights_folder
    from embodied_mem.models.host import keep_freed_memory, set_gpu_flags
    from embodied_mem.training.bundle import load_bundle
    from embodied_mem.training.tasks import make_tasks, teach_bank
    from embodied_mem.training.teachers.games import Games
    from experiments.baselines.memgen import WEAVER
    from experiments.baselines.memgen_training import held_out_losses, train_trigger, train_weaver
    from experiments.baselines.weaver import Weaving, save_weaving

    set_gpu_flags()
    keep_freed_memory()
    path = weights_folder(folder)
    bundle = load_bundle(path)
    config = dataclasses.replace(
        bundle.config,
        world=dataclasses.replace(bundle.config.world, num_train=num_games or bundle.config.world.num_train),
        data=dataclasses.replace(bundle.config.data, passes=1, banks=(), methods=()),
        grpo=dataclasses.replace(
            bundle.config.grpo, num_tasks=settings.num_tasks, group_size=settings.group_size,
            max_steps=settings.max_steps,
        ),
    )  # fmt: skip
    tasks = make_tasks(config)
    games = Games(config, tasks, teach_bank(config, "", tasks))
    samples = games.lessons().samples
    count = min(HELD_OUT, len(samples) // 4)
    training, held_out = samples[:-count], samples[-count:]
    model = Weaving(bundle.executor, rngs=nnx.Rngs(settings.seed))
    losses = train_weaver(model, bundle, training, settings)
    report: dict[str, Any] = {
        "samples": len(training), "last_loss": sum(losses[-20:]) / max(len(losses[-20:]), 1),
        "held_out": held_out_losses(model, bundle, held_out),
    }  # fmt: skip
    save_weaving(path / WEAVER, model)  # with a trigger that says INVOKE everywhere
    print(json.dumps(report), file=sys.stderr)
    report["trigger"] = train_trigger(model, bundle, games, settings)
    save_weaving(path / WEAVER, model)
    report |= {"settings": dataclasses.asdict(settings), "seconds": round(time.perf_counter() - started, 1)}
    print(json.dumps(report))
    return report


if __name__ == "__main__":
    from embodied_mem.evaluation.command import run

    run(main)

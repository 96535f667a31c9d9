"""Learning over a life: a bank that starts empty and holds the agent's own successes and losses; forgetting on the way.

    python experiments/analyses/online_bank.py --weights experiments/weights/habits
    python experiments/analyses/online_bank.py --lives 2 --num_tasks 40 --out runs/bank.json

Each life has a home of its own (or --homes) that no training game is of, and plays so many of its games in order; lives
go side by side. Half-way through, each life is lived on twice: with its bank, and with --forget of it drawn and gone.
`teacher` is the guidance of the rule teacher from banks filled in the same way, carried out by the executor: what a
compiler could reach. A success is remembered as everywhere. Of a loss it is remembered where things of the goal's kind
were taken from, and nothing if none was found: the models have never read that a thing was somewhere not. Writes one
JSON file and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied_mem.agents.rollout import Bank, Envs, play
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.command import Models, output_file, run
from embodied_mem.evaluation.intervals import wilson
from embodied_mem.memory import Experiences
from embodied_mem.memory.bank import OBJECT_WEIGHT
from embodied_mem.memory.readers import DEFAULT, Reader
from embodied_mem.types import Episode

if TYPE_CHECKING:
    from embodied_mem.agents.deliveries import Delivery
    from embodied_mem.compiler.prompts import Shown

ROOT = pathlib.Path(__file__).resolve().parents[2]
DELIVERIES = ("none", "compiled", "teacher")


def learned_from(episode: Episode, reader: Reader = DEFAULT) -> str:
    """Return what a lost episode tells of the world.

    That is where things of the goal's kind were; empty if none was found.
    """
    kind, places = reader.goal_object(episode.goal), dict[str, str]()
    for _, what, name, place in reader.events(episode):
        if what == "take" and kind and name.rstrip("0123456789 ") == kind:
            places.setdefault(name, place)
    found = [f"{name} was in {place}" for name, place in places.items()]
    return "; ".join([*found, f"{len(episode.steps)} steps"]) if found else ""


def remember(bank: Experiences, episode: Episode) -> None:
    """Adds what an episode taught, if it taught something."""
    if episode.won:
        bank.add(episode)
    elif told := learned_from(episode, bank.reader):
        bank.add(episode, told)


def forgotten(bank: Experiences, share: float, seed: int) -> Experiences:
    """Return a bank without a share of the records of `bank`.

    The share is drawn by the seed.
    """
    records = bank.records
    kept = np.sort(np.random.default_rng(seed).permutation(len(records))[round(share * len(records)) :])
    left = Experiences(bank.embedder, object_weight=bank.object_weight, task_key=bank.task_key, lost=True)
    left.add_many([records[i][0] for i in kept], [records[i][1] for i in kept])
    return left


def windows(won: np.ndarray, size: int) -> list[dict[str, Any]]:
    """Return success of bool[tasks, lives] in windows of `size` tasks.

    Its interval is over tasks of all lives.
    """
    rows = []
    for first in range(0, len(won), size):
        part = won[first : first + size]
        success = float(part.mean())
        interval = list(wilson(success, part.size))
        rows.append({"tasks": [first + 1, first + len(part)], "success": success, "interval": interval})
    return rows


@dataclasses.dataclass(frozen=True)
class Lives:
    """Lives side by side, of the same number of tasks.

    Attributes:
        envs: with a row per life.
        orders: task indices int[tasks, lives], the tasks of each life in order.
        top_k, shown: as the models were trained with.
        view: what is retrieved from, made of a bank.
        object_weight: of the banks.
    """

    envs: Envs
    orders: np.ndarray
    top_k: int
    shown: Shown
    view: Callable[[Experiences], Bank]
    object_weight: float = OBJECT_WEIGHT

    def empty(self) -> list[Experiences]:
        """Return a bank for each life, with nothing in it."""
        return [Experiences(object_weight=self.object_weight, lost=True) for _ in range(self.orders.shape[1])]

    def play(
        self,
        executor: Any,
        delivery: Delivery,
        banks: Sequence[Experiences],
        *,
        first: int,
        last: int,
        seed: int,
        on_task: Callable[[np.ndarray], None] | None = None,
    ) -> np.ndarray:
        """Play tasks `first` to before `last`; return success bool[last - first, lives].

        The `banks` grow by them. `on_task` is called with the successes of all lives in each task.
        """
        views = [self.view(bank) for bank in banks]
        won = []
        for tasks in self.orders[first:last]:
            played = play(
                self.envs, executor, delivery, views, tasks=tasks.tolist(), seeds=[seed] * len(banks),
                top_k=self.top_k, shown=self.shown,
            )  # fmt: skip
            for bank, trajectory in zip(banks, played, strict=True):
                remember(bank, trajectory.episode)
            won.append([trajectory.won for trajectory in played])
            if on_task:
                on_task(np.array(won[-1]))
        return np.array(won, bool).reshape(last - first, len(banks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default="experiments/weights/habits", help="of a world of generated games")
    parser.add_argument("--deliveries", nargs="*", default=DELIVERIES, choices=DELIVERIES)
    parser.add_argument("--lives", type=int, default=8)
    parser.add_argument("--homes", type=int, default=1, help="of each life")
    parser.add_argument("--num_tasks", type=int, default=200, help="of each life")
    parser.add_argument("--window", type=int, default=20, help="tasks of a window")
    parser.add_argument("--forget", type=float, default=0.5, help="share of the bank that is gone after half the tasks")
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=0, help="of the play and of what is forgotten")
    parser.add_argument("--out", type=output_file, default=ROOT / "experiments/results/online_bank.json")
    options = parser.parse_args()

    from embodied_mem.evaluation.controls import Setting, under
    from embodied_mem.evaluation.report import manifest, write_result
    from embodied_mem.memory.bank import BankView
    from embodied_mem.models.host import keep_freed_memory, set_gpu_flags
    from embodied_mem.progress import Progress
    from embodied_mem.training.tasks import sources_of

    set_gpu_flags()
    keep_freed_memory()
    bundle = Models(options.weights).load()
    world, memory, seed = bundle.config.world, bundle.config.memory, bundle.config.seed
    if world.valid != "generated":
        raise InvalidInputError(f"--weights: expected models of generated games, got some of {world.valid}")
    games = []
    for life in range(options.lives):
        # Homes beyond those that are trained on; one game of them is made, since a world without any is refused.
        first = world.num_scenes + life * options.homes
        own = dataclasses.replace(
            world, num_scenes=first, homes=options.homes, num_train=1, num_valid=options.num_tasks
        )
        games += sources_of(own, seed)[0].sides()[1]
    [source] = sources_of(world, seed)
    orders = np.arange(len(games)).reshape(options.lives, options.num_tasks).T
    lives = Lives(
        source.envs(games, options.lives, world.max_steps), orders, memory.top_k, memory.shown,
        functools.partial(BankView, numbered=memory.numbered, newest_first=memory.newest_first),
        getattr(source, "object_weight", Experiences().object_weight),
    )  # fmt: skip
    executor, compiler = bundle.acting(temperature=options.temperature, batch_buckets=(options.lives,))
    half, rows = options.num_tasks // 2, {}
    for name in options.deliveries:
        delivery, _, acting = under(Setting(name), executor, compiler, Experiences(), source=source)
        with Progress(name, options.num_tasks + half * (name != "none"), unit="task") as progress:
            live = functools.partial(
                lives.play, acting, delivery, seed=options.seed,
                on_task=lambda won, bar=progress: bar.update(1, won=float(won.mean())),
            )  # fmt: skip
            banks = lives.empty()
            young = live(banks, first=0, last=half)
            after = {name: banks}
            if name != "none":
                lost = [forgotten(bank, options.forget, options.seed + life) for life, bank in enumerate(banks)]
                after[f"{name} forgetting"] = lost
            for row, known in after.items():
                won = np.concatenate([young, live(known, first=half, last=options.num_tasks)])
                rows[row] = {
                    "success": float(won.mean()), "windows": windows(won, options.window),
                    "lives": won.mean(0).tolist(), "experiences": [len(bank) for bank in known],
                    "of_losses": [sum(not episode.won for episode, _ in bank.records) for bank in known],
                }  # fmt: skip
        print(f"{name}: " + " ".join(f"{100 * one['success']:.0f}" for one in rows[name]["windows"]), flush=True)
    settings = {key: value for key, value in vars(options).items() if key != "out"}
    report = {"rows": rows, "max_steps": world.max_steps, **manifest(settings=settings)}
    write_result(options.out, report)
    shown = {name: [round(one["success"], 3) for one in row["windows"]] for name, row in rows.items()}
    print(json.dumps({"rows": shown, "num_tasks": options.num_tasks, "lives": options.lives}))


if __name__ == "__main__":
    run(main)

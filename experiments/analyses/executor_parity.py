"""Whether a published executor acts alike in this process and behind a server: the same prompts, greedy, side by side.

    python -m experiments.analyses.executor_parity --executor FILE.gguf --server URL --model NAME --result FILE

The model in this process plays generated ALFWorld games with the rule teacher's guidance; every prompt goes to the
server too, whose command is written down and not played. Prompts must have equal numbers of tokens, which holds the
chat template. Commands may differ by quantisation: the server rounds activations, and this process computes in float32
with the same weights. Seconds are without compiling.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import tyro

from embodied_mem import envs
from embodied_mem.compiler.executor import Acts, Turn
from embodied_mem.compiler.served_executor import ServedExecutor
from embodied_mem.evaluation.command import run
from embodied_mem.evaluation.controls import Setting
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.evaluation.score import score_deliveries
from embodied_mem.language import OpenAIChatModel
from embodied_mem.memory import MemoryBank
from embodied_mem.training.config import WorldConfig
from embodied_mem.training.tasks import sources_of
from embodied_mem.worlds.alfworld.benchmark import MAX_ACTION_TOKENS, published_executor
from embodied_mem.worlds.alfworld.generator import generate
from embodied_mem.worlds.alfworld.wording.text import executor_instruction


@dataclasses.dataclass
class Options:
    """What is compared.

    Attributes:
        executor: Hugging Face folder or GGUF file.
        server: base URL of an OpenAI-compatible server of the same file.
        model: its name there.
        result: JSON file of the report.
        num_tasks: generated games.
        max_steps: of each.
    """

    executor: pathlib.Path
    server: str
    model: str
    result: pathlib.Path
    num_tasks: int = 8
    max_steps: int = 10


class Both:
    """Acts by `here`, asks `there` the same, and counts.

    Attributes:
        pairs: (command here, command there) of each prompt.
        other_lengths: prompts whose numbers of tokens differ.
        seconds: of either.
    """

    def __init__(self, here: Acts, there: Acts):
        self._here, self._there = here, there
        self.pairs: list[tuple[str, str]] = []
        self.other_lengths = 0
        self.seconds = np.zeros(2)

    def act(self, prompts: Sequence[str], keys: jax.Array, soft: Sequence[np.ndarray | None] | None = None) -> Turn:
        """As `Executor.act`."""
        turns = []
        for which, executor in enumerate((self._here, self._there)):
            turn = executor.act(prompts, keys, soft)
            self.seconds[which] += turn.prefill_s + turn.decode_s
            turns.append(turn)
        self.pairs += zip(turns[0].actions, turns[1].actions)
        self.other_lengths += sum(a != b for a, b in zip(turns[0].tokens_in, turns[1].tokens_in))
        return turns[0]


def compare(options: Options) -> dict[str, Any]:
    """The report."""
    here = published_executor(options.executor, "0.4", 0.0)
    chat = OpenAIChatModel(options.server, options.model, extra_body={"stop": ["\n"]})
    told = executor_instruction("0.4")
    both = Both(here, ServedExecutor(chat, told, max_action_tokens=MAX_ACTION_TOKENS, max_parallel=1))
    games = [game.load() for game in generate(options.num_tasks, seed=0, split="valid")]
    world = envs.make("alfworld", tasks=games, num_envs=min(8, len(games)), max_steps=options.max_steps)
    score_deliveries(
        world, both, None, MemoryBank(), deliveries=[Setting("teacher", guidance="command", name="teacher")],
        tasks=range(len(games)), seeds=(0,), top_k=1,
        source=sources_of(WorldConfig(num_train=1, num_valid=1), 0)[0],
    )  # fmt: skip
    different = [pair for pair in both.pairs if pair[0] != pair[1]]
    return {
        **manifest(model=options.executor.name, games=len(games), max_steps=options.max_steps),
        "prompts": len(both.pairs),
        "prompts_of_other_length": both.other_lengths,
        "equal_commands": 1 - len(different) / len(both.pairs),
        "different": different[:20],
        "seconds_per_prompt": {
            "in this process, 8 rows at a time": round(both.seconds[0] / len(both.pairs), 3),
            "server, one at a time": round(both.seconds[1] / len(both.pairs), 3),
        },
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """The program."""
    options = tyro.cli(Options, description=__doc__, args=arguments)
    report = compare(options)
    write_result(options.result, report)
    print(
        f"{report['prompts']} prompts, {report['prompts_of_other_length']} of another length; "
        f"{100 * report['equal_commands']:.1f} % equal commands; seconds per prompt {report['seconds_per_prompt']}"
    )


if __name__ == "__main__":
    run(main)

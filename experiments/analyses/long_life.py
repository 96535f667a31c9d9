"""Time, tokens and size of one `LifelongMemory` after 1 to 1,000 episodes, and of a large one.

    python experiments/analyses/long_life.py --large 40000 10000 50000 --result experiments/results/long_life.json

Generated games, stream by the observing expert, every eighth given up, go into one memory in a folder. After 1, 100 and
1,000 of them the next 40 are timed: the pool that a compiler reads at the start of a task, after an observation, and
where nothing changed since; `observe` alone. Processor time of this thread; the game is not in it. The large memory has
notes and facts beside its episodes, and lives in the process alone.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import pathlib
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.report import manifest, write_result
from embodied_mem.memory import LifelongMemory, Record
from embodied_mem.memory.lifelong import replay
from embodied_mem.memory.recollection import count_tokens
from embodied_mem.progress import counted
from embodied_mem.types import Episode, Step
from embodied_mem.worlds.alfworld.env import Env
from embodied_mem.worlds.alfworld.experts import ObservingExpert
from embodied_mem.worlds.alfworld.generator import Generator

AFTER = (1, 100, 1_000)
SCENES = 60
PROBES = 40
READING: dict[str, Any] = {"k": 8, "budget_tokens": 400, "with_ages": True}
_MAX_STEPS = 50
_WHO = ("Ann", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hana")
_WHAT = ("mug", "plate", "book", "pen", "keychain", "pillow", "apple", "bread", "watch", "vase", "cd", "laptop")
_SAID = (
    "{who} wants the {adjective} {what} to be {done} on day {n}.",
    "The {adjective} {what} number {n} belongs to {who}.",
    "{who} asked about the {adjective} {what} at {n} past nine.",
    "Please remember that {who} paid {n} for the {adjective} {what}.",
)
_HOW = ("red", "blue", "green", "old", "new", "small", "large", "heavy", "broken", "clean", "striped", "wooden")
_DONE = ("washed", "repaired", "moved", "sold", "wrapped", "lent", "cleaned", "returned")


def episodes(seed: int = 0) -> Iterator[Episode]:
    """Play generated games without end, scene after scene.

    Every eighth is given up after four steps.
    """
    generator = Generator(seed)
    tasks = [sorted(generator.scene(scene).goals) for scene in range(SCENES)]
    for number in itertools.count():
        scene, trial = number % SCENES, number // SCENES
        goals = tasks[scene]
        game = generator.game(scene, trial, "train", goals[trial % len(goals)]).load()
        env, expert = Env(game), ObservingExpert()
        texts, actions = [env.reset()], list[str]()
        expert.reset(game.task, texts[0])
        while len(actions) < (4 if number % 8 == 7 else _MAX_STEPS) and not env.won:
            actions.append(expert.act(texts[-1]))
            texts.append(env.step(actions[-1]))
        steps = tuple(Step(text, action) for text, action in zip(texts, actions))
        yield Episode(f"{game.name} {number}", game.task, steps, env.won, texts[-1])


def sentences(seed: int = 0) -> Iterator[str]:
    """Write sentences without end; none moves a thing."""
    draw = random.Random(seed)
    for number in itertools.count():
        parts = {"who": draw.choice(_WHO), "what": draw.choice(_WHAT), "done": draw.choice(_DONE), "n": number}
        yield draw.choice(_SAID).format(adjective=draw.choice(_HOW), **parts)


def fill(memory: LifelongMemory, notes: int, facts: int) -> None:
    """Tell notes; see things in storage until the graph has `facts` facts."""
    for text in counted(list(itertools.islice(sentences(), notes)), "notes", "note"):
        memory.tell(text)
    memory.begin_task("storage", "count the boxes.", "You are in the storage.", place="storage")
    number = 0
    while graph_facts(memory) < facts:
        rows = [(f"{_WHAT[i % len(_WHAT)]} {i}", "in", f"box {i // 4}") for i in range(number, number + 100)]
        memory.observe(f"go to box {number // 4}", "", facts=rows)
        number += 100
    memory.end_task(True)


def graph_facts(memory: LifelongMemory) -> int:
    """Count the facts that are so now."""
    assert memory.spatial is not None
    with memory.spatial.graph.snapshot() as now:
        return int(now.num_current_facts)


def probe(memory: LifelongMemory, tasks: Iterable[Episode]) -> dict[str, Any]:
    """Play tasks in the memory and return times and pool tokens.

    Times are p50 and p99 of milliseconds, tokens the mean and the most of the pool.
    """
    times: dict[str, list[float]] = {"start": [], "observe": [], "step": [], "unchanged": []}
    tokens = []
    for task in tasks:

        def ask(task: Episode = task) -> list[Record]:
            return memory.pool(task.goal, task.first_observation, **READING)

        memory.begin_task(task.task_id, task.goal, task.first_observation)
        tokens.append(sum(count_tokens(record.text) for record in clock(ask, times["start"])))
        clock(ask, times["unchanged"])
        for step, answer in zip(task.steps, task.answers):
            clock(functools.partial(memory.observe, step.action, answer), times["observe"])
            clock(ask, times["step"])
            clock(ask, times["unchanged"])
        memory.end_task(task.won)
    rows = {name: [round(float(np.quantile(ms, q)), 3) for q in (0.5, 0.99)] for name, ms in times.items()}
    return {"ms_p50_p99": rows, "tokens_mean_max": [round(float(np.mean(tokens)), 1), max(tokens)]}


def clock(call: Callable[[], Any], into: list[float]) -> Any:
    """Call, and note the milliseconds of processor time."""
    start = time.thread_time()
    answer = call()
    into.append(1e3 * (time.thread_time() - start))
    return answer


def resident_mb() -> float:
    """Return the memory of this process."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def measurements(memory: LifelongMemory, stream: Iterator[Episode], before: float) -> dict[str, Any]:
    """Return what a memory has, weighs and costs now."""
    resident = round(resident_mb() - before, 1)
    assert memory.notes is not None
    counts = {"episodes": len(memory.task_ids), "notes": len(memory.notes.notes), "facts": graph_facts(memory)}
    row = counts | {"resident_mb": resident, "state_mb": round(len(memory.state()) / 1e6, 1)}
    row |= probe(memory, itertools.islice(stream, PROBES))
    print(row, flush=True)
    return row


def main(arguments: Sequence[str] | None = None) -> None:
    """Live, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--after", nargs="*", type=int, default=AFTER, help="episodes")
    parser.add_argument("--large", nargs=3, type=int, help="notes, episodes, facts of another memory")
    parser.add_argument("--state", type=pathlib.Path, help="file of the large memory: read where it is, else written")
    parser.add_argument("--result", type=output_file, help="JSON to write")
    options = parser.parse_args(arguments)
    if min([*options.after, *(options.large or ())], default=0) < 0:
        parser.error("--after, --large: expected numbers >= 0")
    rows, before, stream = [], resident_mb(), episodes()
    with tempfile.TemporaryDirectory() as folder, LifelongMemory.open(folder) as memory:
        for count in options.after:
            while len(memory.task_ids) < count:
                replay(memory, next(stream))
            disk = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())
            rows.append({"disk_mb": round(disk / 1e6, 1)} | measurements(memory, stream, before))
    if options.large:
        before, memory = resident_mb(), LifelongMemory()
        if options.state and options.state.exists():
            memory.restore(options.state.read_bytes())
        else:
            notes, count, facts = options.large
            for episode in itertools.islice(episodes(), count):
                replay(memory, episode)
            fill(memory, notes, facts)
            if options.state:
                options.state.write_bytes(memory.state())
        rows.append(measurements(memory, episodes(1), before))
    if options.result:
        write_result(options.result, {"reading": READING, "rows": rows, **manifest(arguments)})


if __name__ == "__main__":
    run(main)

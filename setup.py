"""Builds the extension `embodied_mem._native` with CMake, takes two sets of weights along; else see pyproject.toml."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
WEIGHTS = ("alfworld_judging", "habits")
"""Sets of `experiments/weights` that a wheel has, as `embodied_mem/weights/<name>`: 3 MB each."""
REPORT_EVERY_S = 10.0
_STEP = re.compile(r"\[ *(?:(\d+)/(\d+)|(\d+)%)\]")
"""How Ninja ([12/96]) and Make ([ 12%]) begin the line of a step."""


def follow(lines: Iterable[str], say: Callable[[str], object], clock: Callable[[], float] = time.monotonic) -> str:
    """Says now and then how far a build is and how long the rest takes; returns all that it printed."""
    began = last = clock()
    printed = []
    for line in lines:
        printed.append(line)
        if not (step := _STEP.match(line)) or (now := clock()) - last < REPORT_EVERY_S:
            continue
        last = now
        done, total = (int(step[3]), 100) if step[3] else (int(step[1]), int(step[2]))
        left_s = round((last - began) / max(done, 1) * (total - done))
        unit = " %" if step[3] else f" of {total} files"
        say(f"embodied_mem: C++ {done}{unit}, about {left_s // 60}:{left_s % 60:02d} left")
    return "".join(printed)


def say(line: str) -> None:
    """Shows a line; pip keeps what a build prints to itself, so on a terminal there the line goes to the terminal."""
    print(line, flush=True)
    if not sys.stdout.isatty():
        with contextlib.suppress(OSError), open("/dev/tty", "w") as terminal:
            terminal.write(f"\n  {line}\n")


class BuildWithWeights(build_py):
    """Copies the weights beside the modules; an editable install reads them where they are."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for name in WEIGHTS:
                target = Path(self.build_lib) / "embodied_mem" / "weights" / name
                shutil.copytree(ROOT / "experiments" / "weights" / name, target, dirs_exist_ok=True)


class CMakeBuild(build_ext):
    """Runs CMake for the one extension and puts the library where setuptools wants it."""

    def build_extension(self, ext: Extension) -> None:
        import pybind11

        # pip has new folders for temporary files, build tools and pybind11 each time; what is built stays in one place.
        kind = os.environ.get("EMBODIED_MEM_BUILD_TYPE", "Release")
        ninja = shutil.which("ninja")
        build = ROOT / "build" / (f"native-{kind}" if ninja else f"native-{kind}-make")
        headers, made = build / f"pybind11-{pybind11.__version__}", build / str(sys.implementation.cache_tag)
        if not headers.is_dir():
            partial = headers.with_suffix(".part")
            shutil.copytree(Path(pybind11.__file__).parent, partial, dirs_exist_ok=True)
            partial.rename(headers)
        configure = [
            "cmake",
            *["-S", str(ROOT), "-B", str(build)],
            *(["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else []),
            *[f"-U{name}" for name in ("*Python*", "*PYTHON*", "*PYBIND*")],  # as another interpreter left it
            f"-DCMAKE_BUILD_TYPE={kind}",
            # Named always, or the folder keeps a launcher that is gone.
            f"-DCMAKE_CXX_COMPILER_LAUNCHER={os.environ.get('CMAKE_CXX_COMPILER_LAUNCHER', '')}",
            f"-DCMAKE_LIBRARY_OUTPUT_DIRECTORY={made}",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-Dpybind11_DIR={headers / 'share' / 'cmake' / 'pybind11'}",
            f"-DEMBODIED_MEM_WERROR={os.environ.get('EMBODIED_MEM_WERROR', 'OFF')}",
        ]
        subprocess.run(configure, check=True)
        say("embodied_mem: compiling C++ that changed; all of it takes two to three minutes on two cores")
        command = ["cmake", "--build", str(build), "--target", "_native", "--parallel", str(os.cpu_count() or 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            printed = follow(process.stdout, say)
        if process.returncode:
            sys.exit(f"{printed}\n`{' '.join(command)}` ended with status {process.returncode}; its output is above")
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(made / target.name, target)


if __name__ == "__main__":
    commands = {"build_ext": CMakeBuild, "build_py": BuildWithWeights}
    setup(ext_modules=[Extension("embodied_mem._native", sources=[])], cmdclass=commands)

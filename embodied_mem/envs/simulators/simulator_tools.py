"""Tools of the programs that a worker runs: checks that say what to do next, seeds, folders, images.

Runs beside `worker.py` under the Python of a simulator: Python 3.8, numpy alone, nothing of this package.
"""

from __future__ import annotations

import ctypes
import importlib
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

ENOUGH = 10**9
"""Steps that no episode takes."""

POINTER = b"version https://git-lfs.github.com/spec/"
"""First bytes of a file that Git LFS has not fetched yet."""

EGL = "libEGL.so.1"

SAMPLE = 64
"""Files of a folder that are looked at; where Git LFS fetched nothing, every large one is a pointer."""


class Refused(Exception):
    """A missing or wrong thing, and what mends it."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(text)
        self.error = error


class Check(NamedTuple):
    """One thing that a simulator needs.

    Attributes:
        about: its name.
        problem: what is wrong with it; empty if nothing is.
        mend: the next command.
        kind: of the problem. missing, data, input: nothing starts; warning: it is said and the program starts; doctor:
            it is said by `embodied-mem doctor` alone, since only the program can tell whether it needs the thing.
        found: version, commit or place of what is there.
    """

    about: str
    problem: str = ""
    mend: str = ""
    kind: str = "data"
    found: str = ""


def refuse(checks: Iterable[Check]) -> list[str]:
    """Raise Refused at the first check that nothing starts without.

    Returns the warnings of the others.
    """
    warnings = []
    for check in checks:
        text = "; ".join(filter(None, (check.problem, check.mend)))
        if check.problem and check.kind == "warning":
            warnings.append(text)
        elif check.problem and check.kind != "doctor":
            raise Refused(check.kind, text)
    return warnings


def imported(name: str, mend: str, version: str = "") -> Check:
    """Import a module.

    With `version`, only that one will do. The message may name another module that it needs.
    """
    try:
        found = str(getattr(importlib.import_module(name), "__version__", ""))
    except ImportError as error:
        return Check(name, f"{name} cannot be imported by {sys.executable} ({error})", mend, "missing")
    if version and found != version:
        return Check(
            name, f"{name}: expected version {version}, got {found or 'one that does not say'}", mend, "missing"
        )
    return Check(name, found=found)


def present(path: str, about: str, mend: str) -> Check:
    """Check that a file, or a folder with content, is there.

    Git LFS must have fetched it.
    """
    path = os.path.abspath(path)
    if not os.path.exists(path) or (os.path.isdir(path) and not os.listdir(path)):
        return Check(about, f"{about} is not installed: expected {path}", mend)
    for file in [path] if os.path.isfile(path) else itertools.islice(files_in(path), SAMPLE):
        with open(file, "rb") as content:
            if content.read(len(POINTER)) == POINTER:
                problem = f"{about} is a pointer of Git LFS and not the file: {file}"
                return Check(about, problem, f"git -C {os.path.dirname(file)} lfs pull")
    return Check(about, found=path)


def files_in(folder: str) -> Iterator[str]:
    """Yield the files below a folder."""
    for place, _, names in os.walk(folder):
        yield from filter(os.path.isfile, (os.path.join(place, name) for name in sorted(names)))


def commit(folder: str) -> str:
    """Return the commit of a checkout, its first seven digits.

    "" where git does not know one.
    """
    try:
        told = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.stdout.decode()[:7]


def tested(folder: str, commits: Iterable[str]) -> Check:
    """Check that a folder has a tested commit of EmbodiedBench.

    The check says which commit lies there, and whether the adapter was run against it.
    """
    found = commit(folder)
    if found in commits:
        return Check("EmbodiedBench", found=f"commit {found}")
    problem = f"EmbodiedBench: tested with {', '.join(commits)}, found {found or 'no commit'} in {folder}"
    return Check("EmbodiedBench", problem, f"git -C {folder} checkout {next(iter(commits))}", "warning")


def rendering(gpu: int) -> Check:
    """Look whether EGL offers device number `gpu`; -1 for any."""
    mend = "install the graphics card's driver with its EGL, or for the CPU: apt-get install libegl1 libgl1-mesa-dri"
    try:
        egl = ctypes.CDLL(EGL)
    except OSError as error:
        return Check("EGL", f"EGL: {EGL} cannot be loaded ({error})", mend, "doctor")
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    address = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
    number = ctypes.c_int32(0)
    if address:
        ask = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32))
        ask(address)(0, None, ctypes.byref(number))
    if number.value <= max(gpu, 0):
        problem = f"EGL: expected device {max(gpu, 0)}, got {number.value} devices"
        return Check("EGL", problem, f"choose gpu= below {number.value}" if number.value else mend, "doctor")
    return Check("EGL", found=f"{number.value} devices")


def seed_all(seed: int) -> None:
    """Seed Python's and numpy's generators.

    Programs draw from them without asking.
    """
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (theirs)


class OwnFolder:
    """A working folder of one process: what the present one holds is linked there, what is made there goes with it.

    Programs leave links and logs in the folder where they run, and processes side by side would trip over each other's.
    """

    def __init__(self) -> None:
        here = os.getcwd()
        self.path = tempfile.mkdtemp(prefix="simulator-")
        for name in os.listdir(here):
            os.symlink(os.path.join(here, name), os.path.join(self.path, name))
        sys.path.insert(0, here)  # modules are found where they lie, and name that place
        os.chdir(self.path)
        self._here = here

    def close(self) -> None:
        """Go back and remove the folder."""
        os.chdir(self._here)
        shutil.rmtree(self.path, ignore_errors=True)


def rgb(image: Any) -> np.ndarray:
    """Return an image as uint8[height, width, 3].

    It may be a tensor's or a batch's first; it goes without its alpha channel.
    """
    if hasattr(image, "cpu"):
        image = image.cpu().numpy()
    image = np.asarray(image)
    while image.ndim > 3:
        image = image[0]
    if image.ndim != 3 or image.shape[2] not in (3, 4) or image.dtype != np.uint8:
        raise ValueError(f"expected an image uint8[height, width, 3], got {image.dtype}{list(image.shape)}")
    return np.ascontiguousarray(image[:, :, :3])

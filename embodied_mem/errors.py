"""Errors of the library: one root, a family for callers' mistakes, a family for broken invariants.

Every message says what was expected, what came, where, and what to do about it.

    try:
        envs = embodied_mem.envs.make("alfworld", tasks="valid_seen")
    except embodied_mem.errors.DataNotFoundError as error:
        print(error)
"""

from __future__ import annotations


class EmbodiedMemError(Exception):
    """Root of every error that this library raises on purpose."""


class InvalidInputError(EmbodiedMemError, ValueError):
    """The caller passed something that cannot be used; the message names it and what is accepted."""


class GameFileError(InvalidInputError):
    """A game file cannot be played; the message names the file, the position in it and the reason."""


class DataNotFoundError(EmbodiedMemError, FileNotFoundError):
    """Data that a world needs is not installed; the message names the command or folder that provides it."""


class MissingDependencyError(EmbodiedMemError, ImportError):
    """An optional package is missing; the message names the extra that installs it."""


class CheckpointError(EmbodiedMemError, ValueError):
    """A checkpoint is absent, incomplete, or belongs to another configuration."""


class StorageError(EmbodiedMemError, OSError):
    """A memory store's files cannot be read or written: damaged, of another version, in use, or the disk refuses."""


class SimulatorError(EmbodiedMemError, RuntimeError):
    """A simulator's process does not start, died, does not answer, or failed inside."""


class InternalError(EmbodiedMemError, RuntimeError):
    """An invariant of the library is broken. This is a bug of ours, please report it."""


class DivergedError(EmbodiedMemError, ArithmeticError):
    """Training produced a number that is not finite; the message names the run, the step and the metric."""

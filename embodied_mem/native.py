"""The compiled extension, found in one place: says how to build it where it is missing or older than these files.

from ..native import part
_memory = part("memory")
"""

from __future__ import annotations

import importlib
from types import ModuleType

from .errors import MissingDependencyError

_REBUILD = "rebuild it: pip install -e ."


def part(name: str) -> ModuleType:
    """Return the submodule `name` of the compiled extension.

    Raises:
        MissingDependencyError: there is no extension, it cannot be loaded, or it was built before that part existed.
    """
    try:
        native = importlib.import_module("embodied_mem._native")
    except ImportError as error:
        raise MissingDependencyError(
            f"embodied_mem._native: expected the compiled extension, got {error}; {_REBUILD}"
        ) from error
    found = getattr(native, name, None)
    if found is None:
        raise MissingDependencyError(
            f"embodied_mem._native: expected the part {name!r}, but {native.__file__} was built before there was one; "
            f"{_REBUILD}"
        )
    module: ModuleType = found
    return module

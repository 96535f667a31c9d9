"""What the programs that a worker runs have in common: refusals that say what to do, and images.

Runs beside `worker.py` under the Python of a simulator: Python 3.8, numpy alone, nothing of this package.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any

import numpy as np

ENOUGH = 10**9
"""Steps that no episode takes."""


class Refused(Exception):
    """What is missing or wrong, and what to do about it."""

    def __init__(self, error: str, text: str) -> None:
        super().__init__(text)
        self.error = error


def load(name: str, install: str) -> ModuleType:
    """Return a module; Refused names the one that is missing, which may be another that it needs."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Refused("missing", f"{name} cannot be imported by {sys.executable} ({error}); {install}") from error


def need(path: str, what: str, install: str) -> None:
    """Refuse to go on without a file or folder."""
    if not os.path.exists(path):
        raise Refused("data", f"{what} is not installed: expected {os.path.abspath(path)}; {install}")


def rgb(image: Any) -> np.ndarray:
    """Return an image as uint8[height, width, 3]: a tensor's or a batch's first, without its alpha channel."""
    if hasattr(image, "cpu"):
        image = image.cpu().numpy()
    image = np.asarray(image)
    while image.ndim > 3:
        image = image[0]
    if image.ndim != 3 or image.shape[2] not in (3, 4) or image.dtype != np.uint8:
        raise ValueError(f"expected an image uint8[height, width, 3], got {image.dtype}{list(image.shape)}")
    return np.ascontiguousarray(image[:, :, :3])

"""Folders that cost no disk."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def memory_folders():
    """Make new folders in memory, where the system has such: for tests of order and kills, not of the disk."""
    shared = "/dev/shm"
    root = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else None))
    yield lambda: Path(tempfile.mkdtemp(dir=root))
    shutil.rmtree(root)

"""Lets the tests of this folder import the small modules beside them, and gives them folders that cost no disk."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def memory_folders():
    """Make new folders in memory, where the system has such: for tests of order and kills, not of the disk."""
    shared = "/dev/shm"
    root = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else None))
    yield lambda: Path(tempfile.mkdtemp(dir=root))
    shutil.rmtree(root)

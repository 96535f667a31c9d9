"""Keeping freed memory: the page faults of a repeated allocation go away, in a process of their own."""

import subprocess
import sys

from embodied_mem.models.host import keep_freed_memory

SCRIPT = """
import resource, sys
import numpy as np
from embodied_mem.models.host import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
def touch():
    np.ones(16 << 20, np.uint8)
    np.ones(48 << 20, np.uint8)
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_repeated_allocations_fault_no_more():
    if not sys.platform.startswith("linux"):  # a setting of glibc
        assert keep_freed_memory() is False
        return

    def faults(mode):
        done = subprocess.run([sys.executable, "-c", SCRIPT, mode], capture_output=True, text=True, check=True)
        return int(done.stdout)

    assert faults("keep") * 10 < faults("default")

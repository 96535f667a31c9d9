"""A forked child works or says why not, whatever threads its parent had; it never hangs."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from embodied_mem import envs
from embodied_mem.envs.process_env import Processes
from embodied_mem.errors import SimulatorError, StorageError
from embodied_mem.forks import forking_lock
from embodied_mem.memory import LifelongMemory, VectorIndex

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def in_child(holds: Callable[[], object]) -> bool:
    """Whether `holds()` is true in a forked child, which then ends."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # ends one that hangs
        try:
            good = bool(holds())
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(2)
        os._exit(0 if good else 1)
    return os.waitpid(child, 0)[1] == 0


def test_a_lock_is_free_in_a_child_whoever_held_it():
    lock, held, go = forking_lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert not lock.acquire(blocking=False)
    assert in_child(lambda: lock.acquire(blocking=False))
    assert not lock.acquire(blocking=False)
    go.set()
    thread.join()


def test_envs_with_threads_go_on_in_a_child_as_in_the_parent(alfworld_data):
    vector_env = envs.make("alfworld", tasks=alfworld_data / "valid_seen", num_envs=4, num_threads=3)
    vector_env.reset()
    vector_env.step(["look"] * 4)
    read, write = os.pipe()

    def step() -> bool:
        observations = vector_env.step(["inventory"] * 4)[0]
        os.write(write, observations[3].encode())
        vector_env.close()
        return len(observations) == 4

    assert in_child(step)
    assert in_child(lambda: step() and in_child(step))
    assert os.read(read, 10_000).decode() == vector_env.step(["inventory"] * 4)[0][3] * 3


@pytest.mark.parametrize("fsync", ["always", "interval", "never"])
def test_a_child_of_a_process_with_a_store_ends_and_has_no_part_in_it(tmp_path, fsync):
    memory = LifelongMemory.open(tmp_path, fsync=fsync)
    memory.tell("I like tea.")
    child = os.fork()
    if child == 0:  # as a program that simply ends, destructors and all
        signal.alarm(20)
        code = 1
        try:
            memory.tell("I like coffee.")
        except StorageError as error:
            code = 0 if "open it again after a fork" in str(error) else 2
        memory.close()
        del memory
        gc.collect()
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    memory.tell("I like milk.")
    memory.close()
    reopened = LifelongMemory.open(tmp_path)
    assert reopened.store.last_event == 2
    reopened.close()


def test_a_child_that_lives_on_does_not_keep_the_folder(tmp_path):
    memory = LifelongMemory.open(tmp_path)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    memory.close()
    LifelongMemory.open(tmp_path).close()
    os.close(write)
    os.waitpid(child, 0)


def test_a_thread_that_is_in_the_store_at_the_fork_does_not_lock_the_child(tmp_path):
    memory = LifelongMemory.open(tmp_path)
    inside, go = threading.Event(), threading.Event()

    def hold() -> None:
        with memory.store._lock:
            inside.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()

    def refused() -> bool:
        with pytest.raises(StorageError, match="after a fork"):
            memory.store.snapshot()
        with pytest.raises(StorageError, match="after a fork"):
            memory.tell("I like tea.")
        return True

    try:
        assert in_child(refused)
    finally:
        go.set()
        thread.join()
        memory.close()


def test_a_memory_with_threads_of_its_own_works_in_a_child():
    memory = LifelongMemory(parallel=True)
    memory.begin_task("t", "put a mug on the desk", "You are in the kitchen. You see a mug.")
    memory._run([lambda: time.sleep(0.01)] * 4)  # has threads now, and all of them are idle
    expected = memory.retrieve("mug").render()

    def works() -> bool:
        same = memory.retrieve("mug").render() == expected and memory._run([lambda: 1, lambda: 2]) == [1, 2]
        memory.observe("take mug", "You take the mug.")
        memory.close()
        return same

    assert in_child(works)
    memory.close()


def test_an_index_is_searched_and_changed_in_children_beside_searching_threads():
    rows = np.random.default_rng(0).standard_normal((3000, 32), dtype=np.float32)
    index = VectorIndex(32, kind="exact")
    index.add(np.arange(3000), rows)
    expected, stop = index.search(rows, 3)[0], threading.Event()

    def search() -> None:
        while not stop.is_set():
            index.search(rows, 3)

    thread = threading.Thread(target=search)
    thread.start()

    def works() -> bool:
        same = (index.search(rows, 3)[0] == expected).all()
        index.remove([0])
        return same and len(index) == 2999

    try:
        assert all(in_child(works) for _ in range(5))
    finally:
        stop.set()
        thread.join()


def test_simulators_refuse_to_be_used_in_a_child():
    class Simulator:
        def close(self) -> None:
            pass

    class Simulators(Processes):
        def launch(self):
            return Simulator()

        def start(self, simulator, task, seed):
            return self.no_episode

        def play(self, simulator, episode, action):
            return True

    simulators = Simulators(2, 0, 2)
    simulators.reset([0, 1], [None, None], [0, 0])

    def refused() -> bool:
        with pytest.raises(SimulatorError, match="make envs here"):
            simulators.reset([0, 1], [None, None], [0, 0])
        simulators.close()
        return True

    assert in_child(refused)
    simulators.close()

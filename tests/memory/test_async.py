"""The awaitable memory: the same answers, order, durability, cancellation, threads of its own."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from embodied_mem.errors import EmbodiedMemError, InvalidInputError
from embodied_mem.memory import AsyncLifelongMemory, LifelongMemory, Recollection, Record, Scope
from embodied_mem.memory.recollection import Recent

ROOM = "Looking quickly around you, you see a desk 1, and a shelf 1."
SEEN = "You arrive at desk 1. On the desk 1, you see a mug 1."


def calls(memory):
    """The same life, told to either kind."""
    return [
        lambda: memory.begin_task("t", "put a mug on the shelf", ROOM),
        lambda: memory.observe("go to desk 1", SEEN),
        lambda: memory.tell("I am vegetarian.", speaker="Ann", labels={"room": "kitchen"}, trust="user"),
        lambda: memory.tell("Open every drawer.", trust="document"),
        lambda: memory.retrieve("vegetarian drawer", k=3, where={"module": "notes"}),
        lambda: memory.explain(),
        lambda: memory.get("notes:0"),
        lambda: memory.get_all("notes", where={"room": "kitchen"}),
        lambda: memory.update("notes:0", "I am vegan."),
        lambda: memory.history("notes:0"),
        lambda: memory.sightings("mug"),
        lambda: memory.delete("notes:1"),
        lambda: memory.end_task(True),
        lambda: memory.forget(object="mug 1"),
        lambda: memory.state(),
    ]


def test_the_same_methods_with_the_same_answers():
    async def run() -> list:
        async with AsyncLifelongMemory(LifelongMemory()) as memory:
            return [await call() for call in calls(memory)]

    assert asyncio.run(run()) == [call() for call in calls(LifelongMemory())]
    own = {name for name, _ in inspect.getmembers(LifelongMemory, inspect.isfunction) if name[0] != "_"}
    events = {"apply", "apply_checked", "check", "remove"}  # of whoever keeps the log
    assert own - events <= set(dir(AsyncLifelongMemory))
    assert inspect.signature(AsyncLifelongMemory.tell) == inspect.signature(LifelongMemory.tell)


def test_errors_are_those_of_the_memory():
    async def run() -> None:
        memory = AsyncLifelongMemory(LifelongMemory())
        with pytest.raises(InvalidInputError, match="call begin_task first"):
            await memory.observe("look", "x")
        with pytest.raises(InvalidInputError, match="id: expected"):
            await memory.get("moods")
        await memory.close()
        await memory.close()
        with pytest.raises(InvalidInputError, match="closed"):
            await memory.tell("x")
        with pytest.raises(InvalidInputError, match="expected a LifelongMemory"):
            AsyncLifelongMemory(None)

    asyncio.run(run())


def test_many_tasks_at_once_lose_nothing_and_the_loop_goes_on():
    async def run() -> None:
        async with AsyncLifelongMemory(LifelongMemory()) as memory:
            beats, over = 0, False

            async def beat() -> None:
                nonlocal beats
                while not over:
                    beats += 1
                    await asyncio.sleep(0)

            async def work(worker: int) -> None:
                for number in range(25):
                    await memory.tell(f"Item w{worker}n{number} stands on shelf {number}.")
                    assert f"w{worker}n{number} " in (await memory.retrieve(f"w{worker}n{number}")).render()

            heart = asyncio.ensure_future(beat())
            await asyncio.gather(*map(work, range(8)))
            over = True
            await heart
            assert len(await memory.get_all("notes")) == 200
            assert beats > 200

    asyncio.run(run())


def test_changes_are_made_in_the_order_of_their_calls():
    async def run() -> None:
        async with AsyncLifelongMemory(LifelongMemory()) as memory:
            await asyncio.gather(*(memory.tell(f"Line {number}.") for number in range(50)))
            assert [entry.text for entry in await memory.get_all("notes")] == [f"Line {n}." for n in range(50)]

    asyncio.run(run())


class Model:
    """A chat model that answers when it is let."""

    def __init__(self) -> None:
        self.asked, self.may_answer = threading.Event(), threading.Event()

    def __call__(self, messages) -> str:
        self.asked.set()
        assert self.may_answer.wait(20)
        return "[]"


def test_a_cancelled_await_loses_no_change_and_readers_do_not_wait(tmp_path):
    model = Model()

    async def run() -> None:
        memory = await AsyncLifelongMemory.open(tmp_path / "m", Scope(user="ann"), chat=model)
        telling = asyncio.ensure_future(memory.tell("I am vegetarian."))
        await asyncio.to_thread(model.asked.wait, 20)
        behind = asyncio.ensure_future(memory.tell("The key is under the mat."))  # not even begun
        await asyncio.sleep(0)
        assert (await asyncio.wait_for(memory.retrieve("vegetarian"), 20)).items == ()
        for waiting in (telling, behind):
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        model.may_answer.set()
        await memory.settled()
        assert len(await memory.get_all("notes")) == 2
        await memory.close()

    asyncio.run(run())
    with LifelongMemory.open(tmp_path / "m", Scope(user="ann")) as memory:
        assert [entry.text for entry in memory.get_all("notes")] == ["I am vegetarian.", "The key is under the mat."]


@pytest.mark.parametrize("how", ["settled", "close"])
def test_a_cancelled_change_that_fails_is_told(how):
    async def run() -> None:
        model = Model()
        memory = AsyncLifelongMemory(LifelongMemory(chat=model))
        first = asyncio.ensure_future(memory.tell("I am vegetarian."))
        await asyncio.to_thread(model.asked.wait, 20)
        doomed = asyncio.ensure_future(memory.end_task(True))  # no task is running: it will be refused
        await asyncio.sleep(0)
        doomed.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doomed
        model.may_answer.set()
        await first
        with pytest.raises(ExceptionGroup) as caught:
            await getattr(memory, how)()
        (error,) = caught.value.exceptions
        assert isinstance(error, EmbodiedMemError)
        await memory.settled()  # each is told once
        await memory.close()

    asyncio.run(run())


def test_a_timeout_around_a_write_and_a_loop_that_ends():
    async def run() -> LifelongMemory:
        model = Model()
        memory = AsyncLifelongMemory(LifelongMemory(chat=model))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(memory.tell("I am vegetarian."), 0.05)
        model.may_answer.set()
        await memory.close()
        return memory.memory

    assert len(asyncio.run(run()).get_all("notes")) == 1


def test_two_memories_have_threads_of_their_own():
    """Also where the loop's own threads are all busy."""

    async def run() -> None:
        busy, leave = [], threading.Event()
        loop = asyncio.get_running_loop()
        busy = [loop.run_in_executor(None, leave.wait, 20) for _ in range(64)]
        async with AsyncLifelongMemory(LifelongMemory()) as one, AsyncLifelongMemory(LifelongMemory()) as two:
            await asyncio.wait_for(asyncio.gather(one.tell("One."), two.tell("Two.")), 10)
            other = await one.fork()
            await other.tell("Three.")
            assert [len(await memory.get_all("notes")) for memory in (one, two, other)] == [1, 1, 2]
            await other.close()
        leave.set()
        await asyncio.gather(*busy)

    asyncio.run(run())


KILLED = """
import asyncio, sys
from embodied_mem.memory import AsyncLifelongMemory

async def run():
    memory = await AsyncLifelongMemory.open(sys.argv[1])
    for number in range(10_000):
        await memory.tell(f"Line {number} of many.")
        print(number, flush=True)

asyncio.run(run())
"""


def test_what_an_await_has_returned_survives_a_kill(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "m")], stdout=subprocess.PIPE, text=True)
    acknowledged = [child.stdout.readline() for _ in range(20)][-1]
    os.kill(child.pid, signal.SIGKILL)
    rest = child.stdout.read().splitlines()
    child.wait()
    assert child.returncode == -signal.SIGKILL
    last = int(rest[-1] if rest else acknowledged)
    with LifelongMemory.open(tmp_path / "m") as memory:
        texts = [entry.text for entry in memory.get_all("notes")]
    assert texts[: last + 1] == [f"Line {number} of many." for number in range(last + 1)]
    assert len(texts) <= last + 2


def test_a_cancelled_opening_leaves_no_lock(tmp_path):
    async def run() -> None:
        opening = asyncio.ensure_future(AsyncLifelongMemory.open(tmp_path / "m"))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        until = time.monotonic() + 20
        while True:
            try:
                memory = await AsyncLifelongMemory.open(tmp_path / "m")
                break
            except EmbodiedMemError:
                assert time.monotonic() < until
                await asyncio.sleep(0.01)
        await memory.close()

    asyncio.run(run())


def test_what_is_recalled_beside_what_is_told_is_still_known():
    """`retrieve` adds to what was recalled while `tell` looks through it."""
    recent, problems = Recent(), []

    def recall() -> None:
        for number in range(5_000):
            record = Record(f"notes:{number}", "notes", "note", f"text {number}")
            recent.add(Recollection("", (record,), 1, None))

    def look() -> None:
        try:
            for number in range(5_000):
                recent.item_of(f"text {number}")
        except Exception as error:
            problems.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for work in (recall, recall, look, look)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert problems == []
    assert recent.item_of("text 4999") is not None

"""A memory for programs that await: the methods of `LifelongMemory`, run in threads of its own.

    async with await AsyncLifelongMemory.open("memory/ann", Scope(user="ann")) as memory:
        receipt = await memory.tell("I am vegetarian.")
        found = await memory.retrieve("what may I cook?", k=3)

What changes the memory runs in one thread, in the order in which it was called; what only reads runs in others, beside
it, and waits for no chat model. What an await has returned is as durable as the memory makes it. An await that is
cancelled cancels no change: the change is still made, in its turn, and if it fails, `settled` and `close` raise what
went wrong, so nothing is lost without a word.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
import os
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from ..errors import InvalidInputError
from .graph import Scope
from .lifelong import LifelongMemory

P = ParamSpec("P")
R = TypeVar("R")
_NUM_READERS = 4

Method = Callable[Concatenate[LifelongMemory, P], R]
Awaited = Callable[Concatenate["AsyncLifelongMemory", P], Awaitable[R]]


def _change(method: Method[P, R]) -> Awaited[P, R]:
    @functools.wraps(method)
    async def call(self: AsyncLifelongMemory, /, *arguments: P.args, **named: P.kwargs) -> R:
        return await self._changed(functools.partial(method, self.memory, *arguments, **named))

    return call


def _read(method: Method[P, R]) -> Awaited[P, R]:
    @functools.wraps(method)
    async def call(self: AsyncLifelongMemory, /, *arguments: P.args, **named: P.kwargs) -> R:
        reading = functools.partial(method, self.memory, *arguments, **named)
        return await asyncio.wrap_future(self._submit(self._readers, reading))

    return call


class AsyncLifelongMemory:
    """One `LifelongMemory` behind awaitable methods of the same names and arguments.

    Attributes:
        memory: itself; what takes no time (`goal`, `time`, `task_ids`, `store`, ...) is read there.
    """

    def __init__(self, memory: LifelongMemory):
        """Take a memory; this object closes it."""
        if not isinstance(memory, LifelongMemory):
            raise InvalidInputError(f"memory: expected a LifelongMemory, got {type(memory).__name__}")
        self.memory = memory
        self._writer = concurrent.futures.ThreadPoolExecutor(1, "embodied_mem.change")
        self._readers = concurrent.futures.ThreadPoolExecutor(_NUM_READERS, "embodied_mem.read")
        self._left: set[concurrent.futures.Future[Any]] = set()  # changes that nobody awaits any more
        self._closed = False

    @classmethod
    async def open(
        cls, directory: str | os.PathLike[str], scope: Scope | None = None, **options: Any
    ) -> AsyncLifelongMemory:
        """Return the memory that is kept in a folder, as `LifelongMemory.open`."""
        pool = concurrent.futures.ThreadPoolExecutor(1, "embodied_mem.open")
        opening = asyncio.wrap_future(pool.submit(functools.partial(LifelongMemory.open, directory, scope, **options)))
        pool.shutdown(wait=False)
        try:
            return cls(await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_close_opened)  # the folder must not stay locked
            raise

    begin_task = _change(LifelongMemory.begin_task)
    observe = _change(LifelongMemory.observe)
    tell = _change(LifelongMemory.tell)
    end_task = _change(LifelongMemory.end_task)
    update = _change(LifelongMemory.update)
    delete = _change(LifelongMemory.delete)
    forget = _change(LifelongMemory.forget)
    restore = _change(LifelongMemory.restore)
    import_ = _change(LifelongMemory.import_)

    retrieve = _read(LifelongMemory.retrieve)
    explain = _read(LifelongMemory.explain)
    get = _read(LifelongMemory.get)
    get_all = _read(LifelongMemory.get_all)
    history = _read(LifelongMemory.history)
    sightings = _read(LifelongMemory.sightings)
    pool = _read(LifelongMemory.pool)
    pool_of = _read(LifelongMemory.pool_of)
    state = _read(LifelongMemory.state)
    export = _read(LifelongMemory.export)

    async def fork(self) -> AsyncLifelongMemory:
        """Fork, as `LifelongMemory.fork`, after all changes called before."""
        return AsyncLifelongMemory(await self._changed(self.memory.fork))

    def _submit(self, pool: concurrent.futures.Executor, call: Callable[[], R]) -> concurrent.futures.Future[R]:
        if self._closed:
            raise InvalidInputError("memory: expected an open one, got one that was closed; open it again")
        return pool.submit(contextvars.copy_context().run, call)

    async def _changed(self, call: Callable[[], R]) -> R:
        """Make a change, even if the await is cancelled; return its result."""
        change = self._submit(self._writer, call)
        try:
            return await asyncio.shield(asyncio.wrap_future(change))
        except asyncio.CancelledError:
            self._left.add(change)
            raise

    async def settled(self) -> None:
        """Wait for changes with a cancelled await.

        Raises:
            ExceptionGroup: those of them that failed, each once.
        """
        left, errors = list(self._left), []
        for change in left:
            error = await asyncio.shield(asyncio.wrap_future(_outcome(change)))
            errors += [] if error is None else [error]
            self._left.discard(change)
        if errors:
            raise ExceptionGroup("changes whose await was cancelled", errors)

    async def close(self) -> None:
        """Wait for all changes and release the folder. Raises as `settled`."""
        if self._closed:
            return
        try:
            await self.settled()
        finally:
            self._closed = True
            closing = self._writer.submit(self.memory.close)  # behind all changes
            self._writer.shutdown(wait=False)
            self._readers.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(closing))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


def _outcome(change: concurrent.futures.Future[Any]) -> concurrent.futures.Future[Exception | None]:
    """Return a future of the exception of another."""
    found: concurrent.futures.Future[Exception | None] = concurrent.futures.Future()

    def told(done: concurrent.futures.Future[Any]) -> None:
        error = None if done.cancelled() else done.exception()
        found.set_result(error if isinstance(error, Exception) else None)

    change.add_done_callback(told)
    return found


def _close_opened(opening: asyncio.Future[LifelongMemory]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()

"""One event loop per process, in its own thread, for calls that must be cancellable at any moment.

    for part in received(download):                # download(give): a coroutine that calls give(part)
        ...

A blocking call can wait in a name look-up, a handshake with a proxy, or for one byte a second, and no timeout of a
socket ends all of these; a coroutine is cancelled wherever it waits. A forked child gets a loop of its own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import queue
import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


@dataclasses.dataclass
class _End:
    error: BaseException | None = None


def received(start: Callable[[Callable[[Any], None]], Coroutine[Any, Any, None]]) -> Generator[Any, None, None]:
    """What a coroutine gives, in this thread, as it comes; the coroutine's error is raised here.

    It runs from the first `next` on, and is cancelled when the iterator is closed.

    Args:
        start: makes the coroutine from the function that it calls with each item.
    """
    items: queue.SimpleQueue[Any] = queue.SimpleQueue()

    async def run() -> None:
        try:
            await start(items.put)
        except BaseException as error:
            items.put(_End(error))
        else:
            items.put(_End())

    future = asyncio.run_coroutine_threadsafe(run(), _running())
    try:
        while not isinstance(item := items.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        future.cancel()


def finish_later(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Runs a coroutine on the loop, if there is one, and does not wait for it."""
    if _loop is not None:
        asyncio.run_coroutine_threadsafe(make(), _loop)


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="embodied_mem requests", daemon=True).start()
        return _loop


def _start_anew() -> None:
    global _loop, _lock
    _lock, _loop = threading.Lock(), None


os.register_at_fork(after_in_child=_start_anew)

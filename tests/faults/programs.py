"""Faults that were once there, each as a program that fails while its fault is: `python programs.py NAME`.

A process each, because what they look for may hang, eat the memory or end the interpreter.
"""

from __future__ import annotations

import http.server
import json
import lzma
import os
import pathlib
import resource
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

from embodied_mem.errors import EmbodiedMemError


def raises_only_ours(call: Callable[[], object]) -> EmbodiedMemError | None:
    """The error of the library that a call ended in, if it did; any other is raised."""
    try:
        call()
    except EmbodiedMemError as error:
        return error
    return None


def wait_for(child: int, seconds: float = 10.0) -> None:
    """Raise unless a child ends by itself in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError("the forked child hangs")


def a_wrong_argument_leaves_the_folder_whole() -> None:
    """What cannot be applied is refused before it is recorded."""
    from embodied_mem.memory import LifelongMemory

    calls = [
        lambda memory: memory.forget(episode=2**63),
        lambda memory: memory.forget(episode=-(2**70)),
        lambda memory: memory.tell(7),
        lambda memory: memory.tell(None),
        lambda memory: memory.begin_task(7, "goal", "a room"),
        lambda memory: memory.begin_task("task", b"goal", "a room"),
        lambda memory: memory.begin_task("task", "goal", None),
        lambda memory: memory.begin_task("task", "goal", "a room", place=7),
        lambda memory: memory.observe(None, "x"),
        lambda memory: memory.observe("look", 7),
        lambda memory: memory.end_task("yes"),
    ]
    for number, call in enumerate(calls):
        folder = tempfile.mkdtemp()
        with LifelongMemory.open(folder, fsync="never") as memory:
            memory.tell("I like tea.")
            if number >= 8:
                memory.begin_task("task", "goal", "a room")
            raises_only_ours(lambda call=call, memory=memory: call(memory))
            raises_only_ours(lambda memory=memory: memory.forget(object="vase"))
        for read_only in (True, False):
            with LifelongMemory.open(folder, read_only=read_only) as memory:
                assert "tea" in memory.retrieve("do I like tea?").render(), f"call {number}: what was told is gone"


def an_answer_is_read_in_linear_time() -> None:
    """The worst characters cost no more than others."""
    from embodied_mem.language.json_answers import read_json

    worst = (
        "```json" + "\n" * 100_000 + "x",
        "```" * 50_000,
        "`" * 200_000,
        "{" * 100_000,
        '"' * 200_000,
        "```\n" * 50_000,
    )
    began = time.process_time()
    for text in worst:
        raises_only_ours(lambda text=text: read_json(text, {}))
    assert time.process_time() - began < 5, f"{time.process_time() - began:.1f} s"


def a_forked_child_ends() -> None:
    """With a store that syncs in the background."""
    from embodied_mem.memory import LifelongMemory

    memory = LifelongMemory.open(tempfile.mkdtemp(), fsync="interval")
    memory.tell("I like tea.")
    child = os.fork()
    if child == 0:
        sys.exit(0)
    wait_for(child)
    memory.tell("I like soup.")
    memory.close()


def a_forked_child_may_step() -> None:
    """Environments with threads work in a child, or say that they do not."""
    from embodied_mem.worlds.alfworld.env import AlfworldVectorEnv, Game

    seeds = pathlib.Path(__file__).parents[2] / "experiments" / "attacks" / "seeds"
    game = Game.from_problem(
        (seeds / "kitchen.pddl").read_text(), "cool some apple and put it in countertop.", "kitchen"
    )
    envs = AlfworldVectorEnv([game], num_envs=4, num_threads=2)
    envs.reset()
    for use in (lambda: envs.step(["look"] * 4), lambda: envs.close()):
        child = os.fork()
        if child == 0:
            raises_only_ours(use)
            sys.exit(0)
        wait_for(child)
    envs.step(["look"] * 4)


def saves_to_one_path_leave_a_whole_file() -> None:
    """Whichever of two threads comes last."""
    import numpy as np

    from embodied_mem.memory import VectorIndex

    path = tempfile.mkdtemp() + "/v"
    indexes = []
    for count in (3000, 3001):
        indexes.append(VectorIndex(64, kind="exact"))
        indexes[-1].add(np.arange(count), np.random.default_rng(count).normal(size=(count, 64)))
    for _ in range(100):
        threads = [threading.Thread(target=raises_only_ours, args=(lambda i=i: i.save(path),)) for i in indexes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(VectorIndex.load(path)) in (3000, 3001)


def what_a_killed_save_left_is_removed() -> None:
    """A vector that was removed is in no file after the next save."""
    import numpy as np

    from embodied_mem.memory import VectorIndex

    folder = pathlib.Path(tempfile.mkdtemp())
    index = VectorIndex(64, kind="exact")
    index.add(np.arange(20_000), np.random.default_rng(0).normal(size=(20_000, 64)))
    index.save(folder / "v")
    (folder / "mine.tmp").write_text("a file of somebody else")
    wanted = index.vector(0).tobytes()
    for attempt in range(60):
        child = os.fork()
        if child == 0:
            while True:
                index.save(folder / "v")
        time.sleep(0.004 * (attempt + 1))
        os.kill(child, 9)
        os.waitpid(child, 0)
        if len(list(folder.iterdir())) > 2:
            break
    else:
        raise AssertionError("no save was killed in the middle")
    index = VectorIndex.load(folder / "v")
    index.remove([0])
    index.save(folder / "v")
    assert sorted(path.name for path in folder.iterdir()) == ["mine.tmp", "v"]
    assert wanted not in (folder / "v").read_bytes()


def a_packed_file_may_not_grow_without_bound() -> None:
    """A few kilobytes that unpack to much, with few or many values, are refused in bounded memory."""
    from embodied_mem.worlds.eb_habitat.data import load_tasks

    folder = tempfile.mkdtemp()
    bombs = (
        b'{"episodes":[' + b"0," * (20 << 20) + b"0]}",
        b'{"episodes":"' + b"x" * (200 << 20) + b'"}',
        b'{"episodes":' + b"[" * (10 << 20),
    )
    for number, bomb in enumerate(bombs):
        path = f"{folder}/{number}.json.xz"
        pathlib.Path(path).write_bytes(lzma.compress(bomb, preset=0))
        del bomb
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        error = raises_only_ours(lambda path=path: load_tasks(path))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        assert error is not None, "it was read"
        assert grown < 1000, f"{grown} MB for file {number}"


def _serve(status: int, body: bytes) -> str:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def a_chat_error_is_ours_and_tells_no_key() -> None:
    """Whatever a caller or a server does."""
    from embodied_mem.language import OpenAIChatModel

    os.environ["no_proxy"] = "127.0.0.1"
    huge = json.dumps({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": 10**400}}).encode()
    for base_url, options in (
        (_serve(200, huge), {"api_key": "sk-SECRET\n"}),
        (_serve(200, huge), {"api_key": "sk-SECRET", "prices": {"m": (1, 1)}}),
        (_serve(401, b'{"error": "the key sk-SECRET is wrong"}'), {"api_key": "sk-SECRET"}),
        ("http://[::1/v1", {"api_key": "sk-SECRET"}),
        ("ftp://127.0.0.1/v1", {"api_key": "sk-SECRET"}),
        ("", {"api_key": "sk-SECRET"}),
    ):
        question = [{"role": "user", "content": "x"}]
        error = raises_only_ours(
            lambda base_url=base_url, options=options, question=question: OpenAIChatModel(
                base_url, "m", max_retries=0, **options
            ).complete(question)
        )
        shown = f"{error!r} {error.__cause__!r} {error.__context__!r}" if error is not None else ""
        assert "SECRET" not in shown, f"{base_url}: the key is in the error: {shown}"


def a_changed_recording_is_refused() -> None:
    """An answer that was altered is not given; one line without an end is dropped as before."""
    from embodied_mem.language import ChatReply, RecordedChatModel, UsageMeter

    class Model:
        name, meter = "m", UsageMeter()

        def complete(self, *_: object, **__: object) -> ChatReply:
            return ChatReply("in fridge 1")

    path = pathlib.Path(tempfile.mkdtemp()) / "calls.jsonl"
    question = [{"role": "user", "content": "q"}]
    RecordedChatModel(Model(), path).complete(question)
    whole = path.read_bytes()
    assert RecordedChatModel(None, path, "m").complete(question).text == "in fridge 1"
    path.write_bytes(whole.replace(b"fridge 1", b"fridge 2"))
    error = raises_only_ours(lambda: RecordedChatModel(None, path, "m").complete(question))
    assert error is not None, "another answer was given"
    path.write_bytes(b"[" * 100_000 + b"\n")
    assert raises_only_ours(lambda: RecordedChatModel(None, path, "m")) is not None


def what_is_forgotten_is_gone_in_every_form() -> None:
    """Other Unicode forms, other cases, plurals, and the place of the running episode."""
    from embodied_mem.memory import LifelongMemory

    pairs = (
        ("caf\u00e9cup", unicodedata.normalize("NFD", "caf\u00e9cup")),
        ("gro\u00dfvase", "GROSSVASE"),
        ("shelf", "shelves"),
    )
    for word, told in (*pairs, *((b, a) for a, b in pairs)):
        folder = pathlib.Path(tempfile.mkdtemp())
        with LifelongMemory.open(folder, fsync="never") as memory:
            memory.tell(f"I usually keep the {told} on the desk.")
            memory.begin_task("t", "g", "o", place="secret room")
            memory.forget(object=word)
            memory.forget(episode=0)
        raw = b"".join(path.read_bytes() for path in folder.iterdir())
        for form in ("NFC", "NFD"):
            for text in (word, told):
                shape = unicodedata.normalize(form, text).encode()
                assert shape not in raw, f"after forget({word!r}), {shape!r} is still there"
        assert b"secret room" not in raw, "the place of the forgotten episode is still there"


PROGRAMS = [
    a_wrong_argument_leaves_the_folder_whole, an_answer_is_read_in_linear_time, a_forked_child_ends,
    a_forked_child_may_step, saves_to_one_path_leave_a_whole_file, what_a_killed_save_left_is_removed,
    a_packed_file_may_not_grow_without_bound, a_chat_error_is_ours_and_tells_no_key, a_changed_recording_is_refused,
    what_is_forgotten_is_gone_in_every_form,
]  # fmt: skip

if __name__ == "__main__":
    {program.__name__: program for program in PROGRAMS}[sys.argv[1]]()

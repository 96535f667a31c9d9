"""A folder in which an older version acknowledged an event that it could not apply opens; the event is reported."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from embodied_mem.memory import LifelongMemory, Scope

OLD = Path(__file__).parents[1] / "fixtures" / "v0.1" / "unappliable"
SCOPE = Scope(user="ann", environment="home")


@pytest.fixture(params=sorted(path.name for path in OLD.iterdir()))
def folder(request, tmp_path):
    shutil.copytree(OLD / request.param, tmp_path / "memory")
    return tmp_path / "memory"


@pytest.mark.parametrize("read_only", [False, True])
def test_it_opens_with_what_was_told_before(folder, read_only):
    for again in (False, True):
        with LifelongMemory.open(folder, SCOPE, read_only=read_only) as memory:
            assert "blue mug" in memory.retrieve("what does ann like?", 3000).render()
            said = {name: value for name, value in vars(memory.store.report).items() if value}
            assert again or set(said) - {"snapshot", "num_events"}, f"nothing is reported: {said}"


def test_it_goes_on(folder):
    with LifelongMemory.open(folder, SCOPE) as memory:
        memory.tell("I like my soup hot.")
        memory.store.snapshot()
    with LifelongMemory.open(folder, SCOPE) as memory:
        assert "soup" in memory.retrieve("what does ann like?", 3000).render()


def test_forget_reaches_it(folder):
    with LifelongMemory.open(folder, SCOPE) as memory:
        memory.forget(user="ann")
        assert "blue mug" not in memory.retrieve("what does ann like?", 3000).render()
    assert not [path.name for path in folder.iterdir() if b"blue mug" in path.read_bytes()]

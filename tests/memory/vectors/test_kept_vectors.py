"""Opening a folder with a model embeds each text once, in parts, however often it is killed on the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import numpy as np

from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.folder_events import VECTORS_NAME
from embodied_mem.memory.search import PART, VectorFile

NUM_TEXTS = 4 * PART
OPEN_SLOWLY = """
import sys, time
import numpy as np
from embodied_mem.memory import LifelongMemory
class Slow:
    name = "model"
    def embed(self, texts):
        print(len(texts), flush=True)
        time.sleep(0.05)
        return np.ones((len(texts), 4), np.float32) / 2
LifelongMemory.open(sys.argv[1], embedder=Slow())
print("opened", flush=True)
time.sleep(60)
"""


class Model:
    def __init__(self, name: str = "model", width: int = 4):
        self.name, self.width, self.texts = name, width, list[str]()

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        vectors = np.array([[len(text), *map(ord, text[-3:])] for text in texts], np.float32)[:, : self.width]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def told(folder) -> None:
    with LifelongMemory.open(folder, fsync="never", modules=("notes",)) as memory:
        for number in range(NUM_TEXTS):
            memory.tell(f"Text number {number:03}.")
        memory.store.snapshot()


def reopened(folder, model: Model, **options) -> int:
    """How many texts were embedded."""
    with LifelongMemory.open(folder, embedder=model, modules=("notes",), **options) as memory:
        count = len(model.texts)
        assert memory.retrieve("Text number 007.").items
    return count


def test_a_killed_opening_goes_on_where_it_was(tmp_path):
    told(tmp_path)
    script = OPEN_SLOWLY.replace("embedder=Slow()", "embedder=Slow(), modules=('notes',)")
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline() for _ in range(3)]  # the third part is being embedded
        process.kill()
        assert process.wait() == -9
    assert lines == [f"{PART}\n"] * 3
    path = tmp_path / VECTORS_NAME
    torn = path.read_bytes()
    path.write_bytes(torn + torn[-20:-3])  # as after a loss of power
    assert reopened(tmp_path, Model()) == NUM_TEXTS - 2 * PART
    assert reopened(tmp_path, Model()) == 0
    assert reopened(tmp_path, Model(), read_only=True) == 0


def test_vectors_are_those_of_the_embedder(tmp_path):
    model = Model()
    texts = [f"a text {number}" for number in range(PART + 3)]
    for _ in range(2):
        with VectorFile(tmp_path, "model") as file:
            assert np.array_equal(
                file.embed(model.embed, texts[::-1] + texts[:2]), Model().embed(texts[::-1] + texts[:2])
            )
    assert sorted(model.texts) == sorted(texts)
    with VectorFile(tmp_path, "model") as file:  # another width by the same name
        assert file.embed(Model(width=2).embed, [*texts, "new"]).shape == (PART + 4, 2)
    with VectorFile(tmp_path, "model") as file:
        assert file.embed(lambda texts: np.zeros((len(texts), 0), np.float32), [texts[0], "x"]).tolist()[1] == [0, 0]


def test_another_model_begins_anew_and_built_in_ones_keep_nothing(tmp_path):
    told(tmp_path)
    assert not (tmp_path / VECTORS_NAME).exists()
    assert reopened(tmp_path, Model("one")) == NUM_TEXTS
    assert reopened(tmp_path, Model("two")) == NUM_TEXTS
    assert reopened(tmp_path, Model("one"), read_only=True) == NUM_TEXTS
    assert reopened(tmp_path, Model("two")) == 0


def test_a_file_of_texts_that_are_gone_gets_small(tmp_path):
    with VectorFile(tmp_path, "model") as file:
        file.embed(Model().embed, [f"a text {number}" for number in range(4 * PART)])
    size = (tmp_path / VECTORS_NAME).stat().st_size
    with VectorFile(tmp_path, "model") as file:
        file.embed(Model().embed, ["a text 1"])
    assert (tmp_path / VECTORS_NAME).stat().st_size < size / 50


def test_forgetting_takes_the_vectors(tmp_path):
    told(tmp_path)
    with LifelongMemory.open(tmp_path, embedder=Model(), modules=("notes",)) as memory:
        assert (tmp_path / VECTORS_NAME).exists()
        memory.delete("notes:3")
        assert not (tmp_path / VECTORS_NAME).exists()
    assert reopened(tmp_path, Model()) == NUM_TEXTS - 1

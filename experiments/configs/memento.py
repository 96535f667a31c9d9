"""MEMENTO, both stages, by the built-in agent; for `python experiments/evaluate.py --config=memento`."""

import dataclasses

from embodied_mem.errors import InvalidInputError
from embodied_mem.memory.trace_retrieval import STRATEGIES

EMBEDDERS = ("auto", "minilm", "lexical")
TABLES = ("realistic", "limits", "retrieval", "top_k", "formats", "damage", "profile", "variants")


@dataclasses.dataclass(frozen=True)
class MementoConfig:
    """What `evaluate_memento` does.

    Attributes:
        data: folder with `scenes.json`, `captions.json`, `episodes/`; empty takes `$EMBODIED_MEM_DATA/memento`.
        embedder: `minilm`, `lexical`, or `auto`: minilm where its weights are installed.
        strategy: how memories are found in the main table.
        k: memories given.
        max_steps: actions of a run.
        triples_per_scene: 3-joint tasks drawn per house.
        seed: of the world's chance and of every draw.
        tables: which of the other tables are made.
    """

    data: str = ""
    embedder: str = "auto"
    strategy: str = "hybrid"
    k: int = 5
    max_steps: int = 40
    triples_per_scene: int = 5
    seed: int = 0
    tables: tuple[str, ...] = TABLES

    def __post_init__(self) -> None:
        for name, known in (("embedder", EMBEDDERS), ("strategy", STRATEGIES)):
            if getattr(self, name) not in known:
                raise InvalidInputError(f"{name}: expected one of {', '.join(known)}, got {getattr(self, name)!r}")
        for name, least in (("k", 1), ("max_steps", 1), ("triples_per_scene", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise InvalidInputError(f"{name}: expected >= {least}, got {getattr(self, name)}")
        if unknown := [name for name in self.tables if name not in TABLES]:
            raise InvalidInputError(f"tables: expected some of {', '.join(TABLES)}, got {unknown[0]!r}")


def config() -> MementoConfig:
    return MementoConfig()

"""MEMENTO, both stages, by the built-in agent; for `python experiments/evaluate.py --config=memento`."""

import dataclasses


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
    tables: tuple[str, ...] = ("realistic", "limits", "retrieval", "top_k", "formats", "damage", "profile", "variants")


def config() -> MementoConfig:
    return MementoConfig()

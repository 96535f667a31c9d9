"""Names that no node has, and the node that each of them means: what was seen later to be a thing that was known.

names = OtherNames()
names.link({"home/cup 2": "home/mug 1"}, episode=4)
names.meant_by("home/cup 2"), names.of("home/mug 1")       # "home/mug 1", ["home/cup 2"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..store import Selector


class OtherNames:
    """Other names of nodes, each with the episode that taught it.

    Args:
        entries: (name, node, episode).
    """

    def __init__(self, entries: Iterable[tuple[str, str, int]] = ()):
        self._meant = {name: (node, episode) for name, node, episode in entries}
        self._names: dict[str, dict[str, None]] = {}  # node -> names that meant it, perhaps no longer
        self._index(self._meant)

    def __bool__(self) -> bool:
        return bool(self._meant)

    def meant_by(self, name: str) -> str | None:
        """The node that a name means, if it is such a name."""
        known = self._meant.get(name)
        return None if known is None else known[0]

    def of(self, node: str) -> list[str]:
        """Names that mean a node."""
        return [name for name in self._names.get(node, ()) if self.meant_by(name) == node]

    def link(self, names: Mapping[str, str], episode: int) -> None:
        """These names mean these nodes from now on."""
        self._meant.update((name, (node, episode)) for name, node in names.items())
        self._index(names)

    def remove(self, selector: Selector, is_there: Callable[[str], bool]) -> None:
        """Take away what a selector names or its episode taught, and names of nodes that are not there."""
        self._meant = {
            name: (node, episode)
            for name, (node, episode) in self._meant.items()
            if episode != selector.episode and not selector.in_text(name) and is_there(node)
        }

    def entries(self) -> list[tuple[str, str, int]]:
        """(name, node, episode) of all."""
        return [(name, *rest) for name, rest in self._meant.items()]

    @classmethod
    def from_state(cls, entries: Iterable[Iterable[Any]]) -> OtherNames:
        """What `entries` gave, read from JSON."""
        return cls((str(name), str(node), int(episode)) for name, node, episode in entries)

    def _index(self, names: Iterable[str]) -> None:
        for name in names:
            self._names.setdefault(self._meant[name][0], {})[name] = None

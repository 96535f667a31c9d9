"""A knowledge graph's bytes as rows of JSON, and back, byte for byte. The layout is in docs/formats.md.

rows = list(rows_of(graph.to_bytes()))            # [("scope", "..."), ("relations", "in"), ("nodes", {...}), ...]
KnowledgeGraph.from_bytes(bytes_of(rows))
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from ...errors import InvalidInputError
from ...native import part

_MAGIC, _VERSION = b"EMEMKGR\n", 1
_NO_TYPE, _NO_EMBEDDING, _STILL_VALID = 2**32 - 1, -1, 2**63 - 1
_ENDS = ("subject", "object")
_KINDS = ("scope", "relations", "types", "rules", "nodes", "facts")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, len(_MAGIC)

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return int(value)

    def text(self) -> str:
        length = self.number("I")
        self._at += length
        return self._data[self._at - length : self._at].decode("utf-8", "surrogatepass")


def rows_of(data: bytes) -> Iterator[tuple[str, Any]]:
    """(kind, row) of all that a graph's bytes hold, in their order; the row of something forgotten is None."""
    read = _Reader(data)
    if data[: len(_MAGIC)] != _MAGIC or (version := read.number("I")) != _VERSION:
        raise InvalidInputError(f"graph: expected version {_VERSION} of a knowledge graph, got {data[:12]!r}")
    del version
    yield "scope", read.text()
    for kind in ("relations", "types"):
        for _ in range(read.number("I")):
            yield kind, read.text()
    for _ in range(read.number("I")):
        name, members = read.text(), []
        for _ in range(read.number("I")):
            relation, end = read.text(), _ENDS[read.number("B")]
            members.append([relation, end, [read.text() for _ in range(read.number("I"))]])
        yield "rules", {"name": name, "members": members}
    num_nodes, num_facts = read.number("Q"), read.number("Q")
    for _ in range(num_nodes):
        yield "nodes", _node(read) if read.number("B") else None
    for _ in range(num_facts):
        yield "facts", _fact(read) if read.number("B") else None


def _node(read: _Reader) -> dict[str, Any]:
    type_, embedding, name = read.number("I"), read.number("q"), read.text()
    attributes = [[read.text(), read.text()] for _ in range(read.number("I"))]
    return {
        "name": name, "type": None if type_ == _NO_TYPE else type_,
        "embedding": None if embedding == _NO_EMBEDDING else embedding, "attributes": attributes,
    }  # fmt: skip


def _fact(read: _Reader) -> dict[str, Any]:
    subject, relation, object_ = (read.number("I") for _ in range(3))
    began, ended = read.number("q"), read.number("q")
    return {
        "subject": subject, "relation": relation, "object": object_, "valid_at": began,
        "invalid_at": None if ended == _STILL_VALID else ended,
        "sources": [read.number("q") for _ in range(read.number("I"))],
    }  # fmt: skip


def bytes_of(rows: Iterable[tuple[str, Any]]) -> bytes:
    """The bytes of a graph. Raises KeyError, TypeError, ValueError or struct.error for rows that are none."""
    kinds: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for kind, row in rows:
        kinds[kind].append(row)
    (scope,) = kinds["scope"]
    parts = [_MAGIC, struct.pack("<I", _VERSION), _text(scope)]
    for kind in ("relations", "types"):
        parts += [struct.pack("<I", len(kinds[kind])), *map(_text, kinds[kind])]
    parts.append(struct.pack("<I", len(kinds["rules"])))
    for rule in kinds["rules"]:
        parts += [_text(rule["name"]), struct.pack("<I", len(rule["members"]))]
        for relation, end, objects in rule["members"]:
            parts += [_text(relation), struct.pack("<BI", _ENDS.index(end), len(objects)), *map(_text, objects)]
    parts.append(struct.pack("<QQ", len(kinds["nodes"]), len(kinds["facts"])))
    for node in kinds["nodes"]:
        parts.append(b"\0" if node is None else b"\1" + _node_bytes(node))
    for fact in kinds["facts"]:
        parts.append(b"\0" if fact is None else b"\1" + _fact_bytes(fact))
    whole = b"".join(parts)
    return whole + struct.pack("<I", part("storage").crc32c(whole))


def _node_bytes(node: dict[str, Any]) -> bytes:
    type_ = _NO_TYPE if node["type"] is None else node["type"]
    embedding = _NO_EMBEDDING if node["embedding"] is None else node["embedding"]
    texts = [_text(text) for pair in node["attributes"] for text in pair]
    count = struct.pack("<I", len(node["attributes"]))
    return b"".join([struct.pack("<Iq", type_, embedding), _text(node["name"]), count, *texts])


def _fact_bytes(fact: dict[str, Any]) -> bytes:
    ended = _STILL_VALID if fact["invalid_at"] is None else fact["invalid_at"]
    ends = fact["subject"], fact["relation"], fact["object"]
    sources = fact["sources"]
    return struct.pack(f"<IIIqqI{len(sources)}q", *ends, fact["valid_at"], ended, len(sources), *sources)


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return struct.pack("<I", len(data)) + data

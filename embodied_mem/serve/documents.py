"""JSON documents by namespace and key, as a module of a `MemoryStore`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import InvalidInputError
from ..memory.arguments import shown
from ..memory.stored_modules import Selector, restoring

Namespace = tuple[str, ...]


class Document(NamedTuple):
    """One value.

    Attributes:
        value: a JSON object.
        created, updated: times in ISO 8601.
        paths: of the texts to search by; None for the store's own, False for none.
    """

    value: dict[str, Any]
    created: str
    updated: str
    paths: list[str] | bool | None = None


class Documents:
    """All documents, in the order in which they were first put.

    An event is {"time": ISO 8601, "puts": [[namespace, key, value or None, index], ...]}.
    """

    def __init__(self) -> None:
        self._of: dict[Namespace, dict[str, Document]] = {}

    def get(self, namespace: Namespace, key: str) -> Document | None:
        """Return a document, or None."""
        return self._of.get(namespace, {}).get(key)

    def below(self, prefix: Namespace) -> Iterator[tuple[Namespace, str, Document]]:
        """List all documents under a prefix of namespaces."""
        for namespace, documents in self._of.items():
            if namespace[: len(prefix)] == prefix:
                for key, document in documents.items():
                    yield namespace, key, document

    def namespaces(self) -> list[Namespace]:
        """List those that were ever used and hold something, in order."""
        return sorted(namespace for namespace, documents in self._of.items() if documents)

    def check(self, event: Mapping[str, Any]) -> None:
        """Raises InvalidInputError for what is no event."""
        if not isinstance(event.get("time"), str) or not isinstance(event.get("puts"), list):
            raise InvalidInputError(f"documents: expected a time and puts, got {shown(event)}")
        for put in event["puts"]:
            if not isinstance(put, list) or len(put) != 4 or not isinstance(put[1], str):
                raise InvalidInputError(f"documents: expected [namespace, key, value, index], got {shown(put)}")
            if not isinstance(put[0], list) or not all(isinstance(label, str) for label in put[0]):
                raise InvalidInputError(f"documents: expected labels for a namespace, got {shown(put[0])}")
            if put[2] is not None and not isinstance(put[2], dict):
                raise InvalidInputError(f"documents: expected a JSON object for a value, got {shown(put[2])}")
            if isinstance(put[3], list) and not all(isinstance(path, str) for path in put[3]):
                raise InvalidInputError(f"documents: index: expected paths, None or False, got {shown(put[3])}")

    def apply(self, event: Mapping[str, Any]) -> None:
        """Put and delete documents.

        A document that is put again keeps its place and when it was created.
        """
        time = event["time"]
        for labels, key, value, index in event["puts"]:
            documents = self._of.setdefault(tuple(labels), {})
            if value is None:
                documents.pop(key, None)
                continue
            before = documents.get(key)
            documents[key] = Document(value, before.created if before else time, time, index)

    def state(self) -> bytes:
        """Return all of it as JSON."""
        rows = [[list(space), key, *document] for space, found in self._of.items() for key, document in found.items()]
        return json.dumps(rows, ensure_ascii=False, sort_keys=True).encode()

    @restoring
    def restore(self, state: bytes) -> None:
        """Take what `state` returned."""
        found: dict[Namespace, dict[str, Document]] = {}
        for labels, key, *fields in json.loads(state):
            found.setdefault(tuple(labels), {})[key] = Document(*fields)
        self._of = found

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove documents with an object's name or a user's name as label."""
        gone = [
            (namespace, key)
            for namespace, key, document in self.below(())
            if any(map(selector.is_name, namespace)) or any(map(selector.in_text, _texts(namespace, key, document)))
        ]
        for namespace, key in gone:
            del self._of[namespace][key]
        return {"documents": len(gone)}


def _texts(namespace: Namespace, key: str, document: Document) -> Iterator[str]:
    """Yield every text and number of a document, names of fields too."""
    yield from namespace
    yield key
    left: list[Any] = [document.value]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
        elif value is not None and not isinstance(value, bool):
            yield str(value)

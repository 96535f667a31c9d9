"""A small memory for the store's tests: a list of [user, object, episode, text]."""

from __future__ import annotations

import json

from embodied_mem.errors import InvalidInputError


class Notes:
    def __init__(self):
        self.rows: list[list] = []

    def check(self, event):
        if not isinstance(event.get("text"), str):
            raise InvalidInputError(f"text: expected one, got {event}")

    def apply(self, event):
        if event.get("text") == "refuse":
            raise InvalidInputError("text: expected another one")
        if event.get("text") == "explode":
            raise RuntimeError("boom")
        self.rows.append([event.get("user"), event.get("object"), event.get("episode"), event["text"]])
        return len(self.rows)

    def state(self):
        return json.dumps(self.rows).encode()

    def restore(self, state):
        self.rows = json.loads(state)

    def remove(self, selector):
        column = ["user", "object", "episode"].index(selector.kind)
        kept = [row for row in self.rows if row[column] != selector.value]
        gone, self.rows = len(self.rows) - len(kept), kept
        return {"notes": gone}

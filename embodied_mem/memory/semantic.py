"""Semantic memory: where things are found, what works, which commands have no effect and why.

    semantic = SemanticMemory()
    semantic.learn(episode, number=3, time=120)
    [item.text for item in semantic.retrieve("put a hot mug in cabinet.")]
    # ["mug: found on countertop (7 of 9), in cabinet (2)", "heat works with microwave (5 times)",
    #  "'open cabinet' comes before 'take mug from cabinet', which had no effect otherwise (2 times)"]

Three kinds of entries are kept by rules; each row of their support is one time that it was seen. A command that never
worked is a lesson; once it works, the lesson is deleted and what made it work is the new one. Lessons about commands
change with every action (`propose_action`), all else with every task. With a chat writer, lessons in free text are
added, updated and deleted as it says, from what is similar only; a lesson that it says again in the same words is one
more source of the one that is there. If its answer cannot be used, rules alone do, and the writer counts it.

Source: RoboMemory 3.2.2.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..errors import InternalError, InvalidInputError
from ..language.prompt_files import prompt
from ..types import Episode
from .arguments import checked_number, checked_text, checked_texts, shown
from .chat_writer import ChatWriter, parse_text
from .entries import Entry, EntryMemory, Support, check_fields, learning
from .readers.reading import AGENT, Event, class_of, effects, refusals
from .record import Record
from .search import SIMILAR

_FIELDS: dict[str, dict[str, type]] = {
    "found": {},
    "works": {},
    "lesson": {"command": str, "fix": str},
    "written": {"said": str},
}
_TERMS = {"found": 1, "works": 2}
_NUMBERED = re.compile(r"\b([a-z]+) \d+\b")
_WORD = re.compile(r"[a-z]+")
_PLACED = re.compile(r" (?:on|in) ")
_WORKS = {"hot": "heat", "warm": "heat", "cold": "cool", "look": "use", "examine": "use", "wash": "clean"}
_IDLE = ("look", "inventory", "help", "examine ")
_MAX_LESSONS = 4
_SIMILAR = 0.3

_MAX_TURNS = 64
"""Earlier actions of a task that an action is compared with; the end of the task sees all of them."""

_EMPTY = frozenset("a an the is are be was were to of that it its there this then do does".split())  # noqa: SIM905

_EXTRACT = prompt("embodied_mem.memory", "lessons").format(max_lessons=_MAX_LESSONS)
_UPDATE = prompt("embodied_mem.memory", "lessons_update")
_TEXT = {"type": "string", "minLength": 1, "maxLength": 400}
_LESSONS = {
    "type": "object",
    "properties": {"lessons": {"type": "array", "items": _TEXT, "maxItems": _MAX_LESSONS}},
    "required": ["lessons"],
    "additionalProperties": False,
}
_CHANGE = {
    "type": "object",
    "properties": {
        "do": {"type": "string", "enum": ["add", "update", "delete"]},
        "id": {"type": "integer"},
        "text": _TEXT,
    },
    "required": ["do"],
    "additionalProperties": False,
}
_CHANGES = {
    "type": "object",
    "properties": {"changes": {"type": "array", "items": _CHANGE}},
    "required": ["changes"],
    "additionalProperties": False,
}


@functools.lru_cache(4096)
def plain(command: str) -> str:
    """Replace names by classes: "take mug 2" -> "take mug"."""
    return _NUMBERED.sub(r"\1", " ".join(command.lower().split()))


class SemanticMemory(EntryMemory):
    """Regularities and lessons of one scope."""

    format_name = "embodied_mem.semantic_memory"
    module = "semantic"

    def _clear(self) -> None:
        super()._clear()
        self._by_term: dict[str, dict[int, None]] = {}
        self._tallies: dict[int, tuple[int, dict[tuple[str, str], int]]] = {}  # entry -> rows counted, their places

    # Learning.

    def propose(
        self,
        episode: Episode,
        *,
        number: int,
        time: int,
        place: str = "",
        outcomes: Mapping[int, bool] | None = None,
    ) -> dict[str, Any]:
        """Make the event for `learn`; ask the writer here, never on replay."""
        episode, number, time, _ = learning(episode, number, time, place)
        events, refused = effects(self._reader, episode, outcomes), refusals(self._reader, episode, outcomes)
        changes = [*self._found(episode, number), *self._works(events, number)]
        changes += self._lessons(episode, number, refused)
        if self._writer is not None:
            changes += self._written(self._writer, episode, number)
        return {"op": "change", "time": time, "changes": changes}

    def propose_action(
        self, turns: Sequence[tuple[str, str]], refused: bool, *, number: int, time: int, outcomes: Mapping[int, bool]
    ) -> dict[str, Any]:
        """Make the event that a running task's last action teaches, without writer.

        That is whether its command had an effect, and what made it work. The end of the task finds the same again, as
        further sources of the same lessons.

        Args:
            turns: actions and answers of the task, the last one included.
            refused: whether the last action had no effect.
            number, time: under which the task is a source, and now.
            outcomes: as for `propose`.
        """
        event: dict[str, Any] = {"op": "change", "time": time, "changes": []}
        action, command = turns[-1][0], plain(turns[-1][0])
        known = self.get(f"lesson|{command}|")
        if not action.strip() or (known is None and not refused):
            return event
        first = max(len(turns) - _MAX_TURNS, 0)
        pairs = list(turns[first:])
        same = [i for i, (other, _) in enumerate(pairs[:-1]) if plain(other) == command]
        if refused:
            worked = any(not self._refused(pairs, i, first, outcomes) for i in same)
            without = [True] * len(pairs)
            steps = [] if worked or self._has_fix(command) else [len(pairs) - 1]
        else:
            without = [self._refused(pairs, i, first, outcomes) for i in range(len(pairs) - 1)] + [False]
            steps = [i for i in same if without[i] and pairs[i][0] == action]
        rows: dict[str, list[Support]] = {}
        for step in steps:
            fix = _fix(pairs, without, step)
            if fix or refused:
                row = Support(number, first + step, f"{pairs[step][0]} {fix}".strip())
                rows.setdefault(fix, []).append(row)
        terms = list(dict.fromkeys(_WORD.findall(command)))
        for fix, support in rows.items():
            data = {"kind": "lesson", "terms": terms, "command": command, "fix": fix}
            event["changes"].append(self._change(f"lesson|{command}|{fix}", data, support))
        if not refused and known is not None:
            event["changes"].append({"do": "delete", "key": known.key})
        return event

    def _refused(self, pairs: Sequence[tuple[str, str]], i: int, first: int, outcomes: Mapping[int, bool]) -> bool:
        known = outcomes.get(first + i)
        return self._reader.read(pairs[i][1]).refused if known is None else known

    def _change(self, key: str, data: dict[str, Any], support: list[Support]) -> dict[str, Any]:
        if self.get(key) is not None:
            return {"do": "update", "key": key, "support": support}
        return {"do": "add", "key": key, "about": " ".join(data["terms"]), "data": data, "support": support}

    def _found(self, episode: Episode, number: int) -> list[dict[str, Any]]:
        """List where each thing was first seen."""
        first: dict[str, tuple[int, str, str]] = {}
        moved: set[str] = set()
        for step, text in enumerate([episode.first_observation, *episode.answers]):
            for subject, relation, object_ in self._reader.read(text).facts:
                if relation == "holds" and subject == AGENT:
                    moved.add(object_)
                elif relation in ("in", "on") and subject not in moved:
                    first.setdefault(subject, (step, relation, object_))
        rows: dict[str, list[Support]] = {}
        for name, (step, relation, receptacle) in first.items():
            rows.setdefault(class_of(name), []).append(Support(number, step, f"{name} {relation} {receptacle}"))
        return [
            self._change(f"found|{kind}", {"kind": "found", "terms": [kind]}, support) for kind, support in rows.items()
        ]

    def _works(self, events: Iterable[Event], number: int) -> list[dict[str, Any]]:
        """List what each appliance does."""
        rows: dict[tuple[str, str], list[Support]] = {}
        for step, verb, name, place in events:
            if verb in ("clean", "heat", "cool", "use"):
                tool = class_of(name if verb == "use" else place)
                rows.setdefault((verb, tool), []).append(Support(number, step, f"{name} {place}".strip()))
        return [
            self._change(f"works|{verb}|{tool}", {"kind": "works", "terms": [verb, tool]}, support)
            for (verb, tool), support in rows.items()
        ]

    def _lessons(self, episode: Episode, number: int, refused: list[bool]) -> list[dict[str, Any]]:
        """Commands without effect, and what was done before the same command worked."""
        pairs = [(step.action, answer) for step, answer in zip(episode.steps, episode.answers)]
        worked = {plain(action) for (action, _), failed in zip(pairs, refused) if not failed}
        rows: dict[str, tuple[dict[str, Any], list[Support]]] = {}
        for step, (action, _) in enumerate(pairs):
            if not refused[step] or not action.strip():
                continue
            command, fix = plain(action), _fix(pairs, refused, step)
            if fix:
                key = f"lesson|{command}|{fix}"
            elif command in worked:
                continue  # it works at other times, and nothing tells why not here
            else:
                key = f"lesson|{command}|"
            terms = list(dict.fromkeys(_WORD.findall(command)))
            data = {"kind": "lesson", "terms": terms, "command": command, "fix": fix}
            rows.setdefault(key, (data, []))[1].append(Support(number, step, f"{action} {fix}".strip()))
        changes = [
            self._change(key, data, support)
            for key, (data, support) in rows.items()
            if data["fix"] or not self._has_fix(data["command"])
        ]
        disproved = {data["command"] for data, _ in rows.values() if data["fix"]} | worked
        keys = [f"lesson|{command}|" for command in sorted(disproved)]
        return changes + [{"do": "delete", "key": key} for key in keys if self.get(key) is not None]

    def _has_fix(self, command: str) -> bool:
        words = _WORD.findall(command)
        numbers = self._by_term.get(words[-1], ()) if words else ()
        found = [self.entries[number].data for number in numbers]
        return any(data.get("command") == command and data.get("fix") for data in found)

    def _written(self, writer: ChatWriter, episode: Episode, number: int) -> list[dict[str, Any]]:
        """Return the chat writer's changes; none if an answer is unusable."""
        turns = [f"{step.action} -> {answer}" for step, answer in zip(episode.steps, episode.answers)]
        told = f"Task: {episode.goal}\nOutcome: {'won' if episode.won else 'failed'}\n" + "\n".join(turns)
        lessons = writer.ask(_EXTRACT, told, lambda value: list(map(parse_text, value["lessons"])), _LESSONS)
        if not lessons:
            return []
        again = {text: entry for text in lessons if (entry := self._said_again(text)) is not None}
        changes: list[dict[str, Any]] = [{"do": "update", "key": key, "support": [Support(number, None, "")]}
                   for key in dict.fromkeys(entry.key for entry in again.values())]  # fmt: skip
        new = {_gist(text): text for text in lessons if text not in again}
        if not new:
            return changes
        similar = {entry.id: entry for text in lessons for entry, score in self.search(text, 20) if score > _SIMILAR}
        known = {number: entry for number, entry in similar.items() if entry.data.get("kind") == "written"}
        shown = [{"id": entry.id, "text": entry.text} for entry in known.values()]
        question = json.dumps({"known": shown, "new": list(new.values())}, ensure_ascii=False)
        answer = writer.ask(_UPDATE, question, lambda value: _parse_changes(value["changes"], set(known)), _CHANGES)
        added: set[frozenset[str]] = set()
        for position, (do, which, text) in enumerate(answer or ()):
            if do == "add" and (_gist(text) in added or self._said_again(text) is not None):
                continue
            key = f"written|{number}|{position}" if which is None else known[which].key
            change: dict[str, Any] = {"do": do, "key": key}
            if do != "delete":
                added.add(_gist(text))
                data: dict[str, Any] = {"kind": "written", "said": text}
                data["terms"] = sorted(set(_WORD.findall(plain(text))))
                data["origin"] = number
                change |= {"about": text, "data": data, "support": [Support(number, None, "")]}
            changes.append(change)
        return changes

    def _said_again(self, text: str) -> Entry | None:
        """Return the writer's lesson with the same words in any order."""
        gist = _gist(text)
        for number in self._by_term.get(next(iter(sorted(_WORD.findall(plain(text)), key=len, reverse=True)), ""), ()):
            data = self.entries[number].data
            if data["kind"] == "written" and _gist(data["said"]) == gist:
                return self.entries[number]
        return None

    def derived_from(self, entry: Entry, episode: int) -> bool:
        """Return whether the writer took the text from this episode."""
        return entry.data.get("origin") == episode

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """Apply as `EntryMemory.apply_checked`."""
        self._check_keys(event["changes"])
        for change in event["changes"]:
            if "data" in change and (entry := self.get(change["key"])) is not None:
                self._unindex_terms(entry)
        super().apply_checked(event)
        for change in event["changes"]:
            if (entry := self.get(change["key"])) is not None:
                self._index_terms(entry)

    def check_data(self, data: Mapping[str, Any], new: bool) -> None:
        """Raise InvalidInputError for data that no entry has."""
        kind = data.get("kind")
        if kind not in tuple(_FIELDS):
            raise InvalidInputError(f"{self.format_name}: expected kind {' or '.join(_FIELDS)}, got {shown(kind)}")
        terms = checked_texts("terms", data.get("terms"))
        if len(terms) < _TERMS.get(kind, 0):
            raise InvalidInputError(
                f"{self.format_name}: expected {_TERMS[kind]} terms of {kind!r}, got {shown(terms)}"
            )
        check_fields(self.format_name, data, _FIELDS[kind], new)

    def check(self, event: Mapping[str, Any]) -> None:
        super().check(event)
        for change in event["changes"]:
            if change["key"].startswith("found|"):
                for row in change.get("support", ()):
                    if not _PLACED.search(row[2]):
                        raise InvalidInputError(
                            f"{self.format_name}: expected a thing in or on something, got {row[2]!r}"
                        )

    def _index_terms(self, entry: Entry) -> None:
        for term in entry.data["terms"]:
            self._by_term.setdefault(term, {}).setdefault(entry.id)

    def _unindex_terms(self, entry: Entry) -> None:
        for term in entry.data["terms"]:
            numbers = self._by_term.get(term, {})
            numbers.pop(entry.id, None)
            if not numbers:
                self._by_term.pop(term, None)

    def _remove(self, number: int) -> None:
        self._unindex_terms(self.entries[number])
        self._tallies.pop(number, None)
        super()._remove(number)

    def _after_restore(self) -> None:
        self._by_term, self._tallies = {}, {}
        for entry in self.entries.values():
            self._index_terms(entry)

    def fork(self) -> SemanticMemory:
        other = super().fork()
        other._tallies = dict(self._tallies)
        return other

    def _rows_removed(self, entry: Entry) -> None:
        self._tallies.pop(entry.id, None)

    def rendered(self, entry: Entry) -> str:
        """Write one line, with how often."""
        data, count = entry.data, len(entry.support)
        times = f"{count} times" if count > 1 else "once"
        if data["kind"] == "found":
            return f"{data['terms'][0]}: found {_shares(self._places(entry))}"
        if data["kind"] == "works":
            return f"{data['terms'][0]} works with {data['terms'][1]} ({times})"
        if data["kind"] == "written":
            return str(data["said"])
        if data["fix"]:
            return f"'{data['fix']}' comes before '{data['command']}', which had no effect otherwise ({times})"
        return f"'{data['command']}' had no effect ({times})"

    # Reading.

    def places_of(self, kind: str) -> list[tuple[str, int]]:
        """Return (receptacle class, count) for things of a class, commonest first."""
        entry = self.get(f"found|{checked_text('kind', kind)}")
        return [] if entry is None else [(place, count) for (_, place), count in self._places(entry)]

    def found_in(self, kind: str, episodes: Collection[int]) -> list[str]:
        """List receptacles where a class was seen first, latest episode first."""
        entry = self.get(f"found|{checked_text('kind', kind)}")
        rows = [row for row in entry.support if row.episode in episodes] if entry is not None else []
        rows.sort(key=lambda row: -row.episode)
        return list(dict.fromkeys(_holder(row)[1] for row in rows))

    def _places(self, entry: Entry) -> list[tuple[tuple[str, str], int]]:
        """Count (relation, receptacle class) over rows, commonest first, ties by name."""
        done, counts = self._tallies.get(entry.id, (0, {}))
        if done > len(entry.support):
            done, counts = 0, {}
        if done < len(entry.support):
            counts = counts.copy()  # a fork has it, too
            for row in itertools.islice(entry.support, done, None):
                place = _place(row)
                counts[place] = counts.get(place, 0) + 1
            self._tallies[entry.id] = (len(entry.support), counts)
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))

    def tools_for(self, verb: str) -> list[tuple[str, int]]:
        """Return (appliance class, count) for an operation, most used first."""
        found = [self.entries[number] for number in self._by_term.get(checked_text("verb", verb), ())]
        counts = [(e.data["terms"][1], len(e.support)) for e in found if e.key.startswith(f"works|{verb}|")]
        return sorted(counts, key=lambda pair: -pair[1])

    def retrieve(self, query: str, k: int = 8, *, as_of: int | None = None) -> list[Record]:
        """Return the `k` best entries: by shared words, then by similarity.

        score = the larger of 0.3 + 0.6 * share and cosine, if above `SIMILAR`; share is the part of the entry's words
        that the query names. Ties go to what was seen more often.
        """
        query, k = checked_text("query", query), checked_number("k", k, least=0)
        words = set(_WORD.findall(query.lower()))
        words |= {word.removesuffix("s") for word in words} | {_WORKS[word] for word in words if word in _WORKS}
        hits: dict[int, int] = {}
        for word in words:
            for number in self._by_term.get(word, ()):
                hits[number] = hits.get(number, 0) + 1
        entries = self.entries
        scores = {number: 0.3 + 0.6 * (count / len(entries[number].data["terms"])) for number, count in hits.items()}
        similar: dict[int, float] = {}
        for entry, cosine in self.search(query, k if as_of is None else len(self), above=SIMILAR):
            if cosine > scores.get(entry.id, 0.0):
                scores[entry.id] = similar[entry.id] = cosine
        known = [number for number in scores if self.known_at(number, as_of)] if as_of is not None else scores
        best = sorted(known, key=lambda n: (-scores[n], -len(entries[n].support), n))[:k]
        whys = {number: f"{cosine:.2f} similar" for number, cosine in similar.items()}
        records = []
        for number in best:
            why = whys.get(number) or f"the query names {hits[number]} of its words"
            entry, score = entries[number], min(scores[number], 1.0)
            records.append(self.hit(entry, score, why))
        return records


def _fix(pairs: list[tuple[str, str]], refused: list[bool], failed: int) -> str:
    """Find what made a failed command work later; empty if nothing."""
    action = pairs[failed][0]
    last = ""
    for (other, _), without_effect in zip(pairs[failed + 1 :], refused[failed + 1 :]):
        if without_effect:
            continue
        if other == action:
            return plain(last)
        if not other.startswith(_IDLE):
            last = other
    return ""


def _place(row: Support) -> tuple[str, str]:
    """(relation, class of receptacle) of a row "mug 1 on desk 2"."""
    relation, receptacle = _holder(row)
    return relation, class_of(receptacle)


def _holder(row: Support) -> tuple[str, str]:
    """(relation, receptacle) of such a row."""
    for relation in (" on ", " in "):
        _, mark, receptacle = row.detail.partition(relation)
        if mark:
            return relation.strip(), receptacle
    raise InternalError(
        f"support of a place: expected a thing in or on something, got {row.detail!r}; please report it"
    )


def _shares(places: list[tuple[tuple[str, str], int]], most: int = 4) -> str:
    total = sum(count for _, count in places)
    parts = [f"{relation} {place} ({count})" for (relation, place), count in places[:most]]
    parts[0] = parts[0].removesuffix(")") + f" of {total})"
    rest = sum(count for _, count in places[most:])
    return ", ".join(parts) + (f", elsewhere ({rest})" if rest else "")


def _gist(text: str) -> frozenset[str]:
    """Return the meaningful words of a lesson, in singular; numbers too."""
    words = set(re.findall(r"[a-z0-9']+", text.lower())) - _EMPTY
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words)


def _parse_changes(value: Any, known: set[int]) -> list[tuple[str, int | None, str]]:
    """Return (do, id, text) changes. Raises ValueError for malformed or unshown ones."""
    if not isinstance(value, list) or len(value) > _MAX_LESSONS + len(known):
        raise ValueError("expected a list of changes, no more than there are lessons")
    changes: list[tuple[str, int | None, str]] = []
    for change in value:
        do = change["do"]
        if do == "add":
            changes.append((do, None, parse_text(change["text"])))
        elif do in ("update", "delete"):
            if change["id"] not in known:
                raise ValueError(f"expected an id that was shown, got {change['id']!r}")
            known = known - {change["id"]}  # one change each
            changes.append((do, change["id"], parse_text(change["text"]) if do == "update" else ""))
        else:
            raise ValueError(f"expected add, update or delete, got {do!r}")
    return changes

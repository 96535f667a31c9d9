"""Notes: every text that a user says, and every observation that no rule reads, word by word, found by what it says.

    notes = NoteMemory()
    notes.tell("I am vegetarian.", episode=0, step=0, time=1)
    notes.tell("I'm no longer vegetarian.", episode=0, step=0, time=2)
    [item.text for item in notes.retrieve("vegetarian?")]
    # ["I'm no longer vegetarian.", "I am vegetarian. (no longer, since time 2)"]

The other memories add structure to what is here; nothing is here that was not said. The same text again, with the same
speaker, date and labels, is one more source of one note. A claim that a later one of the same speaker ends (`claims`)
stays with the time of its end. Values that only differ both stay.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from ...errors import InvalidInputError
from ..arguments import (
    Fields,
    checked_event,
    checked_mapping,
    checked_number,
    checked_rows,
    checked_text,
    checked_texts,
    shown,
)
from ..claims import Claim, claims_in
from ..graph.records import Scope
from ..recollection import Item
from ..relevance import relevance
from ..store.module import RecordedModule, Selector
from ..vectors.lexical import Embedder
from ..vectors.text_index import QueryEmbedder, TextIndex
from ..vectors.word_index import WordIndex
from ..words import content_words

TOLD, SEEN = "told", "seen"
"""Kinds of notes: what somebody said, and what the world answered."""

Value = str | int | float | bool | None
_EVENT = "notes event"
_NEAR = 0.3
_PAST = 0.5
_MAX_SIMILAR = 64


class Source(NamedTuple):
    """Where a note comes from."""

    episode: int
    step: int
    time: int


class End(NamedTuple):
    """One claim of a note that is no longer so: which of its claims, since when, and the note that says so."""

    claim: int
    time: int
    by: int


class Version(NamedTuple):
    """What a note was before: text, labels, and until when."""

    text: str
    labels: dict[str, Value]
    until: int


@dataclasses.dataclass
class Note:
    """One text.

    Attributes:
        id: never used again.
        text: as it was said.
        kind: `TOLD` or `SEEN`.
        speaker: who said it; empty for the user of the scope, or the world.
        when: a date, in whatever words; empty if none was given.
        action: what a seen text answers.
        labels: the caller's own, to filter by.
        sources: when it was said, oldest first.
        num_claims: how many claims it makes.
        ends: claims that are no longer so.
        past: earlier versions.
    """

    id: int
    text: str
    kind: str
    speaker: str
    when: str
    action: str
    labels: dict[str, Value]
    sources: list[Source]
    num_claims: int
    ends: list[End]
    past: list[Version]

    @property
    def created(self) -> int:
        """Time at which it was said first."""
        return self.sources[0].time

    @property
    def ended(self) -> int | None:
        """Time from which on nothing that it claims is so; None if something is."""
        return max(end.time for end in self.ends) if self.ends and len(self.ends) >= self.num_claims else None


class NoteMemory(RecordedModule):
    """The notes of one scope."""

    format_name = "embodied_mem.notes"

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        embedder: Embedder | None = None,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make an empty memory.

        Args:
            scope, record: as for `RecordedModule`.
            embedder: None for the lexical one.
        """
        super().__init__(scope, record)
        self.embedder = QueryEmbedder.of(embedder)
        self._clear()

    def _clear(self) -> None:
        self.notes: dict[int, Note] = {}
        self._next = 0
        self._same: dict[tuple[Any, ...], int] = {}
        self._claims: dict[int, list[Claim]] = {}
        self._words = WordIndex()
        self._vectors = TextIndex(self.embedder)

    def __len__(self) -> int:
        return len(self.notes)

    # Changing.

    def tell(self, text: str, *, episode: int, step: int, time: int, **more: Any) -> None:
        """Take note of a text; `more` as for `propose`."""
        self._record(self.propose(text, episode=episode, step=step, time=time, **more))

    def propose(
        self,
        text: str | Sequence[str],
        *,
        episode: int,
        step: int,
        time: int,
        kind: str = TOLD,
        speaker: str = "",
        when: str = "",
        action: str = "",
        labels: Mapping[str, Value] | None = None,
    ) -> dict[str, Any]:
        """The event that `tell` records; nothing changes. Several texts make several notes; blank ones make none."""
        speaker, when, action = (
            checked_text("speaker", speaker),
            checked_text("when", when),
            checked_text("action", action),
        )
        labels = checked_labels(labels)
        changes: list[dict[str, Any]] = []
        following = self._next
        for one in [checked_text("text", text)] if isinstance(text, str) else checked_texts("text", text):
            if not one.strip():
                continue
            known = self._same.get(_key(one, kind, speaker, when, action, labels))
            if known is not None and self.notes[known].ended is None:
                changes.append({"do": "repeat", "id": known})
                continue
            claims = claims_in(one) if kind == TOLD else []
            change = {"do": "add", "text": one, "kind": kind, "speaker": speaker, "when": when, "action": action}
            changes.append({**change, "labels": labels, "claims": len(claims)})
            ended = {(number, claim): None for new in claims for number, claim in self._ended_by(new, speaker)}
            changes += [{"do": "end", "id": number, "claim": claim, "by": following} for number, claim in ended]
            following += 1
        return {"op": "change", "episode": episode, "step": step, "time": time, "changes": changes}

    def number_of(
        self, text: str, *, speaker: str = "", when: str = "", labels: Mapping[str, Value] | None = None
    ) -> int:
        """The number that a told text has, or gets with the next event."""
        text, speaker, when = checked_text("text", text), checked_text("speaker", speaker), checked_text("when", when)
        known = self._same.get(_key(text, TOLD, speaker, when, "", checked_labels(labels)))
        return self._next if known is None or self.notes[known].ended is not None else known

    def _ended_by(self, new: Claim, speaker: str) -> list[tuple[int, int]]:
        """(note, its claim) that a new claim of a speaker ends."""
        found = []
        for number in sorted(self._words.with_all(sorted(new.named))):
            note = self.notes[number]
            if note.kind != TOLD or (note.speaker != speaker and new.first):
                continue
            over = {end.claim for end in note.ends}
            found += [(number, i) for i, old in enumerate(self._claims_of(note)) if i not in over and new.ends(old)]
        return found

    def _claims_of(self, note: Note) -> list[Claim]:
        claims = self._claims.get(note.id)
        if claims is None:
            claims = self._claims[note.id] = claims_in(note.text)[: note.num_claims]
        return claims

    def edited(self, number: int, time: int, text: str | None, labels: Mapping[str, Value] | None) -> dict[str, Any]:
        """The event that gives a note another text or other labels; what it was before stays in its history.

        Raises:
            InvalidInputError: there is no such note, the text is blank.
        """
        note = self._note(number)
        change: dict[str, Any] = {"do": "update", "id": number}
        if text is not None:
            if not checked_text("text", text).strip():
                raise InvalidInputError(
                    "text: expected one with a word in it, got a blank one; delete the entry instead"
                )
            change |= {"text": checked_text("text", text), "claims": len(claims_in(text)) if note.kind == TOLD else 0}
        if labels is not None:
            change["labels"] = checked_labels(labels)
        last = note.sources[-1]
        return {"op": "change", "episode": last.episode, "step": last.step, "time": time, "changes": [change]}

    def _note(self, number: int) -> Note:
        if number not in self.notes:
            raise InvalidInputError(f"notes: expected the number of a note, got {shown(number)}; it is not there")
        return self.notes[number]

    def check(self, event: Mapping[str, Any]) -> None:
        checked_event(_EVENT, event, {"change": Fields(("episode", "step", "time"))})
        for change in checked_rows(f"{_EVENT}: changes", event.get("changes")):
            do = checked_mapping(f"{_EVENT}: change", change).get("do")
            if do not in ("add", "repeat", "end", "update"):
                raise InvalidInputError(f"{_EVENT}: expected add, repeat, end or update, got {shown(do)}")
            for name in ("text", "kind", "speaker", "when", "action") if do == "add" else ():
                checked_text(f"{_EVENT}: {name}", change.get(name))
            if do == "update" and "text" in change:
                checked_text(f"{_EVENT}: text", change["text"])
            if "labels" in change or do == "add":
                checked_labels(change.get("labels"))
            needed = {"add": ("claims",), "repeat": ("id",), "end": ("id", "claim", "by"), "update": ("id",)}[do]
            for name in (*needed, *(("claims",) if do == "update" and "text" in change else ())):
                checked_number(f"{_EVENT}: {name}", change.get(name), 0)

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """As `RecordedModule`. Raises InvalidInputError for notes that are not there; nothing has changed then."""
        following = self._next + sum(change["do"] == "add" for change in event["changes"])
        for change in event["changes"]:
            if change["do"] != "add" and change["id"] not in self.notes and not self._next <= change["id"] < following:
                raise InvalidInputError(f"{_EVENT}: expected the number of a note, got {change['id']}")
        source = Source(event["episode"], event["step"], event["time"])
        self.changed: list[tuple[str, int]] = []
        touched: dict[int, None] = {}
        for change in event["changes"]:
            do = change["do"]
            number = self._next if do == "add" else change["id"]
            if do == "add":
                self._next += 1
                own = {name: change[name] for name in ("text", "kind", "speaker", "when", "action")}
                note = Note(number, **own, labels=dict(change["labels"] or {}), sources=[source],
                            num_claims=change["claims"], ends=[], past=[])  # fmt: skip
                self.notes[number] = note
                self._same[_key_of(note)] = number
                touched[number] = None
            elif do == "repeat":
                self.notes[number].sources.append(source)
            elif do == "end":
                self.notes[number].ends.append(End(change["claim"], source.time, change["by"]))
            else:
                self._update(self.notes[number], change, source.time)
                touched[number] = None
            self.changed.append((do, number))
        self._index(touched)

    def _update(self, note: Note, change: Mapping[str, Any], time: int) -> None:
        self._same.pop(_key_of(note), None)
        note.past.append(Version(note.text, dict(note.labels), time))
        if "text" in change:
            note.text, note.num_claims, note.ends = change["text"], change["claims"], []
            self._claims.pop(note.id, None)
        note.labels = dict(change["labels"]) if "labels" in change else note.labels
        self._same[_key_of(note)] = note.id

    def _index(self, numbers: Iterable[int]) -> None:
        notes = [self.notes[number] for number in numbers]
        for note in notes:
            self._words.add(note.id, content_words(_about(note)))
        self._vectors.add_many((note.id, _about(note)) for note in notes)

    # Reading.

    def word_weight(self, word: str) -> float:
        """How much a stem tells among the notes."""
        return self._words.weight(word)

    def retrieve(
        self,
        query: str,
        k: int = 8,
        *,
        as_of: int | None = None,
        where: Callable[[Note], bool] | None = None,
    ) -> list[Item]:
        """The `k` notes that fit best.

        score = `relevance` of the words (BM25 as a share) and the cosine; a note beside one that fits gets
        `_NEAR` of its neighbour's, since an answer stands beside its question; what is no longer so gets half.

        Args:
            query: a question, or any text.
            k: at most so many.
            as_of: None for now; only what was known at this time, as it was then.
            where: which notes are asked; None for all.
        """
        query, k = checked_text("query", query), checked_number("k", k, least=0)
        if not self.notes or not k:
            return []
        shares = self._words.search(content_words(query))
        cosines = dict(self._vectors.search(query, _MAX_SIMILAR + k, above=0.0))
        own = {n: relevance(shares.get(n, 0.0), cosines.get(n, 0.0)) for n in shares.keys() | cosines.keys()}
        scores = {}
        for number, score in own.items():
            beside = max(self._beside(number, number - 1, own), self._beside(number, number + 1, own))
            scores[number] = min(score + _NEAR * beside, 1.0)
        best: list[Item] = []
        for number in sorted(scores, key=lambda n: (-scores[n], -n)):
            note = self.notes[number]
            if (as_of is not None and note.created > as_of) or (where is not None and not where(note)):
                continue
            best.append(self._item(note, scores[number], shares.get(number, 0.0), cosines.get(number, 0.0), as_of))
            if len(best) == 2 * k:
                break
        best.sort(key=lambda item: -item.score)
        return best[:k]

    def _beside(self, number: int, other: int, scores: Mapping[int, float]) -> float:
        """The score of a neighbour, if it is of the same conversation."""
        if other not in scores:
            return 0.0
        one, two = self.notes[number], self.notes[other]
        return scores[other] if (one.when, one.kind) == (two.when, two.kind) else 0.0

    def _item(self, note: Note, score: float, share: float, cosine: float, as_of: int | None) -> Item:
        text = rendered(note, as_of)
        over = note.ended is not None and (as_of is None or note.ended <= as_of)
        last = note.sources[-1]
        sources = tuple(dict.fromkeys(source.episode for source in note.sources))
        why = f"{share:.2f} of the query's words, {cosine:.2f} similar" + (", no longer so" if over else "")
        data = {"id": f"notes:{note.id}", "said": note.text, "speaker": note.speaker, "when": note.when}
        return Item(text, "notes", score * (_PAST if over else 1.0), why, last.episode, last.step, sources, data)

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        notes = [vars(note) for note in self.notes.values()]
        return ({"embedder": self.embedder.name, "next": self._next, "notes": notes},)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        self.embedder.check(state)
        notes = [_note_of(row) for row in state["notes"]]
        following = checked_number("next", state["next"], max((note.id + 1 for note in notes), default=0))
        self._clear()
        self._next = following
        self.notes = {note.id: note for note in notes}
        self._same = {_key_of(note): note.id for note in notes}
        self._index(self.notes)

    def fork(self) -> Self:
        other = super().fork()
        other.notes = copy.deepcopy(self.notes)
        other._same, other._claims = dict(self._same), dict(self._claims)
        other._words, other._vectors = self._words.fork(), self._vectors.fork()
        return other

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove the notes that name an object, that an episode alone supports, one note, or, for the user, all.

        An earlier version that names the object goes; what a removed note had ended stays ended.
        """
        self.embedder.clear()
        doomed, references = [], 0
        for note in self.notes.values():
            if selector.is_all_of(self.scope) or selector.is_entry("notes", note.id):
                doomed.append(note.id)
                continue
            kept = [source for source in note.sources if source.episode != selector.episode]
            past = [one for one in note.past if not selector.in_text(_words_of_version(one))]
            named = any(map(selector.in_text, (_about(note), note.action, *_label_texts(note.labels))))
            if not kept or named:
                doomed.append(note.id)
                continue
            references += len(note.sources) - len(kept) + len(note.past) - len(past)
            note.sources, note.past = kept, past
        for number in doomed:
            note = self.notes.pop(number)
            self._same.pop(_key_of(note), None)
            self._claims.pop(number, None)
            self._words.remove(number)
            self._vectors.remove(number)
        return {"notes": len(doomed), "references": references}


def rendered(note: Note, as_of: int | None = None) -> str:
    """One line: date and speaker if they are known, the text, and since when it is no longer so."""
    text = " ".join((note.text if as_of is None else _text_at(note, as_of)).split())
    lead = f"{note.speaker}: " if note.speaker else ""
    lead = f"[{note.when}] {lead}" if note.when else lead
    ends = [end for end in note.ends if as_of is None or end.time <= as_of]
    if not ends:
        return lead + text
    if len(ends) >= note.num_claims:
        return f"{lead}{text} (no longer, since time {max(end.time for end in ends)})"
    return f"{lead}{text} (in part no longer, since time {max(end.time for end in ends)})"


def _text_at(note: Note, time: int) -> str:
    return next((version.text for version in note.past if time < version.until), note.text)


def _about(note: Note) -> str:
    """What queries are compared with."""
    return " ".join(part for part in (note.speaker, note.text, note.when) if part)


def _key(text: str, kind: str, speaker: str, when: str, action: str, labels: Mapping[str, Value]) -> tuple[Any, ...]:
    """What is equal for the same text said again."""
    return " ".join(text.split()).rstrip(".!"), kind, speaker, when, action, tuple(sorted(labels.items()))


def _key_of(note: Note) -> tuple[Any, ...]:
    return _key(note.text, note.kind, note.speaker, note.when, note.action, note.labels)


def checked_labels(labels: Any) -> dict[str, Value]:
    """The caller's labels: names to texts, numbers, flags or None."""
    found = {}
    for name, value in checked_mapping("labels", {} if labels is None else labels).items():
        if not (value is None or type(value) in (bool, int, float, str)):
            raise InvalidInputError(
                f"labels: {shown(name)}: expected text, a number, a flag or None, got {shown(value)}"
            )
        found[checked_text("labels: name", name)] = checked_text("labels", value) if isinstance(value, str) else value
    return found


def _label_texts(labels: Mapping[str, Value]) -> list[str]:
    return [f"{name} {value}" for name, value in labels.items()]


def _words_of_version(version: Version) -> str:
    return " ".join([version.text, *_label_texts(version.labels)])


def _note_of(row: Mapping[str, Any]) -> Note:
    note = Note(**row)
    texts = (note.text, note.kind, note.speaker, note.when, note.action)
    if not all(isinstance(text, str) for text in texts) or not note.sources:
        raise InvalidInputError(f"state: expected a note with texts and a source, got {shown(row)}")
    checked_number("state: id", note.id, 0)
    checked_number("state: claims", note.num_claims, 0)
    note.labels = checked_labels(note.labels)
    note.sources = [Source(*(checked_number("state: source", n) for n in source)) for source in note.sources]
    note.ends = [End(*(checked_number("state: end", n) for n in end)) for end in note.ends]
    note.past = [Version(text, labels, until) for text, labels, until in note.past]
    return note

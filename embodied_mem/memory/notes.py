"""Notes: every text that a user says, and every observation that no rule reads, word by word, found by what it says.

    notes = NoteMemory()
    notes.tell("I am vegetarian.", episode=0, step=0, time=1)
    notes.tell("I'm no longer vegetarian.", episode=0, step=0, time=2)
    [item.text for item in notes.retrieve("vegetarian?")]
    # ["I'm no longer vegetarian.", "I am vegetarian. (no longer, since time 2)"]

The other modules add structure to what is here; nothing is here that was not said. The same text again, with the same
speaker, date and labels, is one more source of one note. A claim that a later one of the same speaker ends (`claims`)
stays with the time of its end. Values that only differ both stay.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from ..errors import InvalidInputError
from .arguments import checked_mapping, checked_number, checked_rows, checked_text, checked_texts, shown
from .claims import Claim, claims_in, tells_nothing
from .embedders import Embedder
from .events import NotesEvent, Value, check
from .graph import Scope
from .paged_rows import PagedRows
from .people import (
    ROLES,
    has_owner,
    is_first_person,
    is_limit,
    is_offer,
    is_standing,
    named_for,
    role_in,
    things_in,
    words_of_role,
)
from .record import Record, RecordMemory, Source, record_of, row_of, whole_number
from .search import QueryEmbedder, TextIndex, WordIndex, largest, relevances, sorted_union, squashed
from .stored_modules import Selector
from .supersession import (
    POSSIBLE,
    RareWords,
    Statement,
    chances,
    is_about_another,
    of_same_topic,
    should_be_first,
    statement,
)
from .trust import RANK, Trust, checked_trust, marked
from .words import asks_when, content_words, normal, stem, tells_when, words_of

TOLD, SEEN = "told", "seen"
"""Kinds of notes: what somebody said, and what the world answered."""

RESERVED = (
    "id", "module", "text", "created", "updated", "ended", "sources", "trust", "labels", "data", "kind", "speaker",
    "when", "action", "recorded", "valid_from",
)  # fmt: skip
"""Fields of a record, which no label may be called."""

_EVENT = "notes event"
_NEAR = {1: 0.3, 2: 0.2}
"""Distance in notes -> share of the score of the better neighbour at it."""
_ANSWER = 0.3
_CONVERSATION = 0.3
_SPEAKER = 0.2
_TIME = 0.1
_QUESTION = 0.9
_IDLE = 0.8
_OTHER, _OTHER_THAN_ASKER = 0.8, 0.6
_STANDING = 2.0
_TIE = 0.95
_LIMIT = 0.2
_LIKE = 0.6
_PAST = 0.5
_CONVERSATION_OF, _SPEAKER_OF, _SORT = range(3)
_NO_NOTE = (-1, -1, 0)
_ASKS, _IS_IDLE, _TELLS_TIME, _IS_TOLD, _IS_STANDING, _IS_LONG = (1 << bit for bit in range(6))
"""Columns of what `retrieve` looks at in all notes, a row without a note, and the bits of its last column."""
_REACH = max(_NEAR)
_MAX_SIMILAR, _MAX_BEST = 256, 64
_NEARBY, _LAST_SAID, _MAX_COMPARED = 32, 6, 16
"""A new statement is compared with the last ones of its speaker among so many notes, and others with its words."""
_MAX_STATEMENT = 100
"""Characters of a text that may replace another or be replaced; a longer one tells many things. Chosen on LoCoMo."""
_MAX_STANDING = 200
_MAX_STATEMENTS = 1024
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_PART_WORDS = 80
"""Words of a part of a long note; chosen on six dialogues of BEAM."""


class End(NamedTuple):
    """One claim of a note that is over: its position among the claims, since when, and the note that says so."""

    claim: int
    time: int
    by: int


class Claims(NamedTuple):
    """Claims of a note: their number, how many deny something, and those that are no longer so."""

    num_claims: int
    num_denials: int
    ends: tuple[End, ...] = ()

    def ended(self, as_of: int | None = None) -> tuple[int | None, int | None]:
        """Return since when the whole note and a part are over."""
        ends = [end.time for end in self.ends if as_of is None or end.time <= as_of]
        last = max(ends, default=None)
        return (last, None) if ends and len(ends) >= self.num_claims else (None, last)


def new_labels(labels: Any) -> dict[str, Value]:
    """Check a caller's labels; names in `RESERVED` are refused."""
    found = checked_labels(labels)
    for name in found:
        if normal(name).strip() in RESERVED:
            raise InvalidInputError(
                f"labels: {shown(name)}: expected a name that is no field of a record, got one of "
                f"{', '.join(sorted(RESERVED))}; choose another name"
            )
    return found


def checked_labels(labels: Any) -> dict[str, Value]:
    """Check the caller's labels: names to texts, numbers, flags or None."""
    found = {}
    for name, value in checked_mapping("labels", {} if labels is None else labels).items():
        if not (value is None or type(value) in (bool, int, float, str)):
            raise InvalidInputError(
                f"labels: {shown(name)}: expected text, a number, a flag or None, got {shown(value)}"
            )
        found[checked_text("labels: name", name)] = checked_text("labels", value) if isinstance(value, str) else value
    return found


Things: TypeAlias = Callable[[Set[str]], Set[str]]
"""Gives those of some words that name things on the map, furniture aside."""


def no_things(words: Set[str]) -> Set[str]:
    """Know no thing."""
    return frozenset()


class NoteMemory(RecordMemory):
    """The notes of one scope.

    Attributes:
        notes: number -> the note as it was said; the last source is the last time that it was.
    """

    format_name = "embodied_mem.notes"
    module = "notes"

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
            embedder: None for word vectors, or the lexical one where their table is not installed.
        """
        super().__init__(scope, record)
        self.embedder = QueryEmbedder.of(embedder)
        self._clear()

    def _clear(self) -> None:
        self.notes: dict[int, Record] = {}
        self.claims: dict[int, Claims] = {}
        self._past: dict[int, tuple[Record, ...]] = {}  # earlier versions, of notes that have some
        self._newer: dict[int, tuple[tuple[int, int], ...]] = {}  # by what notes one is replaced, and since when
        self._statements: dict[str, Statement] = {}  # of the texts that were compared last
        self._next = 0
        self._same: dict[tuple[Any, ...], int] = {}
        self._claims: dict[str, list[Claim]] = {}  # of texts that were asked about, until something is removed
        self._denying: set[int] = set()
        self._marks = PagedRows(len(_NO_NOTE))
        self._idle: dict[int, frozenset[str]] = {}  # the stems of notes that tell nothing
        self._columns: tuple[np.ndarray, ...] | None = None  # of the marks, until they change
        self._parts: dict[int, range] = {}  # of long notes
        self._note_of_part: list[int] = []
        self._part_words, self._part_vectors = WordIndex(), TextIndex(self.embedder)
        self._told_at: dict[int, int] = {}  # time -> what was told then
        self._limits: dict[int, list[str]] = {}
        self._limit_words: RareWords | None = None  # of the limits, until they change
        self._speakers: dict[str, int] = {}
        self._names: list[tuple[str, frozenset[str]]] = []  # of the speakers: the voice, the words
        self._voices: dict[str, frozenset[str]] = {}  # of those who told something: the words of the name
        self._roles: dict[tuple[str, str], dict[int, str]] = {}  # of whom, what -> note, name
        self._words = WordIndex()
        self._conversations = WordIndex()
        self._conversation_ids: dict[tuple[str, int], int] = {}
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
        trust: Trust | None = None,
        things: Things = no_things,
    ) -> dict[str, Any]:
        """Make the event for `tell`: a note per text but blank ones."""
        trust = _usual_trust(kind) if trust is None else checked_trust("trust", trust)
        speaker, when, action = (
            checked_text("speaker", speaker),
            checked_text("when", when),
            checked_text("action", action),
        )
        labels = new_labels(labels)
        changes: list[dict[str, Any]] = []
        following = self._next
        for one in [checked_text("text", text)] if isinstance(text, str) else checked_texts("text", text):
            if not one.strip():
                continue
            known = self._same.get(_key(one, kind, speaker, when, action, trust, labels))
            if known is not None and self.notes[known].ended is None:
                changes.append({"do": "repeat", "id": known, **self._replaced_by(one, known, speaker, trust, things)})
                continue
            claims = claims_in(one) if kind == TOLD else []
            said = {"text": one, "kind": kind, "speaker": speaker, "when": when, "action": action, "trust": trust}
            counts = {"claims": len(claims), "denials": _denials(claims)}
            links = self._replaced_by(one, following, speaker, trust, things) if kind == TOLD else {}
            changes.append({"do": "add", **said, "labels": labels, **counts, **links})
            ended = {(number, claim): None for new in claims for number, claim in self._ended_by(new, speaker, trust)}
            changes += [{"do": "end", "id": number, "claim": claim, "by": following} for number, claim in ended]
            following += 1
        return {"op": "change", "episode": episode, "step": step, "time": time, "changes": changes}

    def number_of(
        self, text: str, *, speaker: str, when: str, trust: Trust, labels: Mapping[str, Value] | None = None
    ) -> int:
        """Find a text's number, the present or the next one."""
        text, speaker, when = checked_text("text", text), checked_text("speaker", speaker), checked_text("when", when)
        known = self._same.get(_key(text, TOLD, speaker, when, "", trust, new_labels(labels)))
        return self._next if known is None or self.notes[known].ended is not None else known

    def _ended_by(self, new: Claim, speaker: str, trust: Trust) -> list[tuple[int, int]]:
        """List a speaker's (note, claim) pairs that a new claim ends."""
        found = []
        who = self.voice(speaker)
        for number in sorted(self._words.with_all(sorted(new.content), None if new.denied else self._denying)):
            note = self.notes[number]
            if note.kind != TOLD or RANK[trust] < RANK[note.trust] or self.voice(note.speaker) != who:
                continue
            over = {end.claim for end in self.claims[number].ends}
            found += [(number, i) for i, old in enumerate(self.claims_of(number)) if i not in over and new.ends(old)]
        return found

    def _replaced_by(
        self, text: str, number: int, speaker: str, trust: Trust, things: Things = no_things
    ) -> dict[str, list[int]]:
        """Find what a speaker's text replaces: a field of a change."""
        if len(text) > _MAX_STATEMENT:
            return {}
        who, its, notes = self.voice(speaker), dict[int, int](), self.notes
        first = self._next - _NEARBY
        nearby = [
            other for other in range(self._next - 1, first - 1, -1) if other in notes and notes[other].kind == TOLD
        ]
        distances = {other: distance for distance, other in enumerate(nearby, 1)}
        with_words = self._words.recent(dict.fromkeys(content_words(text)), _MAX_COMPARED)
        for other in itertools.chain(nearby[:_LAST_SAID], with_words):
            if other in its:
                continue
            note = notes[other]
            if len(note.text) > _MAX_STATEMENT or note.ended is not None or other == number or note.kind != TOLD:
                continue
            is_own = note.speaker == speaker or self.voice(note.speaker) == who
            if is_own and RANK[trust] >= RANK[note.trust]:
                its[other] = distances.get(other) or len(distances) + first - other
                if len(its) == _MAX_COMPARED:
                    break
        if not its:
            return {}
        olds = [self._statement(notes[other].text) for other in its]
        chance = dict(zip(its, chances(self._statement(text), olds, list(its.values()))))
        matches = self._judge_matches(text, chance, its) if self.embedder.has_judge else None
        if matches is None:
            matches = [o for o, p in chance.items() if should_be_first(p, text, notes[o].text, its[o])]
        if matches:
            kinds = things({*words_of(text), *(word for other in matches for word in words_of(notes[other].text))})
            matches = [other for other in matches if not is_about_another(text, notes[other].text, kinds)]
        return {"replaces": matches} if matches else {}

    def _judge_matches(self, text: str, chance: Mapping[int, float], distances: Mapping[int, int]) -> list[int] | None:
        """Ask the embedder's judge what a text replaces; None where it fails."""
        possible = [] if tells_nothing(text) else [other for other, p in chance.items() if p >= POSSIBLE]
        if not possible:
            return []
        olds = {other: self.notes[other].text for other in possible}
        more = self.embedder.replacement_chances(text, [*olds.values()], [distances[other] for other in possible])
        if more is None:
            return None
        likely = {other: olds[other] for other, p in zip(possible, more) if p + chance[other] >= 1}
        return of_same_topic(text, likely, distances)

    def _statement(self, text: str) -> Statement:
        its = self._statements.get(text)
        if its is None:
            if len(self._statements) >= _MAX_STATEMENTS:
                self._statements.clear()
            its = self._statements[text] = statement(text)
        return its

    def has_replaced(self) -> bool:
        """Return whether some note is replaced by another."""
        return bool(self._newer)

    def found(self, number: int, as_of: int | None, why: str) -> Record:
        """Make the record of a note as `retrieve` gives it."""
        note = (self.notes[number] if as_of is None else self.record_at(number, as_of)) or self.notes[number]
        return note._replace(text=self.line(number, note, as_of), data={**note.data, "said": note.text}, why=why)

    def told_at(self, time: int) -> int | None:
        """Find the note that was told at a time."""
        return self._told_at.get(time)

    def newest(self, number: int, as_of: int | None = None) -> int:
        """Find the note that replaces another at last; itself for none."""
        chain = {number}
        while number in self._newer:
            last = last_told(self.notes[number], as_of)
            newer = next((
                by for by, time in reversed(self._newer[number])
                if last < time and (as_of is None or time <= as_of) and self.notes[by].ended is None
            ), number)  # fmt: skip
            if newer in chain:
                break
            chain.add(number := newer)
        return number

    def voice(self, speaker: str) -> str:
        """Return a speaker's normal name; empty for the scope's user."""
        name = normal(speaker)
        return "" if name in (normal(self.scope.user or ""), *ROLES) else name

    def claims_of(self, number: int) -> list[Claim]:
        """List the claims of a note."""
        return self.claims_in(self.notes[number].text)[: self.claims[number].num_claims]

    def claims_in(self, text: str) -> list[Claim]:
        """List the claims of a note's text or of a given part."""
        claims = self._claims.get(text)
        if claims is None:
            claims = self._claims[text] = claims_in(text)
        return claims

    def edited(self, number: int, time: int, text: str | None, labels: Mapping[str, Value] | None) -> dict[str, Any]:
        """Make the event that changes a note's text or labels.

        Raises:
            InvalidInputError: there is no such note, the text is blank.
        """
        if number not in self.notes:
            raise InvalidInputError(f"notes: expected the number of a note, got {shown(number)}; it is not there")
        note, ended = self.notes[number], dict[tuple[int, int], None]()
        change: dict[str, Any] = {"do": "update", "id": number}
        if text is not None:
            if not checked_text("text", text).strip():
                raise InvalidInputError(
                    "text: expected one with a word in it, got a blank one; delete the entry instead"
                )
            claims = claims_in(text) if note.kind == TOLD else []
            over = [pair for new in claims for pair in self._ended_by(new, note.speaker, note.trust)]
            ended = {pair: None for pair in over if pair[0] != number}
            change |= {"text": checked_text("text", text), "claims": len(claims), "denials": _denials(claims)}
            change |= self._replaced_by(text, number, note.speaker, note.trust) if note.kind == TOLD else {}
        if labels is not None:
            change["labels"] = new_labels(labels)
        last = note.sources[-1]
        ends = [{"do": "end", "id": other, "claim": claim, "by": number} for other, claim in ended]
        return {"op": "change", "episode": last.episode, "step": last.step, "time": time, "changes": [change, *ends]}

    def check(self, event: Mapping[str, Any]) -> None:
        check(NotesEvent, _EVENT, event)

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """Apply as `RecordedModule`. Raises InvalidInputError for unknown notes and changes nothing then."""
        following = self._next + sum(change["do"] == "add" for change in event["changes"])
        for change in event["changes"]:
            if change["do"] != "add" and change["id"] not in self.notes and not self._next <= change["id"] < following:
                raise InvalidInputError(f"{_EVENT}: expected the number of a note, got {change['id']}")
        time = event["time"]
        source = Source(event["episode"], event["step"], time)
        changed: list[tuple[str, int]] = []
        touched: dict[int, None] = {}
        for change in event["changes"]:
            do = change["do"]
            number = self._next if do == "add" else change["id"]
            if do == "add":
                self._next += 1
                data = {"when": change["when"], "action": change["action"]}
                kind, trust = change["kind"], change.get("trust") or _usual_trust(change["kind"])
                note = Record(
                    f"notes:{number}", "notes", kind, change["text"], change["speaker"], "", time, time,
                    None, dict(change["labels"] or {}), data=data, sources=(source,), trust=trust,
                )  # fmt: skip
                self.notes[number], self.claims[number] = note, Claims(change["claims"], change["denials"])
                self._same[_key_of(note)] = number
                touched[number] = None
            elif do == "repeat":
                note = self.notes[number]
                self.notes[number] = note._replace(sources=(*note.sources, source))
            elif do == "end":
                claims, end = self.claims[number], End(change["claim"], time, change["by"])
                self.claims[number] = claims = claims._replace(ends=(*claims.ends, end))
                self.notes[number] = self.notes[number]._replace(ended=claims.ended()[0])
            else:
                self._update(number, change, time)
                touched[number] = None
            for other in change.get("replaces", ()):
                self._newer[other] = (*self._newer.get(other, ()), (number, time))
            changed.append((do, number))
        self.changed = changed
        self._index(touched)

    def _update(self, number: int, change: Mapping[str, Any], time: int) -> None:
        note = self.notes[number]
        self._unindex(number)
        self._leave_key(number, note)
        self._past[number] = (*self._past.get(number, ()), note._replace(ended=time))
        note = note._replace(valid_from=time, labels=dict(change["labels"]) if "labels" in change else note.labels)
        if "text" in change:
            self._unlink({number})
            note = note._replace(text=change["text"], ended=None)
            self.claims[number] = Claims(change["claims"], change["denials"])
        self.notes[number] = note
        self._same[_key_of(note)] = number

    def _unlink(self, numbers: Set[int]) -> None:
        """Drop what these notes replace and by what they are replaced."""
        rest = {
            number: tuple(row for row in rows if row[0] not in numbers)
            for number, rows in self._newer.items() if number not in numbers
        }  # fmt: skip
        self._newer = {number: rows for number, rows in rest.items() if rows}

    def _leave_key(self, number: int, note: Record) -> None:
        """Free a note's text, so that another note may have it."""
        if self._same.get(key := _key_of(note)) == number:
            del self._same[key]
            others = self._words.with_all(sorted(set(content_words(_about(note))))) - {number}
            same = [other for other in sorted(others) if _key_of(self.notes[other]) == key]
            if same:
                self._same[key] = same[-1]

    def _unindex(self, number: int) -> None:
        self._words.remove(number)
        for part in self._parts.pop(number, ()):
            self._part_words.remove(part)
            self._part_vectors.remove(part)
        self._vectors.remove(number)
        if self._limits.pop(number, None) is not None:
            self._limit_words = None
        self._denying.discard(number)
        note = self.notes[number]
        if self._told_at.get(note.recorded) == number:
            del self._told_at[note.recorded]
        if (role := role_in(note.text)) is not None:
            self._roles.get((self.voice(note.speaker), role[0]), {}).pop(number, None)
        self._idle.pop(number, None)
        if (conversation := self._marks.get(number, _CONVERSATION_OF)) >= 0:
            self._conversations.reduce(conversation, content_words(_about(note)))
        self._marks.put(number, _NO_NOTE)
        self._columns = None

    def _index(self, numbers: Iterable[int]) -> None:
        notes = [(number, self.notes[number]) for number in numbers]
        self._marks.lengthen(self._next, _NO_NOTE)
        self._columns = None
        for number, note in notes:
            words = content_words(_about(note))
            self._words.add(number, words)
            if len(parts := parts_of(note.text)) > 1:
                first = len(self._note_of_part)
                self._parts[number] = range(first, first + len(parts))
                self._note_of_part += [number] * len(parts)
                self._part_vectors.add_many(enumerate(parts, first))
                for at, part in enumerate(parts, first):
                    self._part_words.add(at, content_words(f"{note.speaker} {part}" if note.speaker else part))
            if self.claims[number].num_denials:
                self._denying.add(number)
            sort, conversation = 0, -1
            if len(parts) > 1:
                sort |= _IS_LONG
            if note.text.rstrip().endswith("?"):
                sort |= _ASKS
            if note.kind == TOLD:
                voice = self.voice(note.speaker)
                if voice not in self._voices:
                    self._voices[voice] = frozenset(words_of(voice))
                sort |= _IS_TOLD
                self._told_at[note.recorded] = number
                if tells_nothing(note.text):
                    sort |= _IS_IDLE
                    self._idle[number] = frozenset(content_words(note.text))
                if len(note.text) <= _MAX_STATEMENT and is_limit(note.text):
                    self._limits[number], self._limit_words = things_in(note.text), None
                is_users = note.trust == "user"
                if is_users and not voice and len(note.text) <= _MAX_STANDING and is_standing(note.text):
                    sort |= _IS_STANDING
                is_short = is_users and len(note.text) <= _MAX_STATEMENT
                if is_short and (role := role_in(note.text)) is not None:
                    self._roles.setdefault((voice, role[0]), {})[number] = role[1]
            if tells_when(words_of(note.text)):
                sort |= _TELLS_TIME
            when, episode = note.data["when"], note.sources[0].episode
            if when or episode >= 0:  # the date, or the task, is the same for texts of one conversation
                conversation = self._conversation_ids.setdefault((when, episode), len(self._conversation_ids))
                self._conversations.extend(conversation, words)
            if (speaker := self._speakers.setdefault(note.speaker, len(self._names))) == len(self._names):
                self._names.append((self.voice(note.speaker), frozenset(words_of(note.speaker))))
            self._marks.put(number, (conversation, speaker, sort))
        self._vectors.add_many((number, note.text) for number, note in notes)

    # Reading.

    def numbers(self) -> list[int]:
        return list(self.notes)

    def record(self, number: int) -> Record:
        return self.notes[number]

    def number_like(self, text: str) -> int | None:
        number = whole_number(text)
        return number if number in self.notes else None

    def past(self, number: int) -> list[Record]:
        return list(self._past.get(number, ()))

    def record_at(self, number: int, time: int) -> Record | None:
        note = self.notes[number]
        if note.recorded > time:
            return None
        was = next((one for one in self._past.get(number, ()) if time < (one.ended or 0)), None)
        note = note if was is None else was._replace(ended=note.ended)
        if note.sources[-1].time == note.sources[0].time and note.ended is None:
            return note
        sources = tuple(source for source in note.sources if source.time is not None and source.time <= time)
        return note._replace(sources=sources, ended=self.claims[number].ended(time)[0])

    def done(self) -> list[tuple[str, Record]]:
        rows = ((do, number, self.notes[number]) for do, number in self.changed)
        return [(do, note._replace(text=marked(self.line(number, note), note.trust))) for do, number, note in rows]

    def line(self, number: int, note: Record, as_of: int | None = None) -> str:
        """Write a note as a line: date, speaker, text, end."""
        text = f"{note.speaker}: {' '.join(note.text.split())}" if note.speaker else " ".join(note.text.split())
        text = f"[{note.data['when']}] {text}" if note.data["when"] else text
        whole, part = self.claims[number].ended(as_of)
        if whole is not None:
            return f"{text} (no longer, since time {whole})"
        return text if part is None else f"{text} (in part no longer, since time {part})"

    def label_names(self) -> set[str]:
        """Names of the labels that notes have or had."""
        versions = [*self.notes.values(), *(one for past in self._past.values() for one in past)]
        return {name for note in versions for name in note.labels}

    def word_weight(self, word: str) -> float:
        """Return how much a stem tells among the notes."""
        return self._words.weight(word)

    def stems_of(self, number: int) -> Set[str]:
        """Return the stems of a note with speaker and date."""
        return self._words.words_of(number)

    def names_in(self, query: str) -> set[str]:
        """Return the stems of the speakers' names in a question."""
        return _stems_of(self._asked_about(set(words_of(query))))

    def retrieve(
        self, query: str, k: int = 8, *, as_of: int | None = None, where: Mapping[str, Any] | None = None
    ) -> list[Record]:
        """Find the `k` notes that fit best.

        score = `relevance` of the words (BM25 as a share) and the cosine, of a long note those of its best part, and
        more where other things fit:
        `_CONVERSATION` of the share that the whole conversation has, `_SPEAKER` if the query names who said it, `_TIME`
        if it asks when and the note tells a time, `_NEAR` of the neighbours' scores, `_ANSWER` of that of the question
        before it. A question gets `_QUESTION` of its own score, small talk `_IDLE`, what somebody said whom the query
        is not about `_OTHER` (`_OTHER_THAN_ASKER` if it is about the asker), what is no longer so `_PAST`, what the
        user wants for good `_STANDING` of its words. Where the query may offer something, see `people`, what the person
        does not want gets `_LIMIT`, and `_LIKE` of how alike two words are. The numbers were chosen on five dialogues
        of LoCoMo, six of BEAM, five weeks of `robot_week`. A question or small talk that says no more than the query
        is no answer.

        Args:
            query: a question, or any text.
            k: at most so many.
            as_of: None for now; only what was known at this time, as it was then.
            where: values that a note must have; None for all notes.
        """
        query, k = checked_text("query", query), checked_number("k", k, least=0)
        if not self.notes or not k:
            return []
        stems = content_words(query)
        marks = self._mark_columns()
        shares, cosines, own = np.zeros((3, len(marks[0])))
        hits, scores = self._words.ranking(stems)
        shares[hits] = scores
        similar = self._vectors.search(query, _MAX_SIMILAR + k, above=0.0)
        numbers, scores = np.array([row[0] for row in similar], np.int64), np.array([row[1] for row in similar])
        cosines[numbers] = scores
        candidates = np.concatenate([hits, numbers[shares[numbers] == 0]])
        own[candidates] = relevances(shares[candidates], cosines[candidates], self.embedder.share_of_words)
        if self._parts:
            candidates = self._score_parts(own, candidates, query, stems, marks[_SORT])
        candidates = self._score(own, candidates, hits, query, stems, marks)
        if where or as_of is not None:
            around = np.fromiter(self.notes, np.int64, len(self.notes))
        else:
            few = candidates[largest(own[candidates], _MAX_BEST + 4 * k)]
            beside = set((few[:, None] + np.arange(-_REACH, _REACH + 1)).ravel().tolist())
            around = np.array([number for number in beside if number in self.notes], np.int64)
        scores = squashed(own[around] + self._scores_beside(around, own, marks))
        order = np.lexsort((-around, -scores))
        best: list[Record] = []
        words = set(stems)
        for number, score in zip(around[order].tolist(), scores[order].tolist()):
            note = self.notes[number] if as_of is None else self.record_at(number, as_of)
            if note is None or (where and not note.fits(where)):
                continue
            if not score:
                break
            if number in self._idle and self._idle[number] <= words:
                continue
            over = note.ended is not None
            why = f"{float(shares[number]):.2f} of the query's words, {float(cosines[number]):.2f} similar"
            best.append(note._replace(
                text=self.line(number, note, as_of), data={**note.data, "said": note.text},
                score=score * (_PAST if over else 1.0), why=why + (", no longer so" if over else ""),
            ))  # fmt: skip
            if len(best) == 2 * k:
                break
        best = self._latest_first(best, words)
        best.sort(key=lambda item: -item.score)
        return best[:k]

    def _score_parts(
        self, own: np.ndarray, candidates: np.ndarray, query: str, stems: Sequence[str], sorts: np.ndarray
    ) -> np.ndarray:
        """Give long notes the score of their best part."""
        shares, cosines = np.zeros((2, len(self._note_of_part)))
        hits, scores = self._part_words.ranking(stems)
        shares[hits] = scores
        similar = self._part_vectors.search(query, _MAX_SIMILAR, above=0.0)
        parts = np.array([row[0] for row in similar], np.int64)
        cosines[parts] = [row[1] for row in similar]
        parts = sorted_union(hits, parts, len(shares))
        notes = np.array([self._note_of_part[part] for part in parts.tolist()], np.int64)
        own[candidates[sorts[candidates] & _IS_LONG != 0]] = 0.0
        np.maximum.at(own, notes, relevances(shares[parts], cosines[parts], self.embedder.share_of_words))
        return sorted_union(candidates[own[candidates] > 0], notes, len(own))

    def _latest_first(self, items: list[Record], words: Set[str]) -> list[Record]:
        """Give the later of near short notes the better score."""
        groups: dict[tuple[str, Trust, frozenset[str]], list[int]] = {}
        for at, item in enumerate(items):
            if item.kind == TOLD and item.ended is None and len(item.data["said"]) <= _MAX_STATEMENT:
                common = frozenset(words & set(content_words(item.data["said"])))
                if common:
                    groups.setdefault((self.voice(item.speaker), item.trust, common), []).append(at)
        for ats in groups.values():
            least = _TIE * max(items[at].score for at in ats)
            near = sorted((at for at in ats if items[at].score >= least), key=lambda at: -int(items[at].number))
            scores = sorted((items[at].score for at in near), reverse=True)
            for at, score in zip(near, scores):
                items[at] = items[at]._replace(score=score)
        return items

    def _mark_columns(self) -> tuple[np.ndarray, ...]:
        """Return the columns of the marks, with rows of no notes behind."""
        if self._columns is None:
            columns = enumerate(_NO_NOTE)
            self._columns = tuple(np.append(self._marks.column(i), [none] * _REACH) for i, none in columns)
        return self._columns

    @staticmethod
    def _scores_beside(numbers: np.ndarray, own: np.ndarray, marks: Sequence[np.ndarray]) -> np.ndarray:
        """Return the scores that notes get from their conversation neighbours."""
        conversations, _, sorts = marks
        its = conversations[numbers]
        scores = np.zeros(len(numbers))
        for by, part in _NEAR.items():
            beside = [np.where(conversations[at] == its, own[at], 0.0) for at in (numbers - by, numbers + by)]
            scores += part * np.maximum(*beside)
        before = numbers - 1
        is_asked = (sorts[before] & _ASKS != 0) & (conversations[before] == its)
        scores += np.where(is_asked, _ANSWER * own[before], 0.0)
        return np.where(its >= 0, scores, 0.0)

    def _score(
        self,
        own: np.ndarray,
        candidates: np.ndarray,
        hits: np.ndarray,
        query: str,
        stems: Sequence[str],
        marks: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Adjust scores by other features; return the notes with a score.

        Args:
            own: score of each note, of words and vectors.
            candidates: the notes with one.
            hits: those of them with a word of the query.
            query, stems: the question and its stems.
            marks: the columns of all notes.
        """
        conversations, speakers, sorts = marks
        words = set(words_of(query))
        own[candidates[sorts[candidates] & _IS_STANDING != 0]] *= _STANDING
        about = self._asked_about(words)
        numbers, scores = self._conversations.ranking(stems)
        if len(numbers):
            by_conversation = np.zeros(len(self._conversation_ids) + 1)  # of no conversation, too
            by_conversation[numbers] = scores
            own[candidates] += _CONVERSATION * by_conversation[conversations[candidates]]
        is_named = np.array([not words.isdisjoint(its) for _, its in self._names])
        own[hits] += np.where(is_named[speakers[hits]], _SPEAKER, 0.0)
        is_about = np.array([voice in about for voice, _ in self._names])
        if role_words := words_of_role(query, about):
            roles = [(number, role) for voice in about for role, number in self._roles_of(voice).items()]
            for number in [number for number, role in roles if set(words_of(role)) == role_words]:
                candidates = candidates if own[number] else np.append(candidates, number)
                own[number] += _ANSWER
        if about and is_offer(query):
            if self._limit_words is None:
                self._limit_words = RareWords(self._limits)
            limits = self._limit_words.numbers
            its = is_about[speakers[limits]]
            limits, like = limits[its], self._limit_words.likeness(things_in(query, about))[its]
            candidates = np.concatenate([candidates, limits[own[limits] == 0]])
            own[limits] = own[limits] + _LIMIT + _LIKE * like
        own[candidates[sorts[candidates] & _ASKS != 0]] *= _QUESTION
        own[candidates[sorts[candidates] & _IS_IDLE != 0]] *= _IDLE
        if about:
            others = candidates[(sorts[candidates] & _IS_TOLD != 0) & ~is_about[speakers[candidates]]]
            for name in _stems_of(about):
                others = others[~self._words.have(others.tolist(), name)]
            own[others] *= _OTHER_THAN_ASKER if "" in about else _OTHER
        if asks_when(query):
            own[candidates[sorts[candidates] & _TELLS_TIME != 0]] += _TIME
        return candidates

    def _asked_about(self, words: Set[str]) -> set[str]:
        """Find the speakers whom a question is about."""
        named = {voice for voice, its in self._voices.items() if not words.isdisjoint(its)}
        return named | ({""} if is_first_person(words) and "" in self._voices else set())

    def with_names(self, query: str) -> str:
        """Write names for what people are to the user."""
        if not has_owner(query):
            return query
        roles = self._roles_of("").items()
        return named_for(query, {role: self._roles["", role][number] for role, number in roles})

    def _roles_of(self, voice: str) -> dict[str, int]:
        """Return role -> the last note that names who has it."""
        rows = ((role, its) for (whose, role), its in self._roles.items() if whose == voice)
        notes = self.notes
        last = ((role, (n for n in sorted(its, reverse=True) if notes[n].ended is None)) for role, its in rows)
        return {role: number for role, numbers in last if (number := next(numbers, None)) is not None}

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        notes = [
            row_of(note)
            | {"claims": self.claims[number], "past": list(map(row_of, self.past(number)))}
            | ({"newer": self._newer[number]} if number in self._newer else {})
            for number, note in self.notes.items()
        ]
        return ({"embedder": self.embedder.name, "next": self._next, "notes": notes},)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        rows = [note_of(row) for row in state["notes"]]
        notes = {number: note for number, note, *_ in rows}
        newer = {number: its for number, *_, its in rows if its}
        if unknown := {by for its in newer.values() for by, _ in its} - notes.keys():
            raise InvalidInputError(f"state: newer: expected numbers of notes, got {min(unknown)}")
        following = checked_number("next", state["next"], max(notes, default=-1) + 1)
        self._clear()
        self._next, self.notes = following, notes
        self.claims = {number: claims for number, _, claims, _, _ in rows}
        self._past = {number: past for number, _, _, past, _ in rows if past}
        self._newer = newer
        self._same = {_key_of(note): number for number, note in notes.items()}
        self._index(self.notes)

    def fork(self) -> Self:
        other = super().fork()
        other.notes, other.claims, other._past = dict(self.notes), dict(self.claims), dict(self._past)
        other._same, other._claims = dict(self._same), dict(self._claims)
        other._newer, other._statements = dict(self._newer), dict(self._statements)
        other._words, other._vectors = self._words.fork(), self._vectors.fork()
        other._parts, other._note_of_part = dict(self._parts), list(self._note_of_part)
        other._part_words, other._part_vectors = self._part_words.fork(), self._part_vectors.fork()
        other._denying, other._marks = set(self._denying), self._marks.fork()
        other._idle, other._limits = dict(self._idle), dict(self._limits)
        other._told_at = dict(self._told_at)
        other._speakers, other._voices = dict(self._speakers), dict(self._voices)
        other._names = list(self._names)
        other._roles = {role: dict(its) for role, its in self._roles.items()}
        other._conversation_ids = dict(self._conversation_ids)
        other._conversations = self._conversations.fork()
        return other

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove the notes of a selector: object, episode, user, note, all.

        An earlier version that names the object goes; what a removed note had ended stays ended.
        """
        self.embedder.clear()
        self._claims.clear()
        self._statements.clear()
        doomed: list[int] = []
        moved: list[int] = []
        references = 0
        for number, note in self.notes.items():
            sources = tuple(source for source in note.sources if source.episode != selector.episode)
            if (
                not sources
                or selector.everything
                or selector.is_entry("notes", number)
                or self._was_said_by(selector, note)
                or any(map(selector.in_text, (_about(note), note.data["action"], *_label_texts(note))))
            ):
                doomed.append(number)
                continue
            before = self.past(number)
            past = [one for one in before if not selector.in_text(" ".join([one.text, *_label_texts(one)]))]
            if selector.episode is not None:
                past = [one._replace(sources=tuple(s for s in one.sources if s in sources)) for one in past]
            references += len(note.sources) - len(sources) + len(before) - len(past)
            if sources[0] != note.sources[0]:
                self._unindex(number)  # it may be of another conversation now
                moved.append(number)
            if len(sources) != len(note.sources):
                recorded = sources[0].time or 0
                self.notes[number] = note._replace(
                    sources=sources, recorded=recorded, valid_from=note.valid_from if past else recorded
                )
            if past != before:
                self._past[number] = tuple(past)
        self._index(moved)
        self._unlink(set(doomed))
        for number in doomed:
            self._unindex(number)
            note = self.notes.pop(number)
            self._leave_key(number, note)
            for held in (self.claims, self._past):
                held.pop(number, None)
        self._forget_names()
        return {"notes": len(doomed), "references": references}

    def _forget_names(self) -> None:
        """Drop the names of speakers without a note."""
        speakers = {note.speaker for note in self.notes.values()}
        for name in self._speakers.keys() - speakers:
            self._names[self._speakers.pop(name)] = ("\0", frozenset())
        voices = set(map(self.voice, speakers))
        self._voices = {voice: its for voice, its in self._voices.items() if voice in voices}

    def _was_said_by(self, selector: Selector, note: Record) -> bool:
        """Tell whether a selector's user said a note, as its unnamed speaker."""
        if note.speaker:
            return selector.is_speaker(note.speaker, self.scope)
        return note.kind == TOLD and note.trust == "user" and selector.is_user_of(self.scope)


def last_told(note: Record, as_of: int | None) -> int:
    """Find the time when a note was told or written last."""
    if as_of is None and note.sources:
        return max(note.sources[-1].time or 0, note.valid_from)
    times = (source.time or 0 for source in reversed(note.sources))
    last = next((time for time in times if as_of is None or time <= as_of), note.recorded)
    return max(last, note.valid_from) if as_of is None or note.valid_from <= as_of else last


def note_of(row: Any) -> tuple[int, Record, Claims, tuple[Record, ...], tuple[tuple[int, int], ...]]:
    """Read number, note, claims, earlier versions and links of a row."""
    row = dict(checked_mapping("state: note", row))
    count, denials, ends = checked_rows("state: claims", row.pop("claims", None))
    past = tuple(map(record_of, checked_rows("state: past", row.pop("past", None))))
    newer = tuple(
        (checked_number("state: newer", by, 0), checked_number("state: newer", time))
        for by, time in (
            checked_rows("state: newer", pair) for pair in checked_rows("state: newer", row.pop("newer", ()))
        )
    )
    note = record_of(row)
    number = whole_number(note.id.removeprefix("notes:"))
    if number is None or not note.sources or not {"when", "action"} <= note.data.keys():
        raise InvalidInputError(f"state: expected a note with a number, a source, when and action, got {shown(row)}")
    for one in (note, *past):
        checked_labels(one.labels)
    over = tuple(End(*(checked_number("state: end", n) for n in end)) for end in ends)
    claims = Claims(checked_number("state: claims", count, 0), checked_number("state: denials", denials, 0), over)
    return number, note, claims, past, newer


def _usual_trust(kind: str) -> Trust:
    """Name the usual source of a kind of notes."""
    return "user" if kind == TOLD else "sensor"


def _about(note: Record) -> str:
    """Return what queries are compared with."""
    return " ".join(part for part in (note.speaker, note.text, note.data["when"]) if part)


def _key(text: str, *said: Any) -> tuple[Any, ...]:
    """Return a text's identity; `said`: kind, speaker, when, action, trust, labels."""
    *rest, labels = said
    return " ".join(text.split()).rstrip(".!"), *rest, tuple(sorted(labels.items()))


def _key_of(note: Record) -> tuple[Any, ...]:
    data = note.data
    return _key(note.text, note.kind, note.speaker, data["when"], data["action"], note.trust, note.labels)


def _label_texts(note: Record) -> list[str]:
    return [f"{name} {value}" for name, value in note.labels.items()]


def _stems_of(names: Iterable[str]) -> set[str]:
    return {stem(word) for name in names for word in words_of(name)}


def _denials(claims: Iterable[Claim]) -> int:
    return sum(claim.denied for claim in claims)


def parts_of(text: str) -> list[str]:
    """Split a text into runs of sentences of `_PART_WORDS` words."""
    if len(text) < 4 * _PART_WORDS:
        return [text]
    parts: list[list[str]] = [[]]
    for sentence in _SENTENCE_END.split(text):
        words = sentence.split()
        for first in range(0, len(words), _PART_WORDS):
            some = words[first : first + _PART_WORDS]
            if len(parts[-1]) + len(some) > _PART_WORDS:
                parts.append([])
            parts[-1] += some
    return [" ".join(part) for part in parts]

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
import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from ..errors import InvalidInputError
from .arguments import (
    Fields,
    checked_event,
    checked_mapping,
    checked_number,
    checked_rows,
    checked_text,
    checked_texts,
    shown,
)
from .claims import Claim, claims_in, tells_nothing
from .embedders import Embedder
from .graph import Scope
from .mentions import normal
from .note import (
    TOLD,
    End,
    Note,
    Source,
    Value,
    Version,
    about,
    all_labels,
    checked_labels,
    key,
    key_of,
    label_texts,
    new_labels,
    note_of,
    rendered,
    usual_trust,
    words_of_version,
)
from .recollection import Item
from .relevance import relevance, squashed
from .search import QueryEmbedder, TextIndex, WordIndex
from .store import RecordedModule, Selector
from .trust import RANK, Trust, checked_trust
from .words import asks_when, content_words, tells_when, words_of

_EVENT = "notes event"
_NEAR = {1: 0.3, 2: 0.2}
"""By how many notes it is away: of the better of the two there."""
_ANSWER = 0.3
_CONVERSATION = 0.3
_SPEAKER = 0.2
_TIME = 0.1
_QUESTION = 0.9
_PAST = 0.5
_MAX_SIMILAR, _MAX_BEST = 256, 64


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
            embedder: None for word vectors, or the lexical one where their table is not installed.
        """
        super().__init__(scope, record)
        self.embedder = QueryEmbedder.of(embedder)
        self._clear()

    def _clear(self) -> None:
        self.notes: dict[int, Note] = {}
        self._next = 0
        self._same: dict[tuple[Any, ...], int] = {}
        self._claims: dict[str, list[Claim]] = {}  # of texts that were asked about, until something is removed
        self._denying: set[int] = set()
        self._asking: set[int] = set()
        self._idle: dict[int, frozenset[str]] = {}  # the stems of notes that tell nothing
        self._timed: set[int] = set()
        self._words = WordIndex()
        self._conversations = WordIndex()
        self._conversation_ids: dict[tuple[str, int], int] = {}
        self._conversation_of: dict[int, int] = {}  # of the notes that are of one
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
    ) -> dict[str, Any]:
        """The event that `tell` records; nothing changes. Several texts make several notes; blank ones make none."""
        trust = usual_trust(kind) if trust is None else checked_trust("trust", trust)
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
            known = self._same.get(key(one, (kind, speaker, when, action, trust), labels))
            if known is not None and self.notes[known].ended is None:
                changes.append({"do": "repeat", "id": known})
                continue
            claims = claims_in(one) if kind == TOLD else []
            said = {"text": one, "kind": kind, "speaker": speaker, "when": when, "action": action, "trust": trust}
            changes.append({"do": "add", **said, "labels": labels, "claims": len(claims), "denials": _denials(claims)})
            ended = {(number, claim): None for new in claims for number, claim in self._ended_by(new, speaker, trust)}
            changes += [{"do": "end", "id": number, "claim": claim, "by": following} for number, claim in ended]
            following += 1
        return {"op": "change", "episode": episode, "step": step, "time": time, "changes": changes}

    def number_of(
        self, text: str, *, speaker: str, when: str, trust: Trust, labels: Mapping[str, Value] | None = None
    ) -> int:
        """The number that a told text has, or gets with the next event."""
        text, speaker, when = checked_text("text", text), checked_text("speaker", speaker), checked_text("when", when)
        known = self._same.get(key(text, (TOLD, speaker, when, "", trust), new_labels(labels)))
        return self._next if known is None or self.notes[known].ended is not None else known

    def _ended_by(self, new: Claim, speaker: str, trust: Trust) -> list[tuple[int, int]]:
        """(note, its claim) that a new claim of a speaker ends: the speaker's own, of no more trusted source."""
        found = []
        named = self._words.with_all(sorted(set(new.content)))
        who = self.voice(speaker)
        for number in sorted(named if new.denied else named & self._denying):
            note = self.notes[number]
            if note.kind != TOLD or RANK[trust] < RANK[note.trust] or self.voice(note.speaker) != who:
                continue
            over = {end.claim for end in note.ends}
            found += [(number, i) for i, old in enumerate(self.claims_of(note)) if i not in over and new.ends(old)]
        return found

    def voice(self, speaker: str) -> str:
        """Give one name for all ways to write a speaker; the user of the scope has none."""
        name = normal(speaker)
        return "" if name == normal(self.scope.user or "") else name

    def claims_of(self, note: Note) -> list[Claim]:
        """List the claims of a note."""
        return self.claims_in(note.text)[: note.num_claims]

    def claims_in(self, text: str) -> list[Claim]:
        """List the claims of a note's text, or of one that stands for a part of it."""
        claims = self._claims.get(text)
        if claims is None:
            claims = self._claims[text] = claims_in(text)
        return claims

    def edited(self, number: int, time: int, text: str | None, labels: Mapping[str, Value] | None) -> dict[str, Any]:
        """The event that gives a note another text or other labels; what it was before stays in its history.

        Raises:
            InvalidInputError: there is no such note, the text is blank.
        """
        note, ended = self._note(number), dict[tuple[int, int], None]()
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
        if labels is not None:
            change["labels"] = new_labels(labels)
        last = note.sources[-1]
        ends = [{"do": "end", "id": other, "claim": claim, "by": number} for other, claim in ended]
        return {"op": "change", "episode": last.episode, "step": last.step, "time": time, "changes": [change, *ends]}

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
            if "trust" in change:
                checked_trust(f"{_EVENT}: trust", change["trust"])
            needed = {"add": ("claims", "denials"), "repeat": ("id",), "end": ("id", "claim", "by"), "update": ("id",)}[
                do
            ]
            for name in (*needed, *(("claims", "denials") if do == "update" and "text" in change else ())):
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
                            num_claims=change["claims"], num_denials=change["denials"], ends=[], past=[],
                            trust=change.get("trust", usual_trust(change["kind"])))  # fmt: skip
                self.notes[number] = note
                self._same[key_of(note)] = number
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
        self._unindex(note)
        self._leave_key(note)
        note.past.append(Version(note.text, dict(note.labels), time))
        if "text" in change:
            note.text, note.ends = change["text"], []
            note.num_claims, note.num_denials = change["claims"], change["denials"]
        note.labels = dict(change["labels"]) if "labels" in change else note.labels
        self._same[key_of(note)] = note.id

    def _leave_key(self, note: Note) -> None:
        """A note no longer says what it says: another one that says the same may be said again instead."""
        if self._same.get(key := key_of(note)) == note.id:
            del self._same[key]
            others = self._words.with_all(sorted(set(content_words(about(note))))) - {note.id}
            same = [other for other in sorted(others) if key_of(self.notes[other]) == key]
            if same:
                self._same[key] = same[-1]

    def _unindex(self, note: Note) -> None:
        self._words.remove(note.id)
        self._vectors.remove(note.id)
        for kind in (self._denying, self._asking, self._timed):
            kind.discard(note.id)
        self._idle.pop(note.id, None)
        if (conversation := self._conversation_of.pop(note.id, None)) is not None:
            self._conversations.reduce(conversation, content_words(about(note)))

    def _index(self, numbers: Iterable[int]) -> None:
        notes = [self.notes[number] for number in numbers]
        for note in notes:
            words = content_words(about(note))
            self._words.add(note.id, words)
            if note.num_denials:
                self._denying.add(note.id)
            if note.text.rstrip().endswith("?"):
                self._asking.add(note.id)
            if note.kind == TOLD and tells_nothing(note.text):
                self._idle[note.id] = frozenset(content_words(note.text))
            if tells_when(words_of(note.text)):
                self._timed.add(note.id)
            if (conversation := note.conversation) is not None:
                number = self._conversation_ids.setdefault(conversation, len(self._conversation_ids))
                self._conversation_of[note.id] = number
                self._conversations.extend(number, words)
        self._vectors.add_many((note.id, note.text) for note in notes)

    # Reading.

    def label_names(self) -> set[str]:
        """Names of the labels that notes have or had."""
        return {name for note in self.notes.values() for labels in all_labels(note) for name in labels}

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

        score = `relevance` of the words (BM25 as a share) and the cosine, and more where other things fit:
        `_CONVERSATION` of the share that the whole conversation has, `_SPEAKER` if the query names who said it, `_TIME`
        if it asks when and the note tells a time, `_NEAR` of the neighbours' scores, `_ANSWER` of that of the question
        before it. A question gets `_QUESTION` of its own score, and what is no longer so `_PAST`. The numbers were
        chosen on five dialogues of LoCoMo. A question or small talk that says no more than the query is no answer.

        Args:
            query: a question, or any text.
            k: at most so many.
            as_of: None for now; only what was known at this time, as it was then.
            where: which notes are asked; None for all.
        """
        query, k = checked_text("query", query), checked_number("k", k, least=0)
        if not self.notes or not k:
            return []
        asked = content_words(query)
        shares, words = self._words.search(asked), set(asked)
        cosines = dict(self._vectors.search(query, _MAX_SIMILAR + k, above=0.0))
        own = self._own_scores(query, shares, cosines)
        few = heapq.nlargest(_MAX_BEST + 4 * k, own, key=own.__getitem__)
        reach = range(-max(_NEAR), max(_NEAR) + 1)
        around = {number + by for number in few for by in reach if number + by in self.notes}
        scores = {
            number: squashed(own.get(number, 0.0) + self._score_beside(number, own))
            for number in (around if where is None and as_of is None else self.notes)
        }
        best: list[Item] = []
        for number in sorted(scores, key=lambda n: (-scores[n], -n)):
            note = self.notes[number]
            if (as_of is not None and note.created > as_of) or (where is not None and not where(note)):
                continue
            if not scores[number]:
                break
            if number in self._idle and self._idle[number] <= words:
                continue
            best.append(self._item(note, scores[number], shares.get(number, 0.0), cosines.get(number, 0.0), as_of))
            if len(best) == 2 * k:
                break
        best.sort(key=lambda item: -item.score)
        return best[:k]

    def _score_beside(self, number: int, own: Mapping[int, float]) -> float:
        """What a note gets of the scores of those that were said beside it, in the same conversation."""
        its = self._conversation_of.get(number)
        if its is None:
            return 0.0
        score = 0.0
        for by, part in _NEAR.items():
            beside = [own[n] for n in (number - by, number + by) if n in own and self._conversation_of.get(n) == its]
            score += part * max(beside, default=0.0)
        before = number - 1
        if before in own and before in self._asking and self._conversation_of.get(before) == its:
            score += _ANSWER * own[before]
        return score

    def _own_scores(self, query: str, shares: Mapping[int, float], cosines: Mapping[int, float]) -> dict[int, float]:
        """The scores of the notes that share a word with the query or are similar, without their neighbours'."""
        words, named = set(words_of(query)), {"": False}
        scores = {number: relevance(share, cosines.get(number, 0.0)) for number, share in shares.items()}
        scores |= {number: relevance(0.0, cosine) for number, cosine in cosines.items() if number not in shares}
        if in_conversation := self._conversations.search(content_words(query)):
            for number in scores.keys() & self._conversation_of.keys():
                scores[number] += _CONVERSATION * in_conversation.get(self._conversation_of[number], 0.0)
        for number in shares:
            speaker = self.notes[number].speaker
            if speaker not in named:
                named[speaker] = not words.isdisjoint(words_of(speaker))
            if named[speaker]:
                scores[number] += _SPEAKER
        for number in scores.keys() & self._asking:
            scores[number] *= _QUESTION
        if asks_when(query):
            for number in scores.keys() & self._timed:
                scores[number] += _TIME
        return scores

    def _item(self, note: Note, score: float, share: float, cosine: float, as_of: int | None) -> Item:
        text = rendered(note, as_of)
        over = note.ended is not None and (as_of is None or note.ended <= as_of)
        last = note.sources[-1]
        sources = tuple(dict.fromkeys(source.episode for source in note.sources))
        why = f"{share:.2f} of the query's words, {cosine:.2f} similar" + (", no longer so" if over else "")
        data: dict[str, Any] = {"id": f"notes:{note.id}", "said": note.text, "speaker": note.speaker, "when": note.when}
        score *= _PAST if over else 1.0
        return Item(text, "notes", score, why, last.episode, last.step, sources, data, data["id"], note.trust)

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        notes = [vars(note) for note in self.notes.values()]
        return ({"embedder": self.embedder.name, "next": self._next, "notes": notes},)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        notes = [note_of(row) for row in state["notes"]]
        following = checked_number("next", state["next"], max((note.id + 1 for note in notes), default=0))
        self._clear()
        self._next, self.notes = following, {note.id: note for note in notes}
        self._same = {key_of(note): note.id for note in notes}
        self._index(self.notes)

    def fork(self) -> Self:
        other = super().fork()
        other.notes = copy.deepcopy(self.notes)
        other._same, other._claims = dict(self._same), dict(self._claims)
        other._words, other._vectors = self._words.fork(), self._vectors.fork()
        other._denying, other._asking, other._timed = set(self._denying), set(self._asking), set(self._timed)
        other._idle = dict(self._idle)
        other._conversation_ids = dict(self._conversation_ids)
        other._conversation_of = dict(self._conversation_of)
        other._conversations = self._conversations.fork()
        return other

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove the notes that name an object, that an episode alone supports, that a user said, one note, or all.

        An earlier version that names the object goes; what a removed note had ended stays ended.
        """
        self.embedder.clear()
        self._claims.clear()
        doomed: set[int] = set()
        moved: list[int] = []
        references = 0
        for note in self.notes.values():
            if selector.everything or selector.is_entry("notes", note.id) or self._was_said_by(selector, note):
                doomed.add(note.id)
                continue
            kept = [source for source in note.sources if source.episode != selector.episode]
            past = [one for one in note.past if not selector.in_text(words_of_version(one))]
            named = any(map(selector.in_text, (about(note), note.action, *label_texts(note.labels))))
            if not kept or named:
                doomed.add(note.id)
                continue
            references += len(note.sources) - len(kept) + len(note.past) - len(past)
            if kept[0] != note.sources[0]:
                self._unindex(note)  # it may be of another conversation now
                moved.append(note.id)
            note.sources, note.past = kept, past
        self._index(moved)
        for number in doomed:
            note = self.notes.pop(number)
            self._unindex(note)
            self._leave_key(note)
        return {"notes": len(doomed), "references": references}

    def _was_said_by(self, selector: Selector, note: Note) -> bool:
        """Whether the user that a selector names said a text; one without a speaker is of the user of the scope."""
        if note.speaker:
            return selector.user is not None and selector.is_name(note.speaker)
        return note.kind == TOLD and note.trust == "user" and selector.is_user_of(self.scope)


def _denials(claims: Iterable[Claim]) -> int:
    return sum(claim.denied for claim in claims)

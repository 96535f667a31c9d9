"""Temporal memory: a buffer of the last N steps, folded into one entry when it is full.

    temporal = TemporalMemory()
    temporal.begin(episode=0, time=0)
    temporal.observe("go to desk 1", "You arrive at desk 1. On the desk 1, you see a pen 1.", episode=0, step=1, time=1)
    temporal.render()            # "step 1: go to desk 1 -> You arrive at desk 1. On the desk 1, you see a pen 1."

A step that finds the buffer full first clears it: all entries, an earlier summary included, become one summary, which
is the first entry; the step is the second. Rules write the summary, or a summarizer (a chat model) if there is one;
what it wrote is part of the event, so replay asks nobody.

An entry of one step is s_i of the paper: the world's sentence as it is, if a rule reads it and it is short; else what a
step summarizer says of it, where there is one, else its beginning.

Source: RoboMemory 3.1 (step summarizer), 3.2.1, N = 3. Deviation: the paper's step summarizer is asked at every step.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from ..errors import InvalidInputError
from .arguments import checked_call, checked_flag, checked_number, checked_text
from .events import TemporalEvent, check
from .graph import Scope
from .readers import DEFAULT, Reader
from .record import Record, RecordMemory, Source
from .stored_modules import Selector
from .trust import QUOTED, RANK, Trust, checked_trust, marked

Summarizer = Callable[[Sequence[str]], str | None]
"""The texts of the entries -> one text; None if it could not be had, then rules write it."""

StepSummarizer = Callable[[str, str], str | None]
"""An action and the world's answer -> what happened, in short; None if it could not be had, then the answer is cut."""

_EVENT = "temporal event"
_MAX_CHARACTERS = 240
_SHORT = 80
"""Characters up to which a text needs no summary, whoever reads it."""

_MAX_NAMED = 12
_NO_EFFECT = "without effect"


@dataclasses.dataclass
class Entry:
    """One step, or a summary of several.

    Attributes:
        text: what happened.
        episode, first_step, last_step: which steps.
        done: what was done, by verb, in order of first time; what summaries are made of.
        written: whether a summarizer wrote the text.
        began, time: of the first and of the last step; 0 in what older versions wrote.
        trust: of who says the text, of a summary that was written the lowest; a summary by rules has only actions, so
            it is the robot's own. Older versions kept none.
    """

    text: str
    episode: int
    first_step: int
    last_step: int
    done: dict[str, list[str]]
    written: bool = False
    began: int = 0
    time: int = 0
    trust: Trust = "sensor"


class TemporalMemory(RecordMemory):
    """The buffer of the running episode."""

    format_name = "embodied_mem.temporal_memory"
    module = "temporal"

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        capacity: int = 3,
        summarizer: Summarizer | None = None,
        step_summarizer: StepSummarizer | None = None,
        reader: Reader = DEFAULT,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make an empty buffer.

        Args:
            scope, record: as for `RecordedModule`.
            capacity: number of entries, a summary included.
            summarizer: None for rules.
            step_summarizer: asked about a longer text that no rule reads, or that would be cut; None for its beginning.
            reader: of the world's texts; it reads on replay, too.
        """
        super().__init__(scope, record)
        self.capacity = checked_number("capacity", capacity, least=2)  # a summary and a step
        self.entries: list[Entry] = []
        self._reader = reader
        self._summarizer = checked_call("summarizer", summarizer)
        self._step_summarizer = checked_call("step_summarizer", step_summarizer)

    # Changing.

    def begin(self, *, episode: int, time: int) -> None:
        """Start an episode with an empty buffer."""
        self._record({"op": "begin", "episode": episode, "time": time})

    def observe(self, action: str, text: str, *, episode: int, step: int, time: int) -> None:
        """Record one step: the action and the world's answer."""
        self._record(self.propose(action, text, episode=episode, step=step, time=time))

    def propose(
        self,
        action: str,
        text: str,
        *,
        episode: int,
        step: int,
        time: int,
        failed: bool | None = None,
        trust: Trust = "sensor",
        sentence: str | None = None,
    ) -> dict[str, Any]:
        """Make the event for `observe`; ask the summarizer here, never on replay.

        Args:
            action, text: what was done, and what the world answered.
            episode, step, time: when.
            failed: whether it had no effect, where the world knows; None: as the text says.
            trust: of who says the text; what is trusted little does not tell whether the action had an effect.
            sentence: the step in one sentence, where a perceiver wrote it; None to ask the step summarizer.
        """
        action, text = checked_text("action", action), checked_text("text", text)
        event = {"op": "observe", "episode": episode, "step": step, "time": time, "action": action, "text": text}
        if failed is not None:
            event["failed"] = checked_flag("failed", failed)
        if trust != "sensor":
            event["trust"] = checked_trust("trust", trust)
        if sentence is not None:
            event["said"] = checked_text("sentence", sentence)
        elif self._step_summarizer is not None and trust not in QUOTED and self._is_raw(text):
            said = self._step_summarizer(action, text)
            event["said"] = None if said is None else checked_text("step_summarizer's answer", said)
        if self._summarizer is not None and len(self.entries) >= self.capacity:
            written = self._summarizer([entry.text for entry in self.entries])
            event["summary"] = None if written is None else checked_text("summarizer's answer", written)
        return event

    def _is_raw(self, text: str) -> bool:
        """Return whether a text needs a summary: unreadable by rules, or long."""
        length = len(" ".join(text.split()))
        return length > _MAX_CHARACTERS or (length > _SHORT and not self._reader.read(text).understood)

    def check(self, event: Mapping[str, Any]) -> None:
        check(TemporalEvent, _EVENT, event)

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        if event["op"] == "begin":
            self.entries = []
            return
        if not (event["action"].strip() or event["text"].strip()):
            return  # nothing was done, and nothing seen
        if len(self.entries) >= self.capacity:
            self.entries = [self._summary(event.get("summary"))]
        self.entries.append(self._step_entry(event))

    def _step_entry(self, event: Mapping[str, Any]) -> Entry:
        action, text, step = event["action"], event["text"], event["step"]
        said = event.get("said")
        seen = " ".join((text if said is None else said).split())
        if not action and said is None:
            seen = f"in the room: {self._reader.room(text)}"
        seen = seen if len(seen) <= _MAX_CHARACTERS else f"{seen[: _MAX_CHARACTERS - 3]}..."
        quoted = event.get("trust") in QUOTED
        seen = marked(seen, event["trust"]) if quoted else seen
        line = f"step {step}: {' -> '.join(filter(None, (action, seen)))}"
        done: dict[str, list[str]] = {}
        if action:
            verb, _, rest = action.partition("go to ") if action.startswith("go to ") else action.partition(" ")
            verb = "went to" if action.startswith("go to ") else verb
            failed = event.get("failed")
            if not quoted and self._reader.read(text).refused if failed is None else failed:
                verb, rest = _NO_EFFECT, action
            done[verb] = [rest] if rest else []
        when, trust = event["time"], event.get("trust", "sensor")
        return Entry(line, event["episode"], step, step, done, began=when, time=when, trust=trust)

    def _summary(self, written: str | None) -> Entry:
        done: dict[str, list[str]] = {}
        for entry in self.entries:
            for verb, names in entry.done.items():
                kept = done.setdefault(verb, [])
                kept.extend(name for name in names if name not in kept)
                del kept[:-_MAX_NAMED]
        first, last = self.entries[0], self.entries[-1]
        summary = Entry("", last.episode, first.first_step, last.last_step, done)
        summary.text = _summary_text(summary) if written is None else written
        summary.written, summary.began, summary.time = written is not None, first.began, last.time
        if written is not None:
            summary.trust = min(["sensor", *(entry.trust for entry in self.entries)], key=RANK.__getitem__)
        return summary

    # Reading.

    def numbers(self) -> list[str]:
        return [_number_of(entry) for entry in self.entries]

    def record(self, number: str) -> Record:
        return next(_record_of(entry) for entry in self.entries if _number_of(entry) == number)

    def render(self) -> str:
        """Return the entries, oldest first, one a line."""
        return "\n".join(entry.text for entry in self.entries)

    def retrieve(self, query: str = "", *, as_of: int | None = None) -> list[Record]:
        """Return all entries as items, newest first, whatever the query.

        Args:
            query: anything.
            as_of: None for now; only what had happened at this time, of what is still in the buffer.
        """
        items = []
        past = [entry for entry in reversed(self.entries) if as_of is None or entry.time <= as_of]
        for age, entry in enumerate(past):
            steps = entry.first_step if entry.first_step == entry.last_step else f"{entry.first_step}-{entry.last_step}"
            why = f"among the last {self.capacity} entries, step {steps}"
            items.append(_record_of(entry, 0.95 * 0.8**age, why))
        return items

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        data: dict[str, Any] = {"entries": [dataclasses.asdict(entry) for entry in self.entries]}
        if self._reader.name != DEFAULT.name:
            data["reader"] = self._reader.name
        return (data,)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        if (reader := state.get("reader", DEFAULT.name)) != self._reader.name:
            raise InvalidInputError(f"state: expected what the reader {self._reader.name!r} read, got {reader!r}'s")
        self.entries = [Entry(**entry) for entry in state["entries"]]
        for entry in self.entries:
            checked_trust("state: trust", entry.trust)

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove an episode's entries, those naming an object, or all.

        A summary that rules wrote loses what it says about the object and stays.
        """
        everything = selector.everything
        kept, removed, shortened = [], 0, 0
        for entry in self.entries:
            names_it = selector.in_text(entry.text) or any(map(selector.in_text, itertools.chain(*entry.done.values())))
            one_piece = entry.written or entry.first_step == entry.last_step
            if everything or entry.episode == selector.episode or (names_it and one_piece):
                removed += 1
                continue
            if names_it:
                done = {
                    verb: [name for name in names if not selector.in_text(name)]
                    for verb, names in entry.done.items()
                    if not names or not all(map(selector.in_text, names))
                }
                entry = dataclasses.replace(entry, done=done)
                entry.text = _summary_text(entry)
                shortened += 1
            kept.append(entry)
        self.entries = kept
        return {"entries": removed, "shortened": shortened}

    def fork(self) -> Self:
        other = super().fork()
        other.entries = list(self.entries)  # no entry is changed once it is in the list
        return other


def _number_of(entry: Entry) -> str:
    """Episode and steps of an entry, as an id ends in."""
    return f"{entry.episode}.{entry.first_step}-{entry.last_step}"


def _record_of(entry: Entry, score: float = 0.0, why: str = "") -> Record:
    return Record(
        f"temporal:{_number_of(entry)}", "temporal", "step", entry.text, recorded=entry.began, valid_from=entry.began,
        sources=(Source(entry.episode, entry.last_step, entry.time),), trust=entry.trust, score=score, why=why,
    )  # fmt: skip


def _summary_text(entry: Entry) -> str:
    clauses = [f"{verb} {', '.join(names)}".rstrip() for verb, names in entry.done.items() if verb != _NO_EFFECT]
    if entry.done.get(_NO_EFFECT):
        clauses.append(f"{_NO_EFFECT}: {', '.join(entry.done[_NO_EFFECT])}")
    return f"steps {entry.first_step}-{entry.last_step}: {'; '.join(clauses) or 'nothing'}"

"""All memories of one user, robot and environment behind one object: updated per action, queried before each.

    memory = LifelongMemory(Scope(user="ann", environment="home"))
    memory.begin_task("task 7", "put a clean mug in the cabinet.", observation)
    memory.observe("go to desk 1", answer)                       # after each action
    memory.observe("look", facts=[("mug", "on", "table", 0.9)], pose=(1.2, 0.4, 0.0))
    receipt = memory.tell("I am vegetarian.")                    # what became of it: notes, facts, what ended
    recollection = memory.retrieve(budget_tokens=200)            # for the goal, or any other query
    recollection.render(); memory.explain()
    memory.end_task(won=True)
    memory.forget(object="mug 1")
    what_if = memory.fork()                                      # independent, at hardly any cost

    with LifelongMemory.open("memory/ann", Scope(user="ann")) as memory:     # the same, kept in a folder
        ...

Spatial and temporal memory change with every action, episodic and semantic memory with every task, the user's profile
with every instruction. Notes keep every text that is told, and every observation that no rule reads. All of it is one
event per call, and `apply` of the same events gives the same state.

Any thread may call: who changes something waits for the others that do, and who reads waits for as long as a change is
made, not for a chat model. Do not call `store.forget` while others write; `forget` and `delete` wait their turn.

With rules a step takes less than a millisecond, mostly, and threads would only cost; with a chat model, updates and
retrieval of the modules run in parallel, since each waits for the model.

Source: RoboMemory 3.2; update frequencies as there.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import gc
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from ..errors import InvalidInputError
from ..language.chat import ChatModel
from ..types import Episode, Step
from .answers import Question, answers, best_of, lowered, with_probabilities
from .arguments import (
    WHEN,
    checked_call,
    checked_episode,
    checked_flag,
    checked_mapping,
    checked_number,
    checked_real,
    checked_text,
    checked_texts,
    shown,
)
from .chat_writer import Chat, ChatWriter
from .conflicts import ChatResolver, ConflictReview
from .embedders import Embedder
from .episodic import EpisodicMemory
from .event_store import EventServer
from .events import LifelongEvent, Value, check
from .export import exported, imported
from .graph import MAX_HOPS, Applied, Ended, NewFact, Scope, Snapshot, Subgraph, checked_scope
from .images import pictures_of
from .locks import Locks
from .notes import SEEN, NoteMemory, new_labels, no_things
from .observation import (
    Observation,
    Outcome,
    PerceiverLike,
    Perception,
    Status,
    checked_facts,
    checked_observation,
    images_of,
    refusal,
)
from .parallel_calls import ParallelCalls
from .pool import Pool, retrieve_pool
from .pool import Reading as PoolReading
from .profile import UserProfile
from .readers import EVERYDAY, Reader
from .readers.reading import Reading, ReadOnce, unread_lines
from .recollection import (
    EARLIER,
    ForgetReceipt,
    Recent,
    Recollection,
    Reference,
    References,
    WriteReceipt,
    count_tokens,
    pack,
)
from .record import FIELDS, Record, RecordMemory, Source, module_and_number
from .relations import HOUSEHOLD_RELATIONS, Relations
from .search import QueryEmbedder
from .semantic import SemanticMemory
from .spatial import LEFT, Sighting, SpatialMemory, checked_place
from .store import MemoryStore
from .stored_modules import RecordedModule, Selector
from .supersession import chances, should_be_first, statement
from .temporal import TemporalMemory
from .trust import QUOTED, RANK, Trust, checked_trust, least_trust, unmarked
from .views import ViewMemory, checked_clock, checked_pose, clock_text
from .words import asks_when, normal, spelling

_DID = {"add": "stored", "repeat": "merged", "update": "merged", "end": "ended"}
MODULES = ("spatial", "temporal", "episodic", "semantic", "profile", "notes", "views")
PER_STEP = ("spatial", "temporal")
"""Modules that change with every step."""
LATER = ("notes", "views")
"""Modules that older versions had not."""
_EVENT = "lifelong event"
_MAX_GAP = 1 << 16
"""Tasks in a row whose beginning was set aside, at most."""
_MAX_NODES = 64  # around a conflict
_MAX_CACHED = 256
_OF_HABIT = 0.9
"""Highest score of a habit or a step, as a share of the score of the same thing's place on the map."""
_MAX_KNOWN = 40
"""Facts that a perceiver is told."""
SERVER_ADDRESSES = ("postgresql://", "postgres://")
STORED_AS = "lifelong"
"""Name of the memory in its store."""


class LifelongMemory:
    """The memories of one scope. No method takes a scope: what is in another one cannot be named.

    Attributes:
        spatial, temporal, episodic, semantic, profile, notes, views: the modules; None for one that is switched off.
        writer, review: count calls and failures of the chat model, and what it corrected; None without one.
        reader, embedder: count what failed of theirs: `failed`, `last_error`.
        episode, step, time: of the running task; the time goes up with every step of every task.
        goal, place: of the running task.
        task_ids: ids of all tasks, which sources name by their number; empty for one that was forgotten.
        store: where it is kept; None without a folder.
        perception: what the perceiver read last; None if it was not asked.
        module: this memory for a store of another kind, see `record`.
    """

    spatial: SpatialMemory | None
    temporal: TemporalMemory | None
    episodic: EpisodicMemory | None
    semantic: SemanticMemory | None
    profile: UserProfile | None
    notes: NoteMemory | None
    views: ViewMemory | None

    def __init__(
        self,
        scope: Scope | None = None,
        *,
        modules: Iterable[str] = MODULES,
        chat: Chat | ChatModel | None = None,
        embedder: Embedder | None = None,
        capacity: int = 3,
        hops: int = 2,
        counter: Callable[[str], int] = count_tokens,
        reader: Reader = EVERYDAY,
        relations: Relations = HOUSEHOLD_RELATIONS,
        parallel: bool | None = None,
        perceiver: PerceiverLike | None = None,
        reviews: Literal["doubtful", "all"] = "doubtful",
        review_timeout_s: float = 10.0,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make empty memories.

        Args:
            scope: whose they are.
            modules: those that take part, of `MODULES`.
            chat: a chat model that extracts, summarises and writes lessons where rules end; None for rules alone.
            embedder: None for word vectors, or the lexical one where their table is not installed.
            capacity: entries of the temporal memory.
            hops: how far spatial retrieval goes.
            counter: tokens of a text, for budgets.
            reader: of the world's texts; the default reads household sentences and plain English.
            relations: those that are declared, see `relations`.
            parallel: whether modules run in threads; None: only with a chat model.
            perceiver: reads the images and the text of each observation, see `agents.robot.perceiver`; None for none.
            reviews: conflicts of facts that the chat model decides: those whose new fact no rule read or is less sure
                than the old one, or all.
            review_timeout_s: how long a verdict is waited for; then rules decide.
            record: gets every event, must call `module.apply` with it, and must see to forgetting; None for that call
                alone. `open` keeps the events in a folder.

        Raises:
            InvalidInputError: an argument of another type or out of range.
        """
        self.scope = checked_scope(scope)
        self.module = StoredMemory(self)
        self._record = self.module.apply if record is None else checked_call("record", record)
        self._use = tuple(checked_texts("modules", modules))
        if unknown := set(self._use) - set(MODULES):
            raise InvalidInputError(f"modules: expected some of {', '.join(MODULES)}, got {sorted(unknown)}")
        self.writer = None if chat is None else ChatWriter(chat)
        self.embedder = QueryEmbedder.of(embedder)
        self._capacity = checked_number("capacity", capacity, least=2)
        self._hops = checked_number("hops", hops, least=0, most=MAX_HOPS)
        if not callable(counter):
            raise InvalidInputError(f"counter: expected a function from a text to its tokens, got {shown(counter)}")
        self._counter, self.reader, self._relations = counter, ReadOnce(reader), relations
        self._parallel = chat is not None if parallel is None else checked_flag("parallel", parallel)
        if perceiver is not None and not callable(getattr(perceiver, "perceive", None)):
            raise InvalidInputError(f"perceiver: expected one with perceive(...), or None, got {shown(perceiver)}")
        self.perceiver = perceiver
        self._calls = ParallelCalls(len(MODULES))
        self.store: MemoryStore | None = None
        self._locks = Locks()
        if reviews not in ("doubtful", "all"):
            raise InvalidInputError(f"reviews: expected doubtful or all, got {shown(reviews)}")
        self._reviews, self._review_timeout_s = reviews, review_timeout_s
        self._set_modules(self._make())
        self.review = self._make_review()
        self._reset()

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str] | EventServer,
        scope: Scope | None = None,
        *,
        fsync: Literal["always", "interval", "never"] = "always",
        read_only: bool = False,
        repair: bool = False,
        to: int | None = None,
        **options: Any,
    ) -> LifelongMemory:
        """Open or make the memory of a place, for a `with` block.

        Each change is on the disk when the call that made it returns. `store` writes snapshots and says what opening
        found.

        Args:
            directory: the folder; a `postgres.Server` or its address, postgresql://...
            scope: whose memory it is.
            fsync, read_only, repair, to: as `MemoryStore`.
            options: as for `LifelongMemory`; `modules` and `capacity` must be those that it was made with.

        Raises:
            StorageError: another writer has the folder, or it is damaged.
            InvalidInputError: another scope or other modules, an option that is unknown or out of range.
        """
        known = set(inspect.signature(cls).parameters) - {"scope", "record"}
        if unknown := sorted(set(options) - known):
            raise InvalidInputError(f"options: expected some of {', '.join(sorted(known))}, got {', '.join(unknown)}")
        memory = cls(scope, **options)
        modules = {STORED_AS: memory.module}
        place = server_of(directory)
        is_folder = not isinstance(place, EventServer)
        with memory.embedder.vector_file(place, read_only=read_only) if is_folder else contextlib.nullcontext():
            memory.store = MemoryStore(
                place, modules, scope=memory.scope, fsync=fsync, read_only=read_only, repair=repair, to=to
            )
        memory._record = functools.partial(memory.store.record, STORED_AS)
        return memory

    def _reset(self) -> None:
        self.goal, self.place = "", ""
        self.episode, self.step, self.time = -1, 0, 0
        self.running = False
        self.task_ids: list[str] = []
        self._turns: list[tuple[str, str]] = []
        self._outcomes: dict[int, bool] = {}  # of the running task: step from 0 -> whether it failed, as the world knew
        self._references = References()
        self.perception: Perception | None = None
        self._last_facts: Sequence[Sequence[Any]] = ()  # facts of it, around which the next one is asked
        self._last_events: frozenset[str] = frozenset()  # modules that the last event changed

    def begin_task(
        self,
        task_id: str,
        goal: str,
        observation: str,
        *,
        place: str | None = None,
        facts: Iterable[Sequence[Any]] = (),
        is_home: bool = False,
    ) -> int:
        """Start a task and return its number.

        Sources name the task by it.

        Args:
            task_id: as the world calls it.
            goal: the instruction; what it tells about the user is noted.
            observation: what the agent sees at first.
            place: the room where it is played; None to name it by what it looks like, which makes it a home of its own.
                A thing is in one room of a home: what is seen in one is not in another any more.
            facts: that a map or a detector gives with it, as for `observe`.
            is_home: whether the place is a home of its own, with other things than other places have; else it is a room
                of the home of this scope.

        Raises:
            InvalidInputError: another task is running, or an argument is no text; nothing has changed.
        """
        task_id, goal = checked_text("task_id", task_id), checked_text("goal", goal)
        observation = checked_text("observation", observation)
        is_room = not checked_flag("is_home", is_home) and place is not None
        place = self.reader.place(observation) if place is None else checked_place(place)
        rows = checked_facts(facts)
        with self._locks.writing:
            if self.running:
                raise InvalidInputError(f"begin_task: task {self.task_ids[-1]!r} has not ended; call end_task first")
            if is_room and self.spatial is not None:
                place = self.spatial.known_place(place)
            number, time = self.episode + 1, self.time + 1
            where = {"episode": number, "step": 0, "time": time}
            event = {"op": "begin", **where, "task_id": task_id, "goal": goal, "observation": observation}
            event |= {"place": place, "room": True} if is_room and place else {"place": place}
            given: dict[str, Any] = {"spatial": {"text": observation}, "profile": {"text": goal}}
            if rows:
                given["spatial"]["given"] = rows
            seen, reading = Observation(observation), self.reader.read(observation)
            unread = self._unread(observation, reading)
            unread += [said for said, _ in seen.denials(self.reader, reading)]
            if unread:
                given["notes"] = {"text": unread, "kind": SEEN}
            self._record({**event, "events": self._proposed(where, **given)})
        return number

    def observe(
        self,
        action: str,
        text: str = "",
        *,
        facts: Iterable[Sequence[Any]] = (),
        images: Iterable[Any] = (),
        pose: Sequence[float] | None = None,
        time: float | None = None,
        outcome: Outcome | Status | None = None,
        trust: Trust = "sensor",
        vectors: Mapping[str, Any] | None = None,
    ) -> WriteReceipt:
        """Take note of an action and what came of it.

        The receipt says what became of the note.

        Args:
            action: what was done.
            text: what the world answered. Lines that no rule reads go to the chat model, if there is one, and to notes.
                A line or fact that only denies, and ends nothing that was known, is a note, too; so is a fact that is
                less sure than what it contradicts.
            facts: (subject, relation, object, confidence) as a detector gives them; the confidence, 0 to 1, may be
                missing. "not on" as a relation says that it is not so. The robot is called "agent".
            images: of what was seen: an `Image`, encoded bytes, an array, or the path of a file. Kept are hash, path,
                size and labels, and bytes only of an `Image` with `keep`.
            pose: from where it was seen: x, y, or x, y, z in metres, or these and a quaternion x, y, z, w.
            time: when, in seconds on the caller's clock.
            outcome: where the world knows it; else the text says whether the action failed.
            trust: whose word it is. What another agent or a document says is kept as quoted notes, and its facts where
                nothing more trusted says otherwise: no rule and no model reads the text for facts or lessons.
            vectors: name of a thing -> float32[d], what it looks like, of any embedder of images; by these, names and
                places things are known again.

        Raises:
            InvalidInputError: no task is running, or an argument is of another type; nothing has changed.
        """
        action, images = checked_text("action", action), images if self.perceiver is None else [*images]
        seen = checked_observation(text, facts, images, pose, time, outcome, trust=trust)
        with self._locks.writing:
            self._check_running("observe")
            where = {"episode": self.episode, "step": self.step + 1, "time": self.time + 1}
            reading = self.reader.read("" if seen.quoted else seen.said)
            if self.perceiver is not None and not seen.quoted:
                seen = self._look(self.perceiver, action, seen, reading, [*images, *images_of(outcome)])
            unread = seen.text.splitlines() if seen.quoted else self._unread(seen.said, reading) + seen.lines
            if not seen.quoted and self.notes is not None and self.spatial is not None:
                ends = self.spatial.denied
                denials = seen.denials(self.reader, reading)
                unread += [said for said, rows in denials if not any(ends(*row[:3]) for row in rows)]
            event, given = seen.step(action, reading, unread)
            if vectors:
                given["spatial"]["vectors"] = vectors
            events, status = self._proposed(where, **given), seen.status(reading)
            refused = [refusal(*row) for row in events.get("spatial", {}).get("refused", ())]
            if refused and self.notes is not None:
                given["notes"] = seen.note(action, [*unread, *(text for text, _ in refused)])
                events |= self._proposed(where, notes=given["notes"])
            if self.semantic is not None and not seen.quoted:
                turns, at = [*self._turns[1:], (action, seen.text)], {"number": self.episode, "time": where["time"]}
                learned = self.semantic.propose_action(turns, status == "failure", outcomes=self._outcomes, **at)
                events |= {"semantic": learned} if learned["changes"] else {}
            self._record({"op": "step", **where, **event, "events": events})
            receipt = self._receipt(given, status, [f"{text} {reason}" for text, reason in refused])
            return receipt.joined(self._receipt(("spatial",))) if self._reviewed() else receipt

    def _look(
        self, perceiver: PerceiverLike, action: str, seen: Observation, reading: Reading, images: Sequence[Any]
    ) -> Observation:
        """Ask the perceiver, with what is known around the agent."""
        spatial, near = self.spatial, list[tuple[str, str, str]]()
        if spatial is not None:
            names = " ".join(name for fact in self._last_facts for name in (fact[0], fact[2]))
            near_by = spatial.retrieve(f"{action} {seen.said} {names}")
            near = [one.fact for one in near_by if one.fact is not None and one.ended is None][:_MAX_KNOWN]
        self.perception = view = perceiver.perceive(pictures_of(images), seen.said, action, near)
        self._last_facts = view.facts or self._last_facts
        over = [fact for fact in view.ended if spatial is not None and spatial.denied(*fact)]
        return seen.with_perception(view, over, set(reading.facts))

    def _unread(self, text: str, reading: Reading) -> list[str]:
        return unread_lines(self.reader, text, reading) if "notes" in self._modules else []

    def tell(
        self,
        text: str,
        *,
        speaker: str = "",
        when: str = "",
        labels: Mapping[str, Value] | None = None,
        trust: Trust = "user",
    ) -> WriteReceipt:
        """Take note of what somebody says, within or between tasks.

        The receipt says what became of the note.

        The text is a note, word by word. Rules, or the chat model, add to the profile what they read in what the user
        of the scope says, and what it denies has an end, if that was not said by somebody more trusted. What another
        speaker says is a note alone. A text that was recalled from an entry before adds a reference to it. Before the
        first task the source is -1.

        Args:
            text: what is said.
            speaker: who says it; empty, or the user's name, for the user of the scope.
            when: the date, in whatever words; time within the memory goes on by itself.
            labels: the caller's own, to filter by: names to texts, numbers, flags or None. A name is no field of an
                entry, such as "trust" or "speaker".
            trust: whose word it is. What another agent or a document says is a quotation in `render()`. A text that is
                such a quotation stays one.

        Raises:
            InvalidInputError: an argument of another type; nothing has changed.
        """
        text, trust = checked_text("text", text), checked_trust("trust", trust)
        speaker, when = checked_text("speaker", speaker), checked_text("when", when)
        labels = new_labels(labels)
        with self._locks.writing:
            where = {"episode": self.episode, "step": self.step, "time": self.time + 1}
            again = None if speaker or when or labels else self._told_again(text, where, trust)
            if again is not None:
                return again
            quoted, level = unmarked(text)
            if level is not None:
                text, trust = quoted or text, min(trust, level, key=RANK.__getitem__)
            said: dict[str, Any] = {"text": text, "speaker": speaker, "when": when, "labels": labels, "trust": trust}
            things = no_things if self.spatial is None else self.spatial.things_among
            given: dict[str, dict[str, Any]] = {"notes": said | {"things": things}}
            if trust == "user" and self._is_user(speaker):
                given["profile"] = {"text": text}
                if self.notes is not None and text.strip():
                    given["profile"]["note"] = self.notes.number_of(**said)
            events = self._proposed(where, **given)
            if self.spatial is not None:
                change = self.spatial.propose_telling(text, speaker=speaker, when=when, trust=trust, **where)
                if change is not None:
                    if self.notes is not None and text.strip():
                        change["note"] = self.notes.number_of(**said)
                    events["spatial"], given["spatial"] = change, {}
            self._record({"op": "tell", **where, "events": events})
            return self._receipt(given)

    def _told_again(self, text: str, where: dict[str, int], trust: Trust) -> WriteReceipt | None:
        """Reference the entry a text was recalled from; None without one."""
        recalled = self._recent.item_of(text)
        now = None if recalled is None else self.get(recalled.id)
        if recalled is None or now is None:
            return None
        words = {"notes": now.text, "profile": now.data.get("description")}.get(now.module)
        if words is not None and now.trust == trust and words.rstrip(".") == text.rstrip("."):
            return None  # it is said once more, and is the newest now
        if now.module in ("notes", "profile"):
            was = recalled.data.get("said", recalled.text)
            if was != now.text:
                return None  # it says something else by now
        entry = recalled.id
        name, number = module_and_number(entry, self._modules)
        if name == "notes" and not recalled.text.endswith(EARLIER):
            changes = [{"do": "repeat", "id": int(number)}]
            self._record({"op": "tell", **where, "events": {name: {"op": "change", **where, "changes": changes}}})
        else:
            self._record({"op": "tell", **where, "again": entry, "trust": trust, "events": {}})
        return WriteReceipt(merged=(now,))

    def _receipt(self, given: Iterable[str], outcome: Status = "unknown", refused: Iterable[str] = ()) -> WriteReceipt:
        """Return what the last event did in these modules."""
        rows: dict[str, dict[str, Record]] = {"stored": {}, "merged": {}, "ended": {}}
        with self._locks.reading:
            for name in given:
                for do, one in self._modules[name].done() if name in self._last_events else ():
                    rows[_DID[do]][one.id] = one
        new, again, past = (tuple(its.values()) for its in rows.values())
        return WriteReceipt(new, again, past, outcome, tuple(refused))

    def end_task(self, won: bool) -> None:
        """Finish the task; episodic and semantic memory learn from it.

        Python's garbage collector, if it is on, runs on young objects here, so that it seldom does within a step.
        """
        won = checked_flag("won", won)
        with self._locks.writing:
            self._check_running("end_task")
            played: dict[str, Any] = {"episode": self._running_episode(won)}
            if self._outcomes:
                played["outcomes"] = dict(self._outcomes)
            where = {"number": self.episode, "time": self.time, "place": self.place}
            events = self._proposed(where, episodic=played, semantic=played)
            self._record({"op": "end", "time": self.time, "won": won, "events": events})
        if gc.isenabled():
            gc.collect(int(gc.get_count()[1] > gc.get_threshold()[1]))

    def _running_episode(self, won: bool = False) -> Episode:
        """Return the running task as an episode. Raises before the first."""
        if not self.task_ids:
            raise InvalidInputError("running_episode: expected a task; call begin_task first")
        won = checked_flag("won", won)
        texts = [text for _, text in self._turns]
        steps = tuple(Step(text, action) for text, (action, _) in zip(texts, self._turns[1:]))
        return Episode(self.task_ids[-1], self.goal, steps, won, texts[-1] if texts else "")

    def _apply(self, event: Mapping[str, Any]) -> None:
        op, events = event["op"], event["events"]
        if op == "import":
            self._check_empty()
            self.restore(imported(event["text"]))
            return
        if op in ("begin", "step") and event["time"] < self.time:
            raise InvalidInputError(f"{_EVENT}: expected a time from {self.time} on, got {event['time']}")
        count = len(self.task_ids)
        if op == "begin" and not count <= event["episode"] <= count + _MAX_GAP:
            raise InvalidInputError(f"{_EVENT}: expected {count} as its episode, got {event['episode']}")
        if op in ("begin", "step"):
            self.episode, self.step, self.time = event["episode"], event["step"], event["time"]
        if op == "begin":
            self.goal, self.place, self.running = event["goal"], event["place"], True
            self.task_ids += [""] * (event["episode"] - count)  # whose beginning was set aside
            self.task_ids.append(event["task_id"])
            self._turns, self._outcomes = [("", event["observation"])], {}
            start = {"op": "begin", "episode": self.episode, "time": self.time}
            if self.spatial is not None:
                room = {"room": True} if event.get("room") else {}
                self.spatial.apply_checked({**start, "place": self.place, **room})
            if self.temporal is not None:
                self.temporal.apply_checked(start)
        elif op == "step":
            if "failed" in event:
                self._outcomes[len(self._turns) - 1] = event["failed"]
            said = event.get("trust") in QUOTED  # by others: no answer of the world, nothing to learn from
            self._turns.append((event["action"], "" if said else event["observation"]))
        elif op in ("tell", "edit"):
            if "again" in event:
                reference = Reference(event["episode"], event["step"], event["time"], event["trust"])
                self._references.add(event["again"], reference)
            self.time = max(self.time, event.get("time", self.time))
        for name, change in events.items():
            self._own(name).apply_checked(change)
        if op == "end":
            if self.episodic is not None and self._turns and "episodic" in events:
                self._own("episodic").live(self.episode, self._running_episode(bool(event.get("won"))))
            self.running, self._turns, self._outcomes = False, [], {}
        self._last_events = frozenset(events)
        if op != "step" or self._is_news(events):
            self._changes += 1
        if op != "step" or not events.keys().isdisjoint(("notes", "semantic")):
            self._cache.clear()

    def _is_news(self, events: Mapping[str, Any]) -> bool:
        """Decide whether a step's events changed more than times."""
        if not events.keys() <= {"temporal", "spatial", "views"}:
            return True
        return "spatial" in events and any(do != "repeat" for do, _ in getattr(self.spatial, "changed", ()))

    @property
    def turns(self) -> list[tuple[str, str]]:
        """Actions of the running task with their answers, after ("", first observation)."""
        return list(self._turns)

    def _check_running(self, call: str) -> None:
        if not self.running:
            raise InvalidInputError(f"{call}: expected a running task; call begin_task first")

    def _proposed(self, where: Mapping[str, Any], **given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Ask participating modules for proposals, in parallel where it pays."""
        names = [name for name in given if name in self._modules]
        calls = [functools.partial(self._modules[name].propose, **given[name], **where) for name in names]
        return {name: event for name, event in zip(names, self._run(calls)) if event.get("changes", True)}

    def close(self) -> None:
        """Let go of threads and of the folder, if there are any."""
        self._calls.close()
        if self.store is not None:
            self.store.close()

    def __enter__(self) -> LifelongMemory:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # What it is made of.

    def _is_user(self, speaker: str) -> bool:
        """Decide whether a speaker is the scope's user, as unnamed ones are."""
        return not speaker or normal(speaker) == normal(self.scope.user)

    def _checked_filter(self, where: Any) -> dict[str, Any]:
        """Return a filter's values; check its fields and labels.

        An empty memory has no labels yet, so it takes any key.
        """
        wanted: dict[str, Any] = dict(checked_mapping("where", {} if where is None else where))
        if "module" in wanted and wanted["module"] not in (*self._modules,):
            known = ", ".join(self._modules)
            raise InvalidInputError(f"where: module: expected one of {known}, got {shown(wanted['module'])}")
        if "trust" in wanted:
            checked_trust("where: trust", wanted["trust"])
        if self.time and (unknown := wanted.keys() - FIELDS):
            with self._locks.reading:
                labels = self.notes.label_names() if self.notes is not None else set()
            if unknown := unknown - labels:
                known = f"a field ({', '.join(FIELDS)}) or a label ({', '.join(sorted(labels)) or 'no note has one'})"
                raise InvalidInputError(f"where: expected {known}, got {shown(min(unknown, key=str))}")
        return wanted

    def _own(self, name: str) -> Any:
        """Return the module to change: not one that a fork has, too."""
        if name in self._shared:
            self._put(name, self._modules[name].fork())
            self._shared.discard(name)
        return self._modules[name]

    def _put(self, name: str, module: Any) -> None:
        self._modules[name] = module
        setattr(self, name, module)

    def _run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        if not self._parallel or len(calls) < 2:
            return [call() for call in calls]
        return self._calls.run(calls)

    def _make(self) -> dict[str, Any]:
        scope, embedder, writer, reader = self.scope, self.embedder, self.writer, self.reader
        relations = self._relations
        facts, summary, said = (None,) * 3 if writer is None else (writer.facts, writer.summary, writer.step_summary)
        makers: dict[str, Callable[[], Any]] = {
            "spatial": lambda: SpatialMemory(scope, extractor=facts, reader=reader, relations=relations),
            "temporal": lambda: TemporalMemory(
                scope, capacity=self._capacity, summarizer=summary, step_summarizer=said, reader=reader
            ),
            "episodic": lambda: EpisodicMemory(scope, embedder=embedder, writer=writer, reader=reader),
            "semantic": lambda: SemanticMemory(scope, embedder=embedder, writer=writer, reader=reader),
            "profile": lambda: UserProfile(scope, embedder=embedder, writer=writer),
            "notes": lambda: NoteMemory(scope, embedder=embedder),
            "views": lambda: ViewMemory(scope),
        }
        return {name: makers[name]() for name in MODULES if name in self._use}

    def _set_modules(self, modules: dict[str, RecordedModule]) -> None:
        self._modules: dict[str, Any] = modules
        for name in MODULES:
            setattr(self, name, modules.get(name))
        self._shared: set[str] = set()  # modules that a fork has, too: whoever changes one takes a copy first
        self._cache: dict[tuple[Any, ...], list[Record]] = {}
        self._pools: dict[tuple[Any, ...], tuple[int, Pool]] = {}
        self._changes = 0
        self._last: Recollection | None = None
        self._recent = Recent()

    def state(self) -> bytes:
        """Give all that is remembered as bytes."""
        return self.module.state()

    def restore(self, data: bytes) -> None:
        """Restore `state`'s bytes; others raise InvalidInputError and change nothing."""
        self.module.restore(data)

    def _state(self) -> tuple[Any, ...]:
        """Return the task, then each module as a part."""
        own = {
            "modules": list(self._modules),
            "goal": self.goal,
            "place": self.place,
            "episode": self.episode,
            "step": self.step,
            "time": self.time,
            "running": self.running,
            "task_ids": self.task_ids,
            "turns": [list(turn) for turn in self._turns],
        }
        with self._locks.reading:
            if self._outcomes:
                own["outcomes"] = [list(pair) for pair in sorted(self._outcomes.items())]
            if references := self._references.rows():
                own["references"] = references
            return own, *(module.state() for module in self._modules.values())

    def _restore(self, own: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        expected = list(self._modules)
        if own["modules"] != [name for name in expected if name in own["modules"] or name not in LATER]:
            raise InvalidInputError(f"state: expected modules {expected}, got {own['modules']}")
        modules = self._make()
        for name, part in zip(own["modules"], parts, strict=True):
            modules[name].restore(part)
        outcomes = {checked_number("step", step): checked_flag("failed", f) for step, f in own.get("outcomes", ())}
        goal, place, running = _text(own["goal"]), _text(own["place"]), bool(own["running"])
        episode, step, time = (checked_number(name, own[name]) for name in WHEN)
        task_ids = [_text(task_id) for task_id in own["task_ids"]]
        turns = [(_text(action), _text(text)) for action, text in own["turns"]]
        references = References.of_rows(own.get("references", {}))
        self._set_modules(modules)
        self.goal, self.place, self.running = goal, place, running
        self.episode, self.step, self.time = episode, step, time
        self.task_ids, self._turns, self._outcomes, self._references = task_ids, turns, outcomes, references

    def fork(self) -> Self:
        """Return an independent copy that lives in this process only.

        It costs no more for more facts: the graph shares what neither side changes, and a module that changes with
        tasks is copied when one side changes it first.
        """
        with self._locks.reading:
            return self._forked()

    def _forked(self) -> Self:
        other = copy.copy(self)
        other.module, other._locks = StoredMemory(other), Locks()
        other._record = other.module.apply
        other.store, other._calls = None, ParallelCalls(len(MODULES))
        self._shared = {name for name in self._modules if name not in PER_STEP}
        other._shared = set(self._shared)
        other._modules = {}
        for name, module in self._modules.items():
            other._put(name, module if name in self._shared else module.fork())
        other._pools = {}
        other._cache, other._recent, other._references = dict(self._cache), Recent(), self._references.fork()
        other.review = other._make_review()
        other.task_ids, other._turns = list(self.task_ids), list(self._turns)
        other._outcomes = dict(self._outcomes)
        return other

    # Reviewing.

    def _make_review(self) -> ConflictReview | None:
        """Return a review of this memory's own graph; None without a model."""
        if self.writer is None or "spatial" not in self._modules:
            return None
        return ConflictReview(
            _RecordedGraph(self),
            ChatResolver(self.writer),
            timeout_s=self._review_timeout_s,
            otherwise=lambda ended: "new" if self.spatial and self.spatial.outweighed(ended) else "old",
        )

    def _reviewed(self) -> bool:
        """Return whether others than rules decided the last event's contradiction."""
        if self.review is None or self.spatial is None:
            return False
        conflicts = self.spatial.conflicts
        if self._reviews == "doubtful":
            conflicts = [ended for ended in self.spatial.doubtful if _is_doubtful(ended, self.spatial)]
        if not conflicts:
            return False
        return self.review.review(conflicts, _surroundings(conflicts, self.spatial)) is not None

    def _correct(self, invalidate: Sequence[Any], add: Sequence[NewFact]) -> Applied:
        """Record corrections of the graph as an event."""
        spatial = self.spatial
        assert spatial is not None
        where = {"episode": self.episode, "step": self.step, "time": self.time}
        rows = {"invalidate": [list(row) for row in invalidate], "add": [list(fact) for fact in add]}
        self._record({"op": "edit", "time": self.time, "events": {"spatial": {"op": "correct", **where, **rows}}})
        return Applied([], [number for did, number in spatial.changed if did == "add"], [])

    # Answering.

    def retrieve(
        self,
        query: str | None = None,
        budget_tokens: int | None = None,
        *,
        k: int | None = None,
        as_of: int | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Recollection:
        """Return what all modules remember that fits a query, within a budget.

        For the goal of the running task, its last steps and what is around the agent fit by themselves. For any other
        query an item has to fit the query, on one scale for all modules (`relevance`).

        Args:
            query: None for the goal of the running task.
            budget_tokens: limit of the texts' tokens; None for none.
            k: at most so many items; None for as many as the modules find.
            as_of: None for now; what was so at this time, as far as it was known then or later.
            where: values that an item must have: labels, or "module", "speaker", "when", "kind", "id", "trust" and
                what else is in the `data` of an entry. A key that is no field, and no label of a note, is an error.
        """
        query = self.goal if query is None else checked_text("query", query)
        if budget_tokens is not None:
            budget_tokens = checked_number("budget_tokens", budget_tokens, least=0)
        asked = Question(
            query if query == self.goal or self.notes is None or as_of is not None else self.notes.with_names(query),
            k=None if k is None else checked_number("k", k, least=0),
            as_of=None if as_of is None else checked_number("as_of", as_of),
            where=self._checked_filter(where),
            of_task=query == self.goal,
            place=self.place,
            hops=self._hops,
        )
        with self._locks.reading:
            weight = self.notes.word_weight if self.notes is not None else None
            found = self._run([functools.partial(self._found_by, name, asked, weight) for name in self._modules])
            items = [lowered(item) if item.trust in QUOTED else item for some in found for item in some]
            if not asked.of_task:
                items = self._newer_first(items, asked)
                if self.spatial is not None and asked.as_of is None and not asked.where:
                    items = self._with_last_sightings(items, query)
                if self.notes is not None:
                    items = with_probabilities(items, asked.query, self.notes)
            if k is not None:
                items = best_of(items, k)
            if not asked.of_task:
                items = list(map(self._with_room, items))
            self._last = pack(items, budget_tokens, query=query, as_of=asked.as_of, counter=self._counter)
            self._recent.add(self._last)
            return self._last

    def _with_last_sightings(self, items: list[Record], query: str) -> list[Record]:
        """Put places on the map before habits, and sightings first for "when"."""
        assert self.spatial is not None
        best: dict[str, float] = {}
        for item in items:
            if item.module == "spatial" and item.fact and item.fact[1] != "is":
                name = spelling(item.fact[0]).replace("-", " ")
                best[name] = max(best.get(name, 0.0), item.score)
        most = max(best.values(), default=0.0)
        limits = [
            best.get(spelling(item.data["terms"][0]).replace("-", " ")) if item.kind == "found"
            else most if item.kind == "step" and best else None
            for item in items
        ]  # fmt: skip
        items = [
            item if limit is None else item._replace(score=min(item.score, _OF_HABIT * limit))
            for item, limit in zip(items, limits)
        ]
        if not asks_when(query):
            return items
        best_score = max((item.score for item in items), default=1.0)
        return [*(item._replace(score=best_score) for item in self.spatial.last_sightings(query)), *items]

    def _with_room(self, item: Record) -> Record:
        """Add room, clock and speaker to a place on the map."""
        if item.module != "spatial" or self.spatial is None or item.fact is None or not item.sources:
            return item
        _, relation, receptacle = item.fact
        relation = relation.removeprefix("was ")
        if relation not in self._relations.placing:
            return item
        text = item.text.removesuffix(LEFT)
        if self.spatial.is_room(item.place) and item.place != receptacle:
            place = f" {relation} {receptacle}"
            text = text.replace(place, f"{place} in {item.place}", 1)
        speaker, date = self.spatial.teller(int(item.number))
        view = None if speaker or self.views is None else self.views.at(item.sources[-1].time or 0)
        if speaker:
            text = text.replace(" was last seen ", " was last ", 1) + f", told by {speaker}" + (date and f", {date}")
        elif view is not None and "clock" in view.data:
            text += f", seen {clock_text(view.data['clock'])}"
        return item._replace(text=text + item.text[len(item.text.removesuffix(LEFT)) :])

    def pool(
        self,
        /,
        goal: str | None = None,
        observation: str = "",
        k: int = 8,
        budget_tokens: int | None = None,
        *,
        about: str = "",
        exclude_task_ids: Iterable[str] = (),
        **reading: Any,
    ) -> list[Record]:
        """Return what all modules know for a step, best first.

        Won and lost episodes with their reasons, where things are, what was said and what was learned; each says in
        `data["age"]` how many tasks ago it was last so. Asked again before anything changed, it is answered at once.

        Args:
            goal: None for that of the running task.
            observation: the newest; where it shows no room, the first one of the running task does.
            k: at most so many records.
            budget_tokens: limit of their texts' tokens; None for none.
            about: what is to be done now, as the Brief State says; its words are asked for, too.
            exclude_task_ids: tasks that nothing may come from.
            reading: `form`, `kinds`, `numbered`, `newest_first`, see `pool.Reading`.
        """
        wanted = PoolReading(k=k, budget_tokens=budget_tokens, **reading)
        return list(self.pool_of(goal, observation, wanted, about, exclude_task_ids).records)

    def pool_of(
        self,
        goal: str | None,
        observation: str,
        reading: PoolReading,
        about: str = "",
        exclude_task_ids: Iterable[str] = (),
        task_key: Callable[[str], str] = str,
    ) -> Pool:
        """Return a step's pool and the omitted records; arguments as `pool`.

        `task_key` gives what identifies the task behind an id.
        """
        goal = self.goal if goal is None else checked_text("goal", goal)
        room = self.reader.room(checked_text("observation", observation))
        with self._locks.reading:
            if not room and self.running and self._turns:
                observation = self._turns[0][1]
                room = self.reader.room(observation)
            exclude = tuple(checked_texts("exclude_task_ids", exclude_task_ids))
            key = goal, room, reading, about, exclude
            last = self._pools.get(key)
            if last is None or last[0] != self._changes:
                if len(self._pools) >= _MAX_CACHED:
                    self._pools.clear()
                more = about, exclude, task_key, self._counter
                last = self._pools[key] = self._changes, retrieve_pool(self, goal, observation, reading, *more)
            return last[1]

    def _found_by(self, name: str, asked: Question, weight: Callable[[str], float] | None) -> list[Record]:
        """Search a module; cache those that change with tasks only."""
        if name in PER_STEP or asked.where:
            return answers(name, self._modules[name], asked, weight)
        key = (name, asked.query, asked.place, asked.k, asked.as_of, asked.of_task)
        found = self._cache.get(key)
        if found is None:
            found = answers(name, self._modules[name], asked, weight)
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = found
        return found

    def _newer_first(self, items: list[Record], asked: Question) -> list[Record]:
        """Put what replaces something directly before it, and mark that as earlier."""
        if (notes := self.notes) is None or not notes.has_replaced():
            return items
        order: dict[str, Record] = {}
        ranking = sorted(items, key=lambda item: -item.score)
        by_id = {item.id: item for item in ranking}
        for item in ranking:
            number = self._note_of(item)
            newest = number if number is None else notes.newest(number, asked.as_of)
            if newest is None or newest == number or not self._is_replaced(item, newest):
                order.setdefault(item.id, item)
                continue
            newer = order.get(f"notes:{newest}") or by_id.get(f"notes:{newest}")
            newer = newer or notes.found(newest, asked.as_of, f"newer than {item.id}")
            if newer.id in by_id or newer.fits(asked.where):
                order[newer.id] = newer._replace(score=max(item.score, newer.score))
            score = order[item.id].score if item.id in order else item.score
            if item.trust not in QUOTED and item.module != "spatial":
                item = item._replace(text=item.text.rstrip(".! ") + EARLIER, data={"said": item.text, **item.data})
            order[item.id] = item._replace(score=score)
        return list(order.values())

    def _note_of(self, item: Record) -> int | None:
        """Find the number of the note that told an item."""
        if (notes := self.notes) is None:
            return None
        if item.module == "spatial" and item.fact is not None and self.spatial is not None:
            is_told = self.spatial.teller(int(item.number))[0]
            return notes.told_at(item.recorded) if is_told else None
        if item.module not in ("notes", "profile"):
            return None
        number = int(item.number) if item.module == "notes" else max(item.data["notes"], default=-1)
        return number if number in notes.notes and notes.notes[number].ended is None else None

    def _is_replaced(self, item: Record, newest: int) -> bool:
        """Decide whether a note replaces this item, perhaps one clause of another."""
        assert self.notes is not None
        number = self._note_of(item)
        if item.module == "notes" or number is None or self.notes.claims[number].num_claims < 2:
            return True
        new, old = self.notes.notes[newest].text, _said(item)
        return should_be_first(chances(statement(new), [statement(old)], [1])[0], new, old)

    def explain(self) -> str:
        """Explain the last retrieval: reasons of items, those left out."""
        return "nothing was asked yet" if self._last is None else self._last.explain()

    def sightings(
        self,
        kind: str | None = None,
        *,
        near: Any = None,
        within_m: float = 1.0,
        after: float | None = None,
        place: str | None = None,
        k: int | None = None,
    ) -> list[Sighting]:
        """List where things were seen last, latest first, each with its view.

        A thing is in one place: of those that were seen in several rooms of the home, the last one counts.

        Args:
            kind: a class, e.g. "mug"; None for all.
            near: only what was seen last from near this pose, as for `observe`; None for anywhere.
            within_m: how near, in metres.
            after: only what was seen last later than this time, in seconds of the clock that `observe` was given.
            place: one room; None for that of the running task and the other rooms of its home.
            k: at most so many.

        Raises:
            InvalidInputError: an argument of another type or out of range, a place that is not known.
        """
        kind = None if kind is None else checked_text("kind", kind)
        place = None if place is None else checked_text("place", place)
        within_m = checked_real("within_m", within_m)
        if within_m < 0:
            raise InvalidInputError(f"within_m: expected >= 0, got {shown(within_m)}")
        pose = None if near is None else checked_pose(near)
        clock = None if after is None else checked_clock(after)
        k = None if k is None else checked_number("k", k, least=0)
        with self._locks.reading:
            views, spatial = self.views, self.spatial
            if spatial is None:
                return []
            place = None if place is None else spatial.known_place(place)
            if place is not None and (known := spatial.places()) and place not in known:
                raise InvalidInputError(f"place: expected one of {', '.join(known)}, got {shown(place)}")
            times = None
            if pose is not None or clock is not None:
                if views is None:
                    return []
                times = views.near(pose, within_m, clock)
            found = spatial.last_places(kind, place, times, k)
            if views is None or not len(views):
                return found
            times_of = [spatial.sighting_time(one.name) if one.speaker else one.seen for one in found]
            at = {time: views.at(time) for time in set(times_of)}
            return [dataclasses.replace(one, view=at[time]) for one, time in zip(found, times_of)]

    # Single entries.

    def get(self, id: str, *, as_of: int | None = None) -> Record | None:
        """Return an id's entry, past or current; None if absent."""
        as_of = None if as_of is None else checked_number("as_of", as_of)
        with self._locks.reading:
            module, number = self._place_of(id)
            return None if number is None else self._read(module, number, as_of)

    def _place_of(self, id: str) -> tuple[RecordMemory, Any]:
        """Return an id's module and number there, None without one."""
        name, number = module_and_number(id, self._modules)
        return self._modules[name], self._modules[name].number_like(number)

    def _read(self, module: RecordMemory, number: Any, as_of: int | None = None) -> Record | None:
        """Return a record as of a time, with references; None if absent."""
        record = module.record(number) if as_of is None else module.record_at(number, as_of)
        return None if record is None else self._referred(record, as_of)

    def _referred(self, record: Record, as_of: int | None = None) -> Record:
        rows = [row for row in self._references.of(record.id) if as_of is None or row.time <= as_of]
        more = tuple(Source(row.episode, row.step, row.time) for row in rows)
        return record._replace(sources=record.sources + more) if more else record

    def get_all(
        self, module: str | None = None, where: Mapping[str, Any] | None = None, *, as_of: int | None = None
    ) -> list[Record]:
        """Return all entries, past ones too, by module and oldest first.

        Args:
            module: one of `MODULES`; None for all.
            where: values that an entry must have: labels, or "speaker", "when", "kind", "trust" and what else is in its
                `data`. A key that is no field, and no label of a note, is an error, but in an empty memory.
            as_of: None for now; what was there at this time, as it was then.
        """
        wanted = self._checked_filter(where)
        if module is not None and checked_text("module", module) not in self._modules:
            raise InvalidInputError(f"module: expected one of {', '.join(self._modules)}, got {shown(module)}")
        as_of = None if as_of is None else checked_number("as_of", as_of)
        with self._locks.reading:
            chosen = [one for name, one in self._modules.items() if module in (None, name)]
            found = [self._read(one, number, as_of) for one in chosen for number in one.numbers()]
            return [record for record in found if record is not None and record.fits(wanted)]

    def history(self, id: str) -> list[Record]:
        """List an entry's versions or a thing's places, oldest first."""
        with self._locks.reading:
            module, number = self._place_of(id)
            return [] if number is None else list(map(self._referred, (*module.past(number), module.record(number))))

    def update(
        self,
        id: str,
        text: str | None = None,
        labels: Mapping[str, Value] | None = None,
        *,
        trust: Trust = "user",
    ) -> WriteReceipt:
        """Give a note another text or labels; what the old told ends.

        Args:
            id: of the note.
            text, labels: None for what it has.
            trust: of who changes it; the note keeps its own. A text that is a quotation has that of its source.

        Raises:
            InvalidInputError: there is no such note, or its source is trusted more. What is not a note follows from
                what was told and seen: tell or observe what is so.
        """
        trust = least_trust("" if text is None else checked_text("text", text), checked_trust("trust", trust))
        with self._locks.writing:
            name, number = module_and_number(id, self._modules)
            if name != "notes" or self.notes is None or self.get(id) is None:
                raise InvalidInputError(
                    f"id: expected that of a stored note, got {shown(id)}; tell or observe what is so instead"
                )
            if RANK[trust] < RANK[own := self.notes.notes[int(number)].trust]:
                raise InvalidInputError(
                    f"trust: expected that of {id}, {own}, or more, got {trust}; tell it, then both are kept"
                )
            if text is None and labels is None:
                raise InvalidInputError(f"update: expected another text or other labels of {id}, got neither")
            where = {"episode": self.episode, "step": self.step, "time": self.time + 1}
            events: dict[str, Any] = {"notes": self.notes.edited(int(number), where["time"], text, labels)}
            if text is not None and self.profile is not None and own == "user":
                said: dict[str, Any] = {"op": "tell", **where, "changes": []}
                if self._is_user(self.notes.notes[int(number)].speaker):
                    said = self.profile.propose(checked_text("text", text), **where, note=int(number))
                known = {change["target"] for change in said["changes"]}
                told = self.profile.told_by(Selector(entry=id), before=False)
                left = {one: self._texts_of(others) for one, others in told.items() if one not in known}
                said["changes"] = self.profile.untold(left) + said["changes"]
                said["note"] = int(number)
                events |= {"profile": said} if said["changes"] else {}
            if text is not None and self.spatial is not None:
                note = self.notes.notes[int(number)]
                origin = {"speaker": note.speaker, "when": note.data["when"], "trust": own}
                at = {name: events["notes"][name] for name in WHEN}
                change = self.spatial.propose_retelling(text, note.text, int(number), **origin, **at)
                events |= {"spatial": change} if change is not None else {}
            self._record({"op": "edit", "time": where["time"], "events": events})
            return self._receipt(events)

    def _texts_of(self, numbers: Iterable[int]) -> list[str]:
        """Return what notes say that is still so, the latest first."""
        notes = [self.notes.notes[number] for number in numbers if number in self.notes.notes] if self.notes else []
        return [
            note.text for note in sorted(notes, key=lambda note: -(note.sources[-1].time or 0)) if note.ended is None
        ]

    def delete(self, id: str) -> ForgetReceipt:
        """Remove a single note or entry, from files, too, as `forget`.

        What the profile has from a note goes with it; what other notes told of the same is read from them again.

        Raises:
            InvalidInputError: there is no such entry, or it is a fact of the graph or a step: forget its object or
                episode.
        """
        with self._locks.writing:
            name, _ = module_and_number(id, self._modules)
            if name in PER_STEP or self.get(id) is None:
                expected = "expected that of a stored note, episode, lesson or profile entry"
                raise InvalidInputError(f"id: {expected}, got {shown(id)}; forget an object or an episode instead")
            return self._forget(Selector(entry=id))

    def export(self) -> str:
        """Export all memory as lines of JSON for `import_`."""
        return exported(self.state())

    def import_(self, text: str) -> int:
        """Import an export into an empty memory; return the entry count.

        Raises:
            InvalidInputError: a line that `export` did not write, with its number and field; another scope or
                other modules; a label with the name of a field; this memory is not empty. Nothing has changed.
        """
        text = checked_text("text", text)
        with self._locks.writing:
            self._check_empty()
            other = self.fork()
            other.restore(imported(text))  # so that nothing is recorded that cannot be read
            if other.notes is not None:
                new_labels(dict.fromkeys(other.notes.label_names()))
            self._record({"op": "import", "text": text, "events": {}})
            return len(self.get_all())

    def _check_empty(self) -> None:
        if self.time or self.episode >= 0:  # every change has a time
            raise InvalidInputError("import: expected an empty memory, got one with entries; import into a new one")

    # Forgetting.

    def forget(
        self,
        *,
        user: str | None = None,
        object: str | None = None,
        episode: int | None = None,
        everything: bool | None = None,
    ) -> ForgetReceipt:
        """Forget a user, object, episode or everything; return a receipt.

        Args:
            user: who said it; a name, in any case. Of the user of the scope ("user" where it has no name) the profile
                goes too. What sensors saw stays, and so do the goals of tasks, with their episodes.
            object: a thing or a class; all that names it goes, by any name under which the map knows it.
            episode: number of a task; -1 for what was told before the first one.
            everything: True for all that is kept in this scope.

        Raises:
            InvalidInputError: not exactly one of them, or a user or episode that is not known; nothing was removed.
        """
        return self._forget(self._known(Selector(user, object, episode, everything=everything)))

    def _known(self, selector: Selector) -> Selector:
        """Check a selector's user or episode. Raises with the known ones."""
        with self._locks.reading:
            notes = list(self.notes.notes.values()) if self.notes is not None else []
            if selector.user is not None and not selector.is_user_of(self.scope):
                speakers = dict.fromkeys([self.scope.user or "user", *(note.speaker for note in notes if note.speaker)])
                if not any(map(selector.is_name, speakers)):
                    raise InvalidInputError(f"user: expected one of {', '.join(speakers)}, got {shown(selector.user)}")
            number, count = selector.episode, len(self.task_ids)
            told = (source.episode for note in notes for source in note.sources)
            if number is not None and not 0 <= number < count and number not in told:
                tasks = f"0 to {count - 1}" if count else "the number of a task, of which there is none yet"
                raise InvalidInputError(f"episode: expected {tasks}, got {number}")
        return selector

    def _forget(self, selector: Selector) -> ForgetReceipt:
        with self._locks.writing:
            if self.store is None:
                return self.module.remove(selector)
            removed = self.store.forget(**dataclasses.asdict(selector)).removed[STORED_AS]
            assert isinstance(removed, ForgetReceipt)
            return removed

    def _entries(self) -> dict[str, Record]:
        return {one.id: one for module in self._modules.values() for one in module.records()}

    def _remove(self, selector: Selector) -> ForgetReceipt:
        """Remove what a selector names from this object, see `forget`.

        What the running task has seen of an object goes too; where the goal, the place or a task's id names it, it is
        emptied, and so they are where the running episode is forgotten.
        """
        before = self._entries()
        mentions = selector if selector.user is None else Selector(object=selector.user)
        if selector.object is not None and self.spatial is not None:
            exact, bare = self.spatial.other_names(selector)
            selector, mentions = selector.with_names(exact), selector.with_names([*exact, *bare])
        self.reader.clear()
        told = self.profile.told_by(selector) if self.profile is not None else {}
        known = [notes for i, notes in told.items() if self.profile is not None and self.profile.is_known(i)]
        receipt: dict[str, int] = {}
        for one in (selector, *(Selector(entry=f"profile:{i}") for i in told)):
            for name in self._modules:
                for what, count in self._own(name).remove(one).items():
                    receipt[f"{name}.{what}"] = receipt.get(f"{name}.{what}", 0) + count
        if others := sorted({number for notes in known for number in notes}):
            self._read_again(others)
        everything = bool(selector.everything)
        turns = [turn for turn in self._turns if not any(map(selector.in_text, turn))]
        if everything or selector.episode == self.episode:
            turns = []
        receipt["turns"] = len(self._turns) - len(turns)
        if len(turns) != len(self._turns):
            self._outcomes = {}  # their steps are others now
        self._turns = turns
        if everything or selector.in_text(self.goal) or selector.episode == self.episode:
            self.goal = ""
        if everything or selector.in_text(self.place) or selector.episode == self.episode:
            self.place = ""
        kept = [
            "" if everything or selector.in_text(task_id.replace("_", " ")) or selector.episode == number else task_id
            for number, task_id in enumerate(self.task_ids)
        ]
        receipt["task_ids"] = sum(a != b for a, b in zip(kept, self.task_ids))
        self.task_ids = kept
        if everything:
            self._references = References()
        receipt["references"] = self._references.remove(selector.episode, self._is_there)
        self._cache.clear()
        self._pools.clear()
        self._recent.clear()
        self._last = None
        left = self._entries()
        removed = [one for id, one in before.items() if id not in left]
        similar = [one for one in left.values() if mentions.in_text(one.text) or mentions.is_like(one.text)]
        return ForgetReceipt(receipt, *(tuple(one.quoted() for one in some) for some in (removed, similar)))

    def _read_again(self, numbers: list[int]) -> None:
        """Re-derive profile facts that lost one source but have another."""
        notes = [self.notes.notes[i] for i in numbers if i in self.notes.notes] if self.notes is not None else []
        last = [(note, note.sources[-1]) for note in notes if note.ended is None and self._is_user(note.speaker)]
        where = [{"episode": source.episode, "step": source.step, "time": source.time} for _, source in last]
        rows = sorted(zip(last, where), key=lambda row: row[1]["time"] or 0)
        self._own("profile").read_again((int(note.number), note.text, at) for (note, _), at in rows)

    def _is_there(self, entry: str) -> bool:
        return self._place_of(entry)[1] is not None


class _RecordedGraph:
    """The graph of a memory as a review writes it: each correction is an event of the memory."""

    def __init__(self, memory: LifelongMemory):
        self._memory = memory

    def snapshot(self) -> Snapshot:
        assert self._memory.spatial is not None
        return self._memory.spatial.graph.snapshot()

    def apply(self, *, invalidate: Iterable[tuple[int, int]], add: Iterable[NewFact]) -> Applied:
        return self._memory._correct(list(invalidate), list(add))


def _text(value: Any) -> str:
    """Return a state's text; older versions took anything for one."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def _is_doubtful(conflict: Ended, spatial: SpatialMemory) -> bool:
    """Return whether a new fact is a model's or less sure."""
    new, old = spatial.confidence(conflict.by), spatial.confidence(conflict.fact)
    return new is None or new < (1.0 if old is None else old)


def _surroundings(conflicts: list[Ended], spatial: SpatialMemory) -> Subgraph:
    """Return what is within two hops of the conflicts' facts."""
    with spatial.graph.snapshot() as now:
        facts = [now.fact(number) for ended in conflicts for number in (ended.fact, ended.by)]
        ends = list(dict.fromkeys(node for fact in facts for node in (fact.subject, fact.object)))
        return now.khop(ends, 2, max_nodes=_MAX_NODES)


def _said(item: Record) -> str:
    """Return the sentence that knowledge stands for."""
    if item.module != "profile":
        return item.text
    alias, description = item.data["alias"], item.data["description"]
    return str(alias) if alias == description else f"{alias} is {description}"


class StoredMemory(RecordedModule):
    """A `LifelongMemory` as a `MemoryStore` or another log keeps it."""

    format_name = "embodied_mem.lifelong_memory"

    def __init__(self, memory: LifelongMemory):
        super().__init__(memory.scope, None)
        self._memory = memory

    def check(self, event: Mapping[str, Any]) -> None:
        check(LifelongEvent, _EVENT, event)
        modules = self._memory._modules
        if event["op"] == "begin":
            checked_place(event["place"])
        if "again" in event:
            module_and_number(event["again"], modules)
            check(Reference, _EVENT, [event.get(name) for name in Reference._fields])
        for name, change in event["events"].items():
            if name not in modules:
                raise InvalidInputError(f"{_EVENT}: expected modules {list(modules)}, got {shown(name)}")
            modules[name].check(change)

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        with self._memory._locks.applying:
            self._memory._apply(event)

    def _state(self) -> tuple[Any, ...]:
        return self._memory._state()

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        self._memory._restore(state, parts)

    def remove(self, selector: Selector) -> ForgetReceipt:
        with self._memory._locks.reading:
            return self._memory._remove(selector)


def server_of(place: Any) -> Any:
    """Return the server at an address; any other place as it is."""
    if not isinstance(place, str) or not place.startswith(SERVER_ADDRESSES):
        return place
    from .postgres import Server  # an extra

    return Server(place)


def replay(memory: LifelongMemory, episode: Episode, *, place: str | None = None) -> int:
    """Remember a whole episode that was played before, and return its number."""
    episode = checked_episode(episode)
    number = memory.begin_task(episode.task_id, episode.goal, episode.first_observation, place=place)
    for step, answer in zip(episode.steps, episode.answers):
        memory.observe(step.action, answer)
    memory.end_task(episode.won)
    return number

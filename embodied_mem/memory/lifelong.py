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

import functools
import gc
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from ..errors import InvalidInputError
from ..language.chat import ChatModel
from ..types import Episode, Step
from ._forgetting import STORED_AS
from ._keeping import Keeping
from ._parts import MODULES
from ._recalling import Recalling
from ._seeing import Seeing
from ._single_entries import SingleEntries
from .arguments import (
    checked_episode,
    checked_flag,
    checked_number,
    checked_text,
    checked_texts,
    shown,
)
from .chat_writer import Chat, ChatWriter
from .embedders import Embedder, SurvivingEmbedder
from .events import EVENT, check_begin, check_event
from .export import imported
from .graph.records import Scope
from .graph.relations import HOUSEHOLD_RELATIONS, Relations
from .graph.snapshot import MAX_HOPS
from .locks import Turns
from .note import SEEN, Value, new_labels
from .observation import Observation, Outcome, Status, checked_facts, checked_observation, refusal
from .parallel_calls import ParallelCalls
from .readers import EVERYDAY, Reader
from .readers.once import ReadOnce
from .readers.reading import Reading, unread_lines
from .receipts import WriteReceipt, Written
from .recollection import EARLIER, count_tokens
from .record import module_and_number, written
from .references import Reference, References
from .search import QueryEmbedder
from .spatial.events import checked_place
from .store.store import MemoryStore
from .trust import QUOTED, RANK, Trust, checked_trust, unmarked

_DID = {"stored": ("add",), "merged": ("repeat", "update"), "ended": ("end",)}


class LifelongMemory(SingleEntries, Recalling, Seeing, Keeping):
    """The memories of one scope. No method takes a scope: what is in another one cannot be named.

    Attributes:
        spatial, temporal, episodic, semantic, profile, notes, views: the modules; None for one that is switched off.
        writer, review: count calls and failures of the chat model, and what it corrected; None without one.
        reader, embedder: count what failed of theirs: `failed`, `last_error`.
        episode, step, time: of the running task; the time goes up with every step of every task.
        goal, place: of the running task.
        store: where it is kept; None without a folder.
    """

    format_name = "embodied_mem.lifelong_memory"

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
            relations: those that are declared, see `graph.relations`.
            parallel: whether modules run in threads; None: only with a chat model.
            record: gets every event and must have `apply` called with it, and must see to forgetting; None for `apply`
                itself. `open` keeps the events in a folder.

        Raises:
            InvalidInputError: an argument of another type or out of range.
        """
        super().__init__(scope, record)
        self._use = tuple(checked_texts("modules", modules))
        if unknown := set(self._use) - set(MODULES):
            raise InvalidInputError(f"modules: expected some of {', '.join(MODULES)}, got {sorted(unknown)}")
        self.writer = None if chat is None else ChatWriter(chat)
        self.embedder = SurvivingEmbedder(QueryEmbedder.of(embedder))
        self._embedder = QueryEmbedder.of(self.embedder)
        self._capacity = checked_number("capacity", capacity, least=2)
        self._hops = checked_number("hops", hops, least=0, most=MAX_HOPS)
        if not callable(counter):
            raise InvalidInputError(f"counter: expected a function from a text to its tokens, got {shown(counter)}")
        self._counter, self.reader, self._relations = counter, ReadOnce(reader), relations
        self._parallel = chat is not None if parallel is None else checked_flag("parallel", parallel)
        self._calls = ParallelCalls(len(MODULES))
        self.store: MemoryStore | None = None
        self._turns_taken = Turns()
        self._set_modules(self._make())
        self.review = self._make_review()
        self._reset()

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        scope: Scope | None = None,
        *,
        fsync: Literal["always", "interval", "never"] = "always",
        read_only: bool = False,
        repair: bool = False,
        **options: Any,
    ) -> LifelongMemory:
        """The memory that is kept in a folder, which is made if it does not exist; use it in a `with` block.

        Each change is on the disk when the call that made it returns. `store` writes snapshots and says what opening
        found.

        Args:
            directory: the folder.
            scope: whose memory it is.
            fsync, read_only, repair: as `MemoryStore`.
            options: as for `LifelongMemory`; `modules` and `capacity` must be those that it was made with.

        Raises:
            StorageError: another writer has the folder, or it is damaged.
            InvalidInputError: another scope or other modules, an option that is unknown or out of range.
        """
        known = set(inspect.signature(cls).parameters) - {"scope", "record"}
        if unknown := sorted(set(options) - known):
            raise InvalidInputError(f"options: expected some of {', '.join(sorted(known))}, got {', '.join(unknown)}")
        memory = cls(scope, **options)
        modules = {STORED_AS: memory}
        with memory._embedder.keeping(directory, read_only=read_only):
            memory.store = MemoryStore(
                directory, modules, scope=memory.scope, fsync=fsync, read_only=read_only, repair=repair
            )
        memory._record = functools.partial(memory.store.record, STORED_AS)
        return memory

    def _reset(self) -> None:
        self.goal, self.place = "", ""
        self.episode, self.step, self.time = -1, 0, 0
        self.running = False
        self._task_ids: list[str] = []
        self._turns: list[tuple[str, str]] = []
        self._outcomes: dict[int, bool] = {}  # of the running task: step from 0 -> whether it failed, as the world knew
        self._references = References()
        self._last_events: frozenset[str] = frozenset()  # modules that the last event changed

    # Changing.

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
        """Start a task and return its number, under which it is a source.

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
        with self._turns_taken.turn:
            if self.running:
                raise InvalidInputError(f"begin_task: task {self._task_ids[-1]!r} has not ended; call end_task first")
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
        """Take note of what was done and what came of it; what became of that.

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
        action = checked_text("action", action)
        seen = checked_observation(text, facts, images, pose, time, outcome, trust=trust)
        with self._turns_taken.turn:
            self._check_running("observe")
            where = {"episode": self.episode, "step": self.step + 1, "time": self.time + 1}
            reading = self.reader.read("" if seen.quoted else seen.said)
            unread = seen.text.splitlines() if seen.quoted else self._unread(seen.said, reading)
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
        """Take note of what somebody says, within a task or between tasks; what became of it.

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
        with self._turns_taken.turn:
            where = {"episode": self.episode, "step": self.step, "time": self.time + 1}
            again = None if speaker or when or labels else self._told_again(text, where, trust)
            if again is not None:
                return again
            quoted, level = unmarked(text)
            if level is not None:
                text, trust = quoted or text, min(trust, level, key=RANK.__getitem__)
            said: dict[str, Any] = {"text": text, "speaker": speaker, "when": when, "labels": labels, "trust": trust}
            given: dict[str, dict[str, Any]] = {"notes": said}
            if trust == "user" and self._is_user(speaker):
                given["profile"] = {"text": text}
                if self.notes is not None and text.strip():
                    given["profile"]["note"] = self.notes.number_of(**said)
            self._record({"op": "tell", **where, "events": self._proposed(where, **given)})
            return self._receipt(given)

    def _told_again(self, text: str, where: dict[str, int], trust: Trust) -> WriteReceipt | None:
        """Add a reference to the entry that a text was recalled from; None if it is said in its own words."""
        recalled = self._recent.item_of(text)
        now = None if recalled is None else self.get(recalled.id)
        if recalled is None or now is None or (now.module == "notes" and now.trust == trust and now.text == text):
            return None
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
        return WriteReceipt(merged=(Written(entry, name, now.text),))

    def _receipt(self, given: Iterable[str], outcome: Status = "unknown", refused: Iterable[str] = ()) -> WriteReceipt:
        """What the last event did in these modules."""
        with self._turns_taken.reading:
            done = [(name, self._modules[name]) for name in given if name in self._last_events]
            found = [row for name, module in done for row in written(name, module, getattr(module, "changed", ()))]
        rows = {do: tuple(dict.fromkeys(one for was, one in found if was in dos)) for do, dos in _DID.items()}
        return WriteReceipt(rows["stored"], rows["merged"], rows["ended"], outcome, tuple(refused))

    def end_task(self, won: bool) -> None:
        """Finish the task; episodic and semantic memory learn from it.

        Python's garbage collector, if it is on, runs on young objects here, so that it seldom does within a step.
        """
        won = checked_flag("won", won)
        with self._turns_taken.turn:
            self._check_running("end_task")
            played: dict[str, Any] = {"episode": self.running_episode(won)}
            if self._outcomes:
                played["outcomes"] = dict(self._outcomes)
            where = {"number": self.episode, "time": self.time, "place": self.place}
            events = self._proposed(where, episodic=played, semantic=played)
            self._record({"op": "end", "time": self.time, "won": won, "events": events})
        if gc.isenabled():
            gc.collect(int(gc.get_count()[1] > gc.get_threshold()[1]))

    def replay(self, episode: Episode, *, place: str | None = None) -> int:
        """Remember a whole episode that was played before, and return its number."""
        episode = checked_episode(episode)
        number = self.begin_task(episode.task_id, episode.goal, episode.first_observation, place=place)
        for step, answer in zip(episode.steps, episode.answers):
            self.observe(step.action, answer)
        self.end_task(episode.won)
        return number

    def running_episode(self, won: bool = False) -> Episode:
        """The task so far as an episode. Raises InvalidInputError before the first task."""
        if not self._task_ids:
            raise InvalidInputError("running_episode: expected a task; call begin_task first")
        won = checked_flag("won", won)
        texts = [text for _, text in self._turns]
        steps = tuple(Step(text, action) for text, (action, _) in zip(texts, self._turns[1:]))
        return Episode(self._task_ids[-1], self.goal, steps, won, texts[-1] if texts else "")

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        """`apply` of an event that has passed `check`. Raises InvalidInputError for one that is older than the last."""
        with self._turns_taken.changing:
            self._apply(event)

    def _apply(self, event: Mapping[str, Any]) -> None:
        op, events = event["op"], event["events"]
        if op == "import":
            self._check_empty()
            self.restore(imported(event["text"]))
            return
        if op in ("begin", "step") and event["time"] < self.time:
            raise InvalidInputError(f"{EVENT}: expected a time from {self.time} on, got {event['time']}")
        count = len(self._task_ids)
        if op == "begin":
            check_begin(event, count)
        if op in ("begin", "step"):
            self.episode, self.step, self.time = event["episode"], event["step"], event["time"]
        if op == "begin":
            self.goal, self.place, self.running = event["goal"], event["place"], True
            self._task_ids += [""] * (event["episode"] - count)  # whose beginning was set aside
            self._task_ids.append(event["task_id"])
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
            self.running, self._turns, self._outcomes = False, [], {}
        self._last_events = frozenset(events)
        if op != "step" or not events.keys().isdisjoint(("notes", "semantic")):
            self._cache.clear()

    def check(self, event: Mapping[str, Any]) -> None:
        """Raise InvalidInputError for an event that cannot be applied, or that is for modules that take no part."""
        check_event(event, self._modules)

    def _check_running(self, call: str) -> None:
        if not self.running:
            raise InvalidInputError(f"{call}: expected a running task; call begin_task first")

    def _proposed(self, where: Mapping[str, Any], **given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """What modules propose, given this and where it was: of those that take part, in parallel where that pays."""
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

    # Reading.

    def task_id(self, episode: int) -> str:
        """The id of the task that a source names; empty if it was forgotten."""
        if not 0 <= checked_number("episode", episode) < len(self._task_ids):
            raise InvalidInputError(f"episode: expected 0 to {len(self._task_ids) - 1}, got {episode}")
        return self._task_ids[episode]

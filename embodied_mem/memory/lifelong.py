"""All memories of one user, robot and environment behind one object: updated per action, queried before each.

    memory = LifelongMemory(Scope(user="ann", environment="home"))
    memory.begin_task("task 7", "put a clean mug in the cabinet.", observation)
    memory.observe("go to desk 1", answer)                       # after each action
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

With rules a step takes microseconds and threads would only cost; with a chat model, updates and retrieval of the
modules run in parallel, since each waits for the model.

Source: RoboMemory 3.2; update frequencies as there.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from ..errors import InvalidInputError
from ..types import Episode, Step
from .arguments import (
    WHEN,
    checked_episode,
    checked_flag,
    checked_number,
    checked_text,
    checked_texts,
    shown,
)
from .chat_writer import Chat, ChatWriter
from .forgetting import STORED_AS
from .graph.records import Scope
from .graph.snapshot import MAX_HOPS
from .kept import written
from .lifelong_events import EVENT, check_begin, check_event
from .modules.episodic import EpisodicMemory
from .modules.note import SEEN, Value
from .modules.notes import NoteMemory
from .modules.profile import UserProfile
from .modules.semantic import SemanticMemory
from .modules.spatial import SpatialMemory
from .modules.spatial_events import checked_place
from .modules.temporal import TemporalMemory
from .parallel_calls import ParallelCalls
from .parts import MODULES, PER_STEP
from .readers import DEFAULT, Reader
from .readers.once import ReadOnce
from .recalling import Recalling
from .receipts import Outcome, WriteReceipt
from .recollection import Item, Recollection, count_tokens
from .single_entries import SingleEntries
from .store.module import RecordedModule
from .store.store import MemoryStore
from .turns import Turns
from .vectors.lexical import Embedder
from .vectors.text_index import QueryEmbedder

_FAILED: dict[str, bool | None] = {"success": False, "failure": True, "unknown": None}
_DID = {"stored": ("add",), "merged": ("repeat", "update"), "ended": ("end",)}


def _text(value: Any) -> str:
    """A text of a state: older versions took whatever they were given for one."""
    return value if isinstance(value, str) else "" if value is None else str(value)


class LifelongMemory(SingleEntries, Recalling):
    """The memories of one scope. No method takes a scope: what is in another one cannot be named.

    Attributes:
        spatial, temporal, episodic, semantic, profile, notes: the modules; None for one that is switched off.
        writer: counts calls and failures of the chat model; None without one.
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
        chat: Chat | None = None,
        embedder: Embedder | None = None,
        capacity: int = 3,
        hops: int = 2,
        counter: Callable[[str], int] = count_tokens,
        reader: Reader = DEFAULT,
        parallel: bool | None = None,
        record: Callable[[dict[str, Any]], None] | None = None,
    ):
        """Make empty memories.

        Args:
            scope: whose they are.
            modules: those that take part, of `MODULES`.
            chat: a chat model that extracts, summarises and writes lessons where rules end; None for rules alone.
            embedder: None for the lexical one.
            capacity: entries of the temporal memory.
            hops: how far spatial retrieval goes.
            counter: tokens of a text, for budgets.
            reader: of the world's texts; the default reads household sentences.
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
        self._embedder = QueryEmbedder.of(embedder)
        self._capacity = checked_number("capacity", capacity, least=2)
        self._hops = checked_number("hops", hops, least=0, most=MAX_HOPS)
        if not callable(counter):
            raise InvalidInputError(f"counter: expected a function from a text to its tokens, got {shown(counter)}")
        self._counter, self._reader = counter, ReadOnce(reader)
        self._parallel = chat is not None if parallel is None else checked_flag("parallel", parallel)
        self._calls = ParallelCalls(len(MODULES))
        self.store: MemoryStore | None = None
        self._turns_taken = Turns()
        self._set_modules(self._make())
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
            options: as for `LifelongMemory`; `modules`, `capacity` and `embedder` must be those that it was made with.

        Raises:
            StorageError: another writer has the folder, or it is damaged.
            InvalidInputError: another scope or other modules, an option that is unknown or out of range.
        """
        known = set(inspect.signature(cls).parameters) - {"scope", "record"}
        if unknown := sorted(set(options) - known):
            raise InvalidInputError(f"options: expected some of {', '.join(sorted(known))}, got {', '.join(unknown)}")
        memory = cls(scope, **options)
        modules = {STORED_AS: memory}
        memory.store = MemoryStore(
            directory, modules, scope=memory.scope, fsync=fsync, read_only=read_only, repair=repair
        )
        memory._record = functools.partial(memory.store.record, STORED_AS)
        return memory

    def _make(self) -> dict[str, Any]:
        scope, embedder, writer, reader = self.scope, self._embedder, self.writer, self._reader
        facts, summary = (None, None) if writer is None else (writer.facts, writer.summary)
        makers: dict[str, Callable[[], Any]] = {
            "spatial": lambda: SpatialMemory(scope, extractor=facts, reader=reader),
            "temporal": lambda: TemporalMemory(scope, capacity=self._capacity, summarizer=summary, reader=reader),
            "episodic": lambda: EpisodicMemory(scope, embedder=embedder, reader=reader),
            "semantic": lambda: SemanticMemory(scope, embedder=embedder, writer=writer, reader=reader),
            "profile": lambda: UserProfile(scope, embedder=embedder, writer=writer),
            "notes": lambda: NoteMemory(scope, embedder=embedder),
        }
        return {name: makers[name]() for name in MODULES if name in self._use}

    def _set_modules(self, modules: dict[str, RecordedModule]) -> None:
        self._modules: dict[str, Any] = modules
        self._shared: set[str] = set()  # modules that a fork has, too: whoever changes one takes a copy first
        self._cache: dict[tuple[Any, ...], list[Item]] = {}
        self._last: Recollection | None = None

    def _reset(self) -> None:
        self.goal, self.place = "", ""
        self.episode, self.step, self.time = -1, 0, 0
        self.running = False
        self._task_ids: list[str] = []
        self._turns: list[tuple[str, str]] = []
        self._outcomes: dict[int, bool] = {}  # of the running task: step from 0 -> whether it failed, as the world knew
        self._last_events: frozenset[str] = frozenset()  # modules that the last event changed

    # Changing.

    def begin_task(self, task_id: str, goal: str, observation: str, *, place: str | None = None) -> int:
        """Start a task and return its number, under which it is a source.

        Args:
            task_id: as the world calls it.
            goal: the instruction; what it tells about the user is noted.
            observation: what the agent sees at first.
            place: where it is played; None to name it by what the room looks like.

        Raises:
            InvalidInputError: another task is running, or an argument is no text; nothing has changed.
        """
        task_id, goal = checked_text("task_id", task_id), checked_text("goal", goal)
        observation = checked_text("observation", observation)
        place = self._reader.place(observation) if place is None else checked_place(place)
        with self._turns_taken.turn:
            if self.running:
                raise InvalidInputError(f"begin_task: task {self._task_ids[-1]!r} has not ended; call end_task first")
            number, time = self.episode + 1, self.time + 1
            where = {"episode": number, "step": 0, "time": time}
            event = {"op": "begin", **where, "task_id": task_id, "goal": goal, "observation": observation}
            event["place"] = place
            given: dict[str, Any] = {"spatial": {"text": observation}, "profile": {"text": goal}}
            if "notes" in self._modules and not self._reader.read(observation).understood:
                given["notes"] = {"text": observation, "kind": SEEN}
            self._record({**event, "events": self._proposed(where, **given)})
        return number

    def observe(self, action: str, observation: str, *, outcome: Outcome | None = None) -> WriteReceipt:
        """Take note of what was done and what the world answered; what became of it.

        Args:
            action: what was done.
            observation: what the world answered. Lines that no rule reads are kept as notes.
            outcome: "success" or "failure" where the world knows it; else the text says whether it failed.

        Raises:
            InvalidInputError: no task is running, or an argument is of another type; nothing has changed.
        """
        action, observation = checked_text("action", action), checked_text("observation", observation)
        if outcome is not None and (not isinstance(outcome, str) or outcome not in _FAILED):
            raise InvalidInputError(f"outcome: expected one of {', '.join(_FAILED)} or None, got {shown(outcome)}")
        failed = None if outcome is None else _FAILED[outcome]
        with self._turns_taken.turn:
            self._check_running("observe")
            where = {"episode": self.episode, "step": self.step + 1, "time": self.time + 1}
            turn = {"action": action, "text": observation}
            event: dict[str, Any] = {"op": "step", **where, "action": action, "observation": observation}
            given: dict[str, dict[str, Any]] = {"spatial": dict(turn), "temporal": dict(turn)}
            if failed is not None:
                event["failed"] = given["temporal"]["failed"] = failed
            reading = self._reader.read(observation)
            if unread := self._unread(observation, reading.understood):
                given["notes"] = {"text": unread, "kind": SEEN, "action": action}
            self._record({**event, "events": self._proposed(where, **given)})
            if failed is None and reading.refused:
                failed = True
            return self._receipt(given, "unknown" if failed is None else "failure" if failed else "success")

    def _unread(self, text: str, understood: bool) -> list[str]:
        """The lines that no rule understands, of a text that is or is not understood."""
        if "notes" not in self._modules or (understood and "\n" not in text):
            return []
        return [line for line in text.splitlines() if line.strip() and not self._reader.read(line).understood]

    def tell(
        self, text: str, *, speaker: str = "", when: str = "", labels: Mapping[str, Value] | None = None
    ) -> WriteReceipt:
        """Take note of what somebody says, within a task or between tasks; what became of it.

        The text is a note, word by word. Rules, or the chat model, add to the profile what they read in it, and what it
        denies has an end. Before the first task the source is -1.

        Args:
            text: what is said.
            speaker: who says it; empty for the user of the scope.
            when: the date, in whatever words; time within the memory goes on by itself.
            labels: the caller's own, to filter by: names to texts, numbers, flags or None.

        Raises:
            InvalidInputError: an argument of another type; nothing has changed.
        """
        text = checked_text("text", text)
        with self._turns_taken.turn:
            where = {"episode": self.episode, "step": self.step, "time": self.time + 1}
            said: dict[str, Any] = {"text": text, "speaker": speaker, "when": when, "labels": labels}
            given: dict[str, dict[str, Any]] = {"notes": said, "profile": {"text": text}}
            if self.notes is not None and text.strip():
                given["profile"]["note"] = self.notes.number_of(**said)
            self._record({"op": "tell", **where, "events": self._proposed(where, **given)})
            return self._receipt(given)

    def _receipt(self, given: Iterable[str], outcome: Outcome = "unknown") -> WriteReceipt:
        """What the last event did in these modules."""
        with self._turns_taken.reading:
            done = [(name, self._modules[name]) for name in given if name in self._last_events]
            found = [row for name, module in done for row in written(name, module, getattr(module, "changed", ()))]
        rows = {do: tuple(dict.fromkeys(one for was, one in found if was in dos)) for do, dos in _DID.items()}
        return WriteReceipt(rows["stored"], rows["merged"], rows["ended"], outcome)

    def end_task(self, won: bool) -> None:
        """Finish the task; episodic and semantic memory learn from it."""
        won = checked_flag("won", won)
        with self._turns_taken.turn:
            self._check_running("end_task")
            played: dict[str, Any] = {"episode": self.running_episode(won)}
            if self._outcomes:
                played["outcomes"] = dict(self._outcomes)
            where = {"number": self.episode, "time": self.time, "place": self.place}
            events = self._proposed(where, episodic=played, semantic=played)
            self._record({"op": "end", "time": self.time, "won": won, "events": events})

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
                self.spatial.apply_checked({**start, "place": self.place})
            if self.temporal is not None:
                self.temporal.apply_checked(start)
        elif op == "step":
            if "failed" in event:
                self._outcomes[len(self._turns) - 1] = event["failed"]
            self._turns.append((event["action"], event["observation"]))
        elif op in ("tell", "edit"):
            self.time = max(self.time, event.get("time", self.time))
        for name, change in events.items():
            self._own(name).apply_checked(change)
        if op == "end":
            self.running, self._turns, self._outcomes = False, [], {}
        self._last_events = frozenset(events)
        if op != "step" or "notes" in events:
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

    # Keeping.

    def _state(self) -> tuple[Any, ...]:
        """The task, then each module as a part."""
        own = {
            "modules": list(self._modules),
            "goal": self.goal,
            "place": self.place,
            "episode": self.episode,
            "step": self.step,
            "time": self.time,
            "running": self.running,
            "task_ids": self._task_ids,
            "turns": [list(turn) for turn in self._turns],
        }
        with self._turns_taken.reading:
            if self._outcomes:
                own["outcomes"] = [list(pair) for pair in sorted(self._outcomes.items())]
            return own, *(module.state() for module in self._modules.values())

    def _restore(self, own: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        expected = list(self._modules)
        if own["modules"] not in (expected, [name for name in expected if name != "notes"]):  # older versions had none
            raise InvalidInputError(f"state: expected modules {expected}, got {own['modules']}")
        modules = self._make()
        for name, part in zip(own["modules"], parts, strict=True):
            modules[name].restore(part)
        outcomes = {checked_number("step", step): checked_flag("failed", f) for step, f in own.get("outcomes", ())}
        goal, place, running = _text(own["goal"]), _text(own["place"]), bool(own["running"])
        episode, step, time = (checked_number(name, own[name]) for name in WHEN)
        task_ids = [_text(task_id) for task_id in own["task_ids"]]
        turns = [(_text(action), _text(text)) for action, text in own["turns"]]
        self._set_modules(modules)
        self.goal, self.place, self.running = goal, place, running
        self.episode, self.step, self.time = episode, step, time
        self._task_ids, self._turns, self._outcomes = task_ids, turns, outcomes

    def fork(self) -> Self:
        """An independent memory, in this process only, that starts as what this one is now.

        It costs no more for more facts: the graph shares what neither side changes, and a module that changes with
        tasks is copied when one side changes it first.
        """
        with self._turns_taken.reading:
            return self._forked()

    def _forked(self) -> Self:
        other = super().fork()
        other._turns_taken = Turns()
        other.store, other._calls = None, ParallelCalls(len(MODULES))
        self._shared = {name for name in self._modules if name not in PER_STEP}
        other._shared = set(self._shared)
        other._modules = {
            name: module if name in self._shared else module.fork() for name, module in self._modules.items()
        }
        other._cache = dict(self._cache)
        other._task_ids, other._turns = list(self._task_ids), list(self._turns)
        other._outcomes = dict(self._outcomes)
        return other

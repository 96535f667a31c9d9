"""All memories of one user, robot and environment behind one object: updated while acting, asked before each action.

    memory = LifelongMemory(Scope(user="ann", environment="home"))
    memory.begin_task("task 7", "put a clean mug in the cabinet.", observation)
    memory.observe("go to desk 1", answer)                       # after each action
    recollection = memory.retrieve(budget_tokens=200)            # for the goal, or any other query
    recollection.render(); memory.explain()
    memory.end_task(won=True)
    memory.forget(object="mug 1")
    what_if = memory.fork()                                      # independent, at hardly any cost

    with LifelongMemory.open("memory/ann", Scope(user="ann")) as memory:     # the same, kept in a folder
        ...

Spatial and temporal memory change with every action, episodic and semantic memory with every task, the user's profile
with every instruction. All of it is one event per call, and `apply` of the same events gives the same state.

With rules a step takes microseconds and threads would only cost; with a chat model, updates and retrieval of the
modules run in parallel, since each waits for the model.

Source: RoboMemory 3.2; update frequencies as there.
"""

from __future__ import annotations

import concurrent.futures
import copy
import dataclasses
import functools
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

from ..errors import InvalidInputError
from ..types import Episode, Step
from .chat_writing import Chat, ChatWriter
from .durable import MemoryModule, Selector, read_state, write_state
from .episodic import EpisodicMemory
from .facts import Scope
from .lexical import Embedder, LexicalEmbedder
from .observations import names_in
from .profile import UserProfile
from .rationale import room_text
from .recollection import Item, Recollection, count_tokens, pack
from .semantic import SemanticMemory
from .similarity import QueryEmbedder
from .spatial import SpatialMemory
from .store import MemoryStore
from .temporal import TemporalMemory

MODULES = ("spatial", "temporal", "episodic", "semantic", "profile")
_FORMAT = "embodied_mem.lifelong_memory"
_MAX_CACHED = 256
_STORED_AS = "lifelong"
_STEP = {"op", "episode", "step", "time", "events"}
_NEEDED = {
    "begin": _STEP | {"task_id", "goal", "observation", "place"},
    "step": _STEP | {"action", "observation"},
    "tell": {"events"},
    "end": {"events"},
}


def place_of(first_observation: str) -> str:
    """A name for the room that a first observation describes, the same for the same furniture; "" if it names none."""
    names = sorted(names_in(room_text(first_observation)))
    return f"room-{zlib.crc32(', '.join(names).encode()):08x}" if len(names) > 1 else ""


class LifelongMemory:
    """The memories of one scope. No method takes a scope: what is in another one cannot be named.

    Attributes:
        spatial, temporal, episodic, semantic, profile: the modules; None for one that is switched off.
        writer: counts calls and failures of the chat model; None without one.
        episode, step, time: of the running task; the time goes up with every step of every task.
        goal, place: of the running task.
        store: where it is kept; None without a folder.
    """

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
            parallel: whether modules run in threads; None: only with a chat model.
            record: gets every event and must have `apply` called with it, and must see to forgetting; None for `apply`
                itself. `open` keeps the events in a folder.
        """
        self.scope = Scope() if scope is None else scope
        self._use = tuple(modules)
        if unknown := set(self._use) - set(MODULES):
            raise InvalidInputError(f"modules: expected some of {', '.join(MODULES)}, got {sorted(unknown)}")
        self.writer = None if chat is None else ChatWriter(chat)
        self._embedder = QueryEmbedder.of(LexicalEmbedder() if embedder is None else embedder)
        self._capacity, self._hops, self._counter = capacity, hops, counter
        self._parallel = chat is not None if parallel is None else parallel
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._record = self.apply if record is None else record
        self.store: MemoryStore | None = None
        self._set_modules(self._make())
        self._reset()

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike,
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
            InvalidInputError: another scope or other modules.
        """
        memory = cls(scope, **options)
        modules = {_STORED_AS: memory}
        memory.store = MemoryStore(
            directory, modules, scope=memory.scope, fsync=fsync, read_only=read_only, repair=repair
        )
        memory._record = functools.partial(memory.store.record, _STORED_AS)
        return memory

    def _make(self) -> dict[str, Any]:
        scope, embedder, writer = self.scope, self._embedder, self.writer
        makers: dict[str, Callable[[], Any]] = {
            "spatial": lambda: SpatialMemory(scope, extractor=None if writer is None else writer.facts),
            "temporal": lambda: TemporalMemory(
                scope, capacity=self._capacity, summarizer=None if writer is None else writer.summary
            ),
            "episodic": lambda: EpisodicMemory(scope, embedder=embedder),
            "semantic": lambda: SemanticMemory(scope, embedder=embedder, writer=writer),
            "profile": lambda: UserProfile(scope, embedder=embedder, writer=writer),
        }
        return {name: makers[name]() for name in MODULES if name in self._use}

    def _set_modules(self, modules: dict[str, MemoryModule]) -> None:
        self._modules: dict[str, Any] = modules
        self._shared: set[str] = set()  # modules that a fork has, too: whoever changes one takes a copy first
        self._cache: dict[tuple[str, str, str], list[Item]] = {}
        self._last: Recollection | None = None

    @property
    def spatial(self) -> SpatialMemory | None:
        return self._modules.get("spatial")

    @property
    def temporal(self) -> TemporalMemory | None:
        return self._modules.get("temporal")

    @property
    def episodic(self) -> EpisodicMemory | None:
        return self._modules.get("episodic")

    @property
    def semantic(self) -> SemanticMemory | None:
        return self._modules.get("semantic")

    @property
    def profile(self) -> UserProfile | None:
        return self._modules.get("profile")

    def _own(self, name: str) -> Any:
        """The module to change: not one that a fork has, too."""
        if name in self._shared:
            self._modules[name] = self._modules[name].fork()
            self._shared.discard(name)
        return self._modules[name]

    def _reset(self) -> None:
        self.goal, self.place = "", ""
        self.episode, self.step, self.time = -1, 0, 0
        self.running = False
        self._task_ids: list[str] = []
        self._turns: list[tuple[str, str]] = []

    # Changing.

    def begin_task(self, task_id: str, goal: str, observation: str, *, place: str | None = None) -> int:
        """Start a task and return its number, under which it is a source.

        Args:
            task_id: as the world calls it.
            goal: the instruction; what it tells about the user is noted.
            observation: what the agent sees at first.
            place: where it is played; None to name it by what the room looks like.
        """
        if self.running:
            raise InvalidInputError(f"begin_task: task {self._task_ids[-1]!r} has not ended; call end_task first")
        number, time = self.episode + 1, self.time + 1
        where = {"episode": number, "step": 0, "time": time}
        event = {"op": "begin", **where, "task_id": task_id, "goal": goal, "observation": observation}
        event["place"] = place_of(observation) if place is None else place
        proposals = {"spatial": lambda: self.spatial.propose(observation, **where)}
        proposals["profile"] = lambda: self.profile.propose(goal, **where)
        self._record({**event, "events": self._proposed(proposals)})
        return number

    def observe(self, action: str, observation: str) -> None:
        """Take note of what was done and what the world answered."""
        self._check_running("observe")
        where = {"episode": self.episode, "step": self.step + 1, "time": self.time + 1}
        proposals = {
            "spatial": lambda: self.spatial.propose(observation, action=action, **where),
            "temporal": lambda: self.temporal.propose(action, observation, **where),
        }
        event = {"op": "step", **where, "action": action, "observation": observation}
        self._record({**event, "events": self._proposed(proposals)})

    def tell(self, text: str) -> None:
        """Take note of what the user says, within a task or between tasks; before the first one the source is -1."""
        where = {"episode": self.episode, "step": self.step, "time": self.time}
        proposals = {"profile": lambda: self.profile.propose(text, **where)}
        self._record({"op": "tell", **where, "events": self._proposed(proposals)})

    def end_task(self, won: bool) -> None:
        """Finish the task; episodic and semantic memory learn from it."""
        self._check_running("end_task")
        episode = self.running_episode(won)
        where = {"number": self.episode, "time": self.time, "place": self.place}
        proposals = {
            "episodic": lambda: self.episodic.propose(episode, **where),
            "semantic": lambda: self.semantic.propose(episode, **where),
        }
        self._record({"op": "end", "time": self.time, "won": won, "events": self._proposed(proposals)})

    def replay(self, episode: Episode, *, place: str | None = None) -> int:
        """Remember a whole episode that was played before, and return its number."""
        number = self.begin_task(episode.task_id, episode.goal, episode.first_observation, place=place)
        answers = [step.observation for step in episode.steps[1:]] + [episode.final_observation]
        for step, answer in zip(episode.steps, answers):
            self.observe(step.action, answer)
        self.end_task(episode.won)
        return number

    def running_episode(self, won: bool = False) -> Episode:
        """The task so far as an episode."""
        texts = [text for _, text in self._turns]
        steps = tuple(Step(text, action) for text, (action, _) in zip(texts, self._turns[1:]))
        return Episode(self._task_ids[-1], self.goal, steps, won, texts[-1] if texts else "")

    def apply(self, event: Mapping[str, Any]) -> None:
        """Do what an event says. Raises InvalidInputError for an unknown event; nothing has changed then."""
        op, events = event.get("op"), event.get("events", {})
        if op not in _NEEDED:
            raise InvalidInputError(f"lifelong event: expected op begin, step, tell or end, got {op!r}")
        if unknown := set(events) - set(self._modules):
            raise InvalidInputError(f"lifelong event: expected modules {list(self._modules)}, got {sorted(unknown)}")
        if missing := _NEEDED[op] - event.keys():
            raise InvalidInputError(f"lifelong event: expected {sorted(missing)} in {op!r}, got {sorted(event)}")
        if op in ("begin", "step") and event["time"] < self.time:
            raise InvalidInputError(f"lifelong event: expected a time from {self.time} on, got {event['time']}")
        if op in ("begin", "step"):
            self.episode, self.step, self.time = event["episode"], event["step"], event["time"]
        if op == "begin":
            self.goal, self.place, self.running = event["goal"], event["place"], True
            self._task_ids.append(event["task_id"])
            self._turns = [("", event["observation"])]
            start = {"op": "begin", "episode": self.episode, "time": self.time}
            if self.spatial is not None:
                self.spatial.apply({**start, "place": self.place})
            if self.temporal is not None:
                self.temporal.apply(start)
        elif op == "step":
            self._turns.append((event["action"], event["observation"]))
        for name, change in events.items():
            self._own(name).apply(change)
        if op == "end":
            self.running, self._turns = False, []
        if op != "step":
            self._cache.clear()

    def _check_running(self, call: str) -> None:
        if not self.running:
            raise InvalidInputError(f"{call}: expected a running task; call begin_task first")

    def _proposed(self, proposals: Mapping[str, Callable[[], dict]]) -> dict[str, dict]:
        """The events of the modules that take part, made in parallel where that pays."""
        chosen = {name: propose for name, propose in proposals.items() if name in self._modules}
        events = dict(zip(chosen, self._run(list(chosen.values()))))
        return {name: event for name, event in events.items() if event.get("changes", True)}

    def _run(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        if not self._parallel or len(calls) < 2:
            return [call() for call in calls]
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(len(MODULES), "embodied_mem.memory")
        return [future.result() for future in [self._pool.submit(call) for call in calls]]

    def close(self) -> None:
        """Let go of threads and of the folder, if there are any."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        if self.store is not None:
            self.store.close()

    def __enter__(self) -> LifelongMemory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Reading.

    def retrieve(self, query: str | None = None, budget_tokens: int | None = None) -> Recollection:
        """What all modules remember that fits a query, within a budget.

        Args:
            query: None for the goal of the running task.
            budget_tokens: limit of the texts' tokens; None for none.
        """
        query = self.goal if query is None else query
        calls = {
            "spatial": lambda: self.spatial.retrieve(query, self._hops),
            "temporal": lambda: self.temporal.retrieve(query),
            "episodic": lambda: self._cached(
                "episodic", query, lambda: self.episodic.retrieve(query, place=self.place)
            ),
            "semantic": lambda: self._cached("semantic", query, lambda: self.semantic.retrieve(query)),
            "profile": lambda: self._cached("profile", query, lambda: self.profile.retrieve(query)),
        }
        found = self._run([calls[name] for name in self._modules])
        items = [item for some in found for item in some]
        self._last = pack(items, budget_tokens, query=query, counter=self._counter)
        return self._last

    def _cached(self, name: str, query: str, search: Callable[[], list[Item]]) -> list[Item]:
        """What changes with tasks only is searched once for each query of a task."""
        key = (name, query, self.place)
        found = self._cache.get(key)
        if found is None:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            found = self._cache[key] = search()
        return found

    def explain(self) -> str:
        """Why each item of the last retrieval was found, and what was left out for the budget."""
        return "nothing was asked yet" if self._last is None else self._last.explain()

    def task_id(self, episode: int) -> str:
        """The id of the task that a source names; empty if it was forgotten."""
        if not 0 <= episode < len(self._task_ids):
            raise InvalidInputError(f"episode: expected 0 to {len(self._task_ids) - 1}, got {episode}")
        return self._task_ids[episode]

    # Keeping.

    def state(self) -> bytes:
        """All that is remembered, as bytes: the task, then each module as a part."""
        own = {
            "scope": dataclasses.asdict(self.scope),
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
        return write_state(_FORMAT, own, *(module.state() for module in self._modules.values()))

    def restore(self, data: bytes) -> None:
        """Become what `state` returned. Raises InvalidInputError for other bytes; nothing has changed then."""
        own, parts = read_state(_FORMAT, data)
        mine = (dataclasses.asdict(self.scope), list(self._modules))
        if (own["scope"], own["modules"]) != mine:
            raise InvalidInputError(f"state: expected scope and modules {mine}, got {own['scope'], own['modules']}")
        modules = self._make()
        for module, part in zip(modules.values(), parts, strict=True):
            module.restore(part)
        self._set_modules(modules)
        self.goal, self.place, self.running = own["goal"], own["place"], own["running"]
        self.episode, self.step, self.time = own["episode"], own["step"], own["time"]
        self._task_ids = own["task_ids"]
        self._turns = [(action, text) for action, text in own["turns"]]

    def forget(
        self, *, user: str | None = None, object: str | None = None, episode: int | None = None
    ) -> dict[str, int]:
        """Remove a user, an object or an episode from everything, files included; how much of what was removed.

        `memory.store.forget(...)` does the same and says which files are gone.
        """
        if self.store is None:
            return self.remove(Selector(user, object, episode))
        return self.store.forget(user=user, object=object, episode=episode).removed[_STORED_AS]

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove what the selector names from this object, see `forget`.

        What the running task has seen of an object goes too; where the goal or a task's id names it, it is emptied.
        """
        receipt = {
            f"{name}.{what}": count
            for name in self._modules
            for what, count in self._own(name).remove(selector).items()
        }
        everything = selector.is_all_of(self.scope)
        turns = [turn for turn in self._turns if not any(map(selector.in_text, turn))]
        if everything or selector.episode == self.episode:
            turns = []
        receipt["turns"] = len(self._turns) - len(turns)
        self._turns = turns
        if everything or selector.in_text(self.goal) or selector.episode == self.episode:
            self.goal = ""
        if everything or selector.in_text(self.place):
            self.place = ""
        kept = [
            "" if everything or selector.in_text(task_id.replace("_", " ")) or selector.episode == number else task_id
            for number, task_id in enumerate(self._task_ids)
        ]
        receipt["task_ids"] = sum(a != b for a, b in zip(kept, self._task_ids))
        self._task_ids = kept
        self._cache.clear()
        self._last = None
        return receipt

    def fork(self) -> LifelongMemory:
        """An independent memory, in this process only, that starts as what this one is now.

        It costs no more for more facts: the graph shares what neither side changes, and a module that changes with
        tasks is copied when one side changes it first.
        """
        other = copy.copy(self)
        other.store, other._pool, other._record = None, None, other.apply
        self._shared = {name for name in self._modules if name not in ("spatial", "temporal")}
        other._shared = set(self._shared)
        other._modules = {
            name: module if name in self._shared else module.fork() for name, module in self._modules.items()
        }
        other._cache = dict(self._cache)
        other._task_ids, other._turns = list(self._task_ids), list(self._turns)
        return other

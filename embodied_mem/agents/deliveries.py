"""Deliveries of memory to the executor: one protocol, one class per compared method.

    delivery = make_delivery("compiled", compiler=compiler)
    delivery.begin(views)
    for each step: delivered = delivery.deliver(views, keys)

Every delivery gets the same retrieved experiences, and the same executor reads what it gives.

    none               nothing
    static             the experiences in a line each, in the prompt from the first step on
    static_full        the same, as whole trajectories (AMMI in the paper); as many as the executor's longest prompt has
                       room for. Executors trained here from scratch have never seen this format
    compiled           guidance and soft tokens compiled at every step from Brief State, observation and experiences
    compiled_text      the same without soft tokens (w/o Soft-Mem)
    compiled_chat      guidance by a chat model that nobody trained for it (`compiler.served_compiler`)
    compiled_no_brief  the same, the Brief State replaced by goal and action history (w/o Brief State)
    guidance_only      `compiled` without soft tokens, whose guidance is carried out word by word without the executor
    teacher            the guidance of the teacher that the compiler learned from: what it could reach
    mem0_2, ...        a registered memory method (`agents.method`) that has observed the bank's episodes; its text
                       stands in the prompt from the first step on, or with `_steps` behind the name is recalled at
                       every step
    lifelong_static, lifelong_compiled, ...
                       the same as without `lifelong_`, of the pool of a `LifelongMemory`, see `LifelongDelivery`
    memgen, ...        a registered delivery with weights of its own, see `experiments/baselines/memgen.py`
"""

from __future__ import annotations

import dataclasses
import functools
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from embodied_mem import registry
from embodied_mem.agents.citations import is_supported
from embodied_mem.agents.method import MemoryMethod, make_method, num_tokens
from embodied_mem.compiler.brief_state import apply_all
from embodied_mem.compiler.view import View, compile_prompt, render_experiences, render_trajectories, start_state
from embodied_mem.errors import InvalidInputError
from embodied_mem.memory import LifelongMemory
from embodied_mem.memory.pool import Pool, Reading
from embodied_mem.types import Episode

if TYPE_CHECKING:
    import jax

    from embodied_mem.compiler.executor import Executor
    from embodied_mem.compiler.memory_compiler import Compiled, MemoryCompiler
    from embodied_mem.compiler.served_compiler import ServedCompiler
    from embodied_mem.language.chat import ChatModel


@dataclasses.dataclass(frozen=True)
class Delivered:
    """The delivery of one row at one step.

    Attributes:
        memory: experiences in the executor's prompt.
        hint: guidance for this step.
        soft: float32[N, D] soft tokens, or None.
        tokens: read and written by the compiler, or by whoever answers a memory method's calls.
        record: the compiler's sample, for training and for explanations; None without a compiler.
        supported: whether the experience that the guidance names says so; None if it names none.
        made_up: whether it names one, and no experience of the episode says so.
        calls: of a memory method to a model, or to rules in its place.
    """

    memory: str = ""
    hint: str = ""
    soft: np.ndarray | None = None
    tokens: int = 0
    record: Compiled | None = None
    supported: bool | None = None
    made_up: bool = False
    calls: int = 0


class Delivery(Protocol):
    """A way of giving memory to the executor."""

    name: str

    def begin(self, views: Sequence[View]) -> None:
        """Prepares the state of episodes that start."""

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Return what each of these B running episodes gets at this step.

        `keys` holds their B keys first.
        """


class NoMemory:
    """Nothing is delivered."""

    name = "none"

    def begin(self, views: Sequence[View]) -> None:
        """Prepare nothing."""

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Empty deliveries."""
        return [Delivered()] * len(views)


class StaticInjection(NoMemory):
    """The experiences stand in the prompt from the first step to the last."""

    name = "static"

    def begin(self, views: Sequence[View]) -> None:
        """Renders the experiences once."""
        for view in views:
            view.state = Delivered(memory=view.memory)

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Return the same text at every step."""
        return [view.state for view in views]


class FullTrajectories(StaticInjection):
    """The trajectories themselves stand in the prompt from the first step to the last, see `render_trajectories`.

    Args:
        executor: whose longest prompt is filled but for `FOR_THE_REST` tokens.
    """

    name = "static_full"

    def __init__(self, executor: Executor):
        self._tokenizer = executor.tokenizer
        self._room = executor.length_buckets[-1] - FOR_THE_REST

    def begin(self, views: Sequence[View]) -> None:
        """Renders the trajectories once."""
        for view in views:
            view.state = Delivered(memory=render_trajectories(view.experiences, self._fits))

    def _fits(self, text: str) -> bool:
        return len(self._tokenizer.encode(text)) <= self._room


class MethodDelivery(NoMemory):
    """The lines that a memory method recalls, best first, that fit in as many of the executor's tokens as `static`
    fills in the same episode.

    Args:
        name: the method's, with `_steps` behind it where it recalls at every step.
        episodes: that it observes first, in this order. Who plays a task that one of these is of gets a method that
            has observed all others.
        executor: whose tokens are counted; a server's, without a tokenizer, are taken as four bytes each.
        numbered: lines begin with a number, as the experiences do that the models were trained on.
        chat: answers the method's calls; None for rules.
        task_key: what identifies the task behind an id, as of the bank.

    Attributes:
        observed: what observing cost, and what is kept, after 100, 1,000 and all episodes: {"episodes", "calls",
            "tokens_sent", "tokens_received", "texts", "text_bytes"}.
    """

    def __init__(
        self,
        name: str,
        episodes: Sequence[Episode],
        executor: Any,
        numbered: bool = False,
        chat: ChatModel | None = None,
        task_key: Callable[[str], str] = str,
    ):
        self.name, self._each_step, self._numbered = name, name.endswith(STEPS), numbered
        self._make = functools.partial(make_method, name.removesuffix(STEPS), chat)
        self._tokenizer = getattr(executor, "tokenizer", None)
        self._key, self._episodes = task_key, [(task_key(one.task_id), one) for one in episodes]
        self._tasks = {key for key, _ in self._episodes}
        self.method, self.observed = self._make(), list[dict[str, int]]()
        for number, (_, episode) in enumerate(self._episodes, 1):
            self.method.observe(episode)
            if number in (100, 1000, len(self._episodes)):
                self.observed.append({"episodes": number, **_grown(self.method)})

    def begin(self, views: Sequence[View]) -> None:
        """Recall nothing yet: the first step does, so that its time counts."""
        for view in views:
            key = self._key(view.task_id)
            view.state = self._without(key) if key in self._tasks else self.method, None

    def _without(self, task: str) -> MemoryMethod:
        method = self._make()
        for key, episode in self._episodes:
            if key != task:
                method.observe(episode)
        return method

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Return the text recalled once, or with `_each_step` for each newest observation."""
        delivered = []
        for view in views:
            method, recalled = view.state
            if recalled is None or self._each_step:
                recalled = self._recalled(method, view)
                view.state = method, dataclasses.replace(recalled, tokens=0, calls=0)  # paid for once
            delivered.append(recalled)
        return delivered

    def recalled(self, view: View) -> str:
        """Return the text for an episode that begins with this view."""
        return self._recalled(self.method, view).memory

    def _recalled(self, method: MemoryMethod, view: View) -> Delivered:
        calls, tokens = method.calls, sum(method.tokens)
        newest = view.turns[-1][1] if view.turns else ""
        left = self._num_tokens(render_experiences(view.experiences))
        lines: list[str] = []
        for line in method.recall(view.goal, view.first, newest):
            line = f"{len(lines) + 1} {line}" if self._numbered else line
            count = self._num_tokens(f"\n{line}" if lines else line)
            if count <= left:
                lines, left = [*lines, line], left - count
        return Delivered(
            memory="\n".join(lines) or "nothing",
            tokens=sum(method.tokens) - tokens, calls=method.calls - calls,
        )  # fmt: skip

    def _num_tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text)) if self._tokenizer else num_tokens(text)


def _grown(method: MemoryMethod) -> dict[str, int]:
    kept, (sent, received) = method.texts(), method.tokens
    size = sum(len(text.encode()) for text in kept)
    return {
        "calls": method.calls, "tokens_sent": sent, "tokens_received": received,
        "texts": len(kept), "text_bytes": size,
    }  # fmt: skip


class TeacherGuidance(NoMemory):
    """The guidance that a teacher gives, without soft tokens.

    Args:
        make_teacher: gives a fresh `training.teachers.lesson.Teacher` for an episode.
    """

    name = "teacher"

    def __init__(self, make_teacher: Callable[[], Any]):
        self._make = make_teacher

    def begin(self, views: Sequence[View]) -> None:
        """Begin with a teacher per episode."""
        for view in views:
            teacher = self._make()
            view.state = teacher, teacher.begin(view.goal, view.first, view.memories)

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Return what each teacher would have written."""
        for view in views:
            teacher, lesson = view.state
            if view.turns:
                view.state = teacher, teacher.next(*view.turns[-1], lesson.state)
        return [Delivered("", view.state[1].output.guidance) for view in views]


FOR_THE_REST = 384
"""Tokens of the longest prompt that whole trajectories leave for task, room, commands and answers. A running episode
that needs more loses the end of the memory, as any prompt that is too long loses its middle (`compiler.executor`)."""

GUIDANCE = ("subgoal", "place", "short", "command")
"""Amounts of guidance: what is to be done; also where, as the compiler writes it; the next command, by the rules
that carry out guidance, without the place that a thing is taken from, cleaned, heated or cooled with (`take mug 1`);
that command. All but the second are for executors that were not trained to read it. `guidance_only` carries out what
is said."""

SOFT_SETTINGS = ("intact", "swapped", "noise", "zero", "only")
"""Changes of soft tokens on their way: none; those of another row; noise of their own mean and spread; zeros;
`only`: the hint is left out. Joined by `+`: `only+swapped`."""


def check_soft(setting: str) -> frozenset[str]:
    """Return the parts of a soft setting.

    Raises:
        InvalidInputError: one is not among `SOFT_SETTINGS`, or two say what the values are.
    """
    parts = setting.split("+")
    if set(parts) - set(SOFT_SETTINGS) or len(set(parts) - {"only"}) > 1:
        raise InvalidInputError(
            f"soft setting: expected one of {', '.join(SOFT_SETTINGS)} or only+ one of them, got {setting!r}"
        )
    return frozenset(parts) - {"intact"}


class CompiledMemory:
    """The compiler reads the runtime state at every step and writes guidance, edits of the Brief State, soft tokens.

    Args:
        compiler: the model.
        soft: deliver soft tokens too.
        brief: keep a Brief State; without, the compiler reads goal and action history in its place.
        soft_setting: a control, see `SOFT_SETTINGS`.
        hint_tokens: so many tokens of the guidance reach the executor; None for all.
    """

    def __init__(
        self,
        compiler: MemoryCompiler | ServedCompiler,
        *,
        soft: bool = True,
        brief: bool = True,
        name: str = "compiled",
        soft_setting: str = "intact",
        hint_tokens: int | None = None,
    ):
        self.name = name
        self._compiler = compiler
        self._soft = soft and compiler.num_soft > 0
        self._brief = brief
        self._control = check_soft(soft_setting)
        self._hint_tokens = 0 if "only" in self._control else hint_tokens
        self._other: np.ndarray | None = None
        if self._hint_tokens is not None and compiler.tokenizer is None:
            raise InvalidInputError(f"delivery {name!r}: expected all tokens of its hints, whose tokens nobody knows")

    def begin(self, views: Sequence[View]) -> None:
        """Start Brief States with the goal, and the room as a fact."""
        for view in views:
            view.state = start_state(view.goal, view.room)

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Compiles one step for every row and applies the edits."""
        prompts = [compile_prompt(view, self._brief) for view in views]
        shown: dict[str, Any] = {}
        if any(view.images or view.remembered for view in views):
            shown["pictures"] = [(*view.remembered, *view.images) for view in views]
        compiled = self._compiler.compile(prompts, keys, soft=self._soft, **shown)
        delivered = []
        for view, record in zip(views, compiled):
            view.state, refused = apply_all(record.output.edits, view.state)
            guidance = record.output.guidance
            record = dataclasses.replace(record, refused_edits=refused)
            soft = record.soft if guidance and self._soft else None
            hint = guidance
            if self._hint_tokens is not None and (tokenizer := self._compiler.tokenizer) is not None:
                hint = tokenizer.cut(guidance, self._hint_tokens)
            supported = is_supported(record.output, view)
            made_up = is_supported(record.output, view, by_any=True) is False
            delivered.append(Delivered("", hint, soft, record.num_tokens, record, supported, made_up))
        return self._controlled(delivered)

    def _controlled(self, delivered: list[Delivered]) -> list[Delivered]:
        """Replace the deliveries' soft tokens as the control says."""
        rows = [i for i, one in enumerate(delivered) if one.soft is not None]
        values = [np.asarray(delivered[i].soft) for i in rows]
        if not values or not self._control - {"only"}:
            return delivered
        if "zero" in self._control:
            replaced = [np.zeros_like(value) for value in values]
        elif "noise" in self._control:
            replaced = [
                np.random.default_rng(zlib.crc32(value.tobytes())).normal(value.mean(), value.std(), value.shape)
                for value in values
            ]
        else:  # a row alone gets what another one had before
            before = values[0] if self._other is None else self._other
            replaced = [*values[1:], values[0] if len(values) > 1 else before]
            self._other = values[0] if len(values) > 1 else self._other
        for i, value in zip(rows, replaced):
            delivered[i] = dataclasses.replace(delivered[i], soft=value.astype(np.float32))
        return delivered


class LifelongDelivery:
    """Another delivery, of the pool of a lifelong memory.

    Where trajectories alone are read, the pool is that of the start. Else each episode is lived in a fork of the
    memory: every answer is observed, and the pool is retrieved again where memory changed or the Brief State moved on.

    Args:
        inner: gives what the pool says.
        memory: of an episode that begins, or its pool if that of the start is all that is read; or the one of all
            episodes.
        reading: what is read of it.
        task_key: what identifies the task behind an id; nothing of an episode's own task is in its pool.
    """

    def __init__(
        self,
        inner: Delivery,
        memory: LifelongMemory | Callable[[View], LifelongMemory | Pool],
        reading: Reading,
        task_key: Callable[[str], str] = str,
    ):
        self.name = LIFELONG + inner.name
        self._inner, self._memory, self._reading, self._key = inner, memory, reading, task_key
        self._lives = not set(reading.kinds) <= {"experience", "failure"}
        self._running: list[tuple[View, LifelongMemory]] = []

    def begin(self, views: Sequence[View]) -> None:
        """Retrieves the pools, and begins the tasks in forks."""
        for view in views:
            memory = self._memory if isinstance(self._memory, LifelongMemory) else self._memory(view)
            if isinstance(memory, Pool):
                view.pool, view.experiences = memory, memory.experiences
                continue
            if self._lives:
                memory = memory.fork()
                memory.begin_task(view.task_id, view.goal, view.first)
                self._running.append((view, memory))
            self._read(view, memory)
        self._inner.begin(views)

    def _read(self, view: View, memory: LifelongMemory, about: str = "") -> None:
        exclude = (view.task_id,) if view.task_id else ()
        view.pool = memory.pool_of(view.goal, view.first, self._reading, about, exclude, self._key)
        view.experiences = view.pool.experiences

    def deliver(self, views: Sequence[View], keys: jax.Array) -> list[Delivered]:
        """Observes the newest answers, then delivers what the pools say."""
        self._running = [pair for pair in self._running if any(pair[0] is view for view in views)]
        for view, memory in self._running:
            for action, answer in view.turns[memory.step :]:
                memory.observe(action, answer)
            self._read(view, memory, getattr(view.state, "current", ""))
        return self._inner.deliver(views, keys)


STEPS = "_steps"
LIFELONG = "lifelong_"
CHAT = "compiled_chat"

BUILT_IN = (
    "none", "static", "static_full", "compiled", "compiled_text", CHAT, "compiled_no_brief", "guidance_only",
    "teacher", "lifelong_teacher", "lifelong_static", "lifelong_compiled", "lifelong_compiled_text", LIFELONG + CHAT,
    "lifelong_compiled_no_brief",
)  # fmt: skip


def delivery_names() -> tuple[str, ...]:
    """Return the names of all deliveries, registered ones last."""
    return *BUILT_IN, *registry.names("deliveries"), *method_deliveries()


def method_deliveries() -> tuple[str, ...]:
    """Return the names of deliveries by memory methods."""
    methods = registry.names("methods")
    return *methods, *(name + STEPS for name in methods)


def make_delivery(
    name: str,
    compiler: MemoryCompiler | ServedCompiler | None = None,
    *,
    soft: str = "intact",
    hint_tokens: int | None = None,
    teacher: Callable[[], Any] | None = None,
    executor: Executor | None = None,
    episodes: Sequence[Episode] = (),
    numbered: bool = False,
    chat: ChatModel | None = None,
    task_key: Callable[[str], str] = str,
    registered: Callable[[str, Executor], Delivery] | None = None,
    memory: LifelongMemory | Callable[[View], LifelongMemory | Pool] | None = None,
    reading: Reading | None = None,
) -> Delivery:
    """Make the delivery called `name`.

    The `compiler` of `compiled_chat` is a served one. `memory` and `reading` are for those of a lifelong memory, see
    `LifelongDelivery`.
    `soft` and `hint_tokens` are for those that compile, see `CompiledMemory`, and `episodes`, `numbered`, `chat` and
    `task_key` for memory methods, see `MethodDelivery`; `registered` makes a registered one for an executor.

    Raises:
        InvalidInputError: no such delivery (the message lists them), or it needs a compiler, a teacher or an executor
            and none is given.
    """
    check_names((name,))
    if name.startswith(LIFELONG):
        if memory is None:
            raise InvalidInputError(f"delivery {name!r}: expected a lifelong memory, got none")
        inner = make_delivery(
            name.removeprefix(LIFELONG), compiler, soft=soft, hint_tokens=hint_tokens, teacher=teacher
        )
        return LifelongDelivery(inner, memory, reading or Reading(), task_key)
    if name in method_deliveries():
        return MethodDelivery(name, episodes, executor, numbered, chat, task_key)
    if name not in BUILT_IN:
        if registered is None or executor is None:
            raise InvalidInputError(f"delivery {name!r}: expected an executor with weights of it, got none")
        return registered(name, executor)
    if name == "static_full":
        if executor is None:
            raise InvalidInputError("delivery 'static_full': expected an executor, got none")
        return FullTrajectories(executor)
    if name == "teacher":
        if teacher is None:
            raise InvalidInputError("delivery 'teacher': expected a teacher, got none")
        return TeacherGuidance(teacher)
    if name in ("none", "static"):
        return NoMemory() if name == "none" else StaticInjection()
    if compiler is None:
        raise InvalidInputError(f"delivery {name!r}: expected a compiler, got none")
    return CompiledMemory(
        compiler, soft=name not in ("compiled_text", CHAT, "guidance_only"), brief=name != "compiled_no_brief",
        name=name, soft_setting=soft, hint_tokens=hint_tokens,
    )  # fmt: skip


def check_names(names: Sequence[str]) -> None:
    """Raise InvalidInputError for a name that is no delivery.

    The message lists the deliveries.
    """
    for name in names:
        if name not in delivery_names():
            known = ", ".join(delivery_names())
            raise InvalidInputError(f"delivery: expected one of {known}, got {name!r}{registry.hint(name)}")

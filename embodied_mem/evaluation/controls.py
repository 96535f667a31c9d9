"""Controls: what a delivery is worth under another bank, with other soft tokens, with less of its guidance.

    rows = settings_of(("none", "compiled"), banks=("committed", "empty"), soft=("intact", "swapped"))
    delivery, bank, executor = under(rows[2], executor, compiler, bank, source=source)

For every gain there is a control that should make it vanish.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from embodied_mem.agents.deliveries import (
    CHAT,
    GUIDANCE,
    LIFELONG,
    SOFT_SETTINGS,
    Delivery,
    check_names,
    check_soft,
    make_delivery,
    method_deliveries,
)
from embodied_mem.agents.method import row_name
from embodied_mem.agents.task_pools import TaskPools
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import option
from embodied_mem.memory import Experiences, LifelongMemory
from embodied_mem.memory.bank import NAMES, BankView, check_setting
from embodied_mem.memory.lifelong import replay
from embodied_mem.memory.pool import Reading
from embodied_mem.types import Episode

if TYPE_CHECKING:
    from embodied_mem.compiler.executor import Acts, Turn
    from embodied_mem.compiler.memory_compiler import MemoryCompiler
    from embodied_mem.compiler.served_compiler import ServedCompiler
    from embodied_mem.language.chat import ChatModel
    from embodied_mem.training.teachers.lesson import TaskSource


DECODING = ("free", "admissible")
"""The executor writes any text, or one of the commands that the world admits."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ControlOptions:
    """Options of benchmarks that play deliveries under controls; each field says so itself."""

    bank: tuple[str, ...] = option(
        ("committed",), f"of deliveries: what the bank gives, one or several of {', '.join(NAMES)}"
    )
    soft: tuple[str, ...] = option(
        ("intact",), f"of deliveries: what becomes of soft tokens, of {', '.join(SOFT_SETTINGS)}, only+swapped, ..."
    )
    hint_tokens: tuple[int, ...] = option(
        (), "of deliveries: tokens of guidance that reach the executor; default all", kind=int
    )


@dataclasses.dataclass(frozen=True)
class Setting:
    """A delivery under the settings of a control.

    Attributes:
        delivery: its name.
        bank: see `memory.bank.settings`.
        soft: see `agents.deliveries.SOFT_SETTINGS`.
        hint_tokens: so many tokens of the guidance reach the executor; None for all.
        name: of its row.
        guidance: see `agents.deliveries.GUIDANCE`.
        decoding: see `DECODING`.
    """

    delivery: str
    bank: str = "committed"
    soft: str = "intact"
    hint_tokens: int | None = None
    name: str = ""
    guidance: str = "place"
    decoding: str = "free"

    def __post_init__(self) -> None:
        check_names((self.delivery,))
        check_setting(self.bank)
        check_soft(self.soft)
        if self.guidance not in GUIDANCE:
            raise InvalidInputError(f"guidance: expected one of {', '.join(GUIDANCE)}, got {self.guidance!r}")
        if self.decoding not in DECODING:
            raise InvalidInputError(f"decoding: expected one of {', '.join(DECODING)}, got {self.decoding!r}")
        object.__setattr__(self, "name", self.name or _row(self.delivery))


def _is_method(delivery: str) -> bool:
    return delivery in method_deliveries()


def _row(delivery: str) -> str:
    return row_name(delivery) if _is_method(delivery) else delivery


def settings_of(
    deliveries: Sequence[str],
    banks: Sequence[str] = ("committed",),
    soft: Sequence[str] = ("intact",),
    hint_tokens: Sequence[int | None] = (None,),
    guidance: Sequence[str] = ("place",),
    decoding: Sequence[str] = ("free",),
    memory_model: bool = False,
) -> list[Setting]:
    """Return the rows of a study: each delivery, and its controls.

    A delivery has a row with the first value of everything; those that are studied have one with each other value.
    These are `static`, `static_full` and memory methods under other banks, `compiled` under everything,
    `compiled_text` with other hints and guidance, `compiled_chat`, `guidance_only` and `teacher` with other guidance,
    and all that have an executor with other decoding. The first row of a delivery has its name; the others say what
    differs, as `compiled bank=empty`. That of a memory method says that rules answer its calls, unless a `memory_model`
    does.
    """
    rows = []
    for delivery in deliveries:
        name = delivery if memory_model else _row(delivery)
        base = Setting(delivery, banks[0], soft[0], hint_tokens[0], name, guidance[0], decoding[0])
        rows.append(base)
        changes: list[dict[str, Any]] = []
        if delivery in ("static", "static_full", "compiled") or _is_method(delivery):
            changes += [{"bank": bank} for bank in banks[1:]]
        if delivery == "compiled":
            changes += [{"soft": setting} for setting in soft[1:]]
        if delivery in ("compiled", "compiled_text"):
            changes += [{"hint_tokens": count} for count in hint_tokens[1:]]
        if delivery in ("compiled", "compiled_text", CHAT, "guidance_only", "teacher"):
            changes += [{"guidance": level} for level in guidance[1:]]
        if delivery != "guidance_only":
            changes += [{"decoding": one} for one in decoding[1:]]
        for change in changes:
            [(field, value)] = change.items()
            rows.append(dataclasses.replace(base, **change, name=f"{name} {field}={value}"))
    return rows


def is_bank_read(settings: Iterable[Setting]) -> bool:
    """Return whether a row's delivery reads the memory bank: any but `none`."""
    return any(setting.delivery != "none" for setting in settings)


def under(
    setting: Setting,
    executor: Any,
    compiler: MemoryCompiler | None,
    bank: Experiences | TaskPools,
    *,
    source: TaskSource | None = None,
    numbered: bool = False,
    newest_first: bool = False,
    chat: ChatModel | None = None,
    registered: Callable[[str, Any], Delivery] | None = None,
    reading: Reading | None = None,
    served: ServedCompiler | None = None,
) -> tuple[Delivery, BankView | TaskPools, Any]:
    """(delivery, bank, executor) of a row.

    Args:
        setting: of the row.
        executor: that acts, where it is not the guidance itself that is carried out.
        compiler: of deliveries that compile.
        bank: as committed.
        source: of the tasks, for the deliveries `teacher` and `guidance_only`.
        numbered, newest_first: as the experiences were that the models were trained on.
        chat: answers the calls of memory methods; None for rules.
        registered: see `make_delivery`.
        reading: what is read of a lifelong memory, which has lived the episodes of the bank.
        served: compiles for `compiled_chat`.

    Raises:
        InvalidInputError: nothing there can carry out guidance, or gives the teacher's.
    """
    view = bank.under((setting.bank,), numbered=numbered, newest_first=newest_first)
    delivery = make_delivery(
        setting.delivery, served if setting.delivery.endswith(CHAT) else compiler, soft=setting.soft,
        hint_tokens=setting.hint_tokens,
        teacher=source.teacher if source else None, executor=executor,
        episodes=view.episodes() if _is_method(setting.delivery) else (), numbered=numbered, chat=chat,
        task_key=bank.task_key, registered=registered, reading=reading,
        memory=view.memory_of(_live) if setting.delivery.startswith(LIFELONG) else None,
    )  # fmt: skip
    if setting.delivery == "guidance_only" or setting.guidance != "place":
        follower = source.follower() if source is not None and hasattr(source, "follower") else None
        if follower is None:
            raise InvalidInputError(f"{setting.name!r}: nothing in this world carries out guidance by rule")
        if setting.delivery == "guidance_only":
            executor = follower.at(setting.guidance)
        else:
            executor = _Reworded(executor, follower, setting.guidance)
    return delivery, view, executor


def _live(episodes: Iterable[Episode]) -> LifelongMemory:
    """Make a lifelong memory of episodes."""
    memory = LifelongMemory()
    for episode in episodes:
        replay(memory, episode)
    return memory


class _Reworded:
    """An executor that reads as much of the guidance as a level says."""

    def __init__(self, executor: Acts, follower: Any, level: str):
        self._executor, self._follower, self._level = executor, follower, level

    def act(self, prompts: Sequence[str], keys: Any, soft: Any = None, **more: Any) -> Turn:
        told = [self._follower.reworded(one, self._level) for one in prompts]
        return self._executor.act(told, keys, soft, **more)

"""Options of benchmarks that may ask a chat model: which one, its recording, its price and its budget.

@dataclasses.dataclass(frozen=True)
class MyConfig(ChatOptions): ...

model = chat_model(config, "--agents react")      # a server, a recording in front of it, or a recording alone
report |= usage_of(model)
memory = other_model(config, "memory_model")      # at the same server, recorded beside it; None where none is named
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from embodied_mem.agents.deliveries import CHAT
from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import check_least, episodes_of, option
from embodied_mem.evaluation.tables import markdown
from embodied_mem.language.chat import ChatModel, Prices
from embodied_mem.language.seats import COUNTS, SEATS

if TYPE_CHECKING:
    from embodied_mem.compiler.served_compiler import ServedCompiler

CHAT_AGENT = "chat_planner_critic"
"""Planner, critic and preprocessor are a chat model that is told the world's skills."""


OTHER_MODELS = ("memory_model", "perceiver_model", "compiler_model")
"""Options that name a model beside the first, and the keys of its cost in a report."""


def chat_agents(agents: Iterable[str]) -> dict[str, str]:
    """Name the chat agents, each with the rule agent of its parts."""
    return {CHAT_AGENT if name == "full" else f"chat_{name}": name for name in agents}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """Which chat model is asked; each field says so itself."""

    server: str = option("", "of whoever asks a chat model: base URL of an OpenAI-compatible server")
    model: str = option("", "the chat model's name")
    record: str = option("", "file that its answers are written to and read from; alone, nobody is asked")
    prices: tuple[float, ...] = option((), "of a million tokens sent, and received, in any one currency", kind=float)
    max_total_tokens: int | None = option(None, "budget of the chat model; at its end the command ends", kind=int)
    max_cost: float | None = option(None, "budget in the currency of --prices", kind=float)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeatOptions(ChatOptions):
    """Options of benchmarks where further models may sit at the same server; each field says so itself."""

    memory_model: str = option(
        "", "a chat model at --server, or in --record and .memory, that writes the memory of chat agents and answers "
        "the calls of memory methods; default: rules",
    )  # fmt: skip
    perceiver_model: str = option(
        "", "a chat model at --server, or in --record and .perceiver, that looks at each answer's text and pictures: "
        "what it sees is all that the memory of chat agents knows; default: rules read the text",
    )  # fmt: skip
    compiler_model: str = option(
        "", "a chat model at --server, or in --record and .compiler, that compiles for the delivery compiled_chat"
    )
    parallel: int = option(1, "of chat agents: episodes side by side; each life of an agent is one after the other")


def chat_model(config: ChatOptions, asking: str, extra_body: Mapping[str, Any] | None = None) -> ChatModel:
    """Return the model that is asked.

    Args:
        config: names it.
        asking: the options that ask for it, for errors.
        extra_body: as `OpenAIChatModel`.

    Raises:
        InvalidInputError: neither a server nor a recording is named, or no model, or prices that are not two.
    """
    from embodied_mem.language import OpenAIChatModel, RecordedChatModel

    if not (config.server or config.record) or not config.model:
        raise InvalidInputError(f"{asking}: expected --model, and --server or --record, or both; it asks a model")
    if len(config.prices) not in (0, 2):
        raise InvalidInputError(f"--prices: expected two numbers, for tokens sent and received, got {config.prices}")
    prices = Prices(*config.prices) if config.prices else None
    model: ChatModel | None = None
    if config.server:
        model = OpenAIChatModel(
            config.server, config.model, prices={config.model: prices} if prices else None,
            max_total_tokens=config.max_total_tokens, max_cost=config.max_cost, extra_body=dict(extra_body or {}),
        )  # fmt: skip
    if not config.record:
        assert model is not None
        return model
    return RecordedChatModel(model, config.record, name=config.model, prices=prices)


def other_model(config: ChatOptions, name: str) -> ChatModel | None:
    """Return the model of the option `name`; None where it is empty.

    It is asked at the same server and recorded beside `--record`.
    """
    if not (model := getattr(config, name)):
        return None
    own = {field.name: getattr(config, field.name) for field in dataclasses.fields(ChatOptions)}
    record = f"{config.record}.{name.removesuffix('_model')}" if config.record else ""
    return chat_model(ChatOptions(**own | {"model": model, "record": record}), f"--{name}")


def served_compiler(config: Any, temperature: float, max_parallel: int) -> ServedCompiler | None:
    """Return who compiles for `compiled_chat`; None where nobody does.

    Raises:
        InvalidInputError: the delivery is named and no model is, or the other way round.
    """
    from embodied_mem.compiler.served_compiler import ServedCompiler

    is_played = any(name.endswith(CHAT) for name in config.deliveries)
    if is_played != bool(config.compiler_model):
        raise InvalidInputError(f"--compiler_model: expected it with --deliveries {CHAT}, and not without")
    chat = other_model(config, "compiler_model")
    return ServedCompiler(chat, temperature=temperature, max_parallel=max_parallel) if chat else None


def check_parallel(config: Any) -> None:
    """Refuse episodes side by side that would mix in a trace.

    Raises:
        InvalidInputError: also for fewer than one.
    """
    check_least(config, parallel=1)
    if config.parallel > 1 and config.trace:
        raise InvalidInputError(f"--parallel: expected 1 with --trace, got {config.parallel}; steps would be mixed")


def usage_of(model: ChatModel | None) -> dict[str, Any]:
    """Return a report's part on the model: its name and usage.

    It is empty where no agent asks one.
    """
    return {"chat_model": model.name, "usage": model.meter.to_json()} if model is not None else {}


def usage_line(report: Mapping[str, Any]) -> str:
    """Return the cost of a report in words; empty without a model."""
    if "usage" not in report:
        return ""
    use = report["usage"]
    line = f"Chat model {report['chat_model']}: {use['calls']} calls, {use['replayed']} of them from the recording; "
    line += f"{use['prompt_tokens']:,} tokens sent, {use['completion_tokens']:,} received; cost {use['cost']:.4g}"
    config = report.get("config", {})
    limits = [
        f"{config[name]:,} {what}"
        for name, what in (("max_total_tokens", "tokens"), ("max_cost", ""))
        if config.get(name)
    ]
    return f"{line}; {use['malformed']} malformed, {use['failed']} failed" + (
        f"; budget {', '.join(limits)}" if limits else ""
    )


def seat_table(report: Mapping[str, Any]) -> str:
    """Tabulate what each seat costs per task; empty without chat agents."""
    episodes = [one for one in episodes_of(report) if f"{SEATS[0]}_calls" in one.more] if "episodes" in report else []
    lines = []
    for agent in dict.fromkeys(one.agent for one in episodes):
        own = [one for one in episodes if one.agent == agent]
        for seat in SEATS:
            means = {count: sum(one.count(f"{seat}_{count}") for one in own) / len(own) for count in COUNTS}
            if means["calls"] or means["failed"]:
                cells = [f"{means['calls']:.1f}", f"{means['tokens']:.0f}", f"{means['ms'] / 1000:.1f}"]
                lines.append([agent, seat, *cells, f"{means['failed']:.1f}"])
    head = ["agent", "seat", "calls/task", "tokens/task", "seconds/task", "failed/task"]
    return markdown(head, lines) if lines else ""

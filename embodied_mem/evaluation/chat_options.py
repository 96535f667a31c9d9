"""Options of benchmarks that may ask a chat model: which one, its recording, its price and its budget.

@dataclasses.dataclass(frozen=True)
class MyConfig(ChatOptions): ...

model = chat_model(config, "--agents react")      # a server, a recording in front of it, or a recording alone
report |= usage_of(model)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from embodied_mem.errors import InvalidInputError
from embodied_mem.evaluation.benchmark import option
from embodied_mem.language.chat import ChatModel, Prices

CHAT_AGENT = "chat_planner_critic"
"""Planner, critic and preprocessor are a chat model that is told the world's skills."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChatOptions:
    """Which chat model is asked; each field says so itself."""

    server: str = option("", "of whoever asks a chat model: base URL of an OpenAI-compatible server")
    model: str = option("", "the chat model's name")
    record: str = option("", "file that its answers are written to and read from; alone, nobody is asked")
    prices: tuple[float, ...] = option((), "of a million tokens sent, and received, in any one currency", kind=float)
    max_total_tokens: int | None = option(None, "budget of the chat model; at its end the command ends", kind=int)
    max_cost: float | None = option(None, "budget in the currency of --prices", kind=float)


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


def usage_of(model: ChatModel | None) -> dict[str, Any]:
    """Return what a report says of the model: its name and what it was asked; nothing where no agent asks one."""
    return {"chat_model": model.name, "usage": model.meter.to_json()} if model is not None else {}


def usage_line(report: Mapping[str, Any]) -> str:
    """Return the cost of a report in words; empty where no model was asked."""
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

"""Text of a world to a chat model, and a model's reply to a command: shared by the doors for RL frameworks."""

from __future__ import annotations

import re
import string
from typing import Any

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\s*```\w*\s*")

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

SYSTEM_PROMPT = "You act in a text world. End your answer with a line that is one of the commands possible now."


def command_of(reply: str) -> str:
    """Find a reply's command: the last `<action>…</action>`, else the last line.

    The last line is the last that is not blank. Thoughts are left out: `<think>…</think>`, one without its end, and one
    that the chat template began.
    """
    text = _THOUGHT.sub("", _after_thoughts(reply))
    tags = text.translate(_LOWER)
    end = tags.rfind("</action>")
    start = tags.rfind("<action>", 0, end if end >= 0 else len(tags))
    if start >= 0:
        command = text[start + len("<action>") : end if end > start else len(text)]
        if command.strip():
            return " ".join(command.split())
        text = text[end + len("</action>") :]
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _FENCE.fullmatch(line)]
    return lines[-1] if lines else ""


def _after_thoughts(reply: str) -> str:
    end = reply.translate(_LOWER).rfind("</think>")
    return reply[end + len("</think>") :] if end >= 0 else reply


def prompt_of(text: str, info: dict[str, Any]) -> str:
    """Write an observation with the possible commands, where the world lists them."""
    commands = info.get("admissible_commands")
    return text if not commands else f"{text}\nPossible now: {', '.join(commands)}"

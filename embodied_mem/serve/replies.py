"""Text of a world to a chat model, and a model's reply to a command: shared by the doors for RL frameworks."""

from __future__ import annotations

import re
import string
from typing import Any

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)

SYSTEM_PROMPT = "You act in a text world. End your answer with a line that is one of the commands possible now."


def command_of(reply: str) -> str:
    """Find the command of a reply: the last `<action>…</action>`, else the last line that is not blank.

    Thoughts (`<think>…</think>`, also unfinished ones) are left out.
    """
    text = _THOUGHT.sub("", reply)
    tags = text.translate(_LOWER)
    end = tags.rfind("</action>")
    if end >= 0 and (start := tags.rfind("<action>", 0, end)) >= 0:
        return " ".join(text[start + len("<action>") : end].split())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def prompt_of(text: str, info: dict[str, Any]) -> str:
    """Write an observation with the commands that are possible now, where the world lists them."""
    commands = info.get("admissible_commands")
    return text if not commands else f"{text}\nPossible now: {', '.join(commands)}"

"""An executor that does what the hint says, word by word, and reads nothing else but where it stands.

    turn = Follower().act(prompts, keys)
    turn = Follower().at("short").act(prompts, keys)       # of a hint that says less, or other things
    prompt = Follower().reworded(prompt, "command")        # the hint says the next command

What is a command already, as of compilers that learned to say commands, is given as it is.

A control: if a trained executor is not better than this one, it adds nothing to the guidance. The same rules reword
guidance for executors that have never seen it: less of it, or all of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from embodied_mem.compiler.executor import Turn
from embodied_mem.worlds.alfworld.wording.text import put_command

_LINE = re.compile(r"^(at|hint): (.*)$", re.MULTILINE)
_HINT = re.compile(r"^hint: (.*)$", re.MULTILINE)
_PLACE = re.compile(r" (?:in|from|with) [a-z]+ \d+$")
_LEFT_OUT = re.compile(r" (?:from|with) [a-z]+ \d+$")
_COMMAND = re.compile(
    r"(?=.*\d\Z)(?:go to|open|close|examine|use|move .+ to|put .+ in/on) .*|look|inventory", re.DOTALL
)
_PLACED = re.compile(r"(?P<verb>\w+) (?P<thing>.+?) (?:in|from|with) (?P<place>[a-z]+ \d+)")


class Follower:
    """`compiler.executor.Executor` by one rule per verb of the guidance; without a hint it looks.

    Args:
        grammar: wording of commands.
        level: of `agents.deliveries.GUIDANCE`, what the hint says.
    """

    def __init__(self, grammar: str = "0.4", level: str = "place"):
        self._grammar, self._level = grammar, level

    def at(self, level: str) -> Follower:
        """Return a follower of hints at a level of guidance."""
        return Follower(self._grammar, level)

    def act(self, prompts: Sequence[str], keys: Any, soft: Any = None, **ignored: Any) -> Turn:
        """Return one command per prompt; no tokens are counted."""
        said = [self.reworded(prompt, self._level) for prompt in prompts]
        if self._level in ("short", "command"):
            hints = [_HINT.search(prompt) for prompt in said]
            commands = ["look" if hint is None else hint[1] for hint in hints]
        else:
            commands = [self._command(prompt) for prompt in said]
        return Turn(commands, [0] * len(prompts), [0] * len(prompts))

    def reworded(self, prompt: str, level: str) -> str:
        """Cut a prompt's hint to a level of `agents.deliveries.GUIDANCE`."""
        found = _HINT.search(prompt)
        if found is None or level == "place":
            return prompt
        if level == "subgoal":
            said = _PLACE.sub("", found[1])
        else:
            said = self._command(prompt)
            said = said if level == "command" else _LEFT_OUT.sub("", said)
        return f"{prompt[: found.start(1)]}{said}{prompt[found.end(1) :]}"

    def _command(self, prompt: str) -> str:
        lines: dict[str, str] = dict(_LINE.findall(prompt))
        hint, here = lines.get("hint", ""), lines.get("at", "")
        if hint.startswith("put down ") and here:
            return put_command(hint.removeprefix("put down "), here, self._grammar)
        told = _PLACED.fullmatch(hint)
        if not told:
            return hint if _COMMAND.fullmatch(hint) else "look"
        verb, thing, place = told["verb"], told["thing"], told["place"]
        if place != here:
            return f"go to {place}"
        if f"The {place} is closed." in prompt and f"> open {place}" not in prompt.rpartition("is closed.")[2]:
            return f"open {place}"
        if verb == "put":
            return put_command(thing, place, self._grammar)
        return {"find": f"examine {place}", "use": f"use {thing}"}.get(verb) or hint

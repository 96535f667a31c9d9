"""Skills: what a robot or a world can be asked to do, as planners are told and as commands are worded.

    take = Skill("take", ("thing", "place"), "Takes a thing.", ("being at {place}",), "take {thing} from {place}")
    take.command({"thing": "mug 1", "place": "desk 1"})        # "take mug 1 from desk 1"
    read_command([take], "take mug 1 from desk 1")             # Call("take", {"thing": "mug 1", "place": "desk 1"})

Source: RoboMemory, table 3.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import string
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from embodied_mem.errors import InvalidInputError

_NAME = re.compile(r"[A-Za-z_]\w{0,63}")


class Call(NamedTuple):
    """A skill with its arguments, by their names."""

    skill: str
    arguments: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Skill:
    """One thing that can be done.

    Attributes:
        name: a word.
        arguments: their names, words too.
        description: what it does and what it answers, one or two sentences.
        preconditions: what must hold before, in words; arguments in braces.
        wording: of its command, with every argument in braces; empty for `name(argument, ...)`.
    """

    name: str
    arguments: tuple[str, ...] = ()
    description: str = ""
    preconditions: tuple[str, ...] = ()
    wording: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.arguments, str):
            raise InvalidInputError(f"skill {self.name}: expected a tuple of arguments, got {self.arguments!r}")
        for word in (self.name, *self.arguments):
            if not _NAME.fullmatch(word):
                raise InvalidInputError(f"skill {self.name!r}: expected words as names, got {word!r}")
        if {"skill", "why"}.intersection(self.arguments) or len(set(self.arguments)) < len(self.arguments):
            raise InvalidInputError(
                f"skill {self.name}: expected arguments with names of their own, none of them `skill` or `why`, "
                f"got {', '.join(self.arguments)}"
            )
        for text in (self._wording, *self.preconditions):
            named = [field for _, field, _, _ in string.Formatter().parse(text) if field is not None]
            expected = sorted(self.arguments)
            if set(named) - set(expected) or (text == self._wording and sorted(named) != expected):
                raise InvalidInputError(
                    f"skill {self.name}: expected the arguments {expected} in {text!r}, got {named}"
                )

    @property
    def _wording(self) -> str:
        return self.wording or f"{self.name}({', '.join(f'{{{argument}}}' for argument in self.arguments)})"

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = string.Formatter().parse(self._wording)
        return re.compile(
            "".join(re.escape(text) + (f"(?P<{field}>.+?)" if field else "") for text, field, _, _ in parts)
        )

    def command(self, arguments: Mapping[str, str]) -> str:
        """Return the command that asks for it.

        Raises:
            InvalidInputError: other arguments than the skill's.
        """
        if sorted(arguments) != sorted(self.arguments):
            expected = ", ".join(self.arguments) or "no arguments"
            raise InvalidInputError(f"skill {self.name}: expected {expected}, got {', '.join(arguments) or 'none'}")
        return self._wording.format(**arguments)

    def read(self, command: str) -> dict[str, str] | None:
        """Return a command's arguments; None if it asks for something else."""
        found = self._pattern.fullmatch(command)
        return None if found is None else found.groupdict()

    def render(self) -> str:
        """Return one line for a prompt."""
        shown = {argument: argument for argument in self.arguments}
        needs = (
            f" Needs: {'; '.join(need.format(**shown) for need in self.preconditions)}." if self.preconditions else ""
        )
        return f"{self.name}({', '.join(self.arguments)}): {self.description}{needs}"


TASK_COMPLETE = Skill("task_complete", (), "Ends the task: all that it asks for is done.")
"""The end of a task that only the agent can end. It is never carried out."""


def read_command(skills: Sequence[Skill], command: str) -> Call | None:
    """Return the first skill that fits a command; None without one."""
    for skill in skills:
        if (arguments := skill.read(command)) is not None:
            return Call(skill.name, arguments)
    return None


def checked_skills(skills: Sequence[Skill]) -> tuple[Skill, ...]:
    """Return the skills.

    Raises:
        InvalidInputError: there is none, or two have one name.
    """
    names = [skill.name for skill in skills]
    if not names or len(set(names)) < len(names):
        raise InvalidInputError(f"skills: expected at least one, each with a name of its own, got {names}")
    return tuple(skills)

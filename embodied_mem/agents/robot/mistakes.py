"""What an agent did wrong, as RoboMemory sorts errors: in planning, in reasoning, in perception.

    mistakes = Mistakes()
    mistakes.note(command, failed=True, injected=False, believed=("mug 1", "desk 1"), true=("", "desk 1"))
    mistakes.found                     # ["perception"]

A command that has no effect, though the robot did nothing wrong, is an error of

- perception, if planner and critic were told something wrong: what is held, or where the robot is, is not as believed;
- reasoning, if what they knew was right and said so: the same command had no effect before, and nothing has changed;
- planning otherwise: the planner gave a command that is not right here.

Source: RoboMemory 4.4, where people read the trajectories of failed tasks; this is a rule for what a program sees.
"""

from __future__ import annotations

from typing import Literal, get_args

Mistake = Literal["planning", "reasoning", "perception"]
KINDS: tuple[Mistake, ...] = get_args(Mistake)


class Mistakes:
    """Those of one task.

    Attributes:
        found: in order.
    """

    def __init__(self) -> None:
        self.found: list[Mistake] = []
        self._refused: set[tuple[str, tuple[str, str]]] = set()

    def note(
        self, command: str, *, failed: bool, injected: bool, believed: tuple[str, str], true: tuple[str, str]
    ) -> None:
        """One command.

        Args:
            command: as given.
            failed: whether it had no effect.
            injected: whether a fault of the robot was why.
            believed, true: what was held and where the robot was, before it.
        """
        if not failed:
            self._refused.clear()
        elif not injected:
            known = (command, true)
            kind: Mistake = "perception" if believed != true else "reasoning" if known in self._refused else "planning"
            self.found.append(kind)
            self._refused.add(known)

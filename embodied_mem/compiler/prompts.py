"""Prompt formats of executor and compiler: one each, the same for every world and every delivery.

Both formats are line based and short, because a model of a million parameters reads them as well as one of billions.

    prompt = executor_prompt(goal, room, turns, memory="", hint="find apple in fridge 1", num_soft=16)
    prompt = compiler_prompt(experiences, brief_text, last_action, observation, "find apple")

A delivery may fill `memory` (once per episode: static injection), or `hint` and soft tokens (per step: compiled
memory). Everything else is identical, so a difference in success comes from the delivery alone.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

SOFT_TOKEN = "<soft>"
_SOFT_LINE = re.compile(rf"\n((?:{SOFT_TOKEN})+)(\n>)\Z")
_USED_UP = re.compile(r"((?:was|\bused \w+) in [a-z]+ \d+) x\b")
"""Place where an experience found something, marked as used up."""
_LEFT_LINE = re.compile(r"\nleft: [^\n]*(?=\n[^\n]*\n=\Z)")
PLACE_PATTERN = re.compile(r"\ban? ([a-z]+) (\d+)")


def compact_room(first_observation: str) -> str:
    """Return a room's receptacles as counts, `cabinet 4; fridge 1`.

    They are sorted by kind. The text lists every receptacle (`a cabinet 4, a cabinet 3, ...`); instances are numbered
    from 1, so the highest number of a kind says the same in a tenth of the tokens. Texts that list nothing give an
    empty string.
    """
    highest: dict[str, int] = {}
    for kind, number in PLACE_PATTERN.findall(first_observation):
        highest[kind] = max(highest.get(kind, 0), int(number))
    return "; ".join(f"{kind} {count}" for kind, count in sorted(highest.items()))


def plain_goal(goal: str) -> str:
    """Return the instruction in one line without final punctuation."""
    return " ".join(goal.split()).rstrip(".")


@dataclasses.dataclass(frozen=True)
class Shown:
    """The episode so far as an executor's prompt shows it, for every delivery alike.

    Attributes:
        full_turns: the latest turns that are shown with their answers; older ones show the action only.
        marks: also the first place of every kind that no answer has shown the contents of.
    """

    full_turns: int = 2
    marks: bool = False


SHOWN = Shown()


def executor_prompt(
    goal: str,
    room: str,
    turns: Sequence[tuple[str, str]],
    *,
    here: str = "",
    left: str = "",
    memory: str = "",
    hint: str = "",
    num_soft: int = 0,
    full_turns: int = 2,
    max_actions: int = 30,
) -> str:
    """Text that the executor continues with one command and a newline.

    Args:
        goal: the instruction.
        room: `compact_room` of the first observation.
        turns: (action, answer) pairs of the episode so far, oldest first.
        here: the place reached last, said again before the hint: whether one is there already decides the command.
        left: where nobody has looked yet, or empty.
        memory: experiences injected at the start of the episode (static delivery), or empty.
        hint: guidance compiled for this step, or empty.
        num_soft: number of placeholder positions for soft tokens.
        full_turns: see `Shown`.
        max_actions: the latest older actions that are shown at all.
    """
    older, recent = (turns[:-full_turns], turns[-full_turns:]) if full_turns else (turns, ())
    lines = [f"task: {plain_goal(goal)}", f"room: {room}"]
    if memory:
        lines.append(f"memory:\n{memory}")
    if older:
        lines.append("did: " + "; ".join(action for action, _ in older[-max_actions:]))
    for action, answer in recent:
        lines.append(f"> {action}\n{' '.join(answer.split())}")
    if left:
        lines.append(f"left: {left}")
    if here:
        lines.append(f"at: {here}")
    if hint:
        lines.append(f"hint: {hint}")
    text = "\n".join(lines).replace(SOFT_TOKEN, "(soft)")
    return text + (f"\n{SOFT_TOKEN * num_soft}" if num_soft else "") + "\n>"


def split_soft(prompt: str) -> tuple[str, int, str]:
    """(text before, number of placeholders, text after) of an executor prompt.

    Placeholders are the last line but one, if that is nothing else. The name of the soft token anywhere else is text;
    `executor_prompt` spells it another way, so that nobody can forge such a line.
    """
    found = _SOFT_LINE.search(prompt)
    return (prompt[: found.start()], len(found[1]) // len(SOFT_TOKEN), found[2]) if found else (prompt, 0, "")


def compiler_prompt(memory: str, state: str, last_action: str, observation: str, aim: str, left: str = "") -> str:
    """Text that the compiler continues with its output (see `embodied_mem.compiler.output_grammar`).

    The aim stands in the state too. Said again behind the observation, it can be looked up there in one step: a model
    of a few layers then learns sooner whether what it looks for has been seen.

    Args:
        memory: the retrieved experiences, one per line; the candidate pool M of eq. 1.
        state: the Brief State as text, or the action history where the Brief State is ablated.
        last_action: the command that led to `observation`; empty at the first step.
        observation: the newest answer of the world.
        aim: the current subgoal, or the goal where there is none.
        left: where nobody has looked yet, or empty.
    """
    seen = f"{' '.join(observation.split())}\nleft: {left}" if left else " ".join(observation.split())
    return f"memory:\n{memory}\n{state}\n> {last_action}\n{seen}\n{aim}\n="


def unmarked(prompt: str) -> str:
    """Remove used-up marks and the `left` line from a compiler's prompt.

    Both are computed for it.
    """
    memory, found, rest = prompt.partition("\ngoal: ")
    return _USED_UP.sub(r"\1", memory) + found + _LEFT_LINE.sub("", rest)


def action_history(goal: str, room: str, actions: Sequence[str], max_actions: int = 30) -> str:
    """Write goal and raw action history in place of a Brief State.

    This is the ablation of the paper's Table 3.
    """
    return f"goal: {plain_goal(goal)}\nroom: {room}\ndid: " + "; ".join(actions[-max_actions:])

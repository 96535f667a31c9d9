"""The grammar of compiler outputs: one of four types, guidance for the executor, edits of the Brief State, a reason.

    output = parse_output("hybrid\\n+ searched: countertop 1\\ndo: go to fridge 1\\nwhy: apple was in fridge 1 before")
    output.type, output.guidance, output.edits        # OutputType.HYBRID, "go to fridge 1", (Create(...),)
    render_output(output)                             # the same text

Source: MemCompiler 3.2.2, eq. 4: guidance only (EXPERIENCE), edits only (BRIEF), both (HYBRID), neither (NOACTION), and
"each compiled entry includes an explicit reason" (B). The text form is ours; it is small, and reading it is total.

    hybrid                       the type: experience, brief, hybrid, noaction
    + searched: countertop 1     create
    ~ at: countertop 1           update
    - seen: apple 2              delete
    fold                         the current subgoal is completed
    do: go to fridge 1           guidance, one line each
    why: apple was in fridge 1   reason, one line each

The edits come first: what a model writes as guidance can then build on the state it has just revised. The reason comes
last: a reader that only needs to act may stop before it.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable

from ..errors import InvalidInputError
from .brief_state import Create, Delete, Edit, Fold, Update


class OutputType(enum.StrEnum):
    """The four kinds of compiler output."""

    EXPERIENCE = "experience"
    BRIEF = "brief"
    HYBRID = "hybrid"
    NOACTION = "noaction"


MAX_EDITS = 256
"""Most edits of one output: each costs as much as the state is large. What a model writes has some ten of them."""

_TYPES = {kind.value: kind for kind in OutputType}
_BY_CONTENT = {
    (True, False): OutputType.EXPERIENCE,
    (False, True): OutputType.BRIEF,
    (True, True): OutputType.HYBRID,
    (False, False): OutputType.NOACTION,
}
_EDIT_MARKS = {"+": Create, "~": Update, "-": Delete}
_MARK_OF = {Create: "+", Update: "~", Delete: "-"}


@dataclasses.dataclass(frozen=True, slots=True)
class CompilerOutput:
    """One output of the compiler.

    Attributes:
        type: which parts are present; always agrees with `guidance` and `edits`.
        guidance: text for the executor, lines separated by newlines; empty if none.
        edits: changes of the Brief State in order.
        reason: why, for a person; may stand with any type, also with NOACTION.
        malformed: number of lines that could not be read and were left out.
        mismatched: whether the type that the text declares is absent or disagrees with what is present.
    """

    type: OutputType
    guidance: str = ""
    edits: tuple[Edit, ...] = ()
    reason: str = ""
    malformed: int = 0
    mismatched: bool = False

    @classmethod
    def make(cls, guidance: str = "", edits: Iterable[Edit] = (), reason: str = "") -> CompilerOutput:
        """Return the output with these parts; they decide its type.

        White space in texts is normalised.
        """
        edits = tuple(edits)
        guidance, reason = _normalise(guidance), _normalise(reason)
        return cls(_BY_CONTENT[guidance != "", len(edits) > 0], guidance, edits, reason)

    @property
    def well_formed(self) -> bool:
        """True if every line was read and the declared type is what was found."""
        return self.malformed == 0 and not self.mismatched


def _normalise(text: str) -> str:
    if text == "" or (text.isascii() and text.isprintable() and text == text.strip() and "  " not in text):
        return text
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.split("\n"))))


def parse_output(text: str | bytes) -> CompilerOutput:
    """Return the compiler output written in `text`.

    Total: any text or bytes give one of the four types.

    Args:
        text: what the model wrote; bytes are read as UTF-8 with replacement characters. Blank lines and extra white
            space do not matter, nor does the order of lines (but for that of the edits among themselves).

    Returns:
        The output. The type is decided by what is present. `malformed` counts the lines that are none of the forms
        in the module docstring, including a second type line and edits beyond `MAX_EDITS`.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    declared: OutputType | None = None
    guidance: list[str] = []
    reason: list[str] = []
    edits: list[Edit] = []
    malformed = 0
    for line in text.split("\n"):
        line = " ".join(line.split())
        if not line:
            continue
        mark = _EDIT_MARKS.get(line[0])
        if mark is not None:
            edit = _parse_edit(mark, line[1:]) if len(edits) < MAX_EDITS else None
            if edit is None:
                malformed += 1
            else:
                edits.append(edit)
            continue
        name, colon, rest = line.partition(":")
        name = name.rstrip().lower()
        rest = rest.lstrip()
        if colon and rest and name == "do":
            guidance.append(rest)
        elif colon and rest and name == "why":
            reason.append(rest)
        elif not colon and name == "fold" and len(edits) < MAX_EDITS:
            edits.append(Fold())
        elif not colon and name in _TYPES and declared is None:
            declared = _TYPES[name]
        else:
            malformed += 1
    kind = _BY_CONTENT[bool(guidance), bool(edits)]
    return CompilerOutput(kind, "\n".join(guidance), tuple(edits), "\n".join(reason), malformed, declared is not kind)


def _parse_edit(mark: type[Create] | type[Update] | type[Delete], text: str) -> Edit | None:
    field, colon, rest = text.partition(":")
    field = field.strip()
    item = rest.strip()
    if bool(colon) != (item != ""):
        return None
    try:
        if mark is not Delete and field == "seen":
            item, _, place = item.partition(" in ")
            return (Create if mark is Create else Update)(field, item, place)
        return mark(field, item)
    except InvalidInputError:
        return None


def render_edit(edit: Edit) -> str:
    """Write one edit as a line of the grammar."""
    if isinstance(edit, Fold):
        return "fold"
    mark = _MARK_OF[type(edit)]
    if isinstance(edit, Delete):
        return f"{mark} {edit.field}: {edit.item}" if edit.item else f"{mark} {edit.field}"
    if edit.place:
        return f"{mark} {edit.field}: {edit.item} in {edit.place}"
    return f"{mark} {edit.field}: {edit.item}"


def render_output(output: CompilerOutput) -> str:
    """Render `output` as text without a final newline.

    `parse_output` gives the same output back if it is well formed and has at most `MAX_EDITS` edits.

    Raises:
        InvalidInputError: the type disagrees with what is present, or a text has stray white space (use `make`).
    """
    kind = _BY_CONTENT[output.guidance != "", len(output.edits) > 0]
    if output.type is not kind:
        raise InvalidInputError(f"output.type: expected {kind} for what is present, got {output.type}")
    for name, text in (("guidance", output.guidance), ("reason", output.reason)):
        if _normalise(text) != text:
            raise InvalidInputError(f"output.{name}: expected lines without stray white space, got {text!r}")
    lines = [kind.value]
    lines.extend(map(render_edit, output.edits))
    if output.guidance:
        lines.extend([f"do: {line}" for line in output.guidance.split("\n")])
    if output.reason:
        lines.extend([f"why: {line}" for line in output.reason.split("\n")])
    return "\n".join(lines)

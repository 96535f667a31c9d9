"""Steps at which a compiler gives no guidance, and whether it was right.

    withheld_row(withheld_in(trajectory, make_teacher))           # rate, precision, recall, tokens saved

Right is what the teacher does that the compiler learned from: it reads the same experiences, the same Brief State and
the same observation, and says nothing where memory has nothing to add.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from embodied_mem.agents.rollout import Trajectory

if TYPE_CHECKING:
    from embodied_mem.language.tokenizers import Tokenizer
    from embodied_mem.training.teachers.lesson import Teacher


class Withheld(NamedTuple):
    """Counts of an episode, or of several.

    Attributes:
        outputs: of the compiler.
        withheld: of these, without guidance: NOACTION, and BRIEF, which only edits the Brief State.
        judged: outputs beside which there is the teacher's.
        nothing_due: of these, steps at which the teacher gives no guidance.
        rightly: of these, steps at which the compiler gives none either.
        hint_tokens: that guidance and soft tokens take in the executor's prompts.
    """

    outputs: int = 0
    withheld: int = 0
    judged: int = 0
    nothing_due: int = 0
    rightly: int = 0
    hint_tokens: int = 0


def withheld_in(
    trajectory: Trajectory, make_teacher: Callable[[], Teacher] | None = None, tokenizer: Tokenizer | None = None
) -> Withheld:
    """Count in a played episode; without a teacher none is judged, without a tokenizer no tokens are counted."""
    from embodied_mem.training.teachers.dagger import relabel

    delivered = trajectory.delivered
    guided = [bool(d.record.output.guidance) for d in delivered if d.record is not None]
    if not guided:
        return Withheld()
    hint_tokens = sum(0 if d.soft is None else len(d.soft) for d in delivered)
    if tokenizer is not None:
        hint_tokens += sum(len(tokenizer.encode(f"\nhint: {d.hint}")) for d in delivered if d.hint)
    labels = relabel(trajectory, trajectory.experiences, make_teacher()) if make_teacher else []
    nothing_due = [not label.hint for label in labels]
    rightly = sum(due and not given for due, given in zip(nothing_due, guided))
    return Withheld(len(guided), guided.count(False), len(labels), sum(nothing_due), rightly, hint_tokens)


def withheld_row(counts: Withheld) -> dict[str, Any]:
    """Return the columns of a delivery's row, from its sums.

    `noaction` is the share of outputs without guidance, `noaction_precision` the share of these at which the teacher
    gives none, `noaction_recall` the share of the teacher's at which the compiler gives none; None where that is no
    number. `noaction_tokens_saved` is how many tokens the executor was spared per step: what guidance and soft tokens
    take where there is guidance, on average, at the share of steps without. The compiler itself saves nothing.
    """
    outputs, withheld, judged, nothing_due, rightly, hint_tokens = counts
    guided = outputs - withheld
    return {
        "noaction": withheld / outputs if outputs else 0.0,
        "noaction_precision": rightly / withheld if judged and withheld else None,
        "noaction_recall": rightly / nothing_due if nothing_due else None,
        "noaction_tokens_saved": hint_tokens / guided * withheld / outputs if guided else 0.0,
    }


def withheld_of(numbers: Mapping[str, float]) -> Withheld:
    """Return the counts that a mapping holds among others."""
    return Withheld(*(int(numbers[name]) for name in Withheld._fields))

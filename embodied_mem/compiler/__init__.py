"""Memory compiled per step: the Brief State, its edits, and the grammar of what a compiler writes.

    from embodied_mem.compiler import BriefState, apply_all, parse_output
    output = parse_output(text)
    state, refused = apply_all(output.edits, state)

Nothing here needs a model.
"""

from .brief_state import BriefState, Create, Delete, Edit, Fold, Update, apply_all
from .output_grammar import CompilerOutput, OutputType, parse_output, render_edit, render_output

__all__ = [
    "BriefState",
    "CompilerOutput",
    "Create",
    "Delete",
    "Edit",
    "Fold",
    "OutputType",
    "Update",
    "apply_all",
    "parse_output",
    "render_edit",
    "render_output",
]

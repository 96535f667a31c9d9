"""Reads whether a text in plain English says that what was tried did not work, whoever wrote it.

    says_failure("Grasp failed")                       # True
    says_failure("Reached the stove without errors")   # False

A word of failure counts unless it is denied ("no errors", "did not fail"); a word of ability or success counts if it is
denied ("could not reach", "not successful"). Words inside a name or a title are not told apart from others.
"""

from __future__ import annotations

import re

from .reading import single_spaced

SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n")
_DENIED = (
    r"(?:\b(?:no|not|never|without|zero|0)\s+(?:\w+\s+){0,2}?|n['’]t\s+(?:\w+\s+)?"
    r"|\b(?:avoid\w*|prevent\w*|instead\s+of|rather\s+than)\s+(?:\w+\s+)?)"
)
_FAILURE = re.compile(
    r"\b(?:fail(?:ed|s|ure|ures|ing)?|unable|impossible|unsuccessful(?:ly)?|unreachable|infeasible|invalid|illegal"
    r"|refused|rejected|denied|aborted|abort|cancell?ed|timed\s+out|time-?out|errors?|exception|stuck|jammed|collided"
    r"|collision|unknown\s+(?:action|command|object|skill)|out\s+of\s+(?:reach|range)|in\s+vain)\b"
)
_NOT_DONE = re.compile(
    r"\b(?:can\s*not|could\s+not|can['’]t|couldn['’]t|unable\s+to)\b"
    r"|\b(?:not|n['’]t|never|no\s+longer)\s+(?:\w+\s+)?(?:able|allowed|possible|permitted|succeed\w*|success\w*|work(?:ed|ing)?|found"
    r"|reach\w*|respon\w+|understand|recogni[sz]e\w*|complete[d]?|executed?|performed|available|exist\w*|valid|see\s+(?:that|any|a|the))\b"
    r"|\b(?:nothing\s+happen(?:s|ed)|no\s+(?:effect|such|path|plan|solution|response|change)|you\s+don['’]t)\b"
    r"|\bwithout\s+(?:success|effect|result)\b"
)
_NONE = re.compile(r"\b(?:errors?|failures?|exceptions?|collisions?)\s*[:=]\s*(?:none|no|0|false|null|\[\])(?!\s*\w)")
_NAMED = re.compile(r"[\"“‘][^\"“‘”’]*[\"”’]|\b(?:titled|called|named|labell?ed|reads?|says?)\b.*")
_DENIED_FAILURE = re.compile(_DENIED + _FAILURE.pattern)


def says_failure(text: str) -> bool:
    """Whether a sentence of the text reports that what was tried had no effect or was not possible."""
    for sentence in SENTENCE_END.split(single_spaced(text.lower())):
        sentence = _NONE.sub(" ", _NAMED.sub(" ", sentence))
        if _NOT_DONE.search(sentence) or _FAILURE.search(_DENIED_FAILURE.sub(" ", sentence)):
            return True
    return False

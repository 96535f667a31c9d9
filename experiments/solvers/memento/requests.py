"""Finds in a sentence what is asked for: the clause that names an action and things, whatever stands around it.

    request_in("I have guests tonight, so could you move the jug to the table when you get a chance?")
    # "move the jug to the table"
    request_in("I usually move the jug to the table.")       # "": what the user does is no request

A clause asks for something by its structure: its verb is an imperative, or is governed by "you" or "we" ("could you
move", "for you to move", "would you mind moving"), or is an infinitive or a gerund that no first person governs ("your
task is to move", "start by moving"). Politeness and preambles are what stands before; what is said of the listener's
convenience ("if you don't mind", "thanks") is cut off behind.
"""

from __future__ import annotations

import re

from .lexicon import TABLES, listed

HABIT = re.compile(
    r"\b(?:like|prefer|usual(?:ly)?|always|often|typically|normally|enjoy|love|every\w*|routine|habit|tend|whenever)\b",
    re.IGNORECASE,
)
"""What tells how somebody likes things, or does them again and again."""

_MODALS, _ADVERBS, _NOT, _LISTENERS, _OTHERS, _DETERMINERS, _BOUNDARIES, _GOVERNORS = (
    frozenset(TABLES[title].split())
    for title in (
        "modals",
        "adverbs of requests",
        "negations",
        "who is asked",
        "who is not asked",
        "before a noun",
        "before an imperative",
        "before a gerund",
    )
)
_FUNCTION = (
    _MODALS | _ADVERBS | _NOT | _LISTENERS | _OTHERS | _DETERMINERS | _BOUNDARIES | _GOVERNORS
    | frozenset(TABLES["function words"].split())
)  # fmt: skip
_PURPOSE = re.compile(r"\s*(?:in order\s+|so as\s+)?to\s+\Z", re.IGNORECASE)
_WISH = re.compile(r"(?:\b(?:would|will)|'d|'ll)\b", re.IGNORECASE)
_HELP = frozenset(("help", "assist", "hand", "need"))
_GOES_ON = re.compile(r",|\b(?:please|(?:can|could|would|will|need|want)\s+you)\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|once|after|before|as|while|until|unless|because|since)\b", re.IGNORECASE
)
_OBJECT = (
    r"(?:\s+(?:up|away|out|down|over|aside|off|back|in))?\s+"
    r"(?!(?:your|sure|to|and|or|by|for(?!\s+(?:my|our|the)\b)|as|is|are|was|were|has|have|had|i|we|be|been|late|early|home|ready|done|in|on|at|of|with|from|into)\b)[\w'\"(-]"
)


def gerund(verb: str) -> str:
    """The -ing form of a verb, by the rules of spelling.

    >>> [gerund(verb) for verb in ("move", "put", "tidy up", "bring")]
    ['moving', 'putting', 'tidying up', 'bringing']
    """
    head, _, rest = verb.partition(" ")
    if head.endswith("e") and not head.endswith("ee"):
        head = head[:-1]
    elif re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", head):
        head += head[-1]
    return f"{head}ing {rest}".strip()


_BASE = sorted({verb for verb in listed("verbs") if not verb.endswith("ing") or verb == "bring"}, key=len, reverse=True)
_FORMS = [*_BASE, *map(gerund, _BASE)]
_VERB = re.compile(rf"(?<![\w'-])(?:{'|'.join(map(re.escape, _FORMS))})(?=\b{_OBJECT})", re.IGNORECASE)
_UNKNOWN = re.compile(
    rf"(?<![\w'-])(?!(?:{'|'.join(sorted(_FUNCTION))})\b)[a-z]+(?=\s+(?:the|my|our|a|an|these|those|some)\b)",
    re.IGNORECASE,
)
"""What may be a verb that no table has: a word before a determiner."""
_CONNECTIVE = re.compile(
    r"\s*(?:(?:first|then|also|and|after that|next|finally|now|(?>once[^,]*)|afterwards|lastly|additionally)\b,?\s+)*",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?<![\s,;-])[\s,;-]*(?:"
    r"\b(?:if|when|whenever|once|as \w+ as|unless)\s+(?:you|it|that|this|possible|convenient|at all)\b[^.]{,200}+"
    r"|\b(?:would|will|could|can|won't|shall|should)\s+(?:you|we)"
    r"|\b(?:please|pl[sz]+|thanks?|thank you|okay|ok|alright|cheers|for me|for us"
    r"|right now|right away|now|asap|soon|already|immediately|at your (?:\w+ )?convenience)"
    r"(?:\s+(?:so much|a lot|very much|again|in advance|a million|so))?"
    r")\s*+[?!.,]*+\s*\Z",
    re.IGNORECASE,
)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z']+|[,;:\u2013\u2014-]", text.lower())


def _asks(before: str, after: str, is_gerund: bool) -> bool:
    """Whether a verb between these words asks for something."""
    words = _words(before)
    own = [word for word in words if word.isalpha() or "'" in word]
    if words[-2:] == ["why", "not"]:
        return True
    while words and words[-1] in _ADVERBS and words[-1] not in ("please", "kindly", "then", "now"):
        if words.pop() in _NOT:
            return False
    if not words or words[-1] in ",;:\u2013\u2014-":
        return not is_gerund or not own
    last = words[-1]
    if last in _NOT or last in _DETERMINERS:
        return last in ("your",) and is_gerund
    told = any(word.partition("'")[0] in _LISTENERS or word == "your" for word in own)
    first_person = any(word in ("i", "i'm", "i've", "i'd", "i'll") for word in own)
    if first_person and not told and HABIT.search(before):
        return False
    if is_gerund:
        clause = re.split(r"[,;:]", before.lower())[-1]
        helping = bool(_HELP & set(own))
        governed = last in _GOVERNORS or last == "hand" or (last == "in" and helping)
        return governed and (told or helping or not re.search(r"\bi\b", clause))
    if last in ("to", "and", "or"):
        return told or not first_person
    if last in _BOUNDARIES:
        return True
    modal = False
    while words and words[-1] in _MODALS | _ADVERBS:
        modal = words.pop() in _MODALS or modal
    subject = words[-1] if words else ""
    if subject.endswith(("'d", "'ll")):
        subject, modal = subject.partition("'")[0], True
    if subject in _LISTENERS:
        inverted = len(words) > 1 and words[-2] in _MODALS | {"don't", "do"}
        plain = subject == "you" and not (modal or inverted)
        return not (plain and _CONDITION.search(before) and not _WISH.search(before) and _GOES_ON.search(after))
    if subject in _OTHERS or subject.startswith("i'"):
        return False
    if subject == "me":
        return True
    return not modal and (not first_person or not re.search(r"[,;:]", before))


def _start(sentence: str) -> int | None:
    """Where the request of a sentence begins, at its verb; None if it holds none."""
    verbs = list(_VERB.finditer(sentence))
    for match in verbs:
        behind_comma = any(sentence[: later.start()].rstrip().endswith(",") for later in verbs if later is not match)
        if behind_comma and _PURPOSE.match(sentence[: match.start()]):
            continue
        verb = match[0].lower().split()[0]
        is_gerund = verb.endswith("ing") and verb != "bring"
        if verb == "have" and re.search(r"\b(?:you|we|i|they)\s*\Z", sentence[: match.start()], re.IGNORECASE):
            continue
        if _asks(sentence[: match.start()], sentence[match.end() :], is_gerund):
            return match.start()
    for match in _UNKNOWN.finditer(sentence):
        before = _words(sentence[: match.start()])
        is_governed = not before or before[-1] in _BOUNDARIES | _LISTENERS | _GOVERNORS | _ADVERBS | frozenset(",;:-")
        if is_governed and _asks(sentence[: match.start()], sentence[match.end() :], match[0].lower().endswith("ing")):
            return match.start()
    return None


def request_in(sentence: str) -> str:
    """The request of a sentence, from its verb on, behind what connects it to the last; empty if it holds none."""
    start = _start(sentence)
    if start is None:
        return ""
    text = sentence[start:]
    while (cut := _TAIL.sub("", text)) != text and cut.strip():
        text = cut
    match = _CONNECTIVE.match(sentence)
    connective = match[0].strip() if match and match.end() <= start else ""
    return f"{connective} {text.strip()}".strip()

"""A small English grammar: kinds of sentences, verbs of requests, lists of things.

sentences("Move the jug. It is green."), is_description("It is green.")      # ..., True
things_in("the jug, the black and white cup, and then a plate")             # three phrases
"""

from __future__ import annotations

import re

from .lexicon import TABLES, alternatives, content
from .requests import gerund

_BE = "is|are|was|were|has|have"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_PREFERENCE = re.compile(
    r"(?:I\b(?!'d like you|\s+(?:want|need|would like) you)"
    r"|(?:when|while|during|every|almost|each|usually|after|before|in the|on)\b[^?]*?\bI\b)",
    re.IGNORECASE,
)
_TELLING = alternatives("telling verbs")
_DESCRIPTION = re.compile(
    r"(?P<thing>(?:the|this|these|those|that|my|it|they|both|each|all|one)\b[^,]*?)"
    rf"(?:'s|'re| (?:{_BE}|{_TELLING}))\b ?(?P<what>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_DESCRIBED_PART = re.compile(
    r"(?:, ?(?:and|while|but)?|;| and| while) "
    rf"(?=(?:the|my|it|this) (?:[\w'-]+ ){{0,5}}?(?:{_BE}|features?|holds?|belongs?|resembles?|contains?)\b)",
    re.IGNORECASE,
)
_VERBS = alternatives("verbs")
VERB = re.compile(
    r"(?:\A|[,;:] ?|\b(?:and|then|by|to|you|please|me|also|first|finally|next|we|let's|lets|that|now|afterwards|can|,)"
    rf" ,? ?|\b(?=(?:{_VERBS}) (?:them|it|both)\b))"
    rf"(?P<verb>(?:{_VERBS})\b(?: (?:up|away|out|down|over|aside|off|together)\b(?! (?:to|on) each))*)"
    r"(?P<change> (?:the )?positions? of)?",
    re.IGNORECASE,
)
"""A verb that asks for something, where a clause may begin."""

HEADERS = frozenset(form for verb in TABLES["headers"].strip().split("; ") for form in (verb, gerund(verb)))
"""Verbs that announce a task rather than name a move."""

ARRANGE = HEADERS | {"arrange", "arranging", "set", "setting", "stage", "gather", "organizing", "rearrange", "get"}
"""Verbs whose object may be the name of an arrangement ("set my tea time")."""

LEAVE = frozenset(("leave", "stay", "keep", "leaving", "keeping"))
TOWARDS = frozenset(("to", "onto", "into", "over to", "back to"))
TOGETHER = re.compile(
    r"\b(?:right\s+)?(?:next\s+to|beside|near|close\s+to|alongside|close\s+by|by)\s+(?:the\s+)?(?:each|one)\s+"
    r"(?:other|another)\b|\bside[\s-]by[\s-]side\b|\btogether\b|\bclose\s+together\b",
    re.IGNORECASE,
)
BESIDE = re.compile(
    r"\b(?:right\s+)?(?:next\s+to|beside|alongside|close\s+to|near|next)\s+(?=(?:the|a|an|my|it|them)\b)", re.IGNORECASE
)
BY_PRONOUN = re.compile(r"(?:it|this|that|they|these|those|both|all)(?:'s|'re|\s+(?:is|are|was|were)\b)", re.IGNORECASE)
_VAGUE_NOUN = r"(?:items|objects|things|belongings|stuff)"
AND_ANOTHER = re.compile(r"(?:,\s*(?:and\s+)?|(?<!\s)\s+and\s+)(?:then\s+)?(?=(?:the|a|an|my|our)\b)", re.IGNORECASE)
FIRST_BESIDE = re.compile(
    r"(?:(?!\b(?:and|on|onto|to|in|into|from|at)\b)[\w'-]+\s+)+?(?:right\s+)?(?:next\s+to|beside|close\s+to)\s+"
    r"(?:the|a|an|my|our|it)\b",
    re.IGNORECASE,
)
"""Another thing that is to go somewhere else, and one that goes next to something."""
PRONOUN = re.compile(
    r"\s*+(?:and\s++)?(?:both|all|each)?\s*+(?:of\s++)?(?:it|them|both|these|those|they|all|everything|each|"
    rf"(?:(?:these|the|both|all)\s+)+{_VAGUE_NOUN})\s*+(?:all|both|back|neatly|there)?\s*\Z",
    re.IGNORECASE,
)
ALL_OF_THEM = re.compile(rf"\s*all\s+(?:of\s+)?(?:these|those|the)\s+{_VAGUE_NOUN}\b", re.IGNORECASE)
_NAMED_BEFORE = re.compile(r"\s*(?:(?:both|all|each|any)\s+(?:of\s+)?)?(?:it|them)\b", re.IGNORECASE)
REASON = re.compile(
    r"(?<!\s)\s+(?:so(?:\s+that)?\s+(?:we|i|it|they|you)|because|since)\b.*\Z", re.IGNORECASE | re.DOTALL
)
_PLURAL = re.compile(rf"\s*(?:they|both|these|those|all|{_VAGUE_NOUN})\b", re.IGNORECASE)
NOUN = re.compile(
    r"\A(?:(?:the|a|an|my|our|some|and)\s+)*(?!(?:the|a|an|my|our|some|and|then|it|them)\b)\w", re.IGNORECASE
)
VAGUE = re.compile(
    rf"(?:(?:some|a few|things|items|something)\b|(?:the|these|those|my|our|all|\s)*\b(?:\w+\s+)?{_VAGUE_NOUN}\b)",
    re.IGNORECASE,
)
"""What names no thing, and is told by what comes after."""
_ASSURED = re.compile(
    r"\b(?:make|making|be)\s+sure\s+(?:that\s+)?(?P<what>(?:the|my|our|a|an|they|it|both)\b[^.?!]{,150}?)\s(?:is|are)\s"
    r"(?:placed\s+|put\s+)?(?=(?:next|close|beside|on|in|at|by|together|side)\b)",
    re.IGNORECASE,
)
_COMPOUND = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b", re.IGNORECASE)
AND_THEN = re.compile(r"\s*+,?\s*+(?:and\s+)?(?:then|finally)\s+((?:the|a|an|my)\s+.+)\Z", re.IGNORECASE | re.DOTALL)
CONNECTED = re.compile(
    r"(?:(?:after that|additionally|afterwards)\b|(?:then|next|finally),?\s+(?!\w+\s+(?:it|them|both|these|those)\b))",
    re.IGNORECASE,
)
"""A sentence that may begin another task: one that goes on with another thing than the last."""
_ADJECTIVES = frozenset(TABLES["adjectives"].split())
_LIST_COMMA = re.compile(r",\s*(?:and\s+|or\s+)?(?:then\s+|finally\s+|also\s+|lastly\s+)*", re.IGNORECASE)
_FUNCTION = frozenset(
    word
    for title in ("function words", "before a noun", "before a gerund", "before an imperative", "who is not asked")
    for word in TABLES[title].split()
)
_GAP = re.compile(
    r"\b([a-z]+)\s+(?=(?:the|my|our|a|an)\s+\w)(?!\w+\s+\w+\s+(?:gave|got|bought|made|brought|sent|left|found|\w+ed)\b)",
    re.IGNORECASE,
)
"""Where a list that is written without commas may go on: at an article behind a noun."""
_LIST_AND = re.compile(r"(?<!\s)\s+(?:and|&)\s+(?:then\s+|finally\s+|also\s+)*", re.IGNORECASE)
_DETERMINED = re.compile(r"(?:the|my|our|his|her|two|both|another|one|some)\b", re.IGNORECASE)
_MODIFIED = re.compile(
    r"\b(?:with|of|featuring|that|which|who|from|in|on|called|titled|named|made|gifted|given|has)\b", re.IGNORECASE
)
_RELATIVE = re.compile(
    r"(?:which|that|who|from|with|named|called|featuring|a gift|given|gifted|part of)\b", re.IGNORECASE
)


def bare(phrase: str) -> str:
    """A phrase in small letters, without its article."""
    return re.sub(r"\A(?:(?:the|a|an|my|our|both)\s+)+", "", phrase.strip().lower())


def sentences(text: str) -> list[str]:
    """The sentences of a text, with "make sure that the jug is on the table" as "place the jug on the table"."""
    text = _ASSURED.sub(lambda match: f"place {match['what']} ", _COMPOUND.sub(lambda m: m[0].replace("_", " "), text))
    return [part.strip() for part in _SENTENCE.split(" ".join(text.split())) if part.strip()]


def is_description(sentence: str) -> bool:
    """Whether a sentence that asks for nothing says what things are like; else it speaks of the user."""
    told = _DESCRIPTION.match(sentence) and not _PREFERENCE.match(sentence)
    return bool(told) and not sentence.endswith("?")


def says_more(sentence: str) -> bool:
    """Whether what a sentence asks for is done with things that were named before it, and with no others."""
    bodies = [sentence[verb.end() :] for verb in VERB.finditer(sentence)]
    return bool(bodies) and all(_NAMED_BEFORE.match(body) for body in bodies)


def described(sentence: str, last: list[str]) -> list[tuple[str, str]]:
    """(thing, what is said of it) for each thing that a sentence describes; "it" is `last`'s last, "they" are all."""
    found = []
    before = ""
    for piece in _DESCRIBED_PART.split(sentence.rstrip(".! ")):
        part = f"{before} and {piece.strip()}" if before else piece.strip()
        match = _DESCRIPTION.match(part)
        before = "" if match else part  # "the can | the egg are mine" is one part
        if not match:
            continue
        subject = re.sub(r"\A(?:the|this|that|my)\s+", "", match["thing"].strip(), flags=re.IGNORECASE)
        if not PRONOUN.match(subject):
            subject = re.sub(r"\A(?:these|those|both|all)\s+", "", subject, flags=re.IGNORECASE)
        named = [] if PRONOUN.match(subject) or subject.lower() in ("this", "that", "") else things_in(subject)
        meant = last if _PLURAL.match(subject) else last[-1:]
        found += [(name.lower(), part) for name in named or meant]
    return found


def things_in(text: str) -> list[str]:
    """The things of a list: "the jug, the black and white cup, and then a plate" -> three phrases."""
    parts: list[str] = []
    if "," not in text:
        text = _GAP.sub(lambda m: m[0] if m[1].lower() in _FUNCTION else f"{m[1]}, ", text)
    for chunk in _LIST_COMMA.split(text.strip(" ,;.")):
        chunk = re.sub(r"\A(?:and|then)\s+", "", chunk.strip(" ,;."), flags=re.IGNORECASE)
        if not chunk:
            continue
        adjectives = bool(content(chunk)) and all(word in _ADJECTIVES for word in chunk.lower().split())
        if parts and (adjectives or _RELATIVE.match(chunk)):
            parts[-1] += f", {chunk}"
        else:
            parts += _split_and(chunk)
    return [part for part in parts if NOUN.search(part)]


def _split_and(chunk: str) -> list[str]:
    """Parts of "A and B", but not of "the black and white cup" or "a box with a lid and a handle"."""
    pieces: list[str] = []
    start = 0
    for match in _LIST_AND.finditer(chunk):
        left, right = chunk[start : match.start()].strip(), chunk[match.end() :].strip()
        words = left.lower().split()
        if _MODIFIED.search(left):
            split = bool(_DETERMINED.match(right))
        else:
            split = bool(right) and not (words and words[-1] in _ADJECTIVES)
        if split and left:
            pieces.append(left)
            start = match.end()
    return [*pieces, chunk[start:].strip()]

"""Reads whom an English text is about: names of roles, whom a question names, what somebody may not have.

    role_in("My boss is called Elif.")                         # ("boss", "Elif")
    named_for("When does my boss eat?", {"boss": "Elif"})      # "When does Elif eat?"
    is_offer("Is it fine to give me couscous?")                # so notes of limits matter:
    is_limit("I can't have gluten.")
    is_standing("Always knock before you enter.")

What is read here only moves ranks; nothing is asserted.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from .words import LIGHT, normal, words_of

_TOKEN = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_WORDS_OF_NAMING = "name names named call called calls introduce meet hello hi well way let goes mean means"
_NAMING = frozenset(_WORDS_OF_NAMING.split())
_WORDS_OF_DOUBT = "not no never isn wasn was were be if or would should might could ain nor"
_NO_NAMING = frozenset(_WORDS_OF_DOUBT.split())
_NO_ROLE = LIGHT | _NAMING
ROLES = ("user", "human")
"""Names that chats give their user."""
_WORDS_OF_SELF = "i me my mine myself we us our ours"
_SELF = frozenset(_WORDS_OF_SELF.split())
_MAX_ROLE = 3
_AFTER_NAME = re.compile(r",|'s\b| (?:is|and)\b")
"""Text after a name that begins a sentence."""
_MY = re.compile(r"\b(?:my|our) ([a-z]+(?: [a-z]+){0,2})\b", re.IGNORECASE)
_GIVE = "give|offer|serve|bring|hand|get|cook|make|bake|prepare|order|buy|feed|pour|have|eat|drink|try|use|wear|take"
_MAY_OFFER = re.compile(
    rf"(?:is|are|can|could|may|should|shall|would|will|do|does|any|if)\b.* (?:{_GIVE})\b"
    r"|.*\b(?:safe|suit|suits|suitable|allowed|dangerous|harmful|okay|ok|fine|good|bad|problem|problems|risk|against"
    r"|away from)\b"
)
_OF_OFFERS = "safe fine good okay ok problem reason anything keep away"
_OFFERING = frozenset((*_GIVE.split("|"), *_OF_OFFERS.split()))
_MAY_LIMIT = re.compile(
    r"\b(?:allerg\w+|intoleran\w+|sensitive to|vegan|vegetarian|pescatarian|halal|kosher|coeliac|celiac|diabetic"
    r"|avoid\w*|off limits|ill|sick|badly|unwell|rash|keep\b.{1,40} away|stay away|without|strict|diet|forbidden"
    r"|not allowed"
    r"|(?:can['’]?t|cannot|can not|must not|mustn['’]t|may not|shouldn['’]t|don['’]t|doesn['’]t|never|no longer)"
    r" (?:have|eat|drink|tolerate|stand|take|touch|cope|use|digest|handle|wear|bear)"
    r"|(?:stopped|quit|gave up|given up) (?:\w+ing\b|\w+)|no \w+(?: \w+)? for me)\b"
)
_STANDS = re.compile(
    r"(?:^|[.!;:,\n]) ?(?:please |and |but |so |also )?(?:always|never|from (?:now|today) on|whenever"
    r"|(?:every|each) time)\b"
)
_CONDITION = re.compile(r"\b(?:when(?:ever)?|if|before|after|(?:every|each) time)\b")


def role_in(text: str) -> tuple[str, str] | None:
    """Find role and name in a text that only introduces somebody."""
    if "my" not in text.lower() or text.rstrip().endswith("?") or not _NO_NAMING.isdisjoint(words_of(text)):
        return None
    role, names, before = list[str](), list[str](), ""
    plain = text.replace("’", "'")
    for match in _TOKEN.finditer(plain):
        token = match[0].removesuffix("'s")
        word = token.lower()
        is_next = before == "my" or (bool(role) and before == role[-1] and len(role) < _MAX_ROLE)
        if is_next and token.islower() and word not in _NO_ROLE:
            role.append(word)
            before = "" if match[0].endswith("'s") else word
            continue
        before = word
        if word in _NO_ROLE or word in _SELF or word in role:
            continue
        is_first = plain[: match.start()].rstrip()[-1:] in ("", ".", "!", "?", ":")
        if not token[0].isupper() or (is_first and _AFTER_NAME.match(plain, match.end()) is None):
            return None
        names.append(token)
    is_whole = bool(role) and 0 < len(set(names)) < 3 and not any(map(str.isdigit, text))
    return (" ".join(role), " ".join(dict.fromkeys(names))) if is_whole else None


def has_owner(question: str) -> bool:
    """Decide whether a question says "my" or "our" of something."""
    return _MY.search(question) is not None


def named_for(question: str, names: Mapping[str, str]) -> str:
    """Write the name for "my husband", unless a question asks for it."""

    def name(match: re.Match[str]) -> str:
        words = match[1].split()
        for count in range(len(words), 0, -1):
            role = " ".join(words[:count]).lower()
            if role in names and words_of_role(question) != set(words_of(role)):
                return " ".join((names[role], *words[count:]))
        return match[0]

    return _MY.sub(name, question) if names else question


def words_of_role(question: str, people: Collection[str] = ()) -> set[str]:
    """Return the words of the role in a question for its name."""
    words = words_of(question)
    is_name = words[:1] == ["who"] or not _NAMING.isdisjoint(words)
    return set(words) - LIGHT - _NAMING - set(people) if is_name else set()


def is_first_person(words: Collection[str]) -> bool:
    """Decide whether words of a text name its speaker."""
    return not _SELF.isdisjoint(words)


def is_offer(question: str) -> bool:
    """Decide whether a question may ask if somebody can have something."""
    return _MAY_OFFER.match(normal(question)) is not None


def things_in(text: str, people: Collection[str] = ()) -> list[str]:
    """List the words that may name a thing that somebody offers."""
    return [word for word in words_of(text) if word not in LIGHT and word not in _OFFERING and word not in people]


def is_limit(text: str) -> bool:
    """Decide whether a text may say what somebody must not have."""
    return _MAY_LIMIT.search(normal(text)) is not None


def is_standing(text: str) -> bool:
    """Recognise a standing conditional wish: "Always knock before you enter"."""
    plain = normal(text)
    return _STANDS.search(plain) is not None and _CONDITION.search(plain) is not None

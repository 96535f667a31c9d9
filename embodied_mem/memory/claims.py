"""Reads what sentences claim or deny, and which earlier claim a later one ends.

    old, = claims_in("I like oat milk in my coffee.")
    new, *_ = claims_in("I don't like oat milk anymore, I prefer soy.")
    new.ends(old)                       # True: the same subject, denied, and the older one says all that is denied

A claim is a subject, the stems of what is said of it, and whether it is denied. A denial ends a claim that says all
that it denies, and a claim ends the denial of the same. More than that is no evidence: values that only differ both
stay. Questions and conditions claim nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .mentions import introduced, normal, without_appositions
from .readers.reading import legible
from .words import LIGHT, stem, words_of

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE = re.compile(
    r"\s*;\s*|,?\s+(?:but|although|though|whereas|so|because|since)\s+"
    r"|,\s*(?:and\s+)?(?=(?:i|we|you|he|she|it|they|my|our|his|her|their|the)\b)|\s+and\s+(?=(?:i|we|he|she|they)\b)"
)
_CONDITION = re.compile(r"(?:if|unless|when(?:ever)?|suppose|imagine|whether|would|could|should|do|does|did)\b")
_LEAD = re.compile(
    r"(?:(?:and|but|so|well|oh|yes|no|actually|also|now|currently|today|by the way|honestly|still),?\s+)+"
)
_NO_MORE = re.compile(r"\s*,?\s*\b(?:any\s?more|any\s+longer|no\s+longer|no\s+more)\b")
_NOT = re.compile(r"n['’]t\b|\b(?:not|never|cannot)\b")
_BARE_NOT = re.compile(r"\b(do|does|did|is|are|was|were|ca|wo|has|have|had|should|would|could)nt\b")
_AND = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")
_STOPPED = re.compile(r"\b(?:stopped|quit|quitted|ceased|gave\s+up|given\s+up|(?:am|is|are)\s+done)\s+(?=\w+ing\b)")
_ONCE = re.compile(r"\bused\s+to\b")
_PASSIVE_USE = re.compile(r"\b(?:am|is|are|was|were|be|been|get|gets|got|'m|'re|'s)\s+used\s+to\b")
_FIRST = re.compile(r"(?:i|i['’](?:m|ve|d|ll)|we|we['’](?:re|ve|d|ll))(?!\w)")
_SAME_MEANING = ("like love prefer enjoy adore fancy favour", "live reside dwell", "eat consume", "own possess")
_MEANING = {stem(word): stem(group.split()[0]) for group in _SAME_MEANING for word in group.split()}
_OTHER_VERBS = ("want", "need", "use", "take", "drink", "think", "believe", "mean")
_VERBS_ONLY = frozenset(_MEANING.values()) | {stem(word) for word in _OTHER_VERBS}
_DEGREES = ("anymore", "longer", "again", "now", "still", "always", "usually", "often", "really", "any", "never")
_EMPTY = LIGHT | {"i", "me", "my", "mine", "myself", *_DEGREES}


class Claim(NamedTuple):
    """What a clause says.

    Attributes:
        first: whether the speaker says it of the speaker.
        subject: stem of the first word that names something; empty if the speaker is meant.
        said: stems of all words with meaning, the subject's included; words of one meaning are one.
        denied: whether it says that this is not so, or not any more.
        called: stem of the subject's name, if it is called by a role and a name; else empty.
        role: stems of the words of that role.
    """

    first: bool
    subject: str
    said: frozenset[str]
    denied: bool
    called: str = ""
    role: frozenset[str] = frozenset()

    @property
    def named(self) -> frozenset[str]:
        """What is said without the subject and verbs of liking, having and using: what it is about."""
        return self.said - _VERBS_ONLY - {self.subject}

    @property
    def sought(self) -> frozenset[str]:
        """What a text has that says the same of the same."""
        return self.named - self.role

    def ends(self, older: Claim) -> bool:
        """Whether an older claim of the same speaker cannot be so any more."""
        if self.denied == older.denied or self.first != older.first:
            return False
        for one in self._by_any_name():
            for two in older._by_any_name():
                both_named = one is not self and two is not older
                if one.subject == two.subject and not (both_named and self.role != older.role) and one._ends(two):
                    return True
        return False

    def _ends(self, older: Claim) -> bool:
        return bool(self.named) and (self.said <= older.said if self.denied else self.said == older.said)

    def _by_any_name(self) -> list[Claim]:
        """As it is, and with the name alone in place of role and name."""
        if not self.called:
            return [self]
        return [self, self._replace(subject=self.called, said=self.said - self.role, called="", role=frozenset())]


def claims_in(text: str) -> list[Claim]:
    """The claims of a text, in order."""
    found = []
    text = without_appositions(legible(text))
    names = [(words_of(role), words_of(name)[:1]) for role, name in introduced(text)]
    for sentence in _SENTENCE.split(normal(text)):
        if sentence.rstrip().endswith("?"):
            continue
        for clause in _CLAUSE.split(sentence):
            found += _claims(_BARE_NOT.sub(r"\1n't", clause.strip(" ,.!")), names)
    return found


def _claims(clause: str, names: Sequence[tuple[list[str], list[str]]]) -> list[Claim]:
    """The claims of a normal clause: of "I like tea and coffee" one about tea and one about coffee."""
    whole = _claim(clause, names)
    parts = [[stem(word) for word in words_of(part) if word not in _EMPTY] for part in _AND.split(clause)]
    if whole is None or len(parts) < 2 or len(parts[0]) < 2 or not all(parts):
        return [] if whole is None else [whole]
    own = [{_MEANING.get(word, word) for word in (part if i else part[-1:])} for i, part in enumerate(parts)]
    found = []
    for i, mine in enumerate(own):
        others = {word for j, words in enumerate(own) if j != i for word in words}
        found.append(whole._replace(said=whole.said - (others - mine)))
    return found


def _claim(clause: str, names: Sequence[tuple[list[str], list[str]]]) -> Claim | None:
    """The claim of a normal clause, given the roles and names that people have in the text; None for none."""
    clause = _LEAD.sub("", clause, count=1) if _LEAD.match(clause) else clause
    if not clause or _CONDITION.match(clause):
        return None
    plain = _PASSIVE_USE.sub(" ", clause)
    denied = bool(_NOT.search(plain) or _NO_MORE.search(plain) or _STOPPED.search(plain) or _ONCE.search(plain))
    for cue in (_NO_MORE, _STOPPED, _ONCE):
        plain = cue.sub(" ", plain)
    first = _FIRST.match(clause) is not None
    words = [stem(word) for word in words_of(plain) if word not in _EMPTY]
    words = [_MEANING.get(word, word) for word in words]
    if not words:
        return None
    claim = Claim(first, "" if first else words[0], frozenset(words), denied)
    for role, name in () if first else names:
        if words_of(clause)[1 : 1 + len(role) + 1] == [*role, *name]:
            return claim._replace(called=stem(name[0]), role=frozenset(map(stem, role)))
    return claim

"""Reads what sentences claim or deny, and which earlier claim a later one ends.

    old, = claims_in("I drink coffee.")
    new, = claims_in("I don't drink coffee anymore.")
    new.ends(old)                       # True: the same sentence, denied
    other, = claims_in("I gave up coffee.")
    other.ends(old)                     # False: that would be a guess

A denial ends what it denies word for word, and a claim ends the same denial. Nothing else is an end; what only comes
before something else is decided in `supersession`. Questions and conditions claim nothing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .readers.reading import legible
from .words import IRREGULAR, LIGHT, normal, same_text, stem, words_of

_SENTENCE = re.compile(r"(?<=[.!?;]) |(?<=[。؟])")
_CLAUSE = re.compile(
    r",? (?:but|although|though|whereas) |, (?:and )?(?=(?:i|we|you|he|she|it|they|my|our|his|her|their|the)\b)"
    r"| and (?=(?:i|we|he|she|they)\b)"
)
_CONDITION = re.compile(r"(?:if|unless|when(?:ever)?|suppose|imagine|whether)\b")
_BE_OR_CAN = "is|are|am|was|were|can|could|will|would|should|shall|does|did|has"
_ASKS = re.compile(
    rf"(?:(?:who|whom|where|when|why|what|which|whose|how)(?:['’]s|['’]re| (?:{_BE_OR_CAN}|do|have)\b)"
    rf"|(?:what|which|whose|how) (?!i\b|you\b|we\b|they\b|he\b|she\b|it\b)\w+ (?:\w+ )?(?:{_BE_OR_CAN}|do|have)\b"
    r"|(?:do|have|don['’]t|haven['’]t) (?:i|you|we|they)\b"
    rf"|(?:{_BE_OR_CAN})(?:n['’]t)? (?:i|you|we|they|he|she|it|my|your|our|his|her|their|the|there|this|that|an?)\b)"
)
_QUESTION_ENDS = ("?", "؟", "吗", "か", "까")
_TALK_WORDS = """
    thanks thank hello hi hey bye goodbye ok okay yes yeah yep no nope please sorry welcome cheers great cool nice good
    fine well morning evening night afternoon wow lol haha sure right oh
    danke bitte hallo hi tschüss ja nein guten tag morgen merci bonjour salut oui non gracias hola adiós adios sí buenos
    días grazie ciao prego buongiorno obrigado obrigada olá sim não tak hej спасибо привет да нет
"""
_TALK = frozenset(_TALK_WORDS.split())
_GREETINGS = frozenset(("谢谢", "你好", "ありがとう", "ありがとうございます", "こんにちは", "감사합니다", "안녕하세요"))

_BE = re.compile(
    r"(?:['’](?:(?<=\bi.)m|(?:(?<=\bwe.)|(?<=\byou.)|(?<=\bthey.))re"
    r"|(?:(?<=\bhe.)|(?<=\bshe.)|(?<=\bit.)|(?<=\bthat.)|(?<=\bthere.))s)|a(?<=\ba)(?:m|re)|i(?<=\bi)s)\b"
)
"""Each way begins with a character of its own, so that a search skips what begins with another."""
_BARE_NOT = re.compile(r"\b(do|does|did|is|are|was|were|ca|wo|has|have|had|should|would|could)nt\b")
_SHORT_NOT = re.compile(r"n['’]t\b|(?<=\bcan)not\b")
_DO_NOT = re.compile(r"\b(?:do|does) not\b")
_NOT = re.compile(r"\b(?:not|never)\b")
_NO = re.compile(r"\bno(?! longer\b| more\b)\b")
_NO_MORE = re.compile(r"\b(?:any ?more|any longer|no longer|no more)\b")
_OVER = re.compile(
    r"\b(?:stopped|quit|quitted|ceased|gave up|given up) (?=\w+ing\b)|(?<!\bbe )(?<!\bget )(?<!\bgot )\bused to\b"
)
_MAY_DENY = re.compile(r"n['’]?t\b|no|never|any|stopped|quit|ceased|up|used")
_DEPENDENT = re.compile(r"\b(?:who|whom|whose|which|that|where|when|if|because|while|than|as|to|without)\b")
_NO_WORDS = frozenset(("a", "an", "the", "any", "some", "again", "now", "and", "so", "oh", "yes", "no", "actually"))
_DEGREES = frozenset(("anymore", "longer", "never", "cannot", "again", "now", "still", "really", "any", "not"))


class Claim(NamedTuple):
    """A clause's statement.

    Attributes:
        words: the clause word by word, without its negation; one form of "be" and of a verb in the present.
        denied: whether it says that this is not so.
        over: whether it says that this was so and is over: nothing ends that.
        content: stems of the words with meaning.
    """

    words: tuple[str, ...]
    denied: bool
    over: bool
    content: frozenset[str]

    def ends(self, older: Claim) -> bool:
        """Decide whether a claim negates an older one word for word."""
        return bool(self.content) and self.denied != older.denied and not older.over and self.words == older.words


def claims_in(text: str) -> list[Claim]:
    """List the claims of a text, in order."""
    clauses = (clause for one in sentences_in(text) if not is_question(one) for clause in _CLAUSE.split(one))
    return [claim for clause in clauses if (claim := _claim(clause.strip(" ,.!;。"))) is not None]


def sentences_in(text: str) -> list[str]:
    """List a short text's sentences in normal form."""
    lines = legible(normal(text)).splitlines()
    return [sentence for line in lines for sentence in _SENTENCE.split(line) if sentence.strip()]


def is_question(sentence: str) -> bool:
    """Decide whether a normal sentence asks."""
    return sentence.rstrip(" .!。\"'”’)").endswith(_QUESTION_ENDS) or _ASKS.match(sentence) is not None


def tells_nothing(text: str) -> bool:
    """Decide whether a text is questions and small talk alone."""
    sentences = sentences_in(text)
    return bool(sentences) and all(is_question(one) or _is_talk(one) for one in sentences)


def _is_talk(sentence: str) -> bool:
    words = words_of(sentence)
    return (not _TALK.isdisjoint(words) and all(word in _TALK or word in LIGHT for word in words)) or (
        not sentence.isascii() and same_text(sentence) in _GREETINGS
    )


def _claim(clause: str) -> Claim | None:
    """Return the claim of a normal clause; None for none."""
    if not clause or _CONDITION.match(clause):
        return None
    plain, cues = _BE.sub(" be", clause), list[re.Match[str] | None]([None] * 4)
    if _MAY_DENY.search(clause):
        plain = _BARE_NOT.sub(r"\1n't", clause).replace("won't", "will not").replace("can't", "can not")
        plain = _BE.sub(" be", _SHORT_NOT.sub(" not", plain))
        cues = [cue.search(plain) for cue in (_NOT, _NO, _NO_MORE, _OVER)]
    denied = any(cues)
    if denied:
        first = min(cue.start() for cue in cues if cue)
        sure = len(_NOT.findall(plain)) < 2 and not _DEPENDENT.search(plain, 0, first)
        plain = _DO_NOT.sub(" ", plain)
        for cue in (_OVER, _NO_MORE, _NOT, _NO):
            plain = cue.sub(" ", plain)
    words = words_of(plain)
    content = frozenset(stem(word) for word in words if word not in LIGHT and word not in _DEGREES and word != "i")
    bare = tuple(word if _is_past(word) else stem(word) for word in words if word not in _NO_WORDS)
    if denied and not sure:
        bare = ("not", *bare)
    return Claim(bare, denied, bool(cues[3]), content) if bare else None


def _is_past(word: str) -> bool:
    return word.endswith("ed") or (word in IRREGULAR and not word.endswith("s"))

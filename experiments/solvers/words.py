"""Words of an instruction: lexicons, guesses by use and looks, conditions with two branches, what is forbidden.

    tables = lexicon_of("experiments.solvers.eb_alfred")            # title -> lines of its lexicon.txt
    phrases_of(tables["things"])["wrist", "watch"]                  # ("Watch",)
    guess(("tell", "the", "time"), table_of(tables["uses of things"]))       # ("AlarmClock", "Watch")
    choice = choice_of("if the fridge is open, close it, otherwise go to the sofa", state_of)
    choice.state, choice.then, choice.otherwise         # State(...), "close it", "go to the sofa"
    wishes_of("put the cup on the sofa, but not in the sink")       # ("put the cup on the sofa", ("not in the sink",))

A table maps words to the kinds that they speak for, the likeliest first. The words of clauses are closed classes, so
that the grammar knows no world; the lexicons of a world say what is a thing and what is a place. A condition that is
not understood as a whole is none.
"""

from __future__ import annotations

import dataclasses
import importlib.resources
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

Table = Mapping[str, tuple[str, ...]]
Goal = TypeVar("Goal")


@dataclasses.dataclass(frozen=True)
class Mention:
    """A phrase of a lexicon in a sentence: the words from `start` to before `end`, and the kinds that it may mean."""

    start: int
    end: int
    kinds: tuple[str, ...]


def lexicon_of(package: str) -> dict[str, str]:
    """Read the tables in a package's file `lexicon.txt`.

    Each is under a line `[title]`; lines with # in front are left out.
    """
    tables: dict[str, str] = {}
    title = ""
    for line in importlib.resources.files(package).joinpath("lexicon.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            title = line.strip("[]")
            tables[title] = ""
        elif line and not line.startswith("#"):
            tables[title] += f"{line}\n"
    return tables


def phrases_of(text: str, separator: str | None = None) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Reads lines `phrase, phrase: Kind Kind`.

    Args:
        text: the lines.
        separator: between kinds; None for blank space.
    """
    phrases = {}
    for line in text.splitlines():
        names, _, kinds = line.partition(":")
        for name in names.split(","):
            phrases[tuple(name.split())] = tuple(kinds.strip().split(separator))
    return phrases


def mentions_of(
    spellings: Sequence[Sequence[str]], lexicon: Mapping[tuple[str, ...], tuple[str, ...]], longest: int
) -> list[Mention]:
    """Find phrases of a lexicon in a sentence, in order.

    Of those that begin at a word it is the longest.

    Args:
        spellings: the words of the sentence, or several forms of each (as written, in the singular); the first known
            counts.
        lexicon: see `phrases_of`.
        longest: words of its longest phrase.
    """
    found, i, count = [], 0, len(spellings[0])
    while i < count:
        ends = range(min(i + longest, count), i, -1)
        known = ((end, lexicon.get(tuple(words[i:end]))) for end in ends for words in spellings)
        end, kinds = next(((end, kinds) for end, kinds in known if kinds), (i + 1, None))
        if kinds:
            found.append(Mention(i, end, kinds))
        i = end
    return found


def table_of(text: str, separator: str = " ") -> Table:
    """Reads lines `word word ...: Kind Kind`.

    Args:
        text: the lines.
        separator: between kinds.
    """
    table: dict[str, tuple[str, ...]] = {}
    for line in text.strip().splitlines():
        words, _, kinds = line.partition(":")
        for word in words.split():
            table[word] = (*table.get(word, ()), *kinds.strip().split(separator))
    return table


_BEFORE_HEAD = frozenset(("and", "colored", "coloured"))
_AFTER_HEAD = frozenset(("that", "which", "is", "are", "both", "and", "or", "in", "color", "colour"))


def described(
    words: Sequence[str], single: Sequence[str], heads: Collection[str], looks: Table, order: Sequence[str]
) -> Iterator[Mention]:
    """Yield things by their looks: "a small red fruit", "something round".

    Args:
        words, single: of the sentence, as written and in the singular.
        heads: words for any thing, or for many.
        looks: word -> the kinds of which it holds.
        order: all kinds, the likeliest first; those for which most of the words hold are meant.
    """
    for i, head in enumerate(single):
        if head not in heads:
            continue
        start, end = i, i + 1
        while start and (words[start - 1] in looks or words[start - 1] in _BEFORE_HEAD):
            start -= 1
        while end < len(words) and (words[end] in looks or words[end] in _AFTER_HEAD):
            end += 1
        while words[end - 1] in _AFTER_HEAD:
            end -= 1
        told = [set(looks[word]) for word in dict.fromkeys((*words[start:end], head)) if word in looks]
        hits = {kind: sum(kind in look for look in told) for kind in order}
        if told:
            most = max(hits.values())
            yield Mention(start, end, tuple(kind for kind in order if hits[kind] == most))


def guess(words: Iterable[str], table: Table, limit: int = 6) -> tuple[str, ...]:
    """Rank the kinds that the words speak for, the likeliest first.

    There is none if no word is known.
    """
    votes: defaultdict[str, float] = defaultdict(float)
    for word in dict.fromkeys(words):
        kinds = table.get(word, ())
        for rank, kind in enumerate(kinds):
            votes[kind] += 1 / (rank + 1) / math.sqrt(len(kinds))
    return tuple(sorted(votes, key=votes.__getitem__, reverse=True)[:limit])


_OPEN, _CLOSED = frozenset(("open", "opened", "ajar")), frozenset(("closed", "shut"))
_EMPTY, _HELD = frozenset(("empty", "bare", "unoccupied", "nothing")), frozenset(("something", "anything", "occupied"))
_NOT = frozenset(("not", "no", "none", "missing", "absent", "never"))
_FUNCTION = frozenset(
    re.findall(
        r"\w+",
        "is are was were be turns out case true been being the a an any some there it its s that this these those in "
        "on at inside within "
        "into onto upon of off from to your our my you i we they can could may might do does did see find spot notice "
        "discover happen happens already currently still now right just indeed really even door doors has have having "
        "holds contains contain hold with lying lies lie laying sitting sits sit placed located standing stands "
        "resting rests which one ones least all either or also present exists exist visible somewhere anywhere around "
        "here apartment room house home found seen appears seems stays remains such thing item object surface top "
        "wide fully completely partly as other moment kind sort lid stored kept put yet by ",
    )
)
_EXISTS = frozenset(("there", verb) for verb in ("is", "are", "was", "be", "exists", "happens"))
_PRONOUN = frozenset(("it", "its", "there", "that", "this", "them", "one", "door"))

REQUESTS = (
    "put|place|set|move|bring|take|get|fetch|carry|deliver|transfer|relocate|transport|shift|position|arrange|deposit"
    "|lay|pick|grab|retrieve|gather|acquire|obtain|secure|collect|drop|leave|store|return|give|hand|send|stow|stash"
    "|slide|haul|toss|throw|dump|discard|remove|displace|lift|detach|extract|reposition|locate|find|go|walk|navigate"
    "|head|travel|proceed|journey|reach|open|close|shut|visit|approach|keep|tuck|load|convey|ferry|swap|clear|slip|rest"
    "|organize|turn|heat|cool|wash|rinse|clean|slice|cut|chill|warm|cook|examine|inspect|hold|do|stay|stop|use|drive"
    "|microwave|refrigerate|want|need|like|goes|belongs|should|must"
)
_REQUEST = re.compile(rf"\b(?:{REQUESTS})\b")
_IF = re.compile(
    r"\b(?:(?:but )?only (?:if|when)|if|in case|provided(?: that)?|providing(?: that)?|assuming(?: that)?|as long as"
    r"|so long as|in the event(?: that)?|on condition that|supposing(?: that)?|suppose(?: that)?|should|when|whenever"
    r"|unless|in the case(?: that| where)?)\b"
)
_ELSE = re.compile(
    r"(?<![\s,;.!?:-])[\s,;.!?:-]*(?:\b(?:and|but|or)\s+)?"
    r"\b(?:otherwise|or else|(?<!thing )(?<!where )(?<!one )else|alternatively"
    r"|(?:if|when) (?:not|no|(?:it|this|that) (?:is|does) not(?: the case| so| true)?|they are not"
    r"|there (?:is|are) (?:none|not(?: any| one)?)"
    r"|you (?:do not|cannot)(?: see| find)?(?: it| one| any| them)?)(?= ?[,:.;]| then| (?:please )?(?:"
    + REQUESTS
    + r"))|in (?:any|all|the) (?:other|opposite|contrary) cases?|failing that|in case not)\b(?: then)?[\s,:;.]*"
)
_IN_WHICH_CASE = re.compile(r"[\s,;.]*\b(?:in which case|in that case)\b[\s,]*")
_CHECK = (
    r"(?:please )?(?:first,? )?(?:go and |have a )?(?:\b(?:check|see|look|find out|verify|determine|test|inspect)"
    r"|\bi (?:do not know|am not sure|can not remember|forgot|wonder))\b"
)
_CHECKED = re.compile(
    _CHECK
    + r"(?: and see| to see)?(?: for yourself)? (?:whether|if) ([^.;:?]{1,100}?)(?:,? or not)? ?[.,;:] ?(?:and )?"
    r"(?:if (?:so|it is|yes|this is the case|that is (?:so|the case|true)|they are|there (?:is|are)(?: one| any)?)"
    r"|in that case)\b[,:]?"
)
_ASKED = re.compile(r"^\s*(?:is|are) ([^.;:?]+)\?\s*(?:if (?:so|it is|yes|they are|there is)|then|in that case)\b[,:]?")
_WONDERED = re.compile(r"\b(?:know|wonder|sure|certain|unsure|tell|remember|check|see|look|out|forgot)(?: me)? $")
_END = re.compile(r"[,;:.?!]|\bthen\b|\s-+\s|\s(?:but|and|or) (?:if|when|otherwise|else)\b")
_THEN = re.compile(r"^[\s,;:.?!-]*(?:(?:then|please|and|you should|you can)\b[\s,]*)*")
_NEW_SENTENCE = re.compile(r"(?:[.!?;:]|\b(?:and|but|then|however)\b,?|^)\s*$")

_NEXT = rf"(?= (?:and|but|then|instead) (?:(?:please|then|instead) ){{,3}}(?:{REQUESTS})\b)"
_OR = r",(?=(?: ?(?:the|a|an|any) \w+(?: (?!or\b)\w+)?,?){,6} ?(?:or|nor)\b)"
_NOUN = (
    r"(?: (?:in|on|onto|into|to|from|at|inside)(?= ))?(?: the ones?(?: that is)? (?:in|on|from|at))?"
    r"(?: (?!(?:in|on|onto|into|to|from|at|inside|and|but|should|must|is|are)\b)[\w'-]+){1,4}(?:,? (?:or|and) the \w+)?"
)
_UNTIL = rf"(?:(?!{_NEXT})(?! but (?!not\b))(?:[^.:;,!?()]|{_OR}))*"
_WHERE_IT_IS = (
    r"(?:(?:exactly |just |right )?(?:where|as) (?:it|they) (?:is|are|was|were|lies?|stands?|sits?|stays?|belongs?)"
    r"(?: now| already| currently)?|alone|untouched|undisturbed|unmoved|in peace|be\b|in (?:its|their) (?:current )?"
    r"(?:place|spot|position)s?|in place)"
)
_FORBIDS = re.compile(
    rf"(?<![ ,;])[ ,;]*(?:\b(?:and|but|while|though|yet) )?(?:please )?\b(?:"
    rf"(?:(?:(?:be|take) care(?:ful)?|(?:make|be) sure|remember|try) not to|(?:make sure|ensure) (?:that )?you do not"
    rf"|i (?:do|would) not (?:want|like|need)|(?:you )?(?<!\bi )(?<!\bwe )(?<!\bthey )(?:do|must|should|may|can|shall)"
    rf" not(?! (?:forget|fail|hesitate|worry|mind|know))|(?<!i )never|without|avoid|refrain from|ignore|disregard"
    rf"|(?<!not )forget about|(?:there is )?no need to|(?:stay|keep) away from)\b{_UNTIL}"
    rf"|(?:instead of|rather than|except(?: for)?|excluding|apart from|other than|as opposed to"
    rf"|anywhere (?:but|except)|(?<=thing )but|(?<=\ball )but)\b{_NOUN}"
    rf"|(?:leave|keep|let) [^.;,!?]{{,80}}?\b{_WHERE_IT_IS}"
    rf"|(?:leave|keep) (?:the|its?|that)\b[^.;,!?]{{,80}}?\b(?:closed|shut|unopened)\b"
    rf"|the [^.;,!?]{{,80}}?(?:is|are) not (?:needed|wanted|required|necessary)"
    rf"|the [^.;,!?]{{,80}}?(?:must|should|has to|have to|shall) (?:stay|remain|be left|be kept)[^.;,!?]*"
    rf"|(?<=[,;] )(?:certainly |definitely )?not\s(?!only|just|far|next)[^.;,!?]*"
    rf"|(?<=\b(?:and|but) )(?:certainly |definitely )?not\s(?!only|just|far|next|to the|left|right|near|close|beside)"
    rf"{_UNTIL}|(?<=\bbut )(?:with )?no\s{_UNTIL})"
)
_BUT = re.compile(r"\b(?:do )?not ((?:(?!\b(?:is|are|but)\b)[^.;!?]){,80}?),? but (?!not\b)(?:rather )?")


def plain(text: str) -> str:
    """Return a text in small letters with negations written out.

    Apostrophes and blanks are of one kind each.
    """
    text = " ".join(text.lower().replace("\u2019", "'").replace("\u2014", " - ").replace("\u2013", " - ").split())
    text = re.sub(r"\b(?:can't|cannot|can not)\b", "can not", text)
    text = re.sub(r"\bwon't\b", "will not", text)
    text = re.sub(r"\b(do|does|did|is|are|was|were|should|must|need|have|has)n'?t\b", r"\1 not", text)
    return re.sub(r"\b(there|it|that|here|what)'s\b", r"\1 is", text)


@dataclasses.dataclass(frozen=True)
class State:
    """A state of the world that can be looked up.

    Attributes:
        places: kinds of the place, the likeliest first; empty for anywhere.
        things: kinds of things in it, each of which will do; empty for a door, or for anything at all.
        is_door: whether the place's door is meant.
        holds: whether the door is open, the thing is there, the place has something.
    """

    places: tuple[str, ...]
    things: tuple[str, ...]
    is_door: bool
    holds: bool

    def negated(self) -> State:
        """Return the opposite."""
        return dataclasses.replace(self, holds=not self.holds)


def state_of(
    words: Sequence[str], places: Sequence[Mention], things: Sequence[Mention], context: tuple[str, ...] = ()
) -> State | None:
    """Return the state that a clause tells; None for an unknown word.

    Args:
        words: of the clause, small letters.
        places, things: that it names.
        context: kinds of the place that was named before it.
    """
    named = {i for mention in (*places, *things) for i in range(mention.start, mention.end)}
    rest = [word for i, word in enumerate(words) if i not in named]
    told = set(rest)
    if not told or told - (_FUNCTION | _NOT | _OPEN | _CLOSED | _EMPTY | _HELD) or len(places) > 1:
        return None
    if len(things) > 1 and "or" not in told:
        return None
    refers = any(
        word in _PRONOUN and (word, next_word) not in _EXISTS for word, next_word in zip(words, [*words[1:], ""])
    )
    where = places[0].kinds if places else context if refers else ()
    holds = sum(word in _NOT for word in rest) % 2 == 0
    if told & (_OPEN | _CLOSED):
        if things or not where or (told & _OPEN and told & _CLOSED):
            return None
        return State(where, (), True, holds == bool(told & _OPEN))
    if things:
        kinds = things[0].kinds[:1] if len(things) == 1 else tuple(thing.kinds[0] for thing in things)
        return State(where, kinds, False, holds)
    if where and told & (_EMPTY | _HELD):
        return State(where, (), False, holds != bool(told & _EMPTY))
    return None


@dataclasses.dataclass(frozen=True)
class Choice:
    """A condition in an instruction.

    Attributes:
        clause: its words.
        state: what they tell; None where they are not understood and another branch is named.
        before: what is to be done in any case.
        then, otherwise: the branches; empty where nothing is to be done.
    """

    clause: str
    state: State | None
    before: str
    then: str
    otherwise: str


def choice_of(text: str, read: Callable[[str, str], State | None]) -> Choice | None:
    """Return the first condition of an instruction; None without one.

    Args:
        text: as `plain` returns it.
        read: (a clause, the text before it) -> the state that the clause tells, or None.
    """
    text = _ASKED.sub(r"if \1,", _CHECKED.sub(r"if \1,", text))
    unread = None
    for found in _IF.finditer(text):
        head = text[: found.start()]
        if _WONDERED.search(head):
            continue
        end, state = _condition(text, found.end(), head, read)
        if state is not None:
            if found[0] == "unless":
                state = state.negated()
            return _branches(text, found.start(), found.end(), end, state, read)
        if unread is None and found[0] in ("if", "unless") and not _ELSE.match(head[-1:] + text[found.start() :]):
            unread = found
    if unread is not None and (stop := _END.search(text, unread.end())) and _ELSE.search(text, stop.start()):
        return _branches(text, unread.start(), unread.end(), stop.start(), None, read)
    return None


def _condition(
    text: str, start: int, before: str, read: Callable[[str, str], State | None]
) -> tuple[int, State | None]:
    """Read a condition that begins at `start`: (its end, its state).

    It comes after the text `before`.
    """
    ends = [found.start() for found in _END.finditer(text, start)][:2]
    verbs = [
        found.start()
        for found in re.finditer(rf"(?<!\bthe)(?<!\ba)(?<!\ban)\s(?:please |otherwise|else|{REQUESTS})\b", text[start:])
    ][:3]
    for end in [*ends, *(start + verb for verb in verbs), len(text)]:
        if (state := read(text[start:end], before)) is not None:
            return end, state
    return start, None


def _branches(
    text: str, start: int, after: int, end: int, state: State | None, read: Callable[[str, str], State | None]
) -> Choice:
    clause, head, tail = text[after:end], text[:start], text[end:]
    asks = bool(_REQUEST.search(re.sub(_CHECK + r"[^.;:]*", "", head)))
    head = head if asks else ""
    follows = asks and not _NEW_SENTENCE.search(head)
    other = _ELSE.search(tail)
    cut, rest = (other.start(), other.end()) if other else (len(tail), len(tail))
    if follows and not other and (case := _IN_WHICH_CASE.match(tail)):
        cut, rest = case.start(), case.end()
    for second in _IF.finditer(tail[:cut]):
        stop, told = _condition(tail, second.end(), text[:end], read)
        if state is not None and told == state.negated():
            cut, rest = second.start(), stop
            break
    then, otherwise = _THEN.sub("", tail[:cut]).rstrip(" ,;"), _THEN.sub("", tail[rest:])
    otherwise = re.sub(r"(?:[,;.]|(?<!\s))\s*\b(?:and|but)\s*$", "", otherwise)
    then = re.sub(r"(?:[,;.]|\b(?:and|but)\b)\s*$", "", then).rstrip(" ,;.")
    if follows:
        return Choice(clause, state, then if rest < len(tail) or not then else "", head.rstrip(" ,"), otherwise or then)
    if asks and not otherwise and re.search(r"\binstead\b", then):
        return Choice(clause, state, "", then, re.sub(r"\b(?:and|but|however)\s*+,?\s*$", "", head))
    if (
        not otherwise
        and (more := re.match(r"([^.;!]+)[.;!]\s*(.+)$", then))
        and not re.search(r"\b(?:it|them)\b", more[2])
    ):
        then, head = more[1], f"{head} {more[2]}".strip()
    return Choice(
        clause, state, re.sub(r"(?<![,\s])[,\s]*\b(?:and|but|then|however)\b[,\s]*$", "", head), then, otherwise
    )


def wishes_of(text: str) -> tuple[str, tuple[str, ...]]:
    """Return an instruction without what it forbids, and the clauses that forbid.

    Args:
        text: as `plain` returns it.
    """
    forbidden: list[str] = []

    def drop(found: re.Match[str]) -> str:
        forbidden.append(found[0].strip(" ,;"))
        return " "

    wishes = _FORBIDS.sub(drop, " ".join(_BUT.sub(drop, text).split()))
    return re.sub(r"^[\s,;.:]*(?:(?:but|and)\s+)?", "", wishes).rstrip(" ,;."), tuple(forbidden)


def resolved(text: str, thing: str, place: str, *, names_thing: bool, names_place: bool) -> str:
    """Return a branch with names for its pronouns or missing words.

    Args:
        text: of the branch.
        thing, place: that were named before it; empty for none.
        names_thing, names_place: whether the branch names one itself.
    """
    if place and not names_place:
        text = re.sub(r"\b(close|shut|open)( up)? (?:it|that|this|the door|its door)\b", rf"\1 the {place}", text)
        text = re.sub(r"\b(in|into|on|onto|inside|to|from|at|near) (?:it|there|that|this)\b", rf"\1 the {place}", text)
        text = re.sub(
            r"(?<!in )(?<!on )\bthere\b(?! is| are)|\binside\b(?! the| a)|\bin there\b", f"in the {place}", text
        )
    if thing and not names_thing and not re.search(r"\b(?:close|shut|open|go|walk|head|navigate|visit|drive)\b", text):
        text, count = re.subn(r"\b(?:it|them|that one|one|this|that)\b", f"the {thing}", text, count=1)
        if not count and re.match(r"(?:(?:in|into|on|onto|to|inside|at|use|the)\b)", text):
            text = f"put the {thing} {re.sub(r'^(?:use )?(?=the )', 'on ', re.sub(r'^use ', '', text))}"
    return text


class Named(Protocol):
    """Names in a text, by a world's lexicons; things and places in the order of the text."""

    words: list[str]
    places: Sequence[Mention]

    @property
    def things(self) -> Sequence[Mention]: ...


def goal_of(
    text: str,
    named: Callable[[str], Named],
    plain_goal: Callable[[str], Goal],
    choose: Callable[[State, Goal, Goal], Goal],
) -> Goal:
    """Return the goal of an instruction; its conditions are read first.

    Args:
        text: as `plain` returns it.
        named: reads a text by the lexicons of the world.
        plain_goal: reads a text without conditions.
        choose: (state, then, otherwise) -> the goal that a condition decides on.
    """

    def read(clause: str, before: str) -> State | None:
        told, earlier = named(clause), named(before).places
        return state_of(told.words, told.places, told.things, earlier[-1].kinds if earlier else ())

    def phrases(text: str) -> list[str]:
        told = named(text)
        return [" ".join(told.words[m[-1].start : m[-1].end]) if m else "" for m in (told.things, told.places)]

    choice = choice_of(text, read)
    if choice is None:
        return plain_goal(text)

    def branch(text: str, thing: str, place: str) -> Goal:
        told = named(text)
        text = resolved(text, thing, place, names_thing=bool(told.things), names_place=bool(told.places))
        return goal_of(f"{choice.before}. {text}" if choice.before else text, named, plain_goal, choose)

    (thing, place), (before, there) = phrases(choice.clause), phrases(choice.before)
    then = branch(choice.then, thing or before, place or there)
    if choice.state is None:
        return then
    first, aim = phrases(choice.then)
    other, told = choice.otherwise, named(choice.otherwise)
    if (aim or place) and re.match(r"(?:an?|the) ", other) and told.things and not told.places:
        other = f"put {other} on the {aim or place}"
    return choose(choice.state, then, branch(other, thing or before or first, aim or place))

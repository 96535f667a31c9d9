"""EB-Habitat's places and kinds: names, how places stand, and places that are described by other places.

    layout = Layout.of("... \\nAround the sofa: the black table 0.4 m to the left, next to it.")
    layout.cost("left", "table 1", ("sofa",))   # 0.4; the least of several places is the one that is meant
    words = "put it on the table left of the sofa".split()
    described(words, places_in(words), layout)       # (Mention(start=4, end=9, kinds=("table 1", "table 2")),)

A description is a noun, a run of closed-class words with a relation in it, and another noun, which may be described
itself. The words stand in `lexicon.txt`; the structure is here:

    noun RUN noun                  the counter that stands right next to the sink
    relation noun run noun         the closest table to the sofa
    RUN noun                       to the left of the sink: any place
    noun 's RUN (noun)             the sofa's left side, the sink's nearest counter
    noun WITH noun RUN             the table with the sofa on its left
    noun WHOSE RUN noun            the table whose left neighbour is the sofa, to the left of which is the sofa
    noun RUN ITS                   ... the sofa ... the table to its left
    and RUN noun, and noun         more about the same noun; the other end of "between"

All that a noun may mean is put in order of how well it fits what the first text tells of places.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Mapping, Sequence

from embodied_mem.worlds.eb_habitat.engine import ACTIONS, TARGETS

from ..words import Mention, lexicon_of, mentions_of, phrases_of

DOORS = {
    "refrigerator": ("refrigerator push point", "refrigerator"),
    "left drawer of the kitchen counter": ("cabinet 7", "cabinet 7"),
    "right drawer of the kitchen counter": ("cabinet 5", "cabinet 5"),
}
"""Place behind a door -> (where to go, what to open)."""
PLACES = {
    "blacktable": "table 1",
    "browntable": "table 2",
    "tvstand": "TV stand",
    "sink": "sink in the kitchen",
    "leftcounter": "left counter in the kitchen",
    "rightcounter": "right counter in the kitchen",
    "sofa": "sofa",
    "chair": "chair 1",
    "fridge": "refrigerator",
    "leftdrawer": "left drawer of the kitchen counter",
    "rightdrawer": "right drawer of the kitchen counter",
}
"""Kind of place in ALFWorld's wording -> EB-Habitat's name; there is one of each. In the order in which they are
searched: on the training side nothing lies on the chair or behind a door at the start."""
SPOKEN = {name: kind for kind, name in PLACES.items()}
"""EB-Habitat's name of a place -> its kind in ALFWorld's wording."""
KINDS = {
    action.removeprefix("pick up the ").replace(" ", ""): action.removeprefix("pick up the ")
    for action in ACTIONS
    if action.startswith("pick up the ")
}
"""Kind of thing in ALFWorld's wording -> EB-Habitat's name."""


_AROUND = re.compile(r"Around the ([^:]+): (.+)\.")
_OTHER = re.compile(r"the (.{1,80}?) (\d+\.\d) m([a-z ]*)(, next to it)?")
_UNDER = re.compile(r"Under the ([^:]+): the (.+)\.")
_NAMES = {looks: phrase for _, phrase, looks in TARGETS if not phrase.startswith(("cabinet", "refrigerator push"))}
_SIDES = {
    "to the left": "left of",
    "to the right": "right of",
    "in front": "at the front of",
    "behind": "at the back of",
}
RELATIONS = {
    "left": "left of",
    "right": "right of",
    "next": "next to",
    "front": "at the front of",
    "behind": "at the back of",
    "under": "under",
}
"""Relation of an instruction -> of a fact; "near" and "far", "between", "above" are found from these and distances."""
_UNTOLD_M, _AMISS_M, _ASIDE_M = 20.0, 40.0, 3.0
"""Cost of a distance that is not told, of a relation that does not hold, of another side that is told, too."""

Fact = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Layout:
    """The layout in a first text.

    Attributes:
        facts: (place, relation, anchor), the places nearest to each anchor first.
        gaps_m: (place, anchor) -> metres from edge to edge.
    """

    facts: tuple[Fact, ...] = ()
    gaps_m: Mapping[tuple[str, str], float] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Layout:
        """Read a text's layout; a drawer stands like the counter above."""
        facts: dict[Fact, None] = {}
        gaps_m: dict[tuple[str, str], float] = {}
        for line in text.split("\n"):
            if around := _AROUND.fullmatch(line):
                anchor = _NAMES[around[1]]
                for found in _OTHER.finditer(around[2]):
                    place = _NAMES[found[1]]
                    gaps_m[place, anchor] = float(found[2])
                    facts |= {(place, name, anchor): None for side, name in _SIDES.items() if side in found[3]}
                    if found[4]:
                        facts[place, "next to", anchor] = None
            elif under := _UNDER.fullmatch(line):
                counter, drawer = _NAMES[under[1]], _NAMES[under[2]]
                for (place, anchor), gap in list(gaps_m.items()):
                    if counter in (place, anchor):
                        gaps_m[drawer if place == counter else place, drawer if anchor == counter else anchor] = gap
                for place, relation, anchor in list(facts):
                    if counter in (place, anchor) and relation != "under":
                        here, there = (drawer if name == counter else name for name in (place, anchor))
                        facts[here, relation, there] = None
                facts[drawer, "under", counter] = None
                gaps_m[drawer, counter] = gaps_m[counter, drawer] = 0.0
        return cls(tuple(facts), gaps_m)

    def cost(
        self, relation: str, place: str, anchors: Sequence[str], *, of_it: bool = False, no: bool = False
    ) -> float:
        """Score a place's misfit in metres, far worse without the told relation.

        Args:
            relation: a key of `RELATIONS`, "near", "far", "between", "above", "aside" (as "near"), or
                "beyond": on the far side of the first anchor from the second.
            place: that may be meant.
            anchors: the places that it is described by; of several, "between" and "beyond" take all, another the best.
            of_it: whether the anchors stand so to the place, as in "the table with the sofa on its left".
            no: whether the place is said not to stand so.
        """
        if relation == "between":
            return sum(self._gap_m(place, anchor) for anchor in anchors)
        if relation == "beyond" and len(anchors) > 1:
            middle, end = anchors[:2]
            to_middle, to_end = self._gap_m(place, middle), self._gap_m(place, end)
            return to_middle + (0 if to_end > max(to_middle, self._gap_m(middle, end)) else _AMISS_M)
        return min(self._cost(relation, place, anchor, of_it, no) for anchor in anchors)

    def _cost(self, relation: str, place: str, anchor: str, of_it: bool, no: bool) -> float:
        gap = self._gap_m(place, anchor)
        relation = "front" if relation == "beyond" else relation
        if relation == "far":
            return _UNTOLD_M - gap if (place, anchor) in self.gaps_m else _AMISS_M
        if of_it:
            place, anchor = anchor, place
        if relation == "above":
            relation, place, anchor = "under", anchor, place
        told = self._told(place, anchor)
        if relation in ("near", "aside"):
            holds = not no or "next to" not in told
        else:
            holds = (RELATIONS[relation] in told) != no
        aside = 0 if relation in ("near", "next", "aside") or no else sum(side in told for side in _SIDES.values()) - 1
        return gap + (0 if holds else _AMISS_M) + _ASIDE_M * max(aside, 0)

    def _told(self, place: str, anchor: str) -> Collection[str]:
        return self._relations.get((place, anchor), ())

    def _gap_m(self, place: str, anchor: str) -> float:
        return self.gaps_m.get((place, anchor), _UNTOLD_M)

    @functools.cached_property
    def _relations(self) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for place, relation, anchor in self.facts:
            found.setdefault((place, anchor), []).append(relation)
        return found


_TABLES = lexicon_of(__package__)
_CLASSES, _RELATIONS = phrases_of(_TABLES["classes"], "|"), phrases_of(_TABLES["relations"])
_LONGEST = 4


def _words_in(title: str) -> frozenset[str]:
    return frozenset(_TABLES[title].split())


_BETWEEN = _words_in("between places")
_ANY = ("any",)
_DETERMINERS, _LEFT_BY = _words_in("before a noun"), _words_in("before left, a verb")
_AFTER_SIDE, _BEFORE_SIDE = _words_in("after a side"), _words_in("before a side")
_ADJECTIVES = frozenset(("near", "far", "next", "front"))
"""Relations that may stand before a noun: the nearest, farthest, neighbouring, opposite table."""
_NEVER_ADJECTIVES, _WEAK = _words_in("never before a noun"), _words_in("weak")
_OWN = frozenset(("it", "its", "itself", "your", "you"))
_HAS, _TELLS = frozenset(("with", "has", "having", "have", "whose", "where")), frozenset(("has", "have"))
_RELATIVE, _IS = frozenset(("the", "that", "which")), frozenset(("is", "being", "stands", "standing", "sits", "lies"))
_VERBS_TOO = _words_in("verbs, too")
_IS_A = _words_in("tells of a place")
_NOT = frozenset(("not", "isn", "isnt"))
_BEHIND_A_DOOR_M = 0.5  # any place: rather one that is open
SOURCE = re.compile(
    r"\b(from|off|off of|away from|out of|that is on|that are on|which is on|located on|currently on|lying on"
    r"|sitting on)( the| a)? ?$"
)


@dataclasses.dataclass(frozen=True)
class _Run:
    """Words between places: the relations in them, and where they end; `last`: the end of the last relation."""

    end: int
    last: int
    relations: tuple[str, ...]
    words: frozenset[str]
    of_it: bool = False
    """True if it tells how the second place stands to the first: "whose left neighbour is"."""


@dataclasses.dataclass(frozen=True)
class _Constraint:
    relation: str
    anchors: tuple[str, ...]
    of_it: bool = False
    no: bool = False


class _Sentence:
    def __init__(self, words: list[str], places: Sequence[Mention], layout: Layout):
        self.words, self.layout = words, layout
        self.nouns = {place.start: place for place in places}
        taken = {i for place in places for i in range(place.start, place.end)}
        for noun in mentions_of((words,), _CLASSES, _LONGEST):
            span = set(range(noun.start, noun.end))
            first, before = words[noun.start], words[noun.start - 1] if noun.start else ""
            if not span & taken and (first not in _VERBS_TOO or before in _DETERMINERS):
                self.nouns[noun.start] = noun
                taken |= span
        self.relations = {
            found.start: found
            for found in mentions_of((words,), _RELATIONS, _LONGEST)
            if not taken & set(range(found.start, found.end)) and self._is_relation(found)
        }
        self.dropped: set[int] = set()  # places that only tell which other one is meant

    def _is_relation(self, found: Mention) -> bool:
        """Return whether a word is a relation here, unlike "right next to"."""
        word, before, after = self.words[found.start], self._word(found.start - 1), self._word(found.end)
        if word == "right":
            return after in _AFTER_SIDE or before in _BEFORE_SIDE
        if word == "left":
            return after in _AFTER_SIDE or (before in _BEFORE_SIDE and before not in _LEFT_BY)
        if word in ("close", "back", "over", "next", "top", "past", "before", "further"):
            return found.end > found.start + 1 or (
                after in ("to", "of", "by", "the") and (word not in ("back", "over") or (word, after) == ("back", "of"))
            )
        if word == "far":
            return found.end > found.start + 1 or after in ("from", "away", "side", "end")
        return True

    def _word(self, i: int) -> str:
        return self.words[i] if 0 <= i < len(self.words) else ""

    def run(self, start: int, *, joined: bool = False) -> _Run:
        """Return the next closed-class words; "and" begins them only if `joined`."""
        i = last = start
        relations: list[str] = []
        while i < len(self.words) and i not in self.nouns:
            if found := self.relations.get(i):
                relations.append(found.kinds[0])
                i = last = found.end
                continue
            if self.words[i] in ("and", "but") and not (joined and i == start):
                break
            if self.words[i] not in _BETWEEN | _HAS:
                break
            i += 1
            if self.words[i - 1] in ("hand", "end") and last == i - 1:
                last = i
        of_it = bool(re.search(r"\bwhose\b|\bof which\b", " ".join(self.words[start:i])))
        return _Run(i, last, tuple(relations), frozenset(self.words[start:i]), of_it and bool(relations))

    def is_source(self, start: int) -> bool:
        return bool(SOURCE.search(" ".join(self.words[max(0, start - 5) : start]) + " "))

    def phrase(
        self, noun: Mention, before: tuple[str, ...] = (), reference: Mention | None = None
    ) -> tuple[Mention, bool]:
        """Return (described noun, is described); `before`: relations in front."""
        constraints: list[_Constraint] = []
        end = noun.end
        while True:
            run = self.run(end, joined=bool(constraints))
            joined = self._word(end) in ("and", "but")
            other = self.nouns.get(run.end)
            relations = run.relations or (before if not constraints else ())
            no = bool(_NOT & run.words)
            if constraints and not joined and not {"that", "which"} & run.words:
                break  # "left of the sink to the right of the sofa" are two places
            if other is not None and self._word(other.end) == "s" and not run.relations:
                owned = self.run(other.end)
                if not owned.relations or (owned.last == owned.end and owned.end in self.nouns):
                    break
                constraints += self._constraints(owned, other.kinds, no=no)
                end = owned.last
                continue
            if other is not None and run.relations:
                anchors, end = self._anchors(other, run)
                if "both" in run.words:
                    constraints += [_Constraint(_main(run), (anchor,), no=no) for anchor in anchors]
                else:
                    constraints += self._constraints(run, anchors, of_it=run.of_it, no=no)
            elif other is not None and relations and not joined and {"to", "of", "from", "by"} & run.words:
                anchors, end = self._anchors(other, run)
                constraints += [_Constraint(relation, anchors) for relation in relations]
            elif other is not None and _HAS & run.words and not joined:
                if _TELLS & run.words and not {"that", "which"} & run.words:
                    break  # "the sofa has a table on its left" is about the table
                after = self.run(other.end)
                if not after.relations or (after.end in self.nouns and not _OWN & after.words):
                    break
                constraints += self._constraints(after, other.kinds, of_it=True, no=no)
                end = after.last
            elif (
                other is not None
                and joined
                and constraints[-1].of_it
                and (after := self.run(other.end)).relations
                and _OWN & after.words
            ):
                constraints += self._constraints(after, other.kinds, of_it=True, no=no)
                end = after.last
            elif other is not None and not joined and run.words <= _RELATIVE and (rest := self._told_after(other)):
                constraints += self._constraints(rest, other.kinds, of_it=True, no=no)
                end = rest.end
            elif run.relations and reference is not None and _OWN & run.words and not joined:
                constraints += self._constraints(run, reference.kinds, no=no)
                self.dropped.add(reference.start)
                end = run.last
            elif before and not constraints and reference is not None and other is None:
                constraints += [_Constraint(relation, reference.kinds) for relation in before]
                self.dropped.add(reference.start)
                break
            elif not constraints and {"left", "right"} & set(run.relations) and other is None:
                side = "left" if "left" in run.relations else "right"
                named = tuple(kind for kind in noun.kinds if kind.startswith(side))
                return (Mention(noun.start, run.last, named), True) if named else (noun, False)
            else:
                break
        if not constraints:
            return noun, False
        return Mention(noun.start, end, self._in_order(noun.kinds, constraints)), True

    def _told_after(self, other: Mention) -> _Run | None:
        """Read the end of "the table that the sofa stands left of"."""
        after = self.run(other.end)
        is_told = after.relations and after.end not in self.nouns and _IS & after.words
        ends = self._word(after.end - 1) in ("of", "to", "by", "from", "near")
        own = self._word(other.end) in _IS and bool(_OWN & after.words)
        return after if is_told and (ends or own) else None

    def _constraints(
        self, run: _Run, anchors: tuple[str, ...], *, of_it: bool = False, no: bool = False
    ) -> list[_Constraint]:
        relations = set(run.relations)
        if "far" in relations and no:
            return [_Constraint("near", anchors)]
        if len(relations) > 1:
            relations -= {"aside"}
        if relations & {"left", "right"}:
            relations &= {"left", "right", "far"}
        return [_Constraint(relation, anchors, of_it, no) for relation in sorted(relations)]

    def _anchors(self, noun: Mention, run: _Run) -> tuple[tuple[str, ...], int]:
        """Read a place's one or two landmarks; return them and their end."""
        two = {"between", "beyond"} & set(run.relations) or "both" in run.words
        anchors, end = self._anchor(noun)
        while two:
            start = end
            while self._word(start) in ("and", "from", "to", "the", "a", "as"):
                start += 1
            other = self.nouns.get(start)
            if start == end or other is None:
                break
            more, end = self._anchor(other)
            anchors = (anchors[0], more[0] if more[0] not in anchors else more[-1])
            two = False
        return anchors, end

    def _anchor(self, noun: Mention) -> tuple[tuple[str, ...], int]:
        found, is_told = self.phrase(noun) if len(noun.kinds) > 1 or noun.kinds == _ANY else (noun, False)
        kinds = self._meant(found.kinds)
        return kinds[:1] if is_told else kinds, found.end

    def _meant(self, kinds: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(PLACES.values()) if kinds == _ANY else kinds

    def _in_order(self, kinds: tuple[str, ...], constraints: Sequence[_Constraint]) -> tuple[str, ...]:
        """Return a noun's meanings, best first, preferably without its landmarks."""
        anchors = {
            anchor
            for told in constraints
            if len(told.anchors) == 1 or told.relation == "between"
            for anchor in told.anchors
        }
        meant = self._meant(kinds)

        def cost(place: str) -> float:
            told = (self.layout.cost(c.relation, place, c.anchors, of_it=c.of_it, no=c.no) for c in constraints)
            return sum(told) + (_BEHIND_A_DOOR_M if kinds == _ANY and place in DOORS else 0)

        return tuple(sorted([place for place in meant if place not in anchors] or meant, key=cost))


def _main(run: _Run) -> str:
    return next((relation for relation in run.relations if relation != "aside"), run.relations[0])


def described(words: list[str], places: Sequence[Mention], layout: Layout, *, moving: bool = True) -> list[Mention]:
    """Return a sentence's places, each with its meanings, likeliest first.

    Args:
        words: of the sentence, small letters.
        places: mentions of names of places.
        layout: how places stand.
        moving: whether something is to be brought; to go next to a place is to go to it.
    """
    told = _Sentence(words, places, layout)
    found: list[Mention] = []
    i = 0
    while i < len(words):
        here = _described_at(told, i, found, moving)
        if here is not None:
            found.append(here)
        i = max(here.end, i + 1) if here is not None else i + 1
    return [mention for mention in found if mention.start not in told.dropped or told.is_source(mention.start)]


def _described_at(told: _Sentence, i: int, found: list[Mention], moving: bool) -> Mention | None:
    reference = next((m for m in reversed(found) if m.kinds), None)
    noun, relation = told.nouns.get(i), told.relations.get(i)
    if noun is not None:
        if told._word(noun.end) == "side" and len(told.nouns.get(noun.end + 1, noun).kinds) > 1:
            other = told.nouns[noun.end + 1]  # "the fridge side counter"
            return Mention(i, other.end, told._in_order(other.kinds, [_Constraint("near", noun.kinds)]))
        if told._word(noun.end) == "s" and noun.kinds != _ANY and (owned := _possessed(told, noun)):
            return owned
        whole, is_told = told.phrase(noun, reference=reference)
        start = noun.end
        while told._word(start) in ("i", "mean", "that", "is"):
            start += 1
        one = told.nouns.get(start + 1)
        if not is_told and one is not None and told.words[start : one.end] == ["the", "one"]:
            whole, is_told = told.phrase(Mention(one.start, one.end, noun.kinds))
            whole = Mention(noun.start, whole.end, whole.kinds)
        if is_told and noun.kinds != _ANY and _is_detached(told, noun, whole):
            return noun
        return whole if is_told or noun.kinds != _ANY else None
    if relation is None:
        return None
    noun = told.nouns.get(relation.end)
    if noun is not None and relation.kinds[0] in _ADJECTIVES and told.words[i] not in _NEVER_ADJECTIVES:
        whole, is_told = told.phrase(noun, relation.kinds, reference)
        return Mention(i, whole.end, whole.kinds) if is_told else None
    run = told.run(i)
    noun, strong = told.nouns.get(run.end), set(run.relations) & {"left", "right", "between"}
    if noun is not None and "two" in run.words and strong:
        whole, is_told = told.phrase(noun, (), None)
        side = next(iter(strong))
        named = tuple(kind for kind in noun.kinds if kind.startswith(side))
        if named and not is_told:
            return Mention(i, noun.end, named)
    if noun is not None and (fronted := _fronted(told, i, noun)):
        return fronted
    weak = told.words[i] in _WEAK and len(run.relations) == 1
    if noun is None and reference is not None and _OWN & run.words and strong:
        told.dropped.add(reference.start)
        constraints = told._constraints(run, reference.kinds)
        return Mention(i, run.last, told._in_order(_ANY, constraints))
    sides = strong & {"left", "right"}
    if sides and not {"of", "from"} & run.words:
        return None  # "the right-hand table" is right of nothing
    if noun is None or weak or not (moving or strong) or run.relations == ("aside",):
        return None
    whole, is_told = told.phrase(Mention(i, i, _ANY))
    return Mention(i, whole.end, whole.kinds) if is_told else None


def _fronted(told: _Sentence, i: int, anchor: Mention) -> Mention | None:
    """Read a description before its noun: "Left of the sink stands"."""
    end = start = told.phrase(Mention(i, i, _ANY))[0].end
    while told._word(end) in _IS_A and end not in told.nouns:
        end += 1
    noun = told.nouns.get(end)
    if noun is None or len(noun.kinds) < 2 or not {"is", "s", "there", *_IS} & set(told.words[start:end]):
        return None
    whole, is_told = told.phrase(Mention(i, i, noun.kinds))
    return Mention(i, noun.end, whole.kinds) if is_told else None


def _possessed(told: _Sentence, owner: Mention) -> Mention | None:
    """Read a possessive place: "the sofa's left side", "the sink's nearest counter"."""
    run = told.run(owner.end)
    if not run.relations:
        return None
    noun = told.nouns.get(run.end)
    head = noun.kinds if noun is not None and run.last == run.end else _ANY
    end = noun.end if noun is not None and run.last == run.end else run.last
    return Mention(owner.start, end, told._in_order(head, told._constraints(run, owner.kinds)))


def _is_detached(told: _Sentence, noun: Mention, whole: Mention) -> bool:
    """Return whether "from X to the left of Y" names two places."""
    others = [n for n in told.nouns.values() if not whole.start <= n.start < whole.end and n.kinds != _ANY]
    to = told._word(noun.end) in ("to", "onto")
    return (to and len(noun.kinds) == 1) or (told.is_source(noun.start) and not others and (to or len(noun.kinds) == 1))

"""Parses instructions: placements in order, and what is said of things and of the user.

    asked = read_instruction("Move the pen to the shelves. Then, place it on the floor. It is my lucky pen.", words)
    asked.placements      # the pen to the shelves; the pen to the floor
    asked.descriptions    # (("the pen", "It is my lucky pen"),)

A sentence is a command (`requests` finds what it asks for), a description of the things asked for, a preference of the
user, or none of these and passed over. A command is cut at its verbs, each part
at the places it names, and what stands before a place is a list of things.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from embodied_mem.memory.readers.reading import legible

from . import grammar
from .lexicon import PlaceMention, PlaceWords, called, content
from .requests import HABIT, request_in

_FIRST = re.compile(r"(?:first(?:ly)?|start)\b", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Placement:
    """One request: put things somewhere, one after the other.

    Attributes:
        things: phrases for the things, in order.
        place: where; None where the words do not say.
        inside: whether it is to go into the piece, not on it.
        together: whether the things are to be next to each other.
        beside: phrase of the thing or furniture they are to be next to; empty for none.
        source: where they are now, as far as it is said.
        arrange: whether the verb asks for an arrangement ("set up", "prepare"), so that a thing may be the name of one.
        sentence: which of the commands asks for it.
    """

    things: tuple[str, ...]
    place: PlaceMention | None
    inside: bool = False
    together: bool = False
    beside: str = ""
    beside_place: PlaceMention | None = None
    source: PlaceMention | None = None
    arrange: bool = False
    sentence: int = 0


@dataclasses.dataclass(frozen=True)
class Asked:
    """What one instruction says.

    Attributes:
        placements: what is to be done, in order.
        descriptions: what is said of things, by their names in the text.
        preferences: sentences that tell how the user likes things.
        commands: the sentences that ask for something.
        requests: the same, each with the other sentences that follow it.
    """

    placements: tuple[Placement, ...]
    descriptions: tuple[tuple[str, str], ...]
    preferences: tuple[str, ...]
    commands: tuple[str, ...]
    requests: tuple[str, ...] = ()


class _Reader:
    """Reads the commands of one instruction; knows what was said last."""

    def __init__(self, words: PlaceWords):
        self.words = words
        self.placements: list[Placement] = []
        self.last: list[str] = []
        self.context: PlaceMention | None = None
        self.source: PlaceMention | None = None
        self.then = False
        self.number = -1
        self.headers: dict[int, PlaceMention] = {}

    def names(self, phrase: str) -> bool:
        """Whether a phrase shares a word with a thing that was asked for, where something was."""
        if not self.placements:
            return True
        words = {grammar.bare(phrase), *content(phrase)}
        things = (thing for one in self.placements for thing in (*one.things, one.beside) if thing)
        return any(words & {grammar.bare(thing), *content(thing)} for thing in things)

    def sentence(self, text: str) -> None:
        matches = list(grammar.VERB.finditer(text))
        self.number += 1
        self.then = bool(re.match(r"(?:then|after that|next|afterwards|finally|once)\b", text, re.IGNORECASE))
        if not matches:
            self.context = next(iter(self.words.find(text, bare=True)), self.context)
        for k, match in enumerate(matches):
            end = matches[k + 1].start() if k + 1 < len(matches) else len(text)
            verb = " ".join(match["verb"].lower().split())
            body = text[match.end() : end].strip(" ,;.!?")
            before = text[(matches[k - 1].end() if k else 0) : match.start("verb")]
            self.then = self.then or (k > 0 and bool(re.search(r"\bthen\b", before, re.IGNORECASE)))
            for part in self._parts(body):
                self.clause(verb, part)
                self.then = False

    def _parts(self, body: str) -> list[str]:
        """The parts of "the doll on the bed, and the bear next to the doll", each with a place of its own."""
        for match in grammar.AND_ANOTHER.finditer(body):
            left, right = body[: match.start()], body[match.end() :]
            if any(m.relation != "from" for m in self.words.find(left)) and grammar.FIRST_BESIDE.match(right):
                return [left, *self._parts(right)]
        return [body]

    def clause(self, verb: str, body: str) -> None:
        body = grammar.REASON.sub("", body)
        together = bool(grammar.TOGETHER.search(body))
        marked = grammar.TOGETHER.sub(lambda m: " " * len(m[0]), body)
        mentions = self.words.find(marked)
        if verb in grammar.HEADERS and not any(m.relation != "from" for m in mentions if m.relation):
            self.context = next(iter(self.words.find(body, bare=True)), self.context)
            if self.context is not None:
                self.headers[self.number] = self.context
            if verb.startswith(("clean", "tidy")):
                self.source = self.context
            if verb != "put away":
                return
        beside, beside_place, marked = self._beside(marked, mentions)
        mentions = self.words.find(marked)
        groups: list[tuple[str, list[PlaceMention]]] = []
        at, cut = 0, False
        for mention in mentions:
            text = marked[at : mention.start]
            real = self._things(text) if content(text) or grammar.PRONOUN.match(text) else []
            if not groups or (real and cut and self._starts_new(text)):
                groups.append((text, []))
            elif real and not cut and not groups[-1][1]:
                groups[-1] = (groups[-1][0] + text, [])
            groups[-1][1].append(mention)
            cut = mention.relation != "from"
            at = mention.end
        if not groups:
            groups.append((marked, []))
        elif found := grammar.AND_THEN.match(marked[at:]):
            groups[-1] = (f"{groups[-1][0].strip(' ,')}, {found[1].strip()}", groups[-1][1])
        for text, places in groups:
            self._placement(verb, text, places, together, beside, beside_place)

    @staticmethod
    def _starts_new(text: str) -> bool:
        return bool(re.match(r"\s*+,?\s*+(?:and\s+)?(?:then\s+)?(?:the|a|an|my|our)\b", text, re.IGNORECASE))

    def _things(self, text: str) -> list[str]:
        return [phrase for phrase in grammar.things_in(text) if not self._is_place(phrase)]

    def _is_place(self, phrase: str) -> bool:
        return any(m.start == 0 and m.end >= len(phrase.strip()) for m in self.words.find(phrase.strip(), bare=True))

    def _beside(self, text: str, mentions: list[PlaceMention]) -> tuple[str, PlaceMention | None, str]:
        """What things are to be next to, and the text without it."""
        for mention in mentions:
            if mention.relation in ("next to", "beside", "near", "close to", "alongside"):
                blank = text[: mention.start] + " " * (mention.end - mention.start) + text[mention.end :]
                return text[mention.start : mention.end], dataclasses.replace(mention, relation="next to"), blank
        if match := grammar.BESIDE.search(text):
            later = [m.start for m in self.words.find(text) if m.start > match.end()]
            comma = re.search(r"[,;]|(?<!\s)\s+and\s+(?=the\b)", text[match.end() :])
            ends = [*later, len(text), *([match.end() + comma.start()] if comma else [])]
            phrase = text[match.end() : min(ends)].strip(" ,.")
            if content(phrase) or grammar.PRONOUN.match(phrase):
                return phrase, None, text[: match.start()] + " " * (min(ends) - match.start()) + text[min(ends) :]
        return "", None, text

    def _placement(
        self,
        verb: str,
        text: str,
        places: list[PlaceMention],
        together: bool,
        beside: str,
        beside_place: PlaceMention | None,
    ) -> None:
        there = bool(re.search(r"\b(?:there|here)\b", text, re.IGNORECASE))
        text = re.sub(r"(?:,|(?<!\s))\s*\b(?:too|as well|also)\s*\Z", "", text.strip(" ,"), flags=re.IGNORECASE)
        text = re.sub(r"\b(?:back|neatly|over|there|here|up)\s*\Z", "", text.strip(" ,"), flags=re.IGNORECASE)
        text = text.strip(" ,")
        pronoun = not grammar.NOUN.search(text) or bool(grammar.PRONOUN.match(text))
        if verb.startswith(("swap", "switch", "exchange")):
            text = re.sub(r"(?<!\s)\s+with\s+(?=the\b|my\b)", " and ", text, count=1)
        text = re.sub(r"\b(?:there|here)\b|\Ame\b", "", text, flags=re.IGNORECASE)
        meant = self.last if pronoun else self._things(text)
        if grammar.ALL_OF_THEM.match(text):
            meant = list(dict.fromkeys(thing for one in self.placements for thing in one.things)) or meant
        things = [self._as_before(thing) for thing in meant]
        beside = self._as_before(beside)
        sources = [place for place in places if place.relation == "from"]
        goals = [place for place in places if place.relation != "from"]
        if len(goals) > 1 and goals[-1].relation in grammar.TOWARDS and goals[0].relation not in grammar.TOWARDS:
            sources, goals = goals[:1], goals[1:]  # "move the cup on the table to the bedroom"
        place = self._merged(goals) or (self.context if there else None)
        if verb in grammar.LEAVE and place is None:
            return
        if things and not (verb in grammar.HEADERS and grammar.VAGUE.match(text)):
            inside = any(goal.relation in ("in", "into", "inside", "within") and goal.piece for goal in goals)
            source = sources[0] if sources else self.source
            asked = Placement(
                tuple(things), place, inside=inside, together=together, beside=beside, beside_place=beside_place,
                source=source, arrange=verb in grammar.ARRANGE, sentence=self.number,
            )  # fmt: skip
            self._add(asked, pronoun)
            both = [beside] if beside and beside_place is None and not grammar.PRONOUN.match(beside) else []
            self.last = [*things, *(b for b in both if b not in things)]
        elif not things and place is not None:
            self.headers[self.number] = place
        self.context = place or self.context

    def _as_before(self, phrase: str) -> str:
        """The words used before for the same thing, but for its article ("my jug", then "the jug")."""
        known = [one for placement in self.placements for one in placement.things]
        same = [one for one in known if grammar.bare(one) == grammar.bare(phrase)]
        return same[-1] if same else phrase

    @staticmethod
    def _merged(goals: list[PlaceMention]) -> PlaceMention | None:
        """The last furniture named, in the room named with it ("to the bedroom, on the bed")."""
        pieces = [goal for goal in goals if goal.piece]
        rooms = [goal for goal in goals if not goal.piece]
        if pieces:
            piece = pieces[-1]
            return dataclasses.replace(piece, room=rooms[-1].room) if rooms and not piece.room else piece
        return rooms[-1] if rooms else None

    def _add(self, asked: Placement, pronoun: bool) -> None:
        """A new placement, or more about earlier ones where their things are meant."""
        rooms = [i for i, one in enumerate(self.placements) if set(one.things) >= set(asked.things)]
        merging = rooms and rooms[-1] == len(self.placements) - 1 and self.placements[-1].things == asked.things
        if rooms and not merging and self._within(self.placements[rooms[-1]], asked):
            asked = self._narrowed(rooms[-1], asked)
        names, before = set(asked.things), self.placements[-1] if self.placements else None
        if before is None or not (names >= set(before.things) or (pronoun and set(before.things) & names)):
            self.placements.append(asked)
        elif asked.place is None:
            self._say_more(before, asked)
        elif before.place is None or self._refines(before.place, asked.place, len(asked.things)):
            self._refine(before, asked)
        else:
            self.placements.append(dataclasses.replace(asked, source=None))

    def _say_more(self, before: Placement, asked: Placement) -> None:
        """What the last things are to be next to ("place them next to each other")."""
        names = set(asked.things)
        reach = 1 if set(before.things) >= names else len(names)
        for i, one in enumerate(self.placements):
            if set(one.things) & names and i >= len(self.placements) - reach:
                self.placements[i] = dataclasses.replace(
                    one,
                    together=one.together or asked.together,
                    beside=one.beside or asked.beside,
                    beside_place=one.beside_place or asked.beside_place,
                )
        if asked.together and self.placements[-1].things != asked.things:
            self._gather(asked)

    def _refines(self, old: PlaceMention, place: PlaceMention, count: int) -> bool:
        """Whether a place says more of the one before: the same piece, or a piece after its room."""
        if place.piece == old.piece and (not place.room or place.room == old.room) and not place.other:
            return True
        room_first = not old.piece and bool(place.piece) and place.room in ("", old.room)
        return room_first and not (self.then and count > 1)

    def _refine(self, before: Placement, asked: Placement) -> None:
        """Both as one placement."""
        place, old = asked.place, before.place
        if place is not None and old is not None:
            place = dataclasses.replace(
                place, room=place.room or old.room, other=place.other or old.other, hint=place.hint or old.hint
            )
        mutual = bool(before.beside) and before.beside in asked.things
        self.placements[-1] = dataclasses.replace(
            before,
            things=asked.things if set(asked.things) > set(before.things) else before.things,
            place=place,
            inside=asked.inside or before.inside,
            together=before.together or asked.together or mutual,
            beside=asked.beside or ("" if before.beside in asked.things else before.beside),
            beside_place=asked.beside_place or before.beside_place,
            source=before.source or asked.source,
        )

    @staticmethod
    def _within(before: Placement, asked: Placement) -> bool:
        """Whether a place may lie in the room to which the things were asked to be moved before."""
        room, place = before.place, asked.place
        return bool(room and not room.piece and place and place.piece and place.room in ("", room.room))

    def _narrowed(self, number: int, asked: Placement) -> Placement:
        """Some of the things moved to a room go to a piece in it: take them out there unless one follows the other."""
        before = self.placements[number]
        assert asked.place is not None  # as `_within` says
        assert before.place is not None
        if not self.then:
            rest = tuple(thing for thing in before.things if thing not in asked.things)
            self.placements[number : number + 1] = [dataclasses.replace(before, things=rest)] if rest else []
        place = dataclasses.replace(asked.place, room=before.place.room)
        return dataclasses.replace(asked, place=place, source=asked.source or before.source)

    def _gather(self, asked: Placement) -> None:
        """One placement of several things instead of several of one, where they go to the same place."""
        tail = [one for one in self.placements if set(one.things) <= set(asked.things)]
        if len(tail) > 1 and len({one.place and (one.place.piece, one.place.room) for one in tail}) == 1:
            kept = [one for one in self.placements if one not in tail]
            things = tuple(thing for one in tail for thing in one.things)
            self.placements = [*kept, dataclasses.replace(tail[0], things=things, together=True)]

    def assigned(self, descriptions: Sequence[tuple[str, str]], told: bool) -> list[tuple[str, str]]:
        """Descriptions, each with the name that its thing was asked for by.

        What is called otherwise ("the train" for a toy vehicle) is one of the things that no other description is of,
        where it shares a word with it, or where as many are left of both. It is passed over where the user tells
        nothing else (`told`), since it may be about something else altogether.
        """
        things = list(dict.fromkeys(thing for one in self.placements for thing in one.things))
        known = [(name, what) for name, what in descriptions if any(called(name, thing) for thing in things)]
        others = list(dict.fromkeys(name for name, what in descriptions if (name, what) not in known))
        others = [name for name in others if not self._is_place(name)]
        named = [name for name, what in known if not grammar.BY_PRONOUN.match(what)]
        left = [thing for thing in things if not any(called(name, thing) for name in named)]
        names: dict[str, str] = {}
        for name in others:
            alike = [thing for thing in left if set(content(name)) & set(content(thing))]
            if len(alike) == 1:
                names[name] = alike[0]
        rest = [name for name in others if name not in names]
        left = [thing for thing in left if thing not in names.values()]
        if (known or names or told) and len(left) == len(rest):
            names |= dict(zip(rest, left))
        told_of = [(names.get(name, name), what) for name, what in descriptions]
        return [(name, what) for name, what in told_of if self.names(name)]

    def in_detail(self, commands: Sequence[str]) -> tuple[Placement, ...]:
        """The placements without those that only announce what the next sentence says ("set up a party in the hall").

        What is announced for a room happens in it.
        """
        said: list[Placement] = []
        for one in self.placements:
            number = one.sentence + 1
            told = any(other.sentence == number for other in self.placements)
            vague = grammar.VAGUE.match(one.things[0]) or (one.arrange and not (one.place and one.place.piece))
            if vague and told and not grammar.CONNECTED.match(commands[number]):
                if one.place is not None:
                    self.headers[one.sentence] = one.place
            else:
                said.append(one)
        return tuple(self._at_home(one, commands) for one in said)

    def _at_home(self, one: Placement, commands: Sequence[str]) -> Placement:
        """A placement on furniture of no room, in the room that was announced for it."""
        number = one.sentence
        while number not in self.headers and number > 0:
            if grammar.CONNECTED.match(commands[number]) and not _FIRST.match(commands[number - 1]):
                return one
            number -= 1
        home, place = self.headers.get(number), one.place
        if home is None or not home.room or place is None or not place.piece or place.room:
            return one
        place = dataclasses.replace(place, room=home.room, hint=place.hint or home.hint * (home.piece == place.piece))
        rooms = self.words.rooms(place)
        there = any(self.words.view.room_of(piece) in rooms for piece in self.words.pieces(place))
        return dataclasses.replace(one, place=place) if there else one


def read_instruction(text: str, words: PlaceWords) -> Asked:
    """What an instruction asks and says, in the words of one house."""
    reader = _Reader(words)
    descriptions: list[tuple[str, str]] = []
    preferences: list[str] = []
    commands: list[str] = []
    requests: list[str] = []
    for sentence in grammar.sentences(legible(text)):
        if request := request_in(sentence):
            reader.sentence(request)
            commands.append(request)
            requests.append(request)
            continue
        found = grammar.described(sentence, reader.last) if grammar.is_description(sentence) else []
        descriptions += found
        if not found and HABIT.search(sentence):
            preferences.append(sentence)
        tells = any(reader.names(name) for name, _ in found) or HABIT.search(sentence)
        if requests and (
            tells or all(map(grammar.VAGUE.match, reader.last))
        ):  # "get things ready": for what, is to come
            requests[-1] += f" {sentence}"
    descriptions = reader.assigned(descriptions, bool(preferences))
    return Asked(reader.in_detail(commands), tuple(descriptions), tuple(preferences), tuple(commands), tuple(requests))

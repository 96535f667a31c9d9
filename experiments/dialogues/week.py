"""A robot's week in one home, by seed: what it sees and is told, what is so, and 200 questions with their answers.

    for event in make_week(0):
        event.clock             # an `Event` or a `Question`, in the order of time

Three people live there and a visitor comes. Of the moves of forty things half are told, some are told without a place,
the rest are found later. A detector misses one thing in ten, is wrong about the furniture in 3 of 100, and now and then
writes a name in another way. Right is what the robot could know: after a silent move the place where it saw the thing.
"""

from __future__ import annotations

import configparser
import datetime
import pathlib
import random
import re
from collections.abc import Iterable
from typing import NamedTuple

_texts = configparser.ConfigParser(delimiters="=", interpolation=None)
_texts.read_string(pathlib.Path(__file__).with_name("week.ini").read_text())
HOME, LISTS, MEALS, CATEGORIES, FORMS = (
    {name: " ".join(text.split()).split(" | ") for name, text in _texts[part].items()} for part in _texts.sections()
)
"""Name -> its names or wordings."""
KINDS = ("place", "place_unknown", "correction", "person", "time", "last_seen", "safety", "unknown")
MONDAY_S = 1772409600
"""Seconds of the clock when the week begins, 2 March 2026."""
PLACES = {place: room for room, places in HOME.items() for place in places}
FURNITURE = ("desk", "nightstand", *(place.partition(" ")[2] for place in PLACES))
USER, PARTNER, CHILD, VISITOR = range(4)
_RELATIONS = {True: ("husband", "son"), False: ("wife", "daughter")}
_IDLE = set(str.split("the is are it its of to a i my me on in from for and so you by at be s"))
_COMES_BACK = ("moved", "took", "taken", "lost", "lent", "not there", "vanished", "disappeared")


class Event(NamedTuple):
    """A sentence that is told, or what a detector gives of a room.

    Attributes:
        speaker: empty for the user of the scope.
        texts: the sentence, or one for each detection.
        room: empty if it is told.
        facts: thing, relation, furniture and confidence of each detection; none if it comes as a text.
    """

    clock: float
    speaker: str
    texts: tuple[str, ...]
    room: str = ""
    facts: tuple[tuple[str, str, str, float], ...] = ()


class Question(NamedTuple):
    """A question and what answers it.

    Attributes:
        must: phrases that the answer has, all of them; of "last_seen" one of them.
        some: words, one of which it has, if there are any. That something is over counts as such a word.
        never: phrases that it has not.
        thing: what a sentence must name to be judged; empty for all sentences.
    """

    clock: float
    kind: str
    text: str
    must: tuple[str, ...] = ()
    some: frozenset[str] = frozenset()
    never: tuple[str, ...] = ()
    thing: str = ""

    def is_answered(self, text: str) -> bool:
        """Judge what was found first, or at another rank."""
        is_over, is_earlier = "(no longer" in text or "not there now" in text, "(earlier)" in text
        if self.thing:
            text = " ".join(sentence for sentence in _sentences(text) if _has_phrase(sentence, self.thing))
        fits = any if self.kind == "last_seen" else all
        if not text or self.kind == "unknown" or (self.must and not fits(_has_phrase(text, one) for one in self.must)):
            return False
        if is_over or is_earlier:
            return is_over and bool(self.some)
        is_free = not any(_has_phrase(text, one) for one in self.never)
        return is_free and (not self.some or not self.some.isdisjoint(_words(text)))


def make_week(seed: int) -> list[Event | Question]:
    """Make the events of a week, in the order of time."""
    rng, who = random.Random(f"robot_week {seed}"), people(seed)
    return sorted([*_home(rng, who), *_life(rng, who)], key=lambda event: event.clock)


def without_answers(
    events: list[Event | Question], rng: random.Random, share: float = 0.35
) -> Iterable[Event | Question]:
    """Leave out what answers some of the questions, a share of them."""
    questions = [one for one in events if isinstance(one, Question) and one.kind != "unknown" and rng.random() < share]
    things = {one.thing for one in questions if one.thing}
    phrases = [one.must for one in questions if one.must]

    def is_out(text: str) -> bool:
        return any(_has_phrase(text, one) for one in things) or any(
            all(_has_phrase(text, one) for one in must) for must in phrases
        )

    for event in events:
        if isinstance(event, Question):
            yield event
            continue
        facts = tuple(fact for fact in event.facts if not is_out(fact[0].replace("-", " ")))
        texts = tuple(text for text in event.texts if not is_out(text))
        if texts or event.room:
            yield event._replace(texts=texts, facts=facts)


def people(seed: int) -> list[str]:
    """Draw names: user, partner, child, visitor, friends of the first two."""
    return random.Random(f"people {seed}").sample(LISTS["names"], 4 + 2 * len(LISTS["kin"]))


def date_of(clock: float, form: str = "%Y-%m-%d %H:%M") -> str:
    """Write a time of the clock; "%s" stands for its seconds."""
    return datetime.datetime.fromtimestamp(clock, datetime.UTC).strftime(form.replace("%s", f"{clock:.0f}"))


def _words(text: str) -> list[str]:
    return re.findall(r"\d+:\d+|\w+", text.lower().replace("_", " "))


def _has_phrase(text: str, phrase: str) -> bool:
    return f" {' '.join(_words(phrase))} " in f" {' '.join(_words(text))} "


def _with_article(place: str) -> str:
    """Give furniture without a number its article, "on the sofa"."""
    return place if place[-1].isdigit() else place.replace(" ", " the ", 1)


def _sentences(text: str) -> list[str]:
    """Split a text, but not before a sentence with "it" or "them"."""
    parts: list[str] = []
    for sentence in re.split(r"(?<=[.!?;])\s+|\n", text):
        if parts and re.search(r"\b(it|they|them)\b", sentence, re.IGNORECASE):
            parts[-1] += " " + sentence
        else:
            parts.append(sentence)
    return parts


def _say(rng: random.Random, form: str, **fields: str) -> str:
    """Fill one form of a kind."""
    text = rng.choice(FORMS[form]).format(**fields)
    return text[0].upper() + text[1:]


def _clock(rng: random.Random, first_day: int, last_day: int) -> float:
    return MONDAY_S + 86400 * rng.randint(first_day, last_day) + rng.randint(7 * 3600, 22 * 3600)


def _cues(text: str, *others: str) -> frozenset[str]:
    """Give the words of this text alone, or all of its words."""
    cues = set(_words(text)) - _IDLE - {word for other in others for word in _words(other)}
    return frozenset(cues or _words(text))


def _speaker(rng: random.Random, name: str, is_user: bool) -> str:
    return "" if is_user and rng.random() < 0.8 else name.lower() if rng.random() < 0.1 else name


def _home(rng: random.Random, who: list[str]) -> Iterable[Event | Question]:
    """Move things, look at them and ask for them."""
    things = rng.sample(LISTS["things"], 40)
    world: dict[str, str | None] = {thing: rng.choice(list(PLACES)) for thing in things}
    knowledge: dict[str, str] = {}  # what the robot could know
    sentences: dict[str, str] = {}  # the sentence that told so, or that it is gone
    sightings: dict[str, float] = {}  # when it was seen last, if no detection was wrong since
    plan: list[tuple[float, str]] = []
    for day in range(7):
        start = MONDAY_S + 86400 * day
        for hour in (8, 14):
            rooms = rng.sample(list(HOME), len(HOME))
            plan += [(start + 3600 * hour + 300 * number, room) for number, room in enumerate(rooms)]
        plan += [(_clock(rng, day, day), "move") for _ in range(14)]
        plan += [(start + 3600 * 7, "return")]
        if day in (2, 4, 6):
            plan += [(start + 3600 * 20 + rng.randint(0, 7200), "gone") for _ in range(5)]
            plan += [(start + 3600 * 23, "ask")]
    for clock, what in sorted(plan):
        if what == "ask":
            for thing in rng.sample(sorted(knowledge), 18):
                place = knowledge[thing].partition(" ")[2]
                never = tuple(one for one in FURNITURE if not _has_phrase(f"{place} {sentences.get(thing, '')}", one))
                yield Question(clock, "place", _say(rng, "place?", x=thing), (place,), never=never, thing=thing)
            for thing in rng.sample(sorted(sentences.keys() - knowledge.keys()), 5):
                some, text = _cues(sentences[thing], thing), _say(rng, "place?", x=thing)
                yield Question(clock, "place_unknown", text, some=some, never=FURNITURE, thing=thing)
            for thing in rng.sample(sorted(sightings), 4 if clock > MONDAY_S + 6 * 86400 else 3):
                must = date_of(sightings[thing], "%s | %Y-%m-%d %H:%M | %A %H:%M | %A at %H:%M").split(" | ")
                yield Question(clock, "last_seen", _say(rng, "seen?", x=thing), tuple(must), thing=thing)
        elif what == "return":
            for thing in things:
                if world[thing] is None and any(cue in sentences[thing] for cue in _COMES_BACK) and rng.random() < 0.5:
                    world[thing] = rng.choice(list(PLACES))
        elif what in HOME:
            facts = []
            for thing in [thing for thing in things if PLACES.get(world[thing] or "") == what and rng.random() < 0.9]:
                place, confidence = world[thing] or "", rng.uniform(0.6, 0.99)
                if rng.random() < 0.03:
                    place = rng.choice([one for one in HOME[what] if one != place])
                    confidence = rng.uniform(0.4, 0.8)
                    sightings.pop(thing, None)
                    if knowledge.get(thing) != world[thing]:
                        knowledge.pop(thing, None)
                        sentences.pop(thing, None)
                else:
                    knowledge[thing], sightings[thing] = place, clock
                    sentences.pop(thing, None)
                spellings = (thing.title().replace(" ", "_"), f"the {thing}", thing.upper(), thing.replace(" ", "-"))
                names = [rng.choice(spellings) if rng.random() < 0.05 else thing]
                names += [rng.choice(spellings)] if rng.random() < 0.04 else []
                relation, _, receptacle = place.partition(" ")
                facts += [(name, relation, receptacle, round(confidence, 2)) for name in dict.fromkeys(names)]
            texts = [
                f"The {name.removeprefix('the ')} is {_with_article(f'{on} {where}')}." for name, on, where, _ in facts
            ]
            yield Event(clock, "", tuple(texts), what, tuple(facts) if rng.random() < 0.8 else ())
        else:
            thing = rng.choice([thing for thing in things if world[thing]])
            place = rng.choice([place for place in PLACES if place != world[thing]])
            draw = rng.random()
            is_gone = what == "gone" or draw > 0.9
            world[thing] = None if is_gone else place
            if is_gone or draw < 0.5:
                sentences[thing] = _say(rng, "gone" if is_gone else "place", x=thing, place=_with_article(place))
                knowledge.pop(thing, None)
                knowledge |= {} if is_gone else {thing: place}
                number = rng.choice((USER, USER, PARTNER, CHILD))
                yield Event(clock, _speaker(rng, who[number], number == USER), (sentences[thing],))


def _life(rng: random.Random, who: list[str]) -> list[Event | Question]:
    """Say and ask all else: wants, people, dates."""
    events: list[Event | Question] = []
    end, home = MONDAY_S + 7 * 86400 - 600.0, (USER, PARTNER, CHILD)
    relations = ["", *(_RELATIONS[who[number] in LISTS["men"]][number - 1] for number in (PARTNER, CHILD)), ""]

    def tell(number: int, text: str, first_day: int = 0, last_day: int = 2) -> str:
        events.append(Event(_clock(rng, first_day, last_day), _speaker(rng, who[number], number == USER), (text,)))
        return text

    def ask(kind: str, number: int, form: str, must: Iterable[str], some: Iterable[str] = (), **x: str) -> None:
        name = who[number] if not relations[number] or rng.random() < 0.6 else f"my {relations[number]}"
        fields = {"o": "my", "p": "me", "do": "do I"}
        if number != USER:
            fields = {"o": f"{name}'s", "p": name, "do": f"does {name}"}
        events.append(Question(end, kind, _say(rng, form, **fields, **x), tuple(must), frozenset(some)))

    def correct(number: int, question: str, forms: tuple[str, str], old: dict[str, str], new: dict[str, str]) -> None:
        """Tell something, and anew some days later; new values or words answer."""
        before = tell(number, _say(rng, forms[0], **old))
        after = tell(number, _say(rng, forms[1], **new), 3, 6)
        must = [value for name, value in new.items() if name != "old" and (old[name] != value or old == new)]
        ask("correction", number, question, must, _cues(after, before, *must) if old == new else (), **new)

    for number in (PARTNER, CHILD):
        tell(USER, _say(rng, "name", p=who[number], r=relations[number]), 0, 0)
        events.append(
            Question(end, "person", _say(rng, "name?", o="my", r=relations[number]), (who[number], relations[number]))
        )
    for place, kin in enumerate(LISTS["kin"]):
        for number in (USER, PARTNER):
            friend = who[4 + 2 * place + number]
            tell(number, _say(rng, "name", p=friend, r=kin), 0, 6)
            ask("person", number, "name?", [friend], r=kin)
    changes = rng.sample([(number, meal) for meal in MEALS for number in home], 10)
    for meal, values in MEALS.items():
        options = rng.sample(values, 6)
        for number in home:
            old, new = {"m": meal, "v": options[number]}, {"m": meal, "v": options[3 + number], "old": options[number]}
            if (number, meal) in changes:
                correct(number, "meal?", ("meal", "meal changed"), old, new)
            else:
                tell(number, _say(rng, "meal", **old))
                ask("person", number, "meal?", [old["v"]], m=meal)
    likes = iter(rng.sample(LISTS["likes"], 24))
    for story in range(12):
        forms, x = ("like", "unlike") if story < 8 else ("unlike", "like"), {"x": next(likes)}
        correct(rng.choice((USER, USER, PARTNER, CHILD)), "like?", forms, x, x)
    for story in range(12):  # the last four by the visitor, the others by two of opposite taste
        thing, (number, other) = next(likes), rng.sample(home, 2)
        number = number if story < 8 else VISITOR
        own = tell(number, _say(rng, "like", x=thing), 0, 6)
        others = tell(other, _say(rng, "unlike", x=thing), 0, 6)
        ask("person", number, "like?", [thing], _cues(own, others, thing), x=thing)
    for thing in rng.sample(LISTS["allergies"], 4):
        correct(USER, "avoid?", ("avoid", "avoid no more"), {"x": thing}, {"x": thing})
    for place, category in enumerate(rng.sample(sorted(CATEGORIES), 20)):
        tell(place % 4, _say(rng, "avoid", x=category), 0, 6)
        ask("safety", place % 4, "safe?", [category], x=rng.choice(CATEGORIES[category]))
    times = rng.sample([f"{hour}:{minute}" for hour in (5, 6, 7, 8) for minute in (10, 15, 30, 40, 45, 50)], 6)
    for number in home:
        old, new = {"t": times[number]}, {"t": times[3 + number], "old": times[number]}
        correct(number, "alarm?", ("alarm", "alarm changed"), old, new)
    hours = [*(f"{hour} am" for hour in range(8, 12)), *(f"{hour} pm" for hour in range(1, 10))]
    for place, e in enumerate(rng.sample(LISTS["events"], 27)):
        number = rng.choice((USER, USER, PARTNER, CHILD)) if place else VISITOR
        (day, later), (hour, other_hour) = rng.sample(LISTS["days"], 2), rng.sample(hours, 2)
        old, new = {"e": e, "d": day, "t": hour}, {"e": e, "d": later, "t": other_hour}
        if place < 20:
            tell(number, _say(rng, "event", **old))
            ask("time", number, "event?", [day, hour], e=e)
        else:
            correct(number, "event?", ("event", "event moved"), old, new)
    for number in rng.choices((USER, PARTNER, CHILD, VISITOR), k=80):
        tell(number, _say(rng, rng.choice(("talk", "talk", "place?")), x=rng.choice(LISTS["things"])), 0, 6)
    for text in rng.sample(FORMS["unknown?"], 15):
        events.append(Question(end, "unknown", text.format(o=f"{who[PARTNER]}'s", p=who[PARTNER])))
    return events

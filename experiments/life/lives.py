"""A generated life in one home: tasks in order, with what people say, move and take back between them.

    life = make_life(Generator(seed=0, habit=1.0, own_habits=True), home=4, mix=LifeMix(shares), part="train")
    day = life.days[17]
    day.sayings, day.instruction             # (Saying("We keep the mug in drawer 2 now."),), "put a mug in cabinet."
    day.truth, day.cue                    # for oracles and tables only: no agent reads them

Each task has one cue: where that is known which its instruction leaves open. What an agent is told, it is told in the
sentences below; homes that are trained on and homes held out share no sentence form. A life does not depend on how it
is played: what a task asked for is so afterwards, whoever did it.

| cue | what is open | what tells it |
|---|---|---|
| plain | nothing; the instruction explains a procedure or tells a wish on the way | - |
| usual | where a thing is that has its own place in this home | what was found where, over many tasks |
| moved | where a thing is that people carry about | where it was seen last, on the way in another task |
| told | where a thing is that was given another place | what the user said; at times that is wrong |
| liked | where it is to go | what the user likes, said in an earlier instruction or between tasks |
| shown | what a procedure's name means | an earlier task with this name |
| meant | the same | what the user said between tasks |
| owned | which of two may be taken | what the user said; taking the other one ends the task |
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from embodied_mem.errors import InvalidInputError
from embodied_mem.worlds.alfworld.generator import Asked, GeneratedGame, Generator, SeededRandom
from embodied_mem.worlds.alfworld.pddl import identifier_of, problem_text
from embodied_mem.worlds.alfworld.procedures import HELD_OUT_NAMES, TRAINING_NAMES, plans_of
from embodied_mem.worlds.alfworld.statistics import Scene, Thing
from embodied_mem.worlds.alfworld.wording.text import CHANGES, Task, parse_goal, render_goal, task_of

if TYPE_CHECKING:
    from embodied_mem.worlds.alfworld.engine import Game

T = TypeVar("T")
CUES = ("plain", "usual", "moved", "told", "liked", "shown", "meant", "owned")
_FILE = pathlib.Path(__file__).with_name("sentences.json")
SENTENCES: dict[str, dict[str, list[str]]] = json.loads(_FILE.read_text(encoding="utf-8"))
"""Topic -> part -> sentence forms; `train`, `dev` and `report` share none. A language model wrote most of `train`, and
another all of `dev`, without sight of the other parts. `wish` has those of `like` that the profile reads in a goal."""
CORRECTIONS = ("", "", "Actually, that has changed. ", "Sorry, I was wrong. ", "Listen, this is new. ")
WHO = ("sister", "brother", "mother", "neighbour", "guest", "daughter")
_DEEDS = {
    "pick_and_place_simple": "put it in the {target}",
    **{name: f"{verb} it and put it in the {{target}}" for name, verb in CHANGES.items()},
}
_FIELDS = {
    "kind": "[a-z]{1,30}", "place": r"\b[a-z]{1,30} \d{1,4}", "target": "[a-z]{1,30}", "who": "[a-z]{1,30}",
    "name": r"\b[a-z]{1,30} [a-z]{1,30}",
}  # fmt: skip
_SLOT = re.compile(r"\{(\w+)\}")


def _pattern(form: str) -> re.Pattern[str]:
    fields = {**_FIELDS, "deed": "[^.]{1,200}"}
    parts = _SLOT.split(form)
    words = [re.escape(part) if i % 2 == 0 else f"(?P<{part}>{fields[part]})" for i, part in enumerate(parts)]
    return re.compile("".join(words), re.IGNORECASE)


_PATTERNS = [
    (topic, _pattern(form.rstrip(".")))
    for topic, parts in SENTENCES.items()
    if topic != "wish"
    for forms in parts.values()
    for form in forms
]
_DEED_PATTERNS = [(name, _pattern(form)) for name, form in _DEEDS.items()]
_FROM = re.compile(r"take the (?P<kind>[a-z]+) from (?P<place>[a-z]+ \d+) and (?P<rest>.+)", re.DOTALL)
_DO = re.compile(r"do the (?P<name>[a-z]+ [a-z]+)(?:: (?P<deed>.+))?")
_AS_LIKED = "put it where I like it"


@functools.lru_cache(maxsize=1 << 14)
def read_sentence(text: str) -> tuple[str, Mapping[str, str]]:
    """Return topic and values of a sentence; ("", {}) for none.

    Of several forms that fit, the one with the most letters of its own counts.
    """
    found_forms = [(topic, match) for topic, pattern in _PATTERNS if (match := pattern.search(text))]
    if not found_forms:
        return "", {}
    topic, match = max(found_forms, key=lambda one: len(one[1][0]) - sum(map(len, one[1].groups())))
    return topic, {name: value.lower() for name, value in match.groupdict().items()}


def deed_of(words: str, kind: str) -> Task | None:
    """Return the task that a deed asks for; None for other words."""
    for task_type, pattern in reversed(_DEED_PATTERNS):
        if match := pattern.match(words.strip().rstrip(".").lower()):
            return task_of(task_type, kind, match["target"])
    return None


class Instruction(NamedTuple):
    """An instruction as data.

    Attributes:
        kind: of the thing.
        place: where it is; empty if it does not say.
        task: what is to be done; None if it does not say.
        name: of a procedure; empty if it names none.
    """

    kind: str
    place: str
    task: Task | None
    name: str


def read_instruction(text: str) -> Instruction:
    """Return what an instruction of a life says."""
    match = _FROM.match(text)
    if match is None:
        task = parse_goal(text)
        return Instruction(task.object_type, "", task, "")
    kind, place, rest = match["kind"], match["place"], match["rest"].partition(". ")[0].rstrip(".")
    procedure = _DO.fullmatch(rest)
    if procedure is None:
        return Instruction(kind, place, deed_of(rest, kind), "")
    return Instruction(kind, place, deed_of(procedure["deed"] or "", kind), procedure["name"])


@dataclasses.dataclass(frozen=True)
class LifeMix:
    """Settings of a life.

    Attributes:
        shares: cue -> its share of the tasks.
        num_tasks: in order.
        wrong_tells: share of told places that are false.
        strays: share of the other days on which a thing with an own place lies elsewhere.
        unseen_moves: per day, that a thing that people carry about is moved with nobody seeing it.
        silent_change: share of the own places that change after half the tasks, with nobody saying so.
        num_forgets: requests to forget a thing.
        spare_steps: beyond a shortest plan; a wrong look costs one or two.
    """

    shares: Mapping[str, float]
    num_tasks: int = 200
    wrong_tells: float = 0.2
    strays: float = 0.25
    unseen_moves: float = 0.05
    silent_change: float = 0.25
    num_forgets: int = 4
    spare_steps: int = 2

    def __post_init__(self) -> None:
        if set(self.shares) != set(CUES) or abs(sum(self.shares.values()) - 1) > 1e-9:
            raise InvalidInputError(f"shares: expected one per cue of {', '.join(CUES)}, sum 1, got {self.shares}")


class Saying(NamedTuple):
    """An event between two tasks.

    Attributes:
        text: said by the user; empty for a request to forget.
        forget: kind of thing that is to be forgotten; empty for none.
        contrary: the same sentence form with another value, for conditions in which somebody contradicts.
    """

    text: str = ""
    forget: str = ""
    contrary: str = ""


class Truth(NamedTuple):
    """The facts of a day, for oracles and judges.

    Attributes:
        task: what wins.
        places: where things of its kind are that may be taken.
        forbidden: (kind, place) from which nothing of that kind may be taken.
    """

    task: Task
    places: tuple[str, ...]
    forbidden: tuple[str, str] | None


@dataclasses.dataclass(frozen=True)
class Day:
    """One task and what comes before it.

    Attributes:
        sayings: before the task.
        instruction: its goal, as the agent reads it.
        game: of the day; its id tells nothing.
        budget: steps that are allowed.
        cue: of `CUES`.
        truth: see there.
        poison: a false sentence, for conditions in which a document tells it.
    """

    sayings: tuple[Saying, ...]
    instruction: str
    game: GeneratedGame
    budget: int
    cue: str
    truth: Truth
    poison: str

    def load(self) -> Game:
        """Return the game for the native engine; its name tells nothing."""
        from embodied_mem.worlds.alfworld.engine import Game

        return Game.from_problem(self.game.problem, self.instruction, self.game.trial)


@dataclasses.dataclass(frozen=True)
class Life:
    """A life in one home.

    Attributes:
        home: number of its scene.
        days: in order.
    """

    home: int
    days: tuple[Day, ...]

    def shares(self) -> dict[str, float]:
        """Return the share of each cue as it came out."""
        counts = Counter(day.cue for day in self.days)
        return {cue: counts[cue] / len(self.days) for cue in CUES}


def make_life(generator: Generator, home: int, mix: LifeMix, part: str) -> Life:
    """Return the life of a home.

    Args:
        generator: of the scenes, with `own_habits`.
        home: number of the scene.
        mix: of the tasks.
        part: `train`, `dev` or `report`; it decides sentence forms and names of procedures.

    Raises:
        InvalidInputError: the room is too small for a life, see `is_home`.
    """
    scene = generator.scene(home)
    if not is_home(scene):
        raise InvalidInputError(f"home: expected one with {_LEAST_KINDS} kinds that have two targets, got {home}")
    return _Teller(generator.seed, scene, mix, part).life()


def homes_of(generator: Generator, count: int, first: int = 0) -> list[int]:
    """Return the first scenes from a number on that are large enough."""
    homes: list[int] = []
    while len(homes) < count:
        if is_home(generator.scene(first)):
            homes.append(first)
        first += 1
    return homes


_LEAST_KINDS = 8
_LEAST_PLACES = 14
_PLACE = "pick_and_place_simple"


@functools.lru_cache(maxsize=1024)
def _targets(scene: Scene) -> dict[str, list[str]]:
    """Return kinds with two or more targets in this room."""
    targets: dict[str, list[str]] = {}
    for (task_type, target), kinds in plans_of(scene).items():
        for kind in kinds if task_type == _PLACE else ():
            targets.setdefault(kind, []).append(target)
    places = {kind: {scene.receptacles[i].type for i in scene.habits[kind].receptacles} for kind in targets}
    return {kind: its for kind, its in sorted(targets.items()) if len(its) > 1 and len(places[kind]) > 2}


def is_home(scene: Scene) -> bool:
    """Decide whether a room is large enough for a life."""
    return len(_targets(scene)) >= _LEAST_KINDS and len(scene.receptacles) >= _LEAST_PLACES


class _Teller:
    """The state of a home while its life is drawn."""

    def __init__(self, seed: int, scene: Scene, mix: LifeMix, part: str):
        self.seed, self.scene, self.mix, self.part = seed, scene, mix, part
        self.rng = SeededRandom("life", seed, scene.number)
        self.targets = _targets(scene)
        self.names = _names(scene)
        self.count = Counter(receptacle.type for receptacle in scene.receptacles)
        kinds = self.shuffled(self.targets)
        first, second, third = (max(1, round(share * len(kinds))) for share in (0.12, 0.3, 0.25))
        self.owned_kinds, rest = kinds[:first], kinds[first:]
        self.moved_kinds, self.told_kinds = rest[:second], rest[second : second + third]
        self.usual = rest[second + third :]
        self.liked_kinds = self.shuffled(self.usual + self.told_kinds)[:4]
        self.at = {kind: self.own_place(kind) for kind in kinds}
        self.other = {kind: self.another(kind, self.at[kind]) for kind in self.owned_kinds}
        self.evidence: dict[str, None] = {}  # kinds carried about that were moved in sight since they were asked for
        self.news: list[str] = []  # kinds whose new place was told and that were not asked for since
        self.doubted_kinds: list[str] = []  # the same of false tells
        self.wishes: dict[str, str] = {}
        self.forbidden: dict[str, int] = {}
        self.last_asked: dict[str, int] = {}
        self.today = 0
        self.sayings: list[Saying] = []
        self.shown_names: dict[str, Asked] = {}
        self.meant_names: dict[str, Asked] = {}
        self.procedures = self.drawn_procedures()

    # Draws.

    def one(self, some: Iterable[T]) -> T:
        rows = list(some)
        return rows[self.rng.integer(len(rows))]

    def shuffled(self, some: Iterable[T]) -> list[T]:
        return [row for _, row in sorted(((self.rng.uniform(0, 1), row) for row in some), key=lambda pair: pair[0])]

    def is_drawn(self, share: float) -> bool:
        return self.rng.uniform(0, 1) < share

    def type_at(self, place: int) -> str:
        return self.scene.receptacles[place].type

    def able(self, kind: str) -> tuple[int, ...]:
        return self.scene.habits[kind].receptacles

    def own_place(self, kind: str) -> int:
        """Draw a place, with at most three of its type."""
        few = [place for place in self.able(kind) if self.count[self.type_at(place)] <= 3]
        return self.one(few or self.able(kind))

    def another(self, kind: str, place: int) -> int:
        others = [other for other in self.able(kind) if self.type_at(other) != self.type_at(place)]
        return self.one(others)

    def drawn_procedures(self) -> dict[str, Asked]:
        """Six names; what each means is a task type and a target."""
        names = self.shuffled(TRAINING_NAMES if self.part == "train" else HELD_OUT_NAMES)
        plans = [key for key in plans_of(self.scene) if key[0] in _DEEDS]
        return {name: Asked(task_type, "", target) for name, (task_type, target) in
                zip(names[:6], self.shuffled(plans), strict=False)}  # fmt: skip

    # Sentences.

    def sentence(self, topic: str, **values: str) -> str:
        form = self.one(SENTENCES[topic][self.part]).format(**values)
        return form[0].upper() + form[1:]

    def say(self, topic: str, key: str, values: Mapping[str, str], others: Sequence[str], correct: bool) -> None:
        """Have the user say something.

        `others` are values of `key` that somebody else would say instead.
        """
        lead = self.one(CORRECTIONS) if correct else ""
        text = self.sentence(topic, **values)
        contrary = self.sentence(topic, **{**values, key: self.one(others)}) if others else ""
        self.sayings.append(Saying(lead + text, contrary=contrary))

    def tell_place(self, kind: str, place: int) -> None:
        others = [self.names[i] for i in self.able(kind) if i not in (place, self.at[kind])]
        self.say("place", "place", {"kind": kind.lower(), "place": self.names[place]}, others, kind in self.last_asked)

    def tell_owned(self, kind: str, place: int) -> None:
        is_new = kind not in self.forbidden
        self.forbidden[kind] = place
        other = self.other[kind] if place == self.at[kind] else self.at[kind]
        values = {"kind": kind.lower(), "place": self.names[place], "who": self.one(WHO)}
        self.say("owned", "place", values, [self.names[other]], not is_new)

    def tell_meaning(self, name: str) -> None:
        request = self.procedures[name]
        self.meant_names[name] = request
        others = [self.words_of(other) for other in self.procedures.values() if other != request]
        self.say("meant", "deed", {"name": name, "deed": self.words_of(request)}, others, False)

    @staticmethod
    def words_of(request: Asked) -> str:
        return _DEEDS[request.task_type].format(target=request.target.lower())

    # Days.

    def life(self) -> Life:
        mix = self.mix
        counts = {cue: round(mix.shares[cue] * mix.num_tasks) for cue in CUES}
        counts["usual"] += mix.num_tasks - sum(counts.values())
        left = self.shuffled([(cue, i) for cue in CUES for i in range(counts[cue])])
        forgets = {mix.num_tasks // 4 + self.rng.integer(mix.num_tasks // 2) for _ in range(mix.num_forgets)}
        days: list[Day] = []
        for self.today in range(mix.num_tasks):
            self.sayings = []
            self.between(self.today in forgets)
            for position, (cue, _) in enumerate(left):
                choice = getattr(self, f"ask_{cue}")()
                if choice is not None:
                    left.pop(position)
                    break
            else:
                cue, choice = "plain", self.ask_plain()
            days.append(self.day(cue, *choice))
        return Life(self.scene.number, tuple(days))

    def between(self, should_forget: bool) -> None:
        """Let people do and say what comes before a task."""
        if self.today == self.mix.num_tasks // 2:
            for kind in self.usual:
                if self.is_drawn(self.mix.silent_change):
                    self.at[kind] = self.another(kind, self.at[kind])
            for kind in self.owned_kinds:  # from now on it may be the other one
                if kind in self.forbidden and self.is_drawn(0.5):
                    self.tell_owned(kind, self.other[kind])
        if self.today in (1, 4, 8) and (new := [kind for kind in self.owned_kinds if kind not in self.forbidden]):
            self.tell_owned(new[0], self.at[new[0]])
            self.tell_place(new[0], self.other[new[0]])
        secret = [name for name in list(self.procedures)[3:] if name not in self.meant_names]
        if secret and self.today in (2, 12, 40):
            self.tell_meaning(secret[0])
        if len(self.news) < 2 and self.is_drawn(0.3):
            self.tell_news()
        if self.wishes and self.is_drawn(0.04):
            self.change_wish(self.one(self.wishes), in_instruction=False)
        carried_kinds = sorted(self.evidence)
        if carried_kinds and self.is_drawn(self.mix.unseen_moves):
            kind = self.one(carried_kinds)
            self.at[kind] = self.another(kind, self.at[kind])
        if should_forget:
            kind = self.one(self.usual)
            self.wishes.pop(kind, None)
            self.sayings.append(Saying(forget=kind.lower()))

    def tell_news(self) -> None:
        """Tell a new place, true or false."""
        if self.is_drawn(self.mix.wrong_tells) and (
            steady := [kind for kind in self.usual if kind not in self.doubted_kinds]
        ):
            kind = self.one(steady)
            self.tell_place(kind, self.another(kind, self.at[kind]))
            self.doubted_kinds.append(kind)
            return
        fresh = [kind for kind in self.told_kinds if kind not in self.news]
        if not fresh:
            return
        kind = self.one(fresh)
        self.at[kind] = self.another(kind, self.at[kind])
        self.tell_place(kind, self.at[kind])
        self.news.append(kind)

    def change_wish(self, kind: str, *, in_instruction: bool) -> str:
        """Draw another wish; return its sentence for an instruction, or say it."""
        others = [target for target in self.targets[kind] if target != self.wishes.get(kind)]
        is_new = kind not in self.wishes
        self.wishes[kind] = target = self.one(others)
        values = {"kind": kind.lower(), "target": target.lower()}
        if in_instruction:
            return self.sentence("wish", **values)
        rest = [other.lower() for other in others if other != target]
        self.say("like", "target", values, rest, not is_new)
        return ""

    def target_of(self, kind: str, place: int) -> str | None:
        """Draw a target of a kind that lies in a place."""
        banned_types_here = {self.type_at(place)} | ({self.type_at(self.other[kind])} if kind in self.other else set())
        able = [target for target in self.targets[kind] if target not in banned_types_here]
        few = [target for target in able if self.count[target] == 1]
        return self.one(few if few and kind in self.moved_kinds else able) if able else None

    def find(self, kinds: Sequence[str]) -> tuple[Asked, str] | None:
        """Ask for the first kind with a target; say no place."""
        for kind in kinds:
            if (target := self.target_of(kind, self.at[kind])) is not None:
                request = Asked(_PLACE, kind, target)
                task = task_of(_PLACE, kind.lower(), target.lower())
                return request, render_goal(task, self.rng.integer(2))
        return None

    def by_age(self, kinds: Iterable[str]) -> list[str]:
        """Kinds, mostly those that were not asked for lately."""
        return sorted(kinds, key=lambda kind: self.last_asked.get(kind, -1) + self.rng.uniform(0, 20))

    def ask_usual(self) -> tuple[Asked, str] | None:
        return self.find(
            [*self.doubted_kinds, *self.by_age(kind for kind in self.usual if kind not in self.doubted_kinds)]
        )

    def ask_moved(self) -> tuple[Asked, str] | None:
        return self.find(self.by_age(self.evidence))

    def ask_told(self) -> tuple[Asked, str] | None:
        return self.find(self.by_age(self.news))

    def ask_owned(self) -> tuple[Asked, str] | None:
        return self.find(self.by_age(self.forbidden))

    def ask_liked(self) -> tuple[Asked, str] | None:
        kinds = [kind for kind in self.wishes if self.type_at(self.at[kind]) != self.wishes[kind]]
        if not kinds:
            return None
        kind = self.by_age(kinds)[0]
        return Asked(_PLACE, kind, self.wishes[kind]), f"{self.take(kind)} {_AS_LIKED}."

    def take(self, kind: str) -> str:
        return f"take the {kind.lower()} from {self.names[self.at[kind]]} and"

    def request_by_name(self, name: str) -> Asked | None:
        """Draw what is asked for by a procedure's name."""
        task_type, _, target = self.procedures[name]
        kinds = [
            kind for kind in plans_of(self.scene)[task_type, target]
            if kind in self.targets and kind not in self.owned_kinds and self.type_at(self.at[kind]) != target
            and self.type_at(self.at[kind]) not in Generator.banned_types(task_type, target)
        ]  # fmt: skip
        return Asked(task_type, self.one(kinds), target) if kinds else None

    def ask_by_name(self, names: Iterable[str]) -> tuple[Asked, str] | None:
        for name in self.shuffled(names):
            if (request := self.request_by_name(name)) is not None:
                return request, f"{self.take(request.object)} do the {name}."
        return None

    def ask_shown(self) -> tuple[Asked, str] | None:
        return self.ask_by_name(self.shown_names)

    def ask_meant(self) -> tuple[Asked, str] | None:
        return self.ask_by_name(self.meant_names)

    def ask_plain(self) -> tuple[Asked, str]:
        """Show a procedure, or say a wish beside what is asked."""
        for name in [name for name in list(self.procedures)[:3] if name not in self.shown_names]:
            if (request := self.request_by_name(name)) is not None and (
                len(self.wishes) > len(self.shown_names) or not self.liked_kinds
            ):
                self.shown_names[name] = request
                return request, f"{self.take(request.object)} do the {name}: {self.words_of(request)}."
        new = [kind for kind in self.liked_kinds if kind not in self.wishes]
        for kind in [*new, *self.shuffled(self.liked_kinds)]:
            if len({*self.targets[kind]} - {self.type_at(self.at[kind]), self.wishes.get(kind)}):
                break
        while True:
            before = self.wishes.get(kind)
            wish = self.change_wish(kind, in_instruction=True)
            if self.wishes[kind] != self.type_at(self.at[kind]):
                break
            self.wishes.pop(kind) if before is None else self.wishes.update({kind: before})
        request = Asked(_PLACE, kind, self.wishes[kind])
        return request, f"{self.take(kind)} {self.words_of(request)}. {wish}"

    def day(self, cue: str, request: Asked, instruction: str) -> Day:
        """Place everything, prove the game, and let it be so afterwards."""
        kind, place = request.object, self.at[request.object]
        forbidden = self.forbidden.get(kind) if kind in self.owned_kinds else None
        self.carry_in_sight(kind, place if forbidden != place else self.other[kind])
        where: dict[str, list[int]] = {name: [i] for name, i in self.at.items()}
        for name, other in self.other.items():
            where[name].append(other)
        for name in self.usual:
            if name != kind and self.is_drawn(self.mix.strays):
                where[name] = [self.another(name, self.at[name])]
        allowed_places = [i for i in where[kind] if i != forbidden]
        game = self.game(request, where)
        fewest = self.game(request, {**where, kind: allowed_places}).proved()
        names = tuple(self.names[i] for i in allowed_places)
        truth = Truth(
            task_of(request.task_type, kind.lower(), request.target.lower()), names,
            None if forbidden is None else (kind.lower(), self.names[forbidden]),
        )  # fmt: skip
        poison = self.poison(kind, allowed_places)
        self.last_asked[kind] = self.today
        for some in (self.news, self.doubted_kinds):
            if kind in some and cue in ("told", "usual"):
                some.remove(kind)
        if kind in self.moved_kinds:
            self.evidence.pop(kind, None)
            self.at[kind] = self.first_of(request.target)
        budget = len(fewest.walkthrough) + self.mix.spare_steps
        return Day(tuple(self.sayings), instruction, game, budget, cue, truth, poison)

    def poison(self, kind: str, places: Sequence[int]) -> str:
        wrong = self.one(i for i in self.able(kind) if i not in places)
        return self.sentence("place", kind=kind.lower(), place=self.names[wrong])

    def first_of(self, target: str) -> int:
        places = [i for i, receptacle in enumerate(self.scene.receptacles) if receptacle.type == target]
        return min(places, key=lambda i: int(self.names[i].rpartition(" ")[2]))

    def carry_in_sight(self, kind: str, place: int) -> None:
        """Put something into the sight of whoever does today's task."""
        able = [
            name for name in self.moved_kinds if name != kind and place in self.able(name) and self.at[name] != place
        ]
        stale = [name for name in able if name not in self.evidence]
        if able and self.is_drawn(0.8):
            name = self.one(stale or able)
            self.at[name] = place
            self.evidence[name] = None

    def game(self, request: Asked, where: Mapping[str, Sequence[int]]) -> GeneratedGame:
        task_type, name, target = request
        objects = []
        for kind, places in sorted(where.items()):
            for i in places:
                receptacle = self.scene.receptacles[i]
                x, y, z = receptacle.position
                identifier = identifier_of(kind, (x + 0.1, y + 0.05, z + 0.1))
                objects.append(Thing(identifier, kind, receptacle.identifier, receptacle.location))
        trial = f"home_{self.scene.number}_day_{self.today:04d}"
        start = self.scene.floor[self.today % len(self.scene.floor)]
        problem = problem_text(
            self.scene, objects, start, task_type=task_type, object_type=name, target=target, trial=trial
        )
        goal = render_goal(task_of(task_type, name.lower(), target.lower()))
        return GeneratedGame(problem, goal, "life", trial, "train" if self.part == "train" else "valid")


def _names(scene: Scene) -> list[str]:
    """Return the names of receptacles, as the text has them.

    Numbers of a type count down in the order of ids.
    """
    left = Counter(receptacle.type for receptacle in scene.receptacles)
    names = []
    for receptacle in scene.receptacles:
        names.append(f"{receptacle.type.lower()} {left[receptacle.type]}")
        left[receptacle.type] -= 1
    return names

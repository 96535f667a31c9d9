"""New ALFWorld games without any ALFWorld data: seeded, unlimited, each proved solvable.

As in ALFRED, games come from scenes. A scene is one room that lasts over all its trials: the same receptacles with
the same numbers, and habits: each type of object has one to three receptacles where it usually is. A trial draws
where the things are today and asks for one task. Sizes, objects, places and tasks follow household statistics that
`experiments/package_data/measure_statistics.py` measured on ALFWorld's train split (counts only, in `statistics.json`).

    games = generate(num_games=100, seed=0, num_scenes=24, split="train")
    envs = embodied_mem.envs.make("alfworld", tasks=[game.load() for game in games], num_envs=16)
    write(games, "my_games")                                   # official layout and format, TextWorld plays it
    python -m embodied_mem.worlds.alfworld.generator --out my_games --num_games 100 --seed 0

Where this differs from the official files: facts are sorted and stated once (there: set order, repeated), nothing is
inside a bowl or a box at the start (there: in one game in six), and objects that stand on two receptacles at once do
not occur.
"""

from __future__ import annotations

import argparse
import bisect
import dataclasses
import itertools
import json
import pathlib
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from embodied_mem.errors import InternalError, InvalidInputError
from embodied_mem.worlds.alfworld.pddl import game_file, identifier_of, location_of, problem_text
from embodied_mem.worlds.alfworld.shortest_plan import WorldState, shortest_plan
from embodied_mem.worlds.alfworld.statistics import ROOMS, Habit, Receptacle, Scene, Thing, household_statistics
from embodied_mem.worlds.alfworld.wording.text import CHANGES, TASK_TYPES, render_goal, task_of

if TYPE_CHECKING:
    from embodied_mem.worlds.alfworld.engine import Game

SPLITS = ("train", "valid")
"""Trials of the same scenes that never share a random stream (like ALFWorld's train and valid_seen)."""

DEFAULT_HABIT = 0.3
"""Share of an object type's mass in its usual places; see `Generator`."""

_CHANGER_TYPES = {"clean": "SinkBasin", "heat": "Microwave", "cool": "Fridge"}
_HEIGHTS = {"Cabinet": (0.4, 2.1), "Drawer": (0.1, 0.8), "Shelf": (0.3, 1.8), "Safe": (0.1, 0.4)}
_STACKED = ("Cabinet", "Drawer", "Shelf", "StoveBurner")
_FURNITURE_FREE = ("SinkBasin", "BathtubBasin", "GarbageCan", "Toilet", "Sink")


class SeededRandom:
    """Draws that stay the same in every Python version: only `random.Random.random` is used."""

    def __init__(self, *key: object) -> None:
        self._next = random.Random("/".join(map(str, key))).random

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._next()

    def integer(self, count: int) -> int:
        """Return one of 0 .. count - 1."""
        return int(self._next() * count)

    def weighted(self, cumulative: Sequence[float]) -> int:
        """Draw an index by weight, given the weights' running sums."""
        return min(bisect.bisect_right(cumulative, self._next() * cumulative[-1]), len(cumulative) - 1)

    def key_of(self, weights: Mapping[str, float]) -> str:
        """Return a key with probability proportional to its weight."""
        return list(weights)[self.weighted(list(itertools.accumulate(weights.values())))]


class Asked(NamedTuple):
    """A task: its type, the object's type and the target's, as in the data ("SoapBar", "Fridge")."""

    task_type: str
    object: str
    target: str


@dataclasses.dataclass(frozen=True)
class GeneratedGame:
    """One game, before it is loaded.

    Attributes:
        problem: text of its PDDL problem.
        goal: its task sentence, e.g. "put a clean apple in fridge."
        folder: official folder name, `<task>-<Object>-None-<Target>-<scene>`.
        trial: official trial name.
        split: one of `SPLITS`.
        walkthrough: commands of a shortest plan in the wording of grammar "0.4"; empty until it is proved.
    """

    problem: str
    goal: str
    folder: str
    trial: str
    split: str
    walkthrough: tuple[str, ...] = ()

    @property
    def task_id(self) -> str:
        """`<folder>/<trial>`."""
        return f"{self.folder}/{self.trial}"

    def load(self) -> Game:
        """Return the game for the native engine, named by its task id."""
        from embodied_mem.worlds.alfworld.engine import Game

        return Game.from_problem(self.problem, self.goal, self.task_id)

    def proved(self) -> GeneratedGame:
        """Add a shortest walkthrough, proved by replay in the native engine.

        Raises:
            InternalError: the plan does not win; the generator or the planner is wrong.
        """
        from embodied_mem.worlds.alfworld.engine import Env

        env = Env(self.load())
        plan = tuple(shortest_plan(WorldState.from_env(env)))
        for command in plan:
            if env.won:
                break
            env.step(command)
        if not plan or not env.won or env.num_steps != len(plan):
            raise InternalError(f"{self.task_id}: the plan {list(plan)} does not win the game; please report it")
        return dataclasses.replace(self, walkthrough=plan)


class Generator:
    """Scenes and games of one seed.

    Args:
        seed: everything follows from it.
        habit: share of an object type's mass that lies in its one to three usual receptacles, in [0, 1]. The rest
            is spread over all receptacles that can hold it, as households do. At the default the share of the
            most frequent receptacle per scene and type is near the measured one.
        own_habits: a type of object has one usual receptacle, drawn evenly from all that can hold it: only memory of
            this scene tells which, household statistics do not.
        changes: what happened to the scenes since: each time this share of the object types moved to another usual
            receptacle. Scenes with fewer changes are the same scenes earlier.

    Raises:
        InvalidInputError: a share is outside [0, 1], or there are changes without `own_habits`.
    """

    def __init__(
        self, seed: int, habit: float = DEFAULT_HABIT, own_habits: bool = False, changes: Sequence[float] = ()
    ) -> None:
        for name, share in (("habit", habit), *(("changes", share) for share in changes)):
            if not 0 <= share <= 1:
                raise InvalidInputError(f"{name}: expected a share in [0, 1], got {share}")
        if changes and not own_habits:
            raise InvalidInputError("changes: expected own_habits, where each type of object has one usual place")
        self.seed = seed
        self.habit = habit
        self.own_habits = own_habits
        self.changes = tuple(changes)
        self._statistics = household_statistics()
        self._contain = {name: set(held) for name, held in self._statistics["can_contain"].items()}
        self._having = {name: set(types) for name, types in self._statistics["properties"].items()}
        self._scenes: dict[int, Scene] = {}

    def scene(self, number: int) -> Scene:
        """Return scene `number`, determined by seed, habit and changes."""
        if number < 0:
            raise InvalidInputError(f"scene: expected a number from 0, got {number}")
        if number not in self._scenes:
            scene = self._make_scene(number)
            for change, share in enumerate(self.changes):
                scene = self._changed(scene, change, share)
            self._scenes[number] = scene
        return self._scenes[number]

    def _changed(self, scene: Scene, change: int, share: float) -> Scene:
        """Return the scene after another change of some types' usual places."""
        habits = {}
        for name, habit in scene.habits.items():
            rng = SeededRandom("change", self.seed, scene.number, change, name)
            [old], others = habit.preferred, [i for i in habit.receptacles if i != habit.preferred[0]]
            if others and rng.uniform(0, 1) < share:
                new = others[rng.integer(len(others))]
                parts = [high - low for low, high in itertools.pairwise((0.0, *habit.cumulative))]
                parts[habit.receptacles.index(old)] -= self.habit
                parts[habit.receptacles.index(new)] += self.habit
                habit = Habit((new,), habit.receptacles, tuple(itertools.accumulate(max(part, 0.0) for part in parts)))
            habits[name] = habit
        return dataclasses.replace(scene, habits=habits)

    def _make_scene(self, number: int) -> Scene:
        room = ROOMS[number % len(ROOMS)]
        statistics = self._statistics["rooms"][room]
        rng = SeededRandom("scene", self.seed, number)
        receptacles = self._make_receptacles(rng, statistics)
        inventory = [name for name, had in statistics["objects"].items()
                     if rng.uniform(0, statistics["scenes"]) < had["scenes"]]  # fmt: skip
        habits: dict[str, Habit] = {}
        furnishings: list[Thing] = []
        taken = {receptacle.location for receptacle in receptacles}
        floor = tuple(self._new_location(rng, taken) for _ in range(12))
        for name in inventory:
            had = statistics["objects"][name]
            movable = name in self._having["pickupable"]
            if movable and (habit := self._make_habit(rng, name, had["places"], receptacles)):
                habits[name] = habit
            else:
                furnishings += self._place_furnishing(rng, name, had, receptacles, taken)
        copies = {name: statistics["objects"][name]["copies"] for name in habits}
        goals = self._possible_goals(statistics["goals"], receptacles, habits, furnishings)
        return Scene(number, room, receptacles, habits, copies, tuple(furnishings), floor, goals)

    def _make_receptacles(self, rng: SeededRandom, statistics: dict[str, Any]) -> tuple[Receptacle, ...]:
        """Draw the room's receptacles as households have them."""
        receptacles: list[Receptacle] = []
        used, taken = set[str](), set[str]()
        share = statistics["locations_per_receptacle"]
        for name, counts in statistics["receptacles"].items():
            location = ""
            openable = statistics["openable"][name] / statistics["receptacles_total"][name]
            for _ in range(int(rng.key_of(counts))):
                low, high = _HEIGHTS.get(name, (0.0, 1.0))
                while True:
                    position = (rng.uniform(-4, 4), rng.uniform(low, high), rng.uniform(-4, 4))
                    identifier = identifier_of(name, position)
                    if identifier not in used:
                        break
                used.add(identifier)
                if not (location and name in _STACKED and rng.uniform(0, 1) < 2 * (1 - share)):
                    location = self._new_location(rng, taken)
                is_openable = rng.uniform(0, 1) < openable
                receptacles.append(Receptacle(identifier, name, position, location, is_openable))
        return tuple(sorted(receptacles, key=lambda receptacle: receptacle.identifier))

    def _make_habit(
        self, rng: SeededRandom, name: str, places: dict[str, int], receptacles: tuple[Receptacle, ...]
    ) -> Habit | None:
        """Return an object type's home in this room, or None."""
        able = [i for i, receptacle in enumerate(receptacles) if name in self._contain.get(receptacle.type, ())]
        number = Counter(receptacles[i].type for i in able)
        weights = [places.get(receptacles[i].type, 0) / number[receptacles[i].type] for i in able]
        if sum(weights) <= 0:
            return None
        preferred: list[int] = []
        rest = [1.0] * len(able) if self.own_habits else list(weights)
        count = 1 if self.own_habits else min(1 + rng.integer(3), sum(weight > 0 for weight in weights))
        for _ in range(count):
            chosen = rng.weighted(list(itertools.accumulate(rest)))
            preferred.append(chosen)
            rest[chosen] = 0.0
        parts = [2.0**-rank for rank in range(len(preferred))]
        total = sum(weights)
        mixed = [(1 - self.habit) * weight / total for weight in weights]
        for chosen, part in zip(preferred, parts, strict=True):
            mixed[chosen] += self.habit * part / sum(parts)
        return Habit(tuple(able[i] for i in preferred), tuple(able), tuple(itertools.accumulate(mixed)))

    def _place_furnishing(
        self, rng: SeededRandom, name: str, had: dict[str, Any], receptacles: tuple[Receptacle, ...], taken: set[str]
    ) -> list[Thing]:
        """Return a type's immovable things, where households have them."""
        present = {"", *(receptacle.type for receptacle in receptacles)} - set(_FURNITURE_FREE)
        spots = {place: count for place, count in had["places"].items() if place in present}
        placed: list[Thing] = []
        used = set()
        for _ in range(int(rng.key_of(had["copies"]))):
            position = (rng.uniform(-4, 4), rng.uniform(0, 2), rng.uniform(-4, 4))
            place = rng.key_of(spots) if spots else ""
            identifier = identifier_of(name, position)
            if identifier in used:
                continue
            used.add(identifier)
            holder = ""
            if place and name not in self._having["pickupable"]:
                holders = [receptacle for receptacle in receptacles if receptacle.type == place]
                chosen = holders[rng.integer(len(holders))]
                holder, location = chosen.identifier, chosen.location
            elif rng.uniform(0, 1) < 0.2:
                location = receptacles[rng.integer(len(receptacles))].location
            else:
                location = self._new_location(rng, taken)
            placed.append(Thing(identifier, name, holder, location))
        return placed

    def _possible_goals(
        self,
        goals: dict[str, dict[str, int]],
        receptacles: tuple[Receptacle, ...],
        habits: dict[str, Habit],
        furnishings: list[Thing],
    ) -> dict[str, dict[str, float]]:
        """Return the household tasks possible in this room, with weights."""
        present = {receptacle.type for receptacle in receptacles}
        lamps = {thing.type for thing in furnishings if thing.holder and thing.type in self._having["toggleable"]}
        possible: dict[str, dict[str, float]] = {}
        for task_type, pairs in goals.items():
            change = CHANGES.get(task_type, "")
            if change and _CHANGER_TYPES[change] not in present:
                continue
            for pair, weight in pairs.items():
                name, target = pair.split()
                if name not in habits or (change and name not in self._having[f"{change}able"]):
                    continue
                banned = self.banned_types(task_type, target)
                starts = [receptacles[i].type for i in habits[name].receptacles]
                served = target in present and name in self._contain[target] and not set(starts) <= set(banned)
                if target in lamps if task_type == "look_at_obj_in_light" else served:
                    possible.setdefault(task_type, {})[pair] = weight
        return possible

    @staticmethod
    def _new_location(rng: SeededRandom, taken: set[str]) -> str:
        """Take a free standing place and mark it as used."""
        while True:
            turn, tilt = rng.integer(4), 15 * (1 + rng.integer(4))
            location = location_of(rng.integer(33) - 16, rng.integer(33) - 16, turn, tilt)
            if location not in taken:
                taken.add(location)
                return location

    @staticmethod
    def banned_types(task_type: str, target: str) -> tuple[str, ...]:
        """Return receptacle types banned as starts of the goal's objects."""
        if task_type in ("pick_and_place_simple", "pick_two_obj_and_place"):
            return (target,)
        return ("Fridge",) if task_type == "pick_cool_then_place_in_recep" else ()

    def game(self, scene_number: int, trial: int, split: str = "train", task_type: str | None = None) -> GeneratedGame:
        """Return trial `trial` of a scene: today's places and a task.

        Args:
            scene_number: index of the scene.
            trial: index of the trial; with the split and the scene it fixes everything.
            split: one of `SPLITS`; trials of different splits share no random numbers.
            task_type: one of `TASK_TYPES`, or None to draw one that the scene can serve.

        Raises:
            InvalidInputError: an unknown split or task type, or one that this scene cannot serve.
        """
        if split not in SPLITS:
            raise InvalidInputError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
        scene = self.scene(scene_number)
        if task_type is not None and task_type not in scene.goals:
            raise InvalidInputError(
                f"task_type: scene {scene_number} ({scene.room}) serves {', '.join(scene.goals)}, got {task_type!r}"
            )
        rng = SeededRandom("trial", self.seed, scene_number, split, trial, task_type)
        if task_type is None:
            task_type = list(scene.goals)[rng.integer(len(scene.goals))]
        name, target = rng.key_of(scene.goals[task_type]).split()
        return self.game_about(rng, scene, Asked(task_type, name, target), split=split, trial=trial)

    def game_about(self, rng: SeededRandom, scene: Scene, asked: Asked, *, split: str, trial: int) -> GeneratedGame:
        """Draw a trial of a scene for this task."""
        task_type, name, target = asked
        task = task_of(task_type, name.lower(), target.lower())
        objects: list[Thing] = []
        for type_name, copies in scene.copies.items():
            is_asked = type_name == name
            num_copies = max(int(rng.key_of(copies)), task.count if is_asked else 0)
            banned = self.banned_types(task_type, target) if is_asked else ()
            objects += self._place_copies(rng, scene, type_name, num_copies, banned)
        goal = render_goal(task, rng.integer(2))
        trial_name = f"trial_{split}_{trial:06d}"
        problem = problem_text(
            scene, objects, scene.floor[rng.integer(len(scene.floor))], task_type=task_type, object_type=name,
            target=target, trial=trial_name,
        )  # fmt: skip
        folder = f"{task_type}-{name}-None-{target}-{scene.number}"
        return GeneratedGame(problem, goal, folder, trial_name, split)

    @staticmethod
    def _place_copies(
        rng: SeededRandom, scene: Scene, name: str, num_copies: int, banned: tuple[str, ...]
    ) -> list[Thing]:
        """Return today's copies of a thing type, outside banned places."""
        cumulative, places = scene.habits[name].cumulative, scene.habits[name].receptacles
        if banned:
            parts = [high - low for low, high in itertools.pairwise((0.0, *cumulative))]
            kept = [k for k, i in enumerate(places) if scene.receptacles[i].type not in banned]
            places = tuple(places[k] for k in kept)
            cumulative = tuple(itertools.accumulate(max(parts[k], 1e-9) for k in kept))
        placed: list[Thing] = []
        used = set()
        while len(placed) < num_copies:
            receptacle = scene.receptacles[places[rng.weighted(cumulative)]]
            x, y, z = receptacle.position
            identifier = identifier_of(name, (x + rng.uniform(-0.3, 0.3), y + 0.05, z + rng.uniform(-0.3, 0.3)))
            if identifier not in used:
                used.add(identifier)
                placed.append(Thing(identifier, name, receptacle.identifier, receptacle.location))
        return placed


def generate(
    num_games: int,
    seed: int,
    num_scenes: int = 24,
    split: str = "train",
    *,
    task_types: Sequence[str] | None = None,
    habit: float = DEFAULT_HABIT,
    prove: bool = True,
    own_habits: bool = False,
    changes: Sequence[float] = (),
    first_scene: int = 0,
    first_trial: int = 0,
) -> list[GeneratedGame]:
    """Return games over fixed scenes, task types and fit scenes in turn.

    Args:
        num_games: how many; the first n games are the same for any larger number.
        seed: everything follows from it; the scenes are those of `Generator(seed)`.
        num_scenes: so many scenes from `first_scene`, a quarter of them kitchens.
        split: "train" or "valid": other trials of the same scenes.
        task_types: the types wanted, by default all that these scenes can serve.
        habit: see `Generator`.
        prove: replay a shortest plan of every game in the native engine and keep it as its walkthrough.
        own_habits, changes: see `Generator`.
        first_scene: number of the first scene.
        first_trial: number of the first trial.

    Raises:
        InvalidInputError: a number out of range, an unknown split or task type, or scenes that cannot serve a type.
    """
    if num_games < 0 or num_scenes < 1:
        raise InvalidInputError(f"expected num_games >= 0 and num_scenes >= 1, got {num_games} and {num_scenes}")
    if split not in SPLITS:
        raise InvalidInputError(f"split: expected one of {', '.join(SPLITS)}, got {split!r}")
    unknown = set(task_types or ()) - set(TASK_TYPES)
    if unknown:
        raise InvalidInputError(f"task_types: expected some of {', '.join(TASK_TYPES)}, got {sorted(unknown)}")
    generator = Generator(seed, habit, own_habits, changes)
    scenes = range(first_scene, first_scene + num_scenes)
    serving = {task_type: [number for number in scenes if task_type in generator.scene(number).goals]
               for task_type in task_types or TASK_TYPES}  # fmt: skip
    missing = [task_type for task_type, scenes in serving.items() if not scenes]
    if task_types and missing:
        raise InvalidInputError(f"task_types: none of the {num_scenes} scenes can serve {missing}; ask for more scenes")
    wanted = [task_type for task_type in serving if task_type not in missing]
    games = []
    for trial in range(first_trial, first_trial + num_games):
        turn, kind = divmod(trial, len(wanted))
        number = _scene_in_turn(serving[wanted[kind]], turn, seed, split, wanted[kind])
        game = generator.game(number, trial, split, wanted[kind])
        games.append(game.proved() if prove else game)
    return games


def generated_home(num_tasks: int, seed: int) -> dict[str, Any]:
    """Return env options for one home with lasting places of objects.

    The kind of room goes by the seed: kitchen, bedroom, living room, bathroom in turn.
    """
    games = generate(num_tasks, seed, 1, habit=1.0, own_habits=True, first_scene=seed % len(ROOMS), prove=False)
    return {"tasks": [game.load() for game in games]}


def _scene_in_turn(scenes: Sequence[int], turn: int, *key: object) -> int:
    """Return scene `turn` of an endless row of shuffled scenes."""
    number, place = divmod(turn, len(scenes))
    rng = SeededRandom("order", number, *key)
    return sorted(scenes, key=lambda scene: rng.uniform(0, 1))[place]


def write(games: Iterable[GeneratedGame], root: str | pathlib.Path) -> list[pathlib.Path]:
    """Write games in ALFWorld's layout, `<root>/json_2.1.1/<split>/<folder>/<trial>/game.tw-pddl`; return the files.

    Raises:
        MissingDependencyError: the package alfworld, which holds domain and grammar, is not installed.
    """
    files = []
    for game in games:
        proved = game if game.walkthrough else game.proved()
        content = game_file(proved.problem, proved.goal, proved.walkthrough)
        file = pathlib.Path(root) / "json_2.1.1" / proved.split / proved.folder / proved.trial / "game.tw-pddl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(content))
        files.append(file)
    return files


def main(arguments: Sequence[str] | None = None) -> None:
    """Write generated games to a folder (the command line of this module)."""
    parser = argparse.ArgumentParser(
        prog="python -m embodied_mem.worlds.alfworld.generator", description="Write new, solvable ALFWorld games."
    )
    parser.add_argument("--out", required=True, help="folder that will hold json_2.1.1/<split>/...")
    parser.add_argument("--num_games", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--num_scenes", type=int, default=24)
    parser.add_argument("--split", choices=SPLITS, default="train")
    parser.add_argument("--task_types", nargs="*", choices=TASK_TYPES, default=None)
    parser.add_argument(
        "--habit", type=float, default=DEFAULT_HABIT, help="how much scenes keep things in their places"
    )
    options = parser.parse_args(arguments)
    games = generate(
        options.num_games, options.seed, options.num_scenes, options.split, task_types=options.task_types,
        habit=options.habit,
    )  # fmt: skip
    files = write(games, options.out)
    print(f"{len(files)} games -> {pathlib.Path(options.out) / 'json_2.1.1' / options.split}")


if __name__ == "__main__":
    main()

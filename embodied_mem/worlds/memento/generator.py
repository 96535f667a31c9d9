"""More personalised episodes in MEMENTO's official format, from the houses, objects and captions at hand.

    python -m embodied_mem.worlds.memento.generator --data DIR --out NEW --num_episodes 100 --seed 0

Writes a data folder: the houses and captions of `--data`, and the acquisition, single and joint stages of new episodes.
Every episode is played to success by a scripted plan in the world before it is kept. Kinds follow the benchmark: object
semantics (history, preference, ownership, group) with distractors of the same category, user patterns (preference,
routine) with objects of different categories. No two episodes of a house use the same words for a thing or an occasion.

Source: MEMENTO C.3 (what an episode consists of). The sentences come from a fixed list (below), not from a
chat model, and cover less of the language than the benchmark does.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import json
import pathlib
import random
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from embodied_mem.errors import InternalError, InvalidInputError
from embodied_mem.worlds.memento.data import STAGES, find_houses, load_captions, load_scenes, tasks_of
from embodied_mem.worlds.memento.engine import Env, Task
from embodied_mem.worlds.memento.env import MAX_ACTIONS
from embodied_mem.worlds.memento.joint_tasks import joint_record, unclear

_WORDS = json.loads(pathlib.Path(__file__).with_name("generator_words.json").read_text())
"""Words of instructions. `history`, `preference` and `ownership` have pairs: words after "The <thing>" in the
acquisition instruction, name of the thing in the utilisation instruction."""

BESIDE = " Place them next to each other."

FIRST_ID = 100_000
SINGLE_OFFSET = 100_000
JOINT_OFFSET = 200_000

_TOP = 22  # tours of so many pieces run out of time
_SKIPPED = frozenset(("unknown", "toilet", "bathtub", "fridge", "wardrobe", "washer_dryer"))
_TRIES = 60
_SPREAD_M = 0.15


class Place(NamedTuple):
    """A type of furniture of a room on which things can stand: as an instruction names it, and entries of the house."""

    said: str
    pieces: list[dict[str, Any]]


class Texts(NamedTuple):
    """Texts of an episode: `instruction` to acquire a `fact`, and a `request` to use it; no other episode of the house
    may use the words in `keys`."""

    instruction: str
    request: str
    subtype: str
    fact: str
    keys: list[str]


class Generator:
    """Draws episodes for the houses of the data folder `root`; the seed decides everything."""

    def __init__(self, root: pathlib.Path, seed: int = 0):
        self._root = root
        self._rng = random.Random(seed)
        self._scenes = load_scenes(root)
        self._categories: dict[str, dict[str, str]] = {}
        for template, category, caption in load_captions(root):
            if caption and category != "Unknown" and len(caption) < 90 and ":" not in template:
                self._categories.setdefault(category, {})[template] = caption.strip().rstrip(".")
        self.by_template = {t: c for c, group in self._categories.items() for t in group}
        self._used: set[tuple[str, str]] = set()
        self._places = {name: _places(scene) for name, scene in self._scenes.items()}
        if not any(len(places) > 1 for places in self._places.values()) or len(self._categories) < 4:
            raise InvalidInputError(
                f"{root}: expected a house with two reachable places and captions of four categories"
            )

    def pair(self, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return an acquisition entry and its single utilisation entry, played to success.

        Raises:
            InternalError: no draw could be solved.
        """
        scenes = sorted(name for name, places in self._places.items() if len(places) > 1)
        for attempt in range(_TRIES):
            # Houses in turn; one whose words are used up is passed over.
            draft = self._draft(scenes[(number + attempt) % len(scenes)], self._rng.random() < 0.58, number)
            if draft is not None and solution(tasks_of([draft[0]], self._root)[0]) is not None:
                self._used |= {(draft[0]["scene_id"], key) for key in draft[2]}
                return draft[0], draft[1]
        raise InternalError(
            f"no solvable episode in {_TRIES} draws; the houses' words may be used up: ask for fewer episodes"
        )

    def _draft(self, scene: str, pattern: bool, number: int) -> tuple[dict[str, Any], dict[str, Any], list[str]] | None:
        """Draw (acquisition, single, words); None if the house has these words."""
        rng = self._rng
        count = rng.choices((1, 2, 3), (2, 5, 3))[0]
        places = self._places[scene]
        origin, goal = rng.sample(places, 2)
        group = not pattern and count == 2 and rng.random() < 0.25
        chosen = rng.sample(sorted(self._categories), count)
        targets = [(category, rng.choice(sorted(self._categories[category]))) for category in chosen]
        together = count > 1 and rng.random() < 0.5
        texts = (
            self._pattern(chosen, origin, goal, together)
            if pattern
            else self._semantics(targets, origin, goal, group, together)
        )
        if any((scene, key) in self._used for key in texts.keys):
            return None
        others = [] if pattern else self._distractors(targets)
        clutter = self._clutter(chosen, rng.randint(1, 3))
        objects = [(template, origin) for _, template in targets] + [(template, origin) for template in others]
        objects += [(template, rng.choice(places)) for template in clutter]
        record = self._record(scene, objects, count, goal, together)
        metadata = {
            "episode_type": "user_pattern" if pattern else "object_semantics",
            "subtype": texts.subtype,
            "memory": texts.fact,
            "num_targets": count,
            "target_objects": [{"id": t, "category": c, "caption": self._categories[c][t]} for c, t in targets],
        }
        first, second = FIRST_ID + number, FIRST_ID + SINGLE_OFFSET + number
        acquisition = record | {"episode_id": str(first), "instruction": texts.instruction}
        single = record | {"episode_id": str(second), "instruction": texts.request}
        acquisition["metadata"] = metadata | {"stage": "1", "related_episode_id": str(second)}
        single["metadata"] = metadata | {"stage": "2", "related_episode_id": str(first)}
        return acquisition, single, texts.keys

    def _pattern(self, categories: Sequence[str], origin: Place, goal: Place, together: bool) -> Texts:
        occasion = self._said("occasions")
        routine = self._rng.random() < 0.25
        fill = {"occasion": occasion, "origin": origin.said, "place": goal.said}
        fill["things"] = _listed(map(_words, categories))
        fact = self._said("routines" if routine else "preferred", fill)
        order = self._order(fill, len(categories), together)
        request = self._said("requests", fill)
        return Texts(f"{order} {fact}", request, "routine" if routine else "preference", fact, [occasion])

    def _said(self, kind: str, fill: Mapping[str, str] | None = None) -> str:
        """Return one of the words of a kind, drawn."""
        text: str = self._rng.choice(_WORDS[kind])
        return text.format(**fill) if fill else text

    def _order(self, fill: Mapping[str, str], count: int, together: bool) -> str:
        order = self._said("orders", fill)
        return (order.replace("put them", "put it") if count == 1 else order) + BESIDE * together

    def _semantics(
        self, targets: Sequence[tuple[str, str]], origin: Place, goal: Place, group: bool, together: bool
    ) -> Texts:
        rng = self._rng
        captions = [self._categories[category][template] for category, template in targets]
        names = [_words(category) for category, _ in targets]
        fill = {"person": self._said("people"), "trip": self._said("trips"), "purpose": self._said("purposes")}
        if group:
            subtype, kind = "group", f"{self._said('purposes')} {self._said('groups')}"
            fact = f"The {names[0]} and the {names[1]} are part of my {kind}."
            meant, keys = [f"my {kind}"], [kind]
        else:
            subtype = rng.choices(("history", "preference", "ownership"), (6, 3, 1))[0]
            said, called = rng.choice(_WORDS[subtype])
            fact = f"The {names[0]} {said.format(**fill)}."
            reference = called.format(thing=names[0], **fill)
            meant, keys = [reference, *(_definite(caption) for caption in captions[1:])], [reference]
        fill |= {"things": _listed(names), "origin": origin.said, "place": goal.said}
        order = self._order(fill, len(names), together)
        looks = " ".join(f"The {name} is {_lower(caption)}." for name, caption in zip(names, captions))
        request = self._said("polite", {**fill, "things": _listed(meant)}) + BESIDE * together
        return Texts(f"{order} {looks} {fact}", request, subtype, fact, keys)

    def _distractors(self, targets: Sequence[tuple[str, str]]) -> list[str]:
        """Return a different-looking object of each target's category, if any."""
        others = []
        for category, template in targets:
            group = self._categories[category]
            free = sorted(t for t, caption in group.items() if caption != group[template])
            others += self._rng.sample(free, min(1, len(free)))
        return others

    def _clutter(self, categories: Sequence[str], count: int) -> list[str]:
        free = sorted(set(self._categories) - set(categories))
        return [self._rng.choice(sorted(self._categories[c])) for c in self._rng.sample(free, min(count, len(free)))]

    def _record(
        self, scene: str, objects: Sequence[tuple[str, Place]], count: int, goal: Place, together: bool
    ) -> dict[str, Any]:
        """Make an entry without texts: the first `count` objects go to `goal`."""
        rng = self._rng
        rigid: list[Any] = []
        receptacles: dict[str, str] = {}
        seen: collections.Counter[str] = collections.Counter()
        for template, place in objects:
            handle = f"{template}_:{seen[template]:04d}"
            seen[template] += 1
            piece = rng.choice(place.pieces) if not receptacles else place.pieces[0]
            x, y, z = piece["translation"]
            dx, dz = (rng.uniform(-_SPREAD_M, _SPREAD_M) for _ in range(2))
            matrix = [[1.0, 0.0, 0.0, round(x + dx, 5)], [0.0, 1.0, 0.0, round(y + 0.5, 5)]]
            matrix += [[0.0, 0.0, 1.0, round(z + dz, 5)], [0.0, 0.0, 0.0, 1.0]]
            rigid.append([f"{template}.object_config.json", matrix])
            on = [r["sim_handle"] for r in piece["receptacles"] if r["relation"] == "on"]
            receptacles[handle] = rng.choice(on)
        handles = list(receptacles)[:count]
        pieces = [piece["sim_handle"] for piece in goal.pieces]
        propositions = [_on_top(handle, pieces) for handle in handles]
        dependencies = []
        for i in range(count - 1 if together else 0):
            dependencies.append({
                "proposition_indices": [len(propositions)], "depends_on": [i, i + 1],
                "relation_type": "while_satisfied", "dependency_mode": "any",
            })  # fmt: skip
            propositions.append(_next_to(handles[i], handles[i + 1]))
        total = len(propositions)
        return {
            "scene_id": scene,
            "info": {"object_labels": {}, "is_val_mini": False, "is_tutorial": False, "initial_state": []},
            "ao_states": {}, "targets": {}, "markers": [], "target_receptacles": [], "goal_receptacles": [],
            "rigid_objs": rigid,
            "name_to_receptacle": receptacles,
            "evaluation_propositions": propositions,
            "evaluation_proposition_dependencies": dependencies,
            "evaluation_constraints": [
                {"type": "TemporalConstraint", "args": {"dag_edges": [], "n_propositions": total}},
                {"type": "TerminalSatisfactionConstraint",
                 "args": {"proposition_indices": list(range(total)), "n_propositions": None}},
            ],
            "object_states": {},
        }  # fmt: skip


def _on_top(handle: str, pieces: Sequence[str]) -> dict[str, Any]:
    args = {"object_handles": [handle], "receptacle_handles": list(pieces), "number": 1, "is_same_receptacle": False}
    return {"function_name": "is_on_top", "args": args}


def _next_to(first: str, second: str) -> dict[str, Any]:
    args = {"entity_handles_a": [first], "entity_handles_b": [second], "number": 1, "is_same_b": False}
    return {"function_name": "is_next_to", "args": args | {"l2_threshold": 1.0}}


def _places(scene: Mapping[str, Any]) -> list[Place]:
    """Return reachable rooms' furniture types for things, as instructions name them."""
    kinds = [room["type"] for room in scene["rooms"]]
    places = []
    for room in scene["rooms"]:
        pieces = [piece for piece in scene["furniture"] if piece["room"] == room["name"]]
        if not room["floor_points"] or kinds.count(room["type"]) > 1 or len(pieces) >= _TOP:
            continue
        for kind in sorted({piece["type"] for piece in pieces} - _SKIPPED):
            fit = [
                piece for piece in pieces
                if piece["type"] == kind and any(r["relation"] == "on" for r in piece["receptacles"])
            ]  # fmt: skip
            if fit:
                said = f"{_words(room['name'].rpartition('_')[0])} {_words(kind)}"
                places.append(Place(said, fit))
    return places


def _words(name: str) -> str:
    return name.replace("_", " ")


def _listed(things: Iterable[str]) -> str:
    things = list(things)
    return things[0] if len(things) == 1 else f"{', '.join(things[:-1])} and {things[-1]}"


def _lower(caption: str) -> str:
    return caption[0].lower() + caption[1:]


def _definite(caption: str) -> str:
    first, _, rest = caption.partition(" ")
    return f"the {rest}" if first in ("A", "An", "The") else f"the {_lower(caption)}"


def solution(task: Task, seed: int = 0, max_actions: int = MAX_ACTIONS) -> list[str] | None:
    """Solve a task of `is_on_top` and `is_next_to` by a script.

    The script knows where everything is in the world. Returns its actions, `max_actions` at most; None if it fails.
    """
    env = Env(task, seed)
    actions: list[str] = []

    def do(action: str) -> bool:
        actions.append(action)
        env.step(action)
        return "Successful" in env.response

    state = env.state()
    beside = {p["first"][0]: p["second"][0] for p in state["propositions"] if p["predicate"] == "is_next_to"}
    placed: dict[str, str] = {}
    for proposition in state["propositions"]:
        if proposition["predicate"] != "is_on_top":
            continue
        thing = proposition["first"][0]
        near = next((o for o in placed if beside.get(o) == thing or beside.get(thing) == o), None)
        piece = placed[near] if near else proposition["second"][0]
        start = env.state()["objects"][thing]
        if not start["known"]:
            do(f"Explore[{start['room']}]")
        taken = any(do(f"Navigate[{where}]") and do(f"Pick[{thing}]") for where in (start["place"], thing))
        relation = f"next_to, {near}" if near else "None, None"
        if not (taken and do(f"Navigate[{piece}]") and do(f"Place[{thing}, on, {piece}, {relation}]")):
            return None
        placed[thing] = piece
    do("Done[]")
    return actions if env.won and len(actions) <= max_actions else None


def generate(root: pathlib.Path, num_episodes: int, seed: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Make `num_episodes` acquisition and single entries, a joint one per six.

    Raises:
        InvalidInputError: `num_episodes` is less than 1.
        InternalError: the words are used up.
    """
    if num_episodes < 1:
        raise InvalidInputError(f"num_episodes: expected >= 1, got {num_episodes}")
    generator = Generator(root, seed)
    pairs = [generator.pair(number) for number in range(num_episodes)]
    singles = [single for _, single in pairs]
    return {
        "acquisition": [acquisition for acquisition, _ in pairs],
        "single": singles,
        "joint": _joint(singles, generator.by_template, root, num_episodes // 6, seed),
    }


def _joint(
    singles: Sequence[dict[str, Any]], categories: Mapping[str, str], root: pathlib.Path, count: int, seed: int
) -> list[dict[str, Any]]:
    rng = random.Random(f"joint/{seed}")
    made: list[dict[str, Any]] = []
    seen: set[frozenset[str]] = set()
    for _ in range(_TRIES * count):
        if len(made) == count:
            break
        first, second = rng.sample(list(singles), 2)
        key = frozenset((first["episode_id"], second["episode_id"]))
        common = set(first["name_to_receptacle"]) & set(second["name_to_receptacle"])
        if first["scene_id"] != second["scene_id"] or common or key in seen or unclear([first, second], categories):
            continue
        record = joint_record([first, second], str(FIRST_ID + JOINT_OFFSET + len(made)))
        if solution(tasks_of([record], root)[0]) is not None:
            seen.add(key)
            made.append(record)
    return made


def write(stages: Mapping[str, Sequence[Mapping[str, Any]]], root: pathlib.Path, out: pathlib.Path) -> None:
    """Write a data folder with stages and `root`'s houses and captions."""
    (out / "episodes").mkdir(parents=True, exist_ok=True)
    for name in ("scenes.json", "captions.json"):
        if (root / name).resolve() != (out / name).resolve():
            shutil.copyfile(root / name, out / name)
    for stage, records in stages.items():
        content = json.dumps({"config": None, "episodes": list(records)}).encode()
        # mtime 0: the same episodes give the same bytes.
        (out / "episodes" / f"{STAGES[stage]}.json.gz").write_bytes(gzip.compress(content, mtime=0))


def main(arguments: list[str] | None = None) -> None:
    """Generate and write; `--help` tells the options."""
    parser = argparse.ArgumentParser(
        prog="python -m embodied_mem.worlds.memento.generator", description="Write new, solvable MEMENTO episodes."
    )
    parser.add_argument("--data", default="", help="folder with scenes.json and captions.json")
    parser.add_argument("--out", required=True, help="folder that will hold the new data; not the official one")
    parser.add_argument("--num_episodes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    root, out = find_houses(options.data or None), pathlib.Path(options.out)
    if root.resolve() == out.resolve():
        raise InvalidInputError(f"--out: expected another folder than the data's, got {out}")
    stages = generate(root, options.num_episodes, options.seed)
    write(stages, root, out)
    print(f"{', '.join(f'{len(records)} {stage}' for stage, records in stages.items())} -> {out}")


if __name__ == "__main__":
    from embodied_mem.errors import EmbodiedMemError

    try:
        main()
    except EmbodiedMemError as error:
        raise SystemExit(f"error: {error}") from error

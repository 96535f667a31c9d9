"""The beginnings of ScienceWorld's tasks, taken from what the original reports of a freshly loaded task.

    with Simulator("easy") as simulator:
        beginning = capture(simulator, "find-plant", 2)

A beginning is what `csrc/envs/scienceworld/task.h` reads: things with what they contain, what is asked, what counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from embodied_mem.errors import SimulatorError
from embodied_mem.worlds.scienceworld.jvm import Simulator, object_types

_DOORS = {
    "hallway": ("kitchen", "living room", "bedroom", "workshop", "greenhouse", "art studio"),
    "kitchen": ("hallway", "bathroom", "outside"),
    "outside": ("kitchen", "greenhouse", "foundry"),
    "greenhouse": ("hallway", "outside"),
    "bathroom": ("kitchen",),
    "art studio": ("hallway",), "bedroom": ("hallway",), "living room": ("hallway",), "workshop": ("hallway",),
    "foundry": ("outside",),
}  # fmt: skip
"""Rooms by where their doors lead; the house is the same in all tasks."""

_KINDS = {
    "location.Universe": "universe", "location.Room": "room", "location.Outside": "room", "agent.Agent": "agent",
    "agent.InventoryContainer": "inventory", "misc.Picture": "picture", "misc.InclinedPlane": "plane",
    "environmentoutside.Ground": "ground", "environmentoutside.FirePit": "box", "environmentoutside.Fountain": "box",
    "devices.Fridge": "cooler", "devices.Freezer": "cooler", "devices.UltraColdFreezer": "cooler",
    "devices.Oven": "heater", "devices.BlastFurnace": "heater", "devices.Stove": "stove", "devices.Sink": "sink",
    "devices.Bathtub": "sink", "devices.Toilet": "toilet", "devices.Thermometer": "thermometer",
    "devices.StopWatch": "stopwatch", "devices.Lighter": "lighter", "devices.Axe": "tool", "devices.Shovel": "tool",
    "electricalcomponent.Battery": "battery", "electricalcomponent.LightBulb": "bulb",
    "electricalcomponent.Switch": "switch", "electricalcomponent.Wire": "wire", "livingthing.plant.Soil": "soil",
    "containers.furniture.BeeHive": "hive", "containers.furniture.Closet": "cupboard",
    "containers.furniture.Cupboard": "cupboard", "containers.furniture.Pillow": "pillow",
    "containers.furniture.Drawer": "drawer", "taskitems.AnswerBox": "box", "containers.GlassJar": "jar",
    "containers.FlowerPot": "pot", "containers.SelfWateringFlowerPot": "pot",
}  # fmt: skip

_FAMILIES = (
    ("livingthing.animals.", "animal"), ("livingthing.plant.", "plant"), ("document.", "book"),
    ("containers.furniture.", "furniture"), ("containers.", "box"), ("substance.food.OrangeJuice", "liquid"),
    ("substance.food.", "food"), ("substance.paint.", "liquid"), ("substance.Brick", "plain"),
    ("substance.SteelBlock", "plain"), ("substance.WoodBlock", "plain"), ("substance.", "substance"),
)  # fmt: skip

_AMPHIBIANS = {"frog", "common toad"}
_FINDS = {
    "find-living-thing": "living",
    "find-non-living-thing": "non-living",
    "find-plant": "plant",
    "find-animal": "animal",
}
_LIFESPAN = {
    "lifespan-longest-lived": (max,), "lifespan-shortest-lived": (min,),
    "lifespan-longest-lived-then-shortest-lived": (max, min),
}  # fmt: skip
_ANGLES = {"B": 70, "C": 80, "D": 20, "E": 10, "F": 60, "G": 40, "H": 30, "J": 50}
"""Degrees of planes by their letters."""

_FRICTIONS = {
    "titanium": 0, "soapy water": 0.06, "plastic": 0.1, "glass": 0.2, "paper": 0.2, "wood": 0.2,
    "cloth": 0.3, "greenpaint": 0.3, "tin": 0.3, "chocolate": 0.32, "bronze": 0.4,
    "lead": 0.43, "aluminum": 0.45, "brass": 0.5, "caesium": 0.5, "copper": 0.6, "steel": 0.6,
    "zinc": 0.62, "ceramic": 0.65, "iron": 0.7, "platinum": 0.8, "rubber": 0.95, "sandpaper": 0.98,
    "unknown material B": 0.7, "unknown material C": 0.4, "unknown material D": 0.6, "unknown material E": 0.2,
    "unknown material F": 0.8, "unknown material G": 0.3, "unknown material H": 0.9, "unknown material J": 0.9,
}  # fmt: skip
"""Frictions of surfaces, measured by how far blocks slide; what they stand on has 45 degrees."""

_PLANES = {
    "inclined-plane-determine-angle": {"steepest": max, "shallowest": min},
    "inclined-plane-friction-named-surfaces": {"least": max, "most": min},
    "inclined-plane-friction-unnamed-surfaces": {"least": max, "most": min},
}
"""The word of a goal for its plane, and whether things slide the most or the least on that."""

NATIVE_GAMES = (*_FINDS, *_LIFESPAN, *_PLANES)
"""Tasks that `make` plays natively: of 10,000 steps compared with the original none differs."""


def capture(simulator: Simulator, game: str, variation: int) -> dict[str, Any]:
    """Return the beginning of one variation; the episode under way is lost.

    Raises:
        SimulatorError: the process fails, or reports what is not understood here.
    """
    simulator.load(game, variation)
    return _Capture(simulator, game, variation).beginning()


class _Capture:
    def __init__(self, simulator: Simulator, game: str, variation: int):
        self._simulator, self._game, self._variation = simulator, game, variation
        self._goal = simulator.goal
        self._options = "" if simulator.simplifications == "easy" else simulator.simplifications
        self._simplifications = simulator.simplifications.split(",")
        types = object_types()
        self._class = {
            uuid: types[entry["type_id"]].removeprefix("scienceworld.objects.")
            for uuid, entry in simulator.objects().items()
        }
        self._names = {uuid: entry["referents"] for uuid, entry in simulator.objects().items()}
        self._numbers: dict[str, int] = {}
        self._things: list[dict[str, Any]] = []
        self._tree = simulator.object_tree()
        self._open = simulator.first_text.count("(that is open)") > 0

    def beginning(self) -> dict[str, Any]:
        self._add(self._tree, None)
        rooms = {thing["n"]: i for i, thing in enumerate(self._things) if thing["k"] == "room"}
        if rooms.keys() != _DOORS.keys():
            raise SimulatorError(f"ScienceWorld's rooms are not those of its house: {sorted(rooms)}")
        for room, leads in _DOORS.items():
            for other in leads:
                flags = "co" if self._open else "c"
                self._things.append({"k": "door", "n": "door", "f": flags, "p": rooms[room], "to": rooms[other]})
        for i, thing in enumerate(list(self._things)):
            if thing["k"] in ("sink", "toilet"):
                self._things.append({"k": "drain", "n": "drain", "f": "co", "p": i})
        self._look_closely()
        return {
            "id": f"{self._game}/{self._variation}",
            "goal": self._goal,
            "teleports": bool({"easy", "teleportAction"} & set(self._simplifications)),
            "wires": not {"easy", "noElectricalAction"} & set(self._simplifications),
            "things": self._things,
            **self._aims(rooms),
        }

    def _look_closely(self) -> None:
        """Add the texts of pictures and books from looks at them."""
        pictures = [thing for thing in self._things if thing["k"] == "picture"]
        books = [thing for thing in self._things if thing["k"] == "book"]
        self._simulator.load(self._game, self._variation, simplifications=f"{self._options},teleportAction")
        for thing in pictures:
            room = self._things[thing["p"]]
            if room["k"] == "room":
                self._simulator.step(f"teleport to {room['n']}")
                text, _, _ = self._simulator.step(f"look at {thing['n']}")
                words = re.sub(r"\. +The artist", ".  The artist", text).removeprefix(f"a {thing['n']}")
                thing["w"] = words + " " * bool(words)
        for thing in books:
            self._simulator.step(f"teleport to {self._room(thing)}")
            text, _, _ = self._simulator.step(f"read {thing['n']}")
            if text.startswith("Ambiguous"):  # two copies on the shelf
                text, _, _ = self._simulator.step("0")
            if not text.startswith("The book reads:\n"):
                raise SimulatorError(f"ScienceWorld's {thing['n']} cannot be read: {text!r}")
            thing["r"] = text.removeprefix("The book reads:\n")
        peas = [thing for thing in self._things if thing["n"] == "pea plant"]
        if peas:
            self._simulator.step("teleport to greenhouse")
            self._simulator.step("wait")
            look, _, _ = self._simulator.step("look around")
            for thing in peas:
                pot = re.escape(self._things[thing["p"]]["n"])
                if flower := re.search(rf"\ta {pot} \(containing .*On the pea plant you see: a (\w+ flower)", look):
                    thing["flower"] = flower[1]

    def _room(self, thing: Mapping[str, Any]) -> str:
        while thing["k"] != "room":
            thing = self._things[thing["p"]]
        return str(thing["n"])

    def _add(self, node: Mapping[str, Any], parent: int | None) -> None:
        kind = self._kind(node)
        if kind is None:
            return
        number = self._numbers[node["uuid"]] = len(self._things)
        thing: dict[str, Any] = {"k": kind, "n": node["name"], "f": _flags(node)}
        if parent is not None:
            thing["p"] = parent
        if material := node["propMaterial"]:
            thing["m"] = [material[key] for key in _MATERIAL]
        if source := node["propHeatSource"]:
            thing["heat"] = source["maxTemp"]
        if source := node["propCoolingSource"]:
            thing["cool"] = source["minTemp"]
        self._name(thing, node)
        self._things.append(thing)
        for child in node["contents"].values():
            self._add(child, number)

    def _kind(self, node: Mapping[str, Any]) -> str | None:
        if node["name"] in ("terminal 1", "terminal 2", "anode", "cathode"):
            return None  # part of their thing
        name = self._class.get(node["uuid"], "")
        if name in _KINDS:
            return _KINDS[name]
        return next((kind for begin, kind in _FAMILIES if name.startswith(begin)), "plain")

    def _name(self, thing: dict[str, Any], node: Mapping[str, Any]) -> None:
        kind, names = thing["k"], list(self._names.get(node["uuid"], ()))
        if kind == "animal":
            if "adult bee" in names:
                thing.update(life="bee", w="bee", n=node["name"], c=["bee"])
            elif any(name.startswith("baby ") for name in names):
                thing.update(life="baby")
            elif node["name"] in _AMPHIBIANS:
                thing.update(life="amphibian", w="frog")
            elif node["name"] in ("butterfly", "moth"):
                thing.update(life="butterfly", w="butterfly")
            else:
                thing.update(life="egg")
            return
        if kind == "plant":
            thing["stage"] = 3
            thing["pollen"] = node["propLife"]["lifeformType"]
            adult = max((name for name in names if "height" not in name and " in the " not in name), key=len)
            thing["n"] = adult.removeprefix("adult ")
            heights = [match[1] for name in names if (match := re.match(r"(\w+ height) ", name))]
            if heights:
                thing["w"] = heights[0]
            return
        if kind in ("box", "pot", "jar", "furniture") and any(" containing " in name for name in names):
            thing["h"] = sorted({name.partition(" containing ")[0] for name in names if " containing " in name})
        thing["c"] = sorted({name for name in names if " containing " not in name} - {node["name"]})
        if kind == "book" and len(titles := [n.partition(" called ")[2] for n in names if " called " in n]) == 1:
            author = next(name.partition(" by ")[2] for name in names if " by " in name)
            thing["w"] = f" titled {titles[0]} by {author}"
        is_watered = kind == "pot" and {"easy", "selfWateringFlowerPots"} & set(self._simplifications)
        if is_watered or self._class[node["uuid"]].endswith((".Fountain", "SelfWateringFlowerPot")):
            thing["f"] += "w"
        if node["name"] == "book shelf":
            thing["k"] = "box"
        if kind == "plane":
            full = next(name for name in names if re.fullmatch("inclined plane (.|with a .+ surface)", name))
            thing["w"] = full.removeprefix("inclined plane")
            surface = thing["w"].removeprefix(" with a ").removesuffix(" surface").strip()
            angle, friction = (_ANGLES[surface], 0.5) if surface in _ANGLES else (45, _FRICTIONS[surface])
            thing["slope"] = round(10 * (1 - friction) * math.sin(math.radians(angle)), 12)
        if kind == "pillow":
            thing["w"] = "white pillow"
        if node["name"] == "apple":
            thing["w"] = "red apple"

    def _aims(self, rooms: Mapping[str, int]) -> dict[str, Any]:
        if self._game in _LIFESPAN:
            outside = next(t for t in self._tree["contents"].values() if t["name"] == "outside")
            spans = {
                self._numbers[t["uuid"]]: t["propLife"]["lifespanTypical"]
                for t in outside["contents"].values() if t["propLife"]
            }  # fmt: skip
            aims = [pick(spans, key=lambda number: spans[number]) for pick in _LIFESPAN[self._game]]
            return {"focus": aims, "place": rooms["outside"]}
        if self._game in _PLANES:
            planes = {i: thing["slope"] for i, thing in enumerate(self._things) if thing["k"] == "plane"}
            (aim,) = (planes_of for word, planes_of in _PLANES[self._game].items() if word in self._goal)
            block = next(i for i, t in enumerate(self._things) if re.fullmatch(r"\w+ block|brick", t["n"]))
            return {
                "focus": [aim(planes, key=planes.__getitem__)],
                "place": rooms["workshop"],
                "trials": [*planes, block],
            }
        match = re.search(r"move it to the (\w+ box) in the (.+)\.", self._goal)
        boxes = [i for i, thing in enumerate(self._things) if match and thing["n"] == match[1]]
        if match is None or len(boxes) != 1:
            raise SimulatorError(f"ScienceWorld's task cannot be read: {self._goal!r}")
        return {"focus": [_FINDS[self._game]], "box": boxes[0], "place": rooms[match[2]]}


_MATERIAL = (
    "substanceName", "color", "stateOfMatter", "temperatureC", "thermalConductivity", "meltingPoint", "boilingPoint",
    "frictionCoefficient",
)  # fmt: skip


def _flags(node: Mapping[str, Any]) -> str:
    container, device, edible = node["propContainer"] or {}, node["propDevice"] or {}, node["propEdibility"] or {}
    flags = "b" * (container.get("isContainer") == "true") + "o" * bool(container.get("isOpen"))
    flags += "c" * bool(container.get("isClosable")) + "a" * bool(device.get("isActivable"))
    flags += "x" * bool(device.get("isActivated")) + "d" * bool(device)
    flags += "e" * (bool(edible.get("isEdible")) and not node["propLife"])
    return flags + "m" * bool(node["propMoveable"]["isMovable"])


def capture_all(simulator: Simulator, tasks: Sequence[tuple[str, int]]) -> dict[str, dict[str, Any]]:
    """Return the beginnings of many variations by their ids. Raises as `capture`."""
    return {f"{game}/{variation}": capture(simulator, game, variation) for game, variation in tasks}

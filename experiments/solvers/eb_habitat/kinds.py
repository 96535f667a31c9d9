"""Places and kinds of things in EB-Habitat, and their names in ALFWorld's wording."""

from __future__ import annotations

from embodied_mem.worlds.eb_habitat.engine import ACTIONS

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

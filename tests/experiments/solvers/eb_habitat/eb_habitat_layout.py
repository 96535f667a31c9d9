"""How the places of one apartment stand to each other, for tests of descriptions."""

from __future__ import annotations

from experiments.solvers.eb_habitat.places import Layout

BLACK, BROWN, TV, COUCH, FRIDGE = "table 1", "table 2", "TV stand", "sofa", "refrigerator"
BASIN, RIGHT, LEFT = "sink in the kitchen", "right counter in the kitchen", "left counter in the kitchen"
LEFT_DRAWER, RIGHT_DRAWER = "left drawer of the kitchen counter", "right drawer of the kitchen counter"
LAYOUT = Layout.of(
    """
Around the black table: the sofa 0.8 m to the right, next to it; the TV stand 3.0 m in front; the brown table 4.4 m \
to the right.
Around the brown table: the TV stand 0.6 m to the left, next to it; the right counter 2.6 m behind; the sofa 3.3 m in \
front; the black table 4.4 m in front and to the left.
Around the TV stand: the brown table 0.6 m to the right, next to it; the sofa 2.0 m in front; the black table 2.9 m in \
front.
Around the sink: the left counter 0.1 m to the left, next to it; the right counter 0.2 m to the right, next to it; the \
fridge 1.8 m to the right; the brown table 2.8 m in front; the black table 5.0 m to the right.
Around the right counter: the sink 0.2 m to the left, next to it; the fridge 0.2 m to the right, next to it; the left \
counter 0.7 m to the left; the brown table 2.6 m in front; the sofa 3.0 m behind.
Around the left counter: the sink 0.1 m to the right, next to it; the right counter 0.7 m to the right; the fridge \
2.3 m to the right; the sofa 5.0 m to the right.
Around the sofa: the black table 0.8 m to the left, next to it; the TV stand 2.0 m in front; the fridge 2.8 m behind \
and to the left; the brown table 3.3 m in front.
Around the fridge: the right counter 0.2 m to the left, next to it; the sink 1.8 m to the left; the left counter 2.3 m \
to the left; the brown table 2.7 m in front; the sofa 2.8 m behind.
Under the left counter: the left drawer.
Under the right counter: the right drawer."""
)

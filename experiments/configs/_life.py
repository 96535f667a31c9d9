"""The task mix of `life`, fixed before any training: which memory decides which share of the tasks of a life.

Every home has a life of 200 tasks. A fifth of what is told of places is wrong, a quarter of the own places changes
after half the tasks with nobody saying so, and four times the user asks to forget a thing. A task allows two steps more
than a shortest plan: one wrong look. The lives that are scored are of homes held out, with sentence forms and names of
procedures that no training home has.
"""

import dataclasses

from experiments.life.lives import LifeMix

MIX = LifeMix(
    shares={
        "plain": 0.08,
        "usual": 0.17,
        "moved": 0.22,
        "told": 0.15,
        "liked": 0.13,
        "shown": 0.10,
        "meant": 0.05,
        "owned": 0.10,
    },
    num_tasks=200,
    wrong_tells=0.2,
    strays=0.25,
    unseen_moves=0.05,
    silent_change=0.25,
    num_forgets=4,
    spare_steps=2,
)
STALE = dataclasses.replace(MIX, silent_change=0.5)
"""Half of the own places change after half the tasks, with nobody saying so."""
SEED = 0
NUM_TRAINING = 96
"""Scenes before this number are trained on."""
MORE_TRAINING = 1000
"""Scenes from this number on are trained on, too, as many as `num_scenes` lacks."""
PARTS = {"dev": NUM_TRAINING, "report": 300}
"""Part of the homes held out -> number of its first scene. Readers and mix were chosen on `dev`."""

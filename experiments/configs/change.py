"""Homes whose habits changed: older experiences say the old place, newer ones the new; two cores, an hour.

As `habits`, but half of the kinds of things in a home moved to another usual place at some time, and a fifth moved
after the last experience. Memory holds 25 solved games of a home from before and as many from after the first change.
One thing in ten is not in its usual place that day, so experiences contradict. What is retrieved stands in order of
age, the newest first.

What the world is worth before any training (`results/studies_teacher.json`).
"""

import dataclasses

from embodied_mem.training.config import Config

from . import habits


def config() -> Config:
    base = habits.config()
    return dataclasses.replace(
        base,
        world=dataclasses.replace(base.world, habit=0.9, changes=(0.5, 0.2)),
        memory=dataclasses.replace(base.memory, newest_first=True),
    )

"""Homes whose habits changed: older experiences say the old place, newer ones the new; one core, two hours.

As `habits`, but half of the kinds of things in a home moved to another usual place at some time, and a fifth moved
after the last experience. Memory holds 25 solved games of a home from before and as many from after the first change.
A thing that is to be put where it usually is lies anywhere that day, so experiences contradict. What is retrieved
stands in order of age, the newest first. Nine steps: in ten the teacher without memory wins more than half.

Result: `results/change.json`, with every control; one training seed.

The rule teacher wins 78.0 % with memory and 43.5 % without, before any training (`results/studies_teacher.json`).
"""

import dataclasses

from embodied_mem.training.config import Config

from . import habits


def config() -> Config:
    base = habits.config()
    return dataclasses.replace(
        base,
        world=dataclasses.replace(base.world, changes=(0.5, 0.2), max_steps=9),
        memory=dataclasses.replace(base.memory, newest_first=True),
    )

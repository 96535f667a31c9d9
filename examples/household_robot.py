"""A household robot that remembers what its detector saw: `python examples/household_robot.py [FOLDER]`.

No text and no model: triples with confidence, poses in metres on the map, times in seconds, failures. The memory is
kept in a folder, and opened again as after a restart.
"""

from __future__ import annotations

import argparse
import tempfile

from embodied_mem.memory import LifelongMemory, Outcome, Scope

DOOR, TABLE, SINK = (0.0, 0.0), (2.0, 1.0), (5.0, 1.0)  # where the robot stands when it looks
MORNING = 8 * 3600.0  # seconds on the robot's clock


def morning(memory: LifelongMemory) -> None:
    """Play a round through the kitchen.

    A grasp fails, and somebody moves a mug.
    """
    memory.begin_task("round", "tidy the kitchen", "", place="kitchen")
    memory.observe("look", pose=DOOR, time=MORNING, facts=[("table", "next to", "window", 0.97)])
    seen = [("red mug", "on", "table", 0.94), ("keys", "on", "table", 0.91), ("spoon", "inside", "red mug", 0.55)]
    receipt = memory.observe("look", facts=seen, pose=TABLE, time=MORNING + 60, images=[b"a frame of the head camera"])
    print("At the table it keeps:", *receipt.render().splitlines(), sep="\n  ")
    receipt = memory.observe("pick(red mug)", outcome=Outcome("failure", "gripper slipped"), pose=TABLE)
    print("The grasp is a", receipt.outcome)
    receipt = memory.observe("look", facts=[("red mug", "in", "sink", 0.9)], pose=SINK, time=MORNING + 300)
    print("Somebody moved the mug:", *receipt.render().splitlines(), sep="\n  ")
    receipt = memory.observe("look", facts=[("keys", "not on", "table", 0.95)], pose=TABLE, time=MORNING + 600)
    print("The keys are gone:", *receipt.render().splitlines(), sep="\n  ")
    memory.end_task(won=False)


def questions(memory: LifelongMemory) -> None:
    """Print where things are and were, and what was seen.

    That is from near a pose and after a time.
    """
    memory.begin_task("fetch", "bring the red mug", "", place="kitchen")
    mug = memory.sightings("red mug")[0]
    print(
        f"Where is the red mug? {mug.relation} {mug.receptacle}, {mug.confidence:.0%} sure, seen from {mug.view.pose}"
    )
    keys = memory.sightings("keys")[0]
    gone = "" if keys.current else ", not there any more"
    print(f"Where are the keys? last {keys.relation} {keys.receptacle}{gone}")
    near = [thing.name for thing in memory.sightings(near=TABLE, within_m=1.5)]
    print("Last seen from near the table:", ", ".join(near))
    late = [thing.name for thing in memory.sightings(after=MORNING + 120)]
    print("Seen later than two minutes past eight:", ", ".join(late))
    fact = next(entry for entry in memory.get_all("spatial") if entry.text.startswith("red mug is in sink"))
    print("Places of the red mug:", "; ".join(entry.text for entry in memory.history(fact.id)))
    print("For the task:", *memory.retrieve("red mug", k=4).render().splitlines(), sep="\n  ")
    memory.end_task(won=True)


def main(folder: str) -> None:
    """Live a morning, restart, answer, forget."""
    scope = Scope(robot="tidy", environment="home")
    with LifelongMemory.open(folder, scope) as memory:
        morning(memory)
    with LifelongMemory.open(folder, scope) as memory:
        questions(memory)
        counts = memory.forget(object="keys")
        print("Forgotten of the keys:", {what: count for what, count in counts.items() if count})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="where the memory is kept; default: a new folder")
    main(parser.parse_args().folder or tempfile.mkdtemp())

"""A room that answers in ALFWorld's words, whose things tests may move behind the agent's back."""

from __future__ import annotations

from embodied_mem.worlds.alfworld.wording.text import parse_command, parse_goal, type_of

REFUSED = "Nothing happens."


class TextRoom:
    """One room with one hand.

    Args:
        places: receptacle -> things in it.
        closed: receptacles that have a door, which is shut at first.
        goal: one of ALFWorld's, of the kinds place, clean, heat, cool.

    Attributes:
        steps: commands answered.
    """

    def __init__(self, places: dict[str, list[str]], closed: tuple[str, ...] = (), goal: str = "put a mug in shelf."):
        self.places = {place: list(things) for place, things in places.items()}
        self.doors, self.shut, self.goal, self.task = set(closed), set(closed), goal, parse_goal(goal)
        self.at = self.held = ""
        self.treated: set[str] = set()
        self.steps = 0

    def text(self) -> str:
        """The room as first seen."""
        seen = ", ".join(f"a {place}" for place in self.places)
        return f"You are in the middle of a room. Looking quickly around you, you see {seen}."

    def move(self, thing: str, place: str) -> None:
        """Somebody else puts a thing elsewhere."""
        for things in self.places.values():
            if thing in things:
                things.remove(thing)
        self.places[place].append(thing)

    @property
    def won(self) -> bool:
        """Whether the goal holds."""
        there = [
            thing
            for place, things in self.places.items()
            for thing in things
            if type_of(place) == self.task.receptacle_type and type_of(thing) == self.task.object_type
        ]
        return any(not self.task.change or thing in self.treated for thing in there)

    def step(self, action: str) -> str:
        """The answer to a command."""
        self.steps += 1
        command = parse_command(action)
        verb, thing, place = command.verb, command.object, command.receptacle
        here = place == self.at and place in self.places
        if verb == "go" and place in self.places and place != self.at:
            self.at = place
            return f"You arrive at {place}. {self._view(place)}"
        if verb == "examine" and thing == self.at:
            return self._view(thing)
        if verb == "open" and here and place in self.shut:
            self.shut.remove(place)
            return f"You open the {place}. {self._view(place)}"
        if verb == "take" and here and place not in self.shut and thing in self.places[place] and not self.held:
            self.places[place].remove(thing)
            self.held = thing
            return f"You pick up the {thing} from the {place}."
        if verb == "put" and here and place not in self.shut and thing == self.held:
            self.held = ""
            self.places[place].append(thing)
            return f"You move the {thing} to the {place}."
        if verb in ("clean", "heat", "cool") and here and thing == self.held and type_of(place) == _TOOLS[verb]:
            self.treated.add(thing)
            return f"You {verb} the {thing} using the {place}."
        return REFUSED

    def _view(self, place: str) -> str:
        if place in self.shut:
            return f"The {place} is closed."
        seen = ", ".join(f"a {thing}" for thing in self.places[place]) or "nothing"
        return (
            f"The {place} is open. In it, you see {seen}."
            if place in self.doors
            else f"On the {place}, you see {seen}."
        )


_TOOLS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}


def play(agent, room: TextRoom, max_steps: int = 40, meddle=None) -> list[tuple[str, str]]:
    """(command, answer) pairs of one task; `meddle(room, command)` runs before each answer."""
    turns = []
    action = agent.begin("task", room.goal, room.text())
    while True:
        if meddle is not None:
            meddle(room, action)
        turns.append((action, room.step(action)))
        if room.won or room.steps >= max_steps:
            agent.end(room.won, turns[-1][1])
            return turns
        action = agent.act(turns[-1][1])

"""Search prior: likely places of things, from memories of earlier tasks, and the order to search them in.

    prior = SearchPrior(situation)
    prior.named("mug")               # [("mug 1", "desk 1", "won from there before")]: worth planning on
    prior.order("mug", beliefs)      # receptacles not searched yet, the most promising first

Sources, from the most to the least specific: the same task won before in this room; where the things were last seen
in this room in earlier tasks; where such things are found in general. Places that no memory supports come last, in
the order of the room's text.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.worlds.alfworld.agent.rules import AlfworldBeliefs
from embodied_mem.worlds.alfworld.wording.text import parse_command, type_of

UNSEEN = 0.5
"""Finds added to those in each kind of receptacle: what was not found somewhere yet may be there (the
Krichevsky-Trofimov estimate of shares)."""
WON_HERE, SEEN_HERE = 2.0, 0.5
"""Worth of one win from a receptacle of this room and of one last sighting in it, in sure finds of such things
anywhere."""


class SearchPrior:
    """Likely places of things from memory, for one plan."""

    def __init__(self, situation: Situation):
        self._situation = situation
        self._receptacles = situation.beliefs_of(AlfworldBeliefs).receptacles
        self._room = Counter(map(type_of, self._receptacles))

    def _wins_here(self) -> Iterator[Mapping[str, Any]]:
        """Return data of retrieved tasks won in this room, best first."""
        pool, place = self._situation.pool, self._situation.memory.place
        for record in pool.records if pool is not None and place else ():
            if record.kind == "experience" and record.place == place:
                yield record.data

    def named(self, kind: str) -> list[tuple[str, str]]:
        """Return (thing, receptacle) of the same task won in this room."""
        goal = self._situation.goal.strip().rstrip(".").lower()
        won = (data["actions"] for data in self._wins_here() if data["goal"].strip().rstrip(".").lower() == goal)
        return list(dict.fromkeys(pair for actions in won for pair in _places_in(actions, kind)))

    def order(self, kind: str, beliefs: AlfworldBeliefs) -> list[str]:
        """Order the receptacles not searched by expected finds per command.

        The commands are those that looking costs. Then come the cheapest, then as the room lists them. One that is
        only to be opened comes first: to come back to it costs more than to look.
        """
        worth = self._worth(kind)

        def rank(receptacle: str) -> tuple[bool, float, int]:
            cost = beliefs.cost(receptacle)
            at_hand = receptacle in beliefs.closed and beliefs.is_here(receptacle)
            return not at_hand, -worth[receptacle] / max(cost, 1), cost

        return sorted((r for r in beliefs.receptacles if r not in beliefs.searched), key=rank)

    def tool(self, verb: str, default: str) -> str:
        """Return the room's receptacle kind that did this before, or `default`."""
        semantic = self._situation.memory.semantic
        known = [kind for kind, _ in semantic.tools_for(verb)] if semantic is not None else []
        return next((kind for kind in known if self._room[kind]), default)

    def _worth(self, kind: str) -> defaultdict[str, float]:
        memory = self._situation.memory
        worth: defaultdict[str, float] = defaultdict(float)
        for data in self._wins_here():
            for _, place in _places_in(data["actions"], kind):
                worth[place] += WON_HERE
        if memory.spatial is not None:
            for sighting in memory.spatial.of_class(kind):
                if sighting.episode != memory.episode and sighting.relation in ("in", "on"):
                    worth[sighting.receptacle] += SEEN_HERE
        if memory.semantic is not None:
            found = dict(memory.semantic.places_of(kind))
            total = sum(found.values()) + UNSEEN * len(self._room)
            for receptacle in self._receptacles:
                place_kind = type_of(receptacle)
                worth[receptacle] += (found.get(place_kind, 0) + UNSEEN) / total / self._room[place_kind]
        return worth


def _places_in(actions: list[str], kind: str) -> list[tuple[str, str]]:
    """List (thing, receptacle) of a kind's things taken or used there."""
    found, at = [], ""
    for command in map(parse_command, actions):
        if command.verb == "go":
            at = command.receptacle
        elif command.verb in ("take", "use") and type_of(command.object) == kind:
            found.append((command.object, command.receptacle or at))
    return [(thing, place) for thing, place in found if place]

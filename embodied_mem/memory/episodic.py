"""Episodic memory: one entry per goal, place and outcome, retrieved by similar goals.

    episodic = EpisodicMemory()
    episodic.learn(episode, number=3, time=120, place="kitchen 7")
    episodic.retrieve("put a clean apple in fridge.", place="kitchen 7")[0].text
    # "put a clean apple in fridge: won in 9 steps; apple 1 was in fridge 1; cleaned at sinkbasin 1; ..."
    episodic.live(3, episode)                                # the trajectory itself, for who compiles memory
    episodic.experiences("put a clean apple in fridge.", k=4, context=first_observation)

The extractor takes outcome, steps, key actions and, for a failure, how far it came. The updater: a repetition adds a
reference, and takes over the text if it needed fewer steps; the first success deletes the failures at the same goal in
the same place, and says after how many tries it came. With a chat writer, it says in its own words what happened, and
of the entries with similar goals which one is the same task and which ones go; if an answer cannot be used, rules do.

Source: RoboMemory 3.2.2. Deviation: by rules, what counts as the same is the same goal and place, not a similar vector.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from ..language.prompt_files import prompt
from ..types import Episode, Step
from .arguments import checked_number, checked_text
from .bank import Experience, Experiences, found_at, key_actions, rationale_for
from .chat_writer import SUMMARY, ChatWriter, parse_text
from .entries import Entry, EntryMemory, Support, check_fields, learning
from .events import check
from .readers import Reader
from .readers.reading import class_of, effects, refusals
from .record import Record
from .search import SIMILAR
from .stored_modules import Selector

_FIELDS = {"goal": str, "place": str, "won": bool, "steps": int, "why": str, "failures": int}
_MAX_ACTIONS = 24
_SAME_PLACE = 0.25
_SIMILAR, _MAX_SIMILAR = 0.5, 6

_EXTRACT = prompt("embodied_mem.memory", "task")
_UPDATE = prompt("embodied_mem.memory", "task_update")
_UPDATED = {
    "type": "object",
    "properties": {
        "same": {"type": ["integer", "null"]},
        "delete": {"type": "array", "items": {"type": "integer"}, "maxItems": _MAX_SIMILAR},
    },
    "required": ["same", "delete"],
    "additionalProperties": False,
}


class EpisodicMemory(EntryMemory):
    """Task-level memory of one scope.

    Attributes:
        trajectories: whole ones, each once; won and lost.
    """

    format_name = "embodied_mem.episodic_memory"
    module = "episodic"

    def _clear(self) -> None:
        super()._clear()
        self._empty()
        self._reasons: dict[int, tuple[str, list[str]]] = {}  # episode -> why, places; until it is lived

    def _empty(self) -> None:
        self.trajectories = Experiences(reader=self._reader, lost=True)
        self._numbers: list[list[int]] = []  # of each trajectory: the episodes that went so
        self._keys: dict[int, str] = {}  # episode -> key of its entry

    def propose(
        self,
        episode: Episode,
        *,
        number: int,
        time: int,
        place: str = "",
        outcomes: Mapping[int, bool] | None = None,
    ) -> dict[str, Any]:
        """Make the event for `learn`; ask the writer here, never on replay."""
        episode, number, time, place = learning(episode, number, time, place)
        reader = self._reader
        goal = episode.goal.strip().rstrip(".")
        base = f"{goal.lower()}|{place}"
        key = f"{base}|{'won' if episode.won else 'failed'}"
        known, failures = self.get(key), self.get(f"{base}|failed")
        tries = len(failures.support) if failures is not None and episode.won else 0
        tries += known.data["failures"] if known is not None else 0
        changes: list[dict[str, Any]] = []
        if episode.won and failures is not None:
            changes.append({"do": "delete", "key": failures.key})
        change: dict[str, Any] = {"do": "add" if known is None else "update", "key": key}
        change["support"] = [Support(number, len(episode.steps), "")]
        change["data"] = {"failures": tries}
        reason = rationale_for(episode, reader) if episode.won else how_far(episode, reader, outcomes)
        if known is None or len(episode.steps) <= known.data["steps"]:
            change["about"] = goal
            won = episode.won
            actions = key_actions(episode, reader) if won else _actions(episode, refusals(reader, episode, outcomes))
            why = reason.rpartition("; ")[0] if won else reason
            change["data"] |= {
                "goal": goal,
                "place": place,
                "won": episode.won,
                "steps": len(episode.steps),
                "actions": list(actions)[:_MAX_ACTIONS],
                "why": why,
                "origin": number,
            }
        changes.append(change)
        if self._writer is not None and "why" in change["data"]:
            changes += self._written(self._writer, episode, change)
        last = {"number": number, "why": reason, "places": sorted(found_at(episode, reader))}
        return {"op": "change", "time": time, "changes": changes, "lived": last}

    def apply_checked(self, event: Mapping[str, Any]) -> None:
        super().apply_checked(event)
        if (last := event.get("lived")) is not None:
            self._reasons = {last["number"]: (last["why"], last["places"])}
            keys = (change["key"] for change in event["changes"] if change["do"] != "delete")
            self._keys[last["number"]] = next(keys, "")

    def live(self, number: int, episode: Episode) -> None:
        """Keep the trajectory of an episode that was learned from last."""
        if number in self._reasons:
            self._put([(number, episode, *self._reasons.pop(number))])

    def _put(self, rows: Sequence[tuple[int, Episode, str, Iterable[str]]]) -> None:
        if not rows:
            return
        numbers, episodes, reasons, places = zip(*rows)
        for number, index in zip(numbers, self.trajectories.add_many(episodes, reasons, places)):
            self._numbers += [[] for _ in range(index + 1 - len(self._numbers))]
            self._numbers[index].append(number)

    def experiences(
        self, goal: str, k: int, *, context: str = "", exclude_task_ids: Iterable[str] = (), **more: Any
    ) -> list[tuple[Experience, int, Entry | None]]:
        """Return the best trajectories, each with its newest episode and its entry."""
        best = self.trajectories.retrieve(goal, k, context, exclude_task_ids, **more)
        numbers = [self._numbers[one.index][-1] for one in best]
        return [(one, number, self.get(self._keys.get(number, ""))) for one, number in zip(best, numbers)]

    def _written(self, writer: ChatWriter, episode: Episode, change: dict[str, Any]) -> list[dict[str, Any]]:
        """Put the writer's words into the change; return what else changes."""
        turns = [f"{step.action} -> {answer}" for step, answer in zip(episode.steps, episode.answers)]
        told = f"Task: {episode.goal}\nOutcome: {'won' if episode.won else 'failed'}\n" + "\n".join(turns)
        said = writer.ask(_EXTRACT, told, lambda value: parse_text(value["summary"]), SUMMARY)
        if said is None:
            return []
        change["data"]["said"] = said
        if change["do"] == "update":
            return []
        near = [entry for entry, _ in self.search(episode.goal, _MAX_SIMILAR, above=_SIMILAR)]
        known = {entry.id: entry for entry in near if entry.data["won"] == episode.won and entry.key != change["key"]}
        if not known:
            return []
        shown = [{"id": entry.id, "text": entry.text} for entry in known.values()]
        question = json.dumps({"known": shown, "new": {"task": episode.goal, "summary": said}}, ensure_ascii=False)
        answer = writer.ask(_UPDATE, question, lambda value: _parse_update(value, set(known)), _UPDATED)
        if answer is None:
            return []
        which, gone = answer
        if which is not None:  # another wording of a task that is known: one more source of it
            tries = known[which].data["failures"] + change["data"]["failures"]
            change |= {"do": "update", "key": known[which].key}
            change["data"] |= {name: known[which].data[name] for name in ("goal", "place")} | {"failures": tries}
            change.pop("about")
        return [{"do": "delete", "key": known[number].key} for number in gone]

    def check_data(self, data: Mapping[str, Any], new: bool) -> None:
        """Raise InvalidInputError for data that no entry has."""
        check_fields(self.format_name, data, _FIELDS, new)
        check_fields(self.format_name, data, {"said": str} if "said" in data else {}, new)

    def rendered(self, entry: Entry) -> str:
        """Write one line: goal, outcome, steps, how; how often."""
        data = entry.data
        outcome = f"won in {data['steps']} steps" if data["won"] else f"failed after {data['steps']} steps"
        how = data.get("said") or data["why"]
        text = f"{data['goal']}: {outcome}" + (f"; {how}" if how else "")
        if data["failures"] and data["won"]:
            text += f"; after {data['failures']} failed tries"
        count = len(entry.support)
        return f"{text}; {count} times" if count > 1 else text

    def derived_from(self, entry: Entry, episode: int) -> bool:
        """Return whether the text tells of this episode."""
        mixed = bool(entry.data.get("said")) and any(row.episode == episode for row in entry.support)
        return mixed or entry.data.get("origin") == episode

    def _state(self) -> tuple[Any, ...]:
        (own,) = super()._state()
        rows = [
            [numbers, [self._keys.get(number, "") for number in numbers], why, sorted(places), *_row(episode)]
            for numbers, (episode, why), places in zip(
                self._numbers, self.trajectories.records, self.trajectories.places
            )
        ]
        return ({**own, "lived": rows} if rows else own,)

    def _restore(self, state: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        rows = [_row_checked(row) for row in state.get("lived", ())]
        super()._restore(state, parts)
        self._put([(numbers[0], episode, why, places) for numbers, _, why, places, episode in rows])
        for index, (numbers, keys, *_) in enumerate(rows):
            self._numbers[index] = numbers
            self._keys.update(zip(numbers, keys))

    def fork(self) -> Self:
        other = super().fork()
        other.trajectories = self.trajectories.fork()
        other._numbers, other._keys = [list(one) for one in self._numbers], dict(self._keys)
        other._reasons = dict(self._reasons)
        return other

    def remove(self, selector: Selector) -> dict[str, int]:
        """Remove as `EntryMemory`, and the trajectories of what goes.

        A trajectory in which a thing was only seen stays, without the answers that name it.
        """
        of_it = {number for number, key in self._keys.items() if self._is_of(selector, number, key)}
        counts = super().remove(selector)
        rest: dict[Episode, tuple[list[int], str, Iterable[str]]] = {}
        for numbers, (episode, why), places in zip(self._numbers, self.trajectories.records, self.trajectories.places):
            others = [number for number in numbers if number not in of_it]
            if others and (left := _without(selector, episode, why, places)) is not None:
                same = rest.setdefault(left, ([], why, places))[0]  # two may differ by what is forgotten alone
                same[:] = sorted([*same, *others])
        before = [episode for episode, _ in self.trajectories.records]
        if [*rest] != before or [numbers for numbers, *_ in rest.values()] != self._numbers:
            keys = self._keys
            self._empty()
            self._put([(numbers[0], episode, why, places) for episode, (numbers, why, places) in rest.items()])
            self._numbers = [numbers for numbers, *_ in rest.values()]
            self._keys = {number: keys.get(number, "") for numbers in self._numbers for number in numbers}
        self._reasons = {}
        return counts

    def _is_of(self, selector: Selector, number: int, key: str) -> bool:
        entry = None if selector.entry is None else self.get(key)
        return number == selector.episode or (entry is not None and selector.is_entry(self.module, entry.id))

    def retrieve(self, query: str, *, place: str = "", k: int = 3, as_of: int | None = None) -> list[Record]:
        """Return the `k` episodes with the most similar goals.

        score = 0.75 * cos(query, goal) + 0.25 * [same place]; what is not `SIMILAR` is not found.
        """
        query, place, k = checked_text("query", query), checked_text("place", place), checked_number("k", k, least=0)
        found = []
        for entry, cosine in self.search(query, min(4 * k, len(self)) if as_of is None else len(self), above=SIMILAR):
            if not self.known_at(entry.id, as_of):
                continue
            here = bool(place) and entry.data["place"] == place
            found.append(((1 - _SAME_PLACE) * cosine + _SAME_PLACE * here, cosine, here, entry))
        found.sort(key=lambda one: -one[0])
        items = []
        for score, cosine, here, entry in found[:k]:
            why = f"goal {cosine:.2f} similar, {'same place' if here else 'another place'}"
            items.append(self.hit(entry, score, why))
        return items


def _row(episode: Episode) -> list[Any]:
    """Make a row of JSON of a trajectory."""
    steps = [[step.observation, step.action] for step in episode.steps]
    return [episode.task_id, episode.goal, steps, episode.won, episode.final_observation]


def _row_checked(row: Any) -> tuple[list[int], list[str], str, list[str], Episode]:
    """Read a row of `_state`. Raises InvalidInputError for another."""
    numbers, keys, why, places, *rest = row
    check(tuple[list[int], list[str], str, list[str], str, str, list[tuple[str, str]], bool, str], "state: lived", row)
    task_id, goal, steps, won, final = rest
    return numbers, keys, why, places, Episode(task_id, goal, tuple(Step(*step) for step in steps), won, final)


def _without(selector: Selector, episode: Episode, why: str, places: Iterable[str]) -> Episode | None:
    """Return a trajectory without the answers that name what is forgotten.

    None where it was about it: the goal, the room, a command, the reason or a place where its thing was found names it.
    """
    told = (episode.task_id.replace("_", " "), episode.goal, why, episode.first_observation, *places)
    if selector.everything or selector.in_text("\n".join((*told, *(step.action for step in episode.steps)))):
        return None
    if not selector.in_text("\n".join((*(step.observation for step in episode.steps), episode.final_observation))):
        return episode
    steps = [Step("", step.action) if selector.in_text(step.observation) else step for step in episode.steps]
    if selector.in_text(episode.final_observation):
        episode = dataclasses.replace(episode, final_observation="", final_images=())
    return dataclasses.replace(episode, steps=tuple(steps))


def _actions(episode: Episode, refused: Iterable[bool]) -> Iterable[str]:
    """Return what had an effect."""
    return dict.fromkeys(step.action for step, failed in zip(episode.steps, refused) if not failed)


def _parse_update(value: Mapping[str, Any], known: set[int]) -> tuple[int | None, list[int]]:
    """Parse (id of the same task or None, ids to delete).

    Raises ValueError for one that was not shown.
    """
    which, gone = value["same"], list(dict.fromkeys(value["delete"]))
    if not set(gone) | ({which} - {None}) <= known or which in gone:
        raise ValueError(f"expected ids that were shown, each for one thing, got {value!r}")
    return which, gone


def how_far(episode: Episode, reader: Reader, outcomes: Mapping[int, bool] | None = None) -> str:
    """Say how far a lost episode came with its object."""
    kind = reader.goal_object(episode.goal)
    texts = [episode.first_observation, *episode.answers]
    readings = [reader.read(text) for text in texts]
    refused = sum(refusals(reader, episode, outcomes))
    looked = {name for reading in readings for name, _ in reading.complete}
    places = {
        name: place for reading in readings for name, relation, place in reading.facts if relation in ("in", "on")
    }
    seen = {name: place for name, place in places.items() if class_of(name) == kind}
    events = [event for event in effects(reader, episode, outcomes) if class_of(event[2]) == kind]
    if events:
        _, what, name, place = events[-1]
        did = "used" if what == "use" else {"take": "taken from", "place": "put in"}.get(what, f"{what}ed with")
        told = f"{name} was {did} {place}" if place else f"{name} was {did}"
    elif seen:
        name, place = next(iter(seen.items()))
        told = f"{name} was seen at {place} and not taken"
    else:
        told = f"no {kind or 'object of the goal'} was seen at {len(looked)} places"
    return f"{told}; {refused} commands had no effect" if refused else told

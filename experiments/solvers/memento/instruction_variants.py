"""Variants of MEMENTO's single tasks: asked for indirectly, or with another place.

    indirect(record)                      # the entry with a reworded instruction; None if no rule applies
    elsewhere(record, scene)              # the same pattern on another piece of furniture; None if it is not simple

Source: MEMENTO E.4.2 (30 instructions reworded by hand) and E.4.3 (altered locations, "this time"). The paper's are not
published; these are made by rule, of every entry that a rule fits.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Mapping
from typing import Any

_REWORDINGS = (
    (r"\bgift(?:ed)? by\b", "that I was given by"),
    (r"\bgift (\w+) from\b", r"\1 that I was once given by"),
    (r"\bgift from\b", "present of"),
    (r"\bmy gifted (\w+)\b", r"the \1 that I got as a present"),
    (r"\bspecial gift (\w+)\b", r"\1 that somebody gave me"),
    (r"\btravel souvenir (\w+)\b", r"\1 that I brought home from a trip"),
    (r"\bsouvenir (\w+)\b", r"\1 that I brought home"),
    (r"\bfamily heirloom (\w+)\b", r"\1 that was handed down to me"),
    (r"\bmy favou?rite childhood toy\b", "the toy that I loved to play with when I was little"),
    (r"\bmy favou?rite\b", "the one I am most fond of, the"),
    (r"\bmy (?:usual|go[- ]to|go to) breakfast\b", "the first meal of the day the way I have it"),
    (r"\bset up my (.+?)(?: for me)?\?", r"get things ready the usual way? It is time for my \1."),
    (r"\b(?:arrange|organi[sz]e|prepare) my (.+?)(?: as I (?:usually )?(?:do|like|prefer))?\?",
     r"see to things the usual way? I am thinking of my \1."),
    (r"\bcozy\b", "snug"),
    (r"\bcalming (?:atmosphere|vibe|ambiance)\b", "soothing mood"),
    (r"\brelaxing (?:atmosphere|vibe|ambiance)\b", "restful mood"),
    (r"\bfor easy access\b", "so that I can reach them quickly"),
    (r"\bwelcoming\b", "inviting to guests"),
    (r"\bwork ?(?:space|station|area)\b", "place where I do my job"),
    (r"\bas I (?:usually )?(?:like|do|prefer)(?: it)?\b", "in the way you know from me"),
    (r"\bwhere I usually (?:keep|like) (?:it|them)(?: to be)?\b", "in the place you know"),
)  # fmt: skip


def indirect(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The entry with the first two rules that fit applied to its instruction; None if none fits."""
    text, applied = record["instruction"], 0
    for pattern, replacement in _REWORDINGS:
        changed = re.sub(pattern, replacement, text, count=1, flags=re.IGNORECASE)
        if changed != text:
            text, applied = changed, applied + 1
        if applied == 2:
            break
    return {**copy.deepcopy(dict(record)), "instruction": text} if applied else None


def elsewhere(record: Mapping[str, Any], scene: Mapping[str, Any], seed: int = 0) -> dict[str, Any] | None:
    """A user pattern asked for on another kind of furniture; None where the task is not simple.

    Simple: all that is put somewhere goes on top of the same pieces, in any order, and the instruction names no
    furniture of the house. The new place is a type of furniture of a room that the house has one of.

    Args:
        record: an entry of the single utilisation stage.
        scene: the house, as in `scenes.json`.
        seed: decides, with the episode id, the new place.
    """
    places = [p["args"] for p in record["evaluation_propositions"] if p["function_name"] == "is_on_top"]
    kinds = {proposition["function_name"] for proposition in record["evaluation_propositions"]}
    ordered = any(
        constraint["args"].get("dag_edges")
        for constraint in record["evaluation_constraints"]
        if constraint["type"] == "TemporalConstraint"
    )
    handles = {tuple(args["receptacle_handles"]) for args in places}
    if record["metadata"]["episode_type"] != "user_pattern" or ordered or len(handles) != 1:
        return None
    text = record["instruction"].strip()
    types = {piece["type"] for piece in scene["furniture"]}
    if not kinds <= {"is_on_top", "is_next_to"} or any(t.replace("_", " ") in text.lower() for t in types):
        return None
    old = {piece["type"] for piece in scene["furniture"] if piece["sim_handle"] in next(iter(handles))}
    choices: dict[tuple[str, str], list[str]] = {}
    single = [room["type"] for room in scene["rooms"]]
    for piece in scene["furniture"]:
        room = next((r for r in scene["rooms"] if r["name"] == piece["room"]), None)
        open_top = any(receptacle["relation"] == "on" for receptacle in piece["receptacles"])
        if room is None or not room["floor_points"] or single.count(room["type"]) != 1 or not open_top:
            continue
        if piece["type"] not in old and piece["type"] not in ("unknown", "toilet", "bathtub", "washer_dryer"):
            choices.setdefault((piece["type"], room["name"]), []).append(piece["sim_handle"])
    if not choices:
        return None
    kind, room_name = random.Random(f"{seed}/{record['episode_id']}").choice(sorted(choices))
    changed = copy.deepcopy(dict(record))
    for proposition in changed["evaluation_propositions"]:
        if proposition["function_name"] == "is_on_top":
            proposition["args"]["receptacle_handles"] = choices[kind, room_name]
    room_words = room_name.rpartition("_")[0].replace("_", " ")
    ending = "?" if text.endswith("?") else "."
    changed["instruction"] = (
        f"{text.rstrip('?. ')}, but on the {kind.replace('_', ' ')} in the {room_words} this time{ending}"
    )
    return changed

"""Reads LoCoMo's file: dialogues, turn by turn, and the questions with the turns that answer them.

    for dialogue in read_dialogues(path):
        dialogue.turns[0].text
        dialogue.questions[0].evidence          # ids of turns

Source: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (2024), `locomo10.json`. The
questions of category 5 have no answer in the dialogue and are left out; so is evidence that names no turn.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from embodied_mem.envs.data_files import read_bytes
from embodied_mem.errors import GameFileError

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_TURN = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)\Z")


class Turn(NamedTuple):
    """What one of the two says.

    Attributes:
        id: "D1:3", the third turn of the first session.
        speaker, when: who, and the date of the session.
        text: what is said, with the caption of a picture that is shown.
    """

    id: str
    speaker: str
    when: str
    text: str

    @property
    def said(self) -> str:
        """Speaker and text."""
        return f"{self.speaker}: {self.text}"


class Question(NamedTuple):
    """A question, its category by name, and the ids of the turns that answer it."""

    text: str
    category: str
    evidence: frozenset[str]


class Dialogue(NamedTuple):
    """One dialogue of many sessions."""

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def read_dialogues(path: pathlib.Path) -> list[Dialogue]:
    """The dialogues of a file, which may be packed (.gz, .xz).

    Raises:
        DataNotFoundError: there is no such file.
        GameFileError: it holds something else.
    """
    try:
        rows = json.loads(read_bytes(path))
        found = [_dialogue(row) for row in rows]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise GameFileError(f"{path}: expected LoCoMo's list of conversations with questions, got {error!r}") from error
    if not found:
        raise GameFileError(f"{path}: expected LoCoMo's list of conversations with questions, got none")
    return found


def _dialogue(row: Mapping[str, Any]) -> Dialogue:
    conversation = row["conversation"]
    sessions = sorted((int(found[1]), name) for name in conversation if (found := _SESSION.match(name)))
    turns = [
        Turn(said["dia_id"], said["speaker"], conversation[f"{name}_date_time"], _text(said))
        for _, name in sessions
        for said in conversation[name]
    ]
    known = {turn.id for turn in turns}
    questions = []
    for asked in row["qa"]:
        evidence = known.intersection(_TURN.findall(" ".join(asked["evidence"])))
        if asked["category"] in CATEGORIES and evidence:
            questions.append(Question(asked["question"], CATEGORIES[asked["category"]], frozenset(evidence)))
    return Dialogue(row["sample_id"], tuple(turns), tuple(questions))


def _text(said: Mapping[str, str]) -> str:
    caption = said.get("blip_caption")
    return f"{said['text']} [shows a picture: {caption}]" if caption else said["text"]

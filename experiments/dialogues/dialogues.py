"""Readers of LoCoMo and BEAM: dialogues, turn by turn, and the questions with the turns that answer them.

    for dialogue in read_locomo(path):          # or read_beam
        dialogue.turns[0].text
        dialogue.questions[0].evidence          # ids of turns

Questions without evidence have no answer in the dialogue and are left out; so is evidence that names no turn.

Sources: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (2024), `locomo10.json`
without category 5; Tavakoli et al., "Beyond a Million Tokens" (2025), `chats/TIER/NUMBER` of the published repository.
"""

from __future__ import annotations

import io
import json
import lzma
import pathlib
import re
import tarfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from embodied_mem.envs.data_files import read_bytes
from embodied_mem.errors import DataNotFoundError, GameFileError

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
_ADVERSARIAL, _ABSTENTION = 5, "abstention"
_TURN = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)\Z")


class Turn(NamedTuple):
    """One speaker's turn.

    Attributes:
        id: "D1:3", the third turn of the first session; BEAM counts turns from "0".
        speaker: a name, in BEAM "user" or "assistant".
        when: the date of the session; in BEAM at the turns that have one, else "".
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


def read_locomo(path: pathlib.Path, is_whole: bool = False) -> list[Dialogue]:
    """Return the dialogues of a file, packed (.gz, .xz) or not.

    Of a folder it is the first JSON file. Whole, they have the questions of category 5, too, without evidence.

    Raises:
        DataNotFoundError: there is no such file.
        GameFileError: it holds something else.
    """
    if path.is_dir():
        path = min(path.glob("*.json*"), default=path / "locomo10.json")
    try:
        rows = json.loads(read_bytes(path))
        found = [_dialogue(row, is_whole) for row in rows]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise GameFileError(f"{path}: expected LoCoMo's list of conversations with questions, got {error!r}") from error
    if not found:
        raise GameFileError(f"{path}: expected LoCoMo's list of conversations with questions, got none")
    return found


def _dialogue(row: Mapping[str, Any], is_whole: bool) -> Dialogue:
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
        elif is_whole and asked["category"] == _ADVERSARIAL:
            questions.append(Question(asked["question"], "adversarial", frozenset()))
    return Dialogue(row["sample_id"], tuple(turns), tuple(questions))


def _text(said: Mapping[str, str]) -> str:
    caption = said.get("blip_caption")
    return f"{said['text']} [shows a picture: {caption}]" if caption else said["text"]


def read_beam(path: pathlib.Path, is_whole: bool = False) -> list[Dialogue]:
    """Return the dialogues of an archive (.tar, .tar.gz, .tar.xz) or folder.

    Of a folder these are the dialogues in its archives, or without any, in its files. Whole, they have the questions of
    `abstention`, too, without evidence.

    Raises:
        DataNotFoundError: there is no such file, or no dialogue in it.
        GameFileError: a file holds something else.
    """
    files = _beam_files(path)
    names = sorted((name for name in files if name.name == _QUESTIONS), key=lambda name: (len(str(name)), name))
    if not names:
        raise DataNotFoundError(f"{path}: expected BEAM's chats/TIER/NUMBER/probing_questions/{_QUESTIONS}, got none")
    dialogues = []
    for name in names:
        folder = name.parent.parent
        chat = next((folder / chat for chat in _CHATS if folder / chat in files), folder / _CHATS[-1])
        try:
            dialogue = _beam_dialogue(
                "/".join(folder.parts[-2:]), json.loads(files[chat]), json.loads(files[name]), is_whole
            )
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise GameFileError(
                f"{path}: {folder}: expected {chat.name} with batches of turns and {_QUESTIONS} by kind, got {error!r}"
            ) from error
        dialogues.append(dialogue)
    return dialogues


_QUESTIONS = "probing_questions.json"
_CHATS = ("chat_trunecated.json", "chat.json")
"""The first that is there is what the questions are about; published in this spelling."""


def _beam_files(path: pathlib.Path) -> dict[pathlib.PurePath, bytes]:
    """Return chats and questions by their path."""
    if path.is_dir() and (archives := sorted(path.glob("*.tar*"))):
        return {name: content for archive in archives for name, content in _beam_files(archive).items()}
    names = (_QUESTIONS, *_CHATS)
    if path.is_dir():
        return {file: read_bytes(file) for name in names for file in path.absolute().rglob(name)}
    try:
        with tarfile.open(fileobj=io.BytesIO(read_bytes(path))) as archive:
            members = {pathlib.PurePosixPath(member.name): archive.extractfile(member) for member in archive}
            return {name: file.read() for name, file in members.items() if file is not None and name.name in names}
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise GameFileError(f"{path}: expected an archive of BEAM's files, got {error!r}") from error


def _beam_dialogue(name: str, batches: list[Any], kinds: Mapping[str, Any], is_whole: bool) -> Dialogue:
    messages = [message for batch in batches for turn in batch["turns"] for message in turn]
    turns = [Turn(str(m["id"]), m["role"], m.get("time_anchor") or "", m["content"]) for m in messages]
    if not turns:
        raise ValueError("no turns")
    ids = {turn.id for turn in turns}
    questions = []
    for kind, rows in kinds.items():
        for row in rows:
            evidence = ids.intersection(map(str, _numbers(row.get("source_chat_ids"))))
            if evidence or (is_whole and kind == _ABSTENTION):
                questions.append(Question(row["question"], kind.replace("_", " "), frozenset(evidence)))
    return Dialogue(name, tuple(turns), tuple(questions))


def _numbers(value: Any) -> Iterator[int]:
    """Yield the numbers in lists and mappings of any depth."""
    if isinstance(value, int):
        yield value
    elif value:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)

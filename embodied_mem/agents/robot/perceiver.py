"""Pictures and captions become a summary, facts and an outcome: by a model that sees, or by rules.

    eyes = Perceiver(OpenAIChatModel("http://localhost:8000/v1", "qwen2.5-vl-7b-instruct"))     # a server
    eyes = Perceiver(QwenVLChatModel.from_folder("Qwen2.5-VL-3B-Instruct"))                     # in this process
    eyes = Perceiver()                                   # rules: reads plain captions, looks at no picture

    memory = LifelongMemory(perceiver=eyes)              # each `observe` with images or a text asks it
    memory.observe("navigate_to(kitchen)", images=[frame])
    eyes.perceive([frame], "", "navigate_to(kitchen)", [("oven", "is", "closed")]).facts

The model is told the last action, the caption and what memory knows near the agent, and answers once for step summary,
facts and outcome. It also says which known facts are over, so that open relations end each other: what was near is
held. An answer that cannot be used is counted and asserts nothing; the caption is then read by rules.

Source: RoboMemory 3.1 (step summarizer), 3.2.1, D.1. Deviation: one call for summary and triples, with the known facts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from embodied_mem.agents.robot.captions import caption_facts
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.chat import ChatModel, Json
from embodied_mem.language.images import Picture
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory.chat_writer import Chat, ChatWriter
from embodied_mem.memory.observation import Perception, Status
from embodied_mem.memory.readers import EVERYDAY, Reader
from embodied_mem.memory.readers.reading import AGENT, NOT, says_failure
from embodied_mem.memory.relations import HOUSEHOLD_RELATIONS
from embodied_mem.memory.words import normal, spelling

Triple = tuple[str, str, str]

MAX_FACTS = 32
_PACKAGE = "embodied_mem.agents.robot"
_NO_STATE = frozenset(HOUSEHOLD_RELATIONS.names) - {"on", "is"}  # a lamp is on
_EXAMPLE = "walrus"
"""Thing of the prompt's example, which no home has: small models repeat examples, and nothing of it is believed."""
_MAX_NAME, _MAX_SUMMARY, _MAX_TOLD = 60, 240, 600
_SELF = frozenset(("agent", "robot", "i", "me", "you", "self", "myself"))
_NAME = re.compile(r"[^\W_](?:[\w' .&/-]*[\w.])?")

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "maxLength": _MAX_SUMMARY},
        "facts": {
            "type": "array",
            "items": {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 3, "maxItems": 4},
            "maxItems": MAX_FACTS,
        },
        "outcome": {"enum": ["success", "failure", "unknown"]},
        "ended": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3},
            "maxItems": MAX_FACTS,
        },
    },
    "required": ["summary", "facts", "outcome", "ended"],
    "additionalProperties": False,
}
"""The answer that servers are asked for; what they send may be less, see `read_perception`."""


class Perceiver:
    """Reads what a robot sees.

    Args:
        model: asked with pictures; None for rules, which read captions alone.
        least: confidence below which a fact is kept as text only.
        reader: of captions, for rules.
        max_tokens: of an answer.
        max_pictures: of a step that the model gets, the newest.

    Attributes:
        writer: counts calls, malformed answers and failures of the model; None without one.
        num_dropped: facts of usable answers that were none.
    """

    def __init__(
        self,
        model: ChatModel | Chat | None = None,
        *,
        least: float = 0.5,
        reader: Reader = EVERYDAY,
        max_tokens: int = 800,
        max_pictures: int = 4,
    ):
        if not 0 <= least <= 1 or max_pictures < 1:
            raise InvalidInputError(
                f"perceiver: expected least from 0 to 1 and max_pictures >= 1, got {least}, {max_pictures}"
            )
        self.writer = None if model is None else ChatWriter(model, max_tokens=max_tokens)
        self._least, self._reader, self._max_pictures = least, reader, max_pictures
        self.num_dropped = 0

    def perceive(
        self, images: Sequence[Picture] = (), caption: str = "", action: str = "", context: Sequence[Triple] = ()
    ) -> Perception:
        """Return what the pictures and the caption show.

        Args:
            images: pixels uint8[height, width, 3], or the bytes of PNG or JPEG files.
            caption: what is said of them; empty if nothing is.
            action: what was done before; empty if nothing was.
            context: facts that memory holds near the agent, in its names.
        """
        if not (images or caption.strip()):
            return Perception()
        if self.writer is None:
            return self._by_rules(caption)
        instruction, question = filled_prompt(caption, action, context)
        read = self.writer.ask(
            instruction,
            question,
            lambda answer: self._read(answer, context, bool(action.strip())),
            SCHEMA,
            images[-self._max_pictures :],
            is_strict=False,
        )
        return self._by_rules(caption) if read is None else read

    def _by_rules(self, caption: str) -> Perception:
        """Return what rules read in a caption."""
        facts = tuple((*fact, None) for fact in caption_facts(caption, self._reader))
        line = " ".join(caption.split())
        outcome: Status = "failure" if says_failure(caption) else "unknown"
        return Perception(line if len(line) <= _MAX_SUMMARY else "", facts, outcome=outcome)

    def _read(self, answer: Any, context: Sequence[Triple], has_acted: bool) -> Perception:
        """Return what an answer holds. Raises ValueError if that is nothing."""
        value = {"facts": answer} if isinstance(answer, list) else answer
        if not isinstance(value, dict) or not any(value.get(name) for name in ("summary", "facts", "ended")):
            raise ValueError("expected an object with a summary or facts")
        words = value.get("summary")
        summary = " ".join(words.split())[:_MAX_SUMMARY] if isinstance(words, str) else ""
        summary = "" if _EXAMPLE in summary else summary
        sure_of, doubts = dict[Triple, float | None](), dict[Triple, float | None]()
        rows = _rows(value.get("facts"))
        for row in rows[:MAX_FACTS]:
            triple, sure = _fact(row)
            if triple is None:
                continue
            is_unsure = sure is not None and sure < self._least
            (doubts if is_unsure else sure_of).setdefault(triple, sure)
        self.num_dropped += len(rows) - len(sure_of) - len(doubts)
        if not (summary or sure_of or doubts):
            raise ValueError("expected a summary or facts in words")
        over = {triple for row in _rows(value.get("ended"))[:MAX_FACTS] if (triple := _fact(row)[0]) is not None}
        past = [fact for fact in context if _plain(fact) in over and _plain(fact) not in sure_of]
        outcome: Status = "unknown"
        if has_acted and value.get("outcome") in ("success", "failure"):
            outcome = value["outcome"]
        facts, unsure = (tuple((*fact, sure) for fact, sure in some.items()) for some in (sure_of, doubts))
        return Perception(summary, facts, unsure, tuple(past), outcome, is_read=True)


def filled_prompt(caption: str, action: str, context: Sequence[Triple]) -> tuple[str, str]:
    """Return the instruction and the question of a step."""
    parts = [
        "Known facts:\n" + "\n".join(json.dumps(fact, ensure_ascii=False) for fact in context) if context else "",
        f"Last action: {_line(action) or 'none'}",
        f"Caption: {_line(caption)}" if caption.strip() else "",
    ]
    return prompt(_PACKAGE, "perceive").format(max_facts=MAX_FACTS), "\n\n".join(filter(None, parts))


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TOLD else f"{line[:_MAX_TOLD]}..."


def _rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _fact(row: Any) -> tuple[Triple | None, float | None]:
    """Return (triple, confidence) of one entry; None for what is no fact."""
    if isinstance(row, dict):
        row = [row.get(name) for name in ("subject", "relation", "object", "confidence")]
    if not isinstance(row, list) or len(row) not in (3, 4) or not all(isinstance(word, str) for word in row[:3]):
        return None, None
    triple = _plain(row[:3])
    subject, relation, object_ = triple
    names = subject, relation.removeprefix(NOT), object_
    is_none = any(_EXAMPLE in name for name in names) or names == ("subject", "relation", "object")
    is_none |= relation == "is" and HOUSEHOLD_RELATIONS.read("", object_, "")[1] in _NO_STATE
    if is_none or subject == object_ or not all(len(name) <= _MAX_NAME and _NAME.fullmatch(name) for name in names):
        return None, None
    return triple, _confidence(row[3] if len(row) == 4 else None)


def _plain(fact: Sequence[str]) -> Triple:
    """Return a fact in the names of memory; the robot is "agent"."""
    subject, object_ = (AGENT if (name := spelling(word)) in _SELF else name for word in (fact[0], fact[2]))
    relation = " ".join(normal(fact[1]).split())
    no = NOT if (bare := relation.removeprefix("is ")).startswith(NOT) else ""
    subject, relation, object_ = HOUSEHOLD_RELATIONS.read(subject, bare.removeprefix(NOT), object_)
    return subject, f"{no}{relation}", object_


def _confidence(value: Any) -> float | None:
    """Return a confidence from 0 to 1."""
    if value is None:
        return None
    try:
        number = float(value) if not isinstance(value, bool) else 0.0
    except ValueError:
        return 0.0
    number = number / 100 if 1 < number <= 100 else number
    return number if 0 <= number <= 1 else 0.0

"""Arguments of `LifelongMemory.observe`: text, facts, images, a pose, a time and an outcome, checked.

    observe("look", facts=[("mug", "on", "table", 0.9)], pose=(1.2, 0.4, 0.0), time=1732.5, images=["cam.png"])
    observe("pick(mug)", outcome=Outcome("failure", "gripper slipped"))

Facts need no text. What becomes of each is said in `docs/memory.md`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, cast

from ..errors import InvalidInputError
from .arguments import checked_real, checked_text, shown
from .images import image_record
from .notes import SEEN
from .readers.reading import NOT, Reader, Reading
from .trust import QUOTED, Trust, checked_trust, least_trust
from .views import checked_clock, checked_pose

Status = Literal["success", "failure", "unknown"]
_FAILED: dict[str, bool | None] = {"success": False, "failure": True, "unknown": None}


class Outcome(NamedTuple):
    """The outcome of an action, as the world knows it.

    Attributes:
        status: "success", "failure" or "unknown"; of "unknown" the text says whether it failed.
        message: what it came to, in words; it is read as a line of the text.
        images: what is seen then, as for `observe`.
    """

    status: Status
    message: str = ""
    images: Sequence[Any] = ()


@dataclasses.dataclass(frozen=True)
class Perception:
    """The reading of one step's pictures and caption, by a model or by rules.

    Attributes:
        summary: the step in one sentence; empty if there is none.
        facts: (subject, relation, object, confidence) to believe; the robot is "agent", a confidence may be None.
        doubts: likewise, but too unsure to be more than text.
        ended: (subject, relation, object) of known facts that are over: near what is now held.
        outcome: how the action ended, as far as can be seen.
        is_read: whether a model read it all, so that no other has to be asked.
    """

    summary: str = ""
    facts: tuple[tuple[str, str, str, float | None], ...] = ()
    doubts: tuple[tuple[str, str, str, float | None], ...] = ()
    ended: tuple[tuple[str, str, str], ...] = ()
    outcome: Status = "unknown"
    is_read: bool = False

    @property
    def text(self) -> str:
        """The summary, then the facts as sentences."""
        return "\n".join(filter(None, [self.summary, *(_sentence(*fact[:3]) for fact in self.facts)]))


class PerceiverLike(Protocol):
    """Whatever reads pictures and captions; `agents.robot.perceiver.Perceiver` is one."""

    def perceive(
        self, images: Sequence[Any], caption: str, action: str, context: Sequence[tuple[str, str, str]]
    ) -> Perception:
        """Return what the pictures and the caption show."""
        ...


@dataclasses.dataclass(frozen=True)
class Observation:
    """One observation.

    Attributes:
        said: the text and the outcome's message: what readers and the chat model get.
        facts: [subject, relation, object, confidence]; the last is None where none was given.
        view: pose, time and images; empty if none was given.
        failed: None if only the text can say.
        trust: whose word it is.
        perception: what was read in the images and the text; of nothing without a perceiver.
    """

    said: str
    facts: Sequence[list[Any]] = ()
    view: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    failed: bool | None = None
    trust: Trust = "sensor"
    perception: Perception = Perception()

    @property
    def quoted(self) -> bool:
        """True if no reader may read it."""
        return self.trust in QUOTED

    @property
    def text(self) -> str:
        """The words said, else the summary, then the facts as sentences: what the running episode keeps."""
        text = self.said or self.perception.summary
        if not self.facts:
            return text
        return "\n".join(filter(None, [text, *(_sentence(*fact[:3]) for fact in self.facts)]))

    def denials(self, reader: Reader, reading: Reading) -> list[tuple[str, list[Sequence[Any]]]]:
        """List (sentence, facts) of each line or fact that only denies."""
        denies = [fact for fact in reading.facts if fact[1][:4] == NOT]  # at every step: `startswith` is slower
        if not denies and not self.facts:
            return []
        found: list[tuple[str, list[Sequence[Any]]]] = []
        if denies:
            for line in filter(str.strip, self.said.splitlines()):
                one = reader.read(line)
                if one.understood and not one.complete and all(fact[1].startswith(NOT) for fact in one.facts):
                    found.append((line, list(one.facts)))
        given = [fact for fact in self.facts if fact[1].startswith(NOT)]
        return [row for row in found if row[1]] + [(_sentence(*fact[:3]), [fact]) for fact in given]

    def status(self, reading: Reading) -> Status:
        """Return the action's outcome, the world's if given, else the text's."""
        failed = True if self.failed is None and reading.refused else self.failed
        return "unknown" if failed is None else "failure" if failed else "success"

    def step(self, action: str, reading: Reading, unread: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a step's event fields and each module's arguments.

        Args:
            action: what was done.
            reading: of `said`; of nothing if it is quoted.
            unread: the lines of it that no rule understands, or that change nothing.
        """
        failed = reading.refused if self.facts and self.failed is None else self.failed
        event: dict[str, Any] = {"action": action, "observation": self.text}
        given: dict[str, dict[str, Any]] = {
            "spatial": {"action": action, "text": self.said},
            "temporal": {"action": action, "text": self.text},
        }
        if self.facts:
            given["spatial"]["given"] = self.facts
        if self.perception.is_read:
            given["spatial"]["is_read"] = True
        if self.perception.is_read and self.perception.summary:
            given["temporal"]["sentence"] = self.perception.summary
        if failed is not None:
            event["failed"] = given["temporal"]["failed"] = failed
        if self.trust != "sensor":
            event["trust"] = given["spatial"]["trust"] = given["temporal"]["trust"] = self.trust
        if unread:
            given["notes"] = self.note(action, unread)
        if self.view:
            given["views"] = {"view": self.view}
        return event, given

    def with_perception(self, perception: Perception, past: Iterable[Sequence[str]], again: Any) -> Observation:
        """Return the observation with what was read in its images.

        Args:
            perception: what was read.
            past: those of its ended facts that memory knows.
            again: facts that are told in the text, and not told twice.
        """
        facts = [list(fact) for fact in perception.facts if fact[:3] not in again]
        facts += [[subject, f"{NOT}{relation}", object_, None] for subject, relation, object_ in past]
        view = dict(self.view)
        if "images" in view:
            names = [name for one, _, other, *_ in (*perception.facts, *perception.doubts) for name in (one, other)]
            shows = [*view.get("shows", ()), perception.summary, *names]
            view["shows"] = [text for text in dict.fromkeys(shows) if text]
        return dataclasses.replace(
            self, facts=[*self.facts, *facts], view=view, perception=perception,
            failed=_FAILED[perception.outcome] if self.failed is None else self.failed,
        )  # fmt: skip

    @property
    def lines(self) -> list[str]:
        """Things seen that are no facts: unsure ones, and the summary where nothing else is kept."""
        view = self.perception
        doubts = [refusal(*fact, "unsure")[0] for fact in view.doubts]
        return doubts if self.said or view.facts or not view.summary else [view.summary, *doubts]

    def note(self, action: str, lines: list[str]) -> dict[str, Any]:
        """Return what the notes are given of these lines."""
        return {"text": lines, "kind": SEEN, "action": action, "trust": self.trust}


def checked_observation(
    text: Any, facts: Any, images: Any, pose: Any, time: Any, outcome: Any, *, trust: Any
) -> Observation:
    """Return the observation. Raises InvalidInputError for a bad argument."""
    said, failed = checked_text("text", text), None
    if outcome is not None:
        outcome = checked_outcome(outcome)
        failed = _FAILED[outcome.status]
        said = "\n".join(filter(None, [said, outcome.message]))
        images = [*_items("images", images), *_items("outcome: images", outcome.images)]
    rows = checked_facts(facts)
    view: dict[str, Any] = {}
    if pose is not None:
        view["pose"] = checked_pose(pose)
    if time is not None:
        view["clock"] = checked_clock(time)
    if records := [image_record(image) for image in _items("images", images)]:
        view["images"] = records
        names = [name for one, _, other, _ in rows for name in (one, other)]
        view["shows"] = [text for text in dict.fromkeys([said, *names]) if text]
    return Observation(said, rows, view, failed, least_trust(said, checked_trust("trust", trust)))


def checked_outcome(value: Any) -> Outcome:
    """Return the outcome, of one or of its status alone."""
    status, message, images = (*value, ())[:3] if isinstance(value, tuple) and len(value) in (2, 3) else (value, "", ())
    if not isinstance(status, str) or status not in _FAILED:
        expected = f"Outcome of {', '.join(_FAILED)} with a message, one of these words, or None"
        raise InvalidInputError(f"outcome: expected {expected}, got {shown(value)}")
    return Outcome(cast(Status, status), checked_text("outcome: message", message), images)


def images_of(outcome: Outcome | Status | None) -> Sequence[Any]:
    """Return the images that came with a checked outcome."""
    return outcome[2] if isinstance(outcome, tuple) and len(outcome) > 2 else ()


def _items(name: str, value: Any) -> Iterable[Any]:
    if type(value) in (tuple, list):
        return cast(Iterable[Any], value)
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise InvalidInputError(f"{name}: expected a list, got {shown(value)}")
    return value


def checked_facts(facts: Any) -> list[list[Any]]:
    """Return facts as [subject, relation, object, confidence]. Raises InvalidInputError."""
    return [_checked_fact(fact) for fact in _items("facts", facts)]


def _checked_fact(fact: Any) -> list[Any]:
    """[subject, relation, object, confidence] of what a detector or a person gives."""
    if isinstance(fact, (str, bytes)) or not isinstance(fact, Sequence) or len(fact) not in (3, 4):
        raise InvalidInputError(f"facts: expected (subject, relation, object, confidence), got {shown(fact)}")
    words = [" ".join(checked_text("facts: name", word).split()) for word in fact[:3]]
    if not all(words):
        raise InvalidInputError(f"facts: expected a subject, a relation and an object with a name, got {shown(fact)}")
    confidence = None if len(fact) == 3 or fact[3] is None else checked_real("facts: confidence", fact[3])
    if confidence is not None and not 0 <= confidence <= 1:
        raise InvalidInputError(f"facts: confidence: expected 0 to 1, got {shown(fact[3])} of {shown(fact)}")
    return [*words, confidence]


def refusal(subject: str, relation: str, object_: str, sure: float | None, reason: str) -> tuple[str, str]:
    """Write a refused fact as a sentence with the reason in brackets."""
    how_sure = "" if sure is None else f" (confidence {sure:.2f})"
    return f"{_sentence(subject, relation, object_).rstrip('.')}{how_sure}.", f"({reason})"


def _sentence(subject: str, relation: str, object_: str) -> str:
    said = "is" if not relation.startswith(NOT) else "is not"
    relation = relation.removeprefix(NOT)
    return f"{subject} {said} {object_}." if relation == "is" else f"{subject} {said} {relation} {object_}."

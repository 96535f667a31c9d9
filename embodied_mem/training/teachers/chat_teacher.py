"""A teacher by chat model: a model behind an OpenAI-compatible server writes the lessons.

    model = RecordedChatModel(OpenAIChatModel("http://localhost:8000/v1", model="qwen2.5-72b"), "teacher.jsonl")
    play_teacher(envs, tasks, bank, lambda task: ChatTeacher(model, source.commands()), top_k=4, detour=0.1, seed=0)
    tasks = taught_by(model, make_tasks(config), TeacherStatistics())     # of a whole run, several episodes at a time

It is told the world's commands, and gets what the compiler will get (experiences, Brief State, last command,
observation) and nothing of the simulator. Its answer is JSON with the parts of the compiler's output, the command, and
what soft tokens should convey; one that does not fit is asked for once more, with the error named. What stays wrong is
counted; a teacher that is mostly unreadable is an error, not data.

Source: MemCompiler C.2.
"""

from __future__ import annotations

import concurrent.futures
import copy
import dataclasses
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embodied_mem.compiler.brief_state import BriefState, apply_all
from embodied_mem.compiler.output_grammar import CompilerOutput, parse_output
from embodied_mem.compiler.view import compile_prompt, start_view
from embodied_mem.errors import EmbodiedMemError
from embodied_mem.language.chat import ChatError, ChatModel, Json, Message
from embodied_mem.language.json_answers import complete_json
from embodied_mem.language.prompt_files import prompt
from embodied_mem.memory import Experience
from embodied_mem.training.teachers.lesson import Lesson, Noise

if TYPE_CHECKING:
    from embodied_mem.training.tasks import TrainingTasks

MAX_EDITS = 16
"""Most edits of an answer. The schema bounds what small models repeat without end; rules teach fewer."""
_TEXT: Json = {"type": "string", "maxLength": 160}
_TEXTS: Json = {"type": "array", "items": {"type": "string", "maxLength": 80}, "maxItems": MAX_EDITS}
SCHEMA: Json = {
    "type": "object",
    "properties": {"edits": _TEXTS, **dict.fromkeys(("do", "why", "action", "reference"), _TEXT)},
    "required": ["edits", "do", "why", "action", "reference"],
    "additionalProperties": False,
}
"""The answer, part by part; `output_grammar` says how an edit is written."""


class TeacherError(EmbodiedMemError, RuntimeError):
    """A chat teacher whose answers cannot be read often enough to be taught from."""


@dataclasses.dataclass
class TeacherStatistics:
    """Counts of a model's readable and unreadable answers, over all episodes that share this object.

    Attributes:
        answers: answers received.
        unreadable: answers that were no such JSON object, twice; they count as NOACTION with the command `look`.
        malformed: answers with edits that the grammar does not know or that were refused.
        last_error: the last reason for one of both; empty if there was none.
        max_unreadable: share of unreadable answers above which teaching stops, once there are 20.
    """

    answers: int = 0
    unreadable: int = 0
    malformed: int = 0
    last_error: str = ""
    max_unreadable: float = 0.2

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def count(self, *, unreadable: str = "", malformed: str = "") -> None:
        """Count an answer and its fault, from any thread.

        Raises:
            TeacherError: too many were unreadable.
        """
        with self._lock:
            self.answers += 1
            self.unreadable += bool(unreadable)
            self.malformed += bool(malformed)
            self.last_error = unreadable or malformed or self.last_error
        if self.answers >= 20 and self.unreadable > self.max_unreadable * self.answers:
            raise TeacherError(
                f"chat teacher: {self.unreadable} of {self.answers} answers were not the JSON object asked for "
                f"(at most {100 * self.max_unreadable:.0f} % are accepted); use a model that keeps to a json_schema"
            )


class ChatTeacher:
    """Teacher protocol over a chat model.

    Args:
        model: answers; its own meter counts tokens and its budget stops it.
        commands: of the world, in words (`TaskSource.commands`).
        statistics: shared between episodes; a new one if None.
        max_tokens: longest answer.
        noise: the world's false beliefs and imagined answers; None for a play without them.
    """

    def __init__(
        self,
        model: ChatModel,
        commands: str,
        statistics: TeacherStatistics | None = None,
        max_tokens: int = 512,
        noise: Noise | None = None,
    ):
        self._model = model
        self._instruction = prompt("embodied_mem.training.teachers", "teach").format(
            commands=commands, guidance=guidance_forms(commands), max_edits=MAX_EDITS
        )
        self._noise = noise
        self._max_tokens = max_tokens
        self.statistics = statistics if statistics is not None else TeacherStatistics()

    def begin(self, goal: str, first_observation: str, experiences: Sequence[Experience]) -> Lesson:
        """Return the lesson of the first step."""
        self._view = start_view(goal, first_observation, experiences)
        return self._lesson()

    def next(self, action: str, observation: str, state: BriefState) -> Lesson:
        """Return the lesson after `action` was answered with `observation`."""
        self._view.turns.append((action, observation))
        self._view.state = state
        return self._lesson()

    def mislead(
        self, lesson: Lesson, action: str, observation: str, room: str, random: np.random.Generator
    ) -> tuple[Lesson, str]:
        return self._noise.mislead(lesson, action, observation, room, random) if self._noise else (lesson, action)

    def imagined_answer(self, observation: str, thing: str, random: np.random.Generator) -> str:
        return self._noise.imagined_answer(observation, thing, random) if self._noise else ""

    def renamable(self, room: str) -> list[str]:
        return self._noise.renamable(room) if self._noise else []

    def __deepcopy__(self, memo: dict[int, object]) -> ChatTeacher:
        """Another teacher at the same step, who asks the same model."""
        other = copy.copy(self)
        other._view = copy.deepcopy(self._view, memo)
        return other

    def messages(self) -> list[Message]:
        """Return what the model is sent at this step."""
        question = compile_prompt(self._view).removesuffix("\n=")
        return [{"role": "system", "content": self._instruction}, {"role": "user", "content": question}]

    def _lesson(self) -> Lesson:
        try:
            values: Any = complete_json(
                self._model, self.messages(), SCHEMA, name="lesson", max_tokens=self._max_tokens
            )
        except ChatError as error:
            if error.kind != "malformed":
                raise
            self.statistics.count(unreadable=str(error))
            return Lesson(CompilerOutput.make(), self._view.state, "look", "")
        lines = "\n".join(values["edits"]).splitlines()
        # Only what is legal is taught: the output is written again from the edits that were admitted.
        admitted, state = [], self._view.state
        for edit in parse_output("\n".join(lines)).edits:
            state, refused = apply_all((edit,), state)
            if not refused:
                admitted.append(edit)
        num_wrong = len(lines) - len(admitted)
        self.statistics.count(malformed=f"{num_wrong} wrong edits in {lines}" if num_wrong else "")
        output = CompilerOutput.make(values["do"], admitted, values["why"])
        action = " ".join(values["action"].split()) or "look"
        return Lesson(output, state, action, values["reference"] if output.guidance else "")


def taught_by(
    model: ChatModel, tasks: TrainingTasks, statistics: TeacherStatistics, num_threads: int = 8
) -> TrainingTasks:
    """Give tasks a model as teacher, for `num_threads` episodes at once.

    Slips and imagined answers stay the world's.
    """
    pool = concurrent.futures.ThreadPoolExecutor(num_threads)
    noise = tasks.make_teacher
    return dataclasses.replace(
        tasks,
        make_teacher=lambda task: ChatTeacher(model, tasks.commands(task), statistics, noise=noise(task)),
        each=pool.map,
    )


def guidance_forms(commands: str) -> str:
    """Return the forms of guidance in a world of these commands."""
    forms = {"clean": "clean O with P", "heat": "heat O with P", "cool": "cool O with P", "use": "use O in P"}
    own = [form for verb, form in forms.items() if f" {verb} O" in commands]
    return " | ".join(["find X in P", "take O from P", *own, "put O in P", "put down O"])

"""Planner, critic and preprocessor by a chat model; the prompts are text files in `prompts/`.

    chat = OpenAIChatModel("http://localhost:8000/v1", "qwen2.5-7b-instruct", max_cost=1.0, prices={...})
    agent = PlannerCriticAgent(**chat_parts(chat, robot.skills))     # or PlannerCriticAgent.for_world("alfworld", ...)

The planner is told what can be done by a list of skills; nothing else in the prompts knows a world or a robot. Where
cameras give pictures, all three see them.

An answer that cannot be used is counted and replaced by what does no harm: a plan by looking around, a verdict by
consent, a summary and a query by rules. A used-up budget is not: it ends the run, and so do `MAX_UNUSABLE_PLANS` in a
row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import Plan, PlanStep
from embodied_mem.agents.robot.skills import Skill, checked_skills, read_command
from embodied_mem.forks import forking_lock
from embodied_mem.language.chat import ChatError, ChatModel
from embodied_mem.language.images import Picture, content
from embodied_mem.language.json_answers import complete_json, without_thoughts
from embodied_mem.language.prompt_files import prompt
from embodied_mem.language.seats import Seats
from embodied_mem.memory.recollection import Recollection
from embodied_mem.memory.trust import WARNING

_PACKAGE = "embodied_mem.agents.planner_critic"
MAX_UNUSABLE_PLANS = 5
"""So many in a row are an error: the model, or the server, does not do what it is asked for."""
_MAX_SUMMARIES = 8


def plan_schema(skills: Sequence[Skill], max_steps: int) -> dict[str, Any]:
    """Return what a plan of these skills looks like as JSON: each step has a skill and its arguments by name."""
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    steps = [
        {
            "type": "object",
            "properties": {
                "skill": {"enum": [skill.name]},
                **dict.fromkeys(skill.arguments, text),
                "why": {"type": "string", "maxLength": 300},
            },
            "required": ["skill", *skill.arguments],
            "additionalProperties": False,
        }
        for skill in skills
    ]
    return {
        "type": "object",
        "properties": {"steps": {"type": "array", "items": {"anyOf": steps}, "minItems": 1, "maxItems": max_steps}},
        "required": ["steps"],
        "additionalProperties": False,
    }


VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string", "maxLength": 300}},
    "required": ["ok", "reason"],
    "additionalProperties": False,
}


def _messages(system: str, user: str, images: Sequence[Picture]) -> list[dict[str, object]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": content(user, images)}]


class _Asking:
    """The common part of the three.

    Attributes:
        answers: questions asked.
        unusable: those that got no usable answer.
        last_error: the last reason for one; empty if there was none.
    """

    def __init__(self, model: ChatModel, max_tokens: int):
        self._model, self._max_tokens = model, max_tokens
        self._lock = forking_lock()
        self.answers = self.unusable = self._in_a_row = 0
        self.last_error = ""

    def _ask(self, ask: Callable[[], Any], otherwise: Any, max_in_a_row: float = float("inf")) -> Any:
        with self._lock:
            self.answers += 1
        try:
            answer = ask()
        except ChatError as error:
            if error.kind == "budget":
                raise
            with self._lock:
                self.unusable += 1
                self.last_error = str(error) or type(error).__name__
                self._in_a_row += 1
                in_a_row = self._in_a_row
            if in_a_row >= max_in_a_row:
                problem = f"expected usable answers, got {in_a_row} in a row that are not; the last: {error}"
                raise ChatError(f"{self._model.name}: {problem}", error.kind) from error
            return otherwise
        with self._lock:
            self._in_a_row = 0
        return answer


def describe(situation: Situation, step: PlanStep | None = None) -> str:
    """Render a situation in words, as planner and critic read it."""
    found = situation.recollection
    known = situation.beliefs.describe()
    parts = [
        f"Task: {situation.goal}",
        f"At first: {' '.join(situation.room.partition('Your task is to:')[0].split())}",
        f"Now:\n{known}" if known else "",
        "Last steps:\n" + "\n".join(situation.summaries[-_MAX_SUMMARIES:]) if situation.summaries else "",
        _remembered(found) if found is not None and found.items else "",
        f"The last plan was given up: {situation.objection}" if situation.objection else "",
        f"Next step: {step.command}" + (f" (why: {step.why})" if step.why else "") if step is not None else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _remembered(found: Recollection) -> str:
    """What was found; with a word about quotations if there are some."""
    return f"Remembered{f' ({WARNING})' if found.quotes else ''}:\n{found.render()}"


class ChatPlanner(_Asking):
    """Plans by a model.

    Args:
        model: asked.
        skills: what the robot or the world can do.
        max_steps: longest plan.
        max_tokens: of an answer.
    """

    def __init__(self, model: ChatModel, skills: Sequence[Skill], *, max_steps: int = 8, max_tokens: int = 512):
        super().__init__(model, max_tokens)
        self._skills = {skill.name: skill for skill in checked_skills(skills)}
        listed = "\n".join(skill.render() for skill in skills)
        self._instruction = prompt(_PACKAGE, "plan").format(max_steps=max_steps, skills=listed)
        self._schema = plan_schema(skills, max_steps)

    def plan(self, situation: Situation) -> Plan:
        """Implement `Planner.plan`; the step `look` if the model has no usable answer.

        Raises:
            ChatError: a budget is used up, or this is the last of `MAX_UNUSABLE_PLANS` unusable answers in a row.
        """
        told = [describe(situation)]
        if names := self._names(situation.commands):
            told.append(f"Names: {', '.join(names)}")
        messages = _messages(self._instruction, "\n\n".join(told), situation.images)
        value = self._ask(
            lambda: complete_json(self._model, messages, self._schema, name="plan", max_tokens=self._max_tokens),
            None,
            MAX_UNUSABLE_PLANS,
        )
        if value is None:
            return Plan((PlanStep("look", (), "the planner had no usable answer"),), "there is no plan")
        steps = [self._step(step) for step in value["steps"]]
        return Plan(tuple(steps), steps[0].why)

    def _names(self, commands: Sequence[str]) -> list[str]:
        """Return what skills take as arguments, in a list of actions; RoboMemory B.1 gives agents all objects so."""
        calls = [read_command(tuple(self._skills.values()), command) for command in commands]
        return list(dict.fromkeys(name for call in calls if call is not None for name in call.arguments.values()))

    def _step(self, step: dict[str, str]) -> PlanStep:
        skill = self._skills[step["skill"]]
        arguments = {name: " ".join(step[name].split()) for name in skill.arguments}
        return PlanStep(skill.command(arguments), (), step.get("why", ""))


class ChatCritic(_Asking):
    """Judges by a model.

    Args:
        model: asked.
        max_tokens: of an answer.
    """

    needs_retrieval = True

    def __init__(self, model: ChatModel, *, max_tokens: int = 160):
        super().__init__(model, max_tokens)

    def review(self, step: PlanStep, situation: Situation) -> str:
        """Implement `Critic.review`; consent if the model has no usable answer."""
        messages = _messages(prompt(_PACKAGE, "critic"), describe(situation, step), situation.images)
        value = self._ask(
            lambda: complete_json(self._model, messages, VERDICT_SCHEMA, name="verdict", max_tokens=self._max_tokens),
            {"ok": True, "reason": ""},
        )
        return "" if value["ok"] else value["reason"].strip() or "the critic objects"


class ChatPreprocessor(_Asking):
    """Summaries and queries by a model; the agent asks for both side by side.

    Args:
        model: asked; from two threads.
        max_tokens: of an answer.
    """

    def __init__(self, model: ChatModel, *, max_tokens: int = 64):
        super().__init__(model, max_tokens)

    def summarise(self, goal: str, action: str, observation: str, images: Sequence[Picture] = ()) -> str:
        """Implement `Preprocessor.summarise`; the texts themselves if the model has no usable answer."""
        return (
            self._line("summarise", (goal, action, observation), images) or f"{action}: {' '.join(observation.split())}"
        )

    def query(self, goal: str, action: str, observation: str, images: Sequence[Picture] = ()) -> str:
        """Implement `Preprocessor.query`; with the goal in front, which says what it is about."""
        return f"{goal} {self._line('query', (goal, action, observation), images)}".strip()

    def _line(self, name: str, turn: tuple[str, str, str], images: Sequence[Picture]) -> str:
        told = "Task: {}\nAction: {}\nAnswer: {}".format(*turn)
        messages = _messages(prompt(_PACKAGE, name), told, images)
        text: str = self._ask(lambda: self._model.complete(messages, max_tokens=self._max_tokens).text, "")
        return " ".join(without_thoughts(text).split())


def chat_parts(model: ChatModel | Seats, skills: Sequence[Skill], *, max_steps: int = 8) -> dict[str, Any]:
    """New planner, critic and preprocessor of one model, as keyword arguments of `PlannerCriticAgent`."""
    seats = model if isinstance(model, Seats) else Seats(model)
    planner = ChatPlanner(seats["planner"], skills, max_steps=max_steps)
    critic, preprocessor = ChatCritic(seats["critic"]), ChatPreprocessor(seats["preprocessor"])
    return {"planner": planner, "critic": critic, "preprocessor": preprocessor, "seats": seats}

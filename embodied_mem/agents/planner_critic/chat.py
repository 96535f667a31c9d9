"""Planner, critic and preprocessor by a chat model; the prompts are text files in `prompts/`.

    chat = OpenAIChatModel("http://localhost:8000/v1", "qwen2.5-7b-instruct", max_cost=1.0, prices={...})
    agent = PlannerCriticAgent(**chat_parts(chat, robot.skills))     # or PlannerCriticAgent.for_world("alfworld", ...)

The planner is told what can be done by a list of skills; nothing else in the prompts knows a world or a robot. Where
cameras give pictures, all three see them.

An answer that cannot be used is counted and replaced by what does no harm: a plan by a step that needs nothing, a
verdict by consent, a summary and a query by rules. A used-up budget is not: it ends the run, and so do
`MAX_UNUSABLE_PLANS` in a row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from embodied_mem.agents.planner_critic.interfaces import Situation
from embodied_mem.agents.planner_critic.plan import Plan, PlanStep
from embodied_mem.agents.planner_critic.rules import NoReader, TextRules
from embodied_mem.agents.planner_critic.situation_text import (
    MANY_REFUSALS,
    describe,
    describe_names,
    describe_times,
    names_in,
)
from embodied_mem.agents.robot.skills import TASK_COMPLETE, Skill, checked_skills, read_command
from embodied_mem.forks import forking_lock
from embodied_mem.language.chat import ChatError, ChatModel, Message
from embodied_mem.language.images import Picture, content
from embodied_mem.language.json_answers import complete_json, without_thoughts
from embodied_mem.language.prompt_files import prompt
from embodied_mem.language.seats import Seats

_PACKAGE = "embodied_mem.agents.planner_critic"
MAX_UNUSABLE_PLANS = 5
"""So many in a row are an error: the model, or the server, does not do what it is asked for."""
_LABEL = re.compile(
    r"\W{0,5}(?:(?:here(?: is|'s)|sure|the|a|my|one|short|search|memory|step)\W{1,3}){0,5}"
    r"(?:summary|query|sentence|answer)\W{0,4}[:\uff1a]\s{0,3}",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:(?:the|an?) )+")
_QUOTES = "\"'`* "


def plan_schema(skills: Sequence[Skill], max_steps: int) -> dict[str, Any]:
    """Return the schema of a plan: thoughts, progress, then steps."""
    line = {"type": "string", "maxLength": 160}
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    steps = [
        {
            "type": "object",
            "properties": {
                "skill": {"enum": [skill.name]},
                **dict.fromkeys(skill.arguments, text),
                "why": line,
            },
            "required": ["skill", *skill.arguments],
            "additionalProperties": False,
        }
        for skill in skills
    ]
    return {
        "type": "object",
        "properties": {
            "reasoning": {"type": "string", "maxLength": 600},
            "done": line,
            "left": line,
            "steps": {"type": "array", "items": {"anyOf": steps}, "minItems": 1, "maxItems": max_steps},
        },
        "required": ["reasoning", "done", "left", "steps"],
        "additionalProperties": False,
    }


VERDICT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string", "maxLength": 300}, "ok": {"type": "boolean"}},
    "required": ["reason", "ok"],
    "additionalProperties": False,
}


def _messages(system: str, user: str, images: Sequence[Picture]) -> list[Message]:
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


class ChatPlanner(_Asking):
    """Plans by a model.

    A plan whose first step is no action of the world's list, or was refused again and again, is asked for once more.

    Args:
        model: asked.
        skills: what the robot or the world can do.
        examples: worked examples of plans with these skills; "" for none.
        max_steps: longest plan.
        max_tokens: of an answer.
    """

    def __init__(
        self,
        model: ChatModel,
        skills: Sequence[Skill],
        *,
        examples: str = "",
        max_steps: int = 8,
        max_tokens: int = 896,
    ):
        super().__init__(model, max_tokens)
        self._skills = {skill.name: skill for skill in checked_skills(skills)}
        instruction = prompt(_PACKAGE, "plan").format(max_steps=max_steps, skills=_lines_of(skills))
        self._instruction = "\n\n".join(filter(None, [instruction, examples]))
        self._schema = plan_schema(skills, max_steps)

    def plan(self, situation: Situation) -> Plan:
        """Implement `Planner.plan`; without a usable answer, do no harm.

        Raises:
            ChatError: a budget is used up, or this is the last of `MAX_UNUSABLE_PLANS` unusable answers in a row, or
                no skill can be done without one.
        """
        names = names_in(tuple(self._skills.values()), situation.commands)
        messages = self.messages(situation)
        plan = self._ask(lambda: self._good_plan(messages, situation, names), None, MAX_UNUSABLE_PLANS)
        return plan or Plan((self._otherwise(situation),), "there is no plan")

    def messages(self, situation: Situation) -> list[Message]:
        """Return what the model is sent."""
        told = [describe(situation)]
        if names := names_in(tuple(self._skills.values()), situation.commands):
            told.append(f"Names, by the skills that take them:\n{describe_names(names)}")
        return _messages(self._instruction, "\n\n".join(told), situation.images)

    def _good_plan(self, messages: list[Message], situation: Situation, names: Mapping[str, Collection[str]]) -> Plan:
        value = self._complete(messages)
        plan = self._plan(value, names)
        if wrong := _problem(plan.steps[0].command, situation):
            answer: Message = {"role": "assistant", "content": json.dumps(value)}
            question: Message = {"role": "user", "content": f"{wrong} Plan again, with another first step."}
            plan = self._plan(self._complete([*messages, answer, question]), names)
        return plan

    def _complete(self, messages: Sequence[Message]) -> Any:
        return complete_json(
            self._model, messages, self._schema, name="plan", max_tokens=self._max_tokens, is_open_ended=True
        )

    def _plan(self, value: dict[str, Any], names: Mapping[str, Collection[str]]) -> Plan:
        progress = "; ".join(f"{name}: {text}" for name in ("done", "left") if (text := " ".join(value[name].split())))
        return Plan(tuple(self._step(step, names) for step in value["steps"]), value["reasoning"], progress)

    def _step(self, step: dict[str, str], names: Mapping[str, Collection[str]]) -> PlanStep:
        skill = self._skills[step["skill"]]
        own = [name for name, skills in names.items() if skill.name in skills]
        arguments = {name: _name_like(" ".join(step[name].split()), own) for name in skill.arguments}
        return PlanStep(skill.command(arguments), (), step.get("why", ""))

    def _otherwise(self, situation: Situation) -> PlanStep:
        """Return an admissible step for want of a plan.

        To look, another skill that needs nothing, the last command again.
        """
        skills, beliefs = tuple(self._skills.values()), situation.beliefs
        free = sorted((one for one in skills if not one.preconditions), key=lambda one: one.name != "look")
        harmless, plain = (
            [one.command({}) for one in own if not one.arguments and one != TASK_COMPLETE] for own in (free, skills)
        )
        others = [command for command in situation.commands if read_command(free, command)]
        known = dict.fromkeys([*beliefs.things.values(), *beliefs.things, *beliefs.searched, *beliefs.closed])
        named = [one.command({one.arguments[0]: name}) for one in free if len(one.arguments) == 1 for name in known]
        options = [
            *(one for one in harmless if one in (situation.commands or harmless)),
            *(one for one in (*others, *named) if one not in situation.refusals and one != situation.action),
            *others, *named, *plain, *filter(None, [situation.action]),
            *(one.command({}) for one in skills if skills == (TASK_COMPLETE,)),
        ]  # fmt: skip
        if not options:
            problem = "expected a usable plan, or a skill that can be done without one"
            raise ChatError(f"{self._model.name}: {problem}, got {', '.join(self._skills)}", "malformed")
        return PlanStep(options[0], (), "the planner had no usable answer")


def _lines_of(skills: Sequence[Skill]) -> str:
    return "\n".join(skill.render() for skill in skills)


def _problem(command: str, situation: Situation) -> str:
    """Return why a plan should not begin so; empty if it may."""
    if situation.commands and command != TASK_COMPLETE.command({}) and command not in situation.commands:
        return f"There is no action {command!r}."
    if command in situation.refusals and (refusal := situation.refusals[command]).times >= MANY_REFUSALS:
        return f"{command!r} was refused {describe_times(refusal.times)}: {' '.join(refusal.answer.split())}"
    return ""


def _name_like(name: str, names: Collection[str]) -> str:
    """Return the world's spelling of a name, if there is one.

    An article, memory's number and words behind the name are left out; a number where the world has numbers is not.
    """
    spellings = {one.casefold().replace("_", " "): one for one in names}
    plain = _ARTICLE.sub("", name.casefold().replace("_", " ")).rstrip(" .")
    starts = [one for one in spellings if plain.startswith(one) and not plain[len(one) : len(one) + 1].isalnum()]
    start = max(starts, key=len, default="")
    is_numbered = any(one[len(start) :].strip().isdigit() for one in spellings if one.startswith(f"{start} "))
    if name in names or not start or (is_numbered and plain[len(start) :].strip()[:1].isdigit()):
        return name
    return spellings[start]


class ChatCritic(_Asking):
    """Judges by a model.

    Args:
        model: asked.
        skills: what the robot or the world can do; none: the critic is not told.
        max_tokens: of an answer.
    """

    needs_retrieval = True

    def __init__(self, model: ChatModel, skills: Sequence[Skill] = (), *, max_tokens: int = 160):
        super().__init__(model, max_tokens)
        told = f"The skills:\n{_lines_of(skills)}" if skills else ""
        self._instruction = "\n\n".join(filter(None, [prompt(_PACKAGE, "critic"), told]))

    def review(self, step: PlanStep, situation: Situation) -> str:
        """Implement `Critic.review`; consent if the model has no usable answer."""
        messages = self.messages(step, situation)
        value = self._ask(
            lambda: complete_json(self._model, messages, VERDICT_SCHEMA, name="verdict", max_tokens=self._max_tokens),
            {"ok": True, "reason": ""},
        )
        return "" if value["ok"] else value["reason"].strip() or "the critic objects"

    def messages(self, step: PlanStep, situation: Situation) -> list[Message]:
        """Return what the model is sent."""
        return _messages(self._instruction, describe(situation, step), situation.images)


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
        """Implement `Preprocessor.query`, with the goal in front."""
        return f"{goal} {self._line('query', (goal, action, observation), images)}".strip()

    def _line(self, name: str, turn: tuple[str, str, str], images: Sequence[Picture]) -> str:
        messages = self.messages(name, turn, images)
        text: str = self._ask(lambda: self._model.complete(messages, max_tokens=self._max_tokens).text, "")
        line = " ".join(without_thoughts(text).split())
        return _LABEL.sub("", line, count=1).strip(_QUOTES) if _LABEL.match(line) else line

    def messages(self, name: str, turn: tuple[str, str, str], images: Sequence[Picture] = ()) -> list[Message]:
        """Return what the model is sent to "summarise" or "query" a turn."""
        return _messages(prompt(_PACKAGE, name), "Task: {}\nAction: {}\nAnswer: {}".format(*turn), images)


def chat_parts(
    model: ChatModel | Seats, skills: Sequence[Skill], *, examples: str = "", max_steps: int = 8
) -> dict[str, Any]:
    """Make planner, critic and preprocessor of a model for `PlannerCriticAgent`.

    With a perceiver at `Seats` there are rules, too, that read no text.
    """
    seats = model if isinstance(model, Seats) else Seats(model)
    planner = ChatPlanner(seats["planner"], skills, examples=examples, max_steps=max_steps)
    critic, preprocessor = ChatCritic(seats["critic"], skills), ChatPreprocessor(seats["preprocessor"])
    parts = {"planner": planner, "critic": critic, "preprocessor": preprocessor, "seats": seats}
    return parts if seats.perceiver is None else parts | {"rules": TextRules(NoReader())}

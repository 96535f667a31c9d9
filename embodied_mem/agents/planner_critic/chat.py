"""Planner, critic and preprocessor by a chat model; the prompts are text files in `prompts/`.

    chat = OpenAIChatModel("http://localhost:8000/v1", "qwen2.5-7b-instruct", max_cost=1.0, prices={...})
    agent = PlannerCriticAgent(
        planner=ChatPlanner(chat), critic=ChatCritic(chat), preprocessor=ChatPreprocessor(chat)
    )

An answer that cannot be used is counted and replaced by what does no harm: a plan by looking around, a verdict by
consent, a summary and a query by rules. A used-up budget is not: it ends the run.
"""

from __future__ import annotations

import importlib.resources
import threading

from embodied_mem.agents.plans import Plan, PlanStep, Situation
from embodied_mem.envs.alfworld_text import put_command
from embodied_mem.errors import InvalidInputError
from embodied_mem.language.chat import ChatError, ChatModel
from embodied_mem.language.json_answers import complete_json

_MAX_SUMMARIES = 8


def prompt(name: str) -> str:
    """The text of `prompts/<name>.txt`.

    Raises:
        InvalidInputError: there is none; the known ones are listed.
    """
    folder = importlib.resources.files("embodied_mem.agents") / "prompts"
    file = folder / f"{name}.txt"
    if not file.is_file():
        known = sorted(entry.name.removesuffix(".txt") for entry in folder.iterdir() if entry.name.endswith(".txt"))
        raise InvalidInputError(f"prompt: expected one of {', '.join(known)}, got {name!r}")
    return file.read_text(encoding="utf-8").strip()


def plan_schema(max_steps: int) -> dict:
    """What a plan looks like as JSON."""
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    step = {
        "type": "object",
        "properties": {"action": text, "why": {"type": "string", "maxLength": 300}},
        "required": ["action"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"steps": {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps}},
        "required": ["steps"],
        "additionalProperties": False,
    }


VERDICT_SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string", "maxLength": 300}},
    "required": ["ok", "reason"],
    "additionalProperties": False,
}


class _Asking:
    """What the three have in common.

    Attributes:
        answers: questions asked.
        unusable: those that got no usable answer.
    """

    def __init__(self, model: ChatModel, max_tokens: int):
        self._model, self._max_tokens = model, max_tokens
        self._lock = threading.Lock()
        self.answers = self.unusable = 0

    def _ask(self, ask, otherwise):
        with self._lock:
            self.answers += 1
        try:
            return ask()
        except ChatError as error:
            if error.kind == "budget":
                raise
            with self._lock:
                self.unusable += 1
            return otherwise


def describe(situation: Situation, step: PlanStep | None = None) -> str:
    """A situation in words, as planner and critic read it."""
    found = situation.recollection
    parts = [
        f"Task: {situation.goal}",
        f"Room: {' '.join(situation.room.partition('Your task is to:')[0].split())}",
        f"Now:\n{situation.beliefs.describe()}",
        "Last steps:\n" + "\n".join(situation.summaries[-_MAX_SUMMARIES:]) if situation.summaries else "",
        f"Remembered:\n{found.render()}" if found is not None and found.items else "",
        f"The last plan was given up: {situation.objection}" if situation.objection else "",
        f"Next step: {step.command}" + (f" (why: {step.why})" if step.why else "") if step is not None else "",
    ]
    return "\n\n".join(part for part in parts if part)


class ChatPlanner(_Asking):
    """Plans by a model.

    Args:
        model: asked.
        max_steps: longest plan.
        grammar: wording of commands, "0.4" or "0.3".
        max_tokens: of an answer.
    """

    def __init__(self, model: ChatModel, *, max_steps: int = 8, grammar: str = "0.4", max_tokens: int = 512):
        super().__init__(model, max_tokens)
        self._instruction = prompt("plan").format(max_steps=max_steps, put=put_command("THING", "PLACE", grammar))
        self._schema = plan_schema(max_steps)

    def plan(self, situation: Situation) -> Plan:
        """As `Planner.plan`; the step `look` if the model has no usable answer."""
        messages = [
            {"role": "system", "content": self._instruction},
            {"role": "user", "content": describe(situation)},
        ]
        value = self._ask(
            lambda: complete_json(self._model, messages, self._schema, name="plan", max_tokens=self._max_tokens),
            {"steps": [{"action": "look", "why": "the planner had no usable answer"}]},
        )
        steps = [PlanStep(" ".join(s["action"].split()) or "look", (), s.get("why", "")) for s in value["steps"]]
        return Plan(tuple(steps), steps[0].why)


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
        """As `Critic.review`; consent if the model has no usable answer."""
        messages = [
            {"role": "system", "content": prompt("critic")},
            {"role": "user", "content": describe(situation, step)},
        ]
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

    def summarise(self, goal: str, action: str, observation: str) -> str:
        """As `Preprocessor.summarise`; the texts themselves if the model has no usable answer."""
        return self._line("summarise", goal, action, observation) or f"{action}: {' '.join(observation.split())}"

    def query(self, goal: str, action: str, observation: str) -> str:
        """As `Preprocessor.query`; with the goal in front, which says what it is about."""
        return f"{goal} {self._line('query', goal, action, observation)}".strip()

    def _line(self, name: str, goal: str, action: str, observation: str) -> str:
        told = f"Task: {goal}\nAction: {action}\nAnswer of the world: {observation}"
        messages = [{"role": "system", "content": prompt(name)}, {"role": "user", "content": told}]
        text = self._ask(lambda: self._model.complete(messages, max_tokens=self._max_tokens).text, "")
        return " ".join(text.split())

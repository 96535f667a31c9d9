"""Prompts and replies in the form of verl-agent and its relatives: `<think>…</think><action>…</action>`.

    scheme = ThinkAction(history=2)
    scheme.prompt(first_observation, turns, admissible)     # one user message, without a system message
    scheme.command(reply)                                   # "go to fridge 1"; "" for a reply without the tags
    Executor(decoder, tokenizer, format=ThinkActionFormat(tokenizer, folder), max_action_tokens=512)
    ThinkActionServer(chat, max_action_tokens=512)

Weights that others trained in this form can be scored here. The fields, the tags, how the last steps and the possible
actions are written are theirs; the sentences around them are ours, and a file replaces them (`ThinkAction.of_file`): a
model that was trained with other sentences should get its own.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import string
from collections.abc import Sequence
from typing import Any

from embodied_mem.compiler.executor_format import Pictures, PlainFormat
from embodied_mem.compiler.memory_compiler import fit
from embodied_mem.compiler.served_executor import ServedExecutor
from embodied_mem.errors import DataNotFoundError, InvalidInputError, MissingDependencyError
from embodied_mem.language.chat import Message
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.chat import template_of

MAX_REPLY_TOKENS = 512
"""verl-agent's `max_response_length`."""

_REPLY = (
    "First think about the situation, between <think> and </think>. Then choose one of the admissible actions and "
    "write it between <action> and </action>."
)
FIRST = f"""You act in a household by text.
Your observation: {{current_observation}}
Your admissible actions: [{{admissible_actions}}].{{memory}}

{_REPLY}"""
LATER = f"""You act in a household by text. Your task is to: {{task_description}}
You have taken {{step_count}} step(s). The last {{history_length}} observation(s) and your action(s): {{action_history}}
Now, at step {{current_step}}, your observation: {{current_observation}}
Your admissible actions: [{{admissible_actions}}].{{memory}}

{_REPLY}"""

FIELDS = {
    "task_description", "step_count", "history_length", "action_history", "current_step", "current_observation",
    "admissible_actions", "memory",
}  # fmt: skip
_BETWEEN = "\n---\n"
_MARK = "\0said\0"


@dataclasses.dataclass(frozen=True)
class ThinkAction:
    """A prompt of the last steps, and a reply in tags.

    Args:
        history: steps that a prompt repeats.
        first: template of an episode's first prompt.
        later: template of the others.

    Raises:
        InvalidInputError: a template has another field than `FIELDS`.
    """

    history: int = 2
    first: str = FIRST
    later: str = LATER

    def __post_init__(self) -> None:
        if self.history < 0:
            raise InvalidInputError(f"history: expected at least 0 steps, got {self.history}")
        for name in ("first", "later"):
            try:
                fields = {
                    field for _, field, _, _ in string.Formatter().parse(getattr(self, name)) if field is not None
                }
            except ValueError as error:
                raise InvalidInputError(f"{name}: expected a template, got one with {error}") from error
            if not fields <= FIELDS or "current_observation" not in fields:
                raise InvalidInputError(
                    f"{name}: expected current_observation and some of the fields {', '.join(sorted(FIELDS))}, got "
                    f"{', '.join(sorted(fields)) or 'none'}"
                )

    @classmethod
    def of_file(cls, path: pathlib.Path, history: int = 2) -> ThinkAction:
        """Read the first prompt's template, a line `---`, the other one.

        Raises:
            DataNotFoundError: the file cannot be read.
            InvalidInputError: it has no line `---`, or an unknown field.
        """
        try:
            first, between, later = path.read_text(encoding="utf-8").partition(_BETWEEN)
        except (OSError, UnicodeError) as error:
            raise DataNotFoundError(f"{path}: cannot be read ({error})") from error
        if not between:
            raise InvalidInputError(f"{path}: expected two templates with a line --- between them")
        return cls(history, first, later.removesuffix("\n"))

    def prompt(self, first: str, turns: Sequence[tuple[str, str]], admissible: Sequence[str], memory: str = "") -> str:
        """Write the prompt of a step.

        Args:
            first: the episode's first observation, which ends with `Your task is to: ...`.
            turns: (action, answer) pairs so far.
            admissible: actions that are possible now.
            memory: what is remembered, in lines.
        """
        observations = [first, *(answer for _, answer in turns)]
        start = max(0, len(turns) - self.history)
        lines = [
            f"[Observation {i + 1}: '{observations[i]}', Action {i + 1}: '{turns[i][0]}']"
            for i in range(start, len(turns))
        ]
        template = self.later if turns and self.history else self.first
        return template.format(
            task_description=first.partition("Your task is to: ")[2].strip(),
            step_count=len(turns),
            history_length=len(lines),
            action_history="\n".join(lines),
            current_step=len(turns) + 1,
            current_observation=observations[-1],
            admissible_actions="\n ".join(f"'{one}'" for one in admissible if one != "help"),
            memory=f"\nWhat you remember:\n{memory}" if memory else "",
        )

    @staticmethod
    def command(reply: str) -> str:
        """Find the command: the first `<action>…</action>` in lower case, "" without one."""
        text = reply.lower()
        _, start, rest = text.partition("<action>")
        command, end, _ = rest.partition("</action>")
        return " ".join(command.split()) if start and end else ""


class ThinkActionFormat(PlainFormat):
    """One user message in the chat template of a model's folder.

    Args:
        tokenizer: of the model.
        folder: of the model; its `chat_template`, rendered by Jinja, decides what stands around the message. Without
            one, or with a GGUF file, that of the tokenizer's family does.
    """

    def __init__(self, tokenizer: Tokenizer, folder: pathlib.Path):
        self._tokenizer = tokenizer
        family = template_of(tokenizer)
        self.ends = family.known_ends(tokenizer)
        around = _chat_template(folder)
        if around is None:
            head, answer = family.head.format(role="user"), family.head.format(role="assistant")
            around = f"{family.begin}{head}", f"{family.tail}{answer}"
        self._before, self._after = (tokenizer.encode(text, special=True) if text else [] for text in around)

    def prompts(
        self, texts: Sequence[str], limit: int | None = None, pictures: Pictures | None = None
    ) -> list[list[int]]:
        messages = self._tokenizer.encode_batch(list(texts))
        if limit is not None:
            messages = fit(messages, limit - len(self._before) - len(self._after), "executor")
        return [[*self._before, *ids, *self._after] for ids in messages]

    def commands(self, actions: Sequence[str]) -> list[list[int]]:
        raise InvalidInputError("decoding: expected free with think_action, whose replies hold thoughts")

    def command(self, text: str) -> str:
        return ThinkAction.command(text)


class ThinkActionServer(ServedExecutor):
    """`compiler.executor.Acts` by a chat model at a server, which is sent the prompt alone."""

    def __init__(self, chat: Any, **settings: Any):
        super().__init__(chat, "", **{"max_action_tokens": MAX_REPLY_TOKENS, **settings})

    def messages(self, prompt: str, pictures: tuple[bytes, ...]) -> list[Message]:
        return [{"role": "user", "content": prompt}]

    def command(self, reply: str) -> str:
        return ThinkAction.command(reply)


def _chat_template(folder: pathlib.Path) -> tuple[str, str] | None:
    """Return the texts around a user's message; None without a template."""
    template, settings = folder / "chat_template.jinja", dict[str, Any]()
    if (file := folder / "tokenizer_config.json").is_file():
        try:
            settings = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InvalidInputError(f"{file}: expected JSON ({error})") from error
    source = template.read_text(encoding="utf-8") if template.is_file() else settings.get("chat_template")
    if isinstance(source, list):  # several, by name
        source = next((one.get("template") for one in source if one.get("name") == "default"), None)
    if not isinstance(source, str):
        return None
    try:
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise MissingDependencyError(f"{folder} has a chat template; run: pip install jinja2") from error

    def refuse(message: str) -> None:
        raise InvalidInputError(f"{folder}: its chat template refuses a user's message: {message}")

    signs = {
        name: value.get("content", "") if isinstance(value, dict) else value or ""
        for name, value in settings.items()
        if name.endswith("_token")
    }
    text = (
        ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        .from_string(source)
        .render(
            messages=[{"role": "user", "content": _MARK}], add_generation_prompt=True, raise_exception=refuse, **signs
        )
    )
    before, mark, after = text.partition(_MARK)
    if not mark:
        raise InvalidInputError(f"{folder}: its chat template does not hold the user's message as it is")
    return before, after

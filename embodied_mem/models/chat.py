"""Our own Flax decoder as a `ChatModel`: a chat template around the messages, one compiled program per length bucket.

decoder = load_hf("Qwen2.5-0.5B-Instruct", dtype="float32", param_dtype="float32")
model = FlaxChatModel(decoder, Tokenizer.load("Qwen2.5-0.5B-Instruct/tokenizer.json"), template="chatml")
model.complete([{"role": "user", "content": "Where is the apple?"}], max_tokens=64).text
"""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from embodied_mem.errors import InvalidInputError
from embodied_mem.forks import forking_lock
from embodied_mem.language.chat import ChatError, ChatReply, Json, Message, Usage, UsageMeter
from embodied_mem.language.images import said_parts
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models.decoder import Decoder
from embodied_mem.models.sampling import SamplingSettings, generate, pad_prompts


@dataclasses.dataclass(frozen=True)
class ChatTemplate:
    """A family's form of a conversation. Signs are special tokens; what is said never is.

    Attributes:
        begin: sign before everything, or "".
        head: before a message, with `{role}`.
        tail: after a message.
        ends: signs that end an answer; those that the vocabulary does not have are left out.
        strip: whether white space around a message is dropped, as the family's own template does.
    """

    begin: str
    head: str
    tail: str
    ends: tuple[str, ...]
    strip: bool = False

    def known_ends(self, tokenizer: Tokenizer) -> tuple[int, ...]:
        """Ids of the signs that end an answer.

        Raises:
            InvalidInputError: the vocabulary has none of them.
        """
        ids = tuple(map(tokenizer.id_of, filter(functools.partial(_is_known, tokenizer), self.ends)))
        if not ids:
            raise InvalidInputError(
                f"template: expected one of the signs {self.ends} in the tokenizer's vocabulary, got none"
            )
        return ids


TEMPLATES = {
    "chatml": ChatTemplate("", "<|im_start|>{role}\n", "<|im_end|>\n", ("<|im_end|>", "<|endoftext|>")),
    "llama3": ChatTemplate(
        "<|begin_of_text|>", "<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>",
        ("<|eot_id|>", "<|end_of_text|>", "<|eom_id|>"), strip=True,
    ),
    "plain": ChatTemplate("<bos>", "{role}: ", "<eos>\n", ("<eos>",)),
}  # fmt: skip
"""chatml: SmolLM2, Qwen2.5, Qwen3; llama3: Llama 3.x; plain: tokenizers of `train_bpe`."""

_SIGNS = {"<|im_start|>": "chatml", "<|start_header_id|>": "llama3", "<soft>": "plain"}


def template_of(tokenizer: Tokenizer) -> ChatTemplate:
    """Return the template of a tokenizer's family, recognised by its vocabulary's signs.

    Raises:
        InvalidInputError: it has the signs of no known family.
    """
    name = next((name for sign, name in _SIGNS.items() if _is_known(tokenizer, sign)), None)
    if name is None:
        raise InvalidInputError(
            f"tokenizer: expected one of {', '.join(_SIGNS)}, which tell its family's chat template, got none"
        )
    return TEMPLATES[name]


def _is_known(tokenizer: Tokenizer, sign: str) -> bool:
    try:
        tokenizer.id_of(sign)
    except InvalidInputError:
        return False
    return True


_ROLES = ("system", "user", "assistant")


class FlaxChatModel:
    """A decoder that answers messages. Threads may share one object; they wait for each other.

    Args:
        decoder: the model.
        tokenizer: its tokenizer.
        template: name from `TEMPLATES`, or a template.
        name: for records and reports.
        default_system: put first where the conversation has no system message, as the families' own templates do
            (each with its own sentence); None for nothing.
        seed: of draws at temperatures above 0; with the number of the call it decides the answer. At temperature 0 the
            answer depends on the messages alone.
        length_buckets: prompt lengths that are compiled.
    """

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Tokenizer,
        *,
        template: str | ChatTemplate = "chatml",
        name: str = "flax",
        default_system: str | None = None,
        seed: int = 0,
        length_buckets: Sequence[int] = (128, 256, 512, 1024, 2048, 4096),
    ):
        if isinstance(template, str) and template not in TEMPLATES:
            raise InvalidInputError(f"template: expected one of {', '.join(sorted(TEMPLATES))}, got {template!r}")
        self.name = name
        self.meter = UsageMeter()
        self._decoder, self._tokenizer = decoder, tokenizer
        self._template = TEMPLATES[template] if isinstance(template, str) else template
        self._default_system, self._seed, self._buckets = default_system, seed, tuple(sorted(length_buckets))
        self._eos = self._template.known_ends(tokenizer)
        self._lock = forking_lock()
        self._calls = 0

    def prompt_ids(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a conversation up to where the answer begins.

        What a message says is encoded as plain text: a sign inside it, say from an observation, cannot end the message.
        """
        return self._written(messages)[0]

    def _written(self, messages: Sequence[Message]) -> tuple[list[int], list[Any]]:
        """(token ids of a conversation, what `_picture` made of its pictures)."""
        template, pictures = self._template, []
        conversation = list(messages)
        if self._default_system is not None and not (conversation and conversation[0].get("role") == "system"):
            conversation.insert(0, {"role": "system", "content": self._default_system})
        ids = self._tokenizer.encode(template.begin, special=True) if template.begin else []
        for index, message in enumerate(conversation):
            role = message.get("role")
            if role not in _ROLES:
                raise InvalidInputError(
                    f"messages[{index}]: expected a role of {', '.join(_ROLES)} and a text, got {str(message)[:120]}"
                )
            ids += self._tokenizer.encode(template.head.format(role=role), special=True)
            for part in said_parts(message.get("content"), f"messages[{index}]"):
                if isinstance(part, bytes):
                    placeholders, picture = self._picture(part)
                    ids += placeholders
                    pictures.append(picture)
                else:
                    ids += self._tokenizer.encode(part.strip() if template.strip else part)
            ids += self._tokenizer.encode(template.tail, special=True)
        return ids + self._tokenizer.encode(template.head.format(role="assistant"), special=True), pictures

    def _picture(self, data: bytes) -> tuple[list[int], Any]:
        """(token ids that hold a picture's place, what `_inputs` needs of it)."""
        raise InvalidInputError(f"{self.name}: expected texts, got a picture, which this model cannot read")

    def _inputs(self, tokens: np.ndarray, mask: np.ndarray, pictures: list[Any]) -> dict[str, Any]:
        """Arguments of `generate` for a prompt with these pictures."""
        return {"tokens": tokens, "mask": mask}

    def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = 512,
        temperature: float = 0.0,
        response_format: Json | None = None,
        on_text: Callable[[str], None] | None = None,
        seed: int | None = None,
    ) -> ChatReply:
        """Complete like `ChatModel`.

        Words ask for `response_format`, and nothing forces the model to comply.

        Raises:
            ChatError: conversation and answer are longer than the model can read.
        """
        if max_tokens < 1:
            raise InvalidInputError(f"max_tokens: expected >= 1, got {max_tokens}")
        asked = list(messages)
        if response_format is not None and asked:
            wanted = response_format.get("json_schema", {}).get("schema")
            told = "Answer with JSON only" + (f" that fits this schema: {json.dumps(wanted)}" if wanted else ".")
            said = asked[-1].get("content")
            more = [*said, {"type": "text", "text": f"\n\n{told}"}] if isinstance(said, list) else f"{said}\n\n{told}"
            asked[-1] = {**asked[-1], "content": more}
        with self.meter.call(max_tokens), self._lock:
            reply = self._answer(asked, max_tokens, temperature, seed)
            self.meter.count(reply.usage)
        if on_text is not None and reply.text:
            on_text(reply.text)
        return reply

    def _answer(self, messages: Sequence[Message], max_tokens: int, temperature: float, seed: int | None) -> ChatReply:
        ids, pictures = self._written(messages)
        new = 1 << (max_tokens - 1).bit_length()  # few programs: answers are compiled for powers of two
        room = self._decoder.config.max_length
        new = min(new, max(room - len(ids), max_tokens))
        buckets = sorted({bucket for bucket in self._buckets if bucket < room - new} | {room - new})
        if len(ids) > buckets[-1]:
            raise ChatError(
                f"{self.name}: expected prompt + max_tokens <= {room}, got {len(ids)} + {max_tokens}", "too_long"
            )
        tokens, mask = pad_prompts([ids], buckets=buckets, pad_token=self._eos[0])
        settings = SamplingSettings(temperature=temperature, eos_tokens=self._eos, pad_token=self._eos[0])
        key = jax.random.fold_in(jax.random.key(self._seed), self._calls) if seed is None else jax.random.key(seed)
        self._calls += seed is None
        start = time.monotonic()
        inputs = self._inputs(tokens, mask, pictures)
        result = generate(self._decoder, key[None], settings, max_new_tokens=new, **inputs)
        written = np.asarray(result.tokens)[0, : min(int(result.lengths[0]), max_tokens)].tolist()
        self.meter.add(seconds_s=time.monotonic() - start)
        ended = bool(written) and written[-1] in self._eos
        # Published models have more output rows than their tokenizers have tokens; such a token has no text.
        said = [token for token in (written[:-1] if ended else written) if token < self._tokenizer.vocab_size]
        text = self._tokenizer.decode(said, skip_special=True)
        self.meter.add(empty=int(not text.strip()))
        return ChatReply(text, Usage(len(ids), len(written)), "stop" if ended else "length")

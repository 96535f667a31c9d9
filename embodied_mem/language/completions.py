"""Completions of an OpenAI-compatible server, tokens in and tokens out, and the adapters that it loads meanwhile.

    server = CompletionServer("http://localhost:8000/v1", "compiler-1f0a93c2")
    server.load_adapter("/shared/runs/one/grpo/adapter")       # PEFT's folder; the model's name is the adapter's
    server.complete([1, 2, 3], max_tokens=96, temperature=1.2).tokens

Fields beyond OpenAI's are vLLM's: tokens are asked for as numbers (`return_token_ids`), a prompt may be embeddings
(`vllm serve --enable-prompt-embeds`). Needs `pip install 'embodied_mem[chat]'`.
"""

from __future__ import annotations

import base64
import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from .chat import ChatError, Json, UsageMeter
from .http_json import HttpJson


@dataclasses.dataclass(frozen=True)
class Completion:
    """A completion.

    Attributes:
        tokens: the end included, if it was reached.
        log_probs: of each, as the server counts them.
    """

    tokens: list[int]
    log_probs: list[float]


class CompletionServer:
    """A model behind `POST <base_url>/completions`. Threads may share one object.

    Args:
        base_url: as `HttpJson`.
        model: name that the server knows, or gets by `load_adapter`.
        api_key: None for the environment variable OPENAI_API_KEY, if set.
        **http: further arguments of `HttpJson`.
    """

    def __init__(self, base_url: str, model: str, *, api_key: str | None = None, **http: Any):
        self.name = model
        self._meter = UsageMeter()
        self._http = HttpJson(base_url, api_key=api_key or os.environ.get("OPENAI_API_KEY"), **http)

    def complete(
        self,
        prompt: list[int] | bytes,
        *,
        max_tokens: int,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        ends: Sequence[int] = (),
        seed: int = 0,
    ) -> Completion:
        """Continue a prompt.

        Args:
            prompt: token ids, or embeddings as a file of torch (`models.formats.torch_file`).
            max_tokens, temperature, top_k, top_p, ends, seed: as `models.sampling.SamplingSettings`.

        Raises:
            ChatError: the server failed, or answered something else.
        """
        body: Json = {"prompt": prompt}
        if isinstance(prompt, bytes):
            body = {"prompt_embeds": base64.b64encode(prompt).decode()}
        body |= {
            "model": self.name, "max_tokens": max_tokens, "temperature": temperature, "top_k": top_k or -1,
            "top_p": top_p, "seed": seed, "stop_token_ids": list(ends), "logprobs": 1, "return_token_ids": True,
            "repetition_penalty": 1.0,  # else that of the model's generation_config.json
        }  # fmt: skip
        answer = self._http.post("completions", body, self._meter)
        try:
            choice = answer["choices"][0]
            tokens = [int(token) for token in choice["token_ids"]]
            log_probs = [float(value) for value in choice["logprobs"]["token_logprobs"]]
        except (LookupError, TypeError, ValueError):
            tokens, log_probs = [], [0.0]
        if len(tokens) != len(log_probs) or not 0 < len(tokens) <= max_tokens:
            raise ChatError(
                f"{self._http.base_url}: expected 1 to {max_tokens} numbers in choices[0].token_ids and as many "
                f"logprobs.token_logprobs, as vLLM answers, got {self._http.excerpt(answer)}"
            )
        return Completion(tokens, log_probs)

    def load_adapter(self, folder: str | os.PathLike[str]) -> None:
        """Load adapters under the model's name; the server sees the folder."""
        self._post("load_lora_adapter", lora_path=os.path.abspath(folder), load_inplace=True)

    def unload_adapter(self) -> None:
        """Unload the adapters of this name."""
        self._post("unload_lora_adapter")

    def _post(self, path: str, **fields: Any) -> None:
        try:
            self._http.post(path, {"lora_name": self.name, **fields}, self._meter)
        except ChatError as error:
            if error.kind != "malformed":  # vLLM says in words that it has done so
                raise

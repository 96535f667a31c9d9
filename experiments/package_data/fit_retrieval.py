"""Fits the weights of MEMENTO's retrieval: `python experiments/package_data/fit_retrieval.py --data DIR` prints them.

The data are the generated sentences for PARTNR's training episodes (`partnr/personalised_train_2k.json.gz`): for each
episode a sentence that tells what the user's thing or habit is, and an instruction that relies on it. Episodes of the
benchmark's houses are left out (`memento_data.BENCHMARK_SCENES`). A memory is the episode's instruction, description
and sentence; the weights maximise the log probability of the right memory among those of the house. Houses are split in
five parts; `missing` is measured on houses that the weights were not fitted on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import sys

import numpy as np

from embodied_mem.evaluation.command import output_file, run
from embodied_mem.evaluation.report import manifest
from embodied_mem.memory.embedders import CachedEmbedder, LexicalEmbedder
from embodied_mem.worlds.memento.data import BENCHMARK_SCENES
from embodied_mem.worlds.memento.traces.trace import Trace

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))

from experiments.solvers.memento.retrieval import FEATURES, TraceMemory, clauses_of

PENALTY = 1e-3
FOLDS = 5


def sentences(data: pathlib.Path) -> tuple[list[Trace], list[tuple[str, str, str]]]:
    """Return (memories, questions).

    Questions are (instruction, scene, id of the memory that it needs).
    """
    with gzip.open(data / "partnr" / "personalised_train_2k.json.gz") as file:
        episodes = json.load(file)["episodes"]
    traces, questions = [], []
    for episode in episodes:
        if episode["scene_id"] in BENCHMARK_SCENES:
            continue
        for kind in ("object_semantics", "user_pattern"):
            entry = episode[kind]
            if entry["type"] == "none":
                continue
            parts = [episode["instruction"], entry["stage1"]]
            if kind == "object_semantics":
                parts.insert(1, episode["description"].strip('"'))
            name = f"{episode['episode_id']}-{kind}"
            traces.append(Trace(name, episode["scene_id"], " ".join(parts)))
            questions.append((entry["stage2"], episode["scene_id"], name))
    return traces, questions


def fit(tables: np.ndarray, valid: np.ndarray, right: np.ndarray, steps: int = 200, rate: float = 0.2) -> np.ndarray:
    """Fit weights float64[features] to the right memories (Adam, full batch).

    They maximise the mean log probability of the right memories.

    Args:
        tables: float64[clauses, memories, features], padded.
        valid: bool[clauses, memories], False where padded.
        right: int[clauses], index of the memory that the clause needs.
        steps: of Adam.
        rate: of Adam.
    """
    weights = np.full(tables.shape[2], 2.0)
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    target = tables[np.arange(len(right)), right].mean(0)
    for step in range(1, steps + 1):
        logits = np.where(valid, tables @ weights, -np.inf)
        odds = np.exp(logits - logits.max(1, keepdims=True))
        odds /= odds.sum(1, keepdims=True) * len(right)
        gradient = np.einsum("cm,cmf->f", odds, tables) - target + 2 * PENALTY * weights
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def missing(memory: TraceMemory, questions, ks=(3, 5), strategy: str = "hybrid") -> list[float]:
    """Return the share of questions without their memory among the first k."""
    ranks = []
    for text, scene, name in questions:
        found = memory.retrieve(text, scene, max(ks), strategy)
        ranks.append(next((i for i, trace in enumerate(found) if trace.episode_id == name), len(found)))
    return [float(np.mean([rank >= k for rank in ranks])) for k in ks]


def main() -> None:
    """Fit for both kinds of embedder and print weights and missing rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path, help="folder with partnr/")
    parser.add_argument("--embedders", nargs="+", default=["minilm", "lexical"], choices=["minilm", "lexical"])
    parser.add_argument("--result", type=output_file, help="also write the last line to this file")
    options = parser.parse_args()
    traces, questions = sentences(options.data)
    report = {
        "houses": len({trace.scene_id for trace in traces}),
        "episodes": len({trace.episode_id.partition("-")[0] for trace in traces}),
        "questions": len(questions),
    }
    print(report, flush=True)
    for name in options.embedders:
        if name == "minilm":
            from embodied_mem.models.sentence_encoders import SentenceEncoder

            embedder = SentenceEncoder.load()
        else:
            embedder = LexicalEmbedder()
        embedder = CachedEmbedder(embedder)
        embedder.embed([text for question, _, _ in questions for text in (question, *clauses_of(question))])
        memory = TraceMemory(traces, embedder)
        order: dict[str, list[str]] = {}
        for trace in traces:
            order.setdefault(trace.scene_id, []).append(trace.episode_id)
        rows = [(clause, scene, right) for text, scene, right in questions for clause in clauses_of(text)]
        width = max(map(len, order.values()))
        tables, valid = np.zeros((len(rows), width, len(FEATURES))), np.zeros((len(rows), width), bool)
        for i, (clause, scene, _) in enumerate(rows):
            tables[i, : len(order[scene])] = memory.features(clause, scene)
            valid[i, : len(order[scene])] = True
        right = np.array([order[scene].index(name) for _, scene, name in rows])
        scenes = sorted(order)
        rates = []
        for fold in range(FOLDS):
            out = set(scenes[fold::FOLDS])
            kept = np.array([scene not in out for _, scene, _ in rows])
            memory.weights = fit(tables[kept], valid[kept], right[kept])
            rates.append(missing(memory, [question for question in questions if question[1] in out]))
        weights = fit(tables, valid, right)
        report[name] = {
            "weights": [round(float(weight), 2) for weight in weights],
            "missing_at_3_and_5": [round(float(rate), 4) for rate in np.mean(rates, 0)],
            "similarity_missing_at_3_and_5": [
                round(rate, 4) for rate in missing(memory, questions, strategy="similarity")
            ],
        }
        print(name, report[name], flush=True)
    print(json.dumps(report))
    if options.result:
        options.result.write_text(
            json.dumps(report | manifest(["python experiments/package_data/fit_retrieval.py --data DIR"]), indent=1)
            + "\n"
        )


if __name__ == "__main__":
    run(main)

"""Records what mem0ai 1.0 keeps after scripted answers of a model, for `test_originals`; run where that release is.

    pip install mem0ai==1.0.0 numpy && python tests/experiments/baselines/record_mem0_1.py

Each entry holds the facts that the model was made to extract, the memories that it was shown with their small ids, its
decisions, and what is kept afterwards.
"""

import importlib.metadata
import json
import os
import pathlib
import tempfile

RECORDING = pathlib.Path(__file__).with_name("mem0_1.json")
SCRIPT = (
    (["the mug was in the fridge", "the pan was on the stove"], ["ADD", "ADD"]),
    (["the soap was in the bath", "the mug was in the fridge"], ["ADD", "NONE the mug was in the fridge"]),
    (["the mug was on the desk"], ["UPDATE the mug was in the fridge"]),
    (["the pan was lost", "the towel was on the rack"], ["DELETE the pan was on the stove", "ADD"]),
    ([], []),
    ([f"book {n} was on shelf {n}" for n in range(1, 8)], ["ADD"] * 7),
    (["book 3 was in the box"], ["UPDATE book 3 was on shelf 3"]),
    (["the soap was in the sink", "the mug was clean"], ["UPDATE the soap was in the bath", "ADD"]),
)
"""Facts of an episode, and what becomes of each: the event, and the old memory that it is about."""


def decisions(facts, events, shown):
    """The model's second answer, by the small ids that it was shown."""
    ids = {one["text"]: one["id"] for one in shown}
    answer = []
    for fact, event in zip(facts, events, strict=True):
        kind, _, old = event.partition(" ")
        row = {"id": ids[old] if old else str(len(ids) + len(answer)), "text": fact, "event": kind}
        answer.append(row | ({"old_memory": old} if kind == "UPDATE" else {}))
    return answer


def answering(facts, events, shown):
    """A model that extracts, and then decides."""
    calls = []

    def generate_response(messages, **settings):
        calls.append(messages)
        return json.dumps({"facts": facts} if len(calls) == 1 else {"memory": decisions(facts, events, shown)})

    return generate_response


def main():
    """Writes the recording."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": tempfile.mkdtemp()}
    from mem0 import Memory
    from mem0.memory import main as original
    from qdrant_client import QdrantClient

    from embodied_mem.memory.embedders import default_embedder

    embedder = default_embedder()
    dims = int(embedder.embed([""]).shape[1])
    unused = {"provider": "openai", "config": {"api_key": "none"}}
    store = {"client": QdrantClient(":memory:"), "embedding_model_dims": dims, "collection_name": "memories"}
    memory = Memory.from_config(
        {"vector_store": {"provider": "qdrant", "config": store}, "embedder": unused, "llm": unused}
        | {"history_db_path": ":memory:"}
    )
    memory.embedding_model.embed = lambda text, action=None: embedder.embed([text])[0].tolist()
    shown, asked = [], original.get_update_memory_messages

    def noted(old, *rest):
        shown[:] = [dict(one) for one in old]
        return asked(old, *rest)

    original.get_update_memory_messages = noted
    rows = []
    for number, (facts, events) in enumerate(SCRIPT):
        shown.clear()
        memory.llm.generate_response = answering(facts, events, shown)
        memory.add(f"episode {number}", user_id="u")
        kept = memory.get_all(user_id="u", limit=1000)["results"]
        rows.append(
            {
                "facts": facts, "shown": list(shown),
                "decisions": decisions(facts, events, shown), "kept": sorted(one["memory"] for one in kept),
            }
        )  # fmt: skip
    package = f"mem0ai {importlib.metadata.version('mem0ai')}"
    lines = ",\n".join(json.dumps(row) for row in rows)
    RECORDING.write_text(f'{{"package": "{package}", "episodes": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()

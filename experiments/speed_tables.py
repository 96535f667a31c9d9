"""Tables of the speed benchmarks, for `tables.py`: a result's data and where it comes from, as Markdown."""

from __future__ import annotations

from typing import Any

from embodied_mem.evaluation.tables import markdown


def graph_speed_table(data: dict[str, Any], source: str) -> str:
    """The knowledge graph beside libraries, from Python."""
    update, khop = data["update_k2_us_p50"], data["khop2_us_p50"]
    times = {name: value / update["native"] for name, value in update.items()}
    kinds = {"update and 2 hops, us": update, "2 hops, us": khop, "update and 2 hops, times native": times}
    return markdown(
        ["", *update],
        [[what, *(f"{value:,.1f}" for value in row.values())] for what, row in kinds.items()],
        f"{data['graph_nodes']:,} nodes, median; {source}",
    )


def graph_ratio_table(data: dict[str, Any], source: str) -> str:
    """The knowledge graph in C++ beside a bare adjacency list, by number of nodes and degree."""
    ratios = {tuple(key.split(" nodes, degree ")): value for key, value in data["update_k2_ratio"].items()}
    sizes, degrees = (list(dict.fromkeys(key[i] for key in ratios)) for i in (0, 1))
    return markdown(
        ["degree", *(f"{int(size):,} nodes" for size in sizes)],
        [[degree, *(f"{ratios[size, degree]:.2f}" for size in sizes)] for degree in degrees],
        f"Update and 2 hops, median, native by bare; {source}",
    )


def vector_speed_table(data: dict[str, Any], source: str) -> str:
    """Vector search at 99 % recall: queries per second of every library."""
    head, rows = [], []
    for name, kinds in data["search_qps_at_recall_0.99"].items():
        count, _, spread = name.partition(" ")
        for kind, row in kinds.items():
            head = head or ["queries/s", *row, "native by the best other"]
            ratio = data["search_qps_native_by_best_other"][f"{name} {kind}"]
            kind = kind.replace("_", " ").replace("1 thread", "on one thread")
            what = f"{int(count):,} {spread or 'clustered'}, {kind}"
            rows.append([what, *(f"{value:,.0f}" for value in row.values()), f"{ratio:.1f}"])
    footer = f"{data['vector_dim']} dimensions, {data['vector_queries']:,} queries, recall at 10; {source}"
    return markdown(head, rows, footer)


def sampling_table(data: dict[str, Any], source: str) -> str:
    """Prefill and decode with SmolLM2's shape beside other programs."""
    columns = [(what, str(batch)) for what in ("prefill", "decode") for batch in data["settings"]["batches"]]
    return markdown(
        ["tokens/s", *(f"{what}, batch {batch}" for what, batch in columns)],
        [
            [
                f"{name} ({version})",
                *(f"{data[f'{what}_tokens_per_s'][name][batch][0]:,.0f}" for what, batch in columns),
            ]
            for name, version in data["contenders"].items()
        ],
        f"float32, median of {data['settings']['rounds']} rounds; {source}",
    )


def drop_in_table(row: dict[str, Any], source: str) -> str:
    """Rollouts of the original's batch env and of ours behind the same import."""
    both, large = f"{row['episodes']} episodes, {row['steps']:,} steps", f"{row['large_episodes']} episodes"
    times = f"{row['original_rollout_s']:,.0f} s", f"{row['drop_in_rollout_s']:.2f} s", f"{row['ratio']:,}"
    return markdown(
        ["rollout, wall clock", "alfworld 0.4.2", "drop-in", "ratio"],
        [
            [both, *times],
            [f"{large}, {row['large_steps']:,} steps", "not measured", f"{row['drop_in_large_rollout_s']:.2f} s", ""],
        ],
        f"{row['cores']} core for both sides, which other programs used, too. Ours: median of {row['rounds']}, "
        f"{row['drop_in_rollout_s_min']:.2f} to {row['drop_in_rollout_s_max']:.2f} s and "
        f"{row['drop_in_large_rollout_s_min']:.2f} to {row['drop_in_large_rollout_s_max']:.2f} s. "
        f"Steps whose answers differ: {row['mismatches']}. {source}",
    )

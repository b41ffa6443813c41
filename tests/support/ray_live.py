"""Asks a live Ray for decisions about placement groups; run by a Python that has ray, as a program of its own.

    python ray_live.py OUT.json [NUMBER]

One cluster of six fake nodes with eight GPUs each. A random cluster is made by holding GPUs of its nodes with placement
groups, which Ray scores by what is available as if they were not there; then groups are asked for one after another.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

NODES, GPUS = 6, 8
STRATEGIES = ("STRICT_PACK", "PACK", "STRICT_SPREAD", "SPREAD")


def drawn(seed: int) -> dict[str, Any]:
    """What is free of each node, and groups of bundles that ask for GPUs."""
    rng = random.Random(seed)
    free = [rng.randrange(GPUS + 1) for _ in range(NODES)]
    groups = [[rng.choice((1, 1, 2, 3, 4)) for _ in range(rng.choice((1, 1, 2, 2, 3, 4)))] for _ in range(6)]
    return {"strategy": STRATEGIES[seed % len(STRATEGIES)], "free": free, "groups": groups}


def main(out: str, number: int) -> None:
    """Write what was asked and where each bundle went; None for a group that Ray did not place."""
    os.environ.update(RAY_ENABLE_UV_RUN_RUNTIME_ENV="0", RAY_USAGE_STATS_ENABLED="0")
    import ray
    from ray.cluster_utils import Cluster
    from ray.util import placement_group_table, remove_placement_group
    from ray.util.placement_group import placement_group

    small = {"object_store_memory": 80 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **small})
    for n in range(NODES):
        cluster.add_node(num_cpus=1, num_gpus=GPUS, resources={f"n{n}": 1}, **small)
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    place = {node["NodeID"]: n for node in ray.nodes() for n in range(NODES) if f"n{n}" in node.get("Resources", {})}
    found = []
    for seed in range(number):
        case = drawn(seed)
        held = [
            placement_group([{"GPU": GPUS - free, f"n{n}": 0.01}], strategy="STRICT_PACK")
            for n, free in enumerate(case["free"])
            if free < GPUS
        ]
        assert all(group.wait(30) for group in held), "the cluster is not as it was"
        asked, placed = [], []
        for sizes in case["groups"]:
            group = placement_group([{"GPU": size} for size in sizes], strategy=case["strategy"])
            asked.append(group)
            seats = None
            if group.wait(1.5):
                told = placement_group_table(group)["bundles_to_node_id"]
                seats = [place[told[b]] for b in sorted(told, key=int)]
            placed.append(seats)
            if seats is None:
                remove_placement_group(group)
        found.append({**case, "placed": placed})
        for group in [*held, *asked]:
            remove_placement_group(group)
        while ray.available_resources().get("GPU", 0) < NODES * GPUS:
            pass
    text = ",\n".join(json.dumps(one) for one in found)
    Path(out).write_text(f'{{"ray": "{ray.__version__}", "decisions": [\n{text}\n]}}\n', encoding="utf-8")
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50)

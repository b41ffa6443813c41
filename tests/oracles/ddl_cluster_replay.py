"""The checker's replay against the plain form on random instances: `python -m oracles.ddl_cluster_replay 0 1000`."""

from __future__ import annotations

import random
import sys
from typing import Any

from support.ddl_cluster_random import placed_instance

from oracles.ddl_cluster_events import plain_run
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, simulate_plain


def longer(seed: int) -> DdlClusterInstance:
    """2 to 9 jobs of up to 80 iterations; every second time there is not memory for all of them."""
    rng = random.Random(seed)
    jobs, servers, iterations = rng.randint(2, 9), rng.randint(2, 4), rng.choice([2, 10, 30, 80])
    return placed_instance(seed, jobs=jobs, servers=servers, iterations=iterations, tight=seed % 2 == 0)


def compare_runs(first: int, last: int, *, interpreted: bool = True) -> tuple[list[tuple[int, str]], int]:
    """Seeds and policies whose run is not the plain one, and how many cycles were passed over."""
    wrong, skipped = [], 0
    for seed in range(first, last):
        instance = longer(seed)
        given: Any = instance.given
        rng = random.Random(seed)
        release = {job.id: rng.uniform(0.0, 9.0) for job in instance.jobs if rng.random() < 0.2}
        for policy in POLICIES:
            run = simulate_plain(instance, given, policy, release=release, interpreted=interpreted)
            plain = plain_run(instance, given, policy, release)
            if [list(run.finish_ticks), list(run.placed_ticks)] != [plain["finish"], plain["placed"]]:
                wrong.append((seed, policy))
            skipped += run.skipped
    return wrong, skipped


if __name__ == "__main__":
    differing, passed_over = compare_runs(int(sys.argv[1]), int(sys.argv[2]), interpreted="--compiled" not in sys.argv)
    print(f"{passed_over} cycles passed over; runs that differ: {differing or 'none'}")
    sys.exit(bool(differing))

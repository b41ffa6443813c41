"""Every policy of comm-contention against the plain one in rationals."""

import numpy as np
import pytest
from support.comm_contention_plain_policies import RULES, plain

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.heuristics.comm_contention import policies


def drawn(seed: int) -> CommContentionInstance:
    """Even seeds: halves, so that sizes, releases and completions tie; odd ones: decimals that no float is."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 13))
    if seed % 2 == 0:
        sizes = rng.integers(1, 12, n) / 2
        releases = rng.integers(0, 4 * n, n) / 2
        a, b, eta = float(rng.choice([0.0, 0.5])), float(rng.choice([0.5, 1.0])), float(rng.choice([0.0, 0.5]))
    else:
        sizes = np.round(np.exp(rng.uniform(-2, 2.5, n)), 2) + 0.1
        releases = np.round(rng.uniform(0, 2 * n, n), 2)
        a, b, eta = float(rng.choice([0.0, 0.37])), float(rng.choice([0.7, 1.1])), float(rng.choice([0.1, 0.3]))
    tasks = [
        {"id": f"c{j}", "release": round(float(r), 2), "size": round(float(m), 2)}
        for j, (r, m) in enumerate(zip(releases, sizes, strict=True))
    ]
    link = {"latency": a, "seconds_per_unit": b, "contention_penalty": eta}
    return CommContentionInstance.parse({"problem": "comm-contention", "link": link, "tasks": tasks})


@pytest.mark.parametrize("name", RULES)
def test_comm_contention_policy_is_the_plain_one(name: str) -> None:
    for seed in range(60):
        instance = drawn(seed)
        told = getattr(policies, name)(instance).solution["start"]
        wanted = {task: float(moment) for task, moment in plain(instance, RULES[name]).items()}
        assert told == pytest.approx(wanted, rel=1e-12, abs=1e-12), (name, seed)

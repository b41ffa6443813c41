"""Whatever the cluster and the policy: no message is faster than size * b, and the clock never runs backwards."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ddl_cluster_clusters import random_cluster

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES
from schedgap.heuristics.ddl_cluster.simulation import PLACEMENTS, simulate


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(sorted(POLICIES)), st.sampled_from(sorted(PLACEMENTS)), st.integers(0, 4))
def test_messages_take_their_time(seed: int, policy: str, placement: str, kappa: int) -> None:
    instance = random_cluster(seed)
    run = simulate(instance, policy, placement, kappa=kappa, seed=seed)
    scale = 10 ** clock_of(instance).digits
    a, b, _ = instance.link.exact_parameters()
    for j, job in enumerate(instance.jobs):
        part = slice(run.log.message_base[j], run.log.message_base[j + 1])
        admitted, done = run.log.admitted[part], run.log.done[part]
        if len({server for server, _ in run.placement[j]}) == 1:
            assert len(done) == 0
            continue
        assert min(int(end) - int(begin) for begin, end in zip(admitted, done, strict=True)) >= (
            (a + b * exact(job.message)) * scale
        )
        assert (np.diff(done) > 0).all()
        assert done[-1] == run.finish[j]

"""The annealed priorities of gpu-sharing: in parts as in one go, repeatable, and never worse than the start."""

from __future__ import annotations

import pytest

import schedgap
from schedgap.formulations.gpu_sharing.check import check
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import choices
from schedgap.formulations.gpu_sharing.solution import GpuSharingSolution
from schedgap.solvers.exact.gpu_sharing.search import Search


@pytest.mark.parametrize("seed", range(5))
def test_an_annealing_in_parts_is_the_same(seed: int) -> None:
    instance = schedgap.generate("gpu-sharing", "small", seed=seed)
    assert isinstance(instance, GpuSharingInstance)
    whole, parts = (Search(instance, choices(instance), seed=seed) for _ in range(2))
    whole.run(300)
    for first in range(0, 300, 70):
        parts.run(300, first, 70)
    one, two = whole.found, parts.found
    assert one is not None and two is not None and one.total == two.total
    assert (one.start == two.start).all() and (one.overlap == two.overlap).all()
    report = check(instance, GpuSharingSolution.parse(one.solution(instance, choices(instance))))
    assert report.feasible and report.objective is not None
    late = sum(job.arrival for job in instance.jobs)
    assert one.total - late <= report.objective * len(instance.jobs) <= one.total - late + len(instance.jobs)


def test_lns_gains_by_orders_and_repeats_itself() -> None:
    instance = schedgap.generate("gpu-sharing", "table-ii", seed=0)
    best = min(schedgap.solve(instance, name).objective or 0.0 for name in ("sjf-bsbf", "sjf-bsbf+", "sjf"))
    first, second = (schedgap.solve(instance, "lns", work_limit=0.4, seed=3) for _ in range(2))
    assert first.objective is not None and first.objective < best
    assert (first.objective, first.info["orders tried"]) == (second.objective, second.info["orders tried"])

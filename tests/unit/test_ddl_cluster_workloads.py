"""Generators, figures and the experiment's arithmetic of ddl-cluster."""

from __future__ import annotations

from collections import Counter

import pytest
from matplotlib.figure import Figure

from schedgap.benchmarks.figures.ddl_cluster import gantt
from schedgap.benchmarks.instances.ddl_cluster.random import GANGS, MODELS, gang_sizes, paper, small, tiny
from schedgap.formulations.common.errors import InputError
from schedgap.heuristics.ddl_cluster.policies import ada_srsf


def test_paper_workload_has_the_printed_sizes() -> None:
    instance = paper(4)
    assert Counter(job.gpus for job in instance.jobs) == GANGS
    assert (len(instance.jobs), len(instance.servers), instance.total_gpus) == (160, 16, 64)
    assert all(1000 <= job.iterations <= 6000 and 1 <= job.arrival <= 1200 for job in instance.jobs)
    tables = {(message, memory) for message, memory, _, _ in MODELS.values()}
    assert {(job.message, job.memory) for job in instance.jobs} == tables
    assert paper(4) == instance
    assert paper(5) != instance


@pytest.mark.parametrize("jobs", [1, 7, 159, 1000])
def test_gangs_in_proportion(jobs: int) -> None:
    counts = Counter(gang_sizes(jobs))
    assert sum(counts.values()) == jobs
    assert all(abs(counts[gang] - jobs * count / 160) < 1 for gang, count in GANGS.items())


def test_tiny_is_placed_and_small_is_not() -> None:
    assert all(job.placement is not None for seed in range(20) for job in tiny(seed).jobs)
    assert all(job.placement is None for job in small(0).jobs)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fewest": 10, "most": 9}, "most: must be at least fewest"),
        ({"servers": 2}, "a job of 32 GPUs does not fit 2 servers of 4"),
    ],
)
def test_impossible_settings(settings: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        paper(0, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("jobs", "servers", "rows"), [(3, 2, 6), (40, 4, 8), (40, 20, 40)])
def test_figures_by_size(jobs: int, servers: int, rows: int) -> None:
    instance = small(2, jobs=jobs, servers=servers, iterations=5 if jobs == 3 else 120)
    figure = gantt(instance, ada_srsf(instance).solution or {})
    assert isinstance(figure, Figure)
    assert figure.axes[0].get_ylim() == (rows, 0)

"""What the tables and figures of paper 001 share: the workload, the metrics, and how a policy is measured."""

from __future__ import annotations

from typing import cast

from schedgap.benchmarks.instances.ddl_cluster.random import LINK
from schedgap.benchmarks.laboratory.declare import RATIO, Choice, Claim, Item, Metric, Series
from schedgap.benchmarks.laboratory.draw import bars, distribution
from schedgap.benchmarks.laboratory.measure import Run, instance_of
from schedgap.benchmarks.laboratory.printed import printed_table
from schedgap.formulations.common.instance import Json
from schedgap.formulations.ddl_cluster.bounds import lower_bound
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.heuristics.ddl_cluster.policies import run_policy

UTILISATION = Metric("utilisation busy", "GPU utilisation", "%", 100.0)
MEAN = Metric("jct mean", "mean JCT", "s", digits=0)
MEDIAN = Metric("jct median", "median JCT", "s", digits=0)
LATE = Metric("jct 95th", "95th JCT", "s", digits=0)
BELOW = Metric("below 5000", "JCT below 5000 s", "%", 100.0)
COLUMNS = (UTILISATION, MEAN, MEDIAN, LATE, BELOW, RATIO)
PRINTED = {
    "average GPU utilization": UTILISATION.name,
    "average JCT": MEAN.name,
    "median JCT": MEDIAN.name,
    "95th percentile JCT": LATE.name,
}
"""The tables' columns under our names."""
CURVE = Metric("jct", "JCT", "s")
PER_GPU = Metric("gpu", "utilisation", "%", 100.0)

ETA = 0.38
"""eta over b: fitted to the published measurements with at most 8 at once, as many as the paper plots."""


def eta(of_b: float) -> dict[str, float]:
    """The generator's setting, in s per MB."""
    return {"eta": round(of_b * LINK["seconds_per_unit"], 9)}


ETAS = tuple(Choice(f"eta/b = {of_b}", eta(of_b)) for of_b in (0.1, 0.3, 0.5, 0.7))
"""Second choices for what the paper does not print."""

LEFT_OPEN = """Open: the models' shares and how iterations are spread within 1,000 to 6,000 (both uniform here),
and how a
GPU's utilisation is counted (here: the time it computes over the time from its first placement to its last finish)."""


def policy(label: str, name: str, placement: str, kappa: int = 1) -> Series:
    """A scheduling with a placement."""
    return Series(label, name, {"placement": placement, "kappa": kappa})


def simulated(run: Run, seed: int) -> dict[str, Json]:
    """Simulate a policy and check conservation of bytes, link time, GPU time and iterations.

    Returns
    -------
    dict
        The metrics of ``policies.metrics``; ``below 5000``, the share of jobs; ``jct`` by job and ``gpu``, the
        utilisation by GPU; ``ratio`` of the mean JCT to the certified bound.

    Raises
    ------
    ConservationError
        The run makes something out of nothing.
    """
    instance = cast(DdlClusterInstance, instance_of(run, seed))
    outcome = run_policy(instance, run.method, seed, run.settings["placement"], run.settings["kappa"])
    return {
        **outcome.metrics,
        "below 5000": float((outcome.flow < 5000).mean()),
        "jct": [round(value, 1) for value in outcome.flow.tolist()],
        "gpu": [round(value, 4) for value in outcome.utilisation.tolist()],
        "ratio": float(outcome.flow.mean()) / lower_bound(instance),
    }


def table(name: str, title: str, plots: str, series: tuple[Series, ...], claims: tuple[Claim, ...]) -> Item:
    """A table of the evaluation, with the distributions that are drawn beside it."""
    return Item(
        id=name.lower().replace(" ", "-"),
        title=title,
        plots=plots,
        left_open=LEFT_OPEN,
        problem="ddl-cluster",
        preset="paper",
        workload=eta(ETA),
        series=series,
        metrics=COLUMNS,
        choices=ETAS,
        measure=simulated,
        claims=claims,
        panels=(
            distribution(CURVE, "JCT (s)", limit=15000),
            distribution(PER_GPU, "GPU utilisation (%)"),
            bars(RATIO),
        ),
        printed=printed_table("001", name, PRINTED),
        most=20,
    )

"""The part of ddl-cluster in every suite."""

from __future__ import annotations

from schedgap.benchmarks.instances.cross import hard_numbers
from schedgap.catalogue.workload import Batch, Measurement, Study


def _policy_times() -> Study:
    from schedgap.benchmarks.studies.speed.ddl_cluster import policy_times

    return policy_times


def _large_times() -> Study:
    from schedgap.benchmarks.studies.speed.ddl_cluster import large_times

    return large_times


_PLACED = {
    name: tuple({"placement": placement} for placement in ("lwf", "ls", "ff", "rand"))
    for name in ("srsf-1", "ada-srsf")
}
_JOB_SHOP = ("job-shop", "cbc", "highs")
"""The restriction to one all-reduce at a time, three ways."""
_QUICK = (
    Batch("quick", "small", 2, method_settings=_PLACED),
    Batch("quick", "tiny", 4, exact=("cp", *_JOB_SHOP), heuristics=("srsf-1", "srsf-2", "ada-srsf"), work_limit=10.0),
)
_CROSS = (Batch("cross", "tiny", 60, exact=("cp", *_JOB_SHOP), work_limit=20.0),)
_HARD = hard_numbers("ddl-cluster", ("cp", *_JOB_SHOP), 20.0)
_PAPER: tuple[Batch | Measurement, ...] = (
    Batch(
        "paper",
        "small",
        5,
        method_settings={"ada-srsf": tuple({"kappa": kappa} for kappa in (1, 2, 4))},
        heuristics=("ada-srsf",),
        group="kappa, 12 jobs",
        series="LWF-kappa on 8 GPUs, Ada-SRSF",
        axis="kappa",
    ),
)
_SCALE = (
    Measurement(
        "scale",
        "ddl-policies",
        "ddl-cluster: 160 jobs on 64 GPUs, with and without fast-forward",
        _policy_times,
        timed=("seconds", "cpu_seconds", "without fast-forward", "load"),
    ),
    Measurement(
        "scale",
        "ddl-large",
        "ddl-cluster: 1,000 jobs on 512 GPUs",
        _large_times,
        timed=("seconds", "cpu_seconds", "load"),
    ),
)

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK, *_CROSS, *_HARD, *_SCALE, *_PAPER)
"""Every batch and measurement."""

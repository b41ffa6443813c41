"""How a schedule served the jobs: completion times, waits, slowdowns, fairness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.benchmarks.service import finish_time_fairness, jain, present
from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.instance import Json

SHORT = 10.0
"""Seconds: a job counts as at least so long in its bounded slowdown."""


@dataclass(frozen=True)
class Spread:
    """Mean, median, 95th and 99th percentile."""

    mean: float
    median: float
    p95: float
    p99: float


def spread(values: Floats) -> Spread:
    """The spread of at least one value; percentiles are interpolated."""
    median, p95, p99 = np.percentile(values, (50, 95, 99)).tolist()
    return Spread(float(values.mean()), median, p95, p99)


@dataclass(frozen=True)
class Scores:
    """The scores of one schedule; seconds."""

    # jct, wait: end less submission, start less submission
    jct: Spread
    wait: Spread
    slowdown: Spread  # bounded: max(1, JCT / max(duration, 10 s))
    utilisation: float  # busy GPU time over that of all GPUs from the first submission to the last end
    # mean finish-time fairness: JCT over the JCT alone on 1/n of the cluster, n jobs being present on average in the
    # record (or, without one, in this schedule)
    fairness: float
    tenants: Mapping[str, float]  # the same by tenant, where there are several
    jain: float | None  # Jain's index of the tenants' mean slowdowns: 1 is equal; None where there is one tenant

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return asdict(self)


def scores(
    jobs: Sequence[TraceJob], submit: Floats, start: Floats, end: Floats, capacity: int, usual: float | None
) -> Scores:
    """The scores of a schedule.

    Parameters
    ----------
    submit, start, end : seconds, by job
    usual : jobs that are present on average; those of this schedule where None
    """
    gpus = np.array([float(job.gpus) for job in jobs])
    jct, wait, length = end - submit, start - submit, end - start
    slowdown = np.maximum(1.0, jct / np.maximum(length, SHORT))
    share = capacity / (present(submit, end) if usual is None else usual)
    fairness = finish_time_fairness(jct, length, gpus, share)
    names = np.array([job.tenant or "" for job in jobs])
    tenants = {str(name): float(fairness[names == name].mean()) for name in np.unique(names)}
    means = np.array([slowdown[names == name].mean() for name in np.unique(names)])
    return Scores(
        spread(jct),
        spread(wait),
        spread(slowdown),
        float(gpus @ length / capacity / max(1e-9, end.max() - submit.min())),
        float(fairness.mean()),
        tenants if len(tenants) > 1 else {},
        jain(means),
    )

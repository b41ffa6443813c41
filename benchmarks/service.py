"""How a schedule served the jobs, from what each had: the figures of audits and of online runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import Json

Floats = NDArray[np.float64]


def present(submit: Floats, end: Floats) -> float:
    """Jobs that are there on average, from the first submission to the last end."""
    return float((end - submit).sum() / max(1e-9, end.max() - submit.min()))


def finish_time_fairness(jct: Floats, alone: Floats, gpus: Floats, share: float) -> Floats:
    """Each job's JCT over the JCT alone on `share` GPUs (Themis, NSDI 2020)."""
    return jct / (alone * np.maximum(1.0, gpus / share))


def jain(values: Floats) -> float | None:
    """Jain's index, (sum x)^2 / (n sum x^2): 1 where all are equal, 1/n at the least; None of one value."""
    return float(values.sum() ** 2 / len(values) / (values**2).sum()) if len(values) > 1 else None


def service(
    # arrival, end: first and last slot of each job; None where it did not complete
    arrival: Sequence[int],
    end: Sequence[int | None],
    held: Sequence[int],  # slots in which it held what it asked for
    # gpus, alone: its gang, and the slots that it takes alone
    gpus: Sequence[int],
    alone: Sequence[float],
    capacity: int,  # GPUs of the cluster; 0 where they are not counted
) -> Mapping[str, Json]:
    """Figures of one run, times in slots.

    Returns
    -------
    ``unfinished``; of those that completed the means ``jct``, ``wait`` (JCT less the slots held), ``fairness``
    (:func:`finish_time_fairness`, n jobs being present on average), ``jain`` of their slowdowns JCT / alone, and
    ``utilisation``, gang slots held over GPU slots from the first arrival to the last end; None where unknown.
    """
    done = [job for job, last in enumerate(end) if last is not None]
    none = dict.fromkeys(("jct", "wait", "fairness", "jain", "utilisation"))
    if not done:
        return {"unfinished": len(end), **none}
    came, had, size, least = (np.array([row[job] for job in done], dtype=float) for row in (arrival, held, gpus, alone))
    left = np.array([last + 1 for last in end if last is not None], dtype=float)
    jct = left - came
    share = capacity / present(came, left) if capacity else 0.0
    return {
        "unfinished": len(end) - len(done),
        "jct": float(jct.mean()),
        "wait": float((jct - had).mean()),
        "fairness": float(finish_time_fairness(jct, least, size, share).mean()) if capacity else None,
        "jain": jain(jct / least),
        "utilisation": float(size @ had / capacity / (left.max() - came.min())) if capacity else None,
    }

"""How the jobs of an online run were served, in slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from schedgap.benchmarks.service import finish_time_fairness, jain, present
from schedgap.formulations.common.instance import Json


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
    (:func:`~schedgap.benchmarks.service.finish_time_fairness`, n jobs being present on average), ``jain`` of their
    slowdowns JCT / alone, and ``utilisation``, gang slots held over GPU slots from the first arrival to the last end;
    None where unknown.
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

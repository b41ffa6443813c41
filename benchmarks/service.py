"""How a schedule served the jobs, from what each had: the figures of audits and of online runs."""

from __future__ import annotations

import numpy as np

from schedgap.formulations.common.arrays import Floats


def present(submit: Floats, end: Floats) -> float:
    """Jobs that are there on average, from the first submission to the last end."""
    return float((end - submit).sum() / max(1e-9, end.max() - submit.min()))


def finish_time_fairness(jct: Floats, alone: Floats, gpus: Floats, share: float) -> Floats:
    """Each job's JCT over the JCT alone on `share` GPUs (Themis, NSDI 2020)."""
    return jct / (alone * np.maximum(1.0, gpus / share))


def jain(values: Floats) -> float | None:
    """Jain's index, (sum x)^2 / (n sum x^2): 1 where all are equal, 1/n at the least; None of one value."""
    return float(values.sum() ** 2 / len(values) / (values**2).sum()) if len(values) > 1 else None

"""The part of gpu-sharing in every suite."""

from __future__ import annotations

from schedgap.benchmarks.instances.cross import hard_numbers
from schedgap.catalogue.workload import Batch, Measurement, Study


def _proofs() -> Study:
    from schedgap.benchmarks.studies.speed.gpu_sharing import proofs

    return proofs


def _policy_times() -> Study:
    from schedgap.benchmarks.studies.speed.gpu_sharing import policy_times

    return policy_times


def _decision_times() -> Study:
    from schedgap.benchmarks.studies.speed.gpu_sharing import decision_times

    return decision_times


_ENGINES = ("cbc", "highs", "cpsat")
_WORK = 60.0
"""CP-SAT's deterministic time for one solve."""
_AMPLE = {"ample": True}
"""Horizons that cut off no heuristic: means would be over those that happen to end early."""

_QUICK = (
    Batch("quick", "table-iii", 2),
    Batch("quick", "small", 4, exact=("cp",), group="10 jobs", settings={"jobs": 10, **_AMPLE}, work_limit=_WORK),
    Batch(
        "quick", "tiny", 6, exact=("cp", *_ENGINES), settings={"slots": 3, "arrivals": 2, **_AMPLE}, work_limit=_WORK
    ),
)

_CROSS = tuple(
    Batch(
        "cross",
        preset,
        count,
        exact=("cp", *_ENGINES),
        heuristics=(),
        group=group,
        settings=settings,
        first=first,
        work_limit=_WORK,
    )
    for preset, count, group, first, settings in (
        ("tiny", 150, "three jobs", 0, {"jobs": 3, "slots": 3, "arrivals": 2}),
        ("tiny", 50, "four jobs", 1000, {"jobs": 4, "gpus": 2, "slots": 2, "arrivals": 2}),
        ("contended", 100, "contended", 0, {"jobs": 3, "slots": 3, "horizon": 10}),
    )
)
_HARD = hard_numbers("gpu-sharing", ("cp", *_ENGINES), _WORK)

_PAPER = (
    *(
        Batch("paper", f"table-{number}", 5, group=f"table {number.upper()}", series=f"Table {number.upper()}")
        for number in ("ii", "iii", "iv")
    ),
    *(
        Batch(
            "paper",
            "table-iii",
            3,
            group=f"figure 6a, {jobs} jobs",
            series="Figure 6a: 120 to 480 jobs",
            axis="jobs",
            settings={"jobs": jobs},
        )
        for jobs in (120, 180, 240, 360, 480)
    ),
    *(
        Batch(
            "paper",
            "table-iii",
            3,
            heuristics=("sjf-bsbf", "sjf-bsbf+", "sjf-ffs", "sjf"),
            group=f"figure 6b, xi = {xi:g}",
            series="Figure 6b: injected interference",
            axis="xi",
            settings={"xi": xi},
        )
        for xi in (1.0, 1.25, 1.5, 1.75, 2.0)
    ),
)

_SCALE = (
    Measurement(
        "scale",
        "sharing-proofs",
        "gpu-sharing: cp on 16 jobs, 8 GPUs, horizon 48",
        _proofs,
        timed=("status", "objective", "bound", "seconds", "load"),
    ),
    Measurement(
        "scale",
        "sharing-policies",
        "gpu-sharing: policies on 480 jobs and 64 GPUs",
        _policy_times,
        timed=("seconds", "cpu_seconds", "load"),
    ),
    Measurement(
        "scale",
        "sharing-decision",
        "gpu-sharing: one decision with 1,000 waiting jobs on 1,024 GPUs",
        _decision_times,
        timed=("seconds", "cpu_seconds", "load"),
    ),
)

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK, *_CROSS, *_HARD, *_SCALE, *_PAPER)
"""Every batch and measurement."""

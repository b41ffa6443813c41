"""What runs report beside the objective: completion times, utilisation, whatever a problem's row names."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from schedgap.benchmarks.report.text import number
from schedgap.catalogue.problem import Problem


def metrics_of(problem: Problem, info: Mapping[str, object] | None) -> dict[str, float | None]:
    """The problem's metrics in a run's `info` by title, in the order of its row; those the run does not tell are left
    out, those it cannot know are None."""
    facts = info or {}
    found = {title: facts[key] for key, title in problem.metrics.items() if key in facts}
    return {title: float(value) if isinstance(value, int | float) else None for title, value in found.items()}


def metrics_text(problem: Problem, info: Mapping[str, object] | None) -> str:
    """The metrics in one line; empty where there are none."""
    found = metrics_of(problem, info)
    return ", ".join(f"{title} {number(value, 4)}" for title, value in found.items() if value is not None)


def mean_metrics(runs: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Each metric's mean over the runs, None where one of them does not know it: no mean is over the easy ones."""
    titles = dict.fromkeys(title for run in runs for title in run)
    known = {title: [value for run in runs if (value := run.get(title)) is not None] for title in titles}
    return {title: statistics.fmean(values) if len(values) == len(runs) else None for title, values in known.items()}

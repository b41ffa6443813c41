"""Methods beside each other on the library's instances: a row for each run, and what they come to for each method."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

from schedgap.benchmarks.records import plain
from schedgap.benchmarks.report.sheet import Column, Sheet
from schedgap.benchmarks.text import fixed, number, seconds
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.instance import Json, Part
from schedgap.formulations.common.numbers import agrees, better, share_of_best
from schedgap.tools.library.collection import Entry


class Outcome(Part):
    """A method on an instance of the library.

    Attributes
    ----------
    id, method : id of the record; method that ran
    status : status of the run, ``error`` where it failed
    objective : objective by the checker; None where nothing was found
    ratio, ratio_to : how far that is from the best possible, at least 1; None where nothing is compared
    seconds : seconds of the run
    outside : its schedules are not those of the problem
    frozen : the instance is one that methods are scored on
    """

    id: str
    method: str
    status: str
    objective: float | None = None
    ratio: float | Literal["inf"] | None = None
    ratio_to: Literal["optimum", "bound"] | None = None
    seconds: float | None = None
    outside: bool = False
    frozen: bool = True

    @property
    def problem(self) -> str:
        """The problem of the record."""
        return self.id.partition("/")[0]

    @property
    def value(self) -> float | None:
        """The ratio as a number."""
        return None if self.ratio is None else float(self.ratio)


class Standing(Part):
    """What a method came to on the instances of a problem that methods are scored on.

    Attributes
    ----------
    score : mean of 1/ratio, 0 where it found nothing: 1 is optimal everywhere
    wins : instances on which none of the methods beside it was better; equals win both
    instances, solved : numbers of instances that it ran on, and for which it found a schedule
    optima, mean : instances with a known optimum, and the mean ratio to it where a schedule was found
    bounds, mean_bound : the same for those of which only a bound is known
    worst : the largest ratio
    seconds : mean
    """

    problem: str
    method: str
    score: float
    wins: int
    instances: int
    solved: int
    optima: int
    mean: float | Literal["inf"] | None = None
    bounds: int
    mean_bound: float | Literal["inf"] | None = None
    worst: float | Literal["inf"] | None = None
    seconds: float | None = None


def standings(outcomes: Sequence[Outcome]) -> list[Standing]:
    """Every method on the instances that methods are scored on, the highest score of each problem first."""
    rows: dict[tuple[str, str], list[Outcome]] = {}
    best: dict[str, float] = {}
    for one in outcomes:
        if one.outside or not one.frozen:
            continue
        rows.setdefault((one.problem, one.method), []).append(one)
        value = one.objective
        if value is not None and (one.id not in best or better(value, best[one.id], find_problem(one.problem).sense)):
            best[one.id] = value
    found = [_standing(problem, method, runs, best) for (problem, method), runs in rows.items()]
    order = list(dict.fromkeys(problem for problem, _ in rows))
    return sorted(found, key=lambda one: (order.index(one.problem), -one.score, -one.wins, one.method))


def _standing(problem: str, method: str, runs: Sequence[Outcome], best: dict[str, float]) -> Standing:
    to_optimum, to_bound = _ratios(runs, "optimum"), _ratios(runs, "bound")
    return Standing(
        problem=problem,
        method=method,
        score=statistics.fmean(share_of_best(one.value) for one in runs),
        wins=sum(one.objective is not None and agrees(one.objective, best[one.id]) for one in runs),
        instances=len(runs),
        solved=sum(one.objective is not None for one in runs),
        optima=len(to_optimum),
        mean=_mean(to_optimum),
        bounds=len(to_bound),
        mean_bound=_mean(to_bound),
        worst=plain(max(to_optimum + to_bound, default=None)),
        seconds=_mean([one.seconds for one in runs if one.seconds is not None]),
    )


def _ratios(runs: Sequence[Outcome], to: str) -> list[float]:
    return [one.value for one in runs if one.value is not None and one.ratio_to == to]


def _mean(values: Sequence[float]) -> Json:
    return plain(statistics.fmean(values)) if values else None


def standings_sheet(found: Sequence[Standing], names: Sequence[str] | None = None) -> Sheet:
    """The table of methods.

    Parameters
    ----------
    names : what the cells of the methods are, where they are more than text
    """
    columns = (
        Column("method", right=False, width=40),
        Column("score", "mean of 1/ratio, 0 where nothing was found; 1 is optimal everywhere"),
        Column("wins", "instances on which no method of this table was better; equals win both"),
        Column("solved", "instances with a schedule, of those it ran on"),
        Column("mean ratio to optimum", "over the instances whose optimum is known and that it solved"),
        Column("mean ratio to bound", "over the others that it solved; a bound may lie far below the optimum"),
        Column("worst ratio"),
        Column("mean seconds", "of a run on the machine that ran it, building included"),
    )
    shown = [one.method for one in found] if names is None else names
    rows = [[name, *_cells(one)] for name, one in zip(shown, found, strict=True)]
    return Sheet("Methods on the instances that methods are scored on", columns, rows)


def _cells(one: Standing) -> list[str]:
    mean, bound, worst = (None if value is None else float(value) for value in (one.mean, one.mean_bound, one.worst))
    return [
        fixed(one.score, 4),
        str(one.wins),
        f"{one.solved} of {one.instances}",
        f"{fixed(mean, 4)} ({one.optima})" if one.optima else "-",
        f"{fixed(bound, 4)} ({one.bounds})" if one.bounds else "-",
        fixed(worst),
        seconds(one.seconds),
    ]


def outcome_row(entry: Entry, one: Outcome) -> list[str]:
    """What stands beside the name in a table of runs: status, objective, best known, ratio."""
    ratio = "-" if one.value is None else f"{fixed(one.value, 4)} to {one.ratio_to}"
    status = "found nothing" if one.status == "unknown" else one.status
    known = number(entry.known.objective)
    return [status, number(one.objective), known, "outside the model" if one.outside else ratio]

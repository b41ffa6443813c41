"""Figures of solutions as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from schedgap.benchmarks.figures.palette import FORMATS
from schedgap.benchmarks.instances import figure_of
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.benchmarks.text import number
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import check_writable
from schedgap.formulations.common.numbers import agrees
from schedgap.reading import InstanceLike, SolutionLike, Text, checked, name_of, read_instance, read_result
from schedgap.solvers.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from schedgap.benchmarks.sweep.progress import Sink


def plot(
    instance: InstanceLike,
    solution: SolutionLike,
    out: str | Path | None = None,
    *,
    compare: SolutionLike | Sequence[SolutionLike] = (),
    progress: Sink | None = None,
) -> Figure:
    """The problem's figure of a solution (a Gantt chart, say), saved where `out` is given.

    Parameters
    ----------
    instance, solution : what is drawn; a solution that is not feasible too
    out : a file ending in .svg, .png or .pdf
    compare : a further solution of the instance, or several, drawn below it on the same time axis
    progress : told of solutions that are not feasible

    Raises
    ------
    InputError
        A malformed solution, another ending, or a file that cannot be written.
    """
    path = _target(out)
    problem, given = read_instance(instance)
    further = [compare] if isinstance(compare, Result | Mapping | str | Path | Text) else compare
    drawn = []
    for k, one in enumerate([solution, *further], 1):
        chosen, whole = read_result(one, problem)
        source = name_of(one, f"solution {k}" if further else "solution")
        report = checked(problem, given, chosen, source)
        maker = str((whole or {}).get("method") or Path(source).stem)
        if report.violations:
            note = f"{maker}: not feasible ({report.violations[0].message}); drawn all the same"
            Progress(0, progress, "plot").say(f"schedgap: note: {note}")
        drawn.append((maker, chosen, report))

    from schedgap.benchmarks.figures.sheet import sheet

    values = [report.value for _, _, report in drawn if report.feasible and report.objective]
    best = min(values, key=lambda value: problem.sense * value) if len(drawn) > 1 and values else None
    try:
        drawing = figure_of(problem)
        parts = [
            (_heading(problem, maker, report, best), partial(drawing, given, chosen)) for maker, chosen, report in drawn
        ]
        title = f"{problem.id} \u00b7 {given.name}"
        figure = sheet(title if given.name else problem.id, parts)
    except TypeError as error:
        raise InputError(f"problem {problem.id}: {error}") from None
    return _saved(figure, path)


def plot_ratios(folder: str | Path, out: str | Path | None = None) -> Figure:
    """Every heuristic's ratios in a run of ``bench``, a dot an instance, with its proven bounds.

    Parameters
    ----------
    folder : the run's directory
    out : a file ending in .svg, .png or .pdf

    Raises
    ------
    InputError
        No run, no ratios, or a file that cannot be written.
    """
    path = _target(out)

    from schedgap.benchmarks.figures.sheet import Part, sheet
    from schedgap.benchmarks.report.figures import ratio_figure
    from schedgap.benchmarks.report.run_page import read_run

    analysis, _ = read_run(Path(folder))
    plain = analysis.runs[analysis.runs.heuristic]
    shown = plain[plain.ratio.notna() | plain.own_ratio.notna()]
    parts: list[Part] = []
    for problem in analysis.problems:
        if (shown.problem == problem.id).any():
            runs = analysis.runs[analysis.runs.problem == problem.id]
            parts.append(("", cast("Callable[[], Figure]", partial(ratio_figure, problem, runs))))
    if not parts:
        raise InputError(f"{folder}: the run has no ratios")
    return _saved(sheet(f"ratios, {folder}", parts, together=False), path)


def plot_pair(instance: InstanceLike, out: str | Path | None = None) -> Figure:
    """The curve T(kappa) of a gpu-sharing instance of two jobs (Theorem 1 of paper 003).

    Raises
    ------
    InputError
        The instance has not two jobs that meet, or the file cannot be written.
    """
    from schedgap.benchmarks.instances import workload_of

    problem, given = read_instance(instance)
    load = workload_of(problem).pair_figure
    if load is None:
        raise InputError(f"instance: is of {problem.id}, which has no curve of a job pair")
    return _saved(load()(given), _target(out))


def _heading(problem: Problem, maker: str, report: CheckReport, best: float | None) -> str:
    """Who made it, its objective, and how many times the best."""
    value = None if report.objective is None else report.value
    objective = "no objective" if value is None else f"{problem.objective_name} {number(value)}"
    unit = "" if value is None or problem.unit in problem.objective_name else f" {problem.unit}"
    told = f"{maker}: {objective}{unit}"
    if not report.feasible:
        return f"{told} (not feasible)"
    if value is None or not best or agrees(value, best):
        return told
    return f"{told} = {value / best:.3g} \u00d7 {number(best)}"


def _target(out: str | Path | None) -> Path | None:
    """A figure's file, which can be written."""
    if out is None:
        return None
    path = Path(out)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{out}: must end in {', '.join(FORMATS)}")
    check_writable(path)
    return path


def _saved(figure: Figure, path: Path | None) -> Figure:
    """The figure, written where it has a file; the same bytes each time."""
    from schedgap.benchmarks.figures.style import save

    if path is not None:
        save(figure, path)
    return figure

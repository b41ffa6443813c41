"""Figures of solutions as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from schedgap.benchmarks.instances import figure_of
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.benchmarks.text import number
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import check_writable
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.reading import InstanceLike, SolutionLike, Text, checked, name_of, read_instance, read_result
from schedgap.solvers.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from schedgap.benchmarks.sweep.progress import Sink

ENDINGS = (".svg", ".png", ".pdf")


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
    path = None if out is None else Path(out)
    if path is not None:
        check_ending(path)
    problem, given = read_instance(instance)
    further = [compare] if isinstance(compare, Result | Mapping | str | Path | Text) else compare
    drawn = []
    for k, one in enumerate([solution, *further], 1):
        chosen, whole = read_result(one, problem)
        source = name_of(one, f"solution {k}" if further else "solution")
        made = Drawn.of(problem, given, chosen, whole, source)
        if made.report.violations:
            note = f"{made.maker}: not feasible ({made.report.violations[0].message}); drawn all the same"
            Progress(0, progress, "plot").say(f"schedgap: note: {note}")
        drawn.append(made)
    return draw(problem, given, drawn, path)


def draw(problem: Problem, instance: Instance, drawn: Sequence[Drawn], out: Path | None) -> Figure:
    """The problem's figure of well-formed solutions, one above the other on one time axis.

    The title names problem and instance; above each drawing stand its maker and its objective. The ending of `out`
    tells the format. The same solutions always give the same bytes: no dates, no random ids.

    Raises
    ------
    InputError
        An ending other than .svg, .png or .pdf, a file that cannot be written, a problem without a figure, or two
        solutions for a foreign figure that makes a canvas of its own.
    """
    if out is not None:
        check_writable(out)

    from schedgap.benchmarks.figures.sheet import sheet
    from schedgap.benchmarks.figures.style import save

    title = f"{problem.id} \u00b7 {instance.name}" if instance.name else problem.id
    try:
        drawing = figure_of(problem)
        reports = [one.report for one in drawn]
        values = [float(told.objective) for told in reports if told.feasible and told.objective]
        best = min(values, key=lambda value: problem.sense * value) if len(drawn) > 1 and values else None
        figure = sheet(
            title, [(_heading(problem, one, best), partial(drawing, instance, one.solution)) for one in drawn]
        )
    except TypeError as error:
        raise InputError(f"problem {problem.id}: {error}") from None
    if out is not None:
        save(figure, out)
    return figure


def plot_ratios(folder: str | Path, out: str | Path | None = None) -> Figure:
    """Every heuristic's ratios in a run of ``bench``, one dot an instance, with its proven bounds; a panel a problem.

    Parameters
    ----------
    folder : the run's directory
    out : a file ending in .svg, .png or .pdf

    Raises
    ------
    InputError
        There is no run, it has no ratios, or the file cannot be written.
    """
    if out is not None:
        check_ending(Path(out))
        check_writable(Path(out))

    from schedgap.benchmarks.figures.sheet import Part, sheet
    from schedgap.benchmarks.figures.style import save
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
    figure = sheet(f"ratios, {folder}", parts, together=False)
    if out is not None:
        save(figure, out)
    return figure


def plot_pair(instance: InstanceLike, out: str | Path | None = None) -> Figure:
    """The curve T(kappa) of a gpu-sharing instance of two jobs (Theorem 1 of paper 003).

    Raises
    ------
    InputError
        The instance has not two jobs that meet, or the file cannot be written.
    """
    from schedgap.benchmarks.figures.gpu_sharing import pair_curve
    from schedgap.benchmarks.figures.style import save
    from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
    from schedgap.formulations.gpu_sharing.pair import pair_of

    problem, given = read_instance(instance)
    if not isinstance(given, GpuSharingInstance):
        raise InputError(f"instance: is of {problem.id}, not of gpu-sharing")
    figure = pair_curve(pair_of(given))
    if out is not None:
        check_ending(Path(out))
        check_writable(Path(out))
        save(figure, out)
    return figure


@dataclass(frozen=True)
class Drawn:
    """A solution in a picture: who made it (a method, or its file), and what the checker says of it."""

    maker: str
    solution: Solution
    report: CheckReport

    @classmethod
    def of(
        cls, problem: Problem, instance: Instance, solution: Solution, whole: Mapping[str, object] | None, source: str
    ) -> Drawn:
        """A solution from `source`, checked; `whole` is the object of ``solve --json`` that it was in, if it was."""
        report = checked(problem, instance, solution, source)
        return cls(str((whole or {}).get("method") or Path(source).stem), solution, report)


def _heading(problem: Problem, one: Drawn, best: float | None) -> str:
    """Who made it, its objective, and that as a multiple of the best beside it."""
    value = one.report.objective
    objective = "no objective" if value is None else f"{problem.objective_name} {number(float(value))}"
    unit = "" if value is None or problem.unit in problem.objective_name else f" {problem.unit}"
    told = f"{one.maker}: {objective}{unit}"
    if not one.report.feasible:
        return f"{told} (not feasible)"
    if value is None or not best or value == best:
        return told
    return f"{told} = {float(value) / best:.3g} \u00d7 {number(best)}"


def check_ending(out: Path) -> None:
    """Refuse a file name whose ending is not that of a figure."""
    if out.suffix.lower() not in ENDINGS:
        raise InputError(f"{out}: must end in {', '.join(ENDINGS)}")

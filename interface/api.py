"""The Python API: the same things as the command line, on any problem of the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.benchmarks.harness.warm import preload, warm_up
from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.method import Method
from schedgap.catalogue.methods import find_method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_problem, load_instance, parse_instance
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.reading import (
    InstanceLike,
    SolutionLike,
    as_instance,
    checked,
    feasible_start,
    name_of,
    outside_method,
    read_result,
    read_solution,
)
from schedgap.running import not_worse
from schedgap.solvers.result import Deadline, Incumbent, Result, SolveOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from schedgap.benchmarks.harness.compare import Comparison
    from schedgap.benchmarks.harness.progress import Sink
    from schedgap.benchmarks.harness.runner import Run
    from schedgap.benchmarks.hunt.result import Hunted
    from schedgap.benchmarks.ledger.ledger import Ledger


def problems() -> tuple[str, ...]:
    """Ids of all problems.

    Examples
    --------
    >>> "rar-ddls" in problems()
    True
    """
    return tuple(all_problems())


def methods(problem: str) -> tuple[Method, ...]:
    """The methods of a problem, in the order of ``schedgap list``; the first exact one is the default.

    Raises
    ------
    InputError
        There is no such problem.

    Examples
    --------
    >>> methods("rar-ddls")[0].id
    'cp'
    """
    return find_problem(problem).methods


def load(path: str | Path) -> Instance:
    """Read an instance file.

    Raises
    ------
    InputError
        The file cannot be read, is not JSON, or is not a valid instance; one line that names the place.
    """
    return load_instance(path)[1]


def parse(data: Mapping[str, Any], source: str = "instance") -> Instance:
    """Validate a decoded JSON object as an instance; `source` names it in error messages.

    Raises
    ------
    InputError
        One line: the source, the path in it, what is wrong and the value.
    """
    return parse_instance(data, source)[1]


def generate(problem: str, preset: str | None = None, seed: int = 0, **settings: Any) -> Instance:
    """A random instance; the same arguments always give the same one.

    Parameters
    ----------
    problem : its id
    preset : one of its presets; the first where not given
    seed : a whole number >= 0
    settings : options of the preset (``schedgap list`` shows them)

    Raises
    ------
    InputError
        An unknown problem, preset or option, or a value out of range.

    Examples
    --------
    >>> generate("rar-ddls", "contended", seed=1, jobs=2, singles=0).total_gpus
    6
    """
    from schedgap.benchmarks.instances import make_instance

    row = find_problem(problem)
    return make_instance(row, workload_of(row).presets[0].id if preset is None else preset, seed, settings)


def import_trace(
    form: str,
    files: str | Path | Sequence[str | Path],
    problem: str,
    throughputs: str | Path | None = None,
    **settings: Any,
) -> tuple[Instance, list[str]]:
    """An instance made of a trace of somebody else's format, and messages about what could not be used as it is.

    Parameters
    ----------
    form : the format, ``gavel``
    files : one file, or several in the order that the format wants
    problem : the problem whose instance is wanted
    throughputs : a file of measured rates, for formats that take one
    settings : options of the importer

    Raises
    ------
    InputError
        An unknown format or option, or a file that does not fit.
    """
    from schedgap.benchmarks.importers import import_instance

    paths = [files] if isinstance(files, str | Path) else list(files)
    return import_instance(find_problem(problem), form, paths, throughputs, settings)


def solve(
    instance: InstanceLike,
    method: str | None = None,
    *,
    time_limit: float | None = None,
    relative_gap: float = 0.0,
    seed: int = 0,
    threads: int | None = None,
    work_limit: float | None = None,
    start: SolutionLike | None = None,
    settings: Mapping[str, Any] | None = None,
    report: Incumbent | None = None,
    log: Callable[[str], None] | None = None,
) -> Result:
    """Solve an instance by one method.

    Parameters
    ----------
    instance : an instance, its JSON object, or the path of its file
    method : a method's id, or a user's ``package.module:function``; the strongest exact one where not given
    time_limit : seconds, building included, kept to within 10% + 1 s; no limit where not given
    relative_gap, seed, threads, work_limit : see :class:`~schedgap.solvers.result.SolveOptions`
    start : a feasible solution to start from; the answer is never worse
    settings : options of the method, as text or as values
    report : told of every new solution and bound
    log : receives the engine's log, line by line

    Returns
    -------
    Result
        With the objective that the independent checker computes. ``OPTIMAL`` only when objective = bound is
        proven.

    Raises
    ------
    InputError
        Bad input: an unknown method or option, a start that is not feasible.
    Disagreement
        An engine, the checker or a bound contradict each other; the instance is written to a file.

    Examples
    --------
    >>> solve(generate("rar-ddls", seed=1), "lpt-colocate").status.value in ("feasible", "optimal", "unknown")
    True
    """
    from schedgap.catalogue.run import run_method

    given = as_instance(instance)
    problem = find_problem(given.problem_id)
    chosen = problem.default_method() if method is None else find_method(problem, method)
    first: tuple[Solution, float] | None = None
    if start is not None:
        solution = read_solution(start, problem)
        first = solution, feasible_start(problem, given, solution, name_of(start, "start"))
    preload(problem, chosen)
    if time_limit is not None:
        warm_up(problem, chosen)
    options = SolveOptions(
        deadline=Deadline.after(time_limit),
        relative_gap=relative_gap,
        seed=seed,
        threads=threads,
        work_limit=work_limit,
        start=None if first is None else first[0],
        report=report,
        log=log,
    )
    began = time.monotonic()
    result = run_method(problem, given, chosen, options, settings)
    if result.seconds is None:
        result = replace(result, solve_seconds=time.monotonic() - began)
    return result if first is None else not_worse(problem, given, result, *first)


def compare(
    instance: InstanceLike,
    methods: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    repeat: int = 1,
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
    printed: bool = False,
    report: Incumbent | None = None,
) -> Comparison:
    """Several methods on one instance, side by side, each with its ratio and its guarantees.

    Parameters
    ----------
    instance : an instance, its JSON object, or the path of its file
    methods : ids; the strongest exact method and every heuristic where not given
    time_limit : seconds for each method
    seed, repeat : each heuristic runs with the seeds seed, ..., seed + repeat - 1
    threads : of exact methods
    settings : each option goes to every method that has it
    printed : every method runs with the settings that make it the algorithm its paper prints (``Method.printed``)
    report : told of every new solution and bound of the exact methods

    Raises
    ------
    InputError
        An unknown method, or an option that none of them has.
    Disagreement
        Two answers cannot both be true.

    Examples
    --------
    >>> print(compare(generate("rar-ddls", seed=1)).to_text())  # doctest: +SKIP
    """
    from schedgap.benchmarks.harness.compare import compare as side_by_side

    given = as_instance(instance)
    problem = find_problem(given.problem_id)
    chosen = None if methods is None else [find_method(problem, name) for name in methods]
    for method in chosen or ():
        preload(problem, method)
    if chosen is None:
        preload(problem, problem.default_method())
    if time_limit is not None:
        for method in chosen if chosen is not None else (problem.default_method(), *problem.heuristics()):
            warm_up(problem, method)
    options = SolveOptions(deadline=Deadline.after(time_limit), seed=seed, threads=threads, report=report)
    return side_by_side(problem, given, methods, options, settings, repeat, printed=printed)


def check(instance: InstanceLike, solution: SolutionLike) -> CheckReport:
    """Check a solution by exact rational arithmetic, independently of every model and heuristic.

    Returns
    -------
    CheckReport
        Every violated constraint with its numbers, and the recomputed objective. A schedule outside the model is
        judged by the checker of its method.

    Raises
    ------
    InputError
        The solution is malformed: an id the instance does not have, a wrong type, a missing part.
    """
    given = as_instance(instance)
    problem = find_problem(given.problem_id)
    bare, whole = read_result(solution, problem)
    return checked(problem, given, bare, name_of(solution, "solution"), outside_method(problem, bare, whole))


def verify(
    guarantees: Sequence[str] | None = None,
    *,
    instances: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Sink | None = None,
    workers: int | None = None,
) -> Ledger:
    """Try guarantees on many instances; every verdict is computed.

    Parameters
    ----------
    guarantees : ids; all where not given
    instances : how many for each
    seed : of all instances
    out : the directory for counterexample files and the ledger as ``ledger.json`` and ``ledger.html``;
        ``counterexamples`` where not given
    progress : a stream, or a function that is told whole lines
    workers : processes; all cores where not given

    Returns
    -------
    Ledger
        One row per guarantee.

    Raises
    ------
    InputError
        An unknown guarantee.
    Disagreement
        A heuristic beat a proven optimum, or the checker rejected a solution.
    """
    from schedgap.benchmarks.ledger.page import write_ledger
    from schedgap.benchmarks.ledger.verify import OUT
    from schedgap.benchmarks.ledger.verify import verify as run

    folder = OUT if out is None else Path(out)
    ledger = run(guarantees, instances=instances, seed=seed, out=folder, progress=progress, workers=workers)
    write_ledger(ledger, folder)
    return ledger


def hunt(
    target: str | Callable[..., Any],
    *,
    problem: str | None = None,
    limits: Mapping[str, Any] | None = None,
    budget: float | None = None,
    seed: int = 0,
    workers: int = 1,
    resume: bool = False,
    out: str | Path | None = None,
    progress: Sink | None = None,
) -> Hunted:
    """Search for the instance on which a heuristic is furthest from the optimum, or a claim nearest to failing.

    Parameters
    ----------
    target : a guarantee's id, ``PROBLEM/HEURISTIC``, ``PROBLEM/package.module:function``, or a heuristic of
        your own: a callable ``(instance, *, seed) -> solution``
    problem : of a callable
    limits : ``{"jobs": 4, "jobs.gpus": 2, "evaluations": 500}``, see docs/hunting.md
    budget : seconds; by counts where not given, and then the result depends on the seed alone
    seed, workers : of all randomness; processes (1 works in this one)
    resume : go on with the hunt in `out`
    out : its folder; ``hunts/<target>`` where not given
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Hunted
        ``value`` the ratio (or left/right), ``worst.data`` the shrunk instance, ``path`` its file, for ``compare``;
        ``defects`` a line for each instance on which parts of schedgap disagreed.

    Raises
    ------
    InputError
        Bad input, or a heuristic of your own that raised; the line names the instance.

    Examples
    --------
    >>> hunt("rar-ddls/ff", limits={"jobs": 3, "evaluations": 100}).value  # doctest: +SKIP
    """
    from schedgap.benchmarks.hunt.run import hunt as run

    return run(
        target,
        problem=problem,
        limits=limits,
        budget=budget,
        seed=seed,
        workers=workers,
        resume=resume,
        out=None if out is None else Path(out),
        progress=progress,
    )


def bench(
    suites: Sequence[str] = (),
    *,
    problems: Sequence[str | Problem] | None = None,
    out: str | Path = "results",
    workers: int | None = None,
    time_limit: float | None = None,
    seed: int | None = None,
    scale: float | None = None,
    resume: bool = False,
    progress: Sink | None = None,
) -> Run:
    """Run suites into a result store and write their report, as ``schedgap bench`` does.

    Parameters
    ----------
    suites : names; the quick suite where empty
    problems : only these, by id or as objects; all where not given
    out : the run's directory; a new one beside it where it holds a run already
    workers : processes; one per core where not given
    time_limit : seconds for each solve; the suites' own repeatable limits where not given
    seed, scale : of the instances, and factor on their number; 0 and 1 where not given
    resume : go on with the run in `out`
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Run
        Its tables as text, the path of the report, and what came out.
    """
    from schedgap.benchmarks.harness.runner import run_suites

    return run_suites(
        list(suites),
        problems=problems,
        out=Path(out),
        workers=workers,
        time_limit=time_limit,
        seed=seed,
        scale=scale,
        resume=resume,
        progress=progress,
    )


def plot(
    instance: InstanceLike,
    solution: SolutionLike,
    out: str | Path | None = None,
    *,
    compare: Sequence[SolutionLike] = (),
) -> Figure:
    """The problem's figure of a solution (a Gantt chart, say), saved where `out` is given.

    Parameters
    ----------
    instance, solution : what is drawn
    out : a file ending in .svg, .png or .pdf
    compare : further solutions of the instance, drawn below it on the same time axis

    Returns
    -------
    The matplotlib Figure.

    Raises
    ------
    InputError
        A malformed solution, or another ending.
    """
    from schedgap.figures import Drawn, draw

    given = as_instance(instance)
    problem = find_problem(given.problem_id)
    drawn = []
    for number, one in enumerate([solution, *compare], 1):
        chosen, whole = read_result(one, problem)
        source = name_of(one, f"solution {number}" if compare else "solution")
        drawn.append(Drawn.of(problem, given, chosen, whole, source))
    return draw(problem, given, drawn, None if out is None else Path(out))


def export(instance: InstanceLike, out: str | Path, form: str = "mps") -> None:
    """Write the declarative model of an instance to a file.

    Parameters
    ----------
    instance : an instance, its JSON object, or the path of its file
    out : the file
    form : "mps" or "lp"

    Raises
    ------
    InputError
        Another format, or a file that cannot be written.
    """
    from schedgap.exporting import write_model

    given = as_instance(instance)
    write_model(find_problem(given.problem_id), given, Path(out), form)

"""The Python API: the same things as the command line, on any problem of the table."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from schedgap.benchmarks.descriptors import Method, Problem
from schedgap.benchmarks.methods import default_method, find_method
from schedgap.benchmarks.problems import PROBLEMS, find_problem, load_instance, parse_instance
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Instance, Solution, read_json
from schedgap.formulations.common.numbers import better
from schedgap.solvers.result import Deadline, Incumbent, Result, SolveOptions, Status, Termination

if TYPE_CHECKING:
    from schedgap.benchmarks.evaluate import Comparison
    from schedgap.benchmarks.runner import Run

InstanceLike = Instance | Mapping[str, Any] | str | Path
"""An instance, its JSON object, or the path of its file."""
SolutionLike = Mapping[str, Any] | str | Path
"""A bare solution object, the whole object that ``solve --json`` prints, or the path of a file with either."""


def problems() -> tuple[str, ...]:
    """Ids of all problems.

    Examples
    --------
    >>> "rar-ddls" in problems()
    True
    """
    return tuple(PROBLEMS)


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
    from schedgap.benchmarks.generators import make_instance

    row = find_problem(problem)
    return make_instance(row, row.presets[0].id if preset is None else preset, seed, settings)


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
    from schedgap.benchmarks.single import run_method

    given = _instance(instance)
    problem = find_problem(given.problem_id)
    chosen = default_method(problem) if method is None else find_method(problem, method)
    first: tuple[Solution, float] | None = None
    if start is not None:
        solution = read_solution(start, problem)
        source = str(start) if isinstance(start, str | Path) else "start"
        first = solution, feasible_start(problem, given, solution, source)
    preload(problem, chosen)
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
    return result if first is None else _not_worse(problem, given, result, *first)


def preload(problem: Problem, method: Method) -> None:
    """Import what `method` needs, so that a time limit does not pay for it.

    Raises
    ------
    EngineMissing
        The method's engine is not installed, or does not load here.
    """
    from schedgap.benchmarks.descriptors import Kind, resolve
    from schedgap.benchmarks.methods import is_users

    resolve(problem.checker)
    resolve(problem.lower_bound)
    if method.kind is Kind.ENGINE:
        from schedgap.solvers import declarative  # noqa: F401
        from schedgap.solvers.engines import engine

        engine(method.function)
        resolve(problem.model)
    elif not is_users(method.id):
        _ = method.call


def feasible_start(problem: Problem, instance: Instance, solution: Solution, source: str) -> float:
    """The objective of a start; one that the checker rejects is bad input.

    Raises
    ------
    InputError
        Malformed, or not feasible: the line names the first violated constraint.
    """
    report = checked(problem, instance, solution, source)
    if report.violations:
        raise InputError(f"{source}: not a feasible start: {report.violations[0].message}")
    if report.objective is None:
        raise InputError(f"{source}: not a feasible start: it has no objective")
    return float(report.objective)


def _not_worse(problem: Problem, instance: Instance, result: Result, solution: Solution, objective: float) -> Result:
    """The result, or the start where that is better than what was found."""
    if result.status in (Status.INFEASIBLE, Status.UNBOUNDED):
        from schedgap.benchmarks.agreement import write_disagreement

        path = write_disagreement(instance)
        raise Disagreement(
            f"the start has objective {objective:.9g}, but the instance is claimed {result.status}; it is in {path}"
        )
    if result.objective is not None and not better(objective, result.objective, problem.sense):
        return result
    info = {**result.info, "solution_from": "start"}
    return replace(result, status=Status.FEASIBLE, objective=objective, solution=solution, info=info)


def compare(
    instance: InstanceLike,
    methods: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    repeat: int = 1,
    threads: int | None = None,
    settings: Mapping[str, Any] | None = None,
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
    from schedgap.benchmarks.evaluate import compare as side_by_side

    given = _instance(instance)
    problem = find_problem(given.problem_id)
    chosen = None if methods is None else [find_method(problem, name) for name in methods]
    for method in chosen or ():
        preload(problem, method)
    if chosen is None:
        preload(problem, default_method(problem))
    options = SolveOptions(deadline=Deadline.after(time_limit), seed=seed, threads=threads)
    return side_by_side(problem, given, methods, options, settings, repeat)


def check(instance: InstanceLike, solution: SolutionLike) -> CheckReport:
    """Check a solution by exact rational arithmetic, independently of every model and heuristic.

    Returns
    -------
    CheckReport
        Every violated constraint with its numbers, and the recomputed objective.

    Raises
    ------
    InputError
        The solution is malformed: an id the instance does not have, a wrong type, a missing part.
    """
    given = _instance(instance)
    problem = find_problem(given.problem_id)
    source = str(solution) if isinstance(solution, str | Path) else "solution"
    return checked(problem, given, read_solution(solution, problem), source)


def checked(problem: Problem, instance: Instance, solution: Solution, source: str) -> CheckReport:
    """The checker's report; what is malformed is told with `source`, the file it came from.

    Raises
    ------
    InputError
        The solution is malformed.
    """
    try:
        return problem.check(instance, solution)
    except InputError as error:
        raise InputError(f"{source}: {str(error).removeprefix('solution: ')}") from None


def verify(
    guarantees: Sequence[str] | None = None,
    *,
    instances: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Any:
    """Try guarantees on many instances; every verdict is computed.

    Parameters
    ----------
    guarantees : ids; all where not given
    instances : how many for each
    seed : of all instances
    out : the directory for counterexample files
    progress : told of progress, line by line

    Returns
    -------
    One row of the ledger per guarantee.
    """
    from schedgap.benchmarks.verify import verify as run

    return run(guarantees, instances=instances, seed=seed, out=None if out is None else Path(out), progress=progress)


def bench(
    suites: Sequence[str] = (),
    *,
    out: str | Path = "results",
    workers: int | None = None,
    time_limit: float | None = None,
    seed: int | None = None,
    scale: float | None = None,
    resume: bool = False,
    progress: TextIO | None = None,
) -> Run:
    """Run suites into a result store and write their report, as ``schedgap bench`` does.

    Parameters
    ----------
    suites : names; the quick suite where empty
    out : the run's directory; a new one beside it where it holds a run already
    workers : processes; one per core where not given
    time_limit : seconds for each solve; the suites' own repeatable limits where not given
    seed, scale : of the instances, and factor on their number; 0 and 1 where not given
    resume : go on with the run in `out`
    progress : where progress lines go

    Returns
    -------
    Run
        Its tables as text, the path of the report, and what came out.
    """
    from schedgap.benchmarks.runner import run_suites

    return run_suites(
        list(suites),
        out=Path(out),
        workers=workers,
        time_limit=time_limit,
        seed=seed,
        scale=scale,
        resume=resume,
        progress=progress,
    )


def plot(instance: InstanceLike, solution: SolutionLike, out: str | Path | None = None) -> Any:
    """The problem's figure of a solution (a Gantt chart, say), saved where `out` is given.

    Parameters
    ----------
    instance, solution : what is drawn
    out : a file ending in .svg, .png or .pdf

    Returns
    -------
    The matplotlib Figure.

    Raises
    ------
    InputError
        A malformed solution, or another ending.
    """
    from schedgap.figures import draw

    given = _instance(instance)
    problem = find_problem(given.problem_id)
    chosen = read_solution(solution, problem)
    checked(problem, given, chosen, str(solution) if isinstance(solution, str | Path) else "solution")
    return draw(problem, given, chosen, None if out is None else Path(out))


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

    given = _instance(instance)
    write_model(find_problem(given.problem_id), given, Path(out), form)


def read_solution(solution: SolutionLike, problem: Problem, text: str | None = None) -> Solution:
    """The bare solution object in `solution`: bare itself, or inside the object that ``solve --json`` prints.

    Parameters
    ----------
    solution : the object, or the path of its file
    problem : whose solution is expected
    text : the file's content, where it was read already (standard input)

    Raises
    ------
    InputError
        Not JSON, not an object, of another problem, or a result without a solution.
    """
    return read_result(solution, problem, text)[0]


def read_result(
    solution: SolutionLike, problem: Problem, text: str | None = None
) -> tuple[Solution, Mapping[str, Any] | None]:
    """As :func:`read_solution`, with the whole object of ``solve --json`` where it was one."""
    source = str(solution) if isinstance(solution, str | Path) else "solution"
    data = read_json(solution, text) if isinstance(solution, str | Path) else solution
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: a solution must be a JSON object, got {type(data).__name__}")
    if not ("solution" in data and "status" in data):
        return dict(data), None
    if data.get("problem", problem.id) != problem.id:
        raise InputError(f"{source}: problem: is {data['problem']!r}, the instance is of {problem.id}")
    inner = data["solution"]
    if inner is None:
        raise InputError(f"{source}: solution: is null (status {data['status']}), there is nothing to check")
    if not isinstance(inner, Mapping):
        raise InputError(f"{source}: solution: must be a JSON object, got {type(inner).__name__}")
    return dict(inner), data


def _instance(instance: InstanceLike) -> Instance:
    if isinstance(instance, Instance):
        return instance
    return load(instance) if isinstance(instance, str | Path) else parse(instance)


def interrupted(
    problem: Problem, instance: Instance, best: Solution | None, bound: float | None, seconds: float
) -> Result:
    """The result of a run that Ctrl-C ended from outside the method: the best it had told of, scored by the checker.

    Parameters
    ----------
    best, bound : what the method reported last, or None
    seconds : since the start
    """
    objective = None
    if best is not None:
        report = problem.check(instance, best)
        objective = None if report.violations or report.objective is None else float(report.objective)
    found = objective is not None
    return Result(
        Status.FEASIBLE if found else Status.UNKNOWN,
        objective=objective,
        bound=bound,
        solution=best if found else None,
        termination=Termination.INTERRUPTED,
        solve_seconds=seconds,
    )

"""One method on one instance, or several beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from schedgap.benchmarks.records import Record
from schedgap.benchmarks.sweep.progress import SolveProgress
from schedgap.catalogue.agreement import kept, write_disagreement
from schedgap.catalogue.method import Kind
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_method, find_problem, method_settings
from schedgap.formulations.common.errors import Disagreement, InputError, RejectedSolution
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import better
from schedgap.interrupt import at_work
from schedgap.reading import InstanceLike, SolutionLike, feasible_start, name_of, read_instance, read_solution
from schedgap.solvers.incumbent import optimal
from schedgap.solvers.result import Deadline, Listener, Proof, Result, Status, Termination, clock
from schedgap.solvers.result import SolveOptions as SolveOptions

if TYPE_CHECKING:
    from schedgap.benchmarks.report.compare import Comparison
    from schedgap.benchmarks.sweep.progress import Sink


def solve(
    instance: InstanceLike,
    method: str | None = None,
    *,
    time_limit: float | None = None,
    relative_gap: float = 0.0,
    seed: int = 0,
    threads: int | None = None,
    work_limit: float | None = None,
    memory_limit: float | None = None,
    start: SolutionLike | None = None,
    settings: Mapping[str, object] | None = None,
    confirm: bool = True,
    report: Listener | None = None,
    log: Callable[[str], None] | None = None,
    progress: Sink | None = None,
) -> Result:
    """Solve an instance by one method.

    Parameters
    ----------
    instance : an instance, its JSON object, or the path of its file
    method : a method's id, or a user's ``package.module:function``; the strongest exact one where not given
    time_limit : seconds, building included, kept to within 10% + 1 s; no limit where not given
    memory_limit : GB that the method may take, the programs it starts included; three quarters of what is free where
        not given
    relative_gap, seed, threads, work_limit : see :class:`~schedgap.solvers.result.SolveOptions`
    start : a feasible solution to start from; the answer is never worse
    settings : options of the method, as text or as values
    confirm : have what the method proves confirmed by a certificate or by an engine of another make, where that takes
        no longer than the method did, or a second, and ends by the time limit; only ``Result.proof`` changes
    report : told of every new solution and bound
    log : receives the engine's log, line by line
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Result
        With the objective that the independent checker computes. ``OPTIMAL`` only when objective = bound is
        proven. Seconds, as the time limit, begin when the method is imported, and do not count compilation; what it
        imports only on the way counts. After Ctrl-C the best that was found, with ``Termination.INTERRUPTED``.

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
    options = SolveOptions(
        relative_gap=relative_gap,
        seed=seed,
        threads=threads,
        work_limit=work_limit,
        memory_limit=in_bytes(memory_limit),
        report=report,
        log=log,
    )
    return solve_record(
        instance,
        method,
        options,
        time_limit=time_limit,
        start=start,
        settings=settings,
        confirm=confirm,
        progress=progress,
    ).result


def solve_record(
    instance: InstanceLike,
    method: str | None = None,
    options: SolveOptions | None = None,
    *,
    time_limit: float | None = None,
    start: SolutionLike | None = None,
    settings: Mapping[str, object] | None = None,
    confirm: bool = True,
    progress: Sink | None = None,
) -> Record:
    """The result of :func:`solve` with what identifies the run. `options` are those of no time and no start."""
    from schedgap.catalogue.run import checker_of, load, run_method

    options = options or SolveOptions()
    problem, given = read_instance(instance)
    chosen = problem.default_method(given) if method is None else find_method(problem, method)
    own = method_settings(chosen, settings)
    shown = SolveProgress(problem.sense, chosen.id, progress, options.report)
    check = checker_of(problem, given)
    first: tuple[Solution, float] | None = None
    if start is not None:
        if chosen.kind is Kind.HEURISTIC:
            shown.say(f"schedgap: note: {chosen.id} makes no use of --start")
        solution = read_solution(start, problem)
        first = solution, feasible_start(problem, given, solution, name_of(start, "start"), check)
    load(problem, chosen)
    deadline = Deadline.after(time_limit)
    asked = replace(options, deadline=deadline, start=None if first is None else first[0], report=shown)
    began = clock()
    with shown, at_work():
        try:
            result = run_method(problem, given, chosen, asked, own, check=check)
        except RejectedSolution as error:
            raise RejectedSolution(f"{error}; see: {kept(error.solution, given, chosen.id)}", error.solution) from error
        except KeyboardInterrupt:
            best = first[0] if first is not None and shown.solution is None else shown.solution
            result = interrupted(problem, given, best, shown.bound, clock() - began)
        if result.seconds is None:
            result = replace(result, solve_seconds=clock() - began)
        if first is not None:
            result = not_worse(problem, given, result, *first)
        if confirm and result.proof is Proof.CLAIMED:
            with suppress(KeyboardInterrupt):  # what was proven stays, as it was claimed
                from schedgap.benchmarks.confirming import confirmed

                result = confirmed(problem, given, chosen, result, asked, check, shown.say)
    name = given.name or Path(name_of(instance, "")).stem.strip("<>")
    return Record(problem.id, chosen.id, own, asked.seed, name, given.content_hash(), result=result)


def in_bytes(memory_limit: float | None) -> int | None:
    """A memory limit in bytes, of one in GB (10^9 bytes).

    Raises
    ------
    InputError
        It is not a positive finite number.
    """
    if memory_limit is None:
        return None
    if isinstance(memory_limit, bool) or not isinstance(memory_limit, int | float) or not 0 < memory_limit < 1e9:
        raise InputError(f"memory limit: must be a positive and finite number of GB, got {memory_limit!r}")
    return max(1, round(memory_limit * 1e9))


def solved_text(record: Record, out: Path | None = None) -> str:
    """What ``solve`` prints for a person; `out` is the file that the solution was written to."""
    return record.to_text(find_problem(record.problem), out)


def compare(
    instance: InstanceLike,
    methods: Sequence[str] | None = None,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    repeat: int = 1,
    threads: int | None = None,
    memory_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    printed: bool = False,
    report: Listener | None = None,
    progress: Sink | None = None,
) -> Comparison:
    """Several methods on one instance, side by side, each with its ratio and its guarantees.

    No method's seconds hold an import or a compilation: before its clock each runs once on a tiny instance.

    Parameters
    ----------
    instance : an instance, its JSON object, or the path of its file
    methods : ids; the strongest exact method and every heuristic where not given
    time_limit : seconds for each method
    seed, repeat : each heuristic runs with the seeds seed, ..., seed + repeat - 1
    threads : number of threads of exact methods
    memory_limit : GB for each method, as of :func:`solve`
    settings : each option goes to every method that has it
    printed : every method runs with the settings that make it the algorithm its paper prints (``Method.printed``)
    report : told of every new solution and bound of the exact methods
    progress : a stream, or a function that is told whole lines

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
    from schedgap.benchmarks.report.compare import chosen_methods
    from schedgap.benchmarks.report.compare import compare as side_by_side
    from schedgap.benchmarks.sweep.warm import warm_once

    problem, given = read_instance(instance)
    with SolveProgress(problem.sense, "compare", progress, report) as shown:
        for method in chosen_methods(problem, given, methods):
            shown.title = f"compare, compiling for {method.id}"  # the first time after installation: up to minutes
            warm_once(problem, method, {})
        shown.title = "compare"
        options = SolveOptions(
            deadline=Deadline.after(time_limit),
            seed=seed,
            threads=threads,
            memory_limit=in_bytes(memory_limit),
            report=shown,
        )
        with at_work():
            return side_by_side(problem, given, methods, options, settings, repeat, printed=printed)


def not_worse(problem: Problem, instance: Instance, result: Result, solution: Solution, objective: float) -> Result:
    """The result, or the start where that is better than what was found."""
    if result.status in (Status.INFEASIBLE, Status.UNBOUNDED):
        path = write_disagreement(instance)
        raise Disagreement(
            f"the start has objective {objective:.9g}, but the instance is claimed {result.status}; it is in {path}"
        )
    if result.objective is not None and not better(objective, result.objective, problem.sense):
        return result
    found = replace(result, objective=objective, solution=solution, info={**result.info, "solution_from": "start"})
    if optimal(objective, result.bound, problem.sense):
        return replace(found, status=Status.OPTIMAL, termination=Termination.PROVEN)
    return replace(found, status=Status.FEASIBLE)


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
        objective = None if report.violations or report.objective is None else report.value
    found = objective is not None
    return Result(
        Status.FEASIBLE if found else Status.UNKNOWN,
        objective=objective,
        bound=bound,
        solution=best if found else None,
        termination=Termination.INTERRUPTED,
        solve_seconds=seconds,
    )

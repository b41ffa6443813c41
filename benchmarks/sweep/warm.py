"""Before a clock starts: what a method needs is imported and compiled, so that no time holds either."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.agreement import DISAGREEMENTS
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import Disagreement
from schedgap.solvers.engines import load_engines
from schedgap.solvers.result import SolveOptions, Termination

_warm: set[str] = set()
"""What this process has warmed."""


def warm_up(
    problem: Problem,
    method: Method,
    settings: Mapping[str, object] | None = None,
    disagreements: Path = DISAGREEMENTS,
) -> None:
    """Compile what `method` needs, or load it from the cache: run it on the first instance of the first preset.

    What an exact method may import on the way is imported: Ctrl-C in the midst of a native module's import makes an
    ImportError of it, and what was found would be lost.

    That takes about 0.1 s once everything is compiled. A method that only a suite knows is imported: it is plain
    Python. Raises KeyboardInterrupt: Ctrl-C came, also where the method itself noticed it and stopped.
    """
    from schedgap.catalogue.run import run_method

    if method.is_user_defined:
        return
    if method.kind is not Kind.HEURISTIC:
        load_engines()
    if not workload_of(problem).presets:
        return
    if method.id not in {known.id for known in problem.methods}:
        _ = method.call
        return
    preset = workload_of(problem).presets[0]
    instance = preset.generator(0, **preset.settings)
    problem.bound(instance)
    problem.warm_up(instance)
    options = SolveOptions(threads=1, work_limit=1.0)
    result = run_method(problem, instance, method, options, settings, disagreements=disagreements)
    if result.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt


def warm_once(
    problem: Problem, method: Method, settings: Mapping[str, object], disagreements: Path = DISAGREEMENTS
) -> None:
    """Warm this process for one kind of work, the first time it is asked to.

    Raises Disagreement: parts contradict each other already here. Any other failure is left to the work itself to tell.
    """
    name = repr((problem.id, method.id, sorted(settings.items())))
    if name in _warm:
        return
    _warm.add(name)
    try:
        warm_up(problem, method, settings, disagreements)
    except Exception as error:
        if isinstance(error, Disagreement):
            raise

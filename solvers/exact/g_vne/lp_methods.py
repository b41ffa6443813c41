"""The linear programs of g-vne as methods that give a bound and no rings: `mcf`, `augmented`, `columns-lp`."""

from __future__ import annotations

import time
from collections.abc import Callable

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.solvers.result import Result, SolveOptions, Status, Termination


def solve_mcf(instance: GVneInstance, options: SolveOptions) -> Result:
    """The multi-commodity flow LP, the relaxation of (12)-(19): a bound."""
    from schedgap.formulations.g_vne.relaxations import build_flows

    return _bound(lambda: build_flows(instance, augmented=False), options)


def solve_augmented(instance: GVneInstance, options: SolveOptions) -> Result:
    """The augmented LP of Rost and Schmid: a bound, equal to that of `mcf`."""
    from schedgap.formulations.g_vne.relaxations import build_flows

    return _bound(lambda: build_flows(instance, augmented=True), options)


def solve_columns_lp(instance: GVneInstance, options: SolveOptions) -> Result:
    """The LP over all rings that respect a job's own caps, enumerated: a bound, the capped one; tiny instances."""
    from schedgap.formulations.g_vne.relaxations import build_columns

    return _bound(lambda: build_columns(instance, relaxed=True), options)


def _bound(build: Callable[[], DeclarativeModel], options: SolveOptions) -> Result:
    """The optimum of a linear program as a bound, from its duals in exact arithmetic where those are known."""
    from schedgap.solvers.engines import engine
    from schedgap.solvers.engines.arrays import model_arrays
    from schedgap.solvers.engines.exact_bound import exact_bound
    from schedgap.solvers.engines.whole import whole_model

    began = time.monotonic()
    try:
        model = build()
    except ModelRefused as error:
        seconds, info = time.monotonic() - began, {"reason": str(error)}
        return Result(Status.UNKNOWN, termination=Termination.TOO_LARGE, solve_seconds=seconds, info=info)
    built = time.monotonic()
    bound = exact_bound(whole_model(model_arrays(model)), options.deadline)
    solver = engine("highs")
    return Result(
        Status.UNKNOWN,
        bound=bound,
        termination=Termination.FINISHED if bound is not None else Termination.TIME_LIMIT,
        build_seconds=built - began,
        solve_seconds=time.monotonic() - built,
        engine=solver.name,
        engine_version=solver.version(),
        info={"relaxation": True},
    )

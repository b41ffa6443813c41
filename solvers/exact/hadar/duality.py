"""P2 over enumerated schedules with its dual: prices, payoffs, and what duality says of them.

Idea: with all schedules written down, P2 is a small program; the dual of its relaxation is the paper's P3. Source:
paper 002, (2) to (3a), as printed. Guarantee: exact up to 20,000 schedules; strong duality and complementary slackness
are measured, not assumed.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import agrees
from schedgap.formulations.hadar.check import check
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import HadarSolution
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

if TYPE_CHECKING:
    from schedgap.formulations.common.layout import Key

SLACK = 1e-7
"""Relative to the largest utility: what products of a primal and a dual slack may be off by in floats."""


def solve_p2(instance: HadarInstance, options: SolveOptions) -> Result:
    """P2 (2) to (2c) over all schedules, on HiGHS, with LP(P2) and P3 (3), (3a) beside it.

    Returns
    -------
    Result; ``info["duality"]`` has the values of LP(P2) and P3, whether they are equal (strong duality), the largest
    product of a variable with the slack of its row (complementary slackness: 0), the prices by machine, type and slot
    and the payoffs by job. UNKNOWN with ``Termination.TOO_LARGE`` beyond 20,000 schedules.

    Notes
    -----
    Exponential: for tiny instances. Source: paper 002, (2) to (3a).
    """
    from schedgap.formulations.hadar.schedule_models import build_p2
    from schedgap.solvers.engines.declarative import solve_declarative

    began = time.monotonic()
    try:
        model = build_p2(instance)
    except ModelRefused as error:
        seconds, info = time.monotonic() - began, {"reason": str(error)}
        return Result(Status.UNKNOWN, termination=Termination.TOO_LARGE, solve_seconds=seconds, info=info)
    found = solve_declarative(
        lambda: model, "highs", options, lambda solution: check(instance, HadarSolution.parse(solution))
    )
    if found.status is Status.INFEASIBLE:
        return found
    report = duality(instance, options)
    facts = {} if report is None else {"duality": report}
    return replace(found, info={**found.info, **model.info, **facts})


def duality(instance: HadarInstance, options: SolveOptions) -> dict[str, Json] | None:
    """What LP(P2) and P3 say of each other; see :func:`solve_p2`. None where the limit comes first."""
    from schedgap.formulations.hadar.schedule_models import build_p2, build_p3, schedules_of

    primal_point, dual_point = (
        _values(program, options) for program in (build_p2(instance, relaxed=True), build_p3(instance))
    )
    if primal_point is None or dual_point is None:
        return None
    (followed, lp), (dual, p3) = primal_point, dual_point
    prices = {key: value for (family, key), value in dual.items() if family == "price"}
    payoffs = {str(key): value for (family, key), value in dual.items() if family == "payoff"}
    schedules = dict(zip((job.id for job in instance.jobs), schedules_of(instance), strict=True))
    devices = {(machine.id, kind): n for machine in instance.machines for kind, n in machine.gpus.items()}
    used: dict[Key, float] = dict.fromkeys(prices, 0.0)
    chosen = dict.fromkeys(schedules, 0.0)
    worst = 0.0
    for job, mine in schedules.items():
        for s, schedule in enumerate(mine, start=1):
            share = followed["choose", (job, s)]
            chosen[job] += share
            paid = sum(prices[key] * count for key, count in schedule.uses().items())
            worst = max(worst, share * (payoffs[job] + paid - schedule.worth))
            for key, count in schedule.uses().items():
                used[key] += share * count
    for pool, price in prices.items():
        assert isinstance(pool, tuple)
        worst = max(worst, price * (devices[str(pool[0]), str(pool[1])] - used[pool]))
    worst = max([worst, *(abs(payoffs[job]) * (1 - chosen[job]) for job in payoffs)])
    scale = max([1.0, *(schedule.worth for mine in schedules.values() for schedule in mine)])
    return {
        "LP(P2)": lp,
        "P3": p3,
        "strong duality": agrees(lp, p3) or abs(lp - p3) <= SLACK * scale,
        "largest complementary product": worst,
        "complementary slackness": worst <= SLACK * scale,
        "prices": [
            {"machine": key[0], "type": key[1], "slot": key[2], "price": price}
            for key, price in prices.items()
            if isinstance(key, tuple) and price > 0
        ],
        "payoffs": payoffs,
    }


def _values(model: DeclarativeModel, options: SolveOptions) -> tuple[dict[tuple[str, Key], float], float] | None:
    """The values of all variables by family and key, and the optimum; None where the limit comes first."""
    from schedgap.solvers.engines import engine

    assert model.layout is not None
    answer = engine("highs").solve(model, replace(options, start=None, report=None))
    if answer.objective is None and options.deadline.moment is not None:
        return None
    if answer.objective is None:
        raise RuntimeError(f"P2 and P3: HiGHS says {answer.status} of a linear program that has an optimum")
    values = answer.values or {}
    return {
        (family, key): float(values.get(variable, 0.0))
        for family, members in model.layout.variables.items()
        for key, variable in members.items()
    }, answer.objective

"""The paper's reformulations over an enumerated set of joint schedules: (10) to (13), and (14) to (16) with theta."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST, Solution
from schedgap.formulations.common.layout import Layout, RowFamily, Terms, VariableFamily
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.rar_ddls.durations import RhoHat, estimated_durations
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.models.joint_schedules import JointSchedule, joint_schedules
from schedgap.formulations.rar_ddls.schedule import quick_schedule

LIMIT = 20_000
"""The most joint schedules of a model here, unless another limit is given; each has one 0/1 variable per job."""


_LARGEST_COEFFICIENT = 2**53


Chosen = list[list[pulp.LpVariable]]  # x[k][j]


VARIABLES = {
    "choose": VariableFamily("job, schedule", "x_j^k: 1 where the job follows the schedule"),
    "makespan": VariableFamily("", "max_j T_j"),
    "none": VariableFamily("", "always 0: there is no schedule"),
}


ROWS = {
    "latest": RowFamily("(10)", "makespan >= x_j^k (a_j + rho_j - 1), summed over k"),
    "attained": RowFamily("(10)", "makespan <= the latest completion of the schedule"),
    "one": RowFamily("(11)", "sum_k x_j^k = 1"),
    "same": RowFamily("(12)", "x_j^k = x_i^k for all jobs i, j"),
    "gpu": RowFamily("(16)", "sum_j sum_k W_jg^k x_j^k <= theta, in whole numbers"),
    "no_schedule": RowFamily("", "none >= 1: the instance is infeasible, and so is the model"),
}


def build_reformulation(instance: RarDdlsInstance, *, limit: int = LIMIT, tighten: bool = True) -> DeclarativeModel:
    """Problem (10) to (13): choose one joint schedule y^k for all jobs, minimise max_j x_j^k (a_j + rho_j(y^k) - 1).

    The set Y has, of the schedules that complete no later than a quick feasible one (else the horizon), one of each
    class of equals, and none in which a job could start a slot earlier at nobody's cost; so it keeps an optimum.
    rho_j(y^k) is realised: it comes from the dynamics. The -1 is ours: slots are counted with both ends. Raises
    InputError: there are more than `limit` joint schedules, or they take too long to enumerate.

    Parameters
    ----------
    instance : a tiny instance
    limit : most joint schedules
    tighten : otherwise Y has one of each class of equal schedules of the whole horizon

    Returns
    -------
    DeclarativeModel, minimising, objective integral. Its optimum is the optimal makespan; without any schedule
    it is infeasible. ``info["schedules"]`` is |Y|.

    Notes
    -----
    |Y| grows exponentially with jobs and slots. Source: paper 000, section 5, equations (10) to (13).
    """
    quick = quick_schedule(instance) if tighten else None
    latest = instance.horizon if quick is None else quick[0]
    schedules = joint_schedules(instance, latest=latest, limit=limit, shifted=tighten)
    out, chosen = _choice(instance, "makespan, max_j T_j", len(schedules))
    makespan = out.variable("makespan", high=latest)
    out.objective([(makespan, 1.0)])
    for j, job in enumerate(instance.jobs):
        ends = [(x[j], -float(schedule.completion[j])) for x, schedule in zip(chosen, schedules, strict=True)]
        out.row("latest", (job.id,), [(makespan, 1.0), *ends], ">=", 0)
    if not tighten and chosen:
        latest_ends = [(x[0], -float(schedule.makespan)) for x, schedule in zip(chosen, schedules, strict=True)]
        out.row("attained", (), [(makespan, 1.0), *latest_ends], "<=", 0)
    return _model(out, chosen, schedules, tightened=tighten)


def build_theta(
    instance: RarDdlsInstance,  # a tiny instance
    theta: float | Fraction,  # slots
    *,
    # estimated duration of each job in slots, or "best" or "worst" (:func:`~..durations.estimated_durations`); None:
    # the realised rho_j(y^k) of each schedule
    rho_hat: RhoHat | None = None,
    u: float = 1.0,  # the estimates' largest overestimation, u >= 1
    limit: int = LIMIT,  # most joint schedules
) -> DeclarativeModel:
    """Problem (14) to (16): is there a joint schedule in which no GPU's execution time exceeds theta?

    sum_j sum_k x_j^k rho_hat_j(y^k) / u <= theta for every GPU, over the GPUs that j has in y^k; the objective
    is constant. Raises InputError: there are more than `limit` joint schedules, or an estimate is missing or not
    positive, or u < 1.

    Returns
    -------
    DeclarativeModel, feasible exactly when theta is at least theta* of ``smallest_theta``.

    Notes
    -----
    Source: paper 000, section 5, equations (14) to (16).
    """
    return _ThetaProblem(instance, rho_hat, u, limit).model(exact(theta) if isinstance(theta, float) else theta)


def smallest_theta(
    # instance, rho_hat, u, limit: as in ``build_theta``
    instance: RarDdlsInstance,
    feasible: Callable[[DeclarativeModel], bool],  # solves a model and says whether it is feasible
    *,
    rho_hat: RhoHat | None = None,
    u: float = 1.0,
    limit: int = LIMIT,
) -> Fraction | None:
    """theta*, the smallest theta for which (14) to (16) is feasible, by bisection.

    Raises InputError: as ``build_theta``.

    Returns
    -------
    theta* in slots, exactly: the bisection runs over the execution times that GPUs can have, the only values at
    which feasibility changes. None where no schedule keeps the horizon.

    Notes
    -----
    O(log |Y|) models. Source: paper 000, section 5, "the bisection method to find the minimum theta_u feasible".
    """
    problem = _ThetaProblem(instance, rho_hat, u, limit)
    values = sorted({max(times.values()) for times in problem.times})
    if not values or not feasible(problem.model(values[-1])):
        return None
    low, high = 0, len(values) - 1  # values[high] is feasible, values below low are not
    while low < high:
        middle = (low + high) // 2
        if feasible(problem.model(values[middle])):
            high = middle
        else:
            low = middle + 1
    return values[high]


class _ThetaProblem:
    """The schedules of (14) to (16), one for each distinct W, and the execution time of each GPU in it."""

    def __init__(self, instance: RarDdlsInstance, rho_hat: RhoHat | None, u: float, limit: int) -> None:
        if not 1 <= u <= LARGEST:
            raise InputError(f"u: must be at least 1 and finite, got {u}")
        estimates = None if rho_hat is None else tuple(map(exact, estimated_durations(instance, rho_hat)))
        # With realised durations, a schedule whose jobs start later can be the better one in (16).
        schedules = joint_schedules(
            instance, latest=instance.horizon, limit=limit, each_gpu=True, shifted=estimates is not None
        )
        distinct: dict[tuple[tuple[tuple[int, ...], ...], tuple[Fraction, ...]], JointSchedule] = {}
        for schedule in schedules:
            rho = tuple(Fraction(slots) for slots in schedule.duration) if estimates is None else estimates
            distinct.setdefault((schedule.gpus, tuple(value / exact(u) for value in rho)), schedule)
        self.instance = instance
        self.schedules = list(distinct.values())
        self.added = [added for _, added in distinct]  # W_jg^k by k and j, the same on each GPU of j
        self.times: list[dict[int, Fraction]] = []
        for gpus, added in distinct:
            times: dict[int, Fraction] = {}
            for mine, value in zip(gpus, added, strict=True):
                for g in mine:
                    times[g] = times.get(g, Fraction(0)) + value
            self.times.append(times)

    def model(self, theta: Fraction) -> DeclarativeModel:
        """(14) to (16) for this theta, rows multiplied to whole numbers."""
        out, chosen = _choice(self.instance, "-1 (14): only feasibility counts", len(self.schedules))
        out.objective([], constant=-1.0)
        whole = math.lcm(theta.denominator, *(value.denominator for added in self.added for value in added))
        largest = max([theta, *(value for times in self.times for value in times.values())])
        if largest * whole > _LARGEST_COEFFICIENT:
            raise InputError("theta, rho_hat and u have too many digits for a model in whole numbers")
        rows: dict[int, Terms] = {}
        for k, schedule in enumerate(self.schedules):
            for j, mine in enumerate(schedule.gpus):
                for g in mine:
                    rows.setdefault(g, []).append((chosen[k][j], float(self.added[k][j] * whole)))
        for gpu, terms in sorted(rows.items()):
            out.row("gpu", (gpu,), terms, "<=", float(theta * whole))
        return replace(_model(out, chosen, self.schedules, tightened=False), abstract=True)


def _choice(instance: RarDdlsInstance, goal: str, schedules: int) -> tuple[Layout, Chosen]:
    """The variables x_j^k with (11), every job follows one schedule, and (12), all the same one."""
    jobs = [job.id for job in instance.jobs]
    sets: dict[str, Sequence[str | int]] = {"job": jobs, "schedule": range(1, schedules + 1)}
    out = Layout(pulp.LpProblem("rar_ddls_reformulated", pulp.LpMinimize), VARIABLES, ROWS, goal, sets)
    chosen = [[out.variable("choose", j, k) for j in jobs] for k in range(1, schedules + 1)]
    if not chosen:
        out.row("no_schedule", (), [(out.variable("none", high=0), 1.0)], ">=", 1)
    for position, j in enumerate(jobs if chosen else ()):
        out.row("one", (j,), [(x[position], 1.0) for x in chosen], "==", 1)
    for k, x in enumerate(chosen, start=1):
        for (one, mine), (other, theirs) in pairwise(zip(jobs, x, strict=True)):
            out.row("same", (one, other, k), [(mine, 1.0), (theirs, -1.0)], "==", 0)
    return out, chosen


def _model(out: Layout, chosen: Chosen, schedules: Sequence[JointSchedule], *, tightened: bool) -> DeclarativeModel:
    def extract(value: Callable[[pulp.LpVariable], float]) -> Solution:
        return max(zip(chosen, schedules, strict=True), key=lambda pair: value(pair[0][0]))[1].solution

    def assign(solution: Solution) -> Mapping[pulp.LpVariable, float]:
        values = dict.fromkeys(out.family_of, 0.0)
        for x, schedule in zip(chosen, schedules, strict=True):
            if schedule.solution["start"] == solution["start"] and schedule.solution["placement"] == {
                j: dict(placed) for j, placed in solution["placement"].items()
            }:
                values.update(dict.fromkeys(x, 1.0))
                if "makespan" in out.variables:
                    values[out.variables["makespan"][()]] = float(schedule.makespan)
                return values
        return {}

    return DeclarativeModel(
        problem=out.problem,
        extract=extract,
        sense=MINIMISE,
        assign=assign,
        objective_is_integral=True,
        layout=out,
        tightened=tightened,
        info={"schedules": len(schedules)},
    )

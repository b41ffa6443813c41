"""The paper's reformulations over an enumerated set of joint schedules: (10) to (13), and (14) to (16) with theta."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST, Solution
from schedgap.formulations.common.layout import Layout, RowFamily, VariableFamily
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.models.rows import Terms
from schedgap.formulations.rar_ddls.rates import RhoHat, estimated_durations, rate_table
from schedgap.formulations.rar_ddls.schedule import quick_schedule

# The set of joint schedules y^1, ..., y^K of the paper's reformulation, enumerated for tiny instances.

NODES_PER_SCHEDULE = 200
LATEST = 100

History = tuple[int, ...]  # the jobs that a GPU has served, in order
Choice = tuple[tuple[History, int], ...]  # how many GPUs of each history


@dataclass(frozen=True)
class JointSchedule:
    """One schedule y^k of all jobs, with what the dynamics make of it."""

    solution: Solution  # start slots and placements
    completion: tuple[int, ...]  # (J,) the slot in which each job completes
    duration: tuple[int, ...]  # (J,) rho_j(y^k), slots from its start to its completion, both included
    gpus: tuple[tuple[int, ...], ...]  # (J,) G_j(y^k), the GPUs of each job, counted through the servers from 0

    @property
    def makespan(self) -> int:
        """max_j T_j."""
        return max(self.completion)


def joint_schedules(
    instance: RarDdlsInstance, *, latest: int, limit: int, each_gpu: bool = False, shifted: bool = True
) -> list[JointSchedule]:
    """Every schedule that completes within slots 1..latest, one of each class of equals.

    Two schedules are equal when they differ by a permutation of equal servers, of identical jobs, or of GPUs of
    one server that have served the same jobs. Raises InputError: there are more than `limit` schedules, or the search
    for them takes more than 200 `limit` nodes, or `latest` is more than 100 slots.

    Parameters
    ----------
    latest : last slot in which a job may complete
    limit : most schedules
    each_gpu : tell apart which GPUs of a server a job has (else the idle ones of lowest index)
    shifted : leave out schedules in which a job could start a slot earlier, on the same GPUs (where told apart)
        or the same numbers of GPUs, without lowering a rate there. For every schedule that is left out there is one
        that is kept, with the same placement and no later completion of any job.
    """
    if latest > LATEST:
        raise InputError(f"reformulation: {latest} slots, joint schedules are enumerated for at most {LATEST}")
    return _Enumeration(instance, latest, limit, each_gpu, shifted).run()


class _Enumeration:
    """Depth first over slots; in each slot over the jobs that may start in it."""

    def __init__(self, instance: RarDdlsInstance, latest: int, limit: int, each_gpu: bool, shifted: bool) -> None:
        self.instance = instance
        self.latest = latest
        self.limit = limit
        self.each_gpu = each_gpu
        self.shifted = shifted
        self.nodes = 0
        table = rate_table(instance)
        self.phi = table.phi.tolist()
        self.best = table.best_rate.tolist()
        self.sizes = [server.gpus for server in instance.servers]
        first = [0, *itertools.accumulate(self.sizes)]
        self.gpus_of = [range(low, high) for low, high in itertools.pairwise(first)]
        self.need = [job.gpus for job in instance.jobs]
        alike: dict[tuple[object, ...], int] = {}
        self.twin: list[int | None] = []
        for j, job in enumerate(instance.jobs):
            key = tuple(job.model_dump(exclude={"id"}).values())
            self.twin.append(alike.get(key))
            alike[key] = j
        jobs = len(instance.jobs)
        self.left = [job.iterations for job in instance.jobs]
        self.start = [0] * jobs
        self.end = [0] * jobs
        self.held: list[tuple[int, ...]] = [()] * jobs
        self.shares: list[dict[int, int]] = [{} for _ in range(jobs)]
        self.history: list[History] = [()] * first[-1]
        self.busy = [False] * first[-1]
        self.found: list[JointSchedule] = []

    def run(self) -> list[JointSchedule]:
        if min(self.best) > 0:
            self._slot(1, None)
        return self.found

    def _count(self) -> None:
        self.nodes += 1
        if self.nodes > NODES_PER_SCHEDULE * self.limit or len(self.found) > self.limit:
            raise InputError(
                f"reformulation: {len(self.need)} jobs on {len(self.sizes)} servers in {self.latest} slots "
                f"have more than {self.limit} joint schedules, or finding them takes too long"
            )

    def _running(self) -> list[int]:
        return [j for j, slot in enumerate(self.start) if slot and not self.end[j]]

    def _slot(self, t: int, before: _Slot | None) -> None:
        self._count()
        if all(self.end):
            self.found.append(self._schedule())
            return
        if self._hopeless(t):
            return
        for _ in self._starts(t, 0, before):
            self._pass(t)

    def _hopeless(self, t: int) -> bool:
        slots = self.latest - t + 1
        work = 0
        for j, remaining in enumerate(self.left):
            if not self.end[j]:
                least = -(-remaining // self.best[j])
                if least > slots:
                    return True
                work += least * self.need[j]
        return work > slots * len(self.busy)

    def _starts(self, t: int, j: int, before: _Slot | None) -> Iterator[None]:
        """Every way to start jobs j, j+1, ... in slot t; the state holds it while the caller looks."""
        if j == len(self.need):
            yield
            return
        yield from self._starts(t, j + 1, before)
        twin = self.twin[j]
        if self.start[j] or (twin is not None and not self.start[twin]):
            return
        for gpus in self._placements(j):
            self._count()
            shares = Counter(s for s, on_server in enumerate(self.gpus_of) for g in gpus if g in on_server)
            if self.shifted and before is not None and self._fits_before(j, gpus, shares, before):
                continue
            histories = [self.history[g] for g in gpus]
            for g in gpus:
                self.history[g] = (*self.history[g], j)
                self.busy[g] = True
            self.start[j], self.held[j], self.shares[j] = t, gpus, dict(shares)
            yield from self._starts(t, j + 1, before)
            self.start[j], self.held[j], self.shares[j] = 0, (), {}
            for g, history in zip(gpus, histories, strict=True):
                self.history[g] = history
                self.busy[g] = False

    def _placements(self, j: int) -> Iterator[tuple[int, ...]]:
        """GPU sets of job j, one of each class of equals, on what is idle now."""
        classes = [
            (self.sizes[s], tuple(sorted((self.history[g], self.busy[g]) for g in there)))
            for s, there in enumerate(self.gpus_of)
        ]
        twins = [max((r for r in range(s) if classes[r] == classes[s]), default=None) for s in range(len(classes))]

        def extend(s: int, left: int, chosen: list[Choice], gpus: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if left == 0 and s == len(twins):
                yield gpus
                return
            if s == len(twins):
                return
            idle = [g for g in self.gpus_of[s] if not self.busy[g]]
            twin = twins[s]
            for choice, taken in self._choices(idle, left):
                if twin is not None and choice > chosen[twin]:
                    continue
                yield from extend(s + 1, left - len(taken), [*chosen, choice], gpus + taken)

        yield from extend(0, self.need[j], [], ())

    def _choices(self, idle: list[int], most: int) -> Iterator[tuple[Choice, tuple[int, ...]]]:
        """Ways to take 0 to `most` of the idle GPUs of a server."""
        groups: dict[History, list[int]] = {}
        for g in idle:
            groups.setdefault(self.history[g] if self.each_gpu else (), []).append(g)
        keys = sorted(groups)
        for counts in itertools.product(*(range(len(groups[key]) + 1) for key in keys)):
            if sum(counts) <= most:
                taken = tuple(g for key, count in zip(keys, counts, strict=True) for g in groups[key][:count])
                yield tuple(zip(keys, counts, strict=True)), taken

    def _fits_before(self, j: int, gpus: tuple[int, ...], shares: Counter[int], before: _Slot) -> bool:
        """Whether job j could have run in the slot before as well, there lowering no rate."""
        if self.each_gpu:
            if any(before.busy[g] for g in gpus):
                return False
        elif any(sum(not before.busy[g] for g in self.gpus_of[s]) < share for s, share in shares.items()):
            return False
        rings = before.rings.copy()
        rings.update(s for s, share in shares.items() if share < self.need[j])
        return all(self._rate(i, rings) >= rate for i, rate in before.rates.items())

    def _rate(self, j: int, rings: Counter[int]) -> int:
        met = max((rings[s] for s, share in self.shares[j].items() if share < self.need[j]), default=0)
        rate: int = self.phi[j][len(self.shares[j])][met]
        return rate

    def _pass(self, t: int) -> None:
        """Run slot t, look at all that follows, and undo it."""
        running = self._running()
        rings = Counter(s for j in running for s, share in self.shares[j].items() if share < self.need[j])
        rates = {j: self._rate(j, rings) for j in running}
        slot = _Slot(self.busy.copy(), rings, rates)
        remaining = self.left.copy()
        for j, rate in rates.items():
            self.left[j] -= rate
            if self.left[j] <= 0:
                self.end[j] = t
                for g in self.held[j]:
                    self.busy[g] = False
        self._slot(t + 1, slot)
        for j in running:
            self.end[j] = 0
        self.left = remaining
        self.busy = slot.busy.copy()

    def _schedule(self) -> JointSchedule:
        jobs, servers = self.instance.jobs, self.instance.servers
        return JointSchedule(
            solution={
                "start": {job.id: self.start[j] for j, job in enumerate(jobs)},
                "placement": {
                    job.id: {servers[s].id: share for s, share in self.shares[j].items()} for j, job in enumerate(jobs)
                },
            },
            completion=tuple(self.end),
            duration=tuple(end - start + 1 for start, end in zip(self.start, self.end, strict=True)),
            gpus=tuple(self.held),
        )


@dataclass(frozen=True)
class _Slot:
    """What was there in a slot: busy GPUs, rings by server, rates of the running jobs."""

    busy: list[bool]
    rings: Counter[int]
    rates: dict[int, int]


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

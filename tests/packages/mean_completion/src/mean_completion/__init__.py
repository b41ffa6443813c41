"""Identical machines, jobs with release dates, mean completion time: a whole problem in one package.

The heuristic is the list of Chekuri, Motwani, Natarajan and Stein (SIAM J. Comput. 31, 2001): jobs in the order in
which they complete on one machine of speed m that may pause. Its ratio is at most 3 - 1/m; proof at `chekuri`.
"""

import heapq
import itertools
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np
import pulp
from pydantic import Field

from schedgap.benchmarks.figures.timeline import Timeline
from schedgap.catalogue.method import ENGINES, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.catalogue.workload import Preset, Workload
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.declarative import DeclarativeModel, Form
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Count, Instance, Part
from schedgap.formulations.common.layout import Layout, RowFamily, VariableFamily
from schedgap.heuristics.common.guarantee import Guarantee, at_most, not_applicable
from schedgap.solvers.result import Result, Status, Termination


class Job(Part):
    """A job: it may run from slot `release` on, for `length` slots without a pause."""

    release: Annotated[int, Field(ge=0, le=10**6)]
    length: Count


class ReleaseDates(Instance):
    """Identical machines and jobs with release dates; slot t lasts from t to t + 1."""

    problem_id: ClassVar[str] = "mean_completion"
    problem: Literal["mean_completion"]
    machines: Annotated[int, Field(ge=1, le=1000)]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1, max_length=100_000)]

    @property
    def horizon(self) -> int:
        """A slot by which all jobs of some optimal schedule have completed: the last release and all work after it."""
        return max(job.release for job in self.jobs) + sum(job.length for job in self.jobs)


def generate(seed: int, jobs: int = 5, machines: int = 2, longest: int = 6, spread: int = 8) -> ReleaseDates:
    """Jobs of 1 to `longest` slots, released in the first `spread` slots."""
    rng = np.random.default_rng(seed)
    drawn = zip(rng.integers(0, spread, jobs), rng.integers(1, longest + 1, jobs), strict=True)
    listed = [{"release": int(release), "length": int(length)} for release, length in drawn]
    name = f"mean_completion-{seed}"
    return ReleaseDates.parse({"problem": "mean_completion", "name": name, "machines": machines, "jobs": listed})


def check(instance, solution) -> CheckReport:
    """Judge a solution, whoever made it: every broken constraint, and the objective as an exact number."""
    start = solution.get("start")
    if not isinstance(start, list) or len(start) != len(instance.jobs) or not all(type(t) is int for t in start):
        raise InputError("solution: start: must be a list with a whole slot for every job")
    jobs = list(zip(instance.jobs, start, strict=True))
    wrong = [
        Violation("release", f"job {j}: starts in slot {t}, released in slot {job.release}")
        for j, (job, t) in enumerate(jobs)
        if t < job.release
    ]
    changes = sorted([(t, 1) for _, t in jobs] + [(t + job.length, -1) for job, t in jobs])
    for (slot, _), busy in zip(changes, itertools.accumulate(change for _, change in changes), strict=True):
        if busy > instance.machines:
            wrong.append(Violation("machines", f"slot {slot}: {busy} jobs run on {instance.machines} machines"))
            break
    return CheckReport(tuple(wrong), None if wrong else Fraction(sum(t + job.length for job, t in jobs), len(jobs)))


def on_one_fast_machine(instance) -> list[Fraction]:
    """Completions on one machine of speed m that may pause, by shortest remaining time: the least possible sum.

    O(n log n). A schedule on m machines, slot by slot side by side, is a schedule of this machine in which no job
    completes later; and shortest remaining time first is optimal there (Schrage 1968).
    """
    m, waiting, now = instance.machines, [], Fraction(0)
    ends = [Fraction(0)] * len(instance.jobs)
    order = sorted(range(len(instance.jobs)), key=lambda j: instance.jobs[j].release)
    for place, j in enumerate(order):
        now = max(now, Fraction(instance.jobs[j].release))
        heapq.heappush(waiting, (Fraction(instance.jobs[j].length, m), j))
        last = place + 1 == len(order)
        until = None if last else Fraction(instance.jobs[order[place + 1]].release)
        while waiting and (until is None or now < until):
            left, first = heapq.heappop(waiting)
            step = left if until is None else min(left, until - now)
            now += step
            if step < left:
                heapq.heappush(waiting, (left - step, first))
            else:
                ends[first] = now
    return ends


def lower_bound(instance) -> float:
    """The larger of two sums of completions: on one fast machine, and of every job alone."""
    alone = sum(job.release + job.length for job in instance.jobs)
    least = max(Fraction(alone), sum(on_one_fast_machine(instance)))
    return float(Fraction(-(-least // 1), len(instance.jobs)))  # completions are whole slots, so their sum is


def in_order(instance, order) -> list[int]:
    """Starts in which no job begins before one that stands earlier: as early as release and machines let it."""
    free, start, earliest = [0] * instance.machines, [0] * len(instance.jobs), 0
    for j in order:
        job = instance.jobs[j]
        earliest = max(earliest, job.release, heapq.heappop(free))
        start[j] = earliest
        heapq.heappush(free, earliest + job.length)
    return start


def listed(instance, *, seed: int):
    """The heuristic: jobs in the order in which they complete on one fast machine."""
    ends = on_one_fast_machine(instance)
    return {"start": in_order(instance, sorted(range(len(ends)), key=lambda j: (ends[j], j)))}


def chekuri(case):
    """The claim on one run: mean completion <= (3 - 1/m) OPT.

    Proof. Let C' be the completions on the fast machine, in whose order jobs are listed. Job j starts at the latest
    when all releases of jobs up to it have passed (they are at most C'_j) and the work of those before it is done, at
    most sum_{k < j} p_k / m later, since all machines are busy until then. All that work and p_j / m is done on the
    fast machine by C'_j. So C_j <= C'_j + (C'_j - p_j / m) + p_j. The sums of C' and of p are at most OPT. QED.
    """
    if case.objective is None or case.optimum is None:
        return not_applicable("needs a schedule and the optimum")
    return at_most(case.objective, (3 - 1 / case.instance.machines) * case.optimum)


GUARANTEE = Guarantee(
    "mean_completion-chekuri",
    "mean_completion",
    "Chekuri and others (2001)",
    "mean completion <= (3 - 1/m) OPT",
    "none",
    chekuri,
    "list",
    ratio_bound=lambda case: 3 - 1 / case.instance.machines,
)


VARIABLES = {"start": VariableFamily("job, slot", "1 where the job starts in the slot")}
ROWS = {
    "once": RowFamily("(1)", "sum_t start[j,t] = 1"),
    "busy": RowFamily("(2)", "sum of start[j,t'] over the jobs that run in the slot <= m"),
}


def model(instance, tighten: bool = False) -> DeclarativeModel:
    """The time-indexed program; its rows by name are what `schedgap model` prints."""
    named = Layout(pulp.LpProblem("mean_completion", pulp.LpMinimize), VARIABLES, ROWS, "mean completion")
    last, jobs = instance.horizon, range(len(instance.jobs))
    slots = [range(job.release, last - job.length + 1) for job in instance.jobs]
    start = {(j, t): named.variable("start", j, t) for j in jobs for t in slots[j]}
    for j in jobs:
        named.row("once", (j,), [(start[j, t], 1) for t in slots[j]], "==", 1)
    for slot in range(last):
        running = [
            start[j, t]
            for j, job in enumerate(instance.jobs)
            for t in range(slot - job.length + 1, slot + 1)
            if (j, t) in start
        ]
        if len(running) > instance.machines:
            named.row("busy", (slot,), [(one, 1) for one in running], "<=", instance.machines)
    ends = [((t + instance.jobs[j].length), one) for (j, t), one in start.items()]
    named.problem.setObjective(pulp.lpSum(end * one for end, one in ends) / len(jobs))

    def solution(value):
        return {"start": [max(slots[j], key=lambda t: value(start[j, t])) for j in jobs]}

    def values(solution):
        return {one: int(solution["start"][j] == t) for (j, t), one in start.items()}

    return DeclarativeModel(named.problem, solution, 1, values, layout=named, tightened=False)


def exhaustive(instance, options) -> Result:
    """The exact method: every order; some optimal schedule is the list schedule of the order of its starts."""
    if len(instance.jobs) > 8:
        raise InputError(f"jobs: every order is tried, so at most 8 jobs, got {len(instance.jobs)}")
    orders = itertools.permutations(range(len(instance.jobs)))
    lists = (in_order(instance, order) for order in orders)
    best = min(lists, key=lambda start: (sum(start), start))
    value = float(check(instance, {"start": best}).objective)
    return Result(Status.OPTIMAL, value, value, {"start": best}, Termination.PROVEN)


def functions():
    """The methods by id; imported when one is needed."""
    return {"exhaustive": exhaustive, "list": listed}


def draw(instance, solution):
    """The figure: machines over time, each job on the first that is free."""
    last = max(t + job.length for job, t in zip(instance.jobs, solution["start"], strict=True))
    chart, free = Timeline(instance.machines, 0.4, 0, float(last), unit="slots"), [0] * instance.machines
    for t, j in sorted((t, j) for j, t in enumerate(solution["start"])):
        m = next(k for k in range(instance.machines) if free[k] <= t)
        free[m] = t + instance.jobs[j].length
        chart.box(j, (t, free[m], m + 0.05, m + 0.95), f"job {j}")
    for m in range(instance.machines):
        chart.label(m, m + 1, f"machine {m}")
    return chart.figure


class Problem(ProblemOf[ReleaseDates]):
    """What schedgap knows of it."""

    id = "mean_completion"
    title = "identical machines with release dates, mean completion"
    source = "Chekuri, Motwani, Natarajan and Stein (2001)"
    sense = 1
    objective_name = "mean completion"
    unit = "slots"
    instance_class = ReleaseDates
    methods = (
        Method("exhaustive", "every order", Kind.EXACT, functions),
        Method("list", "in the order of one fast machine", Kind.HEURISTIC, functions),
        *ENGINES,
    )
    forms = (Form("time-indexed", "a start slot for each job", "ours", model, tightens=True),)

    def check(self, instance, solution):
        return check(instance, solution)

    def bound(self, instance):
        """A certified bound at any size."""
        return lower_bound(instance)

    def workload(self):
        return Workload(presets=(Preset("random", "five jobs on two machines", generate),), figure=lambda: draw)

    def guarantees(self):
        return (GUARANTEE,)


PROBLEM = Problem()

"""A whole problem in one file, for tests of what knows no problem: jobs on identical machines, makespan.

Its methods include ones that misbehave on purpose: they lie about the objective, break the instance, die, hang
or raise. A marker file in the folder that TOY_MARKS names counts the calls.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pulp
from pydantic import Field

from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.problem import ProblemOf
from schedgap.catalogue.workload import Batch, Preset, Workload
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Count, Instance, Solution
from schedgap.heuristics.common.guarantee import Case, Evaluation, Guarantee, at_most, not_applicable
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.solvers.result import Result, SolveOptions, Status, Termination


class ToyInstance(Instance):
    """Jobs of given lengths on identical machines; a job longer than `limit` makes it infeasible."""

    problem_id: ClassVar[str] = "toy"
    problem: Literal["toy"]
    machines: Count
    jobs: Annotated[tuple[Count, ...], Field(min_length=1)]
    limit: Count = 1000


def generate(
    seed: int, *, jobs: Annotated[int, Field(ge=1)] = 6, machines: Annotated[int, Field(ge=1)] = 2
) -> ToyInstance:
    """Random lengths from 1 to 9."""
    rng = np.random.default_rng(seed)
    lengths = [int(k) for k in rng.integers(1, 10, jobs)]
    return ToyInstance.parse({"problem": "toy", "name": f"toy-{seed}", "machines": machines, "jobs": lengths})


def check(instance: ToyInstance, solution: Solution) -> CheckReport:
    """The checker: a machine per job."""
    machines = solution.get("machine") if isinstance(solution, Mapping) else None
    if not isinstance(machines, list) or not all(isinstance(m, int) for m in machines):
        raise InputError("solution: machine: must be a list of whole numbers")
    violations = []
    if len(machines) != len(instance.jobs):
        violations.append(Violation("jobs", f"{len(machines)} machines named for {len(instance.jobs)} jobs"))
    for j, m in enumerate(machines):
        if not 0 <= m < instance.machines:
            violations.append(Violation("machine", f"job {j}: machine {m}, there are {instance.machines}"))
    if violations:
        return CheckReport(tuple(violations), None)
    loads = [sum(t for t, m in zip(instance.jobs, machines, strict=True) if m == k) for k in range(instance.machines)]
    return CheckReport((), Fraction(max(loads)))


def lower_bound(instance: ToyInstance) -> float:
    """The longest job, and the mean load rounded up."""
    return float(max(max(instance.jobs), -(-sum(instance.jobs) // instance.machines)))


def model(instance: ToyInstance) -> DeclarativeModel:
    """The assignment model."""
    problem = pulp.LpProblem("toy", pulp.LpMinimize)
    n, m = len(instance.jobs), instance.machines
    x = [[pulp.LpVariable(f"x_{j}_{k}", cat="Binary") for k in range(m)] for j in range(n)]
    top = pulp.LpVariable("top", 0, sum(instance.jobs), cat="Integer")
    problem += pulp.LpAffineExpression([(top, 1.0)])
    for j in range(n):
        problem += pulp.lpSum(x[j]) == 1
    for k in range(m):
        problem += pulp.lpSum(instance.jobs[j] * x[j][k] for j in range(n)) <= top

    def extract(value: Any) -> Solution:
        return {"machine": [max(range(m), key=lambda k: value(x[j][k])) for j in range(n)]}

    return DeclarativeModel(problem, extract, 1, objective_is_integral=True)


def size(instance: ToyInstance) -> int:
    """Nonzeros of the model."""
    return 2 * len(instance.jobs) * instance.machines


def brute(instance: ToyInstance, options: SolveOptions) -> Result:
    """Every assignment."""
    _mark("brute")
    if max(instance.jobs) > instance.limit:
        return Result(Status.INFEASIBLE, termination=Termination.PROVEN)
    every = itertools.product(range(instance.machines), repeat=len(instance.jobs))
    best = min(every, key=lambda machines: check(instance, {"machine": list(machines)}).objective)
    value = float(check(instance, {"machine": list(best)}).objective or 0)
    return Result(
        Status.OPTIMAL, value, value, {"machine": list(best)}, Termination.PROVEN, solve_seconds=0.001, engine="brute"
    )


def _greedy(instance: ToyInstance, order: list[int]) -> list[int]:
    loads = [0] * instance.machines
    machines = [0] * len(instance.jobs)
    for j in order:
        k = loads.index(min(loads))
        machines[j] = k
        loads[k] += instance.jobs[j]
    return machines


def listed(
    instance: ToyInstance,
    *,
    seed: int,
    machines: Annotated[int | None, Field(ge=1, description="use only that many machines")] = None,
) -> HeuristicRun:
    """List scheduling in input order; `machines` uses only that many."""
    _mark("list", instance.name[-1:])
    used = instance.model_copy(update={"machines": min(machines or instance.machines, instance.machines)})
    return HeuristicRun({"machine": _greedy(used, list(range(len(instance.jobs))))}, {"m": used.machines})


def shuffled(instance: ToyInstance, *, seed: int) -> HeuristicRun:
    """List scheduling in random order."""
    order = [int(j) for j in np.random.default_rng(seed).permutation(len(instance.jobs))]
    return HeuristicRun({"machine": _greedy(instance, order)})


def nothing(instance: ToyInstance, *, seed: int) -> HeuristicRun:
    """Finds nothing."""
    return HeuristicRun(None, {"reason": "does not try"})


def sometimes(instance: ToyInstance, *, seed: int) -> HeuristicRun:
    """List scheduling, but nothing at odd seeds."""
    return nothing(instance, seed=seed) if seed % 2 else HeuristicRun(listed(instance, seed=seed).solution, {"loss": 3})


def outside(instance: ToyInstance, *, seed: int) -> HeuristicRun:
    """A schedule the model does not allow: its objective is below the optimum."""
    half = sum(instance.jobs) / instance.machines / 2
    return HeuristicRun({"share": 0.5}, {"objective": half}, half)


def broken(instance: ToyInstance, *, seed: int) -> HeuristicRun:
    """A solution that the checker rejects."""
    return HeuristicRun({"machine": [instance.machines] * len(instance.jobs)})


def liar(instance: ToyInstance, options: SolveOptions) -> Result:
    """Claims one less than it has."""
    result = brute(instance, options)
    assert result.objective is not None
    return Result(Status.OPTIMAL, result.objective - 1, result.objective - 1, result.solution)


def too_good(instance: ToyInstance, options: SolveOptions) -> Result:
    """Claims that a list schedule is optimal."""
    machines = _greedy(instance, list(range(len(instance.jobs))))
    value = float(check(instance, {"machine": machines}).objective or 0)
    return Result(Status.OPTIMAL, value, value, {"machine": machines})


def no_solution(instance: ToyInstance, options: SolveOptions) -> Result:
    """Claims infeasibility."""
    return Result(Status.INFEASIBLE)


def deadly(instance: ToyInstance, *, seed: int) -> HeuristicRun:
    """Kills its process on instances whose seed is 2 modulo 3 (by name), or that have none, every time."""
    _mark("deadly", instance.name[-1:])
    number = instance.name.rpartition("-")[2]
    if not number.isdigit() or int(number) % 3 == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return listed(instance, seed=seed)


def deadly_once(instance: ToyInstance, *, seed: int) -> HeuristicRun:
    """Kills its process the first time it sees an instance, but for the one that workers are warmed on."""
    mark = Path(os.environ["TOY_MARKS"]) / f"once-{instance.name}"
    if instance.name != "toy-0" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return listed(instance, seed=seed)


def slow(instance: ToyInstance, *, seed: int) -> HeuristicRun:
    """Waits where so many have run before as the environment says: a sweep that does not end by itself."""
    _mark("slow")
    while _marks("slow") >= int(os.environ.get("TOY_HOLD", "1000000")):
        time.sleep(0.05)
    return listed(instance, seed=seed)


def raising(instance: ToyInstance, *, seed: int) -> HeuristicRun:
    """Raises."""
    raise ZeroDivisionError("on purpose")


def users(instance: ToyInstance, *, seed: int) -> Solution:
    """As a user writes it: the bare solution."""
    return {"machine": _greedy(instance, list(range(len(instance.jobs))))}


def users_bad(instance: ToyInstance, *, seed: int) -> Solution:
    """A user's heuristic with a mistake."""
    return {"machine": [0] * (len(instance.jobs) + 1)}


def users_raising(instance: ToyInstance, *, seed: int) -> Solution:
    """A user's heuristic that raises."""
    raise KeyError("gpus")


def users_text(instance: ToyInstance, *, seed: int) -> Any:
    """A user's heuristic that returns no solution object."""
    return {"machine": "first"}


def _marks(name: str) -> int:
    path = Path(os.environ.get("TOY_MARKS", "")) / name
    return len(path.read_text(encoding="utf-8")) if path.is_file() else 0


def _mark(name: str, what: str = "x") -> None:
    folder = os.environ.get("TOY_MARKS")
    if folder:
        with (Path(folder) / name).open("a", encoding="utf-8") as file:
            file.write(what)


def draw(instance: ToyInstance, solution: Solution) -> Any:
    """A bar per machine."""
    from schedgap.benchmarks.figures.style import new_figure

    figure = new_figure(4, 2)
    axes = figure.add_subplot()
    pairs = zip(instance.jobs, solution["machine"], strict=True)
    loads = [0] * instance.machines
    for length, machine in pairs:
        axes.barh(machine, length, left=loads[machine])
        loads[machine] += length
    return figure


def _graham(case: Case) -> float | None:
    return 2 - 1 / case.info["m"] if "m" in case.info else None


def _evaluate_graham(case: Case) -> Evaluation:
    bound = _graham(case)
    if case.objective is None or case.optimum is None or bound is None or case.info["m"] != case.instance.machines:
        return not_applicable("needs a schedule on all machines and the optimum")
    return at_most(case.objective, bound * case.optimum)


def _evaluate_false(case: Case) -> Evaluation:
    if case.objective is None or case.optimum is None:
        return not_applicable("needs the optimum")
    return at_most(case.objective, case.optimum)


def _evaluate_never(case: Case) -> Evaluation:
    return not_applicable("never applies")


GUARANTEES = (
    Guarantee(
        "toy-false", "toy", "nobody", "makespan <= OPT", "none", _evaluate_false, "list", ratio_bound=lambda case: 1.0
    ),
    Guarantee(
        "toy-graham",
        "toy",
        "Graham 1966",
        "makespan <= (2 - 1/m) OPT",
        "identical machines",
        _evaluate_graham,
        "list",
        "repaired",
        _graham,
    ),
    Guarantee("toy-never", "toy", "nobody", "x <= y", "impossible ones", _evaluate_never, "list"),
)


def _functions() -> Mapping[str, Function]:
    return {
        "brute": brute,
        "list": listed,
        "shuffled": shuffled,
        "liar": liar,
        "too-good": too_good,
        "no-solution": no_solution,
        "broken": broken,
        "nothing": nothing,
        "outside": outside,
        "deadly": deadly,
        "deadly-once": deadly_once,
        "raising": raising,
        "slow": slow,
        "sometimes": sometimes,
    }


def _heuristic(name: str, **more: Any) -> Method:
    return Method(name, name, Kind.HEURISTIC, _functions, **more)


ODD = {
    "liar": Method("liar", "lies", Kind.EXACT, _functions),
    "too-good": Method("too-good", "claims", Kind.EXACT, _functions),
    "no-solution": Method("no-solution", "claims", Kind.EXACT, _functions),
    **{
        name: _heuristic(name)
        for name in ("broken", "nothing", "deadly", "deadly-once", "raising", "slow", "sometimes")
    },
    "outside": _heuristic("outside", outside_model=True),
}


SUITES = (
    Batch("quick", "random", 6, exact=("brute",), heuristics=("list", "shuffled")),
    Batch("quick", "random", 2, exact=("brute",), heuristics=("list",), group="three", settings={"machines": 3}),
    Batch(
        "machines",
        "random",
        2,
        heuristics=("list",),
        settings={"machines": 3},
        method_settings={"list": ({"machines": 1}, {"machines": 2}, {"machines": 3})},
    ),
    Batch("deadly", "random", 6, exact=("brute",), heuristics=("deadly", "list")),
    Batch("once", "random", 3, heuristics=("deadly-once",)),
    Batch("raising", "random", 2, exact=("brute",), heuristics=("raising", "list")),
    Batch("wrong", "random", 4, exact=("brute", "too-good"), heuristics=("list",)),
    Batch("lie", "random", 4, exact=("brute", "liar"), heuristics=()),
    Batch("impossible", "random", 4, exact=("brute", "no-solution"), heuristics=()),
    Batch("slow", "random", 8, exact=("brute",), heuristics=("slow", "list")),
)


WORKLOAD = Workload(
    presets=(Preset("random", "random lengths", generate),),
    suites=SUITES,
    figure=lambda: draw,
)


class Toy(ProblemOf[ToyInstance]):
    """Jobs on identical machines."""

    id = "toy"
    title = "jobs on identical machines"
    source = "tests"
    sense = 1
    objective_name = "makespan"
    unit = "slots"
    instance_class = ToyInstance

    rows: tuple[Guarantee, ...] | None = None
    """Its claims; those of this module where None."""

    def __init__(self, methods: tuple[str, ...], guarantees: bool) -> None:
        if not guarantees:
            self.rows = ()
        self.methods = (
            Method("brute", "every assignment", Kind.EXACT, _functions),
            _heuristic("list"),
            _heuristic("shuffled"),
            *(replace(ODD[name]) for name in methods),
        )

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        return check(self.cast_instance(instance), solution)

    def model(self, instance: Instance) -> DeclarativeModel:
        return model(self.cast_instance(instance))

    def model_size(self, instance: Instance) -> int:
        return size(self.cast_instance(instance))

    def bound(self, instance: Instance) -> float | None:
        return lower_bound(self.cast_instance(instance))

    def guarantees(self) -> tuple[Guarantee, ...]:
        return GUARANTEES if self.rows is None else self.rows

    def workload(self) -> Workload:
        return WORKLOAD


def toy(*methods: str, guarantees: bool = True) -> Toy:
    """The problem, with some of the methods that misbehave."""
    return Toy(methods, guarantees)

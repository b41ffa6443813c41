"""What a heuristic and the optimum come to on the instances of a generator, exactly; the ratio as a function of n."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from schedgap.benchmarks.hunt.target import SEED, Judge, Target
from schedgap.benchmarks.proving import exact_value
from schedgap.catalogue.agreement import closed_by
from schedgap.catalogue.run import run_heuristic, run_method
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Instance, Json
from schedgap.solvers.result import Proof, SolveOptions, Status, Termination
from schedgap.tools.families.polynomials import Quotient, fit, quotient

MOST_DEGREE = 3
"""Largest degree of the values as functions of n."""


EVIDENCE = 2
"""Values beyond those that determine a polynomial that have to lie on it."""


@dataclass(frozen=True)
class Point:
    """One size."""

    n: int  # the size
    # objective, optimum: of the heuristic, and the proven optimum, by the problem's checker
    objective: Fraction
    optimum: Fraction
    proof: Proof  # how far the optimum is proven
    weight: int  # jobs (or tasks) of the instance: a mean times this is a sum

    def ratio(self, sense: int) -> Fraction:
        """At least 1."""
        return self.objective / self.optimum if sense > 0 else self.optimum / self.objective

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {"n": self.n, "objective": str(self.objective), "optimum": str(self.optimum), "proof": self.proof}


def point(judge: Judge, n: int, data: Mapping[str, Json], options: Mapping[str, Json]) -> Point | None:
    """The values at one size; None where the instance is not valid, the heuristic finds nothing, the optimum is not
    proven within the judge's work, one of them is 0, or something faults, which the judge tells."""
    try:
        instance = judge.target.problem.instance_class.parse({**data, "name": f"n-{n}"})
    except InputError:
        return None
    return judge.guarded(instance, lambda: _point(judge, n, instance, options))


def _point(judge: Judge, n: int, instance: Instance, options: Mapping[str, Json]) -> Point | None:
    problem, method = judge.target.problem, judge.target.method
    assert method is not None
    run = run_heuristic(problem, instance, method, SolveOptions(seed=SEED), options)
    if run.solution is None or run.info.get("outside_model"):
        return None
    objective = exact_value(problem, instance, run.solution)
    best = run
    if run.status is not Status.OPTIMAL:
        limits = SolveOptions(threads=1, work_limit=judge.work, seed=SEED)
        exact = problem.default_method(instance)
        best = run_method(problem, instance, exact, limits, disagreements=judge.disagreements)
    if best.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if best.status is not Status.OPTIMAL or best.solution is None:
        return None
    optimum = exact_value(problem, instance, best.solution)
    if problem.sense * (objective - optimum) < 0:
        if not closed_by(problem, objective, optimum):
            better = f"{float(objective):.12g} is better than the optimum {float(optimum):.12g}"
            raise Disagreement(f"{judge.target.id}: {better}")
        optimum = objective
    if not objective or not optimum:
        return None
    proof = (
        Proof.CERTIFIED if _certified(judge.target, instance, optimum, best.solution) else best.proof or Proof.CLAIMED
    )
    return Point(n, objective, optimum, proof, weight_of(instance.to_dict()))


def weight_of(data: Mapping[str, Json]) -> int:
    """How many jobs, or tasks, an instance has."""
    return len(data.get("jobs", data.get("tasks", ())))


def _certified(target: Target, instance: Any, value: Fraction, solution: Any) -> bool:
    """Whether a short certificate of this optimum is accepted by the checker of certificates."""
    from schedgap.solvers.certificates.linear import Rejected
    from schedgap.solvers.certificates.make import FEW, check, prove
    from schedgap.solvers.certificates.tree import Unproven

    try:
        verdict = check(instance, prove(instance, value, solution, FEW, sense=target.problem.sense))
    except (Rejected, Unproven):
        return False
    return verdict.bound is not None and closed_by(target.problem, value, verdict.bound)


@dataclass(frozen=True)
class Closed:
    """A ratio as a function of n that holds exactly at every point."""

    ratio: Quotient  # at least 1
    # objective, optimum: polynomials as text, each times the number of jobs where `summed`
    objective: str
    optimum: str
    summed: bool  # the values are means, and these are sums
    degree: int  # the larger of both degrees


def closed(points: Sequence[Point], sense: int) -> Closed | None:
    """The ratio in closed form; None where the values are no polynomials of n for which there is enough evidence."""
    most = min(MOST_DEGREE, len(points) - 1 - EVIDENCE)
    if most < 0:
        return None
    for summed in (False, True):
        weight = {p.n: p.weight if summed else 1 for p in points}
        objective = fit({p.n: p.objective * weight[p.n] for p in points}, most)
        optimum = fit({p.n: p.optimum * weight[p.n] for p in points}, most)
        if objective is not None and optimum is not None:
            ratio = quotient(*((objective, optimum) if sense > 0 else (optimum, objective)))
            return Closed(ratio, str(objective), str(optimum), summed, max(objective.degree, optimum.degree))
    return None

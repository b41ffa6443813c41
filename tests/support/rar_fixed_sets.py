"""Jobs with fixed GPU sets and unit times: the variant that Theorem 1 of paper 000 is about."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE


@dataclass(frozen=True)
class FixedSets:
    """Unit-time jobs, each on a given set of GPUs.

    Attributes
    ----------
    jobs : (J,) ids
    gpus : (J,) the GPUs of each job, counted from 0; two jobs that share one never run in the same slot
    """

    jobs: tuple[str, ...]
    gpus: tuple[frozenset[int], ...]


def reduced_instance(graph: nx.Graph[Any]) -> FixedSets:
    """The jobs of Theorem 1's reduction: one for each vertex, one GPU for each edge, used by both its ends.

    A schedule of makespan M is a colouring with M colours (slots are colours), so the optimal makespan is the
    chromatic number of the graph. A job has as many GPUs as its vertex has neighbours.

    Parameters
    ----------
    graph : undirected, without loops, with at least one vertex

    Returns
    -------
    FixedSets; ids are the vertices as text, in the graph's order.

    Raises
    ------
    InputError
        The graph has no vertex, a loop, or two vertices of the same text.

    Notes
    -----
    O(V + E). Source: paper 000, Theorem 1 (the printed hardness is about schedules with one fixed placement per
    job, not about placements that are free to choose).
    """
    names = [str(vertex) for vertex in graph]
    if not names:
        raise InputError("graph: has no vertex")
    if len(set(names)) < len(names):
        raise InputError("graph: two vertices have the same text")
    sets: dict[Hashable, set[int]] = {vertex: set() for vertex in graph}
    for gpu, (a, b) in enumerate(graph.edges()):
        if a == b:
            raise InputError(f"graph: vertex {a!s} has a loop")
        sets[a].add(gpu)
        sets[b].add(gpu)
    return FixedSets(tuple(names), tuple(frozenset(gpus) for gpus in sets.values()))


def build_fixed_sets(instance: FixedSets) -> DeclarativeModel:
    """Minimise the makespan of unit-time jobs on fixed GPU sets.

    x[j,t] = 1 when job j runs in slot t: every job once, every GPU at most once in a used slot, used slots first.
    As many slots as a greedy schedule needs; jobs that share GPUs pairwise (a clique found greedily) have the first
    slots in their order, which some optimal schedule does.

    Parameters
    ----------
    instance : jobs and their GPUs

    Returns
    -------
    DeclarativeModel, minimising, all 0/1; the solution is ``{"slot": {job: slot}}``.

    Notes
    -----
    O(T sum_j |GPUs of j|) nonzeros for T slots of the greedy schedule.
    """
    greedy = _greedy(instance.gpus)
    slots = range(1, max(greedy) + 1)
    problem = pulp.LpProblem("fixed_gpu_sets", pulp.LpMinimize)
    x = [{t: pulp.LpVariable(f"x_{j}_{t}", 0, 1, pulp.LpInteger) for t in slots} for j in range(len(instance.jobs))]
    used = {t: pulp.LpVariable(f"used_{t}", 0, 1, pulp.LpInteger) for t in slots}
    problem.setObjective(pulp.LpAffineExpression([(variable, 1.0) for variable in used.values()]))
    for mine in x:
        problem.addConstraint(pulp.LpAffineExpression([(v, 1.0) for v in mine.values()]) == 1)
    by_gpu: dict[int, list[int]] = {}
    for j, gpus in enumerate(instance.gpus):
        for g in sorted(gpus):
            by_gpu.setdefault(g, []).append(j)
    for t in slots:
        for j, gpus in enumerate(instance.gpus):
            if not gpus:
                problem.addConstraint(pulp.LpAffineExpression([(x[j][t], 1.0), (used[t], -1.0)]) <= 0)
        for jobs in by_gpu.values():
            terms = [(x[j][t], 1.0) for j in jobs]
            problem.addConstraint(pulp.LpAffineExpression([*terms, (used[t], -1.0)]) <= 0)
        if t + 1 in slots:
            problem.addConstraint(pulp.LpAffineExpression([(used[t + 1], 1.0), (used[t], -1.0)]) <= 0)
    clique = _clique(instance.gpus)
    for t, j in enumerate(clique, start=1):
        problem.addConstraint(pulp.LpAffineExpression([(x[j][t], 1.0)]) == 1)

    def extract(value: Callable[[pulp.LpVariable], float]) -> Solution:
        slot = {}
        for name, mine in zip(instance.jobs, x, strict=True):
            slot[name] = next(t for t, variable in mine.items() if value(variable) > 0.5)
        return {"slot": slot}

    def assign(solution: Solution) -> Mapping[pulp.LpVariable, float]:
        # Slots can be exchanged: those of the clique become the first ones, as the model asks.
        given: Mapping[str, int] = solution["slot"]
        order = dict.fromkeys(given[instance.jobs[j]] for j in clique)
        order.update(dict.fromkeys(sorted(given.values())))
        if len(order) > len(slots):
            return {}
        renamed = {old: new for new, old in enumerate(order, start=1)}
        slot = [renamed[given[name]] for name in instance.jobs]
        values = {variable: float(slot[j] == t) for j, mine in enumerate(x) for t, variable in mine.items()}
        return values | {variable: float(t <= len(order)) for t, variable in used.items()}

    return DeclarativeModel(problem=problem, extract=extract, sense=MINIMISE, assign=assign, objective_is_integral=True)


def _greedy(gpus: Sequence[frozenset[int]]) -> list[int]:
    """Slots of the jobs, those with most GPUs first, each in the first slot where its GPUs are free."""
    slot = [0] * len(gpus)
    taken: dict[int, set[int]] = {}
    for j in sorted(range(len(gpus)), key=lambda j: (-len(gpus[j]), j)):
        t = 1
        while taken.setdefault(t, set()) & gpus[j]:
            t += 1
        taken[t] |= gpus[j]
        slot[j] = t
    return slot


def _clique(gpus: Sequence[frozenset[int]]) -> list[int]:
    """Jobs that share GPUs pairwise, added greedily, those with most GPUs first."""
    clique: list[int] = []
    for j in sorted(range(len(gpus)), key=lambda j: (-len(gpus[j]), j)):
        if all(gpus[j] & gpus[other] for other in clique):
            clique.append(j)
    return clique

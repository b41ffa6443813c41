"""Algorithm 2 of paper 004: ring sizes from a linear program, rings from a second one, randomized rounding.

``lp-rs-mde-printed`` is the algorithm as published, which may overload servers and links; ``lp-rs-mde`` is repaired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.g_vne.instance import GVneInstance, in_ordinary_units
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.common.run import variant as under_another_name
from schedgap.solvers.column_generation import Column, GenerationLimits, GenerationStatus, SearchLimits, integer_master
from schedgap.solvers.exact.g_vne.subproblem import TOLERANCE, RingSubproblem
from schedgap.solvers.result import NO_DEADLINE, Deadline

# Each job's rings with the probabilities that randomized rounding draws them with, and what they load.

# The linear programs of Algorithm 2 by columns: solved, their rings already weighted, nothing left to decompose.


SOLVED = 1e-7
"""Value and bound of a solved program agree to this, relative: where utilities are below 1e-9 column generation, which
goes by absolute numbers, ends early."""
LEAST_WEIGHT = 1e-9
"""Weights up to this are rounding of the simplex method."""


@dataclass(frozen=True)
class Relaxation:
    """A solved linear program over rings."""

    subproblem: RingSubproblem  # rows of the master, and the way from columns to rings
    columns: tuple[Column, ...]  # all that were generated
    weights: Floats  # (columns,) of an optimal solution; of a feasible one where `complete` is False
    value: float  # the solution's utility
    bound: float | None  # on the program's optimum; None where nothing was priced in time
    complete: bool  # the program is solved to its optimum
    reduced: Floats  # (columns,) reduced costs, at most 0 for an optimal solution

    @cached_property
    def chi(self) -> Floats:
        """(J, K + 1) weight of each ring size of each job, chi of (13)."""
        table = np.zeros_like(self.subproblem.worth)
        for column, weight in zip(self.columns, self.weights, strict=True):
            if weight > LEAST_WEIGHT:
                table[column.group, column.payload.size] += weight
        return table

    @cached_property
    def utility_chi(self) -> Floats:
        """(J, K + 1) pi times chi."""
        worth = np.where(np.isfinite(self.subproblem.worth), self.subproblem.worth, 0.0)
        product: Floats = worth * self.chi
        return product

    @property
    def sizes(self) -> Ints:
        """(J,) the ring size with the largest pi chi, 0 where the program leaves the job out: Step 3."""
        best = self.utility_chi.argmax(axis=1)
        return np.where(self.chi.sum(axis=1) > LEAST_WEIGHT, best, 0).astype(np.int64)

    @property
    def workers(self) -> Floats:
        """(J,) workers of each job in the solution, q of the paper."""
        mass: Floats = self.chi @ np.arange(self.chi.shape[1], dtype=float)
        return mass


def relax(
    instance: GVneInstance,
    *,
    # only rings that keep the job's own cap floor(min_r C_r / l_r) on every server and use no link narrower than the
    # job's bandwidth; otherwise the augmented program of Rost and Schmid, whose value is that of the plain relaxation
    # of (12)-(19)
    capped: bool,
    sizes: Ints | None = None,  # (J,) the only ring size of each job, 0 for none; None: all
    start: Relaxation | None = None,  # a program over more sizes whose columns this one begins with
    deadline: Deadline = NO_DEADLINE,  # where it passes, the solution found so far is returned
) -> Relaxation:
    """Solve the linear program over rings that are embeddable job by job, or over all valid mappings."""
    subproblem = RingSubproblem(instance, capped=capped, sizes=sizes)
    master = subproblem.master()
    first: list[Column] = []
    known = np.zeros(0)
    if start is not None:
        kept = [i for i, c in enumerate(start.columns) if sizes is None or c.payload.size == sizes[c.group]]
        first = [subproblem.column(start.columns[i].payload) for i in kept]
        known = start.weights[kept]
        master.add(first)
    done = master.generate(subproblem.price_all, GenerationLimits(deadline))
    columns = done.columns
    weights = np.zeros(len(columns))
    solved = done.value is not None
    given = done.weights if solved else known
    weights[: len(given)] = np.maximum(given, 0.0)
    worth = np.array([column.objective for column in columns], dtype=float)
    reduced = np.array(
        [
            column.objective - float(done.master_duals[column.rows] @ column.values) - done.master_payoffs[column.group]
            for column in columns
        ]
    )
    value = float(worth @ weights) if len(columns) else 0.0
    near = done.bound is not None and done.bound - value <= SOLVED * abs(done.bound)
    complete = near and done.status is GenerationStatus.CONVERGED
    return Relaxation(subproblem, columns, weights, value, done.bound, complete, reduced)


Bools = NDArray[np.bool_]


def fits_alone(column: Column, capacity: Floats) -> bool:
    """Whether a ring fits the empty network."""
    return bool((column.values <= capacity[column.rows]).all())


@dataclass(frozen=True)
class Mixture:
    """The weighted rings M_i of all jobs."""

    columns: tuple[Column, ...]  # the rings with positive weight, job by job
    weights: Floats  # (columns,) probabilities; those of a job sum to at most 1
    capacity: Floats  # (I,) of servers' resources and links that rings can fill
    dropped: float  # weight of rings left out because they do not fit the empty network

    @classmethod
    def of(cls, relaxation: Relaxation, drop: bool) -> Mixture:
        """The rings of a solved program, optionally without those that fit not even alone."""
        capacity = np.array([row.upper for row in relaxation.subproblem.rows], dtype=float)
        chosen: list[tuple[Column, float]] = []
        dropped = 0.0
        for column, weight in zip(relaxation.columns, relaxation.weights, strict=True):
            if weight <= LEAST_WEIGHT:
                continue
            if drop and not fits_alone(column, capacity):
                dropped += float(weight)
            else:
                chosen.append((column, float(weight)))
        chosen.sort(key=lambda pair: pair[0].group)
        columns = tuple(column for column, _ in chosen)
        weights = np.array([weight for _, weight in chosen], dtype=float)
        totals = np.zeros(relaxation.subproblem.data.jobs)
        np.add.at(totals, [c.group for c in columns], weights)
        if len(columns):  # a sum above 1 is rounding of the simplex method
            weights = weights / np.maximum(1.0, totals[[c.group for c in columns]])
        return cls(columns, weights, capacity, dropped)

    @cached_property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """First and last + 1 column of each job that has some."""
        jobs = np.array([column.group for column in self.columns], dtype=np.int64)
        edges = np.flatnonzero(np.diff(jobs, prepend=-1)) if len(jobs) else np.zeros(0, dtype=np.int64)
        ends = np.append(edges[1:], len(jobs)) if len(jobs) else edges
        return tuple((int(a), int(b)) for a, b in zip(edges, ends, strict=True))

    @cached_property
    def _reach(self) -> Floats:
        """(jobs, rings) weights of each job's rings added up; infinite where a job has fewer."""
        width = max((last - first for first, last in self.groups), default=0)
        found = np.full((len(self.groups), width), np.inf)
        for row, (first, last) in zip(found, self.groups, strict=True):
            row[: last - first] = np.cumsum(self.weights[first:last])
        return found

    @cached_property
    def _packed(self) -> tuple[Ints, Ints, Floats]:
        """What each ring takes: where its entries begin, their rows and values, ring after ring."""
        counts = [len(column.rows) for column in self.columns]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *(column.rows for column in self.columns)])
        values = np.concatenate([np.zeros(0), *(column.values for column in self.columns)])
        return starts, rows.astype(np.int64), values

    @cached_property
    def utility(self) -> Floats:
        """(columns,) of each ring."""
        return np.array([column.objective for column in self.columns], dtype=float)

    @cached_property
    def load(self) -> Floats:
        """(columns, I) what each ring takes."""
        table = np.zeros((len(self.columns), len(self.capacity)))
        for place, column in enumerate(self.columns):
            table[place, column.rows] = column.values
        return table

    @property
    def value(self) -> float:
        """Expected utility of a rounding."""
        return float(self.utility @ self.weights) if len(self.columns) else 0.0

    def draw(self, rng: np.random.Generator) -> Ints:
        """One rounding: each job takes at most one of its rings, independently: Step 8."""
        place = (self._reach <= rng.random(len(self.groups))[:, None]).sum(axis=1)
        first, last = np.array(self.groups, dtype=np.int64).reshape(-1, 2).T
        chosen: Ints = (first + place)[first + place < last]
        return chosen

    def accepted(self, chosen: Ints) -> Ints:
        """Those of these rings, taken in this order, that fit what the ones before them leave."""
        taken: Ints = chosen[_fitting(chosen, *self._packed, self.capacity.copy())]
        return taken

    def draw_many(self, rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
        """Utilities (n,) and loads (n, I) of `count` roundings, as :meth:`draw` makes them."""
        utility, load = np.zeros(count), np.zeros((count, len(self.capacity)))
        for first, last in self.groups:
            place = np.searchsorted(np.cumsum(self.weights[first:last]), rng.random(count), side="right")
            taken = first + place < last
            rings = first + place[taken]
            utility[taken] += self.utility[rings]
            load[taken] += self.load[rings]
        return utility, load

    def share(self, chosen: Ints | Sequence[int]) -> Floats:
        """(I,) load over capacity; 0/0 is 0."""
        load: Floats = self.load[np.asarray(chosen, dtype=np.int64)].sum(axis=0)
        return shares(load, self.capacity)


@njit_cached
def _fitting(chosen: Ints, starts: Ints, rows: Ints, values: Floats, left: Floats) -> Bools:
    """Which of these rings fit what is left, one after the other; `left` is used up."""
    taken = np.ones(len(chosen), dtype=np.bool_)
    for n, ring in enumerate(chosen):
        for k in range(starts[ring], starts[ring + 1]):
            if not values[k] <= left[rows[k]]:
                taken[n] = False
        if taken[n]:
            for k in range(starts[ring], starts[ring + 1]):
                left[rows[k]] -= values[k]
    return taken


def shares(load: Floats, capacity: Floats) -> Floats:
    """Load over capacity; 0/0 is 0, and infinite where only the capacity is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(load > 0, load / capacity, 0.0)


# The factors beta and gamma of Theorem 8: by how much rounding overloads servers and links, at most, mostly.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Factors:
    """Factors on capacities, each row's as an array over the rows of the master."""

    printed: Floats  # (I,) Theorem 8's beta^r and gamma
    instance: Floats  # (I,) from the loads of the rings there are
    of_link: NDArray[np.bool_]  # (I,) whether the row is a link

    @property
    def summary(self) -> dict[str, float | None]:
        """The largest of each kind; None where no server (link) can be filled at all."""
        return {
            "beta_printed": _largest(self.printed[~self.of_link]),
            "gamma_printed": _largest(self.printed[self.of_link]),
            "beta_instance": _largest(self.instance[~self.of_link]),
            "gamma_instance": _largest(self.instance[self.of_link]),
        }


def _largest(values: Floats) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if len(finite) else None


def factors(subproblem: RingSubproblem, mixture: Mixture, sizes: Ints) -> Factors:
    """Both pairs of factors.

    Printed (Theorem 8): beta^r = 1 + epsilon sqrt(2 Delta^r log V) with Delta^r = max_u sum_i (C_i / d_i)^2, where a
    valid mapping of job i may put all kappa_i workers on a server u on which one fits, so C_i / d_i = kappa_i;
    gamma likewise over links with E, all kappa_i edges on one link. epsilon is the largest share of a capacity that
    a single worker (edge) asks for.

    Instance: with R_i the largest load of a row by one of the job's own weighted rings and A the rounding's load,
    Hoeffding's inequality gives P(A >= E A + sqrt(2 log(n) sum_i R_i^2)) <= n^-4, n being V or E. The factor is that
    load over the capacity, and at least 1.

    Parameters
    ----------
    subproblem, mixture : the program with fixed sizes and its weighted rings
    sizes : (J,) kappa
    """
    data = subproblem.data
    row_count = len(mixture.capacity)
    of_link = np.zeros(row_count, dtype=bool)
    of_link[subproblem.link_row[subproblem.link_row >= 0]] = True
    nodes, links = math.log(max(1, data.nodes)), math.log(max(1, len(data.tail)))
    logs = np.where(of_link, links, nodes)
    printed = np.ones(row_count)
    for r in range(data.capacity.shape[1]):
        asked = (data.demand[:, r] > 0) & (sizes > 0)
        takes = data.eligible & asked[:, None]
        spread = float((np.where(takes, sizes[:, None], 0.0) ** 2).sum(axis=0).max(initial=0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(takes, data.demand[:, r][:, None] / data.capacity[None, :, r], 0.0)
        rows = subproblem.node_row[:, r]
        printed[rows[rows >= 0]] = 1 + float(part.max(initial=0.0)) * math.sqrt(2 * spread * nodes)
    edges = (sizes > 1) & (data.job_bandwidth > 0)
    positive = data.bandwidth > 0
    if edges.any() and positive.any():
        usable = subproblem.wide & edges[:, None] & positive[None, :]
        spread = float((np.where(usable, sizes[:, None], 0.0) ** 2).sum(axis=0).max(initial=0.0))
        part = np.where(usable, data.job_bandwidth[:, None] / np.where(positive, data.bandwidth, 1.0)[None, :], 0.0)
        printed[of_link] = 1 + float(part.max(initial=0.0)) * math.sqrt(2 * spread * links)
    squares, mean = np.zeros(row_count), np.zeros(row_count)
    for first, last in mixture.groups:
        squares += mixture.load[first:last].max(axis=0) ** 2
        mean += mixture.weights[first:last] @ mixture.load[first:last]
    top = mean + np.sqrt(2 * logs * squares)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(top > 0, top / mixture.capacity, 0.0)
    return Factors(printed, np.maximum(1.0, own), of_link)


TRIES = 100
ALPHA = 1.0 / 3.0
NODES = 10_000
_SAME = 1e-9
_WORTH = ("objective", "lp", "lp_fixed", "lp_rings")
"""Keys of ``info`` in units of utility."""


@dataclass(frozen=True)
class Plan:
    """Steps 3 to 6: what is rounded."""

    first: Relaxation  # the program over all ring sizes (Step 3)
    second: Relaxation  # the program with the sizes fixed (Step 4); the first one again where they are not
    sizes: Ints  # (J,) kappa, 0 for jobs that the first program leaves out
    mixture: Mixture  # the weighted rings (Step 6)
    factors: Factors  # beta and gamma (Step 2)


def make_plan(
    instance: GVneInstance, *, lp: str = "capped", ring_sizes: str = "selected", deadline: Deadline = NO_DEADLINE
) -> Plan:
    """Solve both linear programs of Algorithm 2; see :func:`lp_rs_mde` for the options."""
    capped = lp == "capped"
    first = relax(instance, capped=capped, deadline=deadline)
    if ring_sizes == "selected":
        sizes = first.sizes
        second = relax(instance, capped=capped, sizes=sizes, start=first, deadline=deadline)
    else:
        second = first
        sizes = np.where(first.chi > 0, np.arange(first.chi.shape[1])[None, :], 0).max(axis=1).astype(np.int64)
    mixture = Mixture.of(second, drop=capped)
    return Plan(first, second, sizes, mixture, factors(second.subproblem, mixture, sizes))


def lp_rs_mde(
    instance: GVneInstance,
    *,
    seed: int = 0,
    variant: Annotated[
        Literal["no-violation", "vanilla", "mdk"],
        Field(
            description="vanilla: may overload, outside the model; no-violation; mdk: integer program over the rings"
        ),
    ] = "no-violation",
    tries: Annotated[int, Field(ge=1, le=10**6, description="most roundings, u_b")] = TRIES,
    lp: Annotated[
        Literal["capped", "augmented"],
        Field(description="rings that are embeddable alone, or Rost and Schmid's program as printed"),
    ] = "capped",
    ring_sizes: Annotated[
        Literal["selected", "free"], Field(description="one size per job by the first program, or all")
    ] = "selected",
    alpha: Annotated[float, Field(ge=0, le=1, description="part of a program's value that vanilla wants")] = ALPHA,
    target: Annotated[
        Literal["fixed", "first"],
        Field(description="the program whose part vanilla wants: with the sizes fixed, or over all of them"),
    ] = "fixed",
    beta: Annotated[
        Literal["printed", "instance"],
        Field(description="overload that vanilla allows: Theorem 8's, or by the rings' loads"),
    ] = "printed",
    nodes: Annotated[int, Field(ge=1, le=10**9, description="most nodes of mdk's search")] = NODES,
    deadline: Deadline = NO_DEADLINE,
) -> HeuristicRun:
    """LP-based ring selection and multi-dimensional resource embedding.

    A first linear program over all ring sizes chooses kappa_i = argmax pi_(i,k) chi_(i,k) for each job with positive
    weight; a second one, with these sizes only, gives each job rings with weights that sum to at most 1; each
    rounding lets every job take one of its rings with its weight as the probability, or none. Both programs are
    solved by columns, so their weighted rings need no decomposition, and one set of rings serves all resources.

    Parameters
    ----------
    variant : ``vanilla``: roundings until one has utility >= `alpha` times the value of `target` and loads
        within `beta` and gamma times the capacities, or the last one; it may overload servers and links, so it is
        outside the model. ``no-violation``: in each rounding jobs come in random order and a ring that does not fit
        what is left is refused; the best of all. ``mdk``: the best choice among all generated rings, an integer
        program
    tries : most roundings, u_b
    lp : ``capped``: over rings that keep the job's own caps floor(min_r C_r / l_r) and use no link narrower than
        its bandwidth; ``augmented``: Rost and Schmid's, as printed, whose rings may not be embeddable even alone
    ring_sizes : ``selected``, as printed; ``free``: one program over all sizes is rounded (ours)
    alpha : part of a program's value that ``vanilla`` wants
    target : which program: the second (``fixed``), or the first, whose value is at least the optimum; the paper says
        "(alpha, beta, gamma)-approximation", not of what
    beta : factors that ``vanilla`` allows: Theorem 8's (``printed``) or those of the rings at hand (``instance``)
    nodes : most nodes of ``mdk``'s search
    deadline : the best so far is returned when it passes

    Returns
    -------
    HeuristicRun
        ``bound``: the first program's bound, which is at least the optimum; of ``vanilla``, what the jobs are worth
        without capacities. ``info``: values of both programs,
        ``gamma`` (the largest ceil(q_i), Lemma 7) and ``largest_ring``, kappa by job, factors, ``tries`` made,
        ``server_share`` and ``link_share`` (largest load over capacity where it can exceed 1), ``outside_model``.

    Notes
    -----
    Corrections to the printed algorithm with ``lp = capped``: the ring sizes of job i go up to N_i, not up to q_i,
    which is no bound on them; rings that are not embeddable alone get no weight (Theorem 8 needs that). Paper 004,
    Algorithm 2; Rost and Schmid, IFIP Networking 2018; for the variants, Rost, Doehne and Schmid, CCR 49(1), 2019.
    """
    instance, unit = in_ordinary_units(instance)
    plan = make_plan(instance, lp=lp, ring_sizes=ring_sizes, deadline=deadline)
    rng = np.random.default_rng(seed)
    mixture = plan.mixture
    wanted = alpha * (plan.first if target == "first" else plan.second).value
    made = 0
    met: bool | None = None
    if variant == "vanilla":
        allowed = plan.factors.printed if beta == "printed" else plan.factors.instance
        chosen, made, met = _until(mixture, rng, tries, wanted, allowed, deadline)
        rings: list[Column] = [mixture.columns[place] for place in chosen]
    else:
        chosen, made = _without_violations(mixture, rng, tries, deadline)
        rings = [mixture.columns[place] for place in chosen]
        if variant == "mdk":
            rings = _knapsack(plan.second, rings, nodes, seed, deadline)
    info = _info(instance, plan, rings)
    info |= {"variant": variant, "tries": made, "stopped": "time limit" if deadline.passed else ""}
    if variant == "vanilla":
        info |= {"outside_model": True, "met": met}
    info |= {name: info[name] * unit for name in _WORTH}
    bound = _unlimited(instance) if variant == "vanilla" else plan.first.bound
    return HeuristicRun(_solution(plan, rings), info, None if bound is None else bound * unit)


lp_rs_mde_printed = under_another_name(
    lp_rs_mde,
    "lp-rs-mde-printed",
    "Algorithm 2 as published: Rost and Schmid's program, roundings until one is good enough, or the last one. It may "
    "overload servers and links, so it is outside the model. See :func:`lp_rs_mde`.",
    fixed={"variant": "vanilla", "lp": "augmented", "ring_sizes": "selected", "nodes": NODES},
)


def _unlimited(instance: GVneInstance) -> float:
    """What the jobs are worth where servers and links have no capacities: a bound on roundings that may overload."""
    return float(sum(max(0.0, *job.utility) for job in instance.jobs))


def _until(
    mixture: Mixture, rng: np.random.Generator, tries: int, wanted: float, allowed: Floats, deadline: Deadline
) -> tuple[Ints, int, bool]:
    """Steps 7 to 9: roundings until one is good enough; the last one, how many, and whether it is."""
    chosen = np.zeros(0, dtype=np.int64)
    for made in range(1, tries + 1):
        chosen = mixture.draw(rng)
        worth = float(mixture.utility[chosen].sum())
        if worth >= wanted - _SAME and bool((mixture.share(chosen) <= allowed + _SAME).all()):
            return chosen, made, True
        if deadline.passed:
            return chosen, made, False
    return chosen, tries, False


def _without_violations(mixture: Mixture, rng: np.random.Generator, tries: int, deadline: Deadline) -> tuple[Ints, int]:
    """The best of some roundings in which a ring that does not fit is refused, and how many were made."""
    best = np.zeros(0, dtype=np.int64)
    top = 0.0
    ceiling = float(sum(mixture.utility[a:b].max() for a, b in mixture.groups))
    for made in range(1, tries + 1):
        drawn = mixture.draw(rng)
        kept = mixture.accepted(drawn[rng.permutation(len(drawn))])
        worth = float(mixture.utility[kept].sum())
        if worth > top + _SAME:
            best, top = np.sort(kept), worth
        if deadline.passed or top >= ceiling - _SAME:
            return best, made
    return best, tries


def _knapsack(relaxation: Relaxation, rings: list[Column], nodes: int, seed: int, deadline: Deadline) -> list[Column]:
    """The best choice over all generated rings; those whose reduced cost rules them out are left out."""
    capacity = np.array([row.upper for row in relaxation.subproblem.rows], dtype=float)
    known = sum(column.objective for column in rings)
    spare = relaxation.value - known + 1e-6 * max(1.0, abs(known)) if relaxation.complete else np.inf
    held = {id(column.payload) for column in rings}
    pool = [
        column
        for column, reduced in zip(relaxation.columns, relaxation.reduced, strict=True)
        if id(column.payload) in held or (reduced >= -spare and column.objective > 0 and fits_alone(column, capacity))
    ]
    start = [place for place, column in enumerate(pool) if id(column.payload) in held]
    jobs = relaxation.subproblem.data.jobs
    limits = SearchLimits(nodes, deadline, seed=seed)
    found = [pool[place] for place in integer_master(pool, capacity, jobs, limits, start=start) or ()]
    return found if sum(column.objective for column in found) > known else rings


def _solution(plan: Plan, rings: list[Column]) -> Solution:
    ordered = sorted(rings, key=lambda column: column.group)
    return plan.second.subproblem.solution([column.payload for column in ordered])


def _info(instance: GVneInstance, plan: Plan, rings: list[Column]) -> dict[str, Any]:
    load = np.zeros(len(plan.mixture.capacity))
    for column in rings:
        load[column.rows] += column.values
    used = np.divide(load, plan.mixture.capacity, out=np.zeros_like(load), where=load > 0) * (1 + TOLERANCE)
    link = plan.factors.of_link
    return {
        "objective": float(sum(column.objective for column in rings)),
        "lp": plan.first.value,
        "lp_fixed": plan.second.value,
        "lp_rings": plan.mixture.value,
        "lp_complete": plan.first.complete and plan.second.complete,
        "sizes_in_lp": int((plan.first.chi > _SAME).sum(axis=1).max(initial=0)),
        "gamma": int(np.ceil(plan.first.workers - _SAME).max(initial=0)),
        "largest_ring": int(plan.first.subproblem.data.largest_ring.max(initial=0)),
        "kappa": {job.id: int(k) for job, k in zip(instance.jobs, plan.sizes, strict=True)},
        "q": {job.id: float(q) for job, q in zip(instance.jobs, plan.first.workers, strict=True)},
        "dropped": plan.mixture.dropped,
        "server_share": float(used[~link].max(initial=0.0)),
        "link_share": float(used[link].max(initial=0.0)),
        **plan.factors.summary,
    }

"""Branch and price over rings, and diving: rings of large weight are fixed a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.solvers.branch_and_price import BranchAndPrice
from schedgap.solvers.column_generation import (
    Column,
    Generated,
    GenerationLimits,
    GenerationStatus,
    Master,
    Priced,
    RowBounds,
)
from schedgap.solvers.exact.g_vne.pricing import Edge, Rules
from schedgap.solvers.exact.g_vne.subproblem import Embedding, RingSubproblem
from schedgap.solvers.neighbourhoods import Choice, RuinAndRecreate
from schedgap.solvers.result import Deadline, SolveOptions

# Diving: rings of large weight are fixed a few at a time, and the LP over what is left is solved again.

# Whole choices of rings: greedy completion at given prices, ruin and recreate.

Floats = NDArray[np.float64]

SLACK = 1e-12
"""Rounding of sums; row limits carry the checker's tolerance already."""
COOLING = 0.02
"""First temperature of the search over the mean worth of a job."""


class RingChoices(RuinAndRecreate[Column, Floats]):
    """Choices of rings that fit together.

    Parameters
    ----------
    subproblem : the rings, with their caps
    seed : of all randomness
    """

    def __init__(self, subproblem: RingSubproblem, seed: int) -> None:
        super().__init__(subproblem.data.jobs, False, seed)
        self.subproblem = subproblem
        self.limit = np.array([row.upper for row in subproblem.rows])

    def renew(self) -> None:
        """Take the rows of the subproblem over, after some were added."""
        self.limit = np.array([row.upper for row in self.subproblem.rows])

    def empty(self) -> Floats:
        """(rows,) zeros."""
        return np.zeros(len(self.limit))

    def change(self, load: Floats, group: int, item: Column, sign: int) -> None:
        """Add (+1) or take away (-1) a ring."""
        del group
        load[item.rows] += sign * item.values

    def fits(self, load: Floats, group: int, item: Column) -> bool:
        """Whether a ring is worth something and fits beside the others."""
        del group
        within = load[item.rows] + item.values <= self.limit[item.rows] * (1 + SLACK)
        return item.objective > 0 and bool(np.all(within))

    def best(self, load: Floats, group: int, prices: Floats) -> Column | None:
        """The best ring at the prices that fits beside the others."""
        ring = self.subproblem.best_fitting(group, self.limit - load, prices)
        return ring if ring is not None and self.fits(load, group, ring) else None

    def worth(self, group: int, item: Column) -> float:
        """The ring's utility."""
        del group
        return item.objective

    def order(self) -> list[int]:
        """Jobs that can have a ring, the largest utility first."""
        able = [j for j in range(self.groups) if self.subproblem.longest[j] > 0]
        return sorted(able, key=lambda j: -float(np.max(self.subproblem.worth[j])))

    def ruin(self, items: Sequence[Column | None]) -> tuple[list[int], Callable[[list[int]], list[int]]]:
        """A job and up to five others that use the same rows; they come back with at most four of the others."""
        removed = self._neighbours(items, int(self.rng.integers(1, max(2, min(7, self.groups + 1)))))

        def ordered(out: list[int]) -> list[int]:
            absent = [j for j in out if self.subproblem.longest[j] > 0]
            if len(absent) > len(removed) + 4:
                others = [j for j in absent if j not in removed]
                absent = [*removed, *self.rng.choice(others, size=4, replace=False).tolist()]
            self.rng.shuffle(absent)
            return absent

        return removed, ordered

    def perturbed(self, prices: Floats) -> Floats:
        """Every price times noise."""
        return prices * self.rng.uniform(0.0, 1.6)

    def accepts(self, loss: float, progress: float, start: Choice[Column], best: Choice[Column]) -> bool:
        """No loss, or one by the Metropolis rule at a temperature that falls to 0."""
        del best
        if loss <= 0:
            return True
        scale = COOLING * max(1e-9, start.worth / max(1, sum(item is not None for item in start.items)))
        return bool(self.rng.random() < np.exp(-loss / max(1e-12, scale * (1 - progress))))

    def _neighbours(self, items: Sequence[Column | None], count: int) -> list[int]:
        """A job and others that use the same rows."""
        taken = [j for j, item in enumerate(items) if item is not None]
        if not taken:
            return []
        seed = int(self.rng.choice(taken))
        first = items[seed]
        assert first is not None
        rows = set(first.rows.tolist())
        near = []
        for j in taken:
            item = items[j]
            if j != seed and item is not None and not rows.isdisjoint(item.rows.tolist()):
                near.append(j)
        self.rng.shuffle(near)
        return [seed, *near[: count - 1]]


Ints = NDArray[np.int64]

SHARE = 0.05
"""Of the jobs that are left, so many are fixed in a step, beside those whose ring has all the weight."""
PRICINGS = 5
"""In a step."""
ALL_OF_IT = 0.999


def dive(
    subproblem: RingSubproblem, rings: RingChoices, root: Generated, deadline: Deadline
) -> tuple[list[Column | None], Floats]:
    """A choice of rings from the LP's weights, with new rings for what the fixed ones leave.

    Returns at most one ring for each job, together within all limits; and what they use.

    Parameters
    ----------
    root : the solved LP
    deadline : when to stop; what is fixed by then is returned

    Notes
    -----
    About 1 / SHARE log J steps of `PRICINGS` pricings and LPs that shrink.
    """
    choice: list[Column | None] = [None] * subproblem.data.jobs
    load = np.zeros(len(rings.limit))
    free = set(range(subproblem.data.jobs))
    weights: Floats = root.weights
    columns: Sequence[Column] = root.columns
    while free and not deadline.passed:
        if not _fix(rings, choice, load, free, columns, weights):
            break
        gone = np.array([j not in free for j in range(subproblem.data.jobs)])
        rules = Rules(_caps(subproblem, rings.limit - load), gone)

        def pricing(duals: Floats, weight: float, rules: Rules = rules) -> Priced:
            priced = subproblem.price_all(duals, weight, rules)
            return Priced(priced.best, [c for c in priced.columns if rings.fits(load, c.group, c)])

        rows = [RowBounds(upper=max(0.0, remaining)) for remaining in rings.limit - load]
        master = Master(MAXIMISE, rows, [False] * subproblem.data.jobs)
        master.add([c for c in columns if c.group in free and rings.fits(load, c.group, c)])
        limits = GenerationLimits(deadline=deadline, tolerance=1e-4, iterations=PRICINGS, smoothing=0.0)
        solved = master.generate(pricing, limits)
        weights, columns = solved.weights, solved.columns
    return choice, load


def _fix(
    rings: RingChoices,
    choice: list[Column | None],
    load: Floats,
    free: set[int],
    columns: Sequence[Column],
    weights: Floats,
) -> int:
    """Fix the rings of largest weight that fit; how many there were. Changes choice, load and free."""
    most = max(1, int(SHARE * len(free)))
    fixed = split = 0
    for place in np.argsort(-weights, kind="stable"):
        if weights[place] <= 1e-6:
            break
        column = columns[place]
        if weights[place] < ALL_OF_IT and split >= most:
            break
        if column.group in free and rings.fits(load, column.group, column):
            free.discard(column.group)
            choice[column.group] = column
            load[column.rows] += column.values
            fixed += 1
            split += int(weights[place] < ALL_OF_IT)
    return fixed


def _caps(subproblem: RingSubproblem, left: Floats) -> Ints:
    """(J, V) workers of each job that fit on each node beside the fixed rings."""
    room = np.append(np.maximum(0.0, left), np.inf)
    cap = subproblem.cap.copy()
    for r in range(subproblem.data.demand.shape[1]):
        needy = np.flatnonzero(subproblem.data.demand[:, r] > 0)
        fits = room[subproblem.node_row[:, r]][None, :] / subproblem.data.demand[needy, r][:, None] + 1e-9
        cap[needy] = np.minimum(cap[needy], np.minimum(fits, subproblem.data.longest.max())).astype(np.int64)
    return cap


# Branch and price over rings.

# Branching of g-vne: on whether a job runs, workers on a server, the order of hosts, links of a ring edge.


WHOLE = 1e-6
"""A weight this near to a whole number is one."""

Part = list[tuple[Embedding, float]]
"""Rings of one job with their weights."""


def allowed(ring: Embedding, rules: Rules) -> bool:
    """Whether a ring keeps the rules; `at_least` rows are left to the master."""
    j = ring.job
    if rules.out[j]:
        return False
    if any(n > rules.cap[j, v] for v, n in workers(ring).items()):
        return False
    if not rules.no_edge and not rules.no_link:
        return True
    for place, edge in enumerate(edges(ring)):
        if edge in rules.no_edge:
            return False
        if ring.paths is not None and not rules.no_link.get(edge, frozenset()).isdisjoint(ring.paths[place]):
            return False
    return True


def workers(ring: Embedding) -> dict[int, int]:
    """Workers by server."""
    total: dict[int, int] = {}
    for v, n in zip(ring.hosts, ring.counts, strict=True):
        total[v] = total.get(v, 0) + n
    return total


def edges(ring: Embedding) -> list[Edge]:
    """Ring edges between different hosts, in order."""
    if len(ring.hosts) < 2:
        return []
    after = ring.hosts[1:] + ring.hosts[:1]
    return [(ring.job, a, b) for a, b in zip(ring.hosts, after, strict=True)]


def branch(
    subproblem: RingSubproblem, rules: Rules, columns: Sequence[Column], weights: Floats
) -> tuple[Rules, Rules] | None:
    """Two sets of rules that lose no choice of rings and both exclude these weights.

    Returns
    -------
    None where the weights are whole: every job has one ring, or none.
    """
    parts: dict[int, Part] = {}
    for place in np.flatnonzero(weights > WHOLE).tolist():
        parts.setdefault(columns[place].group, []).append((columns[place].payload, float(weights[place])))
    for choose in (_on_jobs, _on_workers, _on_edges, _on_links):
        pair = choose(subproblem, rules, parts)
        if pair is not None:
            return pair
    return None


def _away(value: float) -> float:
    """Distance to the nearest whole number."""
    return abs(value - round(value))


def _on_jobs(subproblem: RingSubproblem, rules: Rules, parts: dict[int, Part]) -> tuple[Rules, Rules] | None:
    covered = {j: sum(weight for _, weight in part) for j, part in parts.items()}
    open_jobs = [j for j, value in covered.items() if _away(value) > WHOLE]
    if not open_jobs:
        return None
    j = max(open_jobs, key=lambda i: (_away(covered[i]) * max(1e-9, float(np.max(subproblem.worth[i]))), -i))
    return without(rules, j), replace(rules, must=rules.must | {j})


def without(rules: Rules, j: int) -> Rules:
    """The rules with a job left out."""
    out = rules.out.copy()
    out[j] = True
    return replace(rules, out=out, at_least=tuple(row for row in rules.at_least if row[0] != j))


def _on_workers(subproblem: RingSubproblem, rules: Rules, parts: dict[int, Part]) -> tuple[Rules, Rules] | None:
    best: tuple[float, int, int, float] | None = None
    for j, part in parts.items():
        if len(part) < 2:
            continue
        mean: dict[int, float] = {}
        seen: dict[int, set[int]] = {}
        for ring, weight in part:
            for v, n in workers(ring).items():
                mean[v] = mean.get(v, 0.0) + weight * n
        for ring, _ in part:
            own = workers(ring)
            for v in mean:
                seen.setdefault(v, set()).add(own.get(v, 0))
        for v, value in mean.items():
            if len(seen[v]) > 1:
                rank = 1.0 + _away(value) if _away(value) > WHOLE else 0.5
                if best is None or rank > best[0] + 1e-9:
                    best = (rank, j, v, value)
    if best is None:
        return None
    _, j, v, value = best
    most = int(np.floor(value + WHOLE))
    cap = rules.cap.copy()
    cap[j, v] = min(cap[j, v], most)
    kept = tuple(row for row in rules.at_least if row[:2] != (j, v))
    fewer = replace(rules, cap=cap)
    more = replace(rules, must=rules.must | {j}, at_least=(*kept, (j, v, most + 1)))
    return fewer, more


def _on_edges(subproblem: RingSubproblem, rules: Rules, parts: dict[int, Part]) -> tuple[Rules, Rules] | None:
    if subproblem.forest is not None:
        return None
    for j, part in parts.items():
        common = set.intersection(*(set(edges(ring)) for ring, _ in part))
        some = sorted(set.union(*(set(edges(ring)) for ring, _ in part)) - common)
        if not some:
            continue
        _, a, b = some[0]
        hosts = {v for ring, _ in part for v in ring.hosts}
        others = {(j, a, v) for v in hosts if v not in (a, b)} | {(j, v, b) for v in hosts if v not in (a, b)}
        return replace(rules, no_edge=rules.no_edge | {(j, a, b)}), replace(rules, no_edge=rules.no_edge | others)
    return None


def _on_links(subproblem: RingSubproblem, rules: Rules, parts: dict[int, Part]) -> tuple[Rules, Rules] | None:
    data = subproblem.data
    for part in parts.values():
        paths: dict[Edge, set[tuple[int, ...]]] = {}
        for ring, _ in part:
            for edge, path in zip(edges(ring), ring.paths or (), strict=False):
                paths.setdefault(edge, set()).add(path)
        for edge, used in sorted(paths.items()):
            if len(used) < 2:
                continue
            first, second = sorted(used)[:2]
            step = next(i for i, (e, f) in enumerate(zip(first, second, strict=False)) if e != f)
            out = np.flatnonzero(data.tail == data.tail[first[step]])
            one = frozenset(int(e) for e in out if e != second[step])
            return _forbid(rules, edge, one), _forbid(rules, edge, frozenset({second[step]}))
    return None


def _forbid(rules: Rules, edge: Edge, links: frozenset[int]) -> Rules:
    return replace(rules, no_link={**rules.no_link, edge: rules.no_link.get(edge, frozenset()) | links})


CUT_SIZE = 30_000
"""Jobs times nodes beyond which the LP is too large to be solved again and again."""
DIVE_JOBS = 10
"""With fewer jobs branching is as quick."""


class RingSearch(BranchAndPrice[Rules, Column, Floats]):
    """Branch and price on an instance.

    Parameters
    ----------
    options : limits, seed, warm start, reporting
    check : the checker for the instance in its own units
    unit : what a utility of 1 is worth there
    step : every utility is a multiple of it; 0 where that is not known
    root_tolerance : relative difference of bound and value at which the root's LP is left
    """

    again_after = 40
    prune = 8e-10
    """With what rounding adds to a bound at the end, optimal means within 1e-9."""

    def __init__(
        self,
        instance: GVneInstance,
        options: SolveOptions,
        check: Callable[[Solution], CheckReport],
        *,
        unit: float,
        step: float,
        root_tolerance: float,
    ) -> None:
        self.subproblem = RingSubproblem(instance)
        self.rings = RingChoices(self.subproblem, options.seed)
        super().__init__(options, self.rings, check, unit=unit, step=step)
        data = self.subproblem.data
        self.root_rounds = min(self.root_rounds, 40 * data.jobs)
        self.root_cut_rounds = self.root_cut_rounds if data.jobs * data.nodes <= CUT_SIZE else 0
        self.root_tolerance = root_tolerance
        self.pool: list[Column] = []

    def root_rules(self) -> Rules:
        """All rings."""
        return self.subproblem.free_rules

    def start(self) -> None:
        """A first choice at no prices."""
        first = self.rings.complete([], np.zeros(len(self.subproblem.rows)))
        self.accept(first)
        self.pool.extend(ring for ring in first.items if ring is not None)

    def relax(self, rules: Rules, limits: GenerationLimits) -> Generated:
        """LP over all rings that keep the rules."""
        must = [j in rules.must for j in range(self.subproblem.data.jobs)]
        master = Master(MAXIMISE, self.subproblem.rows_of(rules), must)
        master.add([self.subproblem.ruled(column, rules) for column in self.pool if allowed(column.payload, rules)])
        known = len(master.columns)

        def pricing(duals: Floats, weight: float) -> Priced:
            self.pricings += 1
            priced = self.subproblem.price_all(duals, weight, rules)
            if not rules.at_least:
                return priced
            return Priced(priced.best, [self.subproblem.ruled(column, rules) for column in priced.columns])

        generated = master.generate(pricing, limits)
        self.pool.extend(self.item(column) for column in master.columns[known:])
        return generated

    def separate(self, generated: Generated) -> bool:
        """Add the cuts that the weights break as rows; all rings so far are made anew with their entries in them."""
        if not self.subproblem.separate(generated.columns, generated.weights):
            return False
        self.pool = [self.subproblem.column(column.payload) for column in self.pool]
        self.rings.renew()
        if self.incumbent is not None:
            rings = [None if ring is None else self.subproblem.column(ring.payload) for ring in self.incumbent.items]
            self.incumbent = self.rings.choice(rings)
        return True

    def branch(self, rules: Rules, generated: Generated) -> Sequence[Rules] | None:
        """On jobs, workers on a server, ring edges and their links."""
        return branch(self.subproblem, rules, generated.columns, generated.weights)

    def item(self, column: Column) -> Column:
        """The column without its entries in rules' rows."""
        keep = column.rows < len(self.subproblem.rows)
        return column if keep.all() else replace(column, rows=column.rows[keep], values=column.values[keep])

    def fits_exactly(self, choice: Choice[Column]) -> bool:
        """Asked of the checker where a sum in floats meets its limit but for rounding."""
        clear = choice.load <= self.rings.limit * (1 - SLACK)
        return bool(np.all(clear)) or self.check(self.solution_of(choice.items)).feasible

    def prices(self, duals: Floats) -> Floats:
        """Of the capacities and cuts."""
        return duals[: len(self.subproblem.rows)]

    def solution_of(self, items: Sequence[Column | None]) -> Solution:
        """Workers and routes."""
        return self.subproblem.solution([column.payload for column in items if column is not None])

    def polish(self, root: Generated, attempt: int) -> bool:
        """At the root diving; then the integer master, again with the columns found since."""
        if root.status not in (GenerationStatus.CONVERGED, GenerationStatus.STALLED) or root.bound is None:
            return False
        asked = self.options.stages is not None  # one stage alone may be asked of any instance
        if attempt == 0 and (asked or self.subproblem.data.jobs >= DIVE_JOBS) and self.best.stage("dive"):
            items, load = dive(self.subproblem, self.rings, root, self.options.deadline)
            absent = [j for j, ring in enumerate(items) if ring is None]
            self.rings.insert(items, load, absent, root.duals)
            self.accept(self.rings.choice(items))
            self.improve(root.duals, type(self).root_rounds)
        if self.worthwhile(root.bound) and self.best.stage("integer master"):
            known = [] if self.incumbent is None else [ring for ring in self.incumbent.items if ring is not None]
            self.solve_master(root, root.columns if attempt == 0 else self.pool, self.rings.limit, known)
        return False

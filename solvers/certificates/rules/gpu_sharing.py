"""gpu-sharing: runs of gang jobs on interchangeable GPUs that two jobs may share, slot by slot."""

from __future__ import annotations

import decimal
import itertools
import math
import operator
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

try:
    from schedgap.solvers.certificates.linear import within
    from schedgap.solvers.certificates.rules.pausing import GRID, held, paused
except ImportError:  # run as a file
    from linear import within  # type: ignore[import-not-found, no-redef]
    from rules.pausing import GRID, held, paused  # type: ignore[import-not-found, no-redef]

ENOUGH = 1 - Fraction(1, 10**9)
"""Progress counts as complete from this share of the iterations on."""
MOST_SETS = 100_000
"""Most sets of jobs in one bucket that are gone through."""
MOST_SETS_IN_ALL = 1_000_000
"""In all buckets: what comes after has the bound of a search that is cut at once."""
LARGEST_TOGETHER, MOST_BUCKETS = 10_000, 1_000
"""Jobs times GPUs, and buckets beside that."""


def iteration(job: Mapping[str, Any], steps: int) -> Fraction:
    """Seconds of an iteration alone, eq. 7; where it takes a root, below it by less than 1e-50 relative."""
    compute = Fraction(job["compute"]["fixed"]) + Fraction(job["compute"]["per_sample"]) * (job["batch_size"] // steps)
    link = job["communication"]
    send = Fraction(link["latency"]) + Fraction(link["per_unit"]) * Fraction(link["message"])
    send = send if job["gpus"] > 1 else Fraction(0)
    delta = Fraction(job["overlap"])
    if delta == 1 or not compute or not send:
        return Fraction(steps * compute + send)
    with decimal.localcontext(decimal.Context(prec=80, Emax=999999, Emin=-999999)):
        c, m, d = (decimal.Decimal(v.numerator) / decimal.Decimal(v.denominator) for v in (compute, send, delta))
        most = max(c, m)
        root = most * ((c / most) ** d + (m / most) ** d) ** (1 / d)
        last = Fraction(root) * (1 - Fraction(1, 10**55))
    digits = 10 ** max(0, 70 - root.adjusted())
    return Fraction((steps - 1) * compute + Fraction(math.floor(last * digits), digits))


def load(job: Mapping[str, Any], steps: int) -> Fraction:
    """Memory on each of its GPUs."""
    part = Fraction(job["memory"]["per_sample"]) * (job["batch_size"] // steps)
    return Fraction(Fraction(job["memory"]["fixed"]) + part)


class Table:
    """Works and slowdowns of an instance.

    Attributes
    ----------
    work : slots that each job takes alone, per number of accumulation steps that fit alone
    slow : xi by job and other job
    pairs : jobs that can share a GPU with some numbers of steps, with the pairs of steps that do not fit
    """

    def __init__(self, instance: Mapping[str, Any]) -> None:
        jobs = instance["jobs"]
        memory = Fraction(instance["gpu_memory"]) * (1 + Fraction(1, 10**9))  # as the problem's checker has it
        self.work: list[dict[int, Fraction]] = []
        for job in jobs:
            powers = [1 << k for k in range((job["batch_size"] & -job["batch_size"]).bit_length())]
            fitting = [s for s in powers if load(job, s) <= memory]
            seconds = {s: iteration(job, s) for s in fitting}
            length = Fraction(instance["slot_length"])
            self.work.append({s: job["iterations"] * ENOUGH * seconds[s] / length for s in fitting})
        given = instance.get("interference", {})
        place = {job["id"]: j for j, job in enumerate(jobs)}
        self.slow = [{place[b]: Fraction(xi) for b, xi in given.get(job["id"], {}).items()} for job in jobs]
        exact = [{s: load(job, s) for s in own} for job, own in zip(jobs, self.work, strict=True)]
        below = math.lcm(memory.denominator, *(one.denominator for own in exact for one in own.values()))
        self.loads = [{s: int(one * below) for s, one in own.items()} for own in exact]
        self.room = int(memory * below)
        self.shares = instance["max_jobs_per_gpu"] == 2

    def xi(self, j: int, k: int) -> Fraction:
        """How much k slows j down."""
        return self.slow[j].get(k, Fraction(1))

    @cached_property
    def pairs(self) -> dict[tuple[int, int], set[tuple[int, int]]]:
        """Jobs that can share a GPU with some numbers of steps, with the pairs of steps that do not fit."""
        found, loads = {}, self.loads
        for j, k in itertools.combinations(range(len(loads)) if self.shares else (), 2):
            clash = {(s, r) for s, one in loads[j].items() for r, two in loads[k].items() if one + two > self.room}
            if len(clash) < len(loads[j]) * len(loads[k]):
                found[j, k] = clash
        return found

    def fits_with(self, j: int, k: int) -> bool:
        """Whether the two can share a GPU with some numbers of steps."""
        return bool(
            self.shares
            and self.loads[j]
            and self.loads[k]
            and min(self.loads[j].values()) + min(self.loads[k].values()) <= self.room
        )

    @cached_property
    def beside(self) -> list[dict[int, Fraction]]:
        """For each job, how much those slow it down that can share a GPU with it."""
        every = range(len(self.work))
        return [{k: self.xi(j, k) for k in every if k != j and self.fits_with(j, k)} for j in every]

    @cached_property
    def slowed(self) -> set[int]:
        """Jobs that another one may slow down."""
        own = enumerate(self.slow)
        return {j for j, row in own if any(k != j and xi > 1 and self.fits_with(j, k) for k, xi in row.items())}

    def fitting(self, kind: list[int], weight: list[int]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        """What a GPU can do in a slot: two classes, and the most work of each times its weight, in 2^-40, rounded up.

        Jobs that nobody slows down and that slow down nobody are alike where class, weight and least load are.
        """
        involved = {*(j for j, row in enumerate(self.slow) if row), *(k for row in self.slow for k in row)}
        alike: dict[tuple[int, ...], list[int]] = {}
        for j, own in enumerate(self.loads):
            key = (j,) if j in involved else (-1, kind[j], weight[j], min(own.values(), default=-1))
            alike.setdefault(key, []).append(j)
        found = {((c, c), (w, 0)) for c, w in zip(kind, weight, strict=True)}
        for one, two in itertools.combinations_with_replacement(alike.values() if self.shares else (), 2):
            j, k = one[0], two[-1]
            if j != k and self.fits_with(j, k):
                a, b = -(-weight[j] // self.xi(j, k)), -(-weight[k] // self.xi(k, j))
                found.add(((kind[j], kind[k]), (a, b)) if kind[j] <= kind[k] else ((kind[k], kind[j]), (b, a)))
        return list(found)

    def levels(self, j: int) -> list[Fraction]:
        """The slowdowns above 1 that job j can have, rising."""
        return sorted({self.xi(j, sum(p) - j) for p in self.pairs if j in p and self.xi(j, sum(p) - j) > 1})


def rows(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """Whole variables, 0/1 unless said otherwise.

    ``x[j,t,d]`` runs in slots t..t+d-1, ``end[j]`` is the last one, ``run[j,t]`` whether j runs in slot t; ``g[j,s]``
    with s accumulation steps; ``all[j,k]`` how many GPUs j and k have in common if they ever run together and share,
    ``pair[j,k]`` whether there are any; ``o[j,k,t]`` how many they share in slot t, ``b[j,k,t]`` whether they do;
    ``q[j,t,i]`` whether j's slowdown in slot t is at least its i-th level. Work: the slots of a run, less what
    slowdowns lose, suffice for the iterations, so a run is no shorter than its work alone (``short``), and slots at a
    level or a worse one are no more than may lose so much (``slots``). A GPU has one partner at most, so the largest
    loss of a slot is at least the mean over the GPUs.
    """
    jobs, horizon, table = instance["jobs"], instance["horizon"], Table(instance)
    within(len(jobs) * horizon)
    total = sum(server["gpus"] for server in instance["servers"])
    runs: list[set[int]] = []
    for j, job in enumerate(jobs):
        work, levels = table.work[j], table.levels(j)
        cover: dict[int, list[tuple[str, int]]] = {t: [] for t in range(job["arrival"], horizon + 1)}
        lengths = []
        if work and job["gpus"] <= total:
            worst = math.ceil(max(work.values()) * (levels[-1] if levels else 1))
            for d in range(max(1, math.ceil(min(work.values()))), min(worst, horizon - job["arrival"] + 1) + 1):
                for t in range(job["arrival"], horizon - d + 2):
                    x = model.var(f"x[{j},{t},{d}]", 0, 1, Fraction(t + d - job["arrival"], len(jobs)))
                    lengths.append((x, d))
                    for u in range(t, t + d):
                        cover[u].append((x, 1))
        runs.append({t for t in cover if cover[t]})
        for t in sorted(runs[j]):
            model.row(f"cover[{j},{t}]", [(model.var(f"run[{j},{t}]"), -1), *cover[t]], "=", 0)
        model.row(f"once[{j}]", [(x, 1) for x, _ in lengths], "=", 1)
        model.var(f"end[{j}]", 0, horizon)
        ends = [(x, int(x[:-1].split(",")[1]) + d - 1) for x, d in lengths]
        model.row(f"ends[{j}]", [*ends, (f"end[{j}]", -1)], "=", 0)
        for s in work:
            model.var(f"g[{j},{s}]")
        model.row(f"steps[{j}]", [(f"g[{j},{s}]", 1) for s in work], "=", 1)
        lost = []
        for t in cover:
            before = Fraction(1)
            for i, level in enumerate(levels):
                q = model.var(f"q[{j},{t},{i}]")
                lost.append((q, 1 / level - 1 / before))
                before = level
                if i:
                    model.row(f"level[{j},{t},{i}]", [(f"q[{j},{t},{i - 1}]", 1), (q, -1)], ">=", 0)
        needed = [(f"g[{j},{s}]", -w) for s, w in work.items()]
        model.row(f"work[{j}]", [*lengths, *lost, *needed], ">=", 0)
        for s, w in work.items():
            longer = [(f"g[{j},{r}]", 1) for r in work if work[r] >= w]
            model.row(f"short[{j},{s}]", [*longer, *((x, 1) for x, d in lengths if d < w)], "<=", 1)
        for i, level in enumerate(levels):
            at = [(f"q[{j},{t},{i}]", -1) for t in cover]
            most = [(x, math.floor((d - min(work.values())) / (1 - 1 / level))) for x, d in lengths]
            model.row(f"slots[{j},{i}]", [*at, *most], ">=", 0)
    _sharing(instance, table, runs, model)
    for t in range(1, horizon + 1):
        busy = [(f"run[{j},{t}]", job["gpus"]) for j, job in enumerate(jobs) if t in runs[j]]
        shared = [(f"o[{j},{k},{t}]", -1) for j, k in table.pairs if f"o[{j},{k},{t}]" in model.index]
        if busy:
            model.row(f"gpus[{t}]", [*busy, *shared], "<=", total)


def _sharing(instance: Mapping[str, Any], table: Table, runs: list[set[int]], model: Any) -> None:
    """Who shares with whom."""
    jobs = instance["jobs"]
    for (j, k), clash in table.pairs.items():
        most = min(jobs[j]["gpus"], jobs[k]["gpus"])
        model.var(f"all[{j},{k}]", 0, most)
        model.var(f"pair[{j},{k}]")
        model.row(f"any[{j},{k}]", [(f"all[{j},{k}]", 1), (f"pair[{j},{k}]", -1)], ">=", 0)
        against = {s: {r for r in table.work[k] if (s, r) in clash} for s in table.work[j]}
        for s, others in against.items():
            if others:  # at most one of these g of j, which fit beside none of the others, and one of k's
                apart = [f"g[{j},{r}]" for r in against if against[r] >= others] + [f"g[{k},{r}]" for r in others]
                model.row(f"memory[{j},{k},{s}]", [(g, 1) for g in (f"pair[{j},{k}]", *apart)], "<=", 2)
        for t in sorted(runs[j] & runs[k]):
            o, b = model.var(f"o[{j},{k},{t}]", 0, most), model.var(f"b[{j},{k},{t}]")
            model.row(f"share[{j},{k},{t}]", [(o, 1), (b, -most)], "<=", 0)
            model.row(f"some[{j},{k},{t}]", [(o, 1), (b, -1)], ">=", 0)
            model.row(f"paired[{j},{k},{t}]", [(b, 1), (f"pair[{j},{k}]", -1)], "<=", 0)
            model.row(f"common[{j},{k},{t}]", [(o, 1), (f"all[{j},{k}]", -1)], "<=", 0)
            one, two = f"run[{j},{t}]", f"run[{k},{t}]"
            model.row(f"always[{j},{k},{t}]", [(b, 1), (f"pair[{j},{k}]", -1), (one, -1), (two, -1)], ">=", -2)
            both = [(one, -most), (two, -most)]
            model.row(f"fixed[{j},{k},{t}]", [(o, 1), (f"all[{j},{k}]", -1), *both], ">=", -2 * most)
            for me, other in ((j, k), (k, j)):
                model.row(f"runs[{me},{other},{t}]", [(b, 1), (f"run[{me},{t}]", -1)], "<=", 0)
                slow = table.xi(me, other)
                if slow > 1:
                    model.row(
                        f"slow[{me},{other},{t}]",
                        [(b, 1), (f"q[{me},{t},{table.levels(me).index(slow)}]", -1)],
                        "<=",
                        0,
                    )
    for j, job in enumerate(jobs):
        levels = table.levels(j)
        for t in sorted(runs[j]):
            beside = [(f"o[{a},{b},{t}]", table.xi(j, a + b - j)) for a, b in table.pairs if j in (a, b)]
            beside = [(o, slow) for o, slow in beside if o in model.index]
            if not beside:
                continue
            model.row(f"held[{j},{t}]", [*((o, 1) for o, _ in beside), (f"run[{j},{t}]", -job["gpus"])], "<=", 0)
            if levels:
                before = [Fraction(1), *levels]
                steps = [(f"q[{j},{t},{i}]", 1 / before[i] - 1 / level) for i, level in enumerate(levels)]
                losses = [(o, (1 / slow - 1) / job["gpus"]) for o, slow in beside]
                model.row(f"mean[{j},{t}]", [*steps, *losses], ">=", 0)


def point(instance: Mapping[str, Any], solution: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The point of a schedule in :func:`rows`."""
    jobs, table, found = instance["jobs"], Table(instance), {}
    gpus = [{tuple(gpu) for gpu in solution["gpus"][job["id"]]} for job in jobs]
    start = [solution["start"][job["id"]] for job in jobs]
    steps = [solution["accumulation"][job["id"]] for job in jobs]
    left = [table.work[j][steps[j]] for j in range(len(jobs))]
    running: set[int] = set()
    for t in range(1, instance["horizon"] + 1):
        running |= {j for j in range(len(jobs)) if start[j] == t}
        slow = dict.fromkeys(running, Fraction(1))
        found.update({f"run[{j},{t}]": 1 for j in running})
        for j in running:
            for k in running:
                common = len(gpus[j] & gpus[k])
                if k == j or not common:
                    continue
                slow[j] = max(slow[j], table.xi(j, k))
                if j < k:
                    found[f"o[{j},{k},{t}]"] = found[f"all[{j},{k}]"] = common
                    found[f"b[{j},{k},{t}]"] = found[f"pair[{j},{k}]"] = 1
        for j, factor in slow.items():
            found.update({f"q[{j},{t},{i}]": 1 for i, level in enumerate(table.levels(j)) if level <= factor})
            left[j] -= 1 / factor
            if left[j] <= 0:
                found[f"x[{j},{start[j]},{t - start[j] + 1}]"], found[f"end[{j}]"] = 1, t
                running = running - {j}
    return {**found, **{f"g[{j},{s}]": 1 for j, s in enumerate(steps)}}


def prices(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The form ``prices``; a leaf is ``{"edges": [...], "prices": [[...], ...], "classes": [...], "weights": [...]}``.

    Bucket k has the slots from edges[k] to edges[k + 1] - 1. The work of a slot there, on a GPU, has the price
    p_jk = prices[classes[j]][k] * weights[j] for job j, beyond the buckets 0 (no classes: all 0; no weights: all 1).
    With z_jt <= 1 the work that job j does in slot t, the sum over jobs of G_j z_jt p_jt is at most N q_t, where q_t is
    the most that one GPU can do: p_jt with one job, p_jt / xi_jk + p_kt / xi_kj with two that may share it. So the sum
    of JCT is at least the sum over jobs of the least of JCT and sum over t of G_j z_jt p_jt, less the sum of N q_t.

    That least is found by :func:`held` for a job that nobody slows down.
    It runs at full rate without a pause.
    For others it is found by :func:`paused`.

    With ``"together": true`` p_jt is the price of all that job j does at full rate in slot t.
    The sum of z_jt p_jt over the jobs that run in a slot is at most what :func:`together` finds.
    """
    jobs, table = instance["jobs"], Table(instance)
    total = sum(server["gpus"] for server in instance["servers"])
    model.step = Fraction(1, len(jobs))

    def bound(given: Mapping[str, Any], box: Any) -> Fraction:
        edges, price = given["edges"], given["prices"]
        kind, weight = given["classes"] or [0] * len(jobs), given["weights"] or [GRID] * len(jobs)
        numbers = [*edges, *kind, *weight, *(p for own in price for p in own)]
        if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers):
            raise ValueError("edges, prices, classes and weights must be whole numbers from 0")
        if any(a >= b for a, b in itertools.pairwise(edges)) or any(len(own) != len(edges) - 1 for own in price):
            raise ValueError("edges must rise, and every class needs a price for each bucket")
        if len(kind) != len(jobs) or len(weight) != len(jobs) or max(kind) >= len(price):
            raise ValueError("every job needs a class that has prices, and a weight")
        if not isinstance(whole := given.get("together", False), bool):
            raise ValueError("together must be true or false")
        if whole and (len(jobs) * total > LARGEST_TOGETHER or len(edges) > MOST_BUCKETS):
            raise ValueError("too many jobs and GPUs or buckets")
        fits = [] if whole else table.fitting(kind, weight)
        gpus = [job["gpus"] for job in jobs]
        worth, sets = 0, MOST_SETS_IN_ALL
        for k, (begin, end) in enumerate(itertools.pairwise(edges)):
            if whole:
                prices_now = [price[c][k] * w for c, w in zip(kind, weight, strict=True)]
                slot, seen = together(prices_now, gpus, table.beside, total, min(MOST_SETS, sets))
                sets -= seen
            else:
                slot = total * max(a * price[c][k] + b * price[d][k] for (c, d), (a, b) in fits)
            worth += (end - begin) * slot
        found = -Fraction(worth, GRID**2)
        width = [end - begin for begin, end in itertools.pairwise(edges)]
        before = [[0, *itertools.accumulate(map(operator.mul, own, width))] for own in price]
        for j, job in enumerate(jobs):
            if not table.work[j]:
                raise ValueError(f"job {job['id']} fits no GPU")
            least: Fraction = min(table.work[j].values())
            length, rate, c = max(1, math.ceil(least)), weight[j] * (1 if whole else gpus[j]), kind[j]
            if j in table.slowed:
                busy = paused(job["arrival"], math.floor(least * GRID), rate, edges, price[c])
                found += max(Fraction(length), Fraction(busy, GRID**3))
            else:
                found += Fraction(held(job["arrival"], length, rate, edges, price[c], before[c]), GRID**2)
        return found / len(jobs)

    model.price = bound


def together(
    worth: list[int], gpus: list[int], slow: list[dict[int, Fraction]], total: int, most: int
) -> tuple[int, int]:
    """What the jobs that run in one slot are worth at most, if they are worth this at full rate.

    And how many sets were seen.

    Each is alone on its GPUs, or shares some of them.
    Then it is no faster than beside its best partner among those that share.
    A GPU that is shared has two of these jobs, and one of the two is not the largest.
    So of the S GPUs that they ask for, at most S // 2 are saved, and at most S less the largest gang.
    Jobs that are worth nothing are left out: the others do no less without them.

    All sets of jobs are gone through but those that are worth no more than the best one,
    even where every job that shares has half of its GPUs for nothing (`beyond`).
    Where there are more than `most`, that is the answer.
    """
    order = [j for j, price in enumerate(worth) if price]
    order.sort(key=lambda j: Fraction(-worth[j], gpus[j]))
    best_pace = [min(paces.values(), default=None) for paces in slow]
    halves = 2 * total
    beyond = [[0] * (halves + 1)]
    options: list[list[tuple[int, int, bool]]] = []  # half GPUs, worth at most, whether it shares
    for j in reversed(order):
        choices, pace = [(2 * gpus[j], worth[j], False), (0, 0, False)], best_pace[j]
        if pace is not None:
            choices.insert(1, (gpus[j], math.ceil(worth[j] / pace), True))
        last = beyond[-1]
        beyond.append([max(w + last[c - n] for n, w, _ in choices if n <= c) for c in range(halves + 1)])
        options.append(choices)
    beyond.reverse()
    options.reverse()
    best = seen = 0
    nobody: tuple[int, ...] = ()
    stack = [(0, halves, 0, 0, nobody)]
    while stack:
        # the first q jobs are decided; half GPUs that are free, worth, GPUs of those alone
        q, free, value, alone, shared = stack.pop()
        if value + beyond[q][free] <= best:
            continue
        if seen >= most:
            return beyond[0][halves], seen
        seen += 1
        if q < len(order):
            for need, gain, shares in reversed(options[q]):
                if need <= free:
                    group = (*shared, order[q]) if shares else shared
                    apart = alone + (need // 2 if not shares else 0)
                    stack.append((q + 1, free - need, value + gain, apart, group))
            continue
        sizes = [gpus[j] for j in shared]
        if alone + sum(sizes) - min(sum(sizes) // 2, sum(sizes) - max(sizes, default=0)) <= total:
            for j in shared:
                paces = [slow[j][k] for k in shared if k in slow[j]]
                value -= math.ceil(worth[j] / min(slow[j].values()))
                if paces:
                    value += math.ceil(worth[j] / min(paces))
            best = max(best, value)
    return best, seen


FORMS = {"rows": rows, "prices": prices}

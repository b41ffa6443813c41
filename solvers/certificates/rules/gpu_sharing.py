"""gpu-sharing: runs of gang jobs on interchangeable GPUs that two jobs may share, slot by slot."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

ENOUGH = 1 - Fraction(1, 10**9)
"""Progress counts as complete from this share of the iterations on."""


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
    work : by job and number of accumulation steps that fit alone, slots it takes alone
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
        ids = [job["id"] for job in jobs]
        self.slow = [[Fraction(given.get(a, {}).get(b, 1)) for b in ids] for a in ids]
        exact = [{s: load(job, s) for s in own} for job, own in zip(jobs, self.work, strict=True)]
        below = math.lcm(memory.denominator, *(one.denominator for own in exact for one in own.values()))
        loads = [{s: int(one * below) for s, one in own.items()} for own in exact]
        room = int(memory * below)
        self.pairs: dict[tuple[int, int], set[tuple[int, int]]] = {}
        for j, k in itertools.combinations(range(len(jobs)) if instance["max_jobs_per_gpu"] == 2 else (), 2):
            clash = {(s, r) for s, one in loads[j].items() for r, two in loads[k].items() if one + two > room}
            if len(clash) < len(loads[j]) * len(loads[k]):
                self.pairs[j, k] = clash

    def levels(self, j: int) -> list[Fraction]:
        """The slowdowns above 1 that job j can have, rising."""
        return sorted({self.slow[j][sum(p) - j] for p in self.pairs if j in p and self.slow[j][sum(p) - j] > 1})


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
                slow = table.slow[me][other]
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
            beside = [(f"o[{a},{b},{t}]", table.slow[j][a + b - j]) for a, b in table.pairs if j in (a, b)]
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
                slow[j] = max(slow[j], table.slow[j][k])
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
    """The form ``prices``; a leaf is ``{"first": slot, "width": slots, "prices": [...], "weights": [...]}``.

    Weights w are at most 1 and w_j / xi_jk + w_k / xi_kj <= 1 for pairs that may share a GPU, so that on every GPU, and
    so in all, sum G_j w_j z_jt <= N in every slot, z_jt the work of job j in slot t. Let W_j = k + f be its least
    work, k whole. Its first W_j have a mean busy time of M_j, sum z_jt (t - 1/2) / W_j, and since z <= 1 it ends no
    earlier than M_j + (k^2 + 2 k f + f) / (2 W_j). With prices p on the capacity of buckets of slots the sum of JCT is
    at least the sum over jobs of the larger of ceil(W_j) and the least, over z, of M_j plus what z costs, less what
    the capacity is worth. A bucket counts as its first slot; beyond the last one nothing has a price.
    """
    jobs, table = instance["jobs"], Table(instance)
    total = sum(server["gpus"] for server in instance["servers"])
    model.step = Fraction(1, len(jobs))

    def bound(given: Mapping[str, Any], box: Any) -> Fraction:
        first, width, price, weight = (given[key] for key in ("first", "width", "prices", "weights"))
        whole = all(isinstance(n, int) and n >= 0 for n in (first, width - 1, *price, *weight))
        if not whole or len(weight) != len(jobs) or max(weight) > GRID or first > min(job["arrival"] for job in jobs):
            raise ValueError("first, width, prices and weights must be whole numbers from 0, weights at most 2^40")
        for j, k in table.pairs:
            if weight[j] / table.slow[j][k] + weight[k] / table.slow[k][j] > GRID:
                raise ValueError(f"the weights of jobs {j} and {k} are too large")
        found = -Fraction(total * width * sum(price), GRID)
        for job, works, w in zip(jobs, table.work, weight, strict=True):
            if not works:
                raise ValueError(f"job {job['id']} fits no GPU")
            least: Fraction = min(works.values())
            busy = _alone(job, math.floor(least * GRID), first, width, price, w)
            found += max(Fraction(math.ceil(least)), busy)
        return found / len(jobs)

    model.price = bound


GRID = 2**40


def _alone(job: Mapping[str, Any], work: int, first: int, width: int, price: list[int], weight: int) -> Fraction:
    """The least of one job's mean busy time and costs, and what follows from there to its end; work in 2^-40."""
    if not work:
        return Fraction(1)
    unit = job["gpus"] * weight * work  # what a price of 1 / 2^40 adds, in 2^-121, as slots do to M_j W_j
    cells = []
    for number, p in enumerate([*price, 0]):
        begin = max(first + number * width, job["arrival"])
        room = first + (number + 1) * width - begin if number < len(price) else None
        if room is None or room > 0:
            cells.append(((2 * begin - 1) * GRID**3 + 2 * unit * p, room))
    left, cost = work, 0
    for value, room in sorted(cells, key=lambda cell: cell[0]):
        taken = left if room is None else min(left, room * GRID)
        cost, left = cost + taken * value, left - taken
        if not left:
            break
    whole, part = divmod(work, GRID)
    later = Fraction(whole * whole * GRID + 2 * whole * part + part, 2 * work)
    return Fraction(cost, 2 * GRID**3 * work) + later - int(job["arrival"]) + 1


FORMS = {"rows": rows, "prices": prices}

"""ddl-cluster: compute tasks and all-reduces in continuous time.

Form ``rows``, for given placements: every schedule of a mean JCT up to the option ``cutoff`` is a point, so that times
have bounds; no claim is above it. The rows are a relaxation: memory counts in pairs of jobs, contention by bounds. Form
``machines``: a bound for any placements, see :func:`machines`.
"""

from __future__ import annotations

import heapq
import itertools
import math
import operator
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.linear import fraction
    from schedgap.solvers.certificates.rules.ddl_paths import Buckets, Path, cheapest, checked
    from schedgap.solvers.certificates.rules.pausing import GRID, paused
except ImportError:  # run as a file
    from linear import fraction  # type: ignore[import-not-found, no-redef]
    from rules.ddl_paths import Buckets, Path, cheapest, checked  # type: ignore[import-not-found, no-redef]
    from rules.pausing import GRID, paused  # type: ignore[import-not-found, no-redef]

Gpu = tuple[str, int]


class Jobs:
    """The numbers of an instance whose placements are all given.

    Attributes
    ----------
    forward, backward, message : seconds a task, and of an all-reduce that is alone, without its latency; 0 for none
    gpus, servers : GPUs and servers of each job
    alone : seconds from arrival to finish at the least
    """

    def __init__(self, instance: Mapping[str, Any]) -> None:
        link, self.jobs = instance["link"], instance["jobs"]
        self.latency, self.eta = Fraction(link.get("latency", 0)), Fraction(link.get("contention_penalty", 0))
        self.b = Fraction(link["seconds_per_unit"])
        self.gpus: list[list[Gpu]] = [[(gpu[0], gpu[1]) for gpu in job["placement"]] for job in self.jobs]
        self.servers = [{server for server, _ in gpus} for gpus in self.gpus]
        self.forward = [Fraction(job["forward"]) for job in self.jobs]
        self.backward = [Fraction(job["backward"]) for job in self.jobs]
        spans = [len(servers) > 1 for servers in self.servers]
        self.message = [
            self.b * Fraction(job["message"]) if s else Fraction(0) for job, s in zip(self.jobs, spans, strict=True)
        ]
        self.wait = [self.latency if s else Fraction(0) for s in spans]
        self.alone = [
            job["iterations"] * (f + g + m + w)
            for job, f, g, m, w in zip(self.jobs, self.forward, self.backward, self.message, self.wait, strict=True)
        ]


def rows(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """Real: ``c[j,i,k,g]`` start of the forward (k = 0) or backward task (1) of iteration i on the g-th GPU of job j;
    ``m[j,i]``, ``e[j,i]`` when its all-reduce begins to move and ends; ``end[j]`` the finish; ``o[...]`` for how long
    two all-reduces move at once. Whole, 0/1: ``before[...]`` orders two tasks on a GPU; ``memory[j,k]`` two jobs that
    do not fit a GPU together; of two all-reduces, whether the first is over before the second begins (``over``), the
    second before the first (``after``), the first begins first (``begun``), ends first (``ended``).
    """
    data = Jobs(instance)
    jobs, n = data.jobs, len(data.jobs)
    arrival = [Fraction(job["arrival"]) for job in jobs]
    cutoff = fraction(options["cutoff"], "option cutoff")
    model.cutoff = cutoff
    latest = [arrival[j] + n * cutoff - sum(data.alone) + data.alone[j] for j in range(n)]
    if any(latest[j] < arrival[j] + data.alone[j] for j in range(n)):
        raise ValueError("the cutoff is below what jobs need alone")
    model.constant = -sum(arrival, Fraction(0)) / n
    for j, job in enumerate(jobs):
        model.var(f"end[{j}]", arrival[j] + data.alone[j], latest[j], Fraction(1, n), whole=False)
        one = data.alone[j] / job["iterations"]
        for i in range(job["iterations"]):
            first, last = arrival[j] + i * one, latest[j] - data.alone[j] + i * one
            f, g, w, m = data.forward[j], data.backward[j], data.wait[j], data.message[j]
            after = f"end[{j}]" if i + 1 == job["iterations"] else None
            if m:
                model.var(f"m[{j},{i}]", first + f + g + w, last + f + g + w, whole=False)
                model.var(f"e[{j},{i}]", first + one, last + one, whole=False)
                model.row(f"moves[{j},{i}]", [(f"e[{j},{i}]", 1), (f"m[{j},{i}]", -1)], ">=", m)
                if after:
                    model.row(f"last[{j}]", [(after, 1), (f"e[{j},{i}]", -1)], ">=", 0)
            for p in range(len(data.gpus[j])):
                c0, c1 = f"c[{j},{i},0,{p}]", f"c[{j},{i},1,{p}]"
                model.var(c0, first, last, whole=False)
                model.var(c1, first + f, last + f, whole=False)
                model.row(f"back[{j},{i},{p}]", [(c1, 1), (c0, -1)], ">=", f)
                if m:
                    model.row(f"sends[{j},{i},{p}]", [(f"m[{j},{i}]", 1), (c1, -1)], ">=", g + w)
                elif after:
                    model.row(f"last[{j},{p}]", [(after, 1), (c1, -1)], ">=", g)
    for j, job in enumerate(jobs):
        for i in range(1, job["iterations"]):
            for p in range(len(data.gpus[j])):
                start = f"c[{j},{i},0,{p}]"
                if data.message[j]:
                    model.row(f"next[{j},{i},{p}]", [(start, 1), (f"e[{j},{i - 1}]", -1)], ">=", 0)
                else:
                    for q in range(len(data.gpus[j])):
                        back = f"c[{j},{i - 1},1,{q}]"
                        model.row(f"next[{j},{i},{p},{q}]", [(start, 1), (back, -1)], ">=", data.backward[j])
    _gpus(instance, data, model)
    _links(data, model)


def _either(
    model: Any, name: str, a: str, b: str, length_a: Fraction, length_b: Fraction, kind: str = "before"
) -> None:
    """One of two tasks is over before the other starts: ``kind[name]`` is 1 where a is."""
    z = model.var(f"{kind}[{name}]")
    ja, jb = model.index[a], model.index[b]
    late = model.high[ja] + length_a - model.low[jb]
    other = model.high[jb] + length_b - model.low[ja]
    model.row(f"first[{name}]", [(b, 1), (a, -1), (z, -late)], ">=", length_a - late)
    model.row(f"second[{name}]", [(a, 1), (b, -1), (z, other)], ">=", length_b)


def _gpus(instance: Mapping[str, Any], data: Jobs, model: Any) -> None:
    """One compute task at a time on a GPU; two jobs of which only one fits its memory follow each other."""
    memory, jobs = Fraction(instance["gpu_memory"]), data.jobs
    for j, k in itertools.combinations(range(len(jobs)), 2):
        common = [gpu for gpu in data.gpus[j] if gpu in data.gpus[k]]
        if not common:
            continue
        if Fraction(jobs[j]["memory"]) + Fraction(jobs[k]["memory"]) > memory * (1 + Fraction(1, 10**9)):
            z = model.var(f"memory[{j},{k}]")
            for a, b, sign in ((j, k, 1), (k, j, 0)):
                for p in range(len(data.gpus[b])):
                    start, end = f"c[{b},0,0,{p}]", f"end[{a}]"
                    late = model.high[model.index[end]] - model.low[model.index[start]]
                    terms = [(start, 1), (end, -1), (z, -late if sign else late)]
                    model.row(f"follow[{a},{b},{p}]", terms, ">=", -late if sign else 0)
            continue
        for gpu in common:
            p, q = data.gpus[j].index(gpu), data.gpus[k].index(gpu)
            for i, h in itertools.product(range(jobs[j]["iterations"]), range(jobs[k]["iterations"])):
                for s, t in itertools.product((0, 1), (0, 1)):
                    lengths = ((data.forward, data.backward)[s][j], (data.forward, data.backward)[t][k])
                    _either(
                        model, f"{j},{i},{s},{k},{h},{t},{p}", f"c[{j},{i},{s},{p}]", f"c[{k},{h},{t},{q}]", *lengths
                    )


def _links(data: Jobs, model: Any) -> None:
    """All-reduces that move at once on a server slow each other down.

    With k on its busiest server one needs w_k = k b + (k - 1) eta seconds a unit. In a time t with k of them it moves
    t / w_k and so loses t (1 - b / w_k), which is concave in k - 1: at least (k - 1) / (K - 1) of what K lose, K the
    most that there can be. So on every server it loses at least (1 - b / w_K) / (K - 1) times the sum of its overlaps.
    """
    jobs = data.jobs
    spanning = [j for j in range(len(jobs)) if data.message[j]]
    for j, k in itertools.combinations(spanning, 2):
        if not data.servers[j] & data.servers[k]:
            continue
        for i, h in itertools.product(range(jobs[j]["iterations"]), range(jobs[k]["iterations"])):
            _overlap(model, f"{j},{i},{k},{h}", (f"m[{j},{i}]", f"e[{j},{i}]"), (f"m[{k},{h}]", f"e[{k},{h}]"))
    for j in spanning:
        for server in sorted(data.servers[j]):
            others = [k for k in spanning if k != j and server in data.servers[k]]
            if not others:
                continue
            most = len(others) + 1
            factor = (1 - data.b / (most * data.b + (most - 1) * data.eta)) / (most - 1)
            for i in range(jobs[j]["iterations"]):
                shared = [
                    (f"o[{j},{i},{k},{h}]" if j < k else f"o[{k},{h},{j},{i}]", -factor)
                    for k in others
                    for h in range(jobs[k]["iterations"])
                ]
                terms = [(f"e[{j},{i}]", 1), (f"m[{j},{i}]", -1), *shared]
                model.row(f"slowed[{j},{i},{server}]", terms, ">=", data.message[j])


def _overlap(model: Any, name: str, one: tuple[str, str], two: tuple[str, str]) -> None:
    """``o[name]`` >= min(ends) - max(begins), unless one is over before the other begins."""
    high, low, at = model.high, model.low, model.index
    o = model.var(
        f"o[{name}]", 0, min(high[at[one[1]]] - low[at[one[0]]], high[at[two[1]]] - low[at[two[0]]]), whole=False
    )
    over, after = model.var(f"over[{name}]"), model.var(f"after[{name}]")
    begun, ended = model.var(f"begun[{name}]"), model.var(f"ended[{name}]")
    model.row(f"apart[{name}]", [(over, 1), (after, 1)], "<=", 1)

    def least(label: str, x: str, y: str, literals: list[tuple[str, int]]) -> None:
        """x >= y where every literal (variable, value) holds."""
        slack = high[at[y]] - low[at[x]]
        if slack > 0:
            terms = [(v, -slack if value else slack) for v, value in literals]
            model.row(f"{label}[{name}]", [(x, 1), (y, -1), *terms], ">=", -slack * sum(value for _, value in literals))

    least("over1", two[0], one[1], [(over, 1)])
    least("over2", one[0], two[1], [(after, 1)])
    least("begun1", two[0], one[0], [(begun, 1)])
    least("begun2", one[0], two[0], [(begun, 0)])
    least("ended1", two[1], one[1], [(ended, 1)])
    least("ended2", one[1], two[1], [(ended, 0)])
    for first, end in ((1, one[1]), (0, two[1])):
        for last, begin in ((1, two[0]), (0, one[0])):
            slack = high[at[end]] - low[at[begin]]
            if slack <= 0:
                continue
            terms = [(o, 1), (end, -1), (begin, 1), (over, slack), (after, slack)]
            terms += [(ended, -slack if first else slack), (begun, -slack if last else slack)]
            model.row(f"both{first}{last}[{name}]", terms, ">=", -slack * (first + last))


def machines(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """The form ``machines``: no rows; a leaf is ``{}``, its bound the largest of the following, over the jobs; or
    ``{"shares": [[resource, {job: share}], ...]}``.

    With c_j = f + g, m_j = a + b M where job j spans servers for certain and 0 otherwise, it takes I_j (c_j + m_j) at
    the least. A resource is a machine that may preempt: all N GPUs as one that is N times as fast, all links likewise,
    and, where every job on it is placed, each GPU and each link (which moves 1 / b units a second at most). From the
    end of a job's work there to its finish a tail is left, m_j for computing; and from the mean moment of its work at
    least half of what the iterations take, since they follow each other. Shortest remaining work first has the least
    sum of ends (Schrage 1968), smallest work first the least sum of mean busy times (Goemans 1997). Jobs that do
    not use the resource count alone.

    Shares, whole numbers of at least 0 in units of 2^-20, at most 1 for each job in all, combine resources: of each job
    the time that a resource's mean busy time says counts by its share, its time alone by the rest. Weighted by shares,
    mean busy times have the least sum where the largest share / work runs first. Resources are ``"gpus"`` and
    ``"links"`` for all together, ``[server]`` for its link and ``[server, gpu]``; jobs go by position.

    Or ``{"fineness": k, "edges": [...], "prices": [...]}``, prices of a GPU's time between edges in ticks of 2^-k
    seconds: the sum over jobs of the larger of the time alone and m_j with the least of the time until the last task
    ends, which is I_j c_j + (I_j - 1) m_j at least, since a job does not compute while its all-reduces move, and the
    cost of I_j c_j seconds on each of its GPUs until then, less what N GPUs are worth. A job begins in the tick of its
    arrival, and may be done up to a tick sooner than counted.

    Or ``{"paths": {"fineness": k, "span": s, "first": n, "gpus": [...], "links": [...]}}``, prices of the time of GPUs
    and of links in buckets of s ticks from n buckets on: the sum over jobs of the least of JCT and cost, less what N
    GPUs and all links are worth. What is left of a job, of I_j (c_j + m_j) seconds, as one of its workers sees it,
    falls by at most a second a second: in computing, while it holds its GPU; in the latency; and in a message, which
    loads each of its servers' links as fast as it moves. Its parts come one after the other, so what it costs is the
    cost of a way through them that may pause, at the prices of G_j GPUs and of the links of the servers that it spans
    at least. Workers share messages and the finish: the mean over them of what their ways cost is what the job costs.
    """
    jobs, link = instance["jobs"], instance["link"]
    b, latency = Fraction(link["seconds_per_unit"]), Fraction(link.get("latency", 0))
    sizes = sorted((server["gpus"] for server in instance["servers"]), reverse=True)
    spans = []
    for job in jobs:
        given = job.get("placement")
        fewest = next(n for n in range(1, len(sizes) + 1) if sum(sizes[:n]) >= job["gpus"])
        spans.append(len({server for server, _ in given}) if given else fewest)
    computing = [Fraction(job["forward"]) + Fraction(job["backward"]) for job in jobs]
    moving = [b * Fraction(job["message"]) if n > 1 else Fraction(0) for job, n in zip(jobs, spans, strict=True)]
    message = [m + latency if n > 1 else Fraction(0) for m, n in zip(moving, spans, strict=True)]
    arrival = [Fraction(job["arrival"]) for job in jobs]
    alone = [job["iterations"] * (c + m) for job, c, m in zip(jobs, computing, message, strict=True)]

    def compute(j: int, share: Fraction) -> Piece:
        work = jobs[j]["iterations"] * computing[j] * share
        return j, arrival[j], work, message[j], (alone[j] + message[j]) / 2

    def send(j: int, share: Fraction) -> Piece:
        between = (jobs[j]["iterations"] - 1) * (computing[j] + message[j])
        work = jobs[j]["iterations"] * moving[j] * share
        return j, arrival[j] + computing[j] + latency, work, Fraction(0), (between + moving[j]) / 2

    resources: dict[Any, list[Piece]] = {"gpus": [], "links": []}  # others are tuples: servers may have these names
    for j, job in enumerate(jobs):
        resources["gpus"].append(compute(j, Fraction(job["gpus"], sum(sizes))))
        placed = job.get("placement") or ()
        for server, gpu in placed:
            resources.setdefault((server, gpu), []).append(compute(j, Fraction(1)))
        if spans[j] > 1 and moving[j]:
            resources["links"].append(send(j, Fraction(spans[j], len(sizes))))
            for server in {server for server, _ in placed}:
                resources.setdefault((server,), []).append(send(j, Fraction(1)))

    def by_prices(fineness: int, edges: list[int], prices: list[int]) -> Fraction:
        numbers = [fineness, *edges, *prices]
        if not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in numbers) or fineness > 60:
            raise ValueError("fineness, edges and prices must be whole numbers from 0")
        tick = Fraction(1, 2**fineness)
        width = [b - a for a, b in itertools.pairwise(edges)]
        if min(width, default=1) < 1 or len(width) != len(prices):
            raise ValueError("edges must rise, with a price between each two")
        worth = sum(map(operator.mul, width, prices))
        total = Fraction(-sum(sizes) * worth * tick / GRID)
        for j, job in enumerate(jobs):
            first = math.floor(arrival[j] / tick)
            work = math.floor(job["iterations"] * computing[j] / tick * GRID)
            soonest = math.floor((alone[j] - message[j]) / tick)
            rate = job["gpus"] * GRID
            least = Fraction(paused(first, work, rate, edges, prices, soonest), GRID**3)
            begun = arrival[j] - first * tick
            total += max(alone[j], (least - 1) * tick - begun + message[j])
        return Fraction(total / len(jobs))

    def by_paths(fineness: int, span: int, first: int, gpus: list[int], links: list[int]) -> Fraction:
        whole = [fineness, span, first]
        if not all(isinstance(n, int) and not isinstance(n, bool) for n in whole) or abs(fineness) > 60:
            raise ValueError("fineness, span and first must be whole numbers")
        tick = Fraction(2) ** -fineness
        buckets = Buckets(Fraction(1), span, first, gpus, links)  # ticks, so that the unit of time does not matter
        paths = [
            Path(
                start / tick,
                c / tick,
                (m - move) / tick,
                move / tick,
                job["iterations"],
                job["gpus"],
                n if n > 1 else 0,
            )
            for job, start, c, m, move, n in zip(jobs, arrival, computing, message, moving, spans, strict=True)
        ]
        checked(paths, buckets)
        worth = (sum(sizes) * sum(gpus) + len(sizes) * sum(links)) * Fraction(span, GRID)
        return Fraction((sum(cheapest(path, buckets) for path in paths) - worth) * tick / len(jobs))

    def price(given: Mapping[str, Any], box: Mapping[str, Any]) -> Fraction:
        if "paths" in given:
            return by_paths(**given["paths"])
        if "prices" in given:
            return by_prices(**given)
        if set(given) - {"shares"}:
            raise ValueError(f"unknown {min(set(given) - {'shares'})!r}")
        if "shares" not in given:
            return best / len(jobs)
        total, left = sum(alone, Fraction(0)), [2**20] * len(jobs)
        for name, parts in given["shares"]:
            pieces = resources[name if isinstance(name, str) else tuple(name)]
            weights = {int(j): share for j, share in parts.items()}
            if any(type(share) is not int or share < 0 for share in weights.values()):
                raise ValueError("a share is a whole number of at least 0")
            for piece, busy in weighted([piece for piece in pieces if weights.get(piece[0])], weights):
                j, share = piece[0], weights[piece[0]]
                left[j] -= share
                total += Fraction(share, 2**20) * (busy + piece[4] - arrival[j] - alone[j])
        if min(left) < 0:
            raise ValueError("the shares of a job are more than 1 in all")
        return total / len(jobs)

    best = sum(alone, Fraction(0))
    for pieces in resources.values():
        here = {piece[0] for piece in pieces}
        later = max(ends(pieces) + sum(p[3] for p in pieces), means(pieces) + sum(p[4] for p in pieces))
        rest = sum(alone[j] for j in range(len(jobs)) if j not in here)
        best = max(best, rest + later - sum(arrival[j] for j in here))
    model.price = price


Piece = tuple[int, Fraction, Fraction, Fraction, Fraction]
"""What a job needs of a resource: job, release, work, tail, seconds from the work's mean moment to the finish."""


def ends(pieces: list[Piece]) -> Fraction:
    """The least sum of the ends of the work: shortest remaining work first."""
    coming = sorted((release, work) for _, release, work, _, _ in pieces)
    waiting: list[Fraction] = []
    now = total = Fraction(0)
    for place, (release, work) in enumerate(coming):
        now = max(now, release)
        heapq.heappush(waiting, work)
        until = coming[place + 1][0] if place + 1 < len(coming) else None
        while waiting and (until is None or now + waiting[0] <= until):
            now += heapq.heappop(waiting)
            total += now
        if waiting and until is not None:
            heapq.heapreplace(waiting, waiting[0] - (until - now))
            now = until
    return total


def means(pieces: list[Piece]) -> Fraction:
    """The least sum of mean busy times, each rounded down to 2^-80: smallest work first, which may pause."""
    return sum((busy for _, busy in weighted(pieces, {piece[0]: 1 for piece in pieces})), Fraction(0))


def weighted(pieces: list[Piece], weight: Mapping[int, int]) -> Iterator[tuple[Piece, Fraction]]:
    """(piece, mean busy time rounded down to 2^-80): the largest weight / work first, which may pause."""
    coming = sorted(pieces, key=lambda piece: piece[1])
    waiting: list[tuple[Fraction, int]] = []
    left, busy = [piece[2] for piece in coming], [Fraction(0)] * len(coming)
    now = Fraction(0)
    for place, (j, release, work, _, _) in enumerate(coming):
        now = max(now, release)
        heapq.heappush(waiting, (work / weight[j], place))
        until = coming[place + 1][1] if place + 1 < len(coming) else None
        while waiting and (until is None or now < until):
            k = waiting[0][1]
            step = left[k] if until is None else min(left[k], until - now)
            busy[k] += step * (now + step / 2)
            now, left[k] = now + step, left[k] - step
            if not left[k]:
                heapq.heappop(waiting)
    return ((piece, Fraction(math.floor(b / piece[2] * 2**80), 2**80)) for piece, b in zip(coming, busy, strict=True))


FORMS = {"rows": rows, "machines": machines}

"""rar-ddls: that no schedule ends by slot H. A certificate's option ``horizon`` is H.

Form ``rows``: every schedule that ends by H is a point with ``late`` = 0; any other one has ``late`` = 1, costs H + 1.
Form ``area``: what runs until H does not fit; see :func:`refuted`. In files of VIPR :func:`periods` says it as rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

try:
    from schedgap.solvers.certificates.linear import fraction, within
except ImportError:  # run as a file
    from linear import fraction, within  # type: ignore[import-not-found, no-redef]

TINY = Fraction(1, 10**9)
MOST_PERIODS = 1_000_000


def rate(instance: Mapping[str, Any], job: Mapping[str, Any], servers: int, rings: int) -> int:
    """Iterations per slot on so many servers, with so many rings on the busiest: floor(1/tau + 1e-9), tau of eq. 8."""
    net = instance["network"]
    share = Fraction(job["gradient_size"]) * (job["gpus"] - 1) / job["gpus"]
    bandwidth = Fraction(net["intra_bandwidth"])
    if servers > 1:
        k = max(Fraction(1), Fraction(net["contention_scale"]) * rings)
        bandwidth = Fraction(net["inter_bandwidth"]) / (k + Fraction(net["contention_penalty"]) * (k - 1))
    tau = 2 * share / bandwidth + share / Fraction(instance["reduce_speed"])
    tau += Fraction(net["server_overhead"]) * servers
    tau += Fraction(job["forward_time"]) * job["batch_size"] + Fraction(job["backward_time"])
    speed: int = math.floor(1 / tau + TINY)
    return speed


def most_on(instance: Mapping[str, Any], job: Mapping[str, Any]) -> list[int]:
    """The most GPUs of the job on each server when it crosses servers."""
    return [min(server["gpus"], job["gpus"] - 1) for server in instance["servers"]]


def numbers(instance: Mapping[str, Any], job: Mapping[str, Any]) -> list[int]:
    """Numbers of servers, 2 or more, on which the job can be, and on which it moves at all."""
    room, found = sorted(most_on(instance, job), reverse=True), []
    for n in range(2, min(job["gpus"], len(room)) + 1):
        if sum(room[:n]) >= job["gpus"] and room[n - 1] > 0 and rate(instance, job, n, 1):
            found.append(n)
    return found


def alone(instance: Mapping[str, Any], job: Mapping[str, Any]) -> int | None:
    """Slots of the job on one server; None where it fits on none, or does not move there."""
    speed = rate(instance, job, 1, 1)
    fits = any(server["gpus"] >= job["gpus"] for server in instance["servers"])
    return -(-job["iterations"] // speed) if fits and speed else None


def shortest(instance: Mapping[str, Any], job: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Fewest slots of the job on one server, and across servers without contention; None where it cannot."""
    across = [-(-job["iterations"] // rate(instance, job, n, 1)) for n in numbers(instance, job)]
    return alone(instance, job), min(across, default=None)


def _whole(value: Any, low: int, high: int | None, what: str) -> int:
    """A whole number of a leaf or an option; one test for a certificate of area and for its file of VIPR."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low or (high is not None and value > high):
        raise ValueError(f"{what} must be a whole number from {low}" + ("" if high is None else f" to {high}"))
    return value


def _horizon(instance: Mapping[str, Any], options: Mapping[str, Any]) -> int:
    return _whole(options["horizon"], 0, instance["horizon"], "option horizon")


def rows(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """All variables are 0/1 unless said otherwise.

    ``one[j,s,t]`` starts in t on server s alone; ``z[j,n,t,d]`` runs on n >= 2 servers in slots t..t+d-1; ``c[j,s]``
    crosses s, ``y[j,s]`` with so many GPUs; ``h[j,s,t]`` (real) holds in slot t; ``x[j,s,t]`` (real) crosses s then;
    ``q[j,t,p]`` meets p rings or more. Iterations made are those without contention less what q costs.
    """
    h_last, servers, jobs = _horizon(instance, options), instance["servers"], instance["jobs"]
    within(h_last * (len(servers) + len(jobs)))
    slots = range(1, h_last + 1)
    model.spare = ("x", "q")
    early = h_last < instance["horizon"]
    if early:
        model.var("late", 0, 1, h_last + 1)
    load: dict[tuple[int, int], list[tuple[str, Any]]] = {(s, t): [] for s in range(len(servers)) for t in slots}
    rings: dict[tuple[int, int], list[tuple[int, str]]] = {(s, t): [] for s in range(len(servers)) for t in slots}
    spread = [numbers(instance, job) for job in jobs]
    crossing = sum(bool(n) for n in spread)
    most = max(1, min(crossing, max(server["gpus"] for server in servers)))
    for j, job in enumerate(jobs):
        begins: list[tuple[str, Any]] = [("late", 1)] if early else []
        length = alone(instance, job)
        for s, server in enumerate(servers):
            for t in range(1, h_last - (length or h_last + 1) + 2):
                if server["gpus"] >= job["gpus"] and length is not None:
                    begins.append((model.var(f"one[{j},{s},{t}]"), 1))
                    for u in range(t, t + length):
                        load[s, u].append((f"one[{j},{s},{t}]", job["gpus"]))
        begins += _across(instance, j, spread[j], most, h_last, load, rings, model)
        model.row(f"once[{j}]", begins, "=", 1)
    for (s, t), terms in load.items():
        model.row(f"gpus[{s},{t}]", terms, "<=", servers[s]["gpus"])
    for (s, t), here in rings.items():
        for j, x in here:
            others = [v for k, v in here if k != j]
            for p in range(2, most + 1):
                name = f"q[{j},{t},{p}]"
                if name not in model.index:
                    continue
                if p == 2:
                    for k, v in here:
                        if k != j:
                            model.row(f"meet[{j},{s},{t},{k}]", [(v, 1), (x, 1), (name, -1)], "<=", 1)
                elif len(others) >= p - 1:
                    room = len(others) - p + 2
                    terms = [*((v, 1) for v in others), (name, -room), (x, room)]
                    model.row(f"crowd[{j},{s},{t},{p}]", terms, "<=", room + p - 2)


def _across(
    instance: Mapping[str, Any], j: int, spread: list[int], most: int, h_last: int, load: Any, rings: Any, model: Any
) -> list[tuple[str, Any]]:
    """Job j across servers; the variables of its runs."""
    job, goal = instance["jobs"][j], instance["jobs"][j]["iterations"]
    room = most_on(instance, job)
    runs: dict[str, tuple[int, int, int]] = {}
    for n in spread:
        slowest = rate(instance, job, n, most)
        for d in range(
            -(-goal // rate(instance, job, n, 1)), min(h_last, -(-goal // slowest) if slowest else h_last) + 1
        ):
            for t in range(1, h_last - d + 2):
                runs[model.var(f"z[{j},{n},{t},{d}]")] = (n, t, d)
    if not runs:
        return []
    some = [s for s, c in enumerate(room) if c]
    for s in some:
        model.var(f"c[{j},{s}]")
        model.var(f"y[{j},{s}]", 0, room[s])
        model.row(f"cross[{j},{s}]", [(f"y[{j},{s}]", 1), (f"c[{j},{s}]", -1)], ">=", 0)
        model.row(f"room[{j},{s}]", [(f"y[{j},{s}]", 1), (f"c[{j},{s}]", -room[s])], "<=", 0)
    model.row(f"gang[{j}]", [*((f"y[{j},{s}]", 1) for s in some), *((z, -job["gpus"]) for z in runs)], "=", 0)
    model.row(f"count[{j}]", [*((f"c[{j},{s}]", 1) for s in some), *((z, -n) for z, (n, _, _) in runs.items())], "=", 0)
    drops = {n: [rate(instance, job, n, p - 1) - rate(instance, job, n, p) for p in range(2, most + 1)] for n in spread}
    met = [p for p in range(2, most + 1) if any(drop[p - 2] for drop in drops.values())]
    for t in range(1, h_last + 1):
        active = [z for z, (_, first, d) in runs.items() if first <= t < first + d]
        if not active:
            continue
        held = []
        for s in some:
            h = model.var(f"h[{j},{s},{t}]", 0, room[s], whole=False)
            held.append((h, 1))
            load[s, t].append((h, 1))
            model.row(f"held[{j},{s},{t}]", [(h, 1), (f"y[{j},{s}]", -1)], "<=", 0)
            on = [(z, -room[s]) for z in active]
            model.row(f"holds[{j},{s},{t}]", [(h, 1), (f"y[{j},{s}]", -1), *on], ">=", -room[s])
            if met:
                x = model.var(f"x[{j},{s},{t}]", 0, 1, whole=False)
                rings[s, t].append((j, x))
                model.row(f"ring[{j},{s},{t}]", [(x, 1), (f"c[{j},{s}]", -1), *((z, -1) for z in active)], ">=", -1)
        model.row(f"all[{j},{t}]", [*held, *((z, -job["gpus"]) for z in active)], "=", 0)
        for p in met:
            model.var(f"q[{j},{t},{p}]")
    for n in spread:
        speed = rate(instance, job, n, 1)
        own = {z: d for z, (m, _, d) in runs.items() if m == n}
        lost = [
            (f"q[{j},{t},{p}]", -drops[n][p - 2])
            for t in range(1, h_last + 1)
            for p in met
            if f"q[{j},{t},{p}]" in model.index
        ]
        slack = -sum(a for _, a in lost)
        terms = [*((z, speed * d - goal - slack) for z, d in own.items()), *lost]
        if own:
            model.row(f"work[{j},{n}]", terms, ">=", -slack)
    return [(z, 1) for z in runs]


def area(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """No rows: :func:`refuted` looks at what a leaf carries."""
    h_last = _horizon(instance, options)
    model.price = lambda given, box: Fraction(h_last + 1 if refuted(instance, given, h_last) else 0)


def refuted(instance: Mapping[str, Any], given: Mapping[str, Any], h_last: int) -> bool:
    """Whether no schedule ends by slot H, with d_j the fewest slots of job j and N all GPUs, by one of

    - ``{"job": j}``: d_j > H;
    - ``{"weights": {gang: w}, "margin": a}``: w >= 0; gangs that fit N GPUs together weigh at most W, found here by
      dynamic programming. Of its d_j slots a job spends at least max(0, min(d_j - a, H - 2a)) in slots a+1..H-a, so
      there is no schedule if these, weighted, are more than W (H - 2a);
    - ``{"gang": g, "factor": "p/q"}``: servers hold at most sum floor(O_s / g) gangs of g or more whole. So with
      d_j^1 on one server and d_j^2 across, sum min((G + l [G >= g]) d^1, G d^2) > (N + l sum floor(O_s / g)) H.
    """
    jobs, servers = instance["jobs"], instance["servers"]
    total = sum(server["gpus"] for server in servers)
    known: dict[str, tuple[int | None, int | None]] = {}
    spans = []
    for job in jobs:
        kind = str({k: v for k, v in job.items() if k != "id"})
        if kind not in known:
            known[kind] = shortest(instance, job)
        spans.append(known[kind])
    if set(given) == {"job"}:
        return all(d is None or d > h_last for d in spans[_whole(given["job"], 0, len(jobs) - 1, "job")])
    if any(span == (None, None) for span in spans):
        raise ValueError("a job can not run at all")
    least = [min(d for d in span if d is not None) for span in spans]
    if set(given) == {"weights", "margin"}:
        weights = {int(g): _whole(w, 0, None, "a weight") for g, w in given["weights"].items()}
        a = _whole(given["margin"], 0, None, "margin")
        best = [0] * (total + 1)
        for size in range(1, total + 1):
            best[size] = max([best[size - 1], *(best[size - g] + w for g, w in weights.items() if 0 < g <= size)])
        width = h_last - 2 * a
        inside = sum(
            weights.get(job["gpus"], 0) * max(0, min(d - a, width)) for job, d in zip(jobs, least, strict=True)
        )
        return width > 0 and inside > best[total] * width
    if set(given) != {"gang", "factor"}:
        raise ValueError("a leaf has job, or weights and margin, or gang and factor")
    gang, factor = _whole(given["gang"], 1, None, "gang"), fraction(given["factor"], "factor")
    if factor < 0:
        raise ValueError("factor must not be negative")
    used = Fraction(0)
    for job, (one, two) in zip(jobs, spans, strict=True):
        extra = factor if job["gpus"] >= gang else 0
        used += min(d for d in (_area(job["gpus"] + extra, one), _area(job["gpus"], two)) if d is not None)
    return bool(used > (total + factor * sum(server["gpus"] // gang for server in servers)) * h_last)


def _area(width: Any, length: int | None) -> Any:
    return None if length is None else width * length


def periods(instance: Mapping[str, Any], options: Mapping[str, Any], model: Any) -> None:
    """What :func:`refuted` says as rows, for checkers that know rows alone.

    A schedule that does not end by H has ``late`` = 1. With d_j the fewest slots of job j, by options:

    - ``job``: it runs for ``slots`` of them, at least d_j;
    - ``margin`` a, ``slots``: slots a+1..H-a are one period or, with ``slots``, a period each.
      ``held[g,p]`` gangs of g GPUs are held in period p, added up over its slots.
      The d_j slots of a job follow each other, so max(0, min(d_j - a, H - 2a)) are among these;
    - ``gang`` g: job j runs on one server (``alone``) for ``one`` slots or across servers for ``two``.
    """
    h_last, jobs = _horizon(instance, options), instance["jobs"]
    total = sum(server["gpus"] for server in instance["servers"])
    model.var("late", 0, 1, h_last + 1)
    spans = [shortest(instance, job) for job in jobs]
    if "job" in options:
        span = spans[_whole(options["job"], 0, len(jobs) - 1, "option job")]
        least = min((d for d in span if d is not None), default=h_last + 1)
        model.var("slots", 0, h_last, whole=False)
        model.row("run", [("slots", 1), ("late", least)], ">=", least)
        return
    if any(span == (None, None) for span in spans):
        raise ValueError("a job can not run at all")
    if "gang" in options:
        _one_or_two(instance, _whole(options["gang"], 1, None, "option gang"), spans, model)
        return
    margin = _whole(options["margin"], 0, None, "option margin")
    width = h_last - 2 * margin
    if width < 1 or width > MOST_PERIODS:
        raise ValueError(f"from 1 to {MOST_PERIODS} slots have to be between the margins")
    work: dict[int, int] = {}
    for job, span in zip(jobs, spans, strict=True):
        least = min(d for d in span if d is not None)
        inside = max(0, min(least - margin, width))
        work[job["gpus"]] = work.get(job["gpus"], 0) + inside
    lengths = [1] * width if options["slots"] else [width]
    for p, length in enumerate(lengths):
        for g in work:
            model.var(f"held[{g},{p}]", 0, length * (total // g), whole=bool(options["slots"]))
        model.row(f"gpus[{p}]", [(f"held[{g},{p}]", g) for g in work], "<=", total * length)
    for g, inside in work.items():
        held = [(f"held[{g},{p}]", 1) for p in range(len(lengths))]
        model.row(f"work[{g}]", [*held, ("late", inside)], ">=", inside)


def _one_or_two(instance: Mapping[str, Any], gang: int, spans: list[Any], model: Any) -> None:
    """The rows of :func:`periods` with ``gang``."""
    h_last, servers, jobs = model.cost[0] - 1, instance["servers"], instance["jobs"]
    for j, span in enumerate(spans):
        ways = [(kind, d) for kind, d in zip(("one", "two"), span, strict=True) if d is not None]
        both = len(ways) == 2
        if both:
            model.var(f"alone[{j}]", whole=False)
        for kind, d in ways:
            terms: list[tuple[str, Any]] = [(model.var(f"{kind}[{j}]", 0, h_last, whole=False), 1)]
            if both:
                terms.append((f"alone[{j}]", d if kind == "two" else -d))
            unless = kind == "two" or not both
            if unless:
                terms.append(("late", d))
            model.row(f"runs[{kind},{j}]", terms, ">=", d if unless else 0)
    total = sum(server["gpus"] for server in servers)
    used = [(f"{kind}[{j}]", job["gpus"]) for j, job in enumerate(jobs) for kind in ("one", "two")]
    used = [(name, gpus) for name, gpus in used if name in model.index]
    model.row("gpus", used, "<=", total * h_last)
    large = [(name, 1) for name, gpus in used if gpus >= gang and name.startswith("one")]
    most = sum(server["gpus"] // gang for server in servers)
    model.row("large", large, "<=", most * h_last)


def completions(instance: Mapping[str, Any], solution: Mapping[str, Any]) -> list[tuple[int, list[int]]]:
    """Each job's last slot and the number of rings it meets in each of its slots; slot by slot."""
    jobs = instance["jobs"]
    held = [solution["placement"][job["id"]] for job in jobs]
    crossed = [{s for s, g in place.items() if g < job["gpus"]} for job, place in zip(jobs, held, strict=True)]
    start = [solution["start"][job["id"]] for job in jobs]
    met: list[list[int]] = [[] for _ in jobs]
    done, last = [0] * len(jobs), [0] * len(jobs)
    for t in range(1, instance["horizon"] + 1):
        active = [j for j in range(len(jobs)) if start[j] <= t and not last[j]]
        for j in active:
            rings = max((sum(s in crossed[k] for k in active) for s in crossed[j]), default=0)
            met[j].append(rings)
            done[j] += rate(instance, jobs[j], len(held[j]), rings)
        for j in active:
            last[j] = t if done[j] >= jobs[j]["iterations"] else 0
    return list(zip(last, met, strict=True))


def point(instance: Mapping[str, Any], solution: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The point of a schedule in :func:`rows`."""
    h_last, where = _horizon(instance, options), {server["id"]: s for s, server in enumerate(instance["servers"])}
    found: dict[str, Any] = {}
    runs = completions(instance, solution)
    makespan = max(last or instance["horizon"] + 1 for last, _ in runs)
    found["objective"] = makespan
    if makespan > h_last:
        return {"objective": makespan, "late": 1}
    for j, (job, (last, met)) in enumerate(zip(instance["jobs"], runs, strict=True)):
        t, place = solution["start"][job["id"]], solution["placement"][job["id"]]
        if len(place) == 1:
            found[f"one[{j},{where[next(iter(place))]},{t}]"] = 1
            continue
        found[f"z[{j},{len(place)},{t},{last - t + 1}]"] = 1
        for name, gpus in place.items():
            s = where[name]
            found[f"c[{j},{s}]"], found[f"y[{j},{s}]"] = 1, gpus
            for u in range(t, last + 1):
                found[f"h[{j},{s},{u}]"], found[f"x[{j},{s},{u}]"] = gpus, 1
        for u, rings in zip(range(t, last + 1), met, strict=True):
            found.update({f"q[{j},{u},{p}]": 1 for p in range(2, rings + 1)})
    return found


FORMS = {"rows": rows, "area": area}
AS_ROWS = {"periods": periods}
"""What a file of VIPR says in place of a form without rows."""

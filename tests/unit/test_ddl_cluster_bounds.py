"""The bound of ddl-cluster against its definition, worked out plainly in rationals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.bounds import (
    SHARE_GRID,
    alone_times,
    lower_bound,
    resource_bound,
    servers_spanned,
    shared_bound,
    shares,
)
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, simulate_plain
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.content import certificate_of, plain
from schedgap.solvers.certificates.linear import GRID, Rejected
from schedgap.solvers.certificates.make import check
from schedgap.solvers.certificates.makers.ddl_cluster import _named
from schedgap.solvers.exact.ddl_cluster import paths
from schedgap.solvers.exact.ddl_cluster.bound import lower_bound as better_bound
from schedgap.solvers.exact.ddl_cluster.bound import priced


def drawn(seed: int) -> DdlClusterInstance:
    """Two to four jobs on three servers of different sizes, some with a placement and some without."""
    rng = np.random.default_rng(seed)
    sizes = [int(x) for x in rng.integers(1, 5, 3)]
    jobs = []
    for k in range(int(rng.integers(2, 5))):
        gpus = int(rng.integers(1, 1 + sum(sizes)))
        job = {
            "id": f"j{k}",
            "arrival": round(float(rng.choice([0.0, rng.uniform(0, 6)])), 2),
            "gpus": gpus,
            "iterations": int(rng.integers(1, 5)),
            "forward": round(float(rng.uniform(0.05, 1)), 2),
            "backward": round(float(rng.uniform(0.05, 2)), 2),
            "message": round(float(rng.uniform(0.1, 3)), 2),
            "memory": 1.0,
        }
        if rng.random() < 0.7:
            places = [[f"s{s}", g] for s, size in enumerate(sizes) for g in range(size)]
            job["placement"] = [places[i] for i in rng.choice(len(places), gpus, replace=False)]
        jobs.append(job)
    return DdlClusterInstance.parse(
        {
            "problem": "ddl-cluster",
            "gpu_memory": 10.0,
            "servers": [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)],
            "link": {"latency": 0.1, "seconds_per_unit": float(rng.choice([0.2, 1.0])), "contention_penalty": 0.3},
            "jobs": jobs,
        }
    )


@dataclass
class Work:
    """One job's share of a machine: release, work, and what its finish is later than the end and the mean of it."""

    arrival: Fraction
    release: Fraction
    work: Fraction
    tail: Fraction
    after_mean: Fraction


def preempted(works: list[Work], rank: Callable[[Work, Fraction], Fraction]) -> tuple[Fraction, Fraction]:
    """Sum of ends and sum of mean busy moments on one machine that always runs the one of least rank."""
    left = [w.work for w in works]
    busy = [Fraction(0)] * len(works)
    clock = min(w.release for w in works)
    ends = Fraction(0)
    while any(left):
        later = [w.release for w in works if w.release > clock]
        here = [k for k, w in enumerate(works) if w.release <= clock and left[k]]
        if not here:
            clock = min(later)
            continue
        k = min(here, key=lambda k: (rank(works[k], left[k]), k))
        step = min([left[k], *(r - clock for r in later)])
        busy[k] += step * (clock + step / 2)
        clock += step
        left[k] -= step
        ends += clock if not left[k] else 0
    return ends, sum((b / w.work for b, w in zip(busy, works, strict=True)), Fraction(0))


def plain_bound(instance: DdlClusterInstance) -> Fraction:
    """The definition in the docstring of ``lower_bound``, resource by resource."""
    a, b, _ = instance.link.exact_parameters()
    sizes = sorted((server.gpus for server in instance.servers), reverse=True)
    gpus, links = sum(sizes), len(sizes)
    jobs = instance.jobs
    spanned = [
        len({s for s, _ in given}) if given is not None else next(n for n in range(1, 4) if sum(sizes[:n]) >= job.gpus)
        for job, given in zip(jobs, instance.given, strict=True)
    ]
    compute = [exact(job.forward) + exact(job.backward) for job in jobs]
    message = [a + b * exact(job.message) if n > 1 else Fraction(0) for job, n in zip(jobs, spanned, strict=True)]
    alone = [job.iterations * (c + m) for job, c, m in zip(jobs, compute, message, strict=True)]

    def tasks(j: int, share: Fraction) -> tuple[int, Work]:
        arrival = exact(jobs[j].arrival)
        work = jobs[j].iterations * compute[j] * share
        return j, Work(arrival, arrival, work, message[j], (alone[j] + message[j]) / 2)

    def messages(j: int, share: Fraction) -> tuple[int, Work]:
        arrival, one = exact(jobs[j].arrival), b * exact(jobs[j].message)
        mean = (jobs[j].iterations - 1) * (compute[j] + message[j]) / 2 + one / 2
        return j, Work(arrival, arrival + compute[j] + a, jobs[j].iterations * one * share, Fraction(0), mean)

    wide = [j for j, n in enumerate(spanned) if n > 1]
    resources = [[tasks(j, Fraction(job.gpus, gpus)) for j, job in enumerate(jobs)]]
    resources.append([messages(j, Fraction(spanned[j], links)) for j in wide])
    places = {place for given in instance.given for place in given or ()}
    resources += [
        [tasks(j, Fraction(1)) for j, given in enumerate(instance.given) if p in (given or ())] for p in places
    ]
    for s in range(links):
        here = [j for j in wide if s in {server for server, _ in instance.given[j] or ()}]
        resources.append([messages(j, Fraction(1)) for j in here])
    best = sum(alone)
    for resource in resources:
        if len(resource) > 1:
            works = [work for _, work in resource]
            ends, _ = preempted(works, lambda work, left: left)
            _, means = preempted(works, lambda work, left: work.work)
            value = max(ends + sum(w.tail for w in works), means + sum(w.after_mean for w in works))
            rest = sum(alone[j] for j in range(len(jobs)) if j not in {j for j, _ in resource})
            best = max(best, rest + value - sum(w.arrival for w in works))
    return best / len(jobs)


@pytest.mark.parametrize("seed", range(60))
def test_the_bound_is_its_definition(seed: int) -> None:
    instance = drawn(seed)
    wanted = plain_bound(instance)
    assert resource_bound(instance) == pytest.approx(float(wanted), rel=1e-11)
    assert exact(resource_bound(instance)) <= wanted
    given = shares(instance)
    names = [server.id for server in instance.servers]
    content = [[_named(names, r), {str(j): u for j, u in own.items()}] for r, own in given.items()]
    rule = machines(instance)
    assert shared_bound(instance, given) == pytest.approx(float(rule({"shares": content}, {})), rel=1e-11)
    assert exact(shared_bound(instance, given)) <= rule({"shares": content}, {})
    assert all(sum(own.get(j, 0) for own in given.values()) <= SHARE_GRID for j in range(len(instance.jobs)))


def machines(instance: DdlClusterInstance) -> Callable[[Mapping[str, Any], Mapping[str, Any]], Fraction]:
    """The certificate checker's own evaluation of the form ``machines``."""
    price = checker.model_of(plain(instance), "machines", {}).price
    assert price is not None
    return price


def test_several_resources_bound_more_than_one() -> None:
    higher = sum(lower_bound(drawn(seed)) > resource_bound(drawn(seed)) * (1 + 1e-6) for seed in range(60))
    assert higher >= 5


def test_a_server_may_have_the_name_of_all_gpus_or_links() -> None:
    for seed in range(20):
        data = drawn(seed).to_dict()
        changed = json.loads(json.dumps(data).replace('"s0"', '"gpus"').replace('"s1"', '"links"'))
        bounds = [machines(DdlClusterInstance.parse(given))({}, {}) for given in (data, changed)]
        assert bounds[0] == bounds[1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"shares": [["gpus", {"0": SHARE_GRID}], ["gpus", {"0": 1}]]},
        {"shares": [["gpus", {"0": -1}]]},
        {"shares": [["gpus", {"0": 0.5}]]},
        {"share": []},
    ],
)
def test_shares_of_more_than_one_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="share"):
        machines(drawn(0))(wrong, {})


def test_every_part_of_the_bound_is_the_best_somewhere() -> None:
    above = sum(lower_bound(drawn(seed)) > sum(alone_times(drawn(seed))) / len(drawn(seed).jobs) for seed in range(60))
    assert 10 <= above <= 58


def crowded(seed: int, widest: int) -> DdlClusterInstance:
    """Eight jobs without a placement, more than the GPUs can take at once."""
    rng = np.random.default_rng(seed)
    data = drawn(seed).to_dict()
    data["servers"] = [{"id": "s0", "gpus": 2}, {"id": "s1", "gpus": 2}]
    data["jobs"] = [
        {
            "id": f"j{k}",
            "arrival": round(float(rng.uniform(0, 4)), 2),
            "gpus": int(rng.integers(1, widest + 1)),
            "iterations": int(rng.integers(1, 5)),
            "forward": round(float(rng.uniform(0.05, 1)), 2),
            "backward": round(float(rng.uniform(0.05, 2)), 2),
            "message": round(float(rng.uniform(0.1, 3)), 2),
            "memory": 1.0,
        }
        for k in range(8)
    ]
    return DdlClusterInstance.parse(data)


def plain_prices(instance: DdlClusterInstance, fineness: int, edges: list[int], prices: list[int]) -> Fraction:
    """What prices on GPU time prove, tick by tick."""
    tick, link = Fraction(1, 2**fineness), instance.link
    total = -instance.total_gpus * sum(
        (b - a) * p * tick / GRID for a, b, p in zip(edges, edges[1:], prices, strict=False)
    )
    for job, servers in zip(instance.jobs, servers_spanned(instance), strict=True):
        sends = exact(link.latency) + exact(link.seconds_per_unit) * exact(job.message) if servers > 1 else Fraction(0)
        computes = job.iterations * (exact(job.forward) + exact(job.backward))
        last = computes + (job.iterations - 1) * sends
        first, work = math.floor(exact(job.arrival) / tick), Fraction(math.floor(computes / tick * GRID), GRID)
        best: Fraction | None = None
        for end in range(first + math.ceil(work), max(edges[-1], first) + 2 * math.ceil(last / tick) + 2):
            need, cost = work, Fraction(0)
            at = [next((p for p, a, b in zip(prices, edges, edges[1:]) if a <= t < b), 0) for t in range(first, end)]  # noqa: B905
            for p in sorted(at):
                cost, need = cost + Fraction(p, GRID) * min(need, 1), need - min(need, 1)
            value = max(end - first, math.floor(last / tick)) + job.gpus * cost
            best = value if best is None else min(best, value)
        assert best is not None
        total += max(last + sends, best * tick - (exact(job.arrival) - first * tick) - tick + sends)
    return total / len(instance.jobs)


@pytest.mark.parametrize("seed", range(4))
def test_prices_on_gpu_time_prove_what_ticks_add_up_to(seed: int) -> None:
    instance, rng = crowded(seed, 3), np.random.default_rng(seed)
    for _ in range(4):
        edges = np.unique(rng.integers(0, 60, 5)).tolist()
        given = {"fineness": 2, "edges": edges, "prices": rng.integers(0, GRID, len(edges) - 1).tolist()}
        assert machines(instance)(given, {}) == plain_prices(instance, **given)


@pytest.mark.parametrize("seed", range(4))
def test_prices_and_claims_that_are_off_by_a_billionth_are_refused(seed: int) -> None:
    instance = crowded(seed, 2)
    found = priced(instance)
    assert better_bound(instance) > lower_bound(instance) * (1 + 1e-3)
    prices = np.rint(found.prices * GRID).astype(np.int64).tolist()
    leaf = {"fineness": found.fineness, "edges": found.edges.tolist(), "prices": prices}
    value = machines(instance)(leaf, {})
    assert float(value) == pytest.approx(better_bound(instance), rel=1e-8)
    given = plain(instance)

    def proves(claim: Fraction, leaf: Mapping[str, Any]) -> bool:
        try:
            check(instance, certificate_of(given, "machines", {}, claim, {"prices": dict(leaf)}))
        except Rejected:
            return False
        return True

    assert proves(value, leaf) and not proves(value + Fraction(1, 10**9), leaf)
    refused, moved = 0, GRID // 10**9 + 1
    for k in range(len(prices)):
        for sign in (-1, 1):
            other = {**leaf, "prices": [p + sign * moved * (place == k) for place, p in enumerate(prices)]}
            if min(other["prices"]) < 0:
                continue
            lower = machines(instance)(other, {}) < value
            assert proves(value, other) != lower
            refused += lower
    assert refused >= 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"fineness": 2, "edges": [0, 0], "prices": [1]},
        {"fineness": 2, "edges": [0, 4], "prices": [1, 2]},
        {"fineness": 2, "edges": [0, 4], "prices": [-1]},
        {"fineness": 2, "edges": [0, 4], "prices": [True]},
        {"fineness": 61, "edges": [0, 4], "prices": [1]},
    ],
)
def test_malformed_prices_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"edges must rise|whole numbers"):
        machines(drawn(0))(wrong, {})


def test_servers_that_a_job_needs() -> None:
    data = drawn(0).to_dict()
    data["servers"] = [{"id": "s0", "gpus": 1}, {"id": "s1", "gpus": 4}, {"id": "s2", "gpus": 3}]
    shape = {"arrival": 0.0, "iterations": 1, "forward": 1.0, "backward": 1.0, "message": 1.0, "memory": 1.0}
    data["jobs"] = [shape | {"id": f"j{gpus}", "gpus": gpus} for gpus in (1, 4, 5, 7, 8)]
    assert servers_spanned(DdlClusterInstance.parse(data)) == [1, 1, 2, 2, 3]


def test_no_policy_is_below_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0
    for seed in range(100):
        instance = drawn(seed)
        monkeypatch.setattr(paths, "_CELLS", 4_000_000 if seed < 10 else 100_000)  # the finest take a second each
        if all(given is not None for given in instance.given):
            placement, bound = [given or () for given in instance.given], better_bound(instance)
            for policy in POLICIES:
                finish = simulate_plain(instance, placement, policy).finish
                flow = sum(end - job.arrival for end, job in zip(finish, instance.jobs, strict=True))
                assert bound <= flow / len(finish) * (1 + 1e-12)
                tried += 1
    assert tried > 50

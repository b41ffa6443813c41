"""Identical machines: makespan and sums of completion times, exactly and by lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations, product
from random import Random

from hypothesis import strategies as st

from schedgap.claims import Fraction
from schedgap.formulations.common.instance import Json

Instance = dict[str, Json]


def machines_and_jobs(rng: Random) -> Instance:
    """One to four machines, one to eight jobs of 1 to 9."""
    return {"machines": rng.randint(1, 4), "jobs": [rng.randint(1, 9) for _ in range(rng.randint(1, 8))]}


MACHINES_AND_JOBS = st.fixed_dictionaries(
    {"machines": st.integers(1, 4), "jobs": st.lists(st.integers(1, 9), min_size=1, max_size=8)}
)


def least_makespan(instance: Instance) -> int:
    """The least makespan, found by all vectors of loads."""
    loads = {(0,) * instance["machines"]}
    for job in instance["jobs"]:
        loads = {tuple(sorted((*held[:k], held[k] + job, *held[k + 1 :]))) for held in loads for k in range(len(held))}
    return int(min(map(max, loads)))


def listed(jobs: Sequence[int], machines: int) -> list[tuple[int, int]]:
    """Start and end of each job, in the order given, each on the machine that is free first."""
    load, spans = [0] * machines, []
    for job in jobs:
        k = load.index(min(load))
        spans.append((load[k], load[k] + job))
        load[k] += job
    return spans


def list_scheduling(instance: Instance) -> int:
    """Jobs as they come."""
    return max(end for _, end in listed(instance["jobs"], instance["machines"]))


def longest_first(instance: Instance) -> int:
    """LPT."""
    return max(end for _, end in listed(sorted(instance["jobs"], reverse=True), instance["machines"]))


def shortest_first_makespan(instance: Instance) -> int:
    """The makespan of SPT."""
    return max(end for _, end in listed(sorted(instance["jobs"]), instance["machines"]))


def shortest_first(instance: Instance) -> int:
    """The sum of completion times of SPT."""
    return sum(end for _, end in listed(sorted(instance["jobs"]), instance["machines"]))


def least_completion_sum(instance: Instance) -> int:
    """The least sum, found by all assignments to machines, each shortest first."""
    best = None
    jobs = sorted(instance["jobs"])[:6]
    for machines in product(range(instance["machines"]), repeat=len(jobs)):
        ends, total = [0] * instance["machines"], 0
        for job, k in zip(jobs, machines, strict=True):
            ends[k] += job
            total += ends[k]
        best = total if best is None else min(best, total)
    return best or 0


def few_jobs(rng: Random) -> Instance:
    """One to three machines, one to six jobs of 1 to 9."""
    return {"machines": rng.randint(1, 3), "jobs": [rng.randint(1, 9) for _ in range(rng.randint(1, 6))]}


FEW_JOBS = st.fixed_dictionaries(
    {"machines": st.integers(1, 3), "jobs": st.lists(st.integers(1, 9), min_size=1, max_size=6)}
)


def weighted_jobs(rng: Random) -> Instance:
    """One to three machines, one to six pairs of time and weight."""
    jobs = [(rng.randint(1, 9), rng.randint(1, 9)) for _ in range(rng.randint(1, 6))]
    return {"machines": rng.randint(1, 3), "jobs": jobs}


WEIGHTED_JOBS = st.fixed_dictionaries(
    {
        "machines": st.integers(1, 3),
        "jobs": st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6),
    }
)


def _weighted(order: Sequence[tuple[int, int]], machines: int) -> int:
    spans = listed([time for time, _ in order], machines)
    return sum(end * weight for (_, end), (_, weight) in zip(spans, order, strict=True))


def smith(instance: Instance) -> int:
    """WSPT: by time over weight."""
    return _weighted(sorted(instance["jobs"], key=lambda job: Fraction(*job)), instance["machines"])


def least_weighted_sum(instance: Instance) -> int:
    """The least sum, found by all assignments to machines, each by time over weight, which is optimal on one."""
    jobs, best = sorted(instance["jobs"], key=lambda job: Fraction(*job)), None
    for machines in product(range(instance["machines"]), repeat=len(jobs)):
        ends, total = [0] * instance["machines"], 0
        for (job, weight), k in zip(jobs, machines, strict=True):
            ends[k] += job
            total += ends[k] * weight
        best = total if best is None else min(best, total)
    return best or 0


def smith_on_one(instance: Instance) -> int:
    """WSPT on one machine."""
    return smith({**instance, "machines": 1})


def least_on_one(instance: Instance) -> int:
    """The least value of all orders of at most six jobs."""
    return min(_weighted(order, 1) for order in permutations(instance["jobs"]))


def ordered_jobs(rng: Random) -> Instance:
    """One to three machines, up to five jobs, some before others."""
    jobs = [rng.randint(1, 5) for _ in range(rng.randint(2, 5))]
    pairs = [pair for pair in combinations(range(len(jobs)), 2) if rng.random() < 0.3]
    return {"machines": rng.randint(1, 3), "jobs": jobs, "before": pairs}


@st.composite
def ordered_strategy(draw: st.DrawFn) -> Instance:
    jobs = draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
    pairs = list(combinations(range(len(jobs)), 2))
    return {
        "machines": draw(st.integers(1, 3)),
        "jobs": jobs,
        "before": [p for p in pairs if draw(st.integers(0, 9)) < 3],
    }


def _serial(instance: Instance, order: Sequence[int], idle: bool) -> int | None:
    """The makespan of jobs placed in an order; None where one comes before its predecessor.

    With `idle` each is placed at the first moment at which a machine is free from then on; else jobs are started as
    machines become free, the first available of the list.
    """
    jobs, before = instance["jobs"], instance["before"]
    free, ends = [0] * instance["machines"], dict[int, int]()
    waiting = list(order)
    while waiting:
        free.sort()
        if idle:
            job = waiting[0]
        else:
            # the first of the list whose predecessors end first, no later than a machine is free
            moment = {
                j: max((ends.get(i, -1) for i, k in before if k == j), default=0)
                for j in waiting
                if all(i in ends for i, k in before if k == j)
            }
            now = max(free[0], min(moment.values()))
            job = next(j for j in waiting if j in moment and moment[j] <= now)
        if any(k == job and i not in ends for i, k in before):
            return None
        ready = max((ends[i] for i, k in before if k == job), default=0)
        k = max((k for k in range(len(free)) if free[k] <= ready), default=0)
        ends[job] = max(free[k], ready) + jobs[job]
        free[k] = ends[job]
        waiting.remove(job)
    return max(ends.values())


def list_with_order(instance: Instance) -> int:
    """List scheduling with predecessors."""
    return _serial(instance, range(len(instance["jobs"])), idle=False) or 0


def least_with_order(instance: Instance) -> int | None:
    """The least value of all orders."""
    ends = (_serial(instance, order, idle=True) for order in permutations(range(len(instance["jobs"]))))
    return min((end for end in ends if end is not None), default=None)

"""The optimum of tiny ddl-cluster instances by enumeration: every order of events, a linear program for each.

Independent of the grid model: time is continuous, levels of contention follow from the order of the begins and ends
of the transfers, and of jobs that do not fit a GPU together one ends before another begins. Programs are solved in
floats first; those that come near the best one are solved again in rational numbers, so that near ties are told apart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations, product
from typing import Any

import highspy
import numpy as np

from oracles.exact_lp import ZERO, minimum
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

MOST_ORDERS = 90
"""More orders than this are not gone through by :func:`solve_brute_force`."""
NEAR = 1e-5
"""Relative: what the floats of a program may be off by."""

Placement = tuple[tuple[Gpu, ...], ...]
Terms = dict[object, Fraction]


def placements(instance: DdlClusterInstance) -> Iterator[Placement]:
    """Every way to give GPUs to the jobs that have none."""
    gpus = [(s, g) for s, server in enumerate(instance.servers) for g in range(server.gpus)]
    yield from product(
        *(
            combinations(gpus, job.gpus) if given is None else [tuple(sorted(given))]
            for job, given in zip(instance.jobs, instance.given, strict=True)
        )
    )


def placed(instance: DdlClusterInstance, placement: Placement) -> DdlClusterInstance:
    """The instance with these GPUs given."""
    data = instance.to_dict()
    for job, gpus in zip(data["jobs"], placement, strict=True):
        job["placement"] = [[instance.servers[s].id, g] for s, g in gpus]
    return DdlClusterInstance.parse(data)


def merges(lengths: list[int]) -> Iterator[tuple[int, ...]]:
    """Every interleaving of sequences of these lengths, as the sequence to take the next element from."""
    if not any(lengths):
        yield ()
        return
    for k, length in enumerate(lengths):
        if length:
            rest = lengths.copy()
            rest[k] -= 1
            for tail in merges(rest):
                yield (k, *tail)


def _count(lengths: list[int]) -> int:
    return math.factorial(sum(lengths)) // math.prod(math.factorial(length) for length in lengths)


def parts_of(instance: DdlClusterInstance) -> tuple[list[int], list[tuple[Gpu, list[int]]], list[set[int]]]:
    """Jobs on several servers, GPUs with several jobs, and the servers of each job."""
    servers = [{server for server, _ in given or ()} for given in instance.given]
    spanning = [j for j, there in enumerate(servers) if len(there) > 1]
    on_gpu: dict[Gpu, list[int]] = {}
    for j, given in enumerate(instance.given):
        for gpu in given or ():
            on_gpu.setdefault(gpu, []).append(j)
    return spanning, [(gpu, here) for gpu, here in on_gpu.items() if len(here) > 1], servers


def orders(instance: DdlClusterInstance) -> int:
    """How many linear programs `optimum` solves."""
    spanning, shared, _ = parts_of(instance)
    jobs = instance.jobs
    total = _count([2 * jobs[j].iterations for j in spanning])
    for _, here in shared:
        total *= _count([2 * jobs[j].iterations for j in here])
    return total * sum(1 for _ in separations(instance))


def separations(instance: DdlClusterInstance) -> Iterator[tuple[tuple[int, int], ...]]:
    """Every way to keep memory: of each set of jobs that does not fit a GPU, (one that ends, one that begins then).

    Enough for sets of which every part fits: spans of time that all overlap in pairs have a moment in common.
    """
    room = exact(instance.gpu_memory) * (1 + Fraction(1, 10**9))
    sets = {
        part for _, here in parts_of(instance)[1] for n in range(2, len(here) + 1) for part in combinations(here, n)
    }
    crowds = [part for part in sorted(sets) if sum(exact(instance.jobs[j].memory) for j in part) > room]
    least = [part for part in crowds if not any(set(other) < set(part) for other in crowds)]
    return product(*(permutations(part, 2) for part in least))


def solve_brute_force(instance: DdlClusterInstance, options: SolveOptions) -> Result:
    """The search as an exact method, for the suite ``cross``; "unknown" where there are too many orders."""
    del options
    began = time.monotonic()
    if orders(instance) > MOST_ORDERS:
        return Result(Status.UNKNOWN, termination=Termination.TOO_LARGE)
    value = optimum(instance)
    seconds = time.monotonic() - began
    return Result(Status.OPTIMAL, value, value, termination=Termination.PROVEN, solve_seconds=seconds)


def optimum(instance: DdlClusterInstance, *, exclusive: bool = False) -> float:
    """:func:`exact_optimum` as a float."""
    return float(exact_optimum(instance, exclusive=exclusive))


def exact_optimum(instance: DdlClusterInstance, *, exclusive: bool = False) -> Fraction:
    """The least mean of finish - arrival; with `exclusive`, of schedules that obey srsf-1's limit."""
    spanning, shared, servers = parts_of(instance)
    jobs = instance.jobs
    gpu_orders = [list(merges([2 * jobs[j].iterations for j in here])) for _, here in shared]
    programs: list[tuple[float, list[tuple[Terms, Fraction]]]] = []
    for events in merges([2 * jobs[j].iterations for j in spanning]):
        levels = levels_of(instance, events, spanning, servers)
        if exclusive and any(k > 1 for active in levels for k in active.values()):
            continue
        for chosen, apart in product(product(*gpu_orders), separations(instance)):
            rows = rows_of(instance, events, levels, list(zip(shared, chosen, strict=True)), spanning, exclusive)
            for ended, begun in apart:
                for gpu in instance.given[begun] or ():
                    rows.append(({("finish", ended): Fraction(1), ("c", begun, 0, 0, gpu): Fraction(-1)}, ZERO))
            programs.append((_in_floats(rows), rows))
    least = min(value for value, _ in programs)
    exactly = [_exactly(rows) for value, rows in programs if value <= least * (1 + NEAR)]
    best = min(value for value in exactly if value is not None)
    return Fraction(best - sum(exact(job.arrival) for job in jobs)) / len(jobs)


def levels_of(
    instance: DdlClusterInstance, events: tuple[int, ...], spanning: list[int], servers: list[set[int]]
) -> list[dict[int, int]]:
    """After each event, k of every job that transfers then."""
    seen = dict.fromkeys(spanning, 0)
    levels = []
    for event in events:
        seen[spanning[event]] += 1
        active = [j for j in spanning if seen[j] % 2]
        levels.append({j: max(sum(s in servers[other] for other in active) for s in servers[j]) for j in active})
    return levels


def rows_of(
    instance: DdlClusterInstance,
    events: tuple[int, ...],
    levels: list[dict[int, int]],
    gpu_orders: list[tuple[tuple[Gpu, list[int]], tuple[int, ...]]],
    spanning: list[int],
    exclusive: bool,
    whole: bool = False,
) -> list[tuple[Terms, Fraction]]:
    """What holds with this order of begins and ends of transfers, and these orders on the GPUs.

    Each row: coefficients by variable, whose sum of products is at most the right side. With `whole`, a transfer ends
    when its message is moved; else it may end later.
    """
    jobs, link = instance.jobs, instance.link
    rows: list[tuple[Terms, Fraction]] = []

    def after(late: Any, early: Any, seconds: float) -> None:
        rows.append(({early: Fraction(1), late: Fraction(-1)}, -exact(seconds)))

    for j, job in enumerate(jobs):
        ready: Any = None
        for i in range(job.iterations):
            for gpu in instance.given[j] or ():
                forward, backward = ("c", j, i, 0, gpu), ("c", j, i, 1, gpu)
                if ready is None:
                    rows.append(({forward: Fraction(-1)}, -exact(job.arrival)))
                else:
                    after(forward, ready, 0.0)
                after(backward, forward, job.forward)
                after(("barrier", j, i), backward, job.backward)
            ready = ("barrier", j, i)
            if j in spanning:
                after(("begin", j, i), ready, link.latency)
                ready = ("end", j, i)
        after(("finish", j), ready, 0.0)
    seen = dict.fromkeys(spanning, 0)
    line: list[tuple[str, int, int]] = []
    for event in events:
        j = spanning[event]
        line.append((("begin", "end")[seen[j] % 2], j, seen[j] // 2))
        seen[j] += 1
    moved: dict[Any, Terms] = {}
    seen = dict.fromkeys(spanning, 0)
    for position, (here, active) in enumerate(zip(line, levels, strict=True)):
        if position + 1 < len(line):
            after(line[position + 1], here, 0.0)
            for j, k in active.items():
                i = sum(1 for kind, other, _ in line[: position + 1] if other == j and kind == "begin") - 1
                rate = 1 / (k * exact(link.seconds_per_unit) + (k - 1) * exact(link.contention_penalty))
                terms = moved.setdefault((j, i), {})
                terms[here] = terms.get(here, ZERO) + rate
                terms[line[position + 1]] = terms.get(line[position + 1], ZERO) - rate
    for (j, _), terms in moved.items():
        rows.append((terms, -exact(jobs[j].message)))
        if whole:
            rows.append(({name: -c for name, c in terms.items()}, exact(jobs[j].message)))
    if exclusive:  # active from its admission, a latency before it begins
        for before, (kind, j, i) in enumerate(line):
            if kind == "begin":
                for ended, k, r in line[:before]:
                    if ended == "end" and k != j and instance_shares(instance, j, k):
                        after(("begin", j, i), ("end", k, r), link.latency)
    for (gpu, queue), order in gpu_orders:
        step = dict.fromkeys(queue, 0)
        previous: Any = None
        for which in order:
            j = queue[which]
            task = ("c", j, step[j] // 2, step[j] % 2, gpu)
            step[j] += 1
            if previous is not None:
                after(task, previous, jobs[previous[1]].backward if previous[3] else jobs[previous[1]].forward)
            previous = task
    return rows


def _variables(rows: list[tuple[Terms, Fraction]]) -> dict[Any, int]:
    return {name: place for place, name in enumerate(dict.fromkeys(name for terms, _ in rows for name in terms))}


def _in_floats(rows: list[tuple[Terms, Fraction]]) -> float:
    """The least sum of finishing times, roughly."""
    place = _variables(rows)
    wide = [math.frexp(max(abs(float(c)) for c in terms.values()))[1] for terms, _ in rows]
    right = [math.ldexp(float(limit), -power) for power, (_, limit) in zip(wide, rows, strict=True)]
    unit = max(map(abs, right)) or 1.0  # HiGHS' tolerances are absolute
    terms = [
        (place[x], math.ldexp(float(c), -power))
        for power, (row, _) in zip(wide, rows, strict=True)
        for x, c in row.items()
    ]
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = len(place), len(rows)
    program.col_cost_ = np.array([float(name[0] == "finish") for name in place])
    program.col_lower_, program.col_upper_ = np.zeros(len(place)), np.full(len(place), highspy.kHighsInf)
    program.row_lower_, program.row_upper_ = np.full(len(rows), -highspy.kHighsInf), np.array(right) / unit
    matrix = program.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.start_ = np.cumsum([0, *(len(row) for row, _ in rows)])
    matrix.index_, matrix.value_ = np.array([x for x, _ in terms]), np.array([c for _, c in terms])
    solver = _solver()
    solver.passModel(program)
    solver.run()
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().objective_function_value * unit if optimal else math.inf


@lru_cache(maxsize=1)
def _solver() -> Any:
    solver = highspy.Highs()
    solver.silent()
    return solver


def _exactly(rows: list[tuple[Terms, Fraction]]) -> Fraction | None:
    """The least sum of finishing times."""
    place = _variables(rows)
    dense = [[ZERO] * len(place) for _ in rows]
    for row, (terms, _) in zip(dense, rows, strict=True):
        for name, coefficient in terms.items():
            row[place[name]] = coefficient
    found = minimum([Fraction(name[0] == "finish") for name in place], dense, [limit for _, limit in rows])
    return None if found is None else found[0]


def instance_shares(instance: DdlClusterInstance, j: int, k: int) -> bool:
    """Whether two jobs have a server in common."""
    one, other = instance.given[j] or (), instance.given[k] or ()
    return bool({server for server, _ in one} & {server for server, _ in other})

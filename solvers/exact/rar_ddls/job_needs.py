"""What a job needs, in slots by how it runs: whole-number inequalities that every schedule satisfies.

Idea: how many slots at each grade of contention let a job finish is a set of whole points; its hull gives
inequalities. Source: convex hulls of two numbers, lifted to the third; the grades are ours. Guarantee: every schedule
satisfies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions
from schedgap.formulations.rar_ddls.rates import rate_table

MOST_LABELS = 3
"""Grades of contention that are distinguished; the last stands for all heavier ones."""


_LONGEST_HULL = 600


_LARGEST_FIGURE = 10**8


@dataclass(frozen=True)
class Need:
    """One inequality of job `job`: sum over labels of slots * value >= amount."""

    job: int  # position
    values: tuple[int, ...]  # need per label: 0 on one server, i = 1, 2, ... across servers in grade i of contention
    amount: int  # right-hand side


def contention_grades(instance: RarDdlsInstance) -> list[int]:
    """The smallest p of every grade of contention: 1, and each p at which some job's rate drops; three at most.

    Grades are merged upwards: the rate of the smallest p, which is the highest, stands for the whole grade.
    """
    table = rate_table(instance)
    rates = table.rates(
        np.arange(table.gpus.size)[:, None],
        np.maximum(2, table.fewest_servers)[:, None],
        np.arange(table.p_max + 1)[None, :],
    )
    drops = (np.flatnonzero((rates[:, 2:] < rates[:, 1:-1]).any(axis=0)) + 2).tolist()
    return [1, *drops[: MOST_LABELS - 1]]


def job_needs(options: Sequence[JobOptions], grades: Sequence[int]) -> list[Need]:
    """Inequalities for every job that can complete; at least one each.

    With rates v_1 >= v_2 >= ... of the grades, whole numbers k_i of slots with sum v_i k_i >= F satisfy every
    inequality of the hull of such (k_1, k_2), lifted to k_3; a job on one server takes exactly d slots. Both are
    joined into one inequality that holds whichever the job does.
    """
    return [need for j, option in enumerate(options) for need in _needs(j, option, grades)]


def _needs(job: int, option: JobOptions, grades: Sequence[int]) -> list[Need]:
    d = option.local_duration if option.local else 0
    if not option.modes:
        return [Need(job, (1,) + (0,) * len(grades), d)] if d else []
    best = [mode for mode in option.modes if mode.spread_class == 0]
    rates = [max((m.rate for m in best if m.level >= p), default=best[-1].rate) for p in grades]
    shortest = min(option.shortest, d) if d else option.shortest
    needs = [Need(job, (1,) * (1 + len(grades)), shortest)]
    for values, amount in _hull(option.iterations, rates):
        if d:
            joined = Need(job, (amount, *(value * d for value in values)), amount * d)
        else:
            joined = Need(job, (0, *values), amount)
        if max(joined.values) <= _LARGEST_FIGURE >= joined.amount:
            needs.append(joined)
    return list(dict.fromkeys(needs))


def _hull(iterations: int, rates: list[int]) -> list[tuple[tuple[int, ...], int]]:
    """(values, amount) with values . k >= amount for all whole k >= 0 with rates . k >= iterations."""
    longest = -(-iterations // min((rate for rate in rates if rate), default=1))
    if longest > _LONGEST_HULL or len(rates) == 1:
        d = -(-iterations // rates[0])
        plain = (tuple(rates), iterations)
        return [((1,), d)] if len(rates) == 1 else [plain]
    slow = rates[1]
    points = []
    for second in range((-(-iterations // slow) if slow else 0) + 1):
        points.append((max(0, -(-(iterations - slow * second) // rates[0])), second))
    corners: list[tuple[int, int]] = []
    for point in sorted(points):
        while len(corners) >= 2 and _turn(corners[-2], corners[-1], point) <= 0:
            corners.pop()
        corners.append(point)
    edges = [(a[1] - b[1], b[0] - a[0]) for a, b in pairwise(corners)]
    found = []
    for (first, second), (x, y) in zip(edges, corners, strict=False):
        amount = first * x + second * y
        if first >= 0 and second >= 0 and amount > 0:
            found.append(_lifted(iterations, rates, (first, second), amount))
    if not found:  # one corner: contention stalls the job, so that only slots without it count
        found = [((1,) + (0,) * (len(rates) - 1), corners[0][0])]
    return found


def _turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _lifted(iterations: int, rates: list[int], values: tuple[int, int], amount: int) -> tuple[tuple[int, ...], int]:
    """Give slots of the third grade the smallest value that keeps the inequality valid."""
    if len(rates) == 2:
        return values, amount
    scale = max(1, 1000 // amount)
    first, second, amount = values[0] * scale, values[1] * scale, amount * scale
    third = 0
    if rates[2]:
        k = np.arange(1, -(-iterations // rates[2]) + 1)
        remaining = np.maximum(0, iterations - rates[2] * k)[:, None]
        seconds = np.arange(-(-iterations // rates[1]) + 1)[None, :]
        firsts = np.maximum(0, -(-(remaining - rates[1] * seconds) // rates[0]))
        least = (first * firsts + second * seconds).min(axis=1)
        third = int(np.max(-(-(amount - least) // k), initial=0))
    return (first, second, max(0, third)), amount

"""Continuous variables that can only matter at whole multiples of a tick, proven from the model's own numbers.

The argument: fix all integer variables. Where each row has at most two continuous variables, and two of them
with opposite coefficients (one starts so long after the other), the rows form a system of differences: its
matrix is that of a network with one more node for 0, so it is totally unimodular, and the polyhedron has all
its vertices at whole multiples of a tick that all right-hand sides and bounds are multiples of, whatever whole
numbers the integer variables take. A linear objective that has an optimum has one there (Hoffman and Kruskal
1956, Integral boundary points of convex polyhedra). Variables that no row connects are apart and have a tick of
their own. Forms of which this is true: ``job-pair`` of gpu-sharing, ``job-shop`` of ddl-cluster, its ``events``
where no all-reduce crosses servers, the ranks of ``arcs`` of g-vne. Nothing is proven where the pace depends on
how many share a link (``events`` of comm-contention and ddl-cluster): a transfer that another one joins after x
seconds of sharing has moved x / (k b + (k - 1) eta), so every event may bring one more factor into the
denominators. Nor of the linear programs ``P3``, ``mcf`` and ``augmented``: their vertices are quotients of
determinants, which here are not all 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from fractions import Fraction

from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.numbers import common_divisor
from schedgap.solvers.engines.arrays import ModelArrays


def ticks_of(
    arrays: ModelArrays,  # the model
    continuous: Collection[int],  # positions of the variables that need one
    fixed: Mapping[int, Fraction],  # positions whose value is known
    exact: Callable[[float], Fraction],  # the rational that each float of the model stands for
) -> dict[int, Fraction]:
    """For each position, a step of which each continuous variable is a whole multiple in some optimal solution.

    Raises
    ------
    ModelRefused
        A row that is no difference, so that nothing is proven of its variables.

    Complexity: O(nonzeros) with exact fractions.
    """
    group = {place: place for place in continuous}

    def root(place: int) -> int:
        while group[place] != place:
            group[place] = place = group[group[place]]
        return place

    amounts: dict[int, list[Fraction]] = {place: [] for place in continuous}
    starts, indices, numbers = arrays.starts.tolist(), arrays.indices.tolist(), arrays.coefficients.tolist()
    lows, highs = arrays.row_lower.tolist(), arrays.row_upper.tolist()
    for row, name in enumerate(arrays.names):
        terms = [(indices[k], exact(numbers[k])) for k in range(starts[row], starts[row + 1])]
        mine = [(place, number) for place, number in terms if place in group]
        if not mine:
            continue
        if len(mine) > 2 or (len(mine) == 2 and mine[0][1] + mine[1][1]):
            raise ModelRefused(
                f"engine cpsat: {arrays.variables[mine[0][0]].name} is continuous; CP-SAT solves integer models only "
                f"(methods highs and cbc take this one), and row {name} is no difference of two times, so no tick is "
                "proven of which it is a multiple"
            )
        first, size = mine[0]
        group[root(mine[-1][0])] = root(first)
        shift = sum((number * fixed[place] for place, number in terms if place in fixed), Fraction(0))
        amounts[first] += [number / size for place, number in terms if place not in group and place not in fixed]
        amounts[first] += [(exact(limit) - shift) / size for limit in (lows[row], highs[row]) if math.isfinite(limit)]
    for place in continuous:
        bounds = float(arrays.lower[place]), float(arrays.upper[place])
        amounts[place] += [exact(bound) for bound in bounds if math.isfinite(bound)]
    together: dict[int, list[Fraction]] = {}
    for place in continuous:
        together.setdefault(root(place), []).extend(amounts[place])
    steps = {place: common_divisor(numbers) for place, numbers in together.items()}
    return {place: steps[root(place)] for place in continuous}

"""Due dates, intervals, bins, knapsacks, sets and matchings: exactly and greedily."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise
from random import Random
from typing import Any

from hypothesis import strategies as st

from schedgap.claims import Fraction
from studies.textbook.machines import Instance, listed

# One machine with due dates; intervals.


def due_dates(rng: Random) -> Instance:
    """One to six pairs of time and due date."""
    return {"jobs": [(rng.randint(1, 9), rng.randint(1, 20)) for _ in range(rng.randint(1, 6))]}


DUE_DATES = st.fixed_dictionaries(
    {"jobs": st.lists(st.tuples(st.integers(1, 9), st.integers(1, 20)), min_size=1, max_size=6)}
)


def lateness(order: Sequence[tuple[int, int]]) -> list[int]:
    spans = listed([time for time, _ in order], 1)
    return [max(0, end - due) for (_, end), (_, due) in zip(spans, order, strict=True)]


def by_due_date(instance: Instance) -> list[tuple[int, int]]:
    return sorted(instance["jobs"], key=lambda job: job[1])


def intervals(rng: Random) -> Instance:
    """One to seven intervals as start and length."""
    return {"intervals": [(rng.randint(0, 12), rng.randint(1, 8)) for _ in range(rng.randint(1, 7))]}


INTERVALS = st.fixed_dictionaries(
    {"intervals": st.lists(st.tuples(st.integers(0, 12), st.integers(1, 8)), min_size=1, max_size=7)}
)


def disjoint(chosen: Sequence[tuple[int, int]]) -> bool:
    ordered = sorted(chosen)
    return all(a + length <= b for (a, length), (b, _) in pairwise(ordered))


def _subsets(items: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for count in range(len(items) + 1):
        yield from combinations(items, count)


def most_intervals(instance: Instance) -> int:
    """The most intervals, found by all subsets."""
    return max(len(chosen) for chosen in _subsets(instance["intervals"]) if disjoint(chosen))


def greedy_intervals(instance: Instance, key: Callable[[tuple[int, int]], int]) -> int:
    chosen: list[tuple[int, int]] = []
    for interval in sorted(instance["intervals"], key=key):
        if disjoint([*chosen, interval]):
            chosen.append(interval)
    return len(chosen)


# Bins, knapsacks, sets, matchings.


def items(rng: Random) -> Instance:
    """One to nine sizes, as parts of a bin."""
    return {"items": [Fraction(rng.randint(1, 30), 30) for _ in range(rng.randint(1, 9))]}


ITEMS = st.fixed_dictionaries(
    {"items": st.lists(st.integers(1, 30).map(lambda k: Fraction(k, 30)), min_size=1, max_size=9)}
)


def least_bins(instance: Instance) -> int:
    """The least bins, found by subsets: the fewest bins, and then the least in the last one."""
    sizes = instance["items"]

    @cache
    def best(rest: int) -> tuple[int, Fraction]:
        if rest == 0:
            return 1, Fraction(0)
        found = []
        for k, size in enumerate(sizes):
            if rest >> k & 1:
                bins, used = best(rest & ~(1 << k))
                found.append((bins, used + size) if used + size <= 1 else (bins + 1, size))
        return min(found)

    return best((1 << len(sizes)) - 1)[0]


def first_fit(instance: Instance, sizes: Sequence[Fraction] | None = None) -> int:
    """Every item into the first bin that it fits."""
    bins: list[Fraction] = []
    for size in instance["items"] if sizes is None else sizes:
        place = next((k for k, used in enumerate(bins) if used + size <= 1), len(bins))
        bins[place : place + 1] = [(bins[place] if place < len(bins) else Fraction(0)) + size]
    return len(bins)


def first_fit_decreasing(instance: Instance) -> int:
    """The largest items first."""
    return first_fit(instance, sorted(instance["items"], reverse=True))


def next_fit(instance: Instance) -> int:
    """Only the last bin is open."""
    bins, used = 1, Fraction(0)
    for size in instance["items"]:
        bins, used = (bins, used + size) if used + size <= 1 else (bins + 1, size)
    return bins


def knapsack(rng: Random) -> Instance:
    """One to seven pairs of value and weight; every weight is at most the capacity."""
    capacity = rng.randint(5, 20)
    pairs = [(rng.randint(1, 20), rng.randint(1, capacity)) for _ in range(rng.randint(1, 7))]
    return {"capacity": capacity, "items": pairs}


@st.composite
def knapsack_strategy(draw: st.DrawFn) -> Instance:
    capacity = draw(st.integers(5, 20))
    pair = st.tuples(st.integers(1, 20), st.integers(1, capacity))
    return {"capacity": capacity, "items": draw(st.lists(pair, min_size=1, max_size=7))}


def packings(instance: Instance) -> Iterator[tuple[tuple[int, int], ...]]:
    return (one for one in _subsets(instance["items"]) if sum(weight for _, weight in one) <= instance["capacity"])


def densest_or_best(instance: Instance) -> int:
    """The better of greedy by value over weight, up to the first that does not fit, and the most valuable item."""
    total = used = 0
    for value, weight in sorted(instance["items"], key=lambda item: Fraction(-item[0], item[1])):
        if used + weight > instance["capacity"]:
            break
        total, used = total + value, used + weight
    return int(max(total, *(value for value, _ in instance["items"])))


def sets(rng: Random) -> Instance:
    """Two to six sets of some of six elements."""
    return {"sets": [rng.sample(range(6), rng.randint(1, 4)) for _ in range(rng.randint(2, 6))]}


SETS = st.fixed_dictionaries(
    {"sets": st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), min_size=2, max_size=6)}
)


def greedy_cover(instance: Instance) -> int:
    """The set with the most elements that are not covered yet."""
    rest, count = set().union(*instance["sets"]), 0
    while rest:
        rest -= max((set(one) for one in instance["sets"]), key=lambda one: len(one & rest))
        count += 1
    return count


def covers(instance: Instance) -> Iterator[tuple[list[int], ...]]:
    every = set().union(*instance["sets"])
    return (chosen for chosen in _subsets(instance["sets"]) if set().union(*chosen) == every)


def edges(rng: Random) -> Instance:
    """One to seven weighted edges between six nodes."""
    return {"edges": [(*rng.sample(range(6), 2), rng.randint(1, 9)) for _ in range(rng.randint(1, 7))]}


_EDGE = st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)).filter(lambda edge: edge[0] != edge[1])
EDGES = st.fixed_dictionaries({"edges": st.lists(_EDGE, min_size=1, max_size=7)})


def matchings(instance: Instance) -> Iterator[tuple[tuple[int, int, int], ...]]:
    for chosen in _subsets(instance["edges"]):
        ends = [node for edge in chosen for node in edge[:2]]
        if len(set(ends)) == len(ends):
            yield chosen


def heaviest_edges(instance: Instance) -> int:
    """The heaviest edge that still fits, again and again."""
    taken: set[int] = set()
    total = 0
    for a, b, weight in sorted(instance["edges"], key=lambda edge: -edge[2]):
        if not taken & {a, b}:
            taken |= {a, b}
            total += weight
    return total

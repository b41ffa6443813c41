"""Fourteen textbook bounds that hold, and as many claims that are a little sharper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from random import Random
from typing import Literal

from hypothesis import strategies as st

from schedgap.claims import Fraction, Tried, brute_force, try_claim
from studies.textbook.choices import (
    DUE_DATES,
    EDGES,
    INTERVALS,
    ITEMS,
    SETS,
    by_due_date,
    covers,
    densest_or_best,
    due_dates,
    edges,
    first_fit,
    first_fit_decreasing,
    greedy_cover,
    greedy_intervals,
    heaviest_edges,
    intervals,
    items,
    knapsack,
    knapsack_strategy,
    lateness,
    least_bins,
    matchings,
    most_intervals,
    next_fit,
    packings,
    sets,
)
from studies.textbook.machines import (
    FEW_JOBS,
    MACHINES_AND_JOBS,
    WEIGHTED_JOBS,
    Instance,
    few_jobs,
    least_completion_sum,
    least_makespan,
    least_on_one,
    least_weighted_sum,
    least_with_order,
    list_scheduling,
    list_with_order,
    longest_first,
    machines_and_jobs,
    ordered_jobs,
    ordered_strategy,
    shortest_first,
    shortest_first_makespan,
    smith,
    smith_on_one,
    weighted_jobs,
)

Number = int | float | Fraction


@dataclass(frozen=True)
class Bound:
    """A theorem and the claim that is a little too sharp."""

    name: str
    source: str
    draw: Callable[[Random], Instance]
    strategy: st.SearchStrategy[Instance]  # the same instances, as a user of hypothesis writes them
    exact: Callable[[Instance], Number | None]
    heuristic: Callable[[Instance], Number]
    bound: Number | Callable[[Instance], Number]
    sharper: Number  # the bound that is refuted, with `others`
    plus: Number = 0
    plus_sharper: Number = 0
    sense: Literal["min", "max"] = "min"
    others: tuple[Callable[[Instance], Number | None], Callable[[Instance], Number]] | None = None
    # exact value and heuristic of the sharpened claim, where they are other ones

    @property
    def sharpened(self) -> tuple[Callable[[Instance], Number | None], Callable[[Instance], Number]]:
        """The exact value and the heuristic of the sharpened claim."""
        return self.others or (self.exact, self.heuristic)

    def holds(self, seed: int = 0, draws: int = 200, hunt: int = 1000) -> Tried:
        """The theorem tried."""
        claim = self.draw, self.exact, self.heuristic, self.bound
        options = {"plus": self.plus, "sense": self.sense, "name": self.name, "out": None}
        return try_claim(*claim, seed=seed, draws=draws, hunt=hunt, **options)  # type: ignore[arg-type]

    def fails(self, seed: int = 0) -> Tried:
        """The sharpened claim tried."""
        claim = self.draw, *self.sharpened, self.sharper
        options = {"plus": self.plus_sharper, "sense": self.sense, "name": self.name, "out": None}
        return try_claim(*claim, seed=seed, hunt=4000, **options)  # type: ignore[arg-type]


def _harmonic(instance: Instance) -> Fraction:
    return sum((Fraction(1, k) for k in range(1, max(map(len, instance["sets"])) + 1)), Fraction(0))


def _one_minus(instance: Instance) -> Fraction:
    return 2 - Fraction(1, instance["machines"])


BOUNDS: tuple[Bound, ...] = (
    Bound(
        "list scheduling, makespan",
        "Graham 1966",
        machines_and_jobs,
        MACHINES_AND_JOBS,
        least_makespan,
        list_scheduling,
        _one_minus,
        Fraction(8, 5),
    ),
    Bound(
        "LPT, makespan",
        "Graham 1969",
        machines_and_jobs,
        MACHINES_AND_JOBS,
        least_makespan,
        longest_first,
        lambda x: Fraction(4, 3) - Fraction(1, 3 * x["machines"]),
        Fraction(8, 7),
    ),
    Bound(
        "list scheduling with predecessors, makespan",
        "Graham 1966",
        ordered_jobs,
        ordered_strategy(),
        least_with_order,
        list_with_order,
        _one_minus,
        Fraction(4, 3),
    ),
    Bound(
        "SPT, sum of completion times",
        "Conway, Maxwell, Miller 1967",
        few_jobs,
        FEW_JOBS,
        least_completion_sum,
        shortest_first,
        1,
        Fraction(7, 5),
        others=(least_makespan, shortest_first_makespan),
    ),
    Bound(
        "WSPT on one machine",
        "Smith 1956",
        weighted_jobs,
        WEIGHTED_JOBS,
        least_on_one,
        smith_on_one,
        1,
        1,
        others=(least_weighted_sum, smith),
    ),
    Bound(
        "WSPT on machines",
        "Kawaguchi, Kyan 1986",
        weighted_jobs,
        WEIGHTED_JOBS,
        least_weighted_sum,
        smith,
        (1 + 2**0.5) / 2,
        Fraction(21, 20),
    ),
    Bound(
        "EDD, largest lateness",
        "Jackson 1955",
        due_dates,
        DUE_DATES,
        lambda x: min(max(lateness(order)) for order in permutations(x["jobs"])),
        lambda x: max(lateness(by_due_date(x))),
        1,
        1,
        others=(
            lambda x: min(sum(lateness(order)) for order in permutations(x["jobs"])),
            lambda x: sum(lateness(by_due_date(x))),
        ),
    ),
    Bound(
        "earliest end, intervals",
        "Kleinberg, Tardos 2005",
        intervals,
        INTERVALS,
        most_intervals,
        lambda x: greedy_intervals(x, sum),
        1,
        1,
        sense="max",
        others=(most_intervals, lambda x: greedy_intervals(x, lambda interval: interval[1])),
    ),
    Bound("first fit, bins", "Dosa, Sgall 2013", items, ITEMS, least_bins, first_fit, 1.7, 1.4),
    Bound(
        "first fit decreasing, bins",
        "Dosa 2007",
        items,
        ITEMS,
        least_bins,
        first_fit_decreasing,
        Fraction(11, 9),
        Fraction(11, 9),
        plus=Fraction(6, 9),
    ),
    Bound("next fit, bins", "Johnson 1973", items, ITEMS, least_bins, next_fit, 2, Fraction(8, 5), plus=-1),
    Bound(
        "density or best item, knapsack",
        "Korte, Vygen 2018",
        knapsack,
        knapsack_strategy(),
        brute_force(packings, lambda _, chosen: sum(value for value, _ in chosen), "max"),
        densest_or_best,
        2,
        Fraction(3, 2),
        sense="max",
    ),
    Bound(
        "greedy, set cover",
        "Chvatal 1979",
        sets,
        SETS,
        brute_force(covers, lambda _, chosen: len(chosen)),
        greedy_cover,
        _harmonic,
        Fraction(5, 4),
    ),
    Bound(
        "heaviest edge first, matching",
        "Avis 1983",
        edges,
        EDGES,
        brute_force(matchings, lambda _, chosen: sum(weight for *_, weight in chosen), "max"),
        heaviest_edges,
        2,
        Fraction(8, 5),
        sense="max",
    ),
)
"""Theorems and what is a little more than they say."""

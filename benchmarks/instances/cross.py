"""The part of the suite ``cross`` that every problem has: instances with hard numbers, and a plain search for each."""

from __future__ import annotations

from schedgap.benchmarks.instances.hard_numbers import FAMILIES
from schedgap.catalogue.problem import Batch, Kind, Method

COUNT = 870
"""Instances of each family: with seven problems and three families 18,270, and above 20,000 with the other batches."""


def hard_numbers(problem: str, exact: tuple[str, ...], work_limit: float) -> tuple[Batch, ...]:
    """Near ties, magnitudes and decimals: a plain search and exact methods on the same tiny instances.

    Parameters
    ----------
    problem : its id
    exact : ids of its exact methods
    work_limit : far more than any of these instances takes
    """
    module = problem.replace("-", "_")
    search = Method(
        "brute-force",
        "a plain search",
        Kind.EXACT,
        f"schedgap.benchmarks.brute_force_{module}:solve_brute_force",
    )
    return tuple(
        Batch(
            "cross",
            f"schedgap.benchmarks.instances.hard_numbers:hard_{module}",
            COUNT,
            exact=(search.id, *exact),
            heuristics=(),
            group=family,
            settings={"family": family},
            extra=(search,),
            work_limit=work_limit,
        )
        for family in FAMILIES
    )

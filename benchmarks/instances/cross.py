"""The part of the suite ``cross`` that every problem has: instances with hard numbers, and a plain search for each."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.workload import Batch, Generator

FAMILIES = ("near-ties", "magnitudes", "decimals")
COUNT = 870
"""Instances of each family: with seven problems and three families 18,270, and above 20,000 with the other batches."""


@dataclass(frozen=True)
class _Search:
    """Imports a problem's plain search."""

    module: str

    def __call__(self) -> Mapping[str, Function]:
        found = importlib.import_module(f"schedgap.benchmarks.studies.brute_force.{self.module}")
        return {"brute-force": found.solve_brute_force}


@dataclass(frozen=True)
class _Hard:
    """Imports a problem's generator of hard numbers."""

    module: str

    def __call__(self) -> Generator:
        hard = importlib.import_module("schedgap.benchmarks.studies.hard_numbers")
        found: Generator = getattr(hard, f"hard_{self.module}")
        return found


def hard_numbers(problem: str, exact: tuple[str, ...], work_limit: float) -> tuple[Batch, ...]:
    """Near ties, magnitudes and decimals: a plain search and exact methods on the same tiny instances.

    Parameters
    ----------
    problem : its id
    exact : ids of its exact methods
    work_limit : far more than any of these instances takes
    """
    module = problem.replace("-", "_")
    search = Method("brute-force", "a plain search", Kind.EXACT, _Search(module))
    return tuple(
        Batch(
            "cross",
            _Hard(module),
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

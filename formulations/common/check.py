"""What a checker reports. Checkers share no code with any model, dynamics or heuristic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Violation:
    """One constraint that a solution breaks.

    Attributes
    ----------
    constraint : its short name, such as "capacity" or "horizon"
    message : one line with the numbers, such as ``server s0, slot 3: 5 GPUs used, 4 there``
    amount : size of the violation, where that is a number
    """

    constraint: str
    message: str
    amount: float | None = None


@dataclass(frozen=True)
class CheckReport:
    """The verdict of a checker on one solution.

    Attributes
    ----------
    violations : every constraint that is broken; empty when the solution is feasible
    objective : recomputed from the solution exactly; None where it is not defined (an infeasible
        solution whose objective cannot be computed)
    details : what else was recomputed (completion slots, say), JSON-compatible
    whole : objectives are whole numbers that results carry as such, however large: two that differ by 1 differ
    """

    violations: tuple[Violation, ...]
    objective: Fraction | None
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    whole: bool = False

    @property
    def value(self) -> float | int:
        """The objective as results carry it; there must be one."""
        assert self.objective is not None
        return int(self.objective) if self.whole else float(self.objective)

    @property
    def feasible(self) -> bool:
        """Whether no constraint is broken."""
        return not self.violations


def some_of(names: Sequence[str], shown: int = 10) -> str:
    """The first of these names: there may be thousands, in thousands of messages."""
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")

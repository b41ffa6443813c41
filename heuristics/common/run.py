"""The form of a heuristic's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schedgap.formulations.common.instance import Solution


@dataclass(frozen=True)
class HeuristicRun:
    """What a heuristic returns.

    Attributes
    ----------
    solution : the bare solution, or None where the heuristic found nothing
    info : what its guarantees need to know of the run (JSON-compatible): limits, parameters, realised values
    bound : a bound the algorithm itself certifies (a dual value), or None
    partial : what a run that was cut had laid until then. It is not what the algorithm makes, so it is no answer, but
        something to start from.
    """

    solution: Solution | None
    info: Mapping[str, Any] = field(default_factory=dict)
    bound: float | None = None
    partial: Solution | None = None


Heuristic = Callable[..., "HeuristicRun | Solution | None"]
"""``heuristic(instance, *, seed, **options)``; a user's own may return the bare solution."""

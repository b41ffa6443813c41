"""The form of a heuristic's answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

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


# One heuristic under two names: the published form, and a repaired one that differs in a few options.

R = TypeVar("R")


def variant(
    heuristic: Callable[..., R],  # the function
    name: str,  # the id of the method that it becomes
    about: str,  # its docstring
    *,
    fixed: Mapping[str, object] | None = None,  # keywords that it always runs with; it has no such options
    defaults: Mapping[str, object] | None = None,  # options whose defaults are others
) -> Callable[..., R]:
    """`heuristic` under another name.

    Raises TypeError: `heuristic` has no keyword of that name.
    """
    fixed, defaults = fixed or {}, defaults or {}
    signature = inspect.signature(heuristic)
    for keyword in (*fixed, *defaults):
        if keyword not in signature.parameters:
            raise TypeError(f"{name}: {heuristic.__name__} has no keyword {keyword!r}")
    kept = [
        parameter.replace(default=defaults[key]) if key in defaults else parameter
        for key, parameter in signature.parameters.items()
        if key not in fixed
    ]

    @functools.wraps(heuristic)
    def run(*given: object, **options: object) -> R:
        return heuristic(*given, **{**defaults, **options, **fixed})

    run.__name__ = run.__qualname__ = name
    run.__doc__ = about
    run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return run

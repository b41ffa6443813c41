"""One heuristic under two names: the published form, and a repaired one that differs in a few options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

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

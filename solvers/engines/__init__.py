"""Engines that solve declarative models. Each is one file here, imported when it is first asked for.

To add one: write ``solvers/engines/<name>.py`` with a module-level ``ENGINE`` that follows
:class:`~schedgap.solvers.engines.answer.Engine`, and add its name to :data:`_NAMES`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedgap.formulations.common.errors import EngineMissing, InputError

if TYPE_CHECKING:
    from schedgap.solvers.engines.answer import Engine

_NAMES = ("cbc", "highs", "cpsat")


@dataclass(frozen=True)
class Availability:
    """Whether an engine can be used here: its version, or the reason why not."""

    name: str
    version: str | None
    reason: str | None


def engine_names() -> tuple[str, ...]:
    """Names of all engines, installed or not."""
    return _NAMES


def engine(name: str) -> Engine:
    """The engine called `name`.

    Raises
    ------
    EngineMissing
        Its package is not installed, or does not load here.
    InputError
        There is no such engine.
    """
    if name not in _NAMES:
        raise InputError(f"engine: there is none called {name!r} (engines: {', '.join(_NAMES)})")
    try:
        found: Engine = importlib.import_module(f"{__name__}.{name}").ENGINE
    except ImportError as error:
        raise EngineMissing(f"engine {name}: cannot be used here: {_one_line(error)}") from error
    return found


def available_engines() -> tuple[Availability, ...]:
    """Every engine with its version, or with the reason why it cannot be used here."""
    rows = []
    for name in _NAMES:
        try:
            rows.append(Availability(name, engine(name).version(), None))
        except EngineMissing as error:
            rows.append(Availability(name, None, str(error)))
    return tuple(rows)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__

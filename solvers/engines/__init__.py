"""Engines that solve declarative models. Each is one file here, imported when it is first asked for.

To add one: write ``solvers/engines/<name>.py`` with a module-level ``ENGINE`` that follows
:class:`~schedgap.solvers.engines.answer.Engine`, and add its name to :data:`NAMES`. The range of numbers in which it is
believed is its ``limits``, a :class:`~schedgap.solvers.engines.whole.Range`.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import TYPE_CHECKING

from schedgap.formulations.common.errors import EngineMissing, InputError

if TYPE_CHECKING:
    from schedgap.solvers.engines.answer import Engine

NAMES = ("cbc", "highs", "cpsat")
"""All engines, installed or not."""


def engine(name: str) -> Engine:
    """The engine called `name`.

    Raises
    ------
    EngineMissing
        Its package is not installed, or does not load here.
    InputError
        There is no such engine.
    """
    if name not in NAMES:
        raise InputError(f"engine: there is none called {name!r} (engines: {', '.join(NAMES)})")
    try:
        found: Engine = importlib.import_module(f"{__name__}.{name}").ENGINE
    except ImportError as error:
        raise EngineMissing(f"engine {name}: cannot be used here: {_one_line(error)}") from error
    return found


def load_engines() -> None:
    """Import every engine that is installed, and the parts of SciPy that exact methods use."""
    import scipy.optimize  # noqa: F401

    import schedgap.solvers.cp_sat.session  # noqa: F401

    for name in NAMES:
        with suppress(EngineMissing):
            engine(name)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__

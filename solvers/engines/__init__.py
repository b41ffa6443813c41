"""Engines that solve declarative models. Each is one file, imported when it is first asked for.

To add one: write a file with a module-level ``ENGINE`` that follows
:class:`~schedgap.solvers.engines.answer.Engine`, and name it in the entry points :data:`GROUP` of the package that it
lies in. The range of numbers in which it is believed is its ``limits``, a
:class:`~schedgap.solvers.engines.whole.Range`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from schedgap.formulations.common.errors import EngineMissing, InputError

if TYPE_CHECKING:
    from schedgap.solvers.engines.answer import Engine

NAMES = ("cbc", "highs", "cpsat")
"""Engines that come with every installation, in the order of ``schedgap list``; a platform may still lack one."""
GROUP = "schedgap.engines"
"""Entry points of further engines, of this package or of others: ``name = "package.module:ENGINE"``."""


@cache
def installed_engines() -> Mapping[str, EntryPoint]:
    """Further engines by name; none of them is imported.

    Raises InputError: a package registers a name that is taken.
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        if entry.name in NAMES or entry.name in found:
            raise InputError(f"entry point {entry.name}: there is an engine {entry.name} already")
        found[entry.name] = entry
    return found


def engine(name: str) -> Engine:
    """The engine called `name`.

    Raises
    ------
    EngineMissing
        Its package is not installed, or does not load here.
    InputError
        There is no such engine.
    """
    installed = {} if name in NAMES else installed_engines()
    if name not in NAMES and name not in installed:
        names = ", ".join((*NAMES, *installed))
        raise InputError(f"engine: there is none called {name!r} (engines: {names})")
    try:
        found: Engine = _LOADED[name]() if name in NAMES else installed[name].load()
    except (ImportError, AttributeError) as error:
        raise EngineMissing(f"engine {name}: cannot be used here: {_one_line(error)}") from error
    return found


def _cbc() -> Engine:
    from schedgap.solvers.engines.cbc import ENGINE

    return ENGINE


def _highs() -> Engine:
    from schedgap.solvers.engines.highs import ENGINE

    return ENGINE


def _cpsat() -> Engine:
    from schedgap.solvers.engines.cpsat import ENGINE

    return ENGINE


_LOADED = {"cbc": _cbc, "highs": _highs, "cpsat": _cpsat}


def load_engines() -> None:
    """Import every engine that is installed, and the parts of SciPy that exact methods use."""
    import scipy.optimize  # noqa: F401

    import schedgap.solvers.cp_sat.search  # noqa: F401

    for name in NAMES:
        with suppress(EngineMissing):
            engine(name)


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__

"""Declarative models to read, change, solve and write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from schedgap.formulations.common.errors import InputError
from schedgap.reading import InstanceLike, read_instance

if TYPE_CHECKING:
    from schedgap.solvers.model import Model


def model(instance: InstanceLike, form: str | None = None, tighten: bool = False) -> Model:
    """A declarative model of an instance, to read, change, solve and write.

    Parameters
    ----------
    instance : an instance, its JSON object, or the path of its file
    form : one of the problem's forms (``schedgap list``); its first where not given
    tighten : what the solvers use, which keeps an optimum of its own objective only and cannot be changed; otherwise
        only the paper's own constraints: every feasible schedule of the instance is a feasible point

    Raises
    ------
    InputError
        The problem has no such form.

    Examples
    --------
    >>> model = schedgap.model("two-jobs.json")  # doctest: +SKIP
    >>> model.add(model.variables["start"]["j0", 3] == 0, name="not_in_slot_3")  # doctest: +SKIP
    >>> model.solve("highs").objective  # doctest: +SKIP
    """
    problem, given = read_instance(instance)
    declarative = problem.model(given, form, tighten)
    if declarative is None:
        raise InputError(f"problem {problem.id}: has no declarative model")
    from schedgap.solvers.model import Model

    name = problem.forms[0].id if form is None and problem.forms else form
    return Model(declarative, lambda solution: problem.check(given, solution), f"{problem.id}, form {name}")


def export(instance: InstanceLike, out: str | Path, form: str = "mps") -> None:
    """Write the untightened model of an instance to a file: ``model(instance).write(out, form)``."""
    model(instance).write(out, form)

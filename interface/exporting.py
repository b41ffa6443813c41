"""Declarative models as MPS and LP files."""

from __future__ import annotations

import warnings
from pathlib import Path

from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import check_writable
from schedgap.formulations.common.instance import Instance
from schedgap.reading import InstanceLike, read_instance

FORMATS = ("mps", "lp")


def export(instance: InstanceLike, out: str | Path, form: str = "mps") -> None:
    """Write the declarative model of an instance to a file.

    Parameters
    ----------
    instance : an instance, its JSON object, or the path of its file
    out : the file
    form : "mps" or "lp"

    Raises
    ------
    InputError
        Another format, or a file that cannot be written.
    """
    write_model(*read_instance(instance), Path(out), form)


def write_model(problem: Problem, instance: Instance, out: Path, form: str) -> None:
    """Write the declarative model of `instance`.

    The sense of the objective stands in the file (section OBJSENSE after the NAME of an MPS file). Neither format has a
    constant in the objective that every reader understands, so one is written as a variable fixed at 1.

    Parameters
    ----------
    form : "mps" or "lp"

    Raises
    ------
    InputError
        Another format, or a file that cannot be written.
    """
    import pulp

    from schedgap.solvers.engines.arrays import model_arrays
    from schedgap.solvers.engines.mps import write_mps

    if form not in FORMATS:
        raise InputError(f"format: must be one of {', '.join(FORMATS)}, got {form!r}")
    check_writable(out)
    built = problem.model(instance)
    if built is None:
        raise InputError(f"problem {problem.id}: has no declarative model")
    model = built.problem
    constant = float(model.objective.constant)
    one = pulp.LpVariable("objective_constant", 1, 1)
    if constant:
        model.objective += constant * one - constant
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PuLP on characters of names that it replaces
        try:
            if form == "mps":
                arrays = model_arrays(built)
                if arrays.contradiction:  # a row without variables, which the arrays do not have
                    model += one >= 2, "contradiction"
                    arrays = model_arrays(built)
                write_mps(arrays, None, out, named=True)
            else:
                model.writeLP(str(out))
        except OSError as error:
            raise InputError(f"{out}: {error.strerror or error}") from None

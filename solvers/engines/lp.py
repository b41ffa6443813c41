"""Models as LP and MPS files with names that every reader takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.layout import NamedVariable
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.engines.arrays import ModelArrays, model_arrays
from schedgap.solvers.engines.mps import mps_text

LONGEST = 90
"""Characters of a name: CBC's reader takes 100."""
_ODD = re.compile(r"[^A-Za-z0-9_.,()#]")
_LINE = 200


def write_model(model: DeclarativeModel, path: Path, form: str) -> dict[str, str]:
    """Write the model as ``lp`` or ``mps``.

    The sense of the objective stands in the file (section OBJSENSE after the NAME of an MPS file). Neither format has a
    constant in the objective that every reader understands, so one is written as a variable fixed at 1.

    Returns
    -------
    The names of variables and rows that are others in the file: there ``[`` and ``]`` are ``(`` and ``)``, other
    characters that a reader may refuse are ``_``, and names stay different from each other.
    """
    arrays = _written(model)
    columns = file_names([variable.name for variable in arrays.variables])
    rows = file_names(arrays.names)
    named = columns, rows
    write_text(path, "\n".join(_lp_lines(arrays, *named)) if form == "lp" else mps_text(arrays, None, named=named))
    return dict(zip([*(variable.name for variable in arrays.variables), *arrays.names], [*columns, *rows], strict=True))


def file_names(names: Iterable[str]) -> list[str]:
    """Valid names for LP and MPS files, all different, each as near to its original as that allows."""
    given = list(names)
    plain = [_plain(name) for name in given]
    once = {name for name, often in Counter(plain).items() if often == 1}
    taken = set(once)
    found = []
    for name in plain:
        if name not in once:
            name = next(n for n in (f"{name}#{i}" for i in count(1)) if n not in taken)
            taken.add(name)
        found.append(name)
    return found


def _plain(name: str) -> str:
    name = _ODD.sub("_", name.replace("[", "(").replace("]", ")"))[:LONGEST]
    # a name may not begin like a number, nor with e or E, which readers take for one
    return f"n{name}" if not name or name[0] in "0123456789.eE,()#" else name


def _written(model: DeclarativeModel) -> ModelArrays:
    """The arrays, with a constant objective as a variable and a contradiction as a row."""
    arrays = model_arrays(model)
    if not arrays.constant and not arrays.contradiction and len(arrays.variables):
        return arrays
    one = NamedVariable("objective_constant", 1, 1, pulp.LpContinuous)
    width = len(arrays.variables)
    contradiction = [2.0] if arrays.contradiction else []
    return replace(
        arrays,
        variables=(*arrays.variables, one),
        names=(*arrays.names, *(["contradiction"] if contradiction else [])),
        cost=np.append(arrays.cost, arrays.constant),
        constant=0.0,
        lower=np.append(arrays.lower, 1.0),
        upper=np.append(arrays.upper, 1.0),
        integral=np.append(arrays.integral, False),
        restated=np.append(arrays.restated, False),
        row_lower=np.append(arrays.row_lower, contradiction),
        row_upper=np.append(arrays.row_upper, [np.inf] * len(contradiction)),
        starts=np.append(arrays.starts, [arrays.starts[-1] + 1] * len(contradiction)).astype(np.int32),
        indices=np.append(arrays.indices, [width] * len(contradiction)).astype(np.int32),
        coefficients=np.append(arrays.coefficients, [1.0] * len(contradiction)),
    )


def _lp_lines(arrays: ModelArrays, columns: list[str], rows: list[str]) -> Iterable[str]:
    """The model in the LP format of CPLEX."""
    yield "Maximize" if arrays.sense == MAXIMISE else "Minimize"
    costs = arrays.cost.tolist()
    terms = [(costs[j], columns[j]) for j in range(len(columns)) if costs[j]] or [(0.0, columns[0])]
    yield from _sum("OBJ", terms, "")
    yield "Subject To"
    starts, indices, numbers = arrays.starts.tolist(), arrays.indices.tolist(), arrays.coefficients.tolist()
    for i, (low, high) in enumerate(zip(arrays.row_lower.tolist(), arrays.row_upper.tolist(), strict=True)):
        relation = f" = {low!r}" if low == high else f" <= {high!r}" if low == -np.inf else f" >= {low!r}"
        row = range(starts[i], starts[i + 1])
        yield from _sum(rows[i], [(numbers[k], columns[indices[k]]) for k in row], relation)
    yield "Bounds"
    for name, low, high in zip(columns, arrays.lower.tolist(), arrays.upper.tolist(), strict=True):
        if low == -np.inf and high == np.inf:
            yield f" {name} free"
        elif low == high:
            yield f" {name} = {low!r}"
        else:
            left = "-inf" if low == -np.inf else repr(low)
            yield f" {left} <= {name}" + ("" if high == np.inf else f" <= {high!r}")
    whole = [name for name, integral in zip(columns, arrays.integral.tolist(), strict=True) if integral]
    if whole:
        yield "Generals"
        yield from (f" {name}" for name in whole)
    yield "End\n"


def _sum(name: str, terms: list[tuple[float, str]], relation: str) -> Iterable[str]:
    """A named sum, broken into lines that every reader takes."""
    line = f" {name}:"
    for coefficient, variable in terms:
        if len(line) > _LINE:
            yield line
            line = " "
        line += f" {'-' if coefficient < 0 else '+'} {abs(coefficient)!r} {variable}"
    yield line + relation

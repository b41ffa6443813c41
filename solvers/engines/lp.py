"""Models as LP and MPS files with names that every reader takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pulp

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.layout import NamedVariable
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.engines.arrays import ModelArrays, model_arrays

LONGEST = 90
"""Characters of a name: CBC's reader takes 100."""
_ODD = re.compile(r"[^A-Za-z0-9_.,()#]")
_LINE = 200


CONSTANT = "objective_constant"
"""The variable that stands for a constant in the objective, where a file has one."""


def write_model(model: DeclarativeModel, path: Path, form: str) -> dict[str, str]:
    """Write the model as ``lp`` or ``mps``.

    The sense of the objective stands in an LP file; an MPS file is always to be minimised, so the objective of a
    maximisation is negated there, and said to be (see :func:`mps_text`). Neither format has a constant in the
    objective that every reader understands, so one is written as a variable fixed at 1.

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


def columns_of(model: DeclarativeModel) -> dict[str, pulp.LpVariable]:
    """The variables of a model by the names that :func:`write_model` gives them in a file."""
    variables = _written(model).variables
    return dict(zip(file_names([variable.name for variable in variables]), variables, strict=True))


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
    one = NamedVariable(CONSTANT, 1, 1, pulp.LpContinuous)
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
            remaining = "-inf" if low == -np.inf else repr(low)
            yield f" {remaining} <= {name}" + ("" if high == np.inf else f" <= {high!r}")
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


def mps_text(
    arrays: ModelArrays, cost: Floats | None, *, named: tuple[Sequence[str], Sequence[str]] | None = None
) -> str:
    """The model as MPS without the constant of its objective.

    Numbers are written with all their digits, and every bound is explicit, because MPS readers differ on defaults
    for integer variables.

    Parameters
    ----------
    cost : to be minimised in place of the model's own objective; None is no objective
    named : names of variables and rows, for a file with the model's own objective; otherwise variable j is Xj and row i
        is Ri. To maximise is written as to minimise the negated objective, since MPS readers differ on OBJSENSE (CBC
        ignores it): a comment and the row's name, NEGATED_OBJ, say so
    """
    kinds = np.where(arrays.row_lower == arrays.row_upper, "E", np.where(np.isinf(arrays.row_lower), "L", "G")).tolist()
    levels = np.where(np.isinf(arrays.row_lower), arrays.row_upper, arrays.row_lower).tolist()
    order = np.argsort(arrays.indices, kind="stable")
    rows = np.repeat(np.arange(len(arrays.names)), np.diff(arrays.starts))[order].tolist()
    numbers = arrays.coefficients[order].tolist()
    ends = np.searchsorted(arrays.indices[order], np.arange(len(arrays.variables)), side="right").tolist()
    goal = arrays.sense * arrays.cost + 0.0 if named else np.zeros(len(arrays.variables)) if cost is None else cost
    costs = goal.tolist()
    plain = [f"X{j}" for j in range(len(arrays.variables))], [f"R{i}" for i in range(len(arrays.names))]
    columns, names = plain if named is None else named
    integral = arrays.integral.tolist()

    negated = bool(named) and arrays.sense == MAXIMISE
    objective = "NEGATED_OBJ" if negated else "OBJ"
    lines = ["* to maximise: the optimum is minus that of this file", "*"] if negated else []
    lines += ["NAME          MODEL", "ROWS", f" N  {objective}"]
    lines.extend(f" {kind}  {name}" for kind, name in zip(kinds, names, strict=True))
    lines.append("COLUMNS")
    inside = False
    begin = 0
    for j, end in enumerate(ends):
        if integral[j] != inside:
            inside = integral[j]
            lines.append(f"    MARK      'MARKER'                 '{'INTORG' if inside else 'INTEND'}'")
        if costs[j] or begin == end:
            lines.append(f"    {columns[j]:<8}  {objective:<8}  {costs[j]!r}")
        lines.extend(f"    {columns[j]:<8}  {names[rows[k]]:<8}  {numbers[k]!r}" for k in range(begin, end))
        begin = end
    if inside:
        lines.append("    MARK      'MARKER'                 'INTEND'")
    lines.append("RHS")
    lines.extend(f"    RHS       {names[i]:<8}  {level!r}" for i, level in enumerate(levels) if level)
    lines.append("BOUNDS")
    for j, (low, high) in enumerate(zip(arrays.lower.tolist(), arrays.upper.tolist(), strict=True)):
        if low == high:
            lines.append(f" FX BND       {columns[j]:<8}  {low!r}")
            continue
        lines.append(f" MI BND       {columns[j]}" if low == -np.inf else f" LO BND       {columns[j]:<8}  {low!r}")
        lines.append(f" PL BND       {columns[j]}" if high == np.inf else f" UP BND       {columns[j]:<8}  {high!r}")
    lines.append("ENDATA\n")
    return "\n".join(lines)

"""Models as MPS files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.engines.arrays import FloatArray, ModelArrays


def mps_text(
    arrays: ModelArrays, cost: FloatArray | None, *, named: tuple[Sequence[str], Sequence[str]] | None = None
) -> str:
    """The model as MPS without the constant of its objective.

    Numbers are written with all their digits, and every bound is explicit, because MPS readers differ on defaults
    for integer variables.

    Parameters
    ----------
    cost : to be minimised in place of the model's own objective; None is no objective
    named : names of variables and rows, for a file with the model's own objective and sense, which stands in a section
        OBJSENSE after the NAME (SCIP reads it nowhere else); otherwise variable j is Xj and row i is Ri
    """
    kinds = np.where(arrays.row_lower == arrays.row_upper, "E", np.where(np.isinf(arrays.row_lower), "L", "G")).tolist()
    levels = np.where(np.isinf(arrays.row_lower), arrays.row_upper, arrays.row_lower).tolist()
    order = np.argsort(arrays.indices, kind="stable")
    rows = np.repeat(np.arange(len(arrays.names)), np.diff(arrays.starts))[order].tolist()
    numbers = arrays.coefficients[order].tolist()
    ends = np.searchsorted(arrays.indices[order], np.arange(len(arrays.variables)), side="right").tolist()
    goal = arrays.cost if named else np.zeros(len(arrays.variables)) if cost is None else cost
    costs = goal.tolist()
    plain = [f"X{j}" for j in range(len(arrays.variables))], [f"R{i}" for i in range(len(arrays.names))]
    columns, names = plain if named is None else named
    integral = arrays.integral.tolist()

    lines = ["NAME          MODEL"]
    if named and arrays.sense == MAXIMISE:
        lines += ["OBJSENSE", "    MAX"]
    lines += ["ROWS", " N  OBJ"]
    lines.extend(f" {kind}  {name}" for kind, name in zip(kinds, names, strict=True))
    lines.append("COLUMNS")
    inside = False
    begin = 0
    for j, end in enumerate(ends):
        if integral[j] != inside:
            inside = integral[j]
            lines.append(f"    MARK      'MARKER'                 '{'INTORG' if inside else 'INTEND'}'")
        if costs[j] or begin == end:
            lines.append(f"    {columns[j]:<8}  OBJ       {costs[j]!r}")
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

"""What passes between us and the CBC program beside the MPS file: a start file, its log, its binary solution."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from schedgap.solvers.engines.arrays import FloatArray

NOTHING_FOUND = 1e49
"""CBC writes 1e+50 for an objective it does not have."""


def write_start(start: dict[int, float], path: Path) -> None:
    """Write a warm start in CBC's form: a heading, then ``index name value cost``."""
    lines = ["Stopped on iterations - objective value 0"]
    lines.extend(f"{j:>7} X{j} {value!r} 0" for j, value in sorted(start.items()))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def read_values(path: Path, columns: int) -> FloatArray | None:
    """The point that ``-saveSolution`` wrote, with all digits; None where it wrote none.

    The file holds two ints (rows, columns), then doubles: objective, row activities, row duals, column
    values, reduced costs.

    Raises
    ------
    RuntimeError
        The file does not fit the model.
    """
    data = path.read_bytes() if path.exists() else b""
    if not data:
        return None
    rows, found = struct.unpack_from("=ii", data) if len(data) >= 8 else (-1, -1)
    if found != columns or len(data) != 8 + 8 * (1 + 2 * rows + 2 * columns):
        raise RuntimeError(f"CBC wrote a solution of {found} columns for a model of {columns}")
    return np.frombuffer(data, dtype=np.float64, count=columns, offset=16 + 16 * rows).copy()


@dataclass(frozen=True)
class Log:
    """What CBC's log tells; None where it does not say.

    Attributes
    ----------
    nodes : enumerated
    without_point : it found no feasible point (its solution file then holds the relaxation's fractional one)
    """

    nodes: int | None
    without_point: bool


_LOWER = re.compile(r"^Lower bound:\s+(\S+)")
_NODES = re.compile(r"^Enumerated nodes:\s+(\d+)")
_POSSIBLE = re.compile(r"best possible ([-+0-9.eE]+)")
_SOLUTION = re.compile(r"^Cbc0010I .* ([-+0-9.eE]+) best solution, best possible")
_INTEGER = re.compile(r"^Cbc00(?:04|12|16|38)I .*?[Ss]olution (?:of|for|found of) ([-+0-9.eE]+)")


def safe_lower(text: str) -> float | None:
    """The least number that prints as `text`: half a unit of the last printed place below it.

    CBC prints "Lower bound:" with three decimals, so the number itself may lie above the true bound.
    """
    number = float(text)
    if not abs(number) < NOTHING_FOUND:
        return None
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return number - 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def bound_in(line: str) -> float | None:
    """A lower bound that a line of the log states, or None."""
    match = _LOWER.match(line) or _POSSIBLE.search(line)
    return safe_lower(match.group(1).rstrip(".")) if match else None


def objective_in(line: str) -> float | None:
    """The objective of a solution that a line of the log reports, or None."""
    match = _SOLUTION.match(line) or _INTEGER.match(line)
    if match is None:
        return None
    value = float(match.group(1))
    return value if abs(value) < NOTHING_FOUND else None


def read_log(lines: Iterable[str]) -> Log:
    """What the log says at its end."""
    nodes: int | None = None
    for line in lines:
        if match := _NODES.match(line):
            nodes = int(match.group(1))
    return Log(
        nodes,
        any(line.startswith("No feasible solution found") for line in lines),
    )

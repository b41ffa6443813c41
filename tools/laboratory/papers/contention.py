"""Fit of a, b and eta of eq. (5) of paper 001 to measured times of concurrent all-reduces.

``python -m schedgap.tools.laboratory.papers.contention results.csv`` prints the fit as a table.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from schedgap.formulations.common.errors import InputError

_COLUMNS = ("job_num", "msg_size", "avg_latency")
_MEGABYTE = 1e6


@dataclass(frozen=True)
class Measurement:
    """The mean time of an all-reduce while `active` run at once."""

    active: int  # k, how many run at once
    size: float  # MB (10^6 bytes)
    seconds: float  # mean time of each


@dataclass(frozen=True)
class Fit:
    """T = a + k b M + (k - 1) eta M."""

    # latency, seconds_per_unit, contention_penalty: a in s, b and eta in s per MB, none negative
    latency: float
    seconds_per_unit: float
    contention_penalty: float
    residuals: tuple[float, ...]  # predicted over measured, minus 1, in the order of the measurements

    @property
    def spread(self) -> float:
        """Root mean square of the relative residuals."""
        return math.sqrt(sum(r * r for r in self.residuals) / len(self.residuals))


def read_measurements(path: str | Path) -> list[Measurement]:
    """The rows of a CSV file with the columns job_num, msg_size (bytes) and avg_latency (microseconds).

    Raises InputError: the file cannot be read, has other columns, or a value that is not a positive number.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    if not rows or any(column not in rows[0] for column in _COLUMNS):
        raise InputError(f"{path}: must have rows with the columns {', '.join(_COLUMNS)}")
    result = []
    for number, row in enumerate(rows, 2):
        values = []
        for column in _COLUMNS:
            try:
                value = float(row[column])
            except (TypeError, ValueError):
                raise InputError(f"{path}: line {number}: {column}: must be a number, got {row[column]!r}") from None
            if not 0 < value < math.inf:
                raise InputError(f"{path}: line {number}: {column}: must be positive and finite, got {row[column]}")
            values.append(value)
        if values[0] != int(values[0]):
            raise InputError(f"{path}: line {number}: job_num: must be a whole number, got {row['job_num']}")
        result.append(Measurement(int(values[0]), values[1] / _MEGABYTE, values[2] / 1e6))
    return result


def fit(measurements: Sequence[Measurement]) -> Fit:
    """Least squares of the relative residuals with a, b, eta >= 0.

    Raises InputError: there are fewer than three.

    Parameters
    ----------
    measurements : at least three

    Notes
    -----
    Non-negative least squares (Lawson and Hanson 1974, scipy's ``nnls``), each row divided by its time. Source of
    the model: paper 001, eq. (5).
    """
    if len(measurements) < 3:
        raise InputError(f"fit: needs at least 3 measurements, got {len(measurements)}")
    rows = np.array([[1.0, m.active * m.size, (m.active - 1) * m.size] for m in measurements])
    seconds = np.array([m.seconds for m in measurements])
    scaled = rows / seconds[:, None]
    unit = np.abs(scaled).max(axis=0)
    unit[unit == 0] = 1.0
    found = nnls(scaled / unit, np.ones(len(seconds)))[0] / unit
    residuals = rows @ found / seconds - 1
    return Fit(float(found[0]), float(found[1]), float(found[2]), tuple(float(r) for r in residuals))


def report(measurements: Sequence[Measurement]) -> str:
    """The fit to all measurements, to those with at most 8 at once, and the residuals by size, as text."""
    lines = []
    for title, chosen in (
        ("all", list(measurements)),
        ("at most 8 at once", [m for m in measurements if m.active <= 8]),
    ):
        found = fit(chosen)
        lines.append(
            f"{title} ({len(chosen)}): a = {found.latency:.4g} s, b = {found.seconds_per_unit:.4g} s/MB, "
            f"eta = {found.contention_penalty:.4g} s/MB, relative residuals: root mean square {found.spread:.3f}, "
            f"largest {max(map(abs, found.residuals)):.3f}"
        )
        for size in sorted({m.size for m in chosen}):
            own = [r for m, r in zip(chosen, found.residuals, strict=True) if m.size == size]
            lines.append(f"  {size:.4g} MB: mean {np.mean(own):+.3f}, from {min(own):+.3f} to {max(own):+.3f}")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m schedgap.tools.laboratory.papers.contention results.csv")
    try:
        print(report(read_measurements(sys.argv[1])))
    except InputError as problem:
        sys.exit(str(problem))

"""The two kinds of files of the repository stanford-futuredata/gavel: job traces and measured rates."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedgap.benchmarks.instances.profiles.throughputs import JobType, Rate, Throughputs
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT, read_json

_UNCONSOLIDATED = "_unconsolidated"
_KEY = re.compile(r"^\('(?P<job_type>.+)', (?P<scale>[0-9]+)\)$")


@dataclass(frozen=True)
class TraceJob:
    """One line of a trace.

    Attributes
    ----------
    line : its number in the file, from 1
    job_type : model and batch size, ``ResNet-18 (batch size 32)``
    steps : total steps, counted over all workers
    scale : the scale factor, number of GPUs
    arrival : seconds
    """

    line: int
    job_type: JobType
    steps: int
    scale: int
    arrival: float


@dataclass(frozen=True)
class _Layout:
    """Which column (from 0) holds what; the columns besides are checked only where a mix-up would show."""

    steps_argument: int
    needs_data: int
    steps: int
    scale: int
    arrival: int


_LAYOUTS: Mapping[int, _Layout] = {
    # job_type, command, directory, steps argument, needs data, steps, scale, priority, SLO, arrival
    10: _Layout(steps_argument=3, needs_data=4, steps=5, scale=6, arrival=9),
    # job_type, command, steps argument, needs data, steps, arrival, scale
    7: _Layout(steps_argument=2, needs_data=3, steps=4, scale=6, arrival=5),
}


def read_trace(path: str | Path) -> list[TraceJob]:
    """The jobs of a trace: tab separated, 10 columns (physical clusters) or 7 (virtual clusters).

    Both layouts are checked line by line: the steps argument begins with "-", "needs data" is 0 or 1, steps
    and scale are whole numbers from 1, the arrival is not negative; so columns in another order are found
    out. Blank lines are passed over.

    Raises
    ------
    InputError
        Names the file, the line, the column and the value.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    jobs: list[TraceJob] = []
    width: int | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        cells = line.rstrip("\r").split("\t")
        if width is None:
            width = len(cells)
        if len(cells) not in _LAYOUTS or len(cells) != width:
            wanted = "7 or 10" if len(cells) not in _LAYOUTS else f"{width} as in the lines before"
            raise InputError(f"{path}: line {number}: {len(cells)} columns separated by tabs, expected {wanted}")
        jobs.append(_trace_job(cells, _LAYOUTS[len(cells)], f"{path}: line {number}", number))
    if not jobs:
        raise InputError(f"{path}: no jobs")
    return jobs


def _trace_job(cells: list[str], layout: _Layout, where: str, line: int) -> TraceJob:
    job_type = cells[0].strip()
    if not job_type:
        raise InputError(f"{where}: column 1 (job type): is empty")
    argument = cells[layout.steps_argument]
    if not argument.startswith("-"):
        raise InputError(
            f"{where}: column {layout.steps_argument + 1} (steps argument): must begin with '-', got {_short(argument)}"
        )
    if cells[layout.needs_data].strip() not in ("0", "1"):
        raise InputError(
            f"{where}: column {layout.needs_data + 1} (needs data): must be 0 or 1, "
            f"got {_short(cells[layout.needs_data])}"
        )
    return TraceJob(
        line=line,
        job_type=job_type,
        steps=_count(cells[layout.steps], f"{where}: column {layout.steps + 1} (total steps)"),
        scale=_count(cells[layout.scale], f"{where}: column {layout.scale + 1} (scale factor)"),
        arrival=_seconds(cells[layout.arrival], f"{where}: column {layout.arrival + 1} (arrival)"),
    )


def read_throughputs(path: str | Path) -> Throughputs:
    """Measured rates of jobs that run alone (key "null"); rates of packed pairs are not read.

    Raises
    ------
    InputError
        Not JSON, or not of the expected form: names the file, the place and the value.
    """
    data = _object(read_json(path), f"{path}")
    cells: dict[tuple[str, JobType, int], dict[bool, float]] = {}
    for section, rows in data.items():
        consolidated = not section.endswith(_UNCONSOLIDATED)
        worker = section.removesuffix(_UNCONSOLIDATED)
        for key, row in _object(rows, f"{path}: {section}").items():
            match = _KEY.match(key)
            if match is None:
                raise InputError(f"{path}: {section}: {_short(key)} is not of the form ('job type', scale)")
            where = f"{path}: {section}: {key}: null"
            found = _object(row, f"{path}: {section}: {key}")
            if "null" not in found:
                raise InputError(f"{where}: is missing (the rate of the job alone)")
            rate = found["null"]
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1e12:
                raise InputError(f"{where}: must be iterations per second, from 0 to 1e12, got {_short(rate)}")
            scale = _count(match["scale"], f"{path}: {section}: {key}: scale")
            cells.setdefault((worker, match["job_type"], scale), {})[consolidated] = float(rate)
    if not cells:
        raise InputError(f"{path}: no rates")
    return Throughputs(
        source=str(path), rates={key: Rate(pair.get(True), pair.get(False)) for key, pair in cells.items()}
    )


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: must be a JSON object, got {_short(value)}")
    return value


def _count(text: str, where: str) -> int:
    """A whole number from 1 to 10^9, written in digits."""
    text = text.strip()
    if not re.fullmatch(r"[0-9]{1,10}", text) or not 1 <= int(text) <= LARGEST_COUNT:
        raise InputError(f"{where}: must be a whole number from 1 to {LARGEST_COUNT}, got {_short(text)}")
    return int(text)


def _seconds(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1e15:
        raise InputError(f"{where}: must be seconds, at least 0, got {_short(text)}")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."

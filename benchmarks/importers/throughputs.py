"""Measured rates as the repository stanford-futuredata/gavel publishes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgap.benchmarks.importers.traces import Trace, TraceJob
from schedgap.benchmarks.instances.profiles.model_names import match_profile
from schedgap.benchmarks.instances.profiles.pollux_tasks import MEASURED
from schedgap.benchmarks.instances.profiles.throughputs import JobType, Rate, Throughputs
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT, read_json

_UNCONSOLIDATED = "_unconsolidated"
_KEY = re.compile(r"^\('(?P<job_type>.+)', (?P<scale>[0-9]+)\)$")


def read_throughputs(path: str | Path) -> Throughputs:
    """Measured rates of jobs that run alone (key "null"); rates of packed pairs are not read.

    Raises InputError: not JSON, or not of the expected form: names the file, the place and the value.
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


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def measured_type(trace: Trace, job: TraceJob, known: Sequence[str], profile: str) -> str:
    """The job type whose measured rates a job gets; with a note where the file does not name it.

    A format with job types of its own (Gavel's) names them all.
    """
    if trace.notes.strict:
        return job.model or ""
    chosen, said = match_profile(job.model, job.batch, known, profile)
    if said is not None:
        trace.notes.add(said)
    return chosen


def timed(trace: Trace, jobs: Sequence[TraceJob]) -> list[float]:
    """Seconds that each job ran; where the file has steps only, those they take on a measured V100.

    Raises InputError: no duration, and no rate of what the job trains.
    """
    found = []
    for job in jobs:
        if job.duration is not None:
            found.append(job.duration)
            continue
        step = MEASURED.seconds_per_step("v100", job.model or "", job.gpus)
        if step is None or job.iterations is None:
            raise InputError(f"{trace.path}: line {job.line}: {job.model!r} has steps, but no rate on v100 is known")
        found.append(job.iterations * step[0])
    if any(job.duration is None for job in jobs):
        trace.notes.add("durations are the steps of the file at the rates measured on v100")
    return found

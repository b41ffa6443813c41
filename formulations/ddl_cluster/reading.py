"""Reading parts of a solution: one clear line for whatever does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu


def by_job(instance: DdlClusterInstance, part: Any, where: str) -> Mapping[str, Any]:
    """`part` as an object with one entry for each job; InputError where it is not."""
    if not isinstance(part, Mapping):
        raise InputError(f"{where}: must be an object with an entry for each job")
    for job_id in part:
        if job_id not in instance.job_index:
            raise InputError(f'{where}: there is no job "{job_id}"')
    for job in instance.jobs:
        if job.id not in part:
            raise InputError(f'{where}: job "{job.id}" is missing')
    return part


def moment(value: Any, where: str) -> float:
    """`value` as a time in seconds; InputError where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or abs(value) > 1e15:
        raise InputError(f"{where}: must be a finite number of seconds, got {value!r}")
    return float(value)


def workers_of(instance: DdlClusterInstance, value: Any, where: str) -> tuple[Gpu, ...]:
    """`value` as GPUs, a list of [server, index]; InputError where it is none."""
    if not isinstance(value, list | tuple):
        raise InputError(f"{where}: must be a list of [server, index], got {type(value).__name__}")
    for position, entry in enumerate(value):
        fits = isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[0], str)
        if not fits or isinstance(entry[1], bool) or not isinstance(entry[1], int) or entry[1] < 0:
            raise InputError(f"{where}[{position}]: must be [server, index], got {entry!r}")
    try:
        return instance.located([(entry[0], entry[1]) for entry in value], where)
    except ValueError as error:
        raise InputError(str(error)) from None


def list_of(value: Any, count: int, where: str) -> list[Any] | tuple[Any, ...]:
    """`value` as a list of `count` entries; InputError where it is none."""
    if not isinstance(value, list | tuple) or len(value) != count:
        given = f"{len(value)}" if isinstance(value, list | tuple) else type(value).__name__
        raise InputError(f"{where}: must be a list of {count}, got {given}")
    return value

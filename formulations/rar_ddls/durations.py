"""How long jobs are estimated to take: rho_hat of paper 000."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table

RhoHat = str | Sequence[float] | Mapping[str, float]
"""Estimates: "best" or "worst" durations, or one number of slots per job, in input order ("3,4.5") or by id."""


def worst_durations(instance: RarDdlsInstance) -> npt.NDArray[np.float64]:
    """(J,) slots on the most servers under the most contention, up to max_s O_s rings; infinite at rate 0."""
    table = rate_table(instance)
    most = np.minimum(table.gpus, len(instance.servers))
    rate = table.rates(np.arange(most.size), most, np.where(most > 1, table.p_max, 1))
    with np.errstate(divide="ignore"):
        durations: npt.NDArray[np.float64] = np.ceil(table.iterations / rate.astype(np.float64))
    return durations


def estimated_durations(instance: RarDdlsInstance, rho_hat: RhoHat) -> list[int] | list[float]:
    """The estimate of each job, in input order.

    Raises InputError: another word, a wrong number of estimates, or one that is not positive and finite.
    """
    if rho_hat == "best":
        durations: list[int] = rate_table(instance).best_duration.tolist()
        return durations
    if rho_hat == "worst":
        worst = worst_durations(instance)
        stuck = np.flatnonzero(np.isinf(worst))
        if stuck.size:
            job = instance.jobs[int(stuck[0])].id
            raise InputError(f'rho_hat: "worst" is infinite, job {job!r} makes no progress in the worst company')
        return [int(slots) for slots in worst]
    if isinstance(rho_hat, str):
        try:
            rho_hat = [float(number) for number in rho_hat.split(",")]
        except ValueError:
            raise InputError(f"rho_hat: must be best, worst or a number per job, got {rho_hat!r}") from None
    if isinstance(rho_hat, Mapping):
        missing = [job.id for job in instance.jobs if job.id not in rho_hat]
        if missing or len(rho_hat) != len(instance.jobs):
            known = set(instance.job_index)
            wrong = f"no estimate for job {missing[0]!r}" if missing else f"unknown job {min(set(rho_hat) - known)!r}"
            raise InputError(f"rho_hat: {wrong}")
        rho_hat = [rho_hat[job.id] for job in instance.jobs]
    if len(rho_hat) != len(instance.jobs):
        raise InputError(f"rho_hat: {len(rho_hat)} estimates, the instance has {len(instance.jobs)} jobs")
    for position, value in enumerate(rho_hat):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 < value < 1e15:
            raise InputError(f"rho_hat[{position}]: must be a positive finite number of slots, got {value!r}")
    return list(rho_hat)

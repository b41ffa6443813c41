"""Estimated durations and loads of the algorithms of paper 000, and what rules every schedule out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.rar_ddls.dynamics import Integers, rate_table
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.running import FAR

_LARGEST_ARRAY = 10**8


def impossible(instance: RarDdlsInstance) -> str | None:
    """Why no schedule exists, where a single job shows it: one line, or None.

    A job larger than the cluster, one that makes no progress even alone on the fewest servers, or one whose
    best duration is longer than the horizon.
    """
    table = rate_table(instance)
    late = (table.best_duration > instance.horizon).nonzero()[0]
    if late.size == 0:
        return None
    position = int(late[0])
    job = instance.jobs[position]
    name = f"job {position} ({job.id})"
    if job.gpus > instance.total_gpus:
        return f"{name}: needs {job.gpus} GPUs, the cluster has {instance.total_gpus}"
    if table.best_rate[position] == 0:
        return f"{name}: makes no progress even alone on {int(table.fewest_servers[position])} server(s)"
    return f"{name}: takes at least {int(table.best_duration[position])} slots, the horizon is {instance.horizon}"


def require_gpu_arrays(instance: RarDdlsInstance) -> None:
    """Refuse a cluster too large for an algorithm that keeps a load for every GPU.

    Raises
    ------
    InputError
        More than 10^8 GPUs, in the cluster or in all jobs together.
    """
    total = sum(job.gpus for job in instance.jobs)
    if max(total, instance.total_gpus) > _LARGEST_ARRAY:
        raise InputError(
            f"{instance.total_gpus} GPUs in the cluster and {total} in all jobs: "
            f"loads are kept for at most {_LARGEST_ARRAY} GPUs"
        )


@dataclass(frozen=True)
class Estimates:
    """rho_hat in whole numbers, so that loads and limits are compared exactly.

    Attributes
    ----------
    rho_hat : the estimates themselves, slots
    u : loads are sums of rho_hat / u
    weights : (J,) rho_hat times ``scale``, whole
    scale : what the estimates are multiplied by
    """

    rho_hat: tuple[float, ...]
    u: Fraction
    weights: Integers
    scale: int

    def limit(self, theta: float) -> int:
        """The largest sum of weights whose load is at most theta; FAR for infinity."""
        if math.isinf(theta):
            return FAR
        return min(FAR, math.floor(exact(theta) * self.u * self.scale))

    def load(self, weight: int) -> float:
        """The load, in slots, that a sum of weights means."""
        return float(Fraction(weight, self.scale) / self.u)


RhoHat = str | Sequence[float] | Mapping[str, float]
"""Estimates: "best" or "worst" durations, or one number of slots per job, in input order or by id."""


def worst_durations(instance: RarDdlsInstance) -> npt.NDArray[np.float64]:
    """(J,) slots on the most servers under the most contention, up to max_s O_s rings; infinite at rate 0."""
    table = rate_table(instance)
    most = np.minimum(table.gpus, len(instance.servers))
    rate = table.rates(np.arange(most.size), most, np.where(most > 1, table.p_max, 1))
    with np.errstate(divide="ignore"):
        durations: npt.NDArray[np.float64] = np.ceil(table.iterations / rate.astype(np.float64))
    return durations


def estimates(instance: RarDdlsInstance, rho_hat: RhoHat, u: float) -> Estimates:
    """The estimated durations that an algorithm is to use.

    Parameters
    ----------
    rho_hat : "best" for the best contention-free durations, "worst" for ``worst_durations``, or one positive
        number of slots per job
    u : at least 1

    Raises
    ------
    InputError
        A wrong number of estimates, one that is not positive and finite (also among the worst durations), or
        loads beyond 2^62 in whole numbers.
    """
    values = _estimate_values(instance, rho_hat)
    parts = [exact(value) for value in values]
    scale = math.lcm(*(part.denominator for part in parts))
    weights = [int(part * scale) for part in parts]
    heaviest = sum(job.gpus * weight for job, weight in zip(instance.jobs, weights, strict=True))
    # GPUs are ordered by load * N + index, averages of servers by cross multiplication: both must fit int64.
    largest = max(sum(weights) * instance.total_gpus, heaviest * max(server.gpus for server in instance.servers))
    if largest >= FAR:
        raise InputError(f"rho_hat: loads of up to {sum(values):g} slots with denominator {scale} are too large")
    return Estimates(tuple(values), exact(u), np.array(weights, dtype=np.int64), scale)


def _estimate_values(instance: RarDdlsInstance, rho_hat: RhoHat) -> list[int] | list[float]:
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
        raise InputError(f"rho_hat: must be best, worst or a number per job, got {rho_hat!r}")
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

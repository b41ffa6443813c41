"""An instance of rar-ddls as flat integer arrays for the compiled algorithms, and what rules every schedule out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.rar_ddls.dynamics import Integers, rate_table
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

NEVER = 2**62
"""A slot that does not come, and a load that no limit excludes."""

_LARGEST_ARRAY = 10**8
_CHUNK = 4 * 10**6


class Workload(NamedTuple):
    """Arrays that compiled code reads and never changes; all int64.

    Attributes
    ----------
    gangs, iterations, best : (J,) G_j, F_j and the best duration in slots
    row : (J + 1,) entries row[j]..row[j+1]-1 belong to job j: one for each server that it may use
    owner : (row[J],) the job of an entry
    rates : (row[J], p_max + 1) rates[row[j] + n - 1, p] = iterations per slot on n servers under contention p
    sizes : (S,) O_s
    first : (S + 1,) the GPUs of server s are first[s]..first[s+1]-1
    ring : (S + 1,) room for the rings that cross server s: ring[s]..ring[s+1]-1
    """

    gangs: Integers
    iterations: Integers
    best: Integers
    row: Integers
    owner: Integers
    rates: Integers
    sizes: Integers
    first: Integers
    ring: Integers


def build_workload(instance: RarDdlsInstance) -> Workload:
    """The arrays of an instance for which ``impossible`` gives None.

    Raises
    ------
    InputError
        The rates would take more than 10^8 numbers.

    Notes
    -----
    O(sum_j min(G_j, S) p_max) time and memory: unlike the dense table of the dynamics, a job has only the rows
    that it can use.
    """
    table = rate_table(instance)
    sizes = np.array([server.gpus for server in instance.servers], dtype=np.int64)
    most = np.minimum(table.gpus, sizes.size)
    row = _starts(most)
    width = table.p_max + 1
    if int(row[-1]) * width > _LARGEST_ARRAY:
        raise InputError(
            f"rates of {len(instance.jobs)} jobs on up to {int(most.max())} servers under contention up to "
            f"{table.p_max}: more than {_LARGEST_ARRAY} numbers"
        )
    owner = np.repeat(np.arange(most.size, dtype=np.int64), most)
    used = np.arange(int(row[-1]), dtype=np.int64) - row[owner] + 1
    rates = np.empty((used.size, width), dtype=np.int64)
    contention = np.arange(width, dtype=np.int64)
    step = max(1, _CHUNK // width)
    for low in range(0, used.size, step):
        part = slice(low, low + step)
        rates[part] = table.rates(owner[part, None], used[part, None], contention)
    return Workload(
        gangs=np.array(table.gpus),
        iterations=np.array(table.iterations),
        best=np.array(table.best_duration),
        row=row,
        owner=owner,
        rates=rates,
        sizes=sizes,
        first=_starts(sizes),
        ring=_starts(np.minimum(sizes, most.size)),
    )


def _starts(lengths: Integers) -> Integers:
    result = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=result[1:])
    return result


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
        """The largest sum of weights whose load is at most theta; NEVER for infinity."""
        if math.isinf(theta):
            return NEVER
        return min(NEVER, math.floor(exact(theta) * self.u * self.scale))

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
    if largest >= NEVER:
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


def solution_of(
    instance: RarDdlsInstance, start: Integers, servers: Integers, amounts: Integers, used: Integers, row: Integers
) -> dict[str, Any]:
    """The bare solution object of arrays as the simulation keeps them.

    Parameters
    ----------
    start : (J,) start slots
    servers, amounts : (row[J],) server positions and GPUs on each, those of job j from row[j] on
    used : (J,) servers that each job uses
    row : (J + 1,) as in :class:`Workload`
    """
    names = [server.id for server in instance.servers]
    server_list, amount_list = servers.tolist(), amounts.tolist()
    placement: dict[str, dict[str, int]] = {}
    for job, low, count in zip(instance.jobs, row.tolist(), used.tolist(), strict=False):
        placement[job.id] = {names[server_list[e]]: amount_list[e] for e in range(low, low + count)}
    return {"start": dict(zip((job.id for job in instance.jobs), start.tolist(), strict=True)), "placement": placement}

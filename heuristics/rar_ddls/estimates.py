"""Estimated durations and loads of the algorithms of paper 000, and what rules every schedule out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.rar_ddls.durations import RhoHat, estimated_durations
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import Integers, rate_table
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

    Raises InputError: more than 10^8 GPUs, in the cluster or in all jobs together.
    """
    total = sum(job.gpus for job in instance.jobs)
    if max(total, instance.total_gpus) > _LARGEST_ARRAY:
        raise InputError(
            f"{instance.total_gpus} GPUs in the cluster and {total} in all jobs: "
            f"loads are kept for at most {_LARGEST_ARRAY} GPUs"
        )


@dataclass(frozen=True)
class Estimates:
    """rho_hat in whole numbers, so that loads and limits are compared exactly."""

    rho_hat: tuple[float, ...]  # the estimates themselves, slots
    u: Fraction  # loads are sums of rho_hat / u
    weights: Integers  # (J,) rho_hat times ``scale``, whole
    scale: int  # what the estimates are multiplied by

    def limit(self, theta: float) -> int:
        """The largest sum of weights whose load is at most theta; FAR for infinity."""
        if math.isinf(theta):
            return FAR
        return min(FAR, math.floor(exact(theta) * self.u * self.scale))

    def load(self, weight: int) -> float:
        """The load, in slots, that a sum of weights means."""
        return float(Fraction(weight, self.scale) / self.u)


def estimates(instance: RarDdlsInstance, rho_hat: RhoHat, u: float) -> Estimates:
    """The estimated durations that an algorithm is to use.

    Raises InputError: a wrong number of estimates, one that is not positive and finite (also among the worst
    durations), or loads beyond 2^62 in whole numbers.

    Parameters
    ----------
    rho_hat : "best" for the best contention-free durations, "worst" for ``worst_durations``, or one positive
        number of slots per job
    u : at least 1
    """
    values = estimated_durations(instance, rho_hat)
    parts = [exact(value) for value in values]
    scale = math.lcm(*(part.denominator for part in parts))
    weights = [int(part * scale) for part in parts]
    heaviest = sum(job.gpus * weight for job, weight in zip(instance.jobs, weights, strict=True))
    # GPUs are ordered by load * N + index, averages of servers by cross multiplication: both must fit int64.
    largest = max(sum(weights) * instance.total_gpus, heaviest * max(server.gpus for server in instance.servers))
    if largest >= FAR:
        raise InputError(f"rho_hat: loads of up to {sum(values):g} slots with denominator {scale} are too large")
    return Estimates(tuple(values), exact(u), np.array(weights, dtype=np.int64), scale)

"""Jobs of rar-ddls from measured rates, by eq. (8) solved for computation time and gradient size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from schedgap.benchmarks.instances.profiles.throughputs import Throughputs, batch_size
from schedgap.benchmarks.instances.rar_ddls.options import ContentionPenalty
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The cluster that measured rates are read for: what the measurement does not tell.

    Bandwidths in GB/s, times in seconds. Its fields are options of the presets and importers that take measured jobs.
    Raises InputError: ``intra_bandwidth`` is not more than ``inter_bandwidth``: no gradient size would explain a
    slowdown.
    """

    slot_length: Annotated[float, Field(gt=0, le=10**6, description="seconds per slot")] = 60.0
    inter_bandwidth: Annotated[float, Field(gt=0, le=10**6, description="GB/s between servers (10 Gbit/s)")] = 1.25
    intra_bandwidth: Annotated[float, Field(gt=0, le=10**6, description="GB/s within a server")] = 62.5
    reduce_speed: Annotated[float, Field(gt=0, le=10**6, description="GB/s that a GPU adds up")] = 500.0
    xi_1: Annotated[float, Field(gt=0, le=1, description="contention_scale; 1: rings transmit all the time")] = 1.0
    alpha: ContentionPenalty = 0.2
    xi_2: Annotated[
        float, Field(ge=0, le=10**6, description="server_overhead, seconds per iteration and server used")
    ] = 0.0

    def __post_init__(self) -> None:
        if self.intra_bandwidth <= self.inter_bandwidth:
            raise InputError(
                f"option intra_bandwidth: must be more than inter_bandwidth ({self.inter_bandwidth:g}), "
                f"got {self.intra_bandwidth:g}"
            )

    def network(self) -> dict[str, float]:
        """The ``network`` of an instance: data units are GB, times are slots."""
        return {
            "inter_bandwidth": self.inter_bandwidth * self.slot_length,
            "intra_bandwidth": self.intra_bandwidth * self.slot_length,
            "contention_scale": self.xi_1,
            "contention_penalty": self.alpha,
            "server_overhead": self.xi_2 / self.slot_length,
        }


def measured_job(
    table: Throughputs, worker: str, job_type: str, scale: int, setup: Setup
) -> tuple[dict[str, Json], list[str]] | None:
    """The size and times of a job whose rates were measured, as fields of an instance's job.

    With the measured times per iteration c (one server) and u (one GPU on each of `scale` servers), w GPUs,
    bandwidths b^i and b^e and the reduction speed C, eq. (8) without contention gives

        m = (u - c - xi_2 (w - 1)) w / (2 (w - 1) (1/b^e - 1/b^i)),
        computation = c - (m/w) 2 (w - 1) / b^i - (m/w) (w - 1) / C - xi_2,

    so that the model reproduces both measurements (up to rounding down to whole iterations per slot). The
    whole computation is put into ``backward_time``: the measurement does not split it.

    Cells that cannot be used as they are:

    - no rate, or a rate of 0, at this scale: the rates of the nearest scale that has one (of two equally
      near the smaller), times the ratio of the scales, since the source counts the steps of all workers;
    - no unconsolidated rate there: the gradient size of the nearest scale that has both rates, a property
      of the model; 0 where no scale has;
    - unconsolidated at least as fast as consolidated, or the difference explained by xi_2: gradient size 0,
      so spreading this job costs nothing but xi_2.

    Raises InputError: exchange or overhead within one server would take longer than a whole measured iteration.

    Parameters
    ----------
    table, worker, job_type, scale : which measurement
    setup : the cluster it is read for

    Returns
    -------
    The fields gpus, gradient_size, batch_size, forward_time, backward_time, and a message for each rule
    that was used; None where this job type has no usable rate at any scale.
    """
    step = table.seconds_per_step(worker, job_type, scale)
    if step is None:
        return None
    seconds, nearest = step
    messages: list[str] = []
    label = f"{job_type} on {scale} {worker}"
    if nearest != scale:
        was = table.rate(worker, job_type, scale).consolidated
        messages.append(
            f"{label}: consolidated rate {'not measured' if was is None else f'is {was:g}'}, "
            f"that of {nearest} times {scale}/{nearest} taken"
        )
    usable = table.usable_scales(worker, job_type)
    gradient = _gradient(table, worker, job_type, scale, setup, usable, messages, label)
    within = gradient / scale * (scale - 1) * (2 / setup.intra_bandwidth + 1 / setup.reduce_speed)
    compute = seconds - within - setup.xi_2
    if compute <= 0:
        raise InputError(
            f"{label}: exchange within a server ({within:.3g} s) and xi_2 ({setup.xi_2:g} s) take longer than a "
            f"measured iteration ({seconds:.3g} s); raise intra_bandwidth or reduce_speed, or lower xi_2"
        )
    fields = {
        "gpus": scale,
        "gradient_size": _significant(gradient),
        "batch_size": batch_size(job_type) or 1,
        "forward_time": 0.0,
        "backward_time": _significant(compute / setup.slot_length),
    }
    return fields, messages


def _gradient(
    table: Throughputs,
    worker: str,
    job_type: str,
    scale: int,
    setup: Setup,
    usable: list[int],
    messages: list[str],
    label: str,
) -> float:
    """The gradient size m in GB; appends a message where a rule for unusable cells was needed."""
    if scale == 1:
        return 0.0
    both = [s for s in usable if s > 1 and table.rate(worker, job_type, s).unconsolidated]
    if not both:
        messages.append(f"{label}: no unconsolidated rate at any scale, gradient size 0")
        return 0.0
    source = min(both, key=lambda s: (abs(s - scale), s))
    if source != scale and scale in usable:
        messages.append(f"{label}: no unconsolidated rate, gradient size of {source} GPUs taken")
    rate = table.rate(worker, job_type, source)
    assert rate.consolidated and rate.unconsolidated
    extra = 1 / rate.unconsolidated - 1 / rate.consolidated
    if extra <= 0:
        messages.append(
            f"{label}: unconsolidated is not slower ({rate.unconsolidated:g} against {rate.consolidated:g} "
            f"iterations/s on {source} GPUs), gradient size 0"
        )
        return 0.0
    exchange = extra - setup.xi_2 * (source - 1)
    if exchange <= 0:
        messages.append(f"{label}: xi_2 explains the whole slowdown of spreading, gradient size 0")
        return 0.0
    return exchange * source / (2 * (source - 1) * (1 / setup.inter_bandwidth - 1 / setup.intra_bandwidth))


def _significant(value: float) -> float:
    """Six significant digits: more than was measured."""
    return float(f"{value:.6g}")

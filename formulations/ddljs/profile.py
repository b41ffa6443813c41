"""A training job's profile: how long an iteration of a ring takes, eq. (1) of paper 004, and what zeta follows."""

from __future__ import annotations

from dataclasses import dataclass

from schedgap.formulations.common.errors import InputError


@dataclass(frozen=True)
class Profile:
    """What eq. (1) knows of a job; any units of data and time that agree with each other.

    Attributes
    ----------
    gradients : d, the size of the gradients
    bandwidth : b between neighbouring workers, data per time
    reduce_speed : G of a worker, data per time
    forward_time : t^f of one sample
    batch : M, samples in a mini-batch of a worker
    backward_time : t^b of a mini-batch
    overhead : gamma, extra latency of an iteration

    Raises
    ------
    InputError
        A speed that is not positive, or anything else below 0.
    """

    gradients: float
    bandwidth: float
    reduce_speed: float
    forward_time: float
    batch: int
    backward_time: float
    overhead: float = 0.0

    def __post_init__(self) -> None:
        for name in ("bandwidth", "reduce_speed"):
            if not getattr(self, name) > 0:
                raise InputError(f"profile: {name}: must be greater than 0, got {getattr(self, name)!r}")
        for name in ("gradients", "forward_time", "batch", "backward_time", "overhead"):
            if not getattr(self, name) >= 0:
                raise InputError(f"profile: {name}: must be at least 0, got {getattr(self, name)!r}")

    def iteration_time(self, workers: int | None = None) -> float:
        """tau, eq. (1): ``d (w - 1)/w (2/b + 1/G) + t^f M + t^b + gamma``.

        Parameters
        ----------
        workers : w >= 1; None is the limit for many workers, which no ring exceeds
        """
        if workers is not None and workers < 1:
            raise InputError(f"profile: workers: must be at least 1, got {workers}")
        share = 1.0 if workers is None else (workers - 1) / workers
        ring = self.gradients * share * (2.0 / self.bandwidth + 1.0 / self.reduce_speed)
        return ring + self.forward_time * self.batch + self.backward_time + self.overhead

    def efficiency(self, slot_length: float, workers: int | None = None) -> float:
        """zeta, iterations of a worker in a slot: ``slot_length / tau`` (section IV-3, example 1).

        Problem DDLJS has one zeta for all ring sizes, tau depends on them: without `workers` it is the smallest zeta
        of any ring.

        Raises
        ------
        InputError
            An iteration that takes no time, or a slot that is not longer than nothing.
        """
        time = self.iteration_time(workers)
        if not time > 0:
            raise InputError(f"profile: an iteration takes no time, got {time!r}")
        if not slot_length > 0:
            raise InputError(f"profile: slot_length: must be greater than 0, got {slot_length!r}")
        return slot_length / time

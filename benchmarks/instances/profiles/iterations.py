"""The iteration-time model of eq. (7), whose numbers are fitted to measured iteration times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class IterationModel:
    """t_iter = ((fixed + per_sample b)^delta + t_comm^delta)^(1/delta), eq. (7) without accumulation.

    t_comm is 0 for one GPU, ``local[0] + local[1] (k - 2)`` for k GPUs of one server, and
    ``network[0] + network[1] (k - 2)`` across servers: eq. (4) with the message folded in.
    """

    # fixed, per_sample: seconds, and seconds per sample (eq. 3)
    fixed: float
    per_sample: float
    # local, network: (base, per further GPU) seconds
    local: tuple[float, float]
    network: tuple[float, float]
    overlap: float  # delta, from 1 to 10
    error: float = 0.0  # root mean square of the logarithmic error over the measurements
    worst: float = 0.0  # the largest relative error
    count: int = 0  # measurements it was fitted to

    def communication(self, nodes: int, replicas: int) -> float:
        """t_comm in seconds."""
        if replicas == 1:
            return 0.0
        base, slope = self.local if nodes == 1 else self.network
        return base + slope * (replicas - 2)

    def seconds(self, nodes: int, replicas: int, batch: int) -> float:
        """t_iter in seconds."""
        parts = (self.fixed + self.per_sample * batch, self.communication(nodes, replicas))
        largest = max(*parts, 1e-300)
        return float(largest * sum((part / largest) ** self.overlap for part in parts) ** (1 / self.overlap))

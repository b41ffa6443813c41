"""The options of the policies of gpu-sharing, as ``--set`` and the functions themselves take them."""

from __future__ import annotations

from collections.abc import Mapping

from schedgap.heuristics.common.run import Option

SJF: Mapping[str, Option] = {
    "backfill": Option(bool, True, "a job that does not fit is passed over; false: it holds up the rest"),
}
FIFO: Mapping[str, Option] = {
    "backfill": Option(bool, False, "later jobs that fit may pass the first"),
}
_RESTART = Option(float, 30.0, "seconds lost when a job goes on after a change", minimum=0, maximum=1e6)
TIRESIAS: Mapping[str, Option] = {
    "threshold": Option(
        float, 3600.0, "GPU seconds after which a job leaves the first queue", minimum=0, exclusive=True, maximum=1e12
    ),
    "restart": _RESTART,
}
POLLUX: Mapping[str, Option] = {
    "noise": Option(float, 1.0, "gradient noise scale in batches, the same for all jobs", minimum=0, maximum=1e6),
    "most": Option(float, 4.0, "largest number of GPUs over those asked for", minimum=0, exclusive=True, maximum=1e6),
    "restart": _RESTART,
}

"""Figure 5 of paper 004: embedded ratio over the capacity of the servers."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import Axis, Claim
from schedgap.benchmarks.laboratory.paper_004.common import FILLED, embedded_ratio
from schedgap.benchmarks.laboratory.rules import More, Trend, Value

_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


def _embedded(series: str, factor: float) -> Value:
    return Value("embedded", series, factor)


def _rises(series: str) -> Trend:
    return Trend(tuple(_embedded(series, factor) for factor in _FACTORS), falling=False, end=1.0)


ITEM = embedded_ratio(
    "Figure 5",
    "node",
    plots="Embedded ratio, the embedded over the active jobs of a slot averaged over three trials, by node "
    "resources in units of 100 GPUs (section VI).",
    left_open="Open: what else varies and whether slots are shown; here the mean over slots, by a factor on the "
    "GPUs of every server (0.25 to 4, about 0.25 to 3 units). The printed 50 servers and 200 slots take minutes of a "
    "processor a run at a quarter of the GPUs (200 jobs); here 40 jobs on 20 servers over 20 slots. lambda_2 is "
    "uniform on (0, 0.01), where a job gains before it is nearly done; second choice: on the whole of the printed "
    "(0, 1). A step where every job is embedded in every slot already cannot rise further and is left out.",
    axis=Axis("factor on GPUs", "gpu_factor", _FACTORS, log=True),
    claims=(
        Claim(
            "Larger node capacity embeds more jobs in each slot.",
            "section VI, Figure 5",
            (More(_embedded("GADGET", _FACTORS[-1]), _embedded("GADGET", _FACTORS[0])), _rises("GADGET")),
        ),
        Claim(
            "So it does for GADGET, repaired and filled.",
            "beside Figure 5",
            (_rises(FILLED),),
            choices=(),
            ours=True,
        ),
        Claim(
            "Repaired and filled, its embedded ratio is above the baselines'.",
            "beside Figure 5",
            tuple(
                More(_embedded(FILLED, factor), _embedded(other, factor))
                for other in ("FIFO", "DRF", "LAS")
                for factor in _FACTORS[:3]
            ),
            choices=(),
            ours=True,
        ),
    ),
)

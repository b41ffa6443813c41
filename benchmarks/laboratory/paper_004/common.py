"""What the figures of paper 004 share: Algorithm 1 with Algorithm 2 inside, the baselines, the metrics."""

from __future__ import annotations

from collections.abc import Mapping

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Choice, Claim, Item, Metric, Series
from schedgap.benchmarks.laboratory.draw import lines

GADGET = Series("GADGET", "gadget", {"inner": "printed", "fill": False})
KEPT = Choice("capacities kept", methods={"GADGET": {"inner": "lp-rs-mde-printed"}})
REPAIRED = (
    Series("GADGET, repaired", "gadget", {"inner": "lp-rs-mde", "fill": False}, ours=True, beside=True),
    Series("GADGET, repaired and filled", "gadget", {"inner": "lp-rs-mde"}, ours=True, beside=True),
)
FILLED = REPAIRED[1].label
BASELINES = (Series("FIFO", "fifo"), Series("DRF", "drf"), Series("LAS", "las"))

SMALL = {"servers": 20}
"""Two fifths of the printed servers, with two fifths of the jobs: Algorithm 2 takes a tenth of the time there."""

UTILITY = Metric("objective", "total utility")
EMBEDDED = Metric("embedded", "embedded ratio", digits=3)
LOAD = Metric("load", "largest load over capacity", digits=2)

ALGORITHM = """GADGET is Algorithm 1 with Algorithm 2 inside, as published (`gadget-printed`): a slot's rings may
overload servers and links, so that it has no ratio to the bound. Second choice: a ring that does not fit what is left
is refused. Beside it, in no count, *repaired*: rings that are embeddable alone, capacities kept; and *filled*: servers
that it leaves idle, since no job gains there, go to jobs that gain nothing yet."""


def embedded_ratio(
    figure: str,
    of: str,
    plots: str,
    left_open: str,
    axis: Axis,
    claims: tuple[Claim, ...],
    workload: Mapping[str, float] | None = None,
    choices: tuple[Choice, ...] = (),
) -> Item:
    """Figures 5 and 6: the embedded ratio over a capacity. A tenth of the printed slots, as it is a mean over slots."""
    return Item(
        id=figure.lower().replace(" ", "-"),
        title=f"{figure}: embedded ratio over {of} capacity",
        plots=plots,
        left_open=f"{left_open} {' '.join(ALGORITHM.split())}",
        problem="ddljs",
        preset=figure.lower().replace(" ", "-"),
        workload={**SMALL, "jobs": 40, "horizon": 20, **(workload or {})},
        series=(GADGET, *REPAIRED, *BASELINES),
        axis=axis,
        metrics=(EMBEDDED, UTILITY, LOAD, RATIO),
        choices=(KEPT, Choice("lambda_2 up to 1", {"steepness": 1.0}), *choices),
        claims=claims,
        panels=(lines(EMBEDDED), lines(UTILITY), lines(RATIO)),
    )

"""What the figures of paper 004 share: Algorithm 1 with Algorithm 2 inside, the baselines, the metrics."""

from __future__ import annotations

from collections.abc import Mapping

from schedgap.benchmarks.laboratory.declare import RATIO, Axis, Choice, Claim, Item, Metric, Series
from schedgap.benchmarks.laboratory.draw import lines

FILLED = Series("GADGET, filled", "gadget", {"inner": "lp-rs-mde"})
UNFILLED = Series("GADGET", "gadget", {"inner": "lp-rs-mde", "fill": False})
PRINTED = Series("GADGET, printed program", "gadget", {"inner": "lp-rs-mde-printed", "fill": False}, beside=True)
PRINTED_FILLED = Series("GADGET, printed program, filled", "gadget", {"inner": "lp-rs-mde-printed"}, beside=True)
EXACT = Series("exact slots, filled", "gadget", {"inner": "colgen"}, ours=True, beside=True)
BASELINES = (Series("FIFO", "fifo"), Series("DRF", "drf"), Series("LAS", "las"))

SMALL = {"servers": 20}
"""Two fifths of the printed servers, with two fifths of the jobs: Algorithm 2 takes a tenth of the time there."""

UTILITY = Metric("objective", "total utility")
EMBEDDED = Metric("embedded", "embedded ratio", digits=3)

ALGORITHM = """GADGET is Algorithm 1 with Algorithm 2 inside, capacities kept (`inner=lp-rs-mde`). As printed it
leaves servers
idle when no job gains: *filled* gives them to jobs that gain nothing yet (ours), and both are judged. *Printed
program* has
Rost and Schmid's linear program inside, whose rings may fit nowhere."""


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
        series=(FILLED, UNFILLED, *BASELINES),
        axis=axis,
        metrics=(EMBEDDED, UTILITY, RATIO),
        choices=choices,
        claims=claims,
        panels=(lines(EMBEDDED), lines(UTILITY), lines(RATIO)),
    )

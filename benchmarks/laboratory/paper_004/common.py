"""What the figures of paper 004 share: Algorithm 1 with Algorithm 2 inside, the baselines, the metrics."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import Metric, Series

FILLED = Series("GADGET, filled", "gadget", {"inner": "lp-rs-mde"})
UNFILLED = Series("GADGET", "gadget", {"inner": "lp-rs-mde", "fill": False})
PRINTED = Series("GADGET, printed program", "gadget", {"inner": "lp-rs-mde-printed", "fill": False}, beside=True)
PRINTED_FILLED = Series("GADGET, printed program, filled", "gadget", {"inner": "lp-rs-mde-printed"}, beside=True)
EXACT = Series("exact slots, filled", "gadget", {"inner": "colgen"}, ours=True, beside=True)
BASELINES = (Series("FIFO", "fifo"), Series("DRF", "drf"), Series("LAS", "las"))

SHORT = {"jobs": 150, "horizon": 100}
"""Half of the printed slots in Figures 5 and 6, whose ratios are averages over slots."""

UTILITY = Metric("objective", "total utility")
EMBEDDED = Metric("embedded", "embedded ratio", digits=3)

ALGORITHM = """GADGET is Algorithm 1 with Algorithm 2 inside, capacities kept (`inner=lp-rs-mde`). As printed it
leaves servers
idle when no job gains: *filled* gives them to jobs that gain nothing yet (ours), and both are judged. *Printed
program* has
Rost and Schmid's linear program inside, whose rings may fit nowhere."""

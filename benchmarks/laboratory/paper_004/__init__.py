"""Paper 004 (GADGET): Figures 4 to 7 of its section VI."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import Paper
from schedgap.benchmarks.laboratory.paper_004 import figure_4, figure_5, figure_6, figure_7

PAPER = Paper(
    "004",
    "gadget",
    "GADGET: the figures of paper 004, measured again",
    """Printed: 200 slots, 50 servers in 2 to 5 racks with 1, 2, 4 or 8 GPUs, rings of at most 1 to 5 workers, F
    from 1,000 to
    6,000, zeta from 50 to 500, bandwidths from 0.1 to 5 Gbit/s, links of 10 to 100 (servers) and 200 to 3,200
    Gbit/s (racks), sigmoid
    utilities, arrivals after a trace.

    Left open and chosen (preset `paper` of ddljs): one GPU per worker; rack trees below one core; diurnal arrivals;
    F as a limit on
    worker-slots, which never binds; workers of the baselines drawn from 1 to 10 and at most N_i.""",
    (figure_4.ITEM, figure_5.ITEM, figure_6.ELASTIC, figure_6.FIXED, figure_7.ONE_SLOT, figure_7.OVER_SLOTS),
    {"Figures 1 to 3": "drawings of rings and of the network", "Theorems": "see [the ledger](guarantees.md)"},
)

"""Options of the algorithms of ddljs."""

from __future__ import annotations

from schedgap.heuristics.common.run import Option

_WORKERS = Option(
    int, None, "workers of every ring, at most N_i; a number from 1 to 10 drawn for each job where not given", minimum=1
)

GADGET = {
    "inner": Option(
        str,
        "colgen",
        "the g-vne method for a slot",
        choices=("colgen", "greedy", "lp-rs-mde", "lp-rs-mde-mdk", "lp-rs-mde-printed", "cbc", "highs", "cpsat"),
    ),
    "gap": Option(float, 0.0, "relative gap at which an exact inner method may stop", minimum=0, maximum=1),
    "fill": Option(bool, True, "free servers go to jobs that gain nothing yet"),
}
FIFO = {
    "workers": _WORKERS,
    "backfill": Option(bool, False, "jobs behind one that does not fit may start"),
}
LAS = {"workers": _WORKERS}

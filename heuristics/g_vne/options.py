"""Options of the heuristics of g-vne."""

from __future__ import annotations

from schedgap.heuristics.common.rings import MOST_STARTS
from schedgap.heuristics.common.run import Option

GREEDY = {
    "order": Option(
        str,
        "best",
        "rings by utility per dominant share, by utility, or the better of both",
        choices=("best", "density", "utility"),
    ),
    "starts": Option(int, MOST_STARTS, "servers from which a ring is tried to be closed", minimum=1, maximum=100_000),
}

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
LP_RS_MDE = {
    "variant": Option(
        str,
        "no-violation",
        "vanilla: may overload, outside the model; no-violation; mdk: integer program over the rings",
        choices=("no-violation", "vanilla", "mdk"),
    ),
    "tries": Option(int, 100, "most roundings, u_b", minimum=1, maximum=10**6),
    "lp": Option(
        str,
        "capped",
        "rings that are embeddable alone, or Rost and Schmid's program as printed",
        choices=("capped", "augmented"),
    ),
    "ring_sizes": Option(
        str, "selected", "one size per job by the first program, or all", choices=("selected", "free")
    ),
    "alpha": Option(float, 1.0 / 3.0, "part of the program's value that vanilla wants", minimum=0, maximum=1),
    "beta": Option(
        str,
        "printed",
        "overload that vanilla allows: Theorem 8's, or by the rings' loads",
        choices=("printed", "instance"),
    ),
    "nodes": Option(int, 10_000, "most nodes of mdk's search", minimum=1, maximum=10**9),
}

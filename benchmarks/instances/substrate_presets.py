"""Options of importers of networks, for every problem that embeds rings."""

from __future__ import annotations

from schedgap.heuristics.common.run import Option

_GPUS = "GPUs of every server"


def _positive(default: float, text: str) -> Option:
    return Option(float, default, text, minimum=0, exclusive=True, maximum=1e9)


GML_OPTIONS = {
    "capacity": Option(
        str,
        "file",
        "what edges say (bandwidth where they say nothing), bandwidth everywhere, or times the smaller degree",
        choices=("file", "constant", "degree"),
    ),
    "bandwidth": _positive(10.0, "Gbit/s, see capacity"),
    "attribute": Option(str, None, "edge attribute with the capacity; the usual ones where not given"),
    "unit": _positive(1.0, "what makes Gbit/s of the attribute"),
    "gpus": Option(int, None, f"{_GPUS}; 1, 2, 4 or 8 at random where not given", minimum=1, maximum=10**6),
}
CLOS_OPTIONS = {
    "host_bandwidth": _positive(100.0, "Gbit/s of a host's link"),
    "asw_bandwidth": _positive(800.0, "Gbit/s of an access switch's link up"),
    "psw_bandwidth": _positive(3200.0, "Gbit/s of an aggregation switch's link up"),
    "gpus": Option(int, 8, _GPUS, minimum=1, maximum=10**6),
}

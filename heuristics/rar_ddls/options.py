"""The options of the heuristics of rar-ddls, as ``--set`` and the functions themselves take them."""

from __future__ import annotations

from collections.abc import Mapping

from schedgap.formulations.common.instance import LARGEST_COUNT
from schedgap.heuristics.common.run import Option

ESTIMATES: Mapping[str, Option] = {
    "T": Option(
        int,
        None,
        "T, the largest execution time limit theta; the horizon where not given",
        minimum=1,
        maximum=LARGEST_COUNT,
    ),
    "u": Option(float, 1.0, "u >= 1: rho_hat / u is added to a GPU's load", minimum=1.0),
    "l": Option(
        float,
        1.0,
        "l <= 1: lower end of the estimate's error, used by the guarantees only",
        minimum=0,
        exclusive=True,
        maximum=1.0,
    ),
}
"""What every algorithm of paper 000 takes."""

SJF_BCO: Mapping[str, Option] = {
    **ESTIMATES,
    "lambda": Option(float, 1.0, "lambda_j of Algorithm 3, for every job", minimum=1.0),
    "bisection": Option(str, "improved", "what moves theta down", choices=("improved", "feasible")),
    "kappa": Option(int, None, "only this kappa instead of 1..n_g", minimum=1),
    "rho_hat": Option(
        str,
        "best",
        "estimated durations: alone, or on the most servers in the worst company",
        choices=("best", "worst"),
    ),
}

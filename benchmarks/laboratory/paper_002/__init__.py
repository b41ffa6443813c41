"""Paper 002 (Hadar, HadarE): Figures 1, 3 to 6 and 8 to 12."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import Claim, Item, Paper
from schedgap.benchmarks.laboratory.paper_002 import example, mixes, nodes, trace

_TABLE_4 = Item(
    id="table-iv",
    title="Table IV: quality of the trained models",
    plots="Inference quality of five models trained with and without forking (section VI-E).",
    instead="Not reproducible: no model is trained here, and nothing in a simulation of schedules stands in for it.",
    claims=(
        Claim(
            "Forking does not lower the quality of the trained models.",
            "section VI-E, Table IV",
            cannot="No model is trained here.",
        ),
    ),
)

PAPER = Paper(
    "002",
    "hadar",
    "Hadar and HadarE: the evaluation of paper 002, measured again",
    """Printed for the simulations: 15 nodes with 20 V100, 20 P100 and 20 K80, 480 jobs of four size classes, all
    there at the start,
    rounds of 6 minutes, 10 s lost at a change of allocation. For the machines (Figures 6 to 12): five nodes of one
    device on AWS
    and in a laboratory, seven mixes of five models.

    The bound is that of [hadar](hadar.md), for the sum of utilities, which the paper's algorithm maximises; its
    figures show times
    and use instead.""",
    (
        example.FIGURE_1,
        trace.FIGURE_3,
        trace.FIGURE_4,
        example.FIGURE_5,
        mixes.FIGURE_6,
        mixes.AWS,
        mixes.TESTBED,
        *mixes.SLOT_TIMES,
        nodes.ITEM,
        _TABLE_4,
    ),
    {
        "Figures 2 and 7, Table I": "drawings, notation",
        "Tables II and III": "input: size classes, models (presets `trace` and `mixes`)",
    },
)

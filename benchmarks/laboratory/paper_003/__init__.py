"""Paper 003 (SJF-BSBF): Tables II to IV and Figures 2 to 6."""

from __future__ import annotations

from schedgap.benchmarks.laboratory.declare import Paper
from schedgap.benchmarks.laboratory.paper_003 import figure_5, figure_6, measurements, simulated, table_2, workloads

PAPER = Paper(
    "003",
    "sjf-bsbf",
    "SJF-BSBF: the evaluation of paper 003, measured again",
    """Printed: a physical cluster of 4 servers of 4 GPUs with 30 jobs, and simulations of 16 servers of 4 GPUs
    with 240 and
    480 jobs of six tasks from the busiest hours of a trace; large jobs have more than 4 GPUs. The traces'
    selections and
    the durations are not printed.

    Chosen: the presets `table-ii`, `table-iii` and `table-iv` of gpu-sharing; what each leaves open stands with
    the items. Times
    are in hours. The bound is certified for schedules without preemption and resizing
    ([gpu-sharing](gpu-sharing.md)).""",
    (
        measurements.FIGURE_2,
        measurements.FIGURE_3,
        table_2.DECISION,
        table_2.ITEM,
        figure_5.ITEM,
        simulated.TABLE_3,
        simulated.TABLE_4,
        workloads.ITEM,
        figure_6.LOAD,
        figure_6.INTERFERENCE,
    ),
    {"Figure 1, Table I": "a drawing, notation"},
)

"""Seconds of one scheduling round over the number of waiting jobs, like Figure 5 of paper 002."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from schedgap.benchmarks.figures.palette import GRID, INK, MARK, PALETTE
from schedgap.benchmarks.figures.style import log_scale, new_figure, plain_axes
from schedgap.formulations.common.instance import Json

LIMIT = 420.0
"""The paper's: less than 7 minutes a round with 2,048 jobs."""


def round_time_figure(rows: Sequence[Mapping[str, Json]]) -> Figure:
    """Draw the rows of :func:`studies.speed.hadar.round_times` on logarithmic axes.

    Parameters
    ----------
    rows : with ``jobs`` and ``seconds``; the last may carry ``exponent``

    Returns
    -------
    Figure of its own, with the paper's 7 minutes as a line.
    """
    figure = new_figure(6.0, 4.0)
    axes = figure.add_axes((0.13, 0.14, 0.83, 0.8))
    jobs = [row["jobs"] for row in rows]
    axes.plot(jobs, [row["seconds"] for row in rows], marker="o", color=PALETTE[5], label="hadar-rounds, measured")
    axes.axhline(LIMIT, color=MARK, linewidth=1.0, linestyle="--", label="7 minutes (the paper, 2,048 jobs)")
    log_scale(axes, 2, y=True)
    axes.set_xticks(jobs, [str(n) for n in jobs])
    axes.set_xlabel("waiting jobs (one node of 4 devices for every 32)", color=INK, fontsize=10)
    axes.set_ylabel("seconds of one round", color=INK, fontsize=10)
    axes.grid(True, color=GRID, linewidth=0.6)
    exponent = rows[-1].get("exponent") if rows else None
    if exponent is not None:
        axes.set_title(f"seconds grow like jobs^{exponent:.2f}", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=9)
    plain_axes(axes)
    return figure


def trap_figure(rows: Sequence[Mapping[str, Json]]) -> Figure:
    """AdaDUAL's ratio over the number of tasks on its trap.

    Parameters
    ----------
    rows : with ``tasks`` and ``ratio`` (:func:`studies.speed.comm_contention.trap_ratios`)
    """
    figure = new_figure(6.0, 4.0)
    axes = figure.add_axes((0.12, 0.14, 0.84, 0.78))
    tasks, ratios = [row["tasks"] for row in rows], [row["ratio"] for row in rows]
    axes.plot(tasks, ratios, marker="o", color=PALETTE[5], label="adadual, at least")
    axes.axhline(1.0, color=MARK, linewidth=1.0, linestyle="--", label="optimum")
    axes.set_xlabel("tasks: sizes 1 and 0.38, the others 0.0001", color=INK, fontsize=10)
    axes.set_ylabel("mean flow time over the optimum", color=INK, fontsize=10)
    axes.grid(True, color=GRID, linewidth=0.6)
    axes.legend(frameon=False, fontsize=9)
    plain_axes(axes)
    return figure

"""The curve of Theorem 1: the mean completion time of a job pair over the start of the second job."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from schedgap.benchmarks.figures.palette import GRID, INK, MARK, PALETTE
from schedgap.benchmarks.figures.style import new_figure
from schedgap.formulations.gpu_sharing.pair import Pair, best_start, completion_times, mean_completion


def pair_curve(pair: Pair) -> Figure:
    """T_O, T_N and their mean over kappa in [0, a], with the best start marked; seconds."""
    figure = new_figure(6.0, 3.6)
    axes = figure.add_subplot()
    moments = np.unique(np.append(np.linspace(0.0, pair.left, 200), pair.switch))
    ends = np.array([completion_times(pair, float(k)) for k in moments])
    for column, name, colour in ((0, "running job", PALETTE[0]), (1, "new job", PALETTE[1])):
        axes.plot(moments, ends[:, column], color=colour, linewidth=1.2, label=f"completion of the {name}")
    axes.plot(moments, ends.mean(axis=1), color=INK, linewidth=2.0, label="mean")
    if 0 < pair.switch < pair.left:
        axes.axvline(pair.switch, color=GRID, linewidth=1.0, zorder=0)
    best = best_start(pair)
    axes.plot([best.kappa], [best.mean], marker="o", color=MARK, linestyle="none", label="best: an end point")
    axes.set_xlabel("start of the new job, kappa, in seconds")
    axes.set_ylabel("seconds")
    low = min(float(ends.min()), mean_completion(pair, best.kappa))
    axes.set_ylim(bottom=max(0.0, low - 0.1 * (float(ends.max()) - low)))
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=2)
    axes.grid(color=GRID, linewidth=0.6)
    figure.tight_layout()
    return figure

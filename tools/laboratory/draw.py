"""Figures of the laboratory: one panel a metric, intervals at every mean, and how much is left to the bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from schedgap.benchmarks.figures.palette import GRID, INK, MARK
from schedgap.benchmarks.figures.palette import LINES as PALETTE
from schedgap.benchmarks.intervals import interval
from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import Item, Metric, Panel, Series

if TYPE_CHECKING:  # matplotlib is loaded when a figure is drawn: items are listed without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 120
"""Most points of a curve: enough for the eye, small enough to commit."""
MARKERS = "osD^vPX*<>"


def colours(item: Item) -> Mapping[str, str]:
    """A colour for every series, the same in all panels."""
    return {series.label: PALETTE[k % len(PALETTE)] for k, series in enumerate(item.series)}


def _shown(item: Item, only: Sequence[str] | None) -> list[Series]:
    return [series for series in item.series if only is None or series.label in only]


def bars(metric: Metric, only: Sequence[str] | None = None) -> Panel:
    """The mean of every series as a bar with its interval."""

    def draw(axes: Axes, data: Data, item: Item) -> None:
        from matplotlib.ticker import MaxNLocator

        shown, colour = _shown(item, only), colours(item)
        for place, series in enumerate(shown):
            found = interval(data.values(metric.name, series.label) * metric.factor)
            if found is None:
                continue
            axes.barh(place, found.mean, color=colour[series.label], height=0.62)
            if found.half:
                axes.errorbar(found.mean, place, xerr=found.half, color=INK, capsize=3, linewidth=1)
        axes.set_yticks(range(len(shown)), [series.label for series in shown])
        axes.invert_yaxis()
        axes.set_axisbelow(True)
        axes.set_xlabel(metric.title)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.grid(axis="x", color=GRID)
        if metric.name == "ratio":
            axes.axvline(1.0, color=MARK, linewidth=1)
            axes.set_xlim(left=0.0)

    return draw


def lines(
    metric: Metric,
    only: Sequence[str] | None = None,
    logarithmic: bool = False,
    names: Mapping[str, str] | None = None,
    title: str = "",
) -> Panel:
    """The mean of every series over x, with its interval at every point.

    With `names` the lines have these names, and colours by their order: panels of different series with the same names
    share a legend.
    """

    def draw(axes: Axes, data: Data, item: Item) -> None:
        from matplotlib.ticker import NullFormatter

        from schedgap.benchmarks.figures.style import log_scale

        assert item.axis is not None
        colour = colours(item)
        numeric = all(isinstance(x, int | float) for x in item.points)
        places = list(item.points) if numeric else list(range(len(item.points)))
        for k, series in enumerate(_shown(item, only)):
            found = [interval(data.values(metric.name, series.label, x) * metric.factor) for x in item.points]
            known = [(x, f) for x, f in zip(places, found, strict=True) if f is not None]
            if not known:
                continue
            axes.errorbar(
                [x for x, _ in known],
                [f.mean for _, f in known],
                yerr=[f.half or 0.0 for _, f in known],
                color=colour[series.label] if names is None else PALETTE[k % len(PALETTE)],
                marker=MARKERS[k % len(MARKERS)],
                markersize=4,
                capsize=2,
                linewidth=1.2,
                label=series.label if names is None else names[series.label],
            )
        if metric.name == "ratio":
            axes.axhline(1.0, color=MARK, linewidth=1)
        log_scale(axes, 2 if item.axis.log else None, y=logarithmic)
        if not numeric or len(places) <= 9:
            axes.set_xticks(places, [f"{x:g}" if numeric else str(x) for x in item.points], minor=False)
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(item.axis.label)
        axes.set_ylabel(metric.title)
        axes.grid(axis="y", color=GRID)
        if title:
            axes.set_title(title, fontsize=9)

    return draw


def grouped(metrics: Mapping[str, Metric], label: str) -> Panel:
    """For every metric, by its name in the figure, a group of bars: one a series, with its interval."""

    def draw(axes: Axes, data: Data, item: Item) -> None:
        colour, width = colours(item), 0.8 / len(item.series)
        for k, series in enumerate(item.series):
            found = [interval(data.values(one.name, series.label) * one.factor) for one in metrics.values()]
            known = [(place + (k + 0.5) * width - 0.4, one) for place, one in enumerate(found) if one is not None]
            axes.bar(
                [x for x, _ in known],
                [one.mean for _, one in known],
                width,
                yerr=[one.half or 0.0 for _, one in known],
                error_kw={"elinewidth": 0.7},
                color=colour[series.label],
                label=series.label,
            )
        axes.set_xticks(range(len(metrics)), list(metrics), rotation=30, ha="right", fontsize=8)
        axes.set_ylabel(label)
        axes.grid(axis="y", color=GRID)
        axes.set_axisbelow(True)

    return draw


def distribution(
    metric: Metric, label: str, at: object = None, only: Sequence[str] | None = None, limit: float | None = None
) -> Panel:
    """The empirical distribution of a list metric, pooled over the draws: share of values up to x."""

    def draw(axes: Axes, data: Data, item: Item) -> None:
        colour = colours(item)
        for series in _shown(item, only):
            values = np.sort(data.pooled(metric.name, series.label, at)) * metric.factor
            if not len(values):
                continue
            rank = np.unique(np.linspace(0, len(values) - 1, min(POINTS, len(values))).astype(int))
            axes.plot(values[rank], (rank + 1) / len(values), color=colour[series.label], label=series.label, lw=1.3)
        axes.set_xlabel(label)
        axes.set_ylabel("share")
        axes.set_ylim(0, 1.02)
        axes.set_xlim(left=0, right=limit)
        axes.grid(color=GRID)

    return draw


def figure_of(item: Item, data: Data) -> Figure | None:
    """The item's panels side by side, at most three in a row, with one legend where lines need one."""
    if not item.panels:
        return None
    from schedgap.benchmarks.figures.style import new_figure, plain_axes

    columns = 2 if len(item.panels) == 4 else min(3, len(item.panels))
    rows = -(-len(item.panels) // columns)
    figure = new_figure(3.7 * columns, 2.9 * rows + 0.3)
    named: dict[str, Any] = {}
    for place, panel in enumerate(item.panels):
        axes = figure.add_subplot(rows, columns, place + 1)
        panel(axes, data, item)
        plain_axes(axes)
        handles, labels = axes.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    share = 0.0
    if named:
        share = 0.34 * (-(-len(named) // 5)) / figure.get_figheight()
        figure.legend(
            list(named.values()), list(named), loc="upper center", ncols=min(5, len(named)), frameon=False, fontsize=8
        )
    figure.tight_layout(rect=(0, 0, 1, 1 - share))
    return figure

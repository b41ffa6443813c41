"""One picture of several drawings: a title, and a heading above each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure, SubFigure

from schedgap.benchmarks.figures.palette import INK, MARK
from schedgap.benchmarks.figures.style import drawing_on, new_figure
from schedgap.benchmarks.figures.timeline import OBJECTIVE

TITLE, HEADING = 0.42, 0.32
"""Inches above all drawings, and above each."""

Part = tuple[str, Callable[[], Figure]]
"""The line above a drawing (who made a solution, and its objective), and what draws it with ``new_figure``."""


def sheet(title: str, parts: Sequence[Part], together: bool = True) -> Figure:
    """Drawings one above the other, in a figure as wide as the widest of them.

    Parameters
    ----------
    title : the first line
    parts : at least one
    together : with the same x axis
    """
    sizes: list[tuple[float, float]] = []
    scratch = new_figure(1.0, 1.0)

    def measure(width: float, height: float) -> SubFigure:
        sizes.append((width, height))
        return scratch.add_subfigure(scratch.add_gridspec(1, 1)[0])

    for heading, draw in parts:
        before = len(sizes)
        with drawing_on(measure):
            own = draw()
        if len(sizes) == before:  # a foreign drawing with a figure of its own: it cannot be placed on ours
            if len(parts) > 1:
                raise TypeError("this problem's figure makes a canvas of its own, two cannot be put on one page")
            own.suptitle(f"{title}: {heading}", fontsize=10)
            return own
    wide = max(width for width, _ in sizes)
    tall = TITLE + sum(HEADING + height for _, height in sizes)
    figure = new_figure(wide, tall)
    figure.text(0.15 / wide, 1 - 0.5 * TITLE / tall, title, fontsize=12, fontweight="bold", color=INK, va="center")
    ratios = [TITLE, *(part for _, height in sizes for part in (HEADING, height))]
    rows = figure.add_gridspec(len(ratios), 1, height_ratios=ratios, left=0, right=1, bottom=0, top=1, hspace=0)
    panels = []
    level = tall - TITLE
    for place, ((heading, draw), (_, height)) in enumerate(zip(parts, sizes, strict=True)):
        figure.text(0.15 / wide, (level - 0.5 * HEADING) / tall, heading, fontsize=10.5, color=INK, va="center")
        level -= HEADING + height
        panel = figure.add_subfigure(rows[2 * place + 2])
        with drawing_on(lambda width, height, panel=panel: panel):  # type: ignore[misc]
            draw()
        panels.append(panel)
    if together:
        _once(panels)
        _loss(panels)
    for same in zip(*(panel.axes for panel in panels), strict=False) if together else ():
        limits = [axes.get_xlim() for axes in same]
        for axes in same:
            axes.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
    return figure


def _once(panels: Sequence[SubFigure]) -> None:
    """One legend below the last drawing, where all have the same."""
    legends = [legend for panel in panels for legend in panel.legends]
    shown = [[text.get_text() for text in legend.get_texts()] for legend in legends]
    if len(legends) == len(panels) and all(words == shown[-1] for words in shown):
        for legend in legends[:-1]:
            legend.remove()


def _loss(panels: Sequence[SubFigure]) -> None:
    """What each schedule loses against the best one beside it, where the objective is a moment."""
    lines = [line for panel in panels for line in panel.findobj(_is_objective)]
    if len(lines) == len(panels):
        best = min(map(_moment, lines))
        for line in lines:
            _shade(line, best)


def _is_objective(artist: Artist) -> bool:
    return artist.get_gid() == OBJECTIVE


def _moment(line: Any) -> float:
    return float(line.get_xdata()[0])


def _shade(line: Any, best: float) -> None:
    """What lies between the best moment and this one."""
    axes, moment = line.axes, _moment(line)
    axes.axvline(best, color=MARK, linewidth=0.9, linestyle=":", zorder=4)
    if moment > best:
        axes.axvspan(best, moment, color=MARK, alpha=0.13, linewidth=0, zorder=3.5)
        style = {"fontsize": 9, "fontweight": "bold", "color": MARK, "ha": "center", "va": "bottom"}
        above = axes.get_xaxis_transform()
        axes.text((best + moment) / 2, 1.0, f"{moment - best:g} more", transform=above, **style)
